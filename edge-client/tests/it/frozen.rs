//! Networks of which only the head trains: features that are taken once for both streams give what whole graphs answer.
use edge_client::answers::{Answerer, Graphs};
use models::fed::{Ensemble, Predictor, Router};
use models::params::Params;
use onnx::Built;
use onnx::runtime::{Engine, Native, Options};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

fn built() -> Built {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx/tests/golden/frozen");
    let file = std::fs::read(golden.join("vit.dynamo.18.onnx")).unwrap();
    let brought = onnx::bring(&file, "head", &Options::of_process()).unwrap();
    onnx::build(&brought.card().unwrap(), Some(&brought.file)).unwrap()
}

#[test]
fn both_streams_answer_on_features_as_whole_graphs_do() {
    let Built { graph, spec, start, extractor } = built();
    let (start, extractor) = (start.unwrap(), extractor.unwrap());
    let halved = start.values().iter().map(|x| 0.5 * x).collect();
    let halved = Params::new(Arc::clone(&spec), halved).unwrap();
    let [specialist, generalist] = [&start, &halved].map(|model| Ensemble::single(model, &[]));
    let predictor = Predictor::DualStream { specialist, generalist, router: Router::Specialist };
    let engine = Engine::Auto.open_frozen(&Options::of_process()).unwrap();
    let heads = Graphs::of(&predictor, &graph).unwrap();
    let whole = heads.clone().on(Some(&extractor)).unwrap();

    let mut apart = Answerer::new(&heads, Router::Specialist, &spec, &Native::new(NonZeroUsize::MIN))
        .unwrap()
        .behind(extractor.open(&*engine).unwrap());
    let mut together = Answerer::new(&whole, Router::Specialist, &spec, &*engine).unwrap();
    let pictures: Vec<f32> = (0..3 * 64).map(|i| (i * 29 % 64) as f32 / 64.0).collect();
    let (a, b) = (apart.answer(&pictures).unwrap(), together.answer(&pictures).unwrap());
    assert_eq!((a.len(), b.len()), (3, 3));
    let near = |x: &[f32], y: &[f32]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-5);
    for (a, b) in a.iter().zip(&b) {
        assert!(near(&a.specialist, &b.specialist) && near(&a.generalist, &b.generalist), "{a:?} {b:?}");
        assert!(!near(&a.specialist, &a.generalist), "they are two");
    }
}
