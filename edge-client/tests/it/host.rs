//! A host in memory with one task to give, that can lose its answers.
use edge_client::agent::{Agent, AgentError, Means, Until, Uptime};
use edge_client::store::Store;
use edge_client::train::Workshop;
use edge_client::transport::{Call, CallError, HostClock, Link, Memory};
use models::data::{Elements, Inputs, Samples};
use models::fed::erased::method;
use models::fed::{Disclosure, Extent, Host, Site};
use models::id::{ClientId, Hash, RoundId};
use models::nn::{Trainer, arch, init};
use models::params::{ModelCard, Preprocessing, UpdateMode};
use models::round::Ceilings;
use models::wire::*;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;

const CLIENT: ClientId = ClientId(3);
const TIME: u64 = 1_800_000_000;

/// What the host saw and what it has.
#[derive(Default)]
pub(crate) struct Fake {
    /// The task it gives until an update is accepted.
    task: Option<Task>,
    blobs: Vec<Vec<u8>>,
    /// Bodies that came to the update endpoint.
    pub(crate) updates: Vec<Vec<u8>>,
    /// Refusals that came.
    pub(crate) declined: Vec<Declined>,
    /// Answers to updates that are lost before the next is not.
    pub(crate) losses: usize,
    /// Answers polls with this instead.
    pub(crate) refuse: Option<Reject>,
    accepted: bool,
    adopted: bool,
}

struct NoData;
impl Host for NoData {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        None
    }
    fn rounds(&self) -> u32 {
        1
    }
}

pub(crate) fn card() -> ModelCard {
    let labels = ["cup", "spoon", "fork"].map(String::from).to_vec();
    ModelCard {
        arch: "mlp".into(),
        input: [1, 4, 4],
        labels,
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    }
}

impl Fake {
    /// A host with one round of FedAvg to run.
    pub(crate) fn new() -> Rc<RefCell<Self>> {
        let (graph, spec) = arch::build(&card()).unwrap();
        let m = method("fedavg").unwrap();
        let hyper = m.default_hyper().unwrap();
        let site = Site { seed: 5, round: RoundId(0), client: CLIENT };
        let state = m.open(&hyper, init(&graph, &spec, 5), site, &mut NoData).unwrap();
        let published = m.publish(&hyper, &state).unwrap();
        let blobs: Vec<_> = published.parts().iter().map(|(_, values)| part_bytes(values)).collect();
        let plan = published.configure(CLIENT).unwrap();
        let part = |i: &u16| PartRef { extent: Extent::Model, hash: Hash::of(&blobs[usize::from(*i)]) };
        let task = Task {
            round: RoundId(0),
            attempt: 0,
            remaining_ms: 60_000,
            spec: spec.hash(),
            seed: 5,
            method: Name::try_from("fedavg").unwrap(),
            codec: Codec::F32,
            epochs: m.epochs(&hyper).unwrap(),
            update: UpdateMode::Full,
            parts: plan.parts.iter().map(part).collect(),
            body: Bytes::from_slice(&plan.task).unwrap(),
            hyper: Bytes::from_slice(&hyper).unwrap(),
        };
        Rc::new(RefCell::new(Self { task: Some(task), blobs, ..Self::default() }))
    }

    fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, CallError> {
        match call.endpoint.path {
            "/v1/poll" => match self.refuse {
                Some(reject) => Err(CallError::Refused(reject)),
                None => say(&self.answer()),
            },
            "/v1/blob/{hash}" => {
                let found = self.blobs.iter().find(|b| Some(Hash::of(b)) == call.hash);
                found.cloned().ok_or(CallError::Refused(Reject::NotYours))
            }
            "/v1/update" => {
                self.updates.push(call.body.to_vec());
                let receipt = if self.accepted { Receipt::AlreadyAccepted } else { Receipt::Accepted };
                self.accepted = true;
                if self.losses > 0 {
                    self.losses -= 1;
                    return Err(CallError::Unreachable {
                        host: "memory".into(),
                        why: "the answer was lost".into(),
                    });
                }
                say(&receipt)
            }
            "/v1/decline" => {
                let decline: Envelope<Decline> = from_bytes(call.body).unwrap();
                self.declined.push(decline.body.why);
                self.accepted = true;
                say(&Receipt::Noted)
            }
            other => panic!("{other}"),
        }
    }

    fn answer(&mut self) -> Answer {
        let task = self.task.clone().unwrap();
        match (self.accepted, std::mem::replace(&mut self.adopted, self.accepted)) {
            (false, _) => Answer::Task(task),
            (true, true) => Answer::Wait(Outlook { retry_ms: 60_000, why: Why::Finished }),
            (true, false) => Answer::Adopt(Adopt {
                version: 1,
                spec: task.spec,
                seed: task.seed,
                method: task.method,
                hyper: task.hyper,
                parts: task.parts,
                body: task.body,
            }),
        }
    }

    /// Opens another round.
    pub(crate) fn again(&mut self) {
        (self.accepted, self.adopted) = (false, false);
        if let Some(task) = &mut self.task {
            task.round = task.round.next();
        }
    }
}

fn say<T: serde::Serialize>(body: &T) -> Result<Vec<u8>, CallError> {
    Ok(to_bytes(&Envelope::at(TIME, body)).unwrap())
}

/// Twelve samples of three classes.
fn samples() -> Samples {
    let pixels = (0..12 * 16).map(|i| (i * 37 % 251) as u8).collect();
    let inputs = Inputs::new([1, 4, 4], Elements::U8(pixels)).unwrap();
    Samples::new(inputs, (0..12).map(|i| i % 3).collect()).unwrap()
}

/// One life of a board's process in `dir`.
pub(crate) fn live(
    dir: &Path,
    host: &Rc<RefCell<Fake>>,
    allow: Disclosure,
    means: Means,
) -> (Result<(), AgentError>, Vec<String>) {
    live_in(dir, host, allow, means, UpdateMode::Full)
}

/// The same of a board that trains at most this.
pub(crate) fn live_in(
    dir: &Path,
    host: &Rc<RefCell<Fake>>,
    allow: Disclosure,
    means: Means,
    update: UpdateMode,
) -> (Result<(), AgentError>, Vec<String>) {
    let mut store = Store::open(dir).unwrap();
    let shared = Rc::clone(host);
    let transport = Memory(move |call: Call<'_>| shared.borrow_mut().call(call));
    let mut link = Link::new(Box::new(transport), HostClock::new(0));
    let network = arch::build(&card()).unwrap();
    let workshop = Workshop::new(network, samples(), CLIENT, NonZeroUsize::MIN).unwrap();
    let mut workshop = workshop.with_update(update);
    let mut said = Vec::new();
    let mut agent = Agent {
        cache: store.blobs(1 << 20),
        store: &mut store,
        link: &mut link,
        workshop: &mut workshop,
        ceilings: Ceilings { allow, ..Ceilings::default() },
        means,
        clock: &Uptime::default(),
        log: &mut |line| said.push(line.to_owned()),
    };
    let ended = agent.run(Until::Idle, 9);
    (ended, said)
}
