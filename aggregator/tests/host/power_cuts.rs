//! The real program, killed wherever it hurts: after a restart the run ends with the very same model.
use crate::board::{Board, Home, enroll, home, key, settings, token};
use aggregator::crash::POINTS;
use models::id::Hash;
use models::params::ModelSpec;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A host's process. Killed when dropped.
struct Program {
    child: Child,
    at: SocketAddr,
}

impl Program {
    fn start(home: &Home, crash: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aggregator"));
        command.arg("serve").arg(home.dir.path()).args(["--listen", "127.0.0.1:0"]);
        command.env("SPECTRA_LOG", "warn").env_remove("SPECTRA_CRASH_AT").stdout(Stdio::piped());
        if let Some(crash) = crash {
            command.env("SPECTRA_CRASH_AT", crash).stderr(Stdio::null());
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // A host that is killed while it starts prints nothing: nobody answers at port 1 either.
        let nowhere = crash.map(|_| SocketAddr::from(([127, 0, 0, 1], 1)));
        let at = line.trim().parse().ok().or(nowhere).unwrap_or_else(|| panic!("an address, not {line:?}"));
        Self { child, at }
    }

    fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run that survives one crash; the final parts, and whether there was a crash.
struct Survivor<'a> {
    home: &'a Home,
    program: Program,
    crashed: bool,
}

impl Survivor<'_> {
    /// Tries until the host answers, starting it again once it is gone.
    async fn insist<T>(&mut self, mut attempt: impl AsyncFnMut(SocketAddr) -> io::Result<T>) -> T {
        let begun = Instant::now();
        loop {
            match attempt(self.program.at).await {
                Ok(answer) => return answer,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(120), "no host: {error}"),
            }
            if self.program.ended() {
                assert!(!self.crashed, "it ended a second time");
                self.crashed = true;
                self.program = Program::start(self.home, None);
            }
        }
    }

    async fn join(&mut self) -> Board {
        let (key, request) = key();
        let (authority, token) =
            (self.home.dir.authority().unwrap().certificate().clone(), token(self.home).await);
        let enrolled = self.insist(async |at| enroll(at, &authority, &token, &request).await).await.unwrap();
        Board::new(&enrolled, &key)
    }

    async fn run(&mut self, spec: &ModelSpec) -> Vec<Hash> {
        let mut boards = Vec::new();
        for _ in 0..3 {
            boards.push(self.join().await);
        }
        while boards.iter().any(|b| b.model.is_none()) {
            for board in boards.iter_mut().filter(|b| b.model.is_none()) {
                self.insist(async |at| board.step(at, spec).await).await;
            }
        }
        boards.swap_remove(0).model.unwrap_or_default()
    }
}

async fn survive(crash: Option<&str>) -> Vec<Hash> {
    let (home, plan) = (home(&settings()).await, settings().check().unwrap());
    let mut survivor = Survivor { home: &home, program: Program::start(&home, crash), crashed: false };
    let model = survivor.run(&plan.spec).await;
    assert_eq!(survivor.crashed, crash.is_some(), "{crash:?}");
    model
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_at_any_point_changes_nothing() {
    let undisturbed = survive(None).await;
    for point in POINTS {
        assert_eq!(survive(Some(point)).await, undisturbed, "{point}");
    }
    for later in [
        "before-commit:7",
        "after-commit:9",
        "update-after-blob:3",
        "aggregate-middle:2",
        "publish-parts-stored:2",
    ] {
        assert_eq!(survive(Some(later)).await, undisturbed, "{later}");
    }
}
