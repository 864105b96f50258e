//! The README's way for a newcomer, run word by word: two boards and a host federate, and the boards answer. Then every
//! example of the board's `--help` in the directory that this leaves behind.
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;
use workspace_tests::pictures::{write_folders, write_png};
use workspace_tests::process::Process;
use workspace_tests::readme::{block, examples, shell, substituted};
use workspace_tests::{programs, root};

const SIDE: usize = 28;

/// What the README takes as given: labels, the host's own pictures, two boards' pictures.
fn prepared() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("labels.txt"), "boot\nbag\nshirt\n").unwrap();
    write_folders(&at("aux"), 9, &[("boot", 4), ("bag", 4), ("shirt", 4)], SIDE);
    write_folders(&at("kitchen-pictures"), 1, &[("boot", 12), ("bag", 8), ("shirt", 0)], SIDE);
    write_folders(&at("garage-pictures"), 2, &[("boot", 0), ("bag", 8), ("shirt", 12)], SIDE);
    write_png(&at("new-picture.png"), 3, 0, 1, SIDE);
    write_folders(&at("pictures"), 4, &[("boot", 1), ("bag", 1), ("shirt", 1)], SIDE);
    std::fs::write(at("client.toml"), "dir = 'kitchen'\n[privacy]\nallow = 'backbone'\n").unwrap();
    dir
}

/// Runs the host's block; its last command serves on.
fn host(folder: &Path) -> (Process, SocketAddr) {
    listening(shell("the README's host", folder, &substituted(&block("host"), None)))
}

/// Waits until a host says where it listens.
fn listening(mut host: Process) -> (Process, SocketAddr) {
    while let Some(line) = host.line() {
        if let Ok(at) = line.parse() {
            return (host, at);
        }
    }
    panic!("the host doesn't come up: {}", host.said())
}

/// A word of a table's header or row ends where two spaces begin.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn the_readme_federates_two_boards_and_every_example_of_the_boards_help_runs() {
    let dir = prepared();
    let (_serving, at) = host(dir.path());
    let kitchen = substituted(&block("board"), Some(at));
    let garage = kitchen.replace("kitchen", "garage");
    let boards = [("kitchen", &kitchen), ("garage", &garage)]
        .map(|(name, commands)| shell(name, dir.path(), commands));
    for board in boards {
        let said = board.succeed();
        let answer = said.out.iter().find(|line| line.contains("new-picture.png")).unwrap();
        assert!(["boot", "bag", "shirt"].iter().any(|label| answer.contains(label)), "{answer}");
        let header = said.out.iter().find(|line| line.starts_with("input")).unwrap();
        assert_eq!(cells(header), shown_in_readme(), "the README shows the columns there are");
    }
    let status =
        shell("status", dir.path(), "aggregator status fleet; edge-client status --dir kitchen").succeed();
    assert!(status.out.concat().contains("finished"), "{status:?}");
    every_example(dir.path(), at);
}

/// The header of the table under "Reading an answer".
fn shown_in_readme() -> Vec<&'static str> {
    static TEXT: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::fs::read_to_string(root().join("README.md")).unwrap());
    let header = TEXT.lines().find(|line| line.starts_with("input  ")).expect("a table in the README");
    cells(header)
}

/// Examples that can't be run to their end here, with the reason. They must still be understood.
const ONLY_PARSED: [(&str, &str); 2] =
    [("edge-client ort install", "needs a wheel"), ("edge-client ort check", "needs ONNX Runtime")];

/// The host's own examples are run by its own tests.
fn every_example(dir: &Path, at: SocketAddr) {
    for command in examples(programs::edge_client()) {
        let mut ran = shell(&command, dir, &substituted(&command, Some(at)));
        let status = ran.finish();
        let reason = ONLY_PARSED.iter().find(|(start, _)| command.starts_with(start));
        let fine = if reason.is_some() { status.code() != Some(2) } else { status.success() };
        assert!(fine, "{command}: {status}: {}", ran.said());
    }
}
