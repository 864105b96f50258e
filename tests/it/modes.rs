//! Boards whose owners let them train different parts of the model, on the real programs.
use workspace_tests::fleet::{Fleet, Setup};
use workspace_tests::process::Said;

/// The mode and the bytes of each round that a board tells of.
fn rounds(said: &Said) -> Vec<(String, usize)> {
    let told = said.err.iter().filter_map(|line| line.split_once(": trained "));
    let parse = |(_, rest): (&str, &str)| {
        let mode = rest.split(' ').next().unwrap().to_owned();
        let bytes = rest.rsplit(' ').nth(1).unwrap().parse().unwrap();
        (mode, bytes)
    };
    told.map(parse).collect()
}

#[test]
fn boards_of_different_modes_train_together_and_a_head_board_only_takes_the_model_over() {
    let fleet = Fleet::new(&Setup::default());
    let mut host = fleet.serve().process;
    let [all, few, head] = ["all", "few", "head"].map(|name| fleet.enroll(name, &[0, 1, 0, 1, 2, 3]));
    let mut silent = fleet.run_with(&head, &["--update", "head"]);
    silent.wait_for("what this board trains is nothing that is shared");
    let (first, second) = (fleet.run(&all), fleet.run_with(&few, &["--update", "bias"]));
    let (full, biases, silent) = (first.succeed(), second.succeed(), silent.succeed());
    let (full, biases) = (rounds(&full), rounds(&biases));
    assert!(full.len() == 2 && full.iter().all(|(mode, _)| mode == "full"), "{full:?}");
    assert!(biases.len() == 2 && biases.iter().all(|(mode, _)| mode == "bias"), "{biases:?}");
    // The hidden layer's 64 biases, four bytes each, and a header; not its 64 by 64 weights.
    assert!(
        biases.iter().all(|(_, bytes)| (256..300).contains(bytes)) && full[0].1 > 4096,
        "{full:?} {biases:?}"
    );
    assert!(rounds(&silent).is_empty());
    let devices = fleet.host_says(&["devices", "list", "host"]);
    let modes: Vec<&str> = devices.iter().map(|device| device["update"].as_str().unwrap()).collect();
    assert_eq!(modes, ["full", "bias", "head"]);
    let status = fleet.board_says(&head, &["status"]);
    assert_eq!((&status["rounds_trained"], &status["final_version"]), (&0.into(), &2.into()), "{status}");
    host.terminate();
    host.finish();
    let counted = |client: usize| {
        host.err
            .iter()
            .any(|line| line.contains("an update counts") && line.contains(&format!("client={client}")))
    };
    assert_eq!([counted(0), counted(1), counted(2)], [true, true, false], "{}", host.said());
}

/// What the operator wishes is a default: a board without a ceiling of its own follows it.
#[test]
fn boards_follow_what_the_operator_wishes_below_what_their_owners_let() {
    let set = vec!["rounds.update=bias".into()];
    let fleet = Fleet::new(&Setup { rounds: 1, set, ..Setup::default() });
    let _host = fleet.serve();
    let [one, two] = ["one", "two"].map(|name| fleet.enroll(name, &[0, 1, 0, 1]));
    let (one, two) = (fleet.run(&one), fleet.run_with(&two, &["--update", "last:2"]));
    let (one, two) = (rounds(&one.succeed()), rounds(&two.succeed()));
    assert_eq!([&one[0].0, &two[0].0], ["bias", "bias"], "two layers are all of this network");
}
