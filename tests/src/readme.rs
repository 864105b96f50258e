//! The README's commands and the examples of `--help`, as a newcomer would type them.
use crate::fleet::command;
use crate::process::Process;
use crate::{programs, root};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The shell block of the README that is marked `<!-- run: NAME -->`.
///
/// # Panics
/// If there is none.
pub fn block(name: &str) -> String {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let (_, rest) = text.split_once(&format!("<!-- run: {name} -->\n```sh\n")).expect("a marked block");
    rest.split_once("```").expect("a block ends").0.to_owned()
}

/// All that a test changes in commands: the host listens on a free port of the loopback and boards find it there, and boards
/// that wait ask after 50 ms and not after 10 s.
pub fn substituted(commands: &str, at: Option<SocketAddr>) -> String {
    let found = at.map_or_else(|| "host.example:8443".into(), |at| at.to_string());
    commands
        .replace("0.0.0.0:8443", "127.0.0.1:0")
        .replace("host.example:8443", &found)
        .replace("aggregator init fleet", "aggregator init fleet --set rounds.poll_ms=50")
}

/// Runs commands in `folder` as a shell does, with both programs on its path.
pub fn shell(name: &str, folder: &Path, commands: &str) -> Process {
    let mut paths = vec![programs::folder().to_path_buf()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut sh = command(Path::new("sh"));
    sh.current_dir(folder)
        .args(["-e", "-c", commands])
        .env("PATH", std::env::join_paths(paths).expect("paths"));
    Process::start(name, &mut sh)
}

/// Every command that the help of `program` gives as an example, by asking each subcommand for its help.
pub fn examples(program: &Path) -> Vec<String> {
    let mut found = Vec::new();
    collect(program, &mut Vec::new(), &mut found);
    found
}

fn collect(program: &Path, path: &mut Vec<String>, found: &mut Vec<String>) {
    let mut asked = Command::new(program);
    let help = Process::start("--help", asked.args(path.iter()).arg("--help")).succeed().out;
    let name = program.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let own: Vec<&str> = section(&help, "Example").filter(|l| l.trim_start().starts_with(name)).collect();
    let inner: Vec<&str> = section(&help, "Commands:").filter_map(|l| l.split_whitespace().next()).collect();
    assert!(path.is_empty() || !own.is_empty(), "{name} {path:?} --help shows no example");
    found.extend(own.iter().map(|line| line.trim().to_owned()));
    for subcommand in inner.into_iter().filter(|name| *name != "help") {
        path.push(subcommand.to_owned());
        collect(program, path, found);
        path.pop();
    }
}

/// The indented lines under a heading.
fn section<'a>(help: &'a [String], heading: &'a str) -> impl Iterator<Item = &'a str> {
    let under = help.iter().skip_while(move |line| !line.starts_with(heading)).skip(1);
    under.take_while(|line| line.starts_with("  ")).map(String::as_str)
}
