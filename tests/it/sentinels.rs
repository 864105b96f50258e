//! What never leaves a board: sentinels stand in every private tensor, every byte that the board sends is recorded above TLS,
//! and none of them is there, in any form.
use edge_client::agent::{Agent, Means, Until, Uptime};
use edge_client::personal::Personal;
use edge_client::secret::Secret;
use edge_client::store::Store;
use edge_client::train::Workshop;
use edge_client::transport::{Call, CallError, HostClock, Https, Link, Transport, Trust};
use models::data::{Elements, Inputs, Samples};
use models::nn::arch;
use models::params::ModelSpec;
use models::round::Ceilings;
use models::wire::{Endpoint, open_update, split_submit};
use onnx::{Built, build};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use workspace_tests::fleet::{Board, Fleet, SIDE, Setup};
use workspace_tests::pictures::picture;
use workspace_tests::root;
use workspace_tests::sentinel::{Private, Record, plant, read};

/// Classes of the board's samples, a different number of each, in no regular order.
fn classes() -> Vec<u16> {
    (0..40_usize)
        .map(|i| [0, 0, 1, 0, 2, 0, 1, 3][i * 5 % 8] + u16::from(i % 13 == 5))
        .map(|c| c.min(3))
        .collect()
}

fn counts() -> Vec<u32> {
    (0..4).map(|class| classes().iter().filter(|c| **c == class).count() as u32).collect()
}

/// All that went out, and the private state at each update.
#[derive(Debug, Default)]
struct Heard {
    bytes: Vec<u8>,
    states: BTreeSet<Vec<u8>>,
    updates: Vec<Vec<u8>>,
}

/// The production transport, overheard.
struct Overheard {
    https: Https,
    dir: PathBuf,
    heard: Arc<Mutex<Heard>>,
}

impl Transport for Overheard {
    fn call(&mut self, call: Call<'_>) -> Result<Vec<u8>, CallError> {
        let mut heard = self.heard.lock().unwrap();
        heard.bytes.extend(call.path().bytes().chain(call.body.iter().copied()));
        if call.endpoint == Endpoint::UPDATE {
            heard.updates.push(call.body.to_vec());
        }
        heard.states.insert(Store::peek(&self.dir).unwrap().personal.learned.expose().to_vec());
        drop(heard);
        self.https.call(call)
    }

    fn host(&self) -> String {
        self.https.host()
    }
}

/// What a board trains.
fn network(board: &Board) -> Built {
    let card = Store::peek(&board.dir).unwrap().model.unwrap();
    build(&card, Store::network(&board.dir).unwrap().as_deref()).unwrap()
}

/// Takes part until the end, in this process.
fn take_part(board: &Board, side: usize) -> Heard {
    let mut store = Store::open(&board.dir).unwrap();
    let (identity, member) =
        store.record().enrolled(&board.dir).map(|(i, m)| (i.clone(), m.clone())).unwrap();
    let trust = Trust::Member {
        authority: member.authority,
        certificate: member.certificate,
        key: identity.key.clone(),
    };
    let clock = HostClock::new(0);
    let https = Https::new(identity.host.parse().unwrap(), &trust, &clock, Duration::from_secs(60)).unwrap();
    let heard = Arc::new(Mutex::new(Heard::default()));
    let overheard = Overheard { https, dir: board.dir.clone(), heard: Arc::clone(&heard) };
    let mut link = Link::new(Box::new(overheard), clock);
    let Built { graph, spec, .. } = network(board);
    let pixels = classes().iter().enumerate().flat_map(|(n, &class)| picture(1, n, class, side)).collect();
    let inputs = Inputs::new([1, side, side], Elements::U8(pixels)).unwrap();
    let samples = Samples::new(inputs, classes()).unwrap();
    let mut workshop = Workshop::new((graph, spec), samples, member.client, NonZeroUsize::MIN).unwrap();
    let mut agent = Agent {
        cache: store.blobs(1 << 24),
        store: &mut store,
        link: &mut link,
        workshop: &mut workshop,
        ceilings: Ceilings::default(),
        means: Means { minutes: 60, memory: 1 << 30 },
        clock: &Uptime::default(),
        log: &mut |line| eprintln!("{line}"),
    };
    agent.run(Until::Finished, 1).unwrap();
    let mut heard = std::mem::take(&mut *heard.lock().unwrap());
    let personal = &store.record().personal;
    heard.states.extend([personal.learned.expose().to_vec(), personal.adapted.expose().to_vec()]);
    heard
}

/// A first run fills every private tensor there is; then sentinels take their places, and the board goes through a second
/// run of another host, overheard.
fn nothing_leaks(setup: &Setup, codec: &str) {
    let (method, side) = (setup.method, setup.side);
    let set = setup.set.iter().cloned().chain([format!("rounds.codec={codec}")]).collect();
    let setup = Setup { boards: 1, rounds: 2, set, ..setup.clone() };
    let (first, second) = (Fleet::new(&setup), Fleet::new(&setup));
    let (_one, _two) = (first.serve(), second.serve());
    let board = first.enroll("kitchen", &classes());
    take_part(&board, side);
    let filled = Store::peek(&board.dir).unwrap().personal;
    let (learned, mut private) = plant(method, filled.learned.expose());
    let (adapted, more) = plant(method, filled.adapted.expose());
    private.tensors.extend(more.tensors);
    let again = second.enroll("kitchen", &classes());
    Store::open(&again.dir)
        .unwrap()
        .update(|record| record.personal = planted(filled, learned, adapted))
        .unwrap();
    let heard = take_part(&again, side);
    assert_eq!(heard.updates.len(), 2, "{method}: it took part in both rounds");
    check(method, &heard, private, &network(&again).spec);
}

/// On the perceptron, in every coding.
fn nothing_leaks_in_any_coding(method: &'static str, set: &[&str]) {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    for codec in ["f32", "bf16", "int8-row"] {
        nothing_leaks(&Setup { method, set: set.clone(), ..Setup::default() }, codec);
    }
}

fn planted(filled: Personal, learned: Vec<u8>, adapted: Vec<u8>) -> Personal {
    Personal {
        learned: Secret::new(learned),
        adapted: Secret::new(adapted),
        held: None,
        pending: None,
        ..filled
    }
}

fn check(method: &str, heard: &Heard, mut private: Private, spec: &ModelSpec) {
    for state in heard.states.iter().filter(|state| !state.is_empty()) {
        private.tensors.extend(read(method, state).tensors);
    }
    assert!(
        private.tensors.iter().any(|(_, t)| t.len() >= spec.len() - spec.backbone_len()),
        "{method}: no head?"
    );
    let counts = counts();
    let shares = counts.iter().map(|&n| n as f32 / 40.0).collect::<Vec<_>>();
    let logs = shares.iter().map(|s| s.ln()).collect::<Vec<_>>();
    private.tensors.extend([("shares".to_owned(), shares), ("log shares".to_owned(), logs)]);
    let mut seen = BTreeSet::new();
    private.tensors.retain(|(_, tensor)| seen.insert(tensor.iter().map(|v| v.to_bits()).collect::<Vec<_>>()));
    let record = Record::new(heard.bytes.clone());
    for body in &heard.updates {
        let (_, sealed) = split_submit(body).unwrap();
        let (_, sent) = open_update(sealed, spec).unwrap();
        // What came as `bf16` is rounder than anything that is looked for: below it stands what was cut off.
        let unrounded: Vec<f32> = sent.values().iter().map(|v| f32::from_bits(v.to_bits() | 0x123)).collect();
        let found = [sent.values(), &unrounded].into_iter().any(|v| record.leaks(v, spec).is_some());
        assert!(found, "{method}: what does leave is found");
    }
    assert_eq!(record.found(&private, spec), Vec::<String>::new(), "{method} sent what is private");
    let labels: Vec<u32> = classes().iter().map(|&c| c.into()).collect();
    assert!(
        !record.counts(&counts) && !labels.windows(8).any(|w| record.counts(w)),
        "{method} sent labels or counts"
    );
}

#[test]
fn cpct_sends_nothing_private() {
    nothing_leaks_in_any_coding("cpct", &[]);
}

#[test]
fn cpct_with_its_own_head_and_every_private_part_sends_nothing_private() {
    let streams = "method.hyper.streams={ private_delta = true, specialist = true, alpha_rule = 'choice' }";
    nothing_leaks_in_any_coding(
        "cpct",
        &["method.hyper.teacher_start=false", "method.hyper.mixture=full", streams],
    );
}

#[test]
fn cpct_with_statistics_sends_nothing_private() {
    for (kind, codec) in [("v1", "f32"), ("v2", "int8-row")] {
        let set = vec!["model.statistics=8".into(), format!("method.hyper.statistics.kind={kind}")];
        nothing_leaks(&Setup { arch: "cc28", side: 28, set, ..Setup::default() }, codec);
    }
}

#[test]
fn a_network_that_was_brought_along_with_statistics_sends_nothing_private() {
    let file = root().join("tests/golden/imported/conditioned.onnx");
    let set = vec!["method.hyper.statistics.kind=v2".into()];
    nothing_leaks(&Setup { model: Some((file, "head")), set, ..Setup::default() }, "f32");
}

#[test]
fn fedper_sends_nothing_private() {
    nothing_leaks_in_any_coding("fedper", &[]);
}

#[test]
fn pfedkdh_sends_nothing_private() {
    nothing_leaks_in_any_coding("pfedkdh", &[]);
}

#[test]
fn what_leaks_is_found_in_every_form() {
    let card = models::params::ModelCard {
        arch: "mlp".into(),
        input: [1, SIDE, SIDE],
        labels: vec!["a".into(), "b".into(), "c".into(), "d".into()],
        statistics: 0,
        preprocessing: models::params::Preprocessing::none(1),
    };
    let spec = arch::build(&card).unwrap().1;
    let extent = models::fed::Extent::Head;
    let head = workspace_tests::hashed::weights(77, extent.len(&spec), 0.05);
    for (codec, form) in [
        (models::wire::Codec::F32, "f32"),
        (models::wire::Codec::Bf16, "bf16"),
        (models::wire::Codec::Int8Row, "int8-row"),
    ] {
        let mut bytes = vec![7; 100];
        bytes.extend(models::wire::encode(codec, &spec, extent, &head));
        let record = Record::new(bytes);
        let found = record.leaks(&head, &spec);
        // Biases stay `f32` in the quantised form, so that either is a finding.
        assert!(found == Some(form) || found == Some("f32"), "{form}: {found:?}");
    }
    let text = Record::new(format!("head: {}, …", head[3]).into_bytes());
    assert_eq!(text.leaks(&head, &spec), Some("text"));
    assert_eq!(Record::new(vec![7; 10_000]).leaks(&head, &spec), None);
    assert!(Record::new(vec![1, 23, 9, 5, 3]).counts(&[23, 9, 5, 3]));
}
