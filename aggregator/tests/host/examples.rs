//! The examples that `--help` shows, run as they stand (but for the port).
use aggregator::clock;
use aggregator::dir::HostDir;
use aggregator::ledger::{Enrolment, Ledger};
use models::id::Hash;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aggregator");

/// A shell in `dir` that finds the program by its name.
fn shell(dir: &Path, line: &str) -> Command {
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("SPECTRA_LOG", "warn");
    command
}

/// The examples of a command.
fn examples(command: &str) -> Vec<String> {
    let help = Command::new(PROGRAM).args(command.split(' ')).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    let found: Vec<String> = text
        .lines()
        .skip_while(|line| !matches!(*line, "Example:" | "Examples:"))
        .filter_map(|line| line.strip_prefix("  ").filter(|l| l.starts_with("aggregator ")))
        .map(|line| line.replace("0.0.0.0:8443", "127.0.0.1:0"))
        .collect();
    assert!(!found.is_empty(), "{command}: {text}");
    found
}

fn run(dir: &Path, command: &str) -> Vec<Output> {
    let run = |line: String| {
        let output = shell(dir, &line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        output
    };
    examples(command).into_iter().map(run).collect()
}

/// What the examples find: labels, a picture or two of each class.
fn prepare(dir: &Path) {
    let classes =
        ["shirt", "trouser", "pullover", "dress", "coat", "sandal", "blouse", "sneaker", "bag", "boot"];
    fs::write(dir.join("labels.txt"), classes.join("\n")).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/imported/own.onnx");
    fs::copy(own, dir.join("net.onnx")).unwrap();
    for (number, class) in classes.iter().enumerate() {
        fs::create_dir_all(dir.join("aux").join(class)).unwrap();
        for copy in 0..2 {
            let grey = image::Luma([(number * 20 + copy * 7) as u8]);
            image::GrayImage::from_pixel(28, 28, grey)
                .save(dir.join(format!("aux/{class}/{copy}.png")))
                .unwrap();
        }
    }
}

/// Six boards, without the trouble of TLS.
async fn populate(dir: &Path) {
    let ledger = HostDir::new(dir).ledger().await.unwrap();
    for n in 0..6_u8 {
        let (token, key, at) = (Hash::of(&[n]), Hash::of(&[n, n]), clock::now());
        Ledger::add_token(&ledger, token, None, clock::later(at, Duration::from_secs(60))).await.unwrap();
        Ledger::enrol(&ledger, Enrolment { token, key, name: format!("board-{n}"), at }).await.unwrap();
    }
}

/// Serves until there is a first state, then asks it to stop.
fn serve(dir: &Path) {
    let line = format!("exec {}", examples("serve")[0]);
    let mut host = shell(dir, &line).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let begun = Instant::now();
    while !String::from_utf8_lossy(&run(dir, "models list")[0].stdout).contains("start") {
        assert!(begun.elapsed() < Duration::from_secs(120), "no first state");
    }
    assert!(shell(dir, &format!("kill -TERM {}", host.id())).status().unwrap().success());
    assert!(host.wait().unwrap().success(), "it stops in peace");
}

#[tokio::test]
async fn every_example_in_the_help_runs() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    prepare(dir);
    run(dir, "init");
    populate(&dir.join("fleet")).await;
    run(dir, "token");
    let token = fs::read_to_string(dir.join("kitchen.token")).unwrap();
    assert!(token.parse::<models::wire::Token>().is_ok());
    serve(dir);
    for command in [
        "validate",
        "devices list",
        "devices quarantine",
        "devices revoke",
        "status",
        "models export",
        "renew-leaf",
        "backup",
    ] {
        run(dir, command);
    }
    let status: serde_json::Value = serde_json::from_slice(&run(dir, "status")[0].stdout).unwrap();
    assert_eq!((&status["boards"], &status["phase"]), (&5.into(), &"gathering".into()), "{status}");
    let contents = fs::read_to_string(dir.join("shared/contents.json")).unwrap();
    assert!(contents.contains("part-0.f32"));
    run(dir, "restore");
    let again = shell(dir, "aggregator status fleet-again --format json").output().unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&again.stdout).unwrap(), status);
}

#[test]
fn wrong_usage_and_configuration_end_with_2_and_failures_with_1() {
    let home = tempfile::tempdir().unwrap();
    let code = |line: &str| shell(home.path(), line).output().unwrap().status.code();
    assert_eq!(code("aggregator"), Some(2));
    assert_eq!(code("aggregator status nowhere"), Some(2));
    prepare(home.path());
    assert_eq!(code("aggregator init fleet --arch transformer --labels labels.txt"), Some(2));
    assert_eq!(code("aggregator init fleet --arch cc28 --labels labels.txt --set rounds.quorum=2"), Some(2));
    assert!(!home.path().join("fleet").exists(), "nothing half-made is left");
    assert_eq!(code("aggregator init fleet --arch cc28 --labels labels.txt --aux nowhere"), Some(1));
    assert_eq!(
        code("aggregator init fleet --arch cc28 --labels labels.txt --no-aux --method fedavg"),
        Some(0)
    );
    assert_eq!(
        code("aggregator init fleet --arch cc28 --labels labels.txt --no-aux --method fedavg"),
        Some(1)
    );
    assert_eq!(code("aggregator devices revoke fleet 7"), Some(1));
}
