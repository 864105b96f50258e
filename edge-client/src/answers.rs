//! A board's answer: both streams as ONNX graphs, run by one engine, weighed by the router.
use models::fed::{Predictor, Routed, Router};
use models::infer::{Outputs, Runtime, RuntimeError, Session};
use models::nn::Graph;
use models::params::ModelSpec;
use models::tensor::TensorView;
use onnx::{ExportError, Extractor, FeatureSession, FrozenError, Role, export};
use std::sync::Arc;

/// Why a board can't answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// A stream can't be written as a graph.
    #[error("the {role} can't be written as a graph: {source}")]
    Export {
        /// Which.
        role: &'static str,
        /// Why.
        source: ExportError,
    },
    /// A stream can't be put on the part of the network that is kept as it came.
    #[error(transparent)]
    Frozen(#[from] FrozenError),
    /// The engine can't.
    #[error(transparent)]
    Engine(#[from] RuntimeError),
}

/// Both streams as ONNX files.
#[derive(Clone, Debug)]
pub struct Graphs {
    /// The personal model, its whole mixture in one graph.
    pub specialist: Vec<u8>,
    /// The shared model, if the method has one beside the personal one.
    pub generalist: Option<Vec<u8>>,
}

impl Graphs {
    /// Writes a predictor's streams.
    ///
    /// # Errors
    /// [`AnswerError::Export`].
    pub fn of(predictor: &Predictor, graph: &Graph) -> Result<Self, AnswerError> {
        let write = |ensemble, role: Role| {
            export(ensemble, graph, role).map_err(|source| AnswerError::Export { role: role.name(), source })
        };
        let generalist = predictor.generalist().map(|g| write(g, Role::Generalist)).transpose()?;
        Ok(Self { specialist: write(predictor.specialist(), Role::Specialist)?, generalist })
    }

    /// The same on the part of the network that is kept as it came, if there is one: they read samples, not features.
    ///
    /// # Errors
    /// [`AnswerError::Frozen`].
    pub fn on(self, extractor: Option<&Extractor>) -> Result<Self, AnswerError> {
        let Some(extractor) = extractor else { return Ok(self) };
        let generalist = self.generalist.map(|graph| extractor.under(&graph)).transpose()?;
        Ok(Self { specialist: extractor.under(&self.specialist)?, generalist })
    }
}

/// Two loaded graphs and the router.
pub struct Answerer {
    /// What both graphs read, where that are features.
    front: Option<FeatureSession>,
    specialist: Box<dyn Session>,
    generalist: Option<Box<dyn Session>>,
    router: Router,
    spec: Arc<ModelSpec>,
}

impl std::fmt::Debug for Answerer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answerer({})", self.spec.card().arch)
    }
}

impl Answerer {
    /// Loads the graphs into an engine.
    ///
    /// # Errors
    /// [`AnswerError::Engine`].
    pub fn new(
        graphs: &Graphs,
        router: Router,
        spec: &Arc<ModelSpec>,
        engine: &dyn Runtime,
    ) -> Result<Self, AnswerError> {
        let generalist = graphs.generalist.as_ref().map(|g| engine.prepare(g)).transpose()?;
        Ok(Self {
            front: None,
            specialist: engine.prepare(&graphs.specialist)?,
            generalist,
            router,
            spec: Arc::clone(spec),
        })
    }

    /// The same with graphs that read features: these are taken out of the inputs once, for both.
    #[must_use]
    pub fn behind(self, front: FeatureSession) -> Self {
        Self { front: Some(front), ..self }
    }

    /// Answers a batch of inputs in [0, 1], one after the other.
    ///
    /// # Errors
    /// [`AnswerError::Engine`], [`AnswerError::Frozen`].
    pub fn answer(&mut self, values: &[f32]) -> Result<Vec<Routed>, AnswerError> {
        let card = self.spec.card();
        let [c, h, w] = card.input;
        let mut standardised = values.to_vec();
        standardised.chunks_exact_mut(c * h * w).for_each(|sample| card.preprocessing.apply(sample));
        let samples = values.len() / (c * h * w);
        let (extents, read) = match &mut self.front {
            None => ([samples, c, h, w], standardised),
            Some(front) => ([samples, self.spec.features(), 1, 1], front.run(&standardised)?),
        };
        let input = TensorView::new(&extents, &read);
        let own = self.specialist.run(input)?;
        let shared = self.generalist.as_mut().map(|g| g.run(input)).transpose()?;
        Ok((0..extents[0]).map(|i| self.route(i, &own, shared.as_ref())).collect())
    }

    /// Whether a second stream is heard.
    pub fn is_dual(&self) -> bool {
        self.generalist.is_some()
    }

    fn route(&self, index: usize, own: &Outputs, shared: Option<&Outputs>) -> Routed {
        let row = own.log_probabilities.view().row(index);
        let shared = shared.map_or(row, |s| s.log_probabilities.view().row(index));
        let feature = own.features.as_ref().map_or(&[][..], |f| f.view().row(index));
        self.router.route(row, shared, feature)
    }
}
