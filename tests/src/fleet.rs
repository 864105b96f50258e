//! A fleet of real programs in a temporary directory: one host, boards that reach it over wires of their own.
use crate::pictures;
use crate::process::Process;
use crate::programs;
use crate::relay::{Relay, Target};
use edge_client::store::Store;
use models::id::Hash;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// Classes of every fleet here.
pub const LABELS: [&str; 4] = ["ant", "bee", "cat", "dog"];
/// Side of its pictures, unless the architecture says otherwise.
pub const SIDE: usize = 8;

/// What the host is told at `init`.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The architecture.
    pub arch: &'static str,
    /// A network's file and its head instead, if one is brought along.
    pub model: Option<(PathBuf, &'static str)>,
    /// Side of its pictures.
    pub side: usize,
    /// The method.
    pub method: &'static str,
    /// Rounds.
    pub rounds: u32,
    /// Boards that must be there.
    pub boards: u32,
    /// Share of them that takes part in a round.
    pub participation: f32,
    /// Any `--set`.
    pub set: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            arch: "mlp",
            model: None,
            side: SIDE,
            method: "cpct",
            rounds: 2,
            boards: 2,
            participation: 1.0,
            set: Vec::new(),
        }
    }
}

/// Everything in one temporary directory.
#[derive(Debug)]
pub struct Fleet {
    dir: TempDir,
    side: usize,
    target: Target,
}

/// A host's process that boards can reach.
#[derive(Debug)]
pub struct Host {
    /// It.
    pub process: Process,
    /// Where it listens; nothing if it ended before it did.
    pub at: Option<SocketAddr>,
}

/// An enrolled board.
#[derive(Debug)]
pub struct Board {
    /// Its private directory.
    pub dir: PathBuf,
    /// Its pictures.
    pub data: PathBuf,
    /// Its way to the host.
    pub wire: Relay,
}

/// What came of a run: every state that the host published, and what each board has for itself, by their hashes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Kind and hash of the host's states.
    pub states: Vec<(String, String)>,
    /// The boards' private states.
    pub boards: Vec<Hash>,
}

/// A program's command with nothing inherited that would change what it does.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPECTRA_")) {
        command.env_remove(name);
    }
    command
}

impl Fleet {
    /// Makes a host that is not served yet.
    ///
    /// # Panics
    /// If `aggregator init` fails.
    pub fn new(setup: &Setup) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let fleet = Self { dir, side: setup.side, target: Arc::new(Mutex::new(nowhere)) };
        std::fs::write(fleet.at("labels.txt"), LABELS.join("\n")).expect("a file can be written");
        let auxiliary: Vec<u16> = (0..16).map(|i| i % 4).collect();
        pictures::write_idx(&fleet.at("aux"), 99, &auxiliary, setup.side);
        let (rounds, boards) = (setup.rounds.to_string(), setup.boards.to_string());
        let participation = setup.participation.to_string();
        let input = format!("1x{0}x{0}", setup.side);
        let mut init = fleet.aggregator(&["init", "host"]);
        match &setup.model {
            Some((file, head)) => init.arg("--model").arg(file).args(["--head", head]),
            None => init.args(["--arch", setup.arch, "--input", &input]),
        };
        init.args(["--labels", "labels.txt", "--aux", "aux", "--method", setup.method, "--rounds", &rounds]);
        init.args(["--participation", &participation, "--min-boards", &boards, "--seed", "7"]);
        init.args(["--set", "rounds.poll_ms=20", "--set", "rounds.retry_ms=20"]);
        for pair in &setup.set {
            init.args(["--set", pair]);
        }
        Process::start("aggregator init", &mut init).succeed();
        fleet
    }

    /// A place in its directory.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command of the host's program.
    pub fn aggregator(&self, arguments: &[&str]) -> Command {
        let mut command = command(programs::aggregator());
        command.current_dir(self.dir.path()).args(arguments);
        command
    }

    /// A command of the board's program.
    pub fn edge_client(&self, arguments: &[&str]) -> Command {
        let mut command = command(programs::edge_client());
        command.current_dir(self.dir.path()).args(arguments);
        command
    }

    /// Serves the host.
    ///
    /// # Panics
    /// If it doesn't come up.
    pub fn serve(&self) -> Host {
        let host = self.serve_until(None);
        assert!(host.at.is_some(), "no host: {}", host.process.said());
        host
    }

    /// Serves the host up to a crash point, if one is given.
    pub fn serve_until(&self, crash: Option<&str>) -> Host {
        let mut command = self.aggregator(&["serve", "host", "--listen", "127.0.0.1:0"]);
        if let Some(point) = crash {
            command.env("SPECTRA_CRASH_AT", point);
        }
        let mut process = Process::start("aggregator serve", &mut command);
        let at = loop {
            match process.line().map(|line| line.parse()) {
                Some(Ok(at)) => break Some(at),
                Some(Err(_)) => {}
                None => break None,
            }
        };
        if let Some(at) = at {
            *self.target.lock().unwrap_or_else(PoisonError::into_inner) = at;
        }
        Host { process, at }
    }

    /// Enrols a board with pictures of these classes.
    ///
    /// # Panics
    /// If it isn't let in.
    pub fn enroll(&self, name: &str, classes: &[u16]) -> Board {
        let (wire, token) = (self.wire(), self.token(name));
        let (dir, data) = (self.at(name), self.at(&format!("{name}-pictures")));
        pictures::write_idx(&data, name.bytes().map(u64::from).sum(), classes, self.side);
        let host = format!("https://{}", wire.address());
        let mut enroll = self.edge_client(&["enroll", "--host", &host, "--name", name, "--token"]);
        enroll.arg(token).arg("--dir").arg(&dir);
        Process::start("edge-client enroll", &mut enroll).succeed();
        Board { dir, data, wire }
    }

    /// A new way to the host.
    pub fn wire(&self) -> Relay {
        Relay::new(&self.target)
    }

    /// The file with a new token.
    ///
    /// # Panics
    /// If there is none.
    pub fn token(&self, name: &str) -> PathBuf {
        let made =
            Process::start("aggregator token", &mut self.aggregator(&["token", "host", "--name", name]));
        let path = self.at(&format!("{name}.token"));
        std::fs::write(&path, made.succeed().out.join("\n")).expect("a file can be written");
        path
    }

    /// Starts a board that takes part until training is over.
    pub fn run(&self, board: &Board) -> Process {
        self.run_with(board, &[])
    }

    /// The same with more arguments.
    pub fn run_with(&self, board: &Board, more: &[&str]) -> Process {
        let mut run = self.edge_client(&["run", "--until-finished", "--threads", "1", "--dir"]);
        run.arg(&board.dir).arg("--data").arg(&board.data).args(more);
        Process::start("edge-client run", &mut run)
    }

    /// What a command of the host prints as JSON, one value a line.
    ///
    /// # Panics
    /// If it fails.
    pub fn host_says(&self, arguments: &[&str]) -> Vec<Value> {
        let said =
            Process::start("aggregator", self.aggregator(arguments).args(["--format", "json"])).succeed();
        said.out.iter().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// What a command of the board prints as JSON.
    ///
    /// # Panics
    /// If it fails.
    pub fn board_says(&self, board: &Board, arguments: &[&str]) -> Value {
        let mut command = self.edge_client(arguments);
        command.args(["--format", "json", "--dir"]).arg(&board.dir);
        let said = Process::start("edge-client", &mut command).succeed();
        serde_json::from_str(&said.out.join("\n")).expect("JSON")
    }

    /// What came of it.
    ///
    /// # Panics
    /// If a model can't be read.
    pub fn outcome(&self, boards: &[&Board]) -> Outcome {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let states = self.host_says(&["models", "list", "host"]);
        let states = states.iter().map(|row| (text(row, "kind"), text(row, "state"))).collect();
        Outcome { states, boards: boards.iter().flat_map(|board| personal(board)).collect() }
    }
}

/// What a board learned, and what it answers with.
fn personal(board: &Board) -> [Hash; 2] {
    let personal = Store::peek(&board.dir).expect("a board's state").personal;
    assert!(personal.held.is_some(), "it has the final model");
    [Hash::of(personal.learned.expose()), Hash::of(personal.adapted.expose())]
}
