//! tract: pure Rust, for graphs that the native engine does not know, on boards without ONNX Runtime.
use super::contract::Contract;
use models::infer::{Outputs, Runtime, RuntimeError, Session};
use models::tensor::TensorView;
use std::sync::Arc;
use tract_onnx::prelude::*;

const NAME: &str = "tract";
/// Plans kept at a time. A board asks for single samples, full batches and one last, smaller batch.
const PLANS: usize = 4;

/// tract on the CPU, one thread.
#[derive(Clone, Copy, Debug)]
pub struct Tract;

impl Runtime for Tract {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> String {
        "CPU".into()
    }

    fn prepare(&self, onnx: &[u8]) -> Result<Box<dyn Session>, RuntimeError> {
        let contract = Contract::of(NAME, onnx)?;
        let model = tract_onnx::onnx()
            .model_for_read(&mut &*onnx)
            .map_err(|e| RuntimeError::Load { engine: NAME, why: chain(&e) })?;
        Ok(Box::new(TractSession { model, contract, plans: Vec::new() }))
    }
}

/// A graph and its optimised plans: tract is fastest when every extent is known, so each batch size has its own.
struct TractSession {
    model: InferenceModel,
    contract: Contract,
    plans: Vec<(Vec<usize>, Arc<TypedRunnableModel>)>,
}

impl TractSession {
    fn plan(&mut self, extents: &[usize]) -> TractResult<Arc<TypedRunnableModel>> {
        if let Some((_, plan)) = self.plans.iter().find(|(known, _)| known == extents) {
            return Ok(Arc::clone(plan));
        }
        let model = self.model.clone().with_input_fact(0, f32::fact(extents).into())?;
        let plan = model.into_optimized()?.into_runnable()?;
        self.plans.truncate(PLANS - 1);
        self.plans.insert(0, (extents.to_vec(), Arc::clone(&plan)));
        Ok(plan)
    }
}

impl Session for TractSession {
    fn run(&mut self, input: TensorView<'_>) -> Result<Outputs, RuntimeError> {
        let failed = |e: TractError| RuntimeError::Run { engine: NAME, why: chain(&e) };
        let plan = self.plan(input.extents()).map_err(failed)?;
        let batch = Tensor::from_shape(input.extents(), input.values()).map_err(failed)?;
        let results = plan.run(tvec!(batch.into())).map_err(failed)?;
        self.contract.outputs(|index, name| {
            let values = results[index].to_plain_array_view::<f32>().map_err(failed)?;
            self.contract.rows(name, input.rows(), values.shape(), values.iter().copied().collect())
        })
    }
}

/// An error with its causes on one line.
fn chain(error: &TractError) -> String {
    format!("{error:#}")
}
