//! A small world and a host with its boards, everything passing through bytes as in production.
use super::toy::{self, Engine, Set, Toy};
use crate::fed::erased::{AnyMethod, method};
use crate::fed::{Down, FedError, Host, Method, Outgoing, Plan, Predictor, Replies, Routed, Site};
use crate::id::{AUXILIARY, ClientId, RoundId};
use crate::nn::{Limited, Trainer};
use crate::params::{ModelSpec, Params, UpdateMode};
use crate::tensor::TensorView;
use crate::tensor::rng::{Key, Purpose};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const INPUTS: usize = 6;
pub(crate) const CLASSES: usize = 4;
const SEED: u64 = 11;

/// Samples of some classes: a pattern per class and noise; `turned` boards see the pattern's places reversed.
pub(crate) fn draw(classes: &[u16], n: usize, turned: bool, seed: u64) -> Set {
    let mut stream = Key::new(seed, Purpose::Test).stream();
    let mut set = Set::default();
    for i in 0..n {
        let class = classes[i % classes.len()];
        let mut x: Vec<f32> = (0..INPUTS)
            .map(|p| 0.4 * stream.unit() + if p == usize::from(class) { 0.6 } else { 0.0 })
            .collect();
        if turned {
            x.reverse();
        }
        set.inputs.push(x);
        set.labels.push(class);
    }
    set
}

/// Six boards with two classes each, three of them turned, all of different sizes.
pub(crate) fn boards(spec: &Arc<ModelSpec>) -> Vec<Toy> {
    let held = [[0, 1], [1, 2], [2, 3], [0, 1], [1, 2], [2, 3]];
    let board = |(i, classes): (usize, &[u16; 2])| {
        let (seed, turned) = (100 + i as u64, i >= 3);
        let train = draw(classes, 17 + 3 * i, turned, seed);
        Toy::new(ClientId(i as u32), spec, train, draw(classes, 4, turned, seed + 50))
    };
    held.iter().enumerate().map(board).collect()
}

pub(crate) fn auxiliary(spec: &Arc<ModelSpec>) -> Toy {
    Toy::new(AUXILIARY, spec, draw(&[0, 1, 2, 3], 60, false, 7), Set::default())
}

struct TestHost {
    auxiliary: Option<Toy>,
    rounds: u32,
}

impl Host for TestHost {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        self.auxiliary.as_mut().map(|t| t as &mut dyn Trainer)
    }
    fn rounds(&self) -> u32 {
        self.rounds
    }
}

/// Replies in any order.
pub(crate) struct Shelf {
    ids: Vec<ClientId>,
    replies: BTreeMap<ClientId, Outgoing>,
}

impl Replies<Outgoing> for Shelf {
    fn ids(&self) -> &[ClientId] {
        &self.ids
    }
    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&Outgoing)) -> Result<(), FedError> {
        look(&self.replies[&id]);
        Ok(())
    }
}

/// A run of one method.
pub(crate) struct Fleet {
    pub(crate) method: &'static dyn AnyMethod,
    pub(crate) hyper: Vec<u8>,
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) boards: Vec<Toy>,
    /// What each board trains at most.
    pub(crate) modes: Vec<UpdateMode>,
    pub(crate) clients: Vec<Vec<u8>>,
    pub(crate) state: Vec<u8>,
    /// Everything that left a board: round, who, what.
    pub(crate) sent: Vec<(u32, ClientId, Outgoing)>,
    /// Replies are handed over from the last to the first.
    pub(crate) backwards: bool,
    /// Boards whose update gets lost on the way.
    pub(crate) lost: Vec<ClientId>,
    host: TestHost,
    round: u32,
}

impl Fleet {
    /// The small world under a method.
    pub(crate) fn new<M: Method>(hyper: &M::Hyper) -> Self {
        let spec = toy::spec(&[INPUTS, 8, CLASSES], 0);
        Self::on::<M>(hyper, &spec, boards(&spec), Some(auxiliary(&spec)), toy::init(&spec, SEED))
    }

    /// The same with default hyper-parameters, by name.
    pub(crate) fn named(name: &str) -> Self {
        Self::named_on(name, &toy::spec(&[INPUTS, 8, CLASSES], 0))
    }

    /// The same on another network.
    pub(crate) fn named_on(name: &str, spec: &Arc<ModelSpec>) -> Self {
        let method = method(name).unwrap();
        let (hyper, init) = (method.default_hyper().unwrap(), toy::init(spec, SEED));
        Self::with(method, hyper, spec, boards(spec), Some(auxiliary(spec)), init)
    }

    pub(crate) fn on<M: Method>(
        hyper: &M::Hyper,
        spec: &Arc<ModelSpec>,
        boards: Vec<Toy>,
        auxiliary: Option<Toy>,
        init: Params,
    ) -> Self {
        let hyper = postcard::to_stdvec(hyper).unwrap();
        Self::with(method(M::NAME).unwrap(), hyper, spec, boards, auxiliary, init)
    }

    fn with(
        method: &'static dyn AnyMethod,
        hyper: Vec<u8>,
        spec: &Arc<ModelSpec>,
        boards: Vec<Toy>,
        auxiliary: Option<Toy>,
        init: Params,
    ) -> Self {
        let mut host = TestHost { auxiliary, rounds: 8 };
        let state = method.open(&hyper, init, site(0, AUXILIARY), &mut host).unwrap();
        let clients = boards.iter().map(|_| method.enroll(&hyper, spec).unwrap()).collect();
        let (sent, lost, spec) = (Vec::new(), Vec::new(), spec.clone());
        let (modes, backwards, round) = (vec![UpdateMode::Full; boards.len()], false, 0);
        Self { method, hyper, spec, boards, modes, clients, state, sent, backwards, lost, host, round }
    }

    /// Board `i` under its ceiling.
    fn board(&self, i: usize) -> Limited<Toy> {
        Limited::new(self.boards[i].clone(), self.modes[i])
    }

    fn down(&self, plan: Plan<Vec<u8>>) -> Down<Vec<u8>> {
        let parts = self.method.parts(&self.hyper, &self.state).unwrap();
        let named = plan.parts.iter().map(|&i| Arc::from(parts[usize::from(i)].1.clone()));
        Down { parts: named.collect(), task: plan.task }
    }

    /// One round with these boards.
    pub(crate) fn round(&mut self, cohort: &[usize]) -> &mut Self {
        let mut shelf = Shelf { ids: Vec::new(), replies: BTreeMap::new() };
        for &i in cohort {
            let id = self.boards[i].id;
            let down = self.down(self.method.configure(&self.hyper, &self.state, id).unwrap());
            let (at, client) = (site(self.round, id), &self.clients[i]);
            let fitted = self.method.fit(&self.hyper, client, down, at, &mut self.board(i)).unwrap();
            self.clients[i] = fitted.client;
            self.sent.push((self.round, id, fitted.up.clone()));
            if !self.lost.contains(&id) {
                shelf.ids.push(id);
                shelf.replies.insert(id, fitted.up);
            }
        }
        shelf.ids.sort_unstable();
        if self.backwards {
            shelf.ids.reverse();
        }
        let at = site(self.round, AUXILIARY);
        let next =
            self.method.aggregate(&self.hyper, &self.state, at, &mut shelf, &mut self.host, &self.spec);
        self.state = next.unwrap();
        self.round += 1;
        self
    }

    /// Some rounds with the same boards.
    pub(crate) fn rounds(&mut self, count: u32, cohort: &[usize]) {
        for _ in 0..count {
            self.round(cohort);
        }
    }

    /// Eight rounds of half of the boards each, then everybody takes the model over and adapts.
    pub(crate) fn run(mut self) -> Self {
        for round in 0..8 {
            self.round(&[round % 6, (round + 2) % 6, (round + 3) % 6]);
        }
        self.settle();
        self
    }

    /// The last state, taken over and adapted to by everybody.
    pub(crate) fn settle(&mut self) {
        self.state =
            self.method.finish(&self.hyper, &self.state, site(8, AUXILIARY), &mut self.host).unwrap();
        for i in 0..self.boards.len() {
            self.clients[i] = self.joined(i);
        }
    }

    /// Board `i`'s state after taking over and adapting.
    pub(crate) fn joined(&mut self, i: usize) -> Vec<u8> {
        let (id, at) = (self.boards[i].id, site(8, self.boards[i].id));
        let down = self.down(self.method.offer(&self.hyper, &self.state, id).unwrap());
        let mut board = self.board(i);
        let adopted = self.method.adopt(&self.hyper, &self.clients[i], down, at, &mut board).unwrap();
        self.method.adapt(&self.hyper, &adopted, at, &mut board).unwrap()
    }

    pub(crate) fn predictor(&self, i: usize) -> Predictor {
        self.method.predictor(&self.hyper, &self.clients[i], &self.spec).unwrap()
    }

    /// What board `i` answers to 20 inputs.
    pub(crate) fn answers(&self, i: usize) -> Vec<Routed> {
        let set = draw(&[0, 1, 2, 3], 20, i % 2 == 1, 999);
        let flat: Vec<f32> = set.inputs.concat();
        self.predictor(i).answer(&mut Engine, TensorView::new(&[20, INPUTS], &flat)).unwrap()
    }

    /// Every bit of the first shared part and of all answers.
    pub(crate) fn bits(&self) -> Vec<u32> {
        let parts = self.method.parts(&self.hyper, &self.state).unwrap();
        let answers = (0..self.boards.len()).flat_map(|i| self.answers(i)).flat_map(|r| r.probabilities);
        parts[0].1.iter().copied().chain(answers).map(f32::to_bits).collect()
    }
}

fn site(round: u32, client: ClientId) -> Site {
    Site { seed: SEED, round: RoundId(round), client }
}
