//! A network of the user's own whose lower part can't be trained here: host and boards train its head on what that part gives.
use workspace_tests::fleet::{Board, Fleet, Setup};
use workspace_tests::process::Process;
use workspace_tests::root;

fn setup() -> Setup {
    let file = root().join("onnx/tests/golden/frozen/vit.dynamo.18.onnx");
    Setup { model: Some((file, "head")), ..Setup::default() }
}

/// What a board answers about its own pictures, through this engine.
fn answers(fleet: &Fleet, board: &Board, engine: &str) -> serde_json::Value {
    let said = infer(fleet, board, engine).succeed();
    serde_json::from_str(&said.out.concat()).unwrap()
}

fn infer(fleet: &Fleet, board: &Board, engine: &str) -> Process {
    let mut infer = fleet.edge_client(&["infer", "--engine", engine, "--format", "json", "--dir"]);
    infer.arg(&board.dir).arg(board.data.join("train-images-idx3-ubyte"));
    Process::start("edge-client infer", &mut infer)
}

#[test]
fn a_host_and_two_boards_train_the_head_of_a_network_whose_rest_is_kept() {
    let fleet = Fleet::new(&setup());
    let mut host = fleet.serve().process;
    let boards = [fleet.enroll("one", &[0, 1, 0, 1, 2, 0]), fleet.enroll("two", &[3, 2, 3, 2, 1, 3])];
    let running = boards.each_ref().map(|board| fleet.run_with(board, &["--allow", "full_model"]));
    host.wait_for("training is over");
    for board in running {
        let said = board.succeed();
        assert!(said.err.iter().any(|line| line.contains("16 features of 6 samples")), "{said:?}");
    }
    for board in &boards {
        let status = fleet.board_says(board, &["status"]);
        assert_eq!((&status["rounds_trained"], &status["final_version"]), (&2.into(), &2.into()), "{status}");
        let all = answers(&fleet, board, "tract");
        assert_eq!(all.as_array().unwrap().len(), 6);
        assert_eq!(all[0]["engine"], "tract");
        let mut native = infer(&fleet, board, "native");
        assert!(!native.finish().success());
        let said = native.said();
        assert!(said.contains("engine native") && said.contains("choose auto, ort or tract"), "{said}");
    }
    personalised(&fleet, &boards[0]);
}

/// The rest of a board's commands do with such a network what they do with any.
fn personalised(fleet: &Fleet, board: &Board) {
    let mut again = fleet.edge_client(&["personalize", "--compare", "--format", "json", "--dir"]);
    again.arg(&board.dir).arg("--data").arg(&board.data);
    Process::start("edge-client personalize", &mut again).succeed();
    let mut export = fleet.edge_client(&["export", "--dir"]);
    export.arg(&board.dir).arg("--out").arg(fleet.at("out"));
    Process::start("edge-client export", &mut export).succeed();
    for stream in ["specialist", "generalist"] {
        let bytes = std::fs::read(fleet.at(&format!("out/{stream}.onnx"))).unwrap();
        assert!(bytes.windows(18).any(|part| part == b"LayerNormalization"), "{stream} reads pictures");
    }
    let mut doctor = fleet.edge_client(&["doctor", "--format", "json", "--dir"]);
    let mut looked = Process::start("edge-client doctor", doctor.arg(&board.dir));
    looked.finish(); // the host is gone, so not all is well
    assert!(looked.said().contains("operations below the head"), "{}", looked.said());
    let streams = fleet.board_says(board, &["models", "list"]);
    assert_eq!(streams.as_array().map(Vec::len).unwrap_or(1), 2, "{streams}");
}

#[test]
fn a_profile_that_would_share_nothing_is_refused() {
    let fleet = Fleet::new(&Setup::default());
    let (file, _) = setup().model.unwrap();
    for more in [&["--profile", "private_head"][..], &["--method", "fedper"], &["--method", "pfedkdh"]] {
        let mut init = fleet.aggregator(&["init", "other", "--head", "head", "--aux", "aux", "--model"]);
        let mut refused = Process::start("aggregator init", init.arg(&file).args(more));
        assert!(!refused.finish().success(), "{more:?}");
        let said = refused.said();
        assert!(said.contains("share nothing") && said.contains("--profile shared_head"), "{said}");
        assert!(!fleet.at("other").exists());
    }
}
