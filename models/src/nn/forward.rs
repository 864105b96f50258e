//! Networks that only answer.
use super::data::{Dataset, Source, Standardise};
use super::engine::{Fan, Inference};
use super::graph::{Graph, NodeId};
use super::{Features, TrainError};
use crate::params::{Backbone, Params, SpecError};
use rayon::ThreadPool;
use std::borrow::Cow;
use std::sync::Arc;

/// A graph with its weights, ready to answer any number of batches.
#[derive(Debug)]
pub struct Forward {
    inference: Inference,
    statistics: usize,
    width: usize,
    outputs: usize,
    pool: Option<Arc<ThreadPool>>,
}

impl Forward {
    /// A graph whose parameters are `params`, in buffer order; memory that is given away is not taken again. Without a pool everything runs on the calling thread; the
    /// numbers are the same.
    ///
    /// # Errors
    /// [`SpecError::WrongLength`].
    pub fn new<'p>(
        graph: &Graph,
        params: impl Into<Cow<'p, [f32]>>,
        pool: Option<Arc<ThreadPool>>,
    ) -> Result<Self, SpecError> {
        let params = params.into();
        if params.len() != graph.len() {
            return Err(SpecError::WrongLength { scope: "graph", expected: graph.len(), got: params.len() });
        }
        Ok(Self::wanting(graph, graph.outputs(), params.into_owned(), pool))
    }

    /// Answers `wanted` nodes, which depend on a prefix of the parameters.
    fn wanting(graph: &Graph, wanted: &[NodeId], params: Vec<f32>, pool: Option<Arc<ThreadPool>>) -> Self {
        let inference = Inference::new(graph, wanted, params);
        Self {
            inference,
            statistics: graph.statistics(),
            width: graph.input().len(),
            outputs: wanted.len(),
            pool,
        }
    }

    /// Runs samples that are standardised and channel-first, one after the other; returns each output for all of them,
    /// channel-first too.
    ///
    /// # Errors
    /// [`TrainError::Conditioning`]; [`TrainError::Spec`] if the inputs are not whole samples.
    pub fn run(&mut self, inputs: &[f32], conditioning: &[f32]) -> Result<Vec<Vec<f32>>, TrainError> {
        let n = inputs.len() / self.width.max(1);
        if n * self.width != inputs.len() {
            let expected = (n + 1) * self.width;
            return Err(SpecError::WrongLength { scope: "inputs", expected, got: inputs.len() }.into());
        }
        let all: Vec<usize> = (0..n).collect();
        let mut outputs = vec![vec![]; self.outputs];
        self.each(Source::ready(inputs), &all, conditioning, |output, values| {
            outputs[output].extend_from_slice(values);
        })?;
        Ok(outputs)
    }

    /// Calls `f(output, its value)` sample after sample.
    fn each(
        &mut self,
        source: Source<'_>,
        picks: &[usize],
        conditioning: &[f32],
        mut f: impl FnMut(usize, &[f32]) + Send,
    ) -> Result<(), TrainError> {
        if conditioning.len() != self.statistics {
            return Err(TrainError::Conditioning { expected: self.statistics, got: conditioning.len() });
        }
        let Self { inference, pool, .. } = self;
        Fan::within(pool.as_deref(), |fan| inference.run(fan, source, picks, conditioning, &mut f));
        Ok(())
    }
}

impl Graph {
    /// Runs the graph once: see [`Forward::run`].
    ///
    /// # Errors
    /// As [`Forward::new`] and [`Forward::run`].
    pub fn run(
        &self,
        params: &[f32],
        inputs: &[f32],
        conditioning: &[f32],
    ) -> Result<Vec<Vec<f32>>, TrainError> {
        Forward::new(self, params, None)?.run(inputs, conditioning)
    }
}

/// Takes features out of backbones of one architecture.
#[derive(Clone, Debug)]
pub struct Extractor {
    graph: Arc<Graph>,
    pool: Option<Arc<ThreadPool>>,
}

impl Extractor {
    /// For backbones of this graph.
    pub fn new(graph: Arc<Graph>, pool: Option<Arc<ThreadPool>>) -> Self {
        Self { graph, pool }
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The backbone, ready for any number of batches: its one output is the feature.
    pub fn bind(&self, backbone: &Backbone) -> Forward {
        let feature: Vec<NodeId> = self.graph.feature().into_iter().collect();
        Forward::wanting(&self.graph, &feature, backbone.values().to_vec(), self.pool.clone())
    }

    /// Features `[n, width]` of standardised, channel-first samples, in evaluation mode.
    ///
    /// # Errors
    /// As [`Forward::run`].
    pub fn features(
        &self,
        backbone: &Backbone,
        conditioning: &[f32],
        inputs: &[f32],
    ) -> Result<Vec<f32>, TrainError> {
        Ok(self.bind(backbone).run(inputs, conditioning)?.pop().unwrap_or_default())
    }

    /// Features of some samples of a data set, with their labels.
    ///
    /// # Errors
    /// [`TrainError::Conditioning`].
    pub fn of_samples(
        &self,
        backbone: &Backbone,
        conditioning: &[f32],
        data: &Dataset,
        samples: &[usize],
    ) -> Result<Features, TrainError> {
        let standardise = Standardise::new(&backbone.spec().card().preprocessing);
        let mut values = Vec::new();
        let mut forward = self.bind(backbone);
        forward
            .each(data.source(&standardise), samples, conditioning, |_, row| values.extend_from_slice(row))?;
        let labels = samples.iter().map(|&i| data.labels()[i]).collect();
        Ok(Features { width: backbone.spec().features(), values, labels })
    }

    /// Logits `[n, classes]` of some samples of a data set.
    ///
    /// # Errors
    /// [`TrainError::Conditioning`].
    pub fn logits(
        &self,
        params: &Params,
        conditioning: &[f32],
        data: &Dataset,
        samples: &[usize],
    ) -> Result<Vec<f32>, TrainError> {
        let standardise = Standardise::new(&params.spec().card().preprocessing);
        let mut logits = Vec::new();
        let mut forward = Forward::new(&self.graph, params.values(), self.pool.clone())?;
        forward
            .each(data.source(&standardise), samples, conditioning, |_, row| logits.extend_from_slice(row))?;
        Ok(logits)
    }
}
