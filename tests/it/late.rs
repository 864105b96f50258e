//! Boards that come when training is over, or are away for it: they take the model over and adapt it to themselves.
use workspace_tests::fleet::{Fleet, Setup};
use workspace_tests::process::Process;

#[test]
fn a_board_that_joins_after_training_gets_the_model_and_answers() {
    let fleet = Fleet::new(&Setup { boards: 1, ..Setup::default() });
    let mut host = fleet.serve().process;
    let early = fleet.enroll("early", &[0, 1, 0, 1, 2, 2]);
    fleet.run(&early).succeed();
    let late = fleet.enroll("late", &[3, 2, 3, 2, 3, 3]);
    fleet.run(&late).succeed();
    let status = fleet.board_says(&late, &["status"]);
    assert_eq!((&status["rounds_trained"], &status["final_version"]), (&0.into(), &2.into()), "{status}");
    // The host is not needed any more.
    host.kill();
    let mut infer = fleet.edge_client(&["infer", "--engine", "native", "--format", "json", "--dir"]);
    infer.arg(&late.dir).arg(late.data.join("train-images-idx3-ubyte"));
    let said = Process::start("edge-client infer", &mut infer).succeed();
    let answers: serde_json::Value = serde_json::from_str(&said.out.concat()).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 6);
    for answer in answers.as_array().unwrap() {
        let confidence = answer["confidence"].as_f64().unwrap();
        assert!(confidence > 0.0 && confidence <= 1.0 + 1e-6, "{answer}");
        assert!(["specialist", "generalist"].contains(&answer["decided_by"].as_str().unwrap()), "{answer}");
    }
}

#[test]
fn a_board_that_was_away_is_not_waited_for_longer_than_the_round() {
    let set = vec!["rounds.round_ms=2000".into()];
    let fleet = Fleet::new(&Setup { set, ..Setup::default() });
    let mut host = fleet.serve().process;
    let (away, here) = (fleet.enroll("away", &[0, 1, 0, 1]), fleet.enroll("here", &[2, 3, 2, 3]));
    let (mut leaving, staying) = (fleet.run(&away), fleet.run(&here));
    host.wait_for("an update counts round=0 client=0");
    leaving.kill();
    host.wait_for("training is over");
    staying.succeed();
    fleet.run(&away).succeed();
    assert_eq!(fleet.board_says(&away, &["status"])["final_version"], 2);
}
