//! ONNX Runtime, loaded while the program runs.
use super::contract::{Contract, INPUT};
use super::library::missing;
use models::infer::{Outputs, Runtime, RuntimeError, Session};
use models::tensor::TensorView;
use ort::environment::Environment;
use ort::ep::{CPU, ExecutionProvider};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const NAME: &str = "ort";

/// The library that this process has loaded. There can be only one, and it stays.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// ONNX Runtime on its CPU provider.
#[derive(Debug)]
pub struct Ort {
    environment: Environment,
    threads: NonZeroUsize,
}

impl Ort {
    /// Loads the library at `path`, with telemetry off; sessions will use at most `threads` threads.
    ///
    /// # Errors
    /// [`RuntimeError::Missing`]: it is no ONNX Runtime, it is too old, or another one is already loaded.
    pub fn load(path: &Path, threads: NonZeroUsize) -> Result<Self, RuntimeError> {
        let path = std::path::absolute(path).map_err(|e| missing(e.to_string()))?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = match &*loaded {
            Some((other, _)) if *other != path => {
                return Err(missing(format!(
                    "this process already uses {}, so it can't load {}",
                    other.display(),
                    path.display()
                )));
            }
            Some((_, environment)) => environment.clone(),
            None => loaded.insert((path.clone(), environment(&path)?)).1.clone(),
        };
        Ok(Self { environment, threads })
    }

    /// A builder on the CPU provider. Providers fail loudly: ONNX Runtime's own fallback would leave the report wrong.
    fn builder(&self) -> Result<SessionBuilder, ort::Error> {
        let threads = self.threads.get();
        Ok(ort::session::Session::builder(&self.environment)?
            .with_execution_providers([CPU::default().with_arena_allocator(true).build().error_on_failure()])?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_intra_threads(threads)?
            .with_intra_op_spinning(false)?)
    }
}

/// `init_from` gives an error where the plain `init` would panic.
fn environment(path: &Path) -> Result<Environment, RuntimeError> {
    let why = |e: &dyn std::fmt::Display| missing(format!("{} can't be used: {e}", path.display()));
    let builder = ort::init_from(path).map_err(|e| why(&e))?;
    builder.with_name("spectra").with_telemetry(false).build().map_err(|e| why(&e))
}

impl Runtime for Ort {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> String {
        CPU::NAME.into()
    }

    fn prepare(&self, onnx: &[u8]) -> Result<Box<dyn Session>, RuntimeError> {
        let contract = Contract::of(NAME, onnx)?;
        let load = |e: ort::Error| RuntimeError::Load { engine: NAME, why: e.to_string() };
        let session = self.builder().map_err(load)?.commit_from_memory(onnx).map_err(load)?;
        Ok(Box::new(OrtSession { session, contract }))
    }
}

struct OrtSession {
    session: ort::session::Session,
    contract: Contract,
}

impl Session for OrtSession {
    fn run(&mut self, input: TensorView<'_>) -> Result<Outputs, RuntimeError> {
        let failed = |e: ort::Error| RuntimeError::Run { engine: NAME, why: e.to_string() };
        let batch = TensorRef::from_array_view((input.extents().to_vec(), input.values())).map_err(failed)?;
        let results = self.session.run(ort::inputs![INPUT => batch]).map_err(failed)?;
        self.contract.outputs(|index, name| {
            let (shape, values) = results[index].try_extract_tensor::<f32>().map_err(failed)?;
            let extents: Vec<usize> = shape.iter().map(|&e| usize::try_from(e).unwrap_or(0)).collect();
            self.contract.rows(name, input.rows(), &extents, values.to_vec())
        })
    }
}
