//! A board that took part in `cpct` answers the same through its exported graphs as in the program that trained it.
use crate::common::engines;
use models::fed::cpct::{Cpct, Hyper};
use models::fed::{Down, Either, Extractor, FedError, Host, Method, Plan, Predictor, Replies, Site, Stream};
use models::id::{AUXILIARY, ClientId, RoundId};
use models::infer::Outputs;
use models::nn::{self, Dataset, Graph, Inputs, LocalTrainer, TrainError, Trainer, arch, init};
use models::params::{ModelCard, ModelSpec, Preprocessing};
use models::tensor::rng::{Key, Purpose};
use models::tensor::{Shape, Tensor, TensorView};
use onnx::{Role, export};
use std::collections::BTreeMap;
use std::sync::Arc;

const SIDE: usize = 12;
const CLASSES: usize = 4;

/// One quarter of the picture is bright: the class says which. Noise everywhere.
fn pictures(classes: &[u16], each: usize, seed: u64) -> (Vec<u8>, Vec<u16>) {
    let mut noise = Key::new(seed, Purpose::Partition).stream();
    let labels: Vec<u16> = classes.iter().flat_map(|&c| vec![c; each]).collect();
    let quarter = |y: usize, x: usize| (2 * y / SIDE * 2 + 2 * x / SIDE) as u16;
    let places = || (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x)));
    let picture = |&label: &u16| {
        let pixels = places().map(|(y, x)| if quarter(y, x) == label { 120.0 } else { 40.0 });
        pixels.map(|bright| (bright + 120.0 * noise.unit()) as u8).collect::<Vec<u8>>()
    };
    (labels.iter().flat_map(picture).collect(), labels)
}

struct Auxiliary(LocalTrainer);

impl Host for Auxiliary {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        Some(&mut self.0)
    }

    fn rounds(&self) -> u32 {
        ROUNDS
    }
}

struct Shelf(Vec<ClientId>, BTreeMap<ClientId, Either>);

impl Replies<Either> for Shelf {
    fn ids(&self) -> &[ClientId] {
        &self.0
    }

    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&Either)) -> Result<(), FedError> {
        look(&self.1[&id]);
        Ok(())
    }
}

/// The program's own way to features.
struct InProcess(nn::Extractor);

impl Extractor for InProcess {
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError> {
        self.0.features(&stream.backbone, &stream.conditioning, inputs.values())
    }
}

const ROUNDS: u32 = 2;

fn site(round: u32, client: ClientId) -> Site {
    Site { seed: 3, round: RoundId(round), client }
}

fn received<T: Clone>(hyper: &Hyper, server: &<Cpct as Method>::Server, plan: Plan<T>) -> Down<T> {
    let parts = Cpct::parts(hyper, server);
    Down { parts: plan.parts.iter().map(|&i| parts[usize::from(i)].values.into()).collect(), task: plan.task }
}

/// Two boards, each with two of the classes, two rounds; how the first one answers.
fn trained(network: &(Arc<Graph>, Arc<ModelSpec>)) -> Predictor {
    let trainer = |classes: &[u16], id| {
        let (pixels, labels) = pictures(classes, 12, u64::from(id) % 1000);
        let data = Dataset::new(Inputs::Bytes(pixels), labels, SIDE * SIDE, CLASSES).unwrap();
        LocalTrainer::new(network.clone(), data, (1, ClientId(id)), None).unwrap()
    };
    let mut host = Auxiliary(trainer(&[0, 1, 2, 3], AUXILIARY.0));
    let mut boards = [trainer(&[0, 1], 0), trainer(&[2, 3], 1)];
    let hyper = Hyper { clusters: 2, recluster: 1, ..Hyper::default() };
    let mut clients = [Cpct::enroll(&hyper, &network.1), Cpct::enroll(&hyper, &network.1)];
    let start = init(&network.0, &network.1, 1);
    let mut server = Cpct::open(&hyper, start, site(0, AUXILIARY), &mut host).unwrap();
    for round in 0..ROUNDS {
        let mut shelf = Shelf(vec![ClientId(0), ClientId(1)], BTreeMap::new());
        for (id, (board, client)) in (0..).map(ClientId).zip(boards.iter_mut().zip(&mut clients)) {
            let down = received(&hyper, &server, Cpct::configure(&hyper, &server, id));
            let fitted = Cpct::fit(&hyper, client, down, site(round, id), board).unwrap();
            *client = fitted.client;
            shelf.1.insert(id, fitted.up);
        }
        server = Cpct::aggregate(&hyper, &server, site(round, AUXILIARY), &mut shelf, &mut host).unwrap();
    }
    server = Cpct::finish(&hyper, &server, site(ROUNDS, AUXILIARY), &mut host).unwrap();
    let (me, board) = (site(ROUNDS, ClientId(0)), &mut boards[0]);
    let down = received(&hyper, &server, Cpct::offer(&hyper, &server, ClientId(0)));
    let adopted = Cpct::adopt(&hyper, &clients[0], down, me, board).unwrap();
    let adapted = Cpct::adapt(&hyper, &adopted, me, board).unwrap();
    Cpct::predictor(&hyper, &adapted, &network.1).unwrap()
}

#[test]
fn exported_streams_route_as_the_board_itself_does() {
    let labels = ["north west", "north east", "south west", "south east"].map(String::from).to_vec();
    let preprocessing = Preprocessing { mean: vec![0.4], std: vec![0.2] };
    let card =
        ModelCard { arch: "cc28".into(), input: [1, SIDE, SIDE], labels, statistics: 0, preprocessing };
    let network = arch::build(&card).unwrap();
    let predictor = trained(&network);
    let Predictor::DualStream { specialist, generalist, router } = &predictor else {
        panic!("auxiliary data give a generalist");
    };
    assert!(specialist.members.len() > 1, "the specialist is a mixture");

    let extents = [256, 1, SIDE, SIDE];
    let (pixels, _) = pictures(&[0, 1, 2, 3], 64, 99);
    let values = pixels.iter().map(|&b| (f32::from(b) / 255.0 - 0.4) / 0.2).collect();
    let batch = Tensor::new(Shape::new(extents), values);
    let expected = predictor
        .answer(&mut InProcess(nn::Extractor::new(Arc::clone(&network.0), None)), batch.view())
        .unwrap();

    for engine in engines() {
        let answer = |ensemble, role| -> Outputs {
            engine.prepare(&export(ensemble, &network.0, role).unwrap()).unwrap().run(batch.view()).unwrap()
        };
        let (own, shared) = (answer(specialist, Role::Specialist), answer(generalist, Role::Generalist));
        let features = own.features.unwrap();
        for (i, expected) in expected.iter().enumerate() {
            let (own, shared) = (own.log_probabilities.view().row(i), shared.log_probabilities.view().row(i));
            let routed = router.route(own, shared, features.view().row(i));
            let apart = routed.probabilities.iter().zip(&expected.probabilities).map(|(a, b)| (a - b).abs());
            assert!(
                apart.fold(0.0, f32::max) <= 1e-4,
                "{}, picture {i}: {routed:?} for {expected:?}",
                engine.name()
            );
            assert!((routed.weight - expected.weight).abs() <= 1e-3, "{}, picture {i}", engine.name());
        }
    }
}
