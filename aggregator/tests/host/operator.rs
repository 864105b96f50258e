//! What the operator sees and what the host refuses to overlook.
use crate::board::{LISTEN, home, settings};
use aggregator::clock;
use aggregator::dir::{DirError, HostDir};
use aggregator::drive::ReplayError;
use aggregator::ledger::{Ledger, LedgerError, Record};
use aggregator::server::{ServeError, Server};
use models::data::{Elements, Inputs, Samples};
use models::id::{Hash, RoundId};
use models::round::{Abandoned, Event, Millis, Published};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn program(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_aggregator")).args(args).current_dir(dir).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}

fn published(tag: &[u8]) -> Published {
    Published { state: Hash::of(tag), parts: Vec::new() }
}

/// Writes a past into a host's ledger, behind a charter that nobody reads.
async fn remember(dir: &HostDir, events: &[Event]) {
    let ledger = dir.ledger().await.unwrap();
    let record = |event| Record { kind: "past", body: postcard::to_stdvec(event).unwrap() };
    let charter = Record { kind: "charter", body: Vec::new() };
    let records = std::iter::once(charter).chain(events.iter().map(record)).collect();
    Ledger::append(&ledger, clock::now(), records).await.unwrap();
    ledger.close().await;
}

#[tokio::test]
async fn status_shows_a_stalled_run_its_failures_and_open_tokens() {
    let home = home(&settings()).await;
    let why = Abandoned::TooFew { got: 1, needed: 2 };
    let failed = Event::Failed { round: RoundId(0), why, again: Millis(1) };
    let mut past = vec![Event::Ready { published: published(b"start") }];
    past.extend(std::iter::repeat_n(failed, 5));
    remember(&home.dir, &past).await;
    let path = home.dir.path();
    assert_eq!(program(path, &["token", ".", "--name", "kitchen"]).0, Some(0));
    let (code, out, err) = program(path, &["status", ".", "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    let status: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&status["phase"], &status["failures"]), (&"stalled".into(), &5.into()), "{status}");
    assert_eq!(status["open_tokens"], "kitchen");
    assert!(status["why"].as_str().unwrap().contains("1 of 2"), "{status}");
}

#[tokio::test]
async fn a_missing_ledger_is_not_taken_for_an_empty_run() {
    let home = home(&settings()).await;
    let file = home.dir.path().join("ledger.sqlite");
    fs::remove_file(&file).unwrap();
    let served = Server::start(&home.dir, Some(LISTEN)).await;
    assert!(matches!(served, Err(ServeError::Ledger(LedgerError::Missing { .. }))));
    let (code, _, err) = program(home.dir.path(), &["serve", "."]);
    assert_eq!((code, err.contains("aggregator restore")), (Some(1), true), "{err}");
    assert!(!file.exists(), "and none is made");
}

#[tokio::test]
async fn auxiliary_data_that_are_missing_or_others_are_noticed() {
    let temporary = tempfile::tempdir().unwrap();
    let inputs = Inputs::new([1, 2, 2], Elements::U8(vec![1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
    let samples = Samples::new(inputs, vec![0, 1]).unwrap();
    let dir = HostDir::create(&temporary.path().join("fleet"), &settings(), Some(&samples)).await.unwrap();
    let file = dir.path().join("auxiliary.samples");
    assert_eq!(dir.samples().unwrap().as_ref(), Some(&samples));
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(dir.samples().is_err(), "other data");
    fs::remove_file(&file).unwrap();
    let served = Server::start(&dir, Some(LISTEN)).await;
    assert!(matches!(served, Err(ServeError::Dir(DirError::NoAuxiliary { .. }))));
}

#[tokio::test]
async fn more_rounds_after_the_end_are_refused_with_what_to_do() {
    let home = home(&settings()).await;
    // The charter must be the real one: a host that was served once has it.
    Server::start(&home.dir, Some(LISTEN)).await.unwrap().shutdown().await.unwrap();
    let ledger = home.dir.ledger().await.unwrap();
    let mut past = vec![Event::Ready { published: published(b"start") }];
    past.extend((0..2).map(|r| Event::Folded { round: RoundId(r), published: published(b"state") }));
    past.push(Event::Finished { published: published(b"last") });
    let record = |event| Record { kind: "past", body: postcard::to_stdvec(event).unwrap() };
    Ledger::append(&ledger, clock::now(), past.iter().map(record).collect()).await.unwrap();
    ledger.close().await;
    let mut longer = settings();
    longer.rounds.rounds = 12;
    match Server::start_with(&home.dir, &longer, Some(LISTEN)).await {
        Err(ServeError::Replay(ReplayError::Over { trained: 2, asked: 12 })) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_its_owner_looks_into_a_hosts_directory() {
    let home = home(&settings()).await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let copy = home.dir.copy_to(&home.dir.path().with_extension("copy")).await.unwrap();
    for dir in [&home.dir, &copy] {
        assert_eq!(mode(dir.path()), 0o700);
        assert_eq!(mode(&dir.path().join("aggregator.toml")), 0o600);
    }
    assert_eq!(mode(&home.dir.path().join("ledger.sqlite")), 0o600);
}

#[test]
fn what_another_command_line_would_mend_ends_with_2() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("labels.txt"), "cat\ndog").unwrap();
    fs::write(home.path().join("twice.txt"), "cat\ncat").unwrap();
    fs::write(home.path().join("bytes.txt"), [0xff]).unwrap();
    let init = |more: &[&str]| {
        let (code, _, err) =
            program(home.path(), &[&["init", "fleet", "--no-aux", "--method", "fedavg"], more].concat());
        assert!(!home.path().join("fleet").exists(), "nothing half-made is left");
        (code, err)
    };
    for labels in ["absent.txt", "twice.txt", "bytes.txt", "/dev/zero"] {
        let (code, err) = init(&["--arch", "cc28", "--labels", labels]);
        assert_eq!((code, err.matches(labels).count()), (Some(2), 1), "{err}");
    }
    for config in ["absent.toml", "bytes.txt", "/dev/zero"] {
        assert_eq!(init(&["--config", config]).0, Some(2), "{config}");
    }
    let (code, err) = init(&["--arch", "mlp", "--labels", "labels.txt", "--input", "4294967295x1x1"]);
    assert_eq!((code, err.contains("at most 4096")), (Some(2), true), "{err}");
    assert_eq!(program(home.path(), &["token", "fleet", "--ttl", "0s"]).0, Some(2));
}

#[test]
fn an_input_that_was_configured_is_kept() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("labels.txt"), "cat\ndog").unwrap();
    let init =
        ["init", "fleet", "--arch", "cc32", "--labels", "labels.txt", "--no-aux", "--method", "fedavg"];
    let (code, _, err) = program(home.path(), &[&init[..], &["--set", "model.input=[3,64,64]"]].concat());
    let made = fs::read_to_string(home.path().join("fleet/aggregator.toml")).unwrap_or_default();
    assert!(code != Some(0) || made.contains("input = [3, 64, 64]") || made.contains("64,\n"), "{err}{made}");
}
