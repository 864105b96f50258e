//! A network of the user's own, exported by PyTorch: the host takes its file, boards get it over the wire, and all train it.
use std::fs;
use workspace_tests::fleet::{Fleet, LABELS, Setup};
use workspace_tests::process::Process;
use workspace_tests::readme::{block, shell};
use workspace_tests::root;

#[test]
fn the_readme_brings_a_network_along() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::copy(root().join("tests/golden/imported/own.onnx"), at("net.onnx")).unwrap();
    fs::write(at("labels.txt"), LABELS.join("\n")).unwrap();
    shell("the README's own network", dir.path(), &block("own")).succeed();
    assert!(at("own/network.onnx").is_file());
}

#[test]
fn a_host_and_two_boards_federate_a_network_that_was_brought_along() {
    let file = root().join("tests/golden/imported/own.onnx");
    let fleet = Fleet::new(&Setup { model: Some((file, "head")), ..Setup::default() });
    let mut host = fleet.serve().process;
    let boards = [fleet.enroll("one", &[0, 1, 0, 1, 2, 0]), fleet.enroll("two", &[3, 2, 3, 2, 1, 3])];
    let running = boards.each_ref().map(|board| fleet.run(board));
    host.wait_for("training is over");
    for board in running {
        board.succeed();
    }
    let travelled = boards.each_ref().map(|board| fs::read(board.dir.join("network.onnx")).unwrap());
    let kept = fs::read(fleet.at("host/network.onnx")).unwrap();
    assert!(travelled.iter().all(|bytes| *bytes == kept), "boards have the host's file");
    for board in &boards {
        let status = fleet.board_says(board, &["status"]);
        assert_eq!((&status["rounds_trained"], &status["final_version"]), (&2.into(), &2.into()), "{status}");
        let name = format!("onnx:{}", models::id::Hash::of(&kept));
        assert_eq!(status["model"], name, "the card names the file");
        let mut infer = fleet.edge_client(&["infer", "--engine", "native", "--format", "json", "--dir"]);
        infer.arg(&board.dir).arg(board.data.join("train-images-idx3-ubyte"));
        let said = Process::start("edge-client infer", &mut infer).succeed();
        let answers: serde_json::Value = serde_json::from_str(&said.out.concat()).unwrap();
        assert_eq!(answers.as_array().unwrap().len(), 6);
    }
}
