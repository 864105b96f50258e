//! Three rounds on four clients against the same methods written plainly in PyTorch (`tests/golden/README.md`).
use super::fleet::Fleet;
use super::toy::{self, Engine, Set, Toy};
use crate::fed::cluster::Assignments;
use crate::fed::fedprism::FedPrism;
use crate::fed::personal::Client as Personal;
use crate::fed::prism::Prism;
use crate::fed::streams::Rules;
use crate::fed::training::Training;
use crate::fed::{Kept, Method, fedavg, fedper, fedprism, pfedkdh};
use crate::id::{AUXILIARY, ClientId};
use crate::nn::LearningRate;
use crate::params::{ModelSpec, Params};
use crate::tensor::TensorView;
use crate::tensor::rng::Key;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

#[path = "../../../../tests/src/hashed.rs"]
#[expect(unreachable_pub, reason = "shared with the integration tests")]
mod hashed;

const BASE: u64 = 300_000;
const WIDTH: usize = 20;
const GROUPS: [[u16; 2]; 4] = [[0, 1], [0, 1], [2, 3], [2, 3]];
const SIZES: [usize; 4] = [37, 24, 53, 18];
/// The issue asks for this; most values agree to 1e-6.
const TOLERANCE: f32 = 1e-4;

/// The golden order of an epoch.
fn order(key: Key, n: usize) -> Vec<usize> {
    let who = if key.client == AUXILIARY.0 { 7 } else { u64::from(key.client) };
    let place = (u64::from(key.round) * 8 + who) * 32 + key.purpose as u64;
    hashed::order((1 << 30) + place * 64 + key.step, n)
}

fn data(who: u64, n: usize, classes: &[u16]) -> Set {
    let class = |row| classes[usize::from(hashed::label(BASE + 2000 + who, row, classes.len() as u64))];
    let labels: Vec<u16> = (0..n as u64).map(class).collect();
    let input = |(row, &y): (usize, &u16)| hashed::input(BASE + 1000 + who, BASE + 4000, row, y, WIDTH);
    Set { inputs: labels.iter().enumerate().map(input).collect(), labels }
}

fn trainer(spec: &Arc<ModelSpec>, id: ClientId, set: Set) -> Toy {
    Toy { order, ..Toy::new(id, spec, set, Set::default()) }
}

fn initial(spec: &Arc<ModelSpec>) -> Params {
    let layers = [(WIDTH, 16), (16, 8), (8, 4)];
    let mut values = Vec::new();
    for (l, (input, output)) in layers.into_iter().enumerate() {
        let bound = 1.0 / (input as f64).sqrt();
        values.extend(hashed::weights(BASE + 2 * l as u64, input * output, bound));
        values.extend(hashed::weights(BASE + 2 * l as u64 + 1, output, bound));
    }
    Params::new(spec.clone(), values).unwrap()
}

/// One setting's arrays.
struct Golden {
    meta: serde_json::Value,
    numbers: Vec<f32>,
}

impl Golden {
    fn read(setting: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/federated/");
        let meta = std::fs::read_to_string(format!("{folder}{setting}.json")).unwrap();
        let bytes = std::fs::read(format!("{folder}{setting}.bin")).unwrap();
        let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        Self { meta: serde_json::from_str(&meta).unwrap(), numbers }
    }

    fn number(&self, name: &str) -> u32 {
        self.meta[name].as_u64().unwrap() as u32
    }

    fn train(&self) -> Training {
        let (epochs, batch) = (self.number("epochs"), self.number("batch"));
        Training { epochs, batch, rate: LearningRate(0.05), momentum: 0.9 }
    }

    fn array(&self, method: &str, name: &str) -> &[f32] {
        let arrays = self.meta["methods"][method]["arrays"].as_array().unwrap();
        let array =
            arrays.iter().find(|a| a["name"] == name).unwrap_or_else(|| panic!("{method} has no {name}"));
        let len: u64 = array["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product();
        let at = array["at"].as_u64().unwrap() as usize;
        &self.numbers[at..at + len as usize]
    }

    fn check(&self, method: &str, name: &str, got: &[f32]) {
        let expected = self.array(method, name);
        assert_eq!(got.len(), expected.len(), "{method}.{name}");
        let off = got.iter().zip(expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
        assert!(off <= TOLERANCE, "{method}.{name}: off by {off}");
    }

    fn fleet<M: Method>(&self, hyper: &M::Hyper) -> Fleet {
        let spec = toy::spec(&[WIDTH, 16, 8, 4], 0);
        let board = |i: usize| trainer(&spec, ClientId(i as u32), data(i as u64, SIZES[i], &GROUPS[i]));
        let auxiliary = data(100, self.number("auxiliary") as usize, &[0, 1, 2, 3]);
        let auxiliary = Some(trainer(&spec, AUXILIARY, auxiliary));
        Fleet::on::<M>(hyper, &spec, (0..4).map(board).collect(), auxiliary, initial(&spec))
    }
}

fn settings() -> [Golden; 2] {
    ["full_batch", "small_batch"].map(Golden::read)
}

fn state<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).unwrap()
}

#[test]
fn fedavg_agrees_with_pytorch() {
    for golden in settings() {
        let hyper = fedavg::Hyper { train: golden.train(), ..fedavg::Hyper::default() };
        let mut fleet = golden.fleet::<fedavg::FedAvg>(&hyper);
        fleet.rounds(3, &[0, 1, 2, 3]);
        golden.check("fedavg", "global", state::<fedavg::Server>(&fleet.state).0.values());
    }
}

fn check_heads(golden: &Golden, method: &str, fleet: &Fleet) {
    for (i, bytes) in fleet.clients.iter().enumerate() {
        let head = state::<Personal>(bytes).head.unwrap();
        golden.check(method, &format!("head{i}"), head.values());
    }
}

#[test]
fn fedper_agrees_with_pytorch() {
    for golden in settings() {
        let hyper = fedper::Hyper { train: golden.train(), ..fedper::Hyper::default() };
        let mut fleet = golden.fleet::<fedper::FedPer>(&hyper);
        fleet.rounds(3, &[0, 1, 2, 3]);
        golden.check("fedper", "global", state::<fedper::Server>(&fleet.state).backbone.values());
        check_heads(&golden, "fedper", &fleet);
    }
}

#[test]
fn pfedkdh_agrees_with_pytorch() {
    for golden in settings() {
        let hyper = pfedkdh::Hyper { train: golden.train(), ..pfedkdh::Hyper::default() };
        let mut fleet = golden.fleet::<pfedkdh::PFedKdh>(&hyper);
        let teacher = |fleet: &Fleet| state::<pfedkdh::Server>(&fleet.state).teacher.unwrap();
        golden.check("pfedkdh", "teacher_at_start", teacher(&fleet).values());
        fleet.rounds(3, &[0, 1, 2, 3]);
        golden.check("pfedkdh", "global", state::<pfedkdh::Server>(&fleet.state).backbone.values());
        golden.check("pfedkdh", "teacher", teacher(&fleet).values());
        check_heads(&golden, "pfedkdh", &fleet);
    }
}

fn prism_hyper(golden: &Golden, recluster: u32) -> fedprism::Hyper {
    let streams = Rules { private_epochs: golden.number("private_epochs"), ..Rules::default() };
    fedprism::Hyper { clusters: 2, recluster, streams, train: golden.train(), ..fedprism::Hyper::default() }
}

fn check_personal(golden: &Golden, method: &str, fleet: &Fleet) {
    for (i, bytes) in fleet.clients.iter().enumerate() {
        let streams = state::<fedprism::Client>(bytes).streams;
        golden.check(method, &format!("private{i}"), streams.private.unwrap().values());
        golden.check(method, &format!("specialist{i}"), streams.specialist.unwrap().values());
    }
}

#[test]
fn fedprism_agrees_with_pytorch() {
    for golden in settings() {
        let mut fleet = golden.fleet::<FedPrism>(&prism_hyper(&golden, 2));
        fleet.rounds(3, &[0, 1, 2, 3]);
        let prism = state::<fedprism::Server>(&fleet.state).prism;
        golden.check("fedprism", "global", prism.global.values());
        let first = crate::fed::argmax(prism.assignments.of(ClientId(0)).unwrap());
        let ours = |k: usize| (k + first) % 2;
        for k in 0..2 {
            golden.check("fedprism", &format!("cluster{k}"), prism.clusters[ours(k)].values());
        }
        let shares = |i| [0, 1].map(|k| prism.assignments.share(ClientId(i), ours(k), 2));
        golden.check("fedprism", "assignment", &(0..4).flat_map(shares).collect::<Vec<_>>());
        check_personal(&golden, "fedprism", &fleet);
    }
}

/// A state in which everything matters: cluster parts apart from the global one, and unequal shares.
fn apart(spec: &Arc<ModelSpec>, golden: &Golden) -> fedprism::Server {
    let init = initial(spec);
    let part = |k: u64| {
        let away = hashed::weights(BASE + 600 + k, init.values().len(), 0.1);
        let values = init.values().iter().zip(away).map(|(w, d)| w + d).collect();
        Kept::from(Params::new(spec.clone(), values).unwrap())
    };
    let rows = golden.array("fedprism_apart", "assignment").chunks_exact(2);
    let shares: BTreeMap<ClientId, Vec<f32>> =
        rows.enumerate().map(|(i, row)| (ClientId(i as u32), row.to_vec())).collect();
    let nothing: (BTreeMap<ClientId, Vec<f32>>, Vec<Vec<f64>>) = Default::default();
    let assignments: Assignments = state(&postcard::to_stdvec(&(nothing, shares)).unwrap());
    let initial = Some(init.clone().into());
    fedprism::Server {
        prism: Prism { global: init.clone().into(), clusters: vec![part(0), part(1)], assignments },
        round: crate::id::RoundId(0),
        initial,
    }
}

#[test]
fn fedprism_from_parts_that_differ_agrees_with_pytorch_down_to_the_routed_answer() {
    for golden in settings() {
        let mut fleet = golden.fleet::<FedPrism>(&prism_hyper(&golden, 100));
        fleet.state = postcard::to_stdvec(&apart(&fleet.spec, &golden)).unwrap();
        fleet.rounds(3, &[0, 1, 2, 3]);
        fleet.settle();
        let prism = state::<fedprism::Server>(&fleet.state).prism;
        golden.check("fedprism_apart", "global", prism.global.values());
        for k in 0..2 {
            golden.check("fedprism_apart", &format!("cluster{k}"), prism.clusters[k].values());
        }
        check_personal(&golden, "fedprism_apart", &fleet);
        let alphas =
            fleet.clients.iter().map(|c| state::<fedprism::Client>(c).streams.alpha).collect::<Vec<_>>();
        golden.check("fedprism_apart", "a", &alphas);
        let inputs = data(200, 6, &[0, 1, 2, 3]).inputs.concat();
        for i in 0..4 {
            let view = TensorView::new(&[6, WIDTH], &inputs);
            let answers = fleet.predictor(i).answer(&mut Engine, view).unwrap();
            let routed: Vec<f32> = answers.into_iter().flat_map(|r| r.probabilities).collect();
            golden.check("fedprism_apart", &format!("routed{i}"), &routed);
        }
    }
}
