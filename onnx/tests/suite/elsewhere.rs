//! Exports are used by others: ONNX's own checker accepts them, and Python's ONNX Runtime says what the native engine says.

use crate::common::{card, ensemble, options};
use models::nn::arch;
use models::tensor::{Shape, Tensor};
use onnx::runtime::Engine;
use onnx::{Role, export};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: usize = 3;

/// The workspace's Python with `onnx` and `onnxruntime`, and the script that checks files (its page tells how inputs are made).
fn checker() -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python =
        std::env::var_os("SPECTRA_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
    let script = root.join("lab/peers/onnx_check.py");
    let has_packages = Command::new(&python)
        .args(["-c", "import onnx, onnxruntime"])
        .output()
        .is_ok_and(|o| o.status.success());
    (has_packages && script.is_file()).then_some((python, script))
}

/// `symmetric(900000, i)` of the golden files: in [−1, 1), exact.
fn symmetric(index: u64) -> f32 {
    let x = index.wrapping_add(900_000 << 32).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (((z ^ (z >> 31)) >> 40) as f32 - 8_388_608.0) / 8_388_608.0
}

#[test]
fn exports_pass_the_checker_and_run_in_python() {
    let Some((python, script)) = checker() else {
        eprintln!("skipped: no Python with onnx and onnxruntime");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in arch::NAMES {
        for role in [Role::Specialist, Role::Generalist] {
            let file = dir.path().join(format!("{name}-{}.onnx", role.name()));
            let (graph, _) = arch::build(&card(name, 0)).unwrap();
            std::fs::write(&file, export(&ensemble(&card(name, 0), 3), &graph, role).unwrap()).unwrap();
            files.push((name, role, file));
        }
    }
    let paths = files.iter().map(|(_, _, file)| file);
    let checked =
        Command::new(python).arg(script).args(["--rows", &ROWS.to_string()]).args(paths).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let found: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    for ((name, role, file), found) in files.iter().zip(found.as_array().unwrap()) {
        assert_eq!((found["ir"].as_i64(), found["opset"]["ai.onnx"].as_i64()), (Some(8), Some(17)));
        assert_eq!(found["metadata"]["role"], role.name());
        let extents = [&[ROWS], &card(name, 0).input[..]].concat();
        let shape = Shape::new(extents);
        let batch = Tensor::new(shape.clone(), (0..shape.len() as u64).map(symmetric).collect());
        let native = Engine::Native.open(&options()).unwrap();
        let ours = native.prepare(&std::fs::read(file).unwrap()).unwrap().run(batch.view()).unwrap();
        let outputs = std::iter::once(("log_probabilities", ours.log_probabilities))
            .chain(ours.features.map(|f| ("features", f)));
        for ((output, tensor), theirs) in outputs.zip(found["outputs"].as_array().unwrap()) {
            assert_eq!(theirs["name"], output);
            let theirs: Vec<f64> =
                theirs["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            assert_eq!(theirs.len(), tensor.values().len());
            let apart = tensor
                .values()
                .iter()
                .zip(&theirs)
                .map(|(a, b)| (f64::from(*a) - b).abs())
                .fold(0.0, f64::max);
            assert!(apart <= 1e-4, "{name} {output}: native and Python's onnxruntime differ by {apart:e}");
        }
    }
}

#[cfg(feature = "tract")]
#[test]
fn a_kept_part_with_a_head_on_it_passes_the_checker_and_runs_in_python() {
    let Some((python, script)) = checker() else {
        eprintln!("skipped: no Python with onnx and onnxruntime");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for case in ["vit.script.17", "vit.dynamo.23", "next.plain.20"] {
        let (_, built) = crate::frozen::built(case);
        let ensemble = models::fed::Ensemble::single(built.start.as_ref().unwrap(), &[]);
        let exported = export(&ensemble, &built.graph, Role::Specialist).unwrap();
        let file = dir.path().join(format!("{case}.onnx"));
        std::fs::write(&file, built.extractor.unwrap().under(&exported).unwrap()).unwrap();
        let checked = Command::new(&python).arg(&script).args(["--rows", "2"]).arg(&file).output().unwrap();
        assert!(checked.status.success(), "{case}: {}", String::from_utf8_lossy(&checked.stderr));
        let found: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
        let [answer, features] = [0, 1].map(|i| &found[0]["outputs"][i]);
        assert_eq!((&answer["name"], &features["name"]), (&"log_probabilities".into(), &"features".into()));
        let sums = answer["values"]
            .as_array()
            .unwrap()
            .chunks(4)
            .map(|row| row.iter().map(|v| v.as_f64().unwrap().exp()).sum::<f64>());
        assert!(sums.map(|sum| (sum - 1.0).abs()).all(|apart| apart < 1e-5), "{case}: {answer}");
    }
}
