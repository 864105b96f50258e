//! What every exported graph promises an engine: names of its input and outputs.
use crate::proto::{ModelProto, ValueInfoProto};
use models::infer::{Outputs, RuntimeError};
use models::tensor::{Shape, Tensor};

/// Name of the only input: standardised samples `[N, channels, height, width]`.
pub(crate) const INPUT: &str = "input";
/// Name of the first output: log-probabilities `[N, classes]`.
pub(crate) const LOG_PROBABILITIES: &str = "log_probabilities";
/// Name of the second output, if there is one: features of the first backbone `[N, width]`.
pub(crate) const FEATURES: &str = "features";

/// A graph that keeps the promise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contract {
    engine: &'static str,
    /// Whether the graph gives features.
    pub(super) features: bool,
}

impl Contract {
    /// Reads the names of the graph's inputs and outputs.
    pub(super) fn of(engine: &'static str, onnx: &[u8]) -> Result<Self, RuntimeError> {
        let model = crate::proto::decode(onnx);
        Self::of_model(engine, &model.map_err(|e| RuntimeError::Load { engine, why: e.to_string() })?)
    }

    /// The same of a file that is read already.
    pub(super) fn of_model(engine: &'static str, model: &ModelProto) -> Result<Self, RuntimeError> {
        let refuse = |why: String| RuntimeError::Load { engine, why };
        let (inputs, outputs) = match &model.graph {
            Some(graph) => (&graph.input[..], &graph.output[..]),
            None => (&[][..], &[][..]),
        };
        let outputs: Vec<_> = names(outputs).collect();
        if !names(inputs).eq([INPUT]) || outputs.first() != Some(&LOG_PROBABILITIES) {
            let inputs: Vec<_> = names(inputs).collect();
            return Err(refuse(format!(
                "it maps {inputs:?} to {outputs:?}, but an answer needs [{INPUT:?}] and [{LOG_PROBABILITIES:?}, {FEATURES:?}]"
            )));
        }
        Ok(Self { engine, features: outputs.get(1) == Some(&FEATURES) })
    }

    /// An output of `rows` rows.
    pub(super) fn rows(
        self,
        name: &str,
        rows: usize,
        extents: &[usize],
        values: Vec<f32>,
    ) -> Result<Tensor, RuntimeError> {
        let fits =
            matches!(extents, [n, _] if *n == rows) && extents.iter().product::<usize>() == values.len();
        let why = || format!("output {name} has extents {extents:?} for {rows} samples");
        fits.then(|| Tensor::new(Shape::new(extents), values))
            .ok_or_else(|| RuntimeError::Run { engine: self.engine, why: why() })
    }

    /// Both outputs, taken from the engine by index and name.
    pub(super) fn outputs(
        self,
        mut take: impl FnMut(usize, &str) -> Result<Tensor, RuntimeError>,
    ) -> Result<Outputs, RuntimeError> {
        let log_probabilities = take(0, LOG_PROBABILITIES)?;
        let features = self.features.then(|| take(1, FEATURES)).transpose()?;
        Ok(Outputs { log_probabilities, features })
    }
}

fn names(values: &[ValueInfoProto]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.name.as_str())
}
