//! The training engine's own forward pass: nothing to install.
use super::contract::Contract;
use crate::proto::decode;
use models::infer::{Outputs, Runtime, RuntimeError, Session};
use models::nn::{Forward, isa};
use models::tensor::TensorView;
use rayon::ThreadPool;
use std::num::NonZeroUsize;
use std::sync::Arc;

const NAME: &str = "native";

/// The native engine.
#[derive(Clone, Debug)]
pub struct Native {
    /// Nothing where the calling thread does all the work.
    pool: Option<Arc<ThreadPool>>,
}

impl Native {
    /// Sessions will use at most `threads` threads; where the system gives no more, the calling one alone. The answers are the same.
    pub fn new(threads: NonZeroUsize) -> Self {
        let pool = (threads.get() > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build().ok());
        Self { pool: pool.flatten().map(Arc::new) }
    }
}

impl Runtime for Native {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> String {
        format!("CPU ({})", isa().level())
    }

    fn prepare(&self, onnx: &[u8]) -> Result<Box<dyn Session>, RuntimeError> {
        let load = |why: String| RuntimeError::Load { engine: NAME, why };
        let model = decode(onnx).map_err(|e| load(e.to_string()))?;
        let contract = Contract::of_model(NAME, &model)?;
        let network = crate::import::import_model(model).map_err(|e| load(e.to_string()))?;
        let nodes = network.graph.outputs().iter();
        let widths = nodes.map(|&id| network.graph.node(id).dims.len()).collect();
        let input = network.graph.input();
        let forward = Forward::new(&network.graph, network.values, self.pool.clone())
            .map_err(|e| load(e.to_string()))?;
        Ok(Box::new(NativeSession {
            forward,
            contract,
            widths,
            input: [input.channels, input.height, input.width],
        }))
    }
}

struct NativeSession {
    forward: Forward,
    contract: Contract,
    widths: Vec<usize>,
    input: [usize; 3],
}

impl Session for NativeSession {
    fn run(&mut self, input: TensorView<'_>) -> Result<Outputs, RuntimeError> {
        let failed = |why: String| RuntimeError::Run { engine: NAME, why };
        if input.extents().get(1..) != Some(&self.input[..]) {
            return Err(failed(format!(
                "samples have extents {:?}, but the graph takes {:?}",
                input.extents(),
                self.input
            )));
        }
        let mut outputs = self.forward.run(input.values(), &[]).map_err(|e| failed(e.to_string()))?;
        self.contract.outputs(|index, name| {
            self.contract.rows(
                name,
                input.rows(),
                &[input.rows(), self.widths[index]],
                std::mem::take(&mut outputs[index]),
            )
        })
    }
}
