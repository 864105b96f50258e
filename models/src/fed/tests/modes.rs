//! Boards that train different parts of the model, together.
use super::fleet::{self, Fleet};
use super::toy;
use crate::fed::cpct::{Cpct, Hyper, Profile, Server};
use crate::fed::erased::METHODS;
use crate::fed::{Coverage, Extent};
use crate::id::ClientId;
use crate::params::UpdateMode;

/// A world with a backbone of two layers, so that some of it can be left out.
fn world(name: &str, modes: &[&str]) -> Fleet {
    let spec = toy::spec(&[fleet::INPUTS, 8, 5, fleet::CLASSES], 0);
    let mut fleet = Fleet::named_on(name, &spec);
    for (mine, text) in fleet.modes.iter_mut().zip(modes) {
        *mine = text.parse().unwrap();
    }
    fleet
}

const MIXED: [&str; 6] = ["full", "last:2", "bias", "last:2", "bias", "full"];

#[test]
fn every_method_takes_boards_of_every_mode_and_an_update_says_what_it_covers() {
    for name in METHODS.iter().map(|m| m.name()) {
        let fleet = world(name, &MIXED).run();
        for (_, id, up) in &fleet.sent {
            let mode = fleet.modes[id.0 as usize];
            assert_eq!(up.coverage().mode, mode, "{name}");
            let (mask, backbone) = (up.coverage().mask(&fleet.spec), Extent::Backbone.len(&fleet.spec));
            for (index, entry) in fleet.spec.entries().iter().enumerate() {
                let sent = entry.range.end <= backbone || up.coverage().extent == Extent::Model;
                let moved = sent && up.values()[entry.range.clone()].iter().any(|v| *v != 0.0);
                assert!(mask.has(index) || !moved, "{name}, {mode}: {} moved", entry.name);
            }
            let trained_head = [UpdateMode::Full, "last:2".parse().unwrap()].contains(&mode);
            assert!(up.prototype().is_empty() || trained_head, "{name}, {mode}");
        }
        let finite = (0..6).flat_map(|i| fleet.answers(i)).flat_map(|r| r.probabilities);
        assert!(finite.into_iter().all(f32::is_finite), "{name}");
    }
}

#[test]
fn the_order_in_which_updates_of_different_modes_arrive_can_not_show() {
    for name in METHODS.iter().map(|m| m.name()) {
        let mut other = world(name, &MIXED);
        other.backwards = true;
        assert_eq!(world(name, &MIXED).run().state, other.run().state, "{name}");
    }
}

/// One round of FedAvg, by hand: each entry is the start and the mean of what those sent who covered it.
#[test]
fn a_round_of_mixed_modes_is_the_mean_of_each_entry_over_those_that_cover_it() {
    let mut fleet = world("fedavg", &["last:1", "bias", "last:2"]);
    let shared = |fleet: &Fleet| fleet.method.parts(&fleet.hyper, &fleet.state).unwrap()[0].1.clone();
    let before = shared(&fleet);
    fleet.round(&[0, 1, 2]);
    let (after, spec) = (shared(&fleet), fleet.spec.clone());
    let mut seen = [0_u32; 4];
    for (index, entry) in spec.entries().iter().enumerate() {
        let by: Vec<_> = fleet.sent.iter().filter(|(.., up)| up.coverage().mask(&spec).has(index)).collect();
        seen[by.len()] += 1;
        let weight: f64 = by.iter().map(|(.., up)| f64::from(up.samples())).sum();
        for at in entry.range.clone() {
            let sum: f64 =
                by.iter().map(|(.., up)| f64::from(up.values()[at]) * f64::from(up.samples())).sum();
            let expected = f64::from(before[at]) + if by.is_empty() { 0.0 } else { sum / weight };
            assert!((f64::from(after[at]) - expected).abs() < 1e-7, "{}", entry.name);
            assert!(!by.is_empty() || after[at].to_bits() == before[at].to_bits(), "{}", entry.name);
        }
    }
    assert_eq!(seen, [1, 2, 2, 1], "the first weight is covered by nobody, the head's bias by all");
}

#[test]
fn a_board_that_alone_covers_a_layer_moves_it_alone() {
    for name in ["fedavg", "fedper", "pfedkdh", "cpct"] {
        let mut fleet = world(name, &["bias", "full", "bias"]);
        fleet.round(&[0, 1, 2]);
        let (mut alone, spec) = (world(name, &["full"; 6]), fleet.spec.clone());
        alone.round(&[1]);
        let part = |fleet: &Fleet| fleet.method.parts(&fleet.hyper, &fleet.state).unwrap()[0].1.clone();
        let (mixed, one) = (part(&fleet), part(&alone));
        let weight = spec.entry("fc1.weight").unwrap().range.clone();
        let bias = spec.entry("fc1.bias").unwrap().range.clone();
        assert_eq!(mixed[weight.clone()], one[weight], "{name}");
        assert_ne!(mixed[bias.clone()], one[bias], "{name}");
    }
}

fn prism(fleet: &Fleet) -> (Vec<ClientId>, Vec<f32>) {
    let of = |assignments: &crate::fed::cluster::Assignments| {
        let known = assignments.labels().into_keys().collect();
        (known, assignments.of(ClientId(3)).map(<[f32]>::to_vec).unwrap_or_default())
    };
    match postcard::from_bytes(&fleet.state).unwrap() {
        Server::Backbone(state) => of(&state.prism.assignments),
        Server::Model(state) => of(&state.prism.assignments),
    }
}

/// A board whose update doesn't cover the layer that clusters are found by stays what it was: unknown, or where it was last.
#[test]
fn without_a_prototype_a_board_keeps_its_last_assignment() {
    for profile in [Profile::PrivateHead, Profile::SharedHead] {
        let hyper = Hyper { profile, clusters: 2, recluster: 2, ..Hyper::default() };
        let mut fleet = Fleet::new::<Cpct>(&hyper);
        fleet.modes[0] = UpdateMode::Bias;
        fleet.rounds(2, &[0, 1, 2, 3, 4, 5]);
        let (known, share) = prism(&fleet);
        let expected: Vec<ClientId> = (1..6).map(ClientId).chain([crate::id::AUXILIARY]).collect();
        assert_eq!(known, expected, "{profile:?}: the board of biases is not known, the auxiliary node is");
        fleet.modes[3] = UpdateMode::Bias;
        let state = fleet.state.clone();
        fleet.round(&[0, 3]);
        assert_eq!(prism(&fleet), (known, share), "{profile:?}: nothing is clustered in between");
        assert_ne!(fleet.state, state, "but the round counts");
        fleet.round(&[0, 3]);
        assert!(prism(&fleet).0.contains(&ClientId(3)), "{profile:?}: its last prototype still counts");
        fleet.settle();
        assert!(fleet.answers(0).iter().all(|r| r.probabilities.iter().all(|p| p.is_finite())));
    }
}

/// It takes no part, and still takes the model over and adapts what it may.
#[test]
fn a_board_of_the_head_alone_adapts_its_head_and_nothing_else() {
    let mut fleet = world("fedper", &["full", "full", "head"]);
    let hyper = crate::fed::fedper::Hyper {
        adapt: crate::fed::adapt::Adaptation {
            kind: crate::fed::adapt::Adapt::Finetune,
            ..Default::default()
        },
        ..Default::default()
    };
    fleet.hyper = postcard::to_stdvec(&hyper).unwrap();
    fleet.rounds(3, &[0, 1]);
    fleet.settle();
    let backbone = fleet.method.parts(&fleet.hyper, &fleet.state).unwrap()[0].1.clone();
    let own = |i: usize| {
        let client: crate::fed::personal::Client = postcard::from_bytes(&fleet.clients[i]).unwrap();
        client.model.unwrap().backbone().into_values()
    };
    assert_eq!(own(2), backbone, "fine-tuning stays above the ceiling");
    assert_ne!(own(0), backbone);
    let nothing = Coverage { extent: Extent::Model, mode: UpdateMode::Head };
    assert!(!nothing.is_possible(&fleet.spec));
}
