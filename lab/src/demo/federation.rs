//! `cpct` for real: one host, every board with a directory, a key and a token of its own.
use super::board::Seat;
use super::host::Host;
use super::process::{self, Children};
use crate::bench::Bench;
use crate::fleet::{Answering, Outcome, Traffic};
use crate::world::Board;
use anyhow::Context;
use edge_client::personal::Personal;
use edge_client::store::Store;
use models::fed::{Method, cpct};
use models::id::ClientId;
use models::round::Event;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// How boards live.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Life {
    /// Each in a thread of this process.
    Thread,
    /// Each in a process of its own.
    Process,
}

/// What the demonstration waits for.
enum News {
    /// Something happened on the host.
    Host(Event),
    /// A board's thread is done.
    Learned(ClientId, anyhow::Result<Personal>),
    /// A board's process has ended.
    Gone(ClientId),
}

/// A federation under way.
struct Federation<'b> {
    bench: &'b Bench<'b>,
    hyper: &'b cpct::Hyper,
    dir: &'b Path,
    host: Host,
    children: Children,
    tell: Sender<News>,
    hear: Receiver<News>,
    traffic: Traffic,
    learned: BTreeMap<ClientId, Personal>,
}

/// Starts a host in `dir`, enrols the boards, runs the rounds, and lets the late ones join.
pub(super) fn federate(
    life: Life,
    bench: &Bench<'_>,
    hyper: &cpct::Hyper,
    dir: &Path,
    folded: &dyn Fn(),
) -> anyhow::Result<Outcome> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let host = Host::start(&dir.join("host"), bench, hyper)?;
    let (tell, hear) = channel();
    let forward = tell.clone();
    host.listen(move |event| forward.send(News::Host(event)).is_ok());
    let (children, traffic, learned) = (Children::default(), Traffic::default(), BTreeMap::new());
    let mut federation = Federation { bench, hyper, dir, host, children, tell, hear, traffic, learned };
    let (url, boards) = (federation.host.url(), bench.world.trained().len());
    eprintln!("host at {url} in {}; {boards} boards enrol by one-time tokens", dir.display());
    federation.run(bench.world.trained(), life, folded)?;
    federation.run(bench.world.late(), life, folded)?;
    federation.outcome()
}

impl Federation<'_> {
    /// Enrols these boards, one after the other so that their numbers are known, and lets them run to their end.
    fn run(&mut self, boards: &[Board], life: Life, folded: &dyn Fn()) -> anyhow::Result<()> {
        for board in boards {
            self.enroll(board, life)?;
        }
        for board in boards {
            self.start(board, life)?;
        }
        let all = self.learned.len() + boards.len();
        while self.learned.len() < all {
            match self.hear.recv().context("the boards are gone")? {
                News::Host(event) => self.happened(&event, folded)?,
                News::Learned(client, personal) => drop(self.learned.insert(client, personal?)),
                News::Gone(client) => {
                    let dir = self.place(client);
                    self.children.ended(client, &dir)?;
                    self.learned.insert(client, Store::peek(&dir)?.personal);
                }
            }
        }
        Ok(())
    }

    fn place(&self, client: ClientId) -> PathBuf {
        self.dir.join(format!("board-{client}"))
    }

    fn seat(&self, board: &Board) -> Seat {
        let allow = cpct::Cpct::discloses(self.hyper);
        Seat { dir: self.place(board.client), host: self.host.url(), allow }
    }

    fn enroll(&self, board: &Board, life: Life) -> anyhow::Result<()> {
        let (seat, token) = (self.seat(board), self.host.token()?);
        let client = match life {
            Life::Thread => seat.enroll(&token)?,
            Life::Process => {
                process::enroll(&seat.dir, &seat.host, &token)?;
                Store::peek(&seat.dir)?.enrolled(&seat.dir)?.1.client
            }
        };
        anyhow::ensure!(client == board.client, "board {} was enrolled as {client}", board.client);
        Ok(())
    }

    fn start(&mut self, board: &Board, life: Life) -> anyhow::Result<()> {
        let (seat, tell, client) = (self.seat(board), self.tell.clone(), board.client);
        // Nobody hears of an end that comes after the demonstration has failed.
        match life {
            Life::Thread => {
                let samples = board.train.clone();
                std::thread::spawn(move || drop(tell.send(News::Learned(client, seat.run(samples)))));
                Ok(())
            }
            Life::Process => {
                let gone = move || drop(tell.send(News::Gone(client)));
                self.children.run(client, &seat.dir, seat.allow, &board.train, gone)
            }
        }
    }

    fn happened(&mut self, event: &Event, folded: &dyn Fn()) -> anyhow::Result<()> {
        match event {
            Event::Failed { round, why, .. } => anyhow::bail!("round {round} failed: {why}"),
            Event::Folded { .. } => {
                folded();
                let (up, down) = self.host.traffic();
                self.traffic = Traffic { up, down };
            }
            _ => {}
        }
        Ok(())
    }

    fn outcome(self) -> anyhow::Result<Outcome> {
        self.host.stop()?;
        let spec = self.bench.spec();
        let answering = |(&client, personal): (&ClientId, &Personal)| {
            Ok(Answering { client, predictors: vec![personal.predictor(spec)?] })
        };
        let boards = self.learned.iter().map(answering).collect::<anyhow::Result<_>>()?;
        Ok(Outcome { boards, traffic: self.traffic })
    }
}
