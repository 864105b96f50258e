//! What engines refuse, and how they say it.

use crate::common::{card, engines, inputs, options, params};
use models::fed::Ensemble;
use models::infer::RuntimeError;
use models::nn::arch;
use onnx::runtime::{Engine, by_name};
use onnx::{Role, export};
use std::path::PathBuf;

#[test]
fn a_missing_library_is_an_error_with_a_remedy() {
    let mut nowhere = options();
    nowhere.ort_lib = Some(PathBuf::from("/nowhere/libonnxruntime.so"));
    let refused = Engine::Ort.open(&nowhere).err().unwrap();
    assert!(matches!(refused, RuntimeError::Missing { engine: "ort", .. }));
    assert!(refused.to_string().contains("edge-client ort install"), "{refused}");
    assert!(Engine::Auto.open(&nowhere).is_err(), "a library that was named is not passed over");
    nowhere.ort_lib = None;
    nowhere.ort_dylib_path = None;
    nowhere.places.clear();
    assert_eq!(Engine::Auto.open(&nowhere).unwrap().name(), "native");
    assert!(by_name("cuda", &nowhere).err().unwrap().to_string().contains("auto, ort, native and tract"));
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("libonnxruntime.so");
    std::fs::write(&file, b"no library").unwrap();
    let mut broken = options();
    broken.ort_lib = Some(file);
    assert!(matches!(Engine::Ort.open(&broken), Err(RuntimeError::Missing { .. })));
}

#[test]
fn bytes_that_are_no_answer_are_refused_by_every_engine() {
    let card = card("mlp", 0);
    let (graph, spec) = arch::build(&card).unwrap();
    let metadata = onnx::Metadata::of(&spec, Role::Generalist);
    let logits = onnx::Network {
        graph: (*graph).clone(),
        values: params(&card, 1).into_values(),
        outputs: vec!["logits".into()],
        metadata,
    };
    let logits = onnx::write(&logits).unwrap();
    for engine in engines() {
        let refused = engine.prepare(&logits).err().unwrap().to_string();
        assert!(refused.contains(engine.name()) && refused.contains("logits"), "{refused}");
        assert!(matches!(engine.prepare(b"no graph"), Err(RuntimeError::Load { .. })));
    }
}

#[test]
fn samples_of_another_shape_are_refused_by_every_engine() {
    let params = params(&card("lenet5", 0), 1);
    let (graph, _) = arch::build(&card("lenet5", 0)).unwrap();
    let bytes = export(&Ensemble::single(&params, &[]), &graph, Role::Generalist).unwrap();
    let other = inputs(&card("cc32", 0), 2);
    for engine in engines() {
        let refused = engine.prepare(&bytes).unwrap().run(other.view());
        assert!(matches!(refused, Err(RuntimeError::Run { .. })), "{}: {refused:?}", engine.name());
    }
}

#[test]
fn sessions_of_one_process_do_not_disturb_each_other() {
    let (one, two) = (params(&card("mlp", 0), 1), params(&card("mlp", 0), 2));
    let (graph, _) = arch::build(&card("mlp", 0)).unwrap();
    let [one, two] =
        [one, two].map(|p| export(&Ensemble::single(&p, &[]), &graph, Role::Generalist).unwrap());
    for engine in engines() {
        let (mut first, mut second) = (engine.prepare(&one).unwrap(), engine.prepare(&two).unwrap());
        let before = first.run(inputs(&card("mlp", 0), 3).view()).unwrap();
        // More batch sizes than plans are kept for.
        for samples in 1..7 {
            assert_eq!(
                second
                    .run(inputs(&card("mlp", 0), samples).view())
                    .unwrap()
                    .log_probabilities
                    .shape()
                    .extents(),
                [samples, 10]
            );
        }
        assert_eq!(first.run(inputs(&card("mlp", 0), 3).view()).unwrap(), before, "{}", engine.name());
    }
}
