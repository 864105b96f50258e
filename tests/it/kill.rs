//! Real processes, killed wherever it hurts: the run goes on where it was and ends with the very same models, bit for bit.
use aggregator::crash::POINTS;
use std::sync::LazyLock;
use workspace_tests::fleet::{Board, Fleet, Outcome, Setup};
use workspace_tests::process::Process;
use workspace_tests::programs;
use workspace_tests::relay::Fault;

/// What two undisturbed boards and their host come to.
static UNDISTURBED: LazyLock<Outcome> = LazyLock::new(|| undisturbed(60));

fn undisturbed(samples: usize) -> Outcome {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let boards = enroll_with(&fleet, samples);
    let running = boards.each_ref().map(|board| fleet.run(board));
    ended(&fleet, &boards, running)
}

/// Two boards that see different worlds, the first with so many samples.
fn enroll_with(fleet: &Fleet, samples: usize) -> [Board; 2] {
    let classes = |n: usize, of: &[u16]| of.iter().copied().cycle().take(n).collect::<Vec<_>>();
    let kitchen = fleet.enroll("kitchen", &classes(samples, &[0, 1, 0, 2]));
    [kitchen, fleet.enroll("garage", &classes(24, &[2, 3, 3]))]
}

fn enroll(fleet: &Fleet) -> [Board; 2] {
    enroll_with(fleet, 60)
}

/// Waits for both boards' ends and sees that nobody became somebody else.
fn ended(fleet: &Fleet, boards: &[Board; 2], running: [Process; 2]) -> Outcome {
    running.into_iter().for_each(|board| drop(board.succeed()));
    assert_eq!(fleet.host_says(&["devices", "list", "host"]).len(), 2, "as many devices as boards");
    for (number, board) in boards.iter().enumerate() {
        let status = fleet.board_says(board, &["status"]);
        assert_eq!(status["board"], number, "{status}");
        assert_eq!(status["rounds_trained"], 2, "{status}");
        assert!(status["unconfirmed_update_of_round"].is_null(), "{status}");
    }
    fleet.outcome(&boards.each_ref())
}

/// A run whose host dies at this point and is started again once it is dead.
fn survive(point: &str) -> Outcome {
    let fleet = Fleet::new(&Setup::default());
    let mut first = fleet.serve_until(Some(point));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let status = first.process.finish();
            assert!(!status.success(), "{point} was never passed");
            fleet.serve()
        });
        let boards = enroll(&fleet);
        let running = boards.each_ref().map(|board| fleet.run(board));
        let outcome = ended(&fleet, &boards, running);
        drop(second.join().unwrap());
        outcome
    })
}

fn survives(points: &[&str]) {
    if !programs::CRASH_POINTS {
        return eprintln!("skipped: no crash points in this profile");
    }
    for point in points {
        assert_eq!(survive(point), *UNDISTURBED, "{point}");
    }
}

#[test]
fn the_host_dies_before_it_computes() {
    assert!(POINTS.len() >= 10);
    survives(&POINTS[..6]);
}

#[test]
fn the_host_dies_while_it_computes_or_publishes() {
    survives(&POINTS[6..]);
}

#[test]
fn the_host_dies_later_in_the_run() {
    survives(&[
        "update-after-blob:3",
        "before-commit:7",
        "after-commit:9",
        "aggregate-end:2",
        "publish-parts-stored:3",
    ]);
}

#[test]
fn the_host_is_killed_after_an_update() {
    let fleet = Fleet::new(&Setup::default());
    let mut host = fleet.serve();
    let boards = enroll(&fleet);
    let running = boards.each_ref().map(|board| fleet.run(board));
    for _ in 0..3 {
        host.process.wait_for("an update counts");
        host.process.kill();
        host = fleet.serve();
    }
    assert_eq!(ended(&fleet, &boards, running), *UNDISTURBED);
}

#[test]
fn a_board_is_killed_after_every_line_it_says() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let boards = enroll(&fleet);
    let garage = fleet.run(&boards[1]);
    for lines in 1..8 {
        let mut kitchen = fleet.run(&boards[0]);
        for _ in 0..lines {
            kitchen.line();
        }
        kitchen.kill();
    }
    let kitchen = fleet.run(&boards[0]);
    assert_eq!(ended(&fleet, &boards, [kitchen, garage]), *UNDISTURBED);
}

#[test]
fn a_board_is_killed_while_it_trains() {
    let samples = 6000; // a tenth of a second and more
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let boards = enroll_with(&fleet, samples);
    let garage = fleet.run(&boards[1]);
    let mut kitchen = fleet.run(&boards[0]);
    kitchen.wait_for("round 0: training");
    kitchen.kill();
    let kitchen = fleet.run(&boards[0]);
    assert_eq!(ended(&fleet, &boards, [kitchen, garage]), undisturbed(samples));
}

#[test]
fn a_board_is_killed_between_keeping_its_update_and_sending_it() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let boards = enroll(&fleet);
    boards[0].wire.set(Fault::LoseUpdate);
    let (mut kitchen, garage) = (fleet.run(&boards[0]), fleet.run(&boards[1]));
    boards[0].wire.wait();
    kitchen.kill();
    assert_eq!(fleet.board_says(&boards[0], &["status"])["unconfirmed_update_of_round"], 0);
    boards[0].wire.heal();
    let mut kitchen = fleet.run(&boards[0]);
    kitchen.wait_for("an update was not confirmed, sending it again");
    assert_eq!(ended(&fleet, &boards, [kitchen, garage]), *UNDISTURBED);
}

#[test]
fn a_board_is_killed_before_it_hears_that_its_update_counts() {
    let fleet = Fleet::new(&Setup::default());
    let mut host = fleet.serve();
    let boards = enroll(&fleet);
    boards[0].wire.set(Fault::LoseAnswer);
    let (mut kitchen, garage) = (fleet.run(&boards[0]), fleet.run(&boards[1]));
    host.process.wait_for("round=0 client=0");
    kitchen.kill();
    host.process.wait_for("the round is open round=1"); // by then its update is one of a round long gone
    boards[0].wire.heal();
    let mut kitchen = fleet.run(&boards[0]);
    kitchen.wait_for("an update was not confirmed, sending it again");
    assert_eq!(ended(&fleet, &boards, [kitchen, garage]), *UNDISTURBED);
    host.process.terminate();
    host.process.finish();
    let counted = host.process.err.iter().filter(|line| line.contains("counts round=0 client=0"));
    assert_eq!(counted.count(), 1, "an update counts once");
}

#[test]
fn an_answer_is_lost_and_the_board_asks_again() {
    let fleet = Fleet::new(&Setup::default());
    let mut host = fleet.serve();
    let boards = enroll(&fleet);
    boards[0].wire.set(Fault::LoseAnswer);
    let (mut kitchen, garage) = (fleet.run(&boards[0]), fleet.run(&boards[1]));
    host.process.wait_for("the round is open round=1");
    boards[0].wire.heal();
    kitchen.wait_for("trying again");
    kitchen.wait_for("the host answers again");
    assert_eq!(ended(&fleet, &boards, [kitchen, garage]), *UNDISTURBED);
}
