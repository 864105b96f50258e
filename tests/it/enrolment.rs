//! Becoming a board, by the real programs: one-time tokens that expire, keys that stay, certificates that are renewed.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use workspace_tests::fleet::{Fleet, Setup};
use workspace_tests::process::Process;
use workspace_tests::relay::Relay;

/// Enrols in a directory of this name with the token in a file; the error that it ends with, if any.
fn enroll(fleet: &Fleet, wire: &Relay, dir: &str, token: &str) -> Result<(), String> {
    let host = format!("https://{}", wire.address());
    let mut command = fleet.edge_client(&["enroll", "--host", &host, "--dir", dir, "--token", token]);
    let mut process = Process::start("edge-client enroll", &mut command);
    if process.finish().success() { Ok(()) } else { Err(process.err.join("\n")) }
}

#[test]
fn a_token_works_once_for_one_key_and_not_for_ever() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let wire = fleet.wire();
    fleet.token("one");
    assert_eq!(enroll(&fleet, &wire, "first", "one.token"), Ok(()));
    assert_eq!(enroll(&fleet, &wire, "first", "one.token"), Ok(()), "the same key may ask again");
    let refused = enroll(&fleet, &wire, "second", "one.token").unwrap_err();
    assert!(refused.contains("the token has been used"), "{refused}");
    let mut useless = Process::start("token", &mut fleet.aggregator(&["token", "host", "--ttl", "0s"]));
    assert_eq!(useless.finish().code(), Some(2), "{}", useless.said());
    fs::write(fleet.at("no.token"), "not a token").unwrap();
    let refused = enroll(&fleet, &wire, "second", "no.token").unwrap_err();
    assert!(refused.contains("this is not a Spectra token"), "{refused}");
    assert_eq!(fleet.host_says(&["devices", "list", "host"]).len(), 1);
}

#[test]
fn a_token_comes_from_standard_input_too() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let (wire, token) = (fleet.wire(), fleet.token("kitchen"));
    let host = format!("https://{}", wire.address());
    let mut command = fleet.edge_client(&["enroll", "--host", &host, "--dir", "kitchen", "--token", "-"]);
    let mut child = command
        .stdin(fs::File::open(token).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fleet.host_says(&["devices", "list", "host"]).len(), 1);
}

#[test]
fn a_token_of_one_host_finds_no_trust_at_another() {
    let (mine, other) = (Fleet::new(&Setup::default()), Fleet::new(&Setup::default()));
    let (_one, _two) = (mine.serve(), other.serve());
    let token = mine.token("kitchen");
    let refused = enroll(&other, &other.wire(), "kitchen", token.to_str().unwrap()).unwrap_err();
    assert!(refused.contains("no trusted connection"), "{refused}");
    assert!(other.host_says(&["devices", "list", "host"]).is_empty(), "nothing was sent to the wrong host");
}

#[test]
fn the_device_key_is_made_on_the_board_and_only_its_owner_reads_it() {
    let fleet = Fleet::new(&Setup::default());
    let _host = fleet.serve();
    let board = fleet.enroll("kitchen", &[0, 1]);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&board.dir), 0o700);
    assert_eq!(mode(&board.dir.join("state")), 0o600);
    let record = edge_client::store::Store::peek(&board.dir).unwrap();
    let (identity, _) = record.enrolled(&board.dir).unwrap();
    let secret = &identity.key.expose()[40..56]; // PKCS#8 of a P-256 key: the secret number stands at 36..68
    for path in files(&fleet.at("host")) {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(16).any(|w| w == secret), "{} holds the board's key", path.display());
    }
}

#[test]
fn a_board_follows_its_host_to_a_new_address_without_a_token_and_no_other_host() {
    let (mine, other) = (Fleet::new(&Setup::default()), Fleet::new(&Setup::default()));
    let (_one, _two) = (mine.serve(), other.serve());
    let board = mine.enroll("kitchen", &[0, 1]);
    let follow = |fleet: &Fleet, wire: &Relay| {
        let host = format!("https://{}", wire.address());
        let mut command = fleet.edge_client(&["enroll", "--host", &host, "--dir"]);
        let mut process = Process::start("edge-client enroll", command.arg(&board.dir));
        let status = process.finish();
        (status.success(), host, process.err.join("\n"))
    };
    let (moved, host, said) = follow(&mine, &mine.wire());
    assert!(moved && said.contains("from now on"), "{said}");
    assert_eq!(mine.board_says(&board, &["status"])["host"], host.as_str());
    let (moved, _, said) = follow(&other, &other.wire());
    assert!(!moved && said.contains("no trusted connection"), "{said}");
    assert_eq!(mine.board_says(&board, &["status"])["host"], host.as_str(), "nothing changed");
    assert_eq!(mine.host_says(&["devices", "list", "host"]).len(), 1);
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_host_with_a_new_certificate_is_still_the_boards_host() {
    let fleet = Fleet::new(&Setup { boards: 1, rounds: 1, ..Setup::default() });
    let mut host = fleet.serve().process;
    let board = fleet.enroll("kitchen", &[0, 1, 2, 0, 1, 2]);
    host.terminate();
    assert!(host.finish().success(), "a host that is told to stop stops well: {}", host.said());
    Process::start("renew-leaf", &mut fleet.aggregator(&["renew-leaf", "host"])).succeed();
    let _host = fleet.serve();
    fleet.run(&board).succeed();
}
