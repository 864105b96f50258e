//! What the integration tests share: the engines of this machine.
use models::fed::{Ensemble, Member, Stream};
use models::infer::Runtime;
use models::nn::{arch, init};
use models::params::{ModelCard, Params, Preprocessing};
use models::tensor::rng::{Key, Purpose};
use models::tensor::{Shape, Tensor};
use onnx::runtime::{Engine, Options, all};
use std::path::PathBuf;
use std::sync::Arc;

/// ONNX Runtime's library: `ORT_DYLIB_PATH`, else inside the workspace's own Python environment.
pub(crate) fn options() -> Options {
    let mut options = Options::of_process();
    options.places.splice(0..0, python_packages());
    options
}

fn python_packages() -> impl Iterator<Item = PathBuf> {
    let lib = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/lib");
    let versions = std::fs::read_dir(lib).into_iter().flatten().filter_map(Result::ok);
    versions.map(|python| python.path().join("site-packages/onnxruntime/capi"))
}

/// The engines there are. ONNX Runtime may be missing, and then it is said.
pub(crate) fn engines() -> Vec<Box<dyn Runtime>> {
    let present = all(&options()).into_iter().filter_map(|(engine, opened)| match opened {
        Ok(runtime) => Some(runtime),
        Err(_) if engine == Engine::Tract && !cfg!(feature = "tract") => {
            eprintln!("skipped: built without tract");
            None
        }
        Err(_) if engine == Engine::Ort && options().ort_dylib_path.is_none() => {
            eprintln!("skipped: no ONNX Runtime");
            None
        }
        Err(why) => panic!("{why}"),
    });
    present.collect()
}

/// The usual card of an architecture.
pub(crate) fn card(arch: &str, statistics: usize) -> ModelCard {
    let input = match arch {
        "har1d" => [6, 1, 64],
        "cc32" | "cc32-gn" => [3, 32, 32],
        "mlp" => [2, 3, 4],
        _ => [1, 28, 28],
    };
    let labels = (0..10).map(|c| format!("class {c}")).collect();
    let preprocessing = Preprocessing { mean: vec![0.286; input[0]], std: vec![0.353; input[0]] };
    ModelCard { arch: arch.into(), input, labels, statistics, preprocessing }
}

/// A model with weights, norms and statistics that are not at their start.
pub(crate) fn params(card: &ModelCard, seed: u64) -> Params {
    let (graph, spec) = arch::build(card).unwrap();
    let mut params = init(&graph, &spec, seed);
    let mut noise = Key::new(seed, Purpose::Batches).stream();
    params.values_mut().iter_mut().for_each(|v| *v += 0.04 * noise.unit() - 0.02);
    params
}

/// Three heads over two backbones.
pub(crate) fn ensemble(card: &ModelCard, seed: u64) -> Ensemble {
    let models: Vec<Params> = (0..3).map(|k| params(card, seed + k)).collect();
    let conditioning = |k: usize| (0..card.statistics).map(|i| 0.1 * (i * (k + 1)) as f32 - 0.3).collect();
    let streams =
        (0..2).map(|k| Stream { backbone: models[k].backbone(), conditioning: conditioning(k) }).collect();
    let member = |(k, share): (usize, f32)| Member { stream: k % 2, head: models[k].head(), share };
    Ensemble {
        spec: Arc::clone(models[0].spec()),
        streams,
        members: [(0, 0.5), (1, 0.3), (2, 0.2)].map(member).to_vec(),
    }
}

/// Standardised samples.
pub(crate) fn inputs(card: &ModelCard, samples: usize) -> Tensor {
    let extents = [&[samples], &card.input[..]].concat();
    let shape = Shape::new(extents);
    let mut noise = Key::new(9, Purpose::Batches).stream();
    let values = (0..shape.len()).map(|_| 4.0 * noise.unit() - 2.0).collect();
    Tensor::new(shape, values)
}

/// The first sample of a batch.
pub(crate) fn first(batch: &Tensor) -> Tensor {
    let extents = [&[1], &batch.shape().extents()[1..]].concat();
    Tensor::new(Shape::new(extents), batch.view().row(0).to_vec())
}
