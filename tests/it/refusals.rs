//! Whatever a board sends that isn't wanted has its own named answer from the real host, and the round goes on with the others.
use models::fed::{Disclosure, Extent};
use models::id::{Hash, RoundId};
use models::params::UpdateMode;
use models::wire::{
    Answer, Endpoint, Envelope, MESSAGE_CAP, Poll, Receipt, Reject, Task, VERSION, submit_body, submit_cap,
    to_bytes,
};
use std::fs;
use workspace_tests::fleet::{Board, Fleet, Setup};
use workspace_tests::hand::Hand;
use workspace_tests::process::Process;

const BACKBONE: Extent = Extent::Backbone;

/// Three boards by hand, of which two are picked; they share the temporary directory of their host.
struct Open {
    _fleet: Fleet,
    host: Process,
    cohort: Vec<(Hand, Task)>,
    other: Hand,
}

fn open(boards: u32, participation: f32, set: &[&str]) -> (Fleet, Process, Vec<Board>, Vec<Hand>) {
    let set = set.iter().map(|pair| (*pair).to_owned()).collect();
    let fleet = Fleet::new(&Setup { boards, participation, rounds: 3, set, ..Setup::default() });
    let host = fleet.serve().process;
    let names = ["north", "east", "south"];
    let boards: Vec<Board> =
        names[..boards as usize].iter().map(|name| fleet.enroll(name, &[0, 1])).collect();
    let mut hands: Vec<Hand> = boards.iter().map(Hand::of).collect();
    while !hands.iter_mut().any(|hand| matches!(hand.poll().unwrap(), Answer::Task(_))) {}
    (fleet, host, boards, hands)
}

impl Open {
    fn two_of_three() -> Self {
        let (fleet, host, _, hands) = open(3, 0.6, &[]);
        let (mut cohort, mut others) = (Vec::new(), Vec::new());
        for mut hand in hands {
            match hand.poll().unwrap() {
                Answer::Task(task) => cohort.push((hand, task)),
                _ => others.push(hand),
            }
        }
        assert_eq!((cohort.len(), others.len()), (2, 1));
        Self { _fleet: fleet, host, cohort, other: others.remove(0) }
    }
}

#[test]
fn an_update_that_is_not_what_was_asked_is_refused_by_name_and_the_round_goes_on() {
    let mut open = Open::two_of_three();
    let (hand, task) = &mut open.cohort[0];
    let good = hand.update(task, BACKBONE, 0.01, 5);
    let not_a_number = hand.update(task, BACKBONE, f32::NAN, 5);
    let astray = hand.update(task, BACKBONE, 1e30, 5);
    let no_samples = hand.update(task, BACKBONE, 0.01, 0);
    let absurd = hand.update(task, BACKBONE, 0.01, u32::MAX);
    let whole = hand.update(task, Extent::Model, 0.01, 5);
    let of_the_future = hand.update_of(RoundId(7), task, BACKBONE, 0.01, 5);
    assert!(matches!(hand.submit(&good[..good.len() - 1]), Err(Reject::WrongLength { .. })));
    assert!(matches!(hand.submit(&[&good[..], &[0]].concat()), Err(Reject::WrongLength { .. })));
    assert_eq!(hand.submit(&not_a_number), Err(Reject::NotFinite));
    assert!(matches!(hand.submit(&astray), Err(Reject::Absurd { .. })));
    assert_eq!(hand.submit(&no_samples), Err(Reject::BadWeight { samples: 0 }));
    assert_eq!(hand.submit(&absurd), Err(Reject::BadWeight { samples: u32::MAX }));
    assert_eq!(hand.submit(&whole), Err(Reject::NotAsked));
    assert_eq!(hand.submit(&of_the_future), Err(Reject::Resync { current: RoundId(0) }));
    let (mut garbage, mut newer) = (good.clone(), good.clone());
    garbage[..8].fill(0xff);
    newer[4] = (VERSION + 1) as u8;
    assert_eq!(hand.submit(&garbage), Err(Reject::Malformed));
    assert_eq!(hand.submit(&newer), Err(Reject::Version { ours: VERSION }));
    // Length, version, time, round and extent stand before the mode.
    for (mode, named) in [(2, UpdateMode::Head), (3, UpdateMode::Bias)] {
        let mut other = good.clone();
        other[8] = mode;
        let refused = hand.submit(&other);
        match named {
            UpdateMode::Head => assert_eq!(refused, Err(Reject::BadCoverage { mode: named })),
            _ => assert!(matches!(refused, Err(Reject::WrongLength { .. })), "{refused:?}"),
        }
    }
    let cap = submit_cap(task.codec, &hand.spec, BACKBONE);
    assert!(matches!(hand.submit(&vec![0; 2 * cap]), Err(Reject::TooLarge { .. })));
    assert_eq!(hand.submit(&good), Ok(Receipt::Accepted), "none of these counted");
    let (hand, task) = &mut open.cohort[1];
    let other = hand.update(task, BACKBONE, 0.02, 5);
    assert_eq!(hand.submit(&other), Ok(Receipt::Accepted));
    open.host.wait_for("the round is folded round=0");
}

#[test]
fn a_message_that_is_none_is_refused_by_name() {
    let mut open = Open::two_of_three();
    let hand = &mut open.cohort[0].0;
    let poll = Poll { session: hand.session, held: None, update: UpdateMode::Full };
    let newer = to_bytes(&Envelope { version: VERSION + 1, host_time: 0, body: poll }).unwrap();
    let good = to_bytes(&Envelope::new(poll)).unwrap();
    let mut say = |body: &[u8]| hand.send(Endpoint::POLL, None, body).map(drop);
    assert_eq!(say(&newer), Err(Reject::Version { ours: VERSION }));
    assert_eq!(say(&good[..good.len() - 1]), Err(Reject::Malformed));
    assert_eq!(say(&[&good[..], &[0]].concat()), Err(Reject::Malformed), "nothing may be left over");
    assert_eq!(say(b"GET me a cake"), Err(Reject::Malformed));
    assert!(matches!(say(&vec![0; MESSAGE_CAP + 1]), Err(Reject::TooLarge { .. })));
    assert_eq!(say(&good), Ok(()));
}

#[test]
fn twice_different_late_stale_and_not_picked_each_have_their_answer() {
    let Open { _fleet, mut host, mut cohort, mut other } = Open::two_of_three();
    let (mut second, task) = cohort.remove(1);
    let (mut first, _) = cohort.remove(0);
    let sealed = first.update(&task, BACKBONE, 0.01, 5);
    let different = first.update(&task, BACKBONE, 0.02, 5);
    assert_eq!(other.submit(&different), Err(Reject::NotSelected { round: RoundId(0) }));
    assert_eq!(first.submit(&sealed), Ok(Receipt::Accepted));
    assert_eq!(first.submit(&sealed), Ok(Receipt::AlreadyAccepted), "the answer was lost");
    assert_eq!(first.submit(&different), Err(Reject::Duplicate { accepted: Hash::of(&sealed) }));
    assert_eq!(second.submit(&different), Ok(Receipt::Accepted));
    host.wait_for("the round is folded round=0");
    assert_eq!(
        first.submit(&sealed),
        Ok(Receipt::AlreadyAccepted),
        "the answer was lost and the round went on"
    );
    let current = RoundId(1);
    assert_eq!(first.submit(&different), Err(Reject::Late { current }), "it was picked then");
    assert_eq!(other.submit(&different), Err(Reject::Stale { current }), "it was not");
}

#[test]
fn a_board_that_comes_late_is_told_and_its_round_went_on_without_it() {
    let (_fleet, mut host, _, hands) = open(2, 1.0, &["rounds.round_ms=3000"]);
    let Ok([mut prompt, mut tardy]) = <[Hand; 2]>::try_from(hands) else { panic!("two boards") };
    let task = tardy.task(0);
    let sealed = prompt.update(&task, BACKBONE, 0.01, 5);
    // On a machine so busy that this alone takes three seconds, the round is opened again.
    while prompt.submit(&sealed) != Ok(Receipt::Accepted) {
        prompt.task(0);
    }
    host.wait_for("the round is folded round=0");
    assert_eq!(tardy.submit(&sealed), Err(Reject::Late { current: RoundId(1) }));
    assert!(tardy.poll().is_ok());
}

#[test]
fn a_blob_is_given_to_those_whose_task_names_it() {
    let Open { _fleet, host: _host, cohort, mut other } = Open::two_of_three();
    let (mut hand, task) = cohort.into_iter().next().unwrap();
    let part = task.parts[0].hash;
    let state =
        _fleet.host_says(&["models", "list", "host"])[0]["state"].as_str().and_then(Hash::from_hex).unwrap();
    let fetch = |hand: &mut Hand, hash| hand.send(Endpoint::BLOB, Some(hash), &[]);
    assert_eq!(fetch(&mut hand, part).map(|bytes| Hash::of(&bytes)), Ok(part));
    assert_eq!(fetch(&mut hand, state), Err(Reject::NotYours), "the host's own state");
    assert_eq!(fetch(&mut hand, Hash::of(b"no such blob")), Err(Reject::NotYours));
    assert_eq!(fetch(&mut other, part), Err(Reject::NotYours), "it was not picked");
}

#[test]
fn strangers_and_revoked_boards_are_refused_and_not_waited_for() {
    let (fleet, mut host, boards, hands) = open(2, 1.0, &[]);
    let Ok([mut one, mut two]) = <[Hand; 2]>::try_from(hands) else { panic!("two boards") };
    let mut stranger = Hand::stranger(&boards[0]);
    assert_eq!(stranger.poll().err(), Some(Reject::UnknownDevice));
    assert_eq!(stranger.send(Endpoint::MODEL, None, &[]).err(), Some(Reject::UnknownDevice));
    let task = one.task(0);
    let sealed = one.update(&task, BACKBONE, 0.01, 5);
    assert_eq!(
        stranger.send(Endpoint::UPDATE, None, &submit_body(one.session, &sealed)).err(),
        Some(Reject::UnknownDevice)
    );
    assert_eq!(one.submit(&sealed), Ok(Receipt::Accepted));
    Process::start("revoke", &mut fleet.aggregator(&["devices", "revoke", "host", "1"])).succeed();
    assert_eq!(two.poll().err(), Some(Reject::Revoked));
    assert_eq!(two.submit(&sealed), Err(Reject::Revoked));
    host.wait_for("the round is folded round=0");
    let devices = fleet.host_says(&["devices", "list", "host"]);
    assert!(devices[1]["standing"] == "revoked" && devices[1]["refusals"].as_u64() >= Some(2), "{devices:?}");
}

/// One board of two that waits for the other, with more arguments.
fn waiting(fleet: &Fleet, board: &Board) -> Process {
    let mut process = fleet.run(board);
    process.wait_for("waiting: 1 of 2 boards are there");
    process
}

fn fails_with(mut process: Process, text: &str) {
    assert_eq!(process.finish().code(), Some(1), "{}", process.said());
    assert!(process.err.iter().any(|line| line.contains(text)), "{text:?} in {}", process.said());
}

#[test]
fn a_second_process_in_the_same_directory_is_refused_by_the_lock() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let board = fleet.enroll("kitchen", &[0, 1, 2]);
    let mut first = waiting(&fleet, &board);
    fails_with(fleet.run(&board), "is in use by another edge-client");
    first.kill();
    waiting(&fleet, &board);
}

#[test]
fn two_processes_with_one_key_are_one_board_and_the_later_session_wins() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let board = fleet.enroll("kitchen", &[0, 1, 2]);
    let copy = fleet.at("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(board.dir.join("state"), copy.join("state")).unwrap();
    let first = waiting(&fleet, &board);
    let again = |fleet: &Fleet| {
        let mut run = fleet.edge_client(&["run", "--until-finished", "--dir"]);
        run.arg(&copy).arg("--data").arg(&board.data);
        Process::start("the copy", &mut run)
    };
    fails_with(again(&fleet), "another process with this device's key took over (session 1)");
    // The copy's second start counts as later than the first process, which is told and stops.
    let mut later = again(&fleet);
    later.wait_for("waiting: 1 of 2 boards are there");
    fails_with(first, "another process with this device's key took over (session 2)");
    assert_eq!(fleet.host_says(&["devices", "list", "host"]).len(), 1);
}

/// A method that discloses more than one board's owner allows: that board refuses by name, the host says so and goes on
/// with the others.
fn declines(method: &'static str, set: &[&str]) {
    let set = set.iter().map(|pair| (*pair).to_owned()).collect();
    let fleet = Fleet::new(&Setup { method, rounds: 1, set, ..Setup::default() });
    let mut host = fleet.serve().process;
    let (strict, open) = (fleet.enroll("strict", &[0, 0, 1, 1]), fleet.enroll("open", &[2, 3, 2, 3]));
    let mut strict = fleet.run(&strict);
    let open = fleet.run_with(&open, &["--allow", "full_model"]);
    let why = format!(
        "the task discloses {:?}, the owner allows {:?}",
        Disclosure::FullModel,
        Disclosure::Backbone
    );
    strict.wait_for(&format!("round 0: declined: {why}"));
    let told = host.wait_for("a board refuses its task");
    assert!(told.contains(&why) && told.contains("client=0"), "{told}");
    strict.succeed();
    open.succeed();
    host.terminate();
    host.finish();
    assert!(
        !host.err.iter().any(|line| line.contains("an update counts round=0 client=0")),
        "{}",
        host.said()
    );
}

#[test]
fn a_board_declines_fedavg_unless_its_owner_allows_the_full_model() {
    declines("fedavg", &[]);
}

#[test]
fn a_board_declines_cpct_with_shared_heads_unless_its_owner_allows_the_full_model() {
    declines("cpct", &["method.hyper.profile=shared_head"]);
}
