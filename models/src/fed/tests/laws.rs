//! What holds for every method there is.
use super::fleet::{self, Fleet};
use super::toy;
use crate::fed::conditioning::Conditioning;
use crate::fed::cpct;
use crate::fed::erased::{METHODS, method};
use crate::fed::streams::{AlphaRule, Rules};
use crate::fed::training::Training;
use crate::fed::{Disclosure, Extent, FedError, Site};
use crate::id::RoundId;
use crate::nn::{Loss, Trainer};
use crate::params::Mask;
use crate::stats::Statistic;
use crate::tensor::rng::Purpose;
use std::collections::BTreeSet;

fn each(law: impl Fn(&'static str)) {
    METHODS.iter().for_each(|m| law(m.name()));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    each(|name| {
        let (a, b) = (Fleet::named(name).run(), Fleet::named(name).run());
        assert_eq!(a.state, b.state, "{name}");
        assert_eq!(a.clients, b.clients, "{name}");
    });
}

#[test]
fn the_order_in_which_updates_arrive_can_not_show() {
    each(|name| {
        let mut other = Fleet::named(name);
        other.backwards = true;
        assert_eq!(Fleet::named(name).run().state, other.run().state, "{name}");
    });
}

#[test]
fn an_update_that_gets_lost_is_as_if_it_had_not_been_asked_for() {
    each(|name| {
        let mut dropping = Fleet::named(name);
        dropping.lost = vec![dropping.boards[2].id];
        dropping.round(&[0, 2, 3]);
        let mut without = Fleet::named(name);
        without.round(&[0, 3]);
        assert_eq!(dropping.state, without.state, "{name}");
    });
}

/// Methods §10.2.
#[test]
fn fedavg_with_one_board_is_that_board_training_alone() {
    let mut fleet = Fleet::named("fedavg");
    let mut own = toy::init(&fleet.spec, 11);
    for round in 0..3 {
        fleet.round(&[4]);
        let everything = Mask::all(&fleet.spec);
        let site = Site { seed: 11, round: RoundId(round), client: fleet.boards[4].id };
        let train = Training::default();
        let job = train.job(&everything, site.key(Purpose::Batches), Loss::default(), &[]);
        own = fleet.boards[4].train(&own, &job).unwrap().params;
    }
    let shared = &fleet.method.parts(&fleet.hyper, &fleet.state).unwrap()[0].1;
    assert!(shared.iter().zip(own.values()).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn a_cohort_of_one_is_enough() {
    each(|name| {
        let mut fleet = Fleet::named(name);
        fleet.rounds(3, &[4]);
        fleet.settle();
        assert!(fleet.answers(4).iter().all(|r| r.probabilities.iter().all(|p| p.is_finite())), "{name}");
        let sums = fleet.answers(1).into_iter().map(|r| r.probabilities.iter().sum::<f32>());
        assert!(sums.into_iter().all(|s| (s - 1.0).abs() < 1e-4), "{name}: a late board answers too");
    });
}

#[test]
fn what_leaves_a_board_is_what_the_method_says() {
    each(|name| {
        let fleet = Fleet::named(name).run();
        let (extent, prototype) = fleet.method.uplink(&fleet.hyper, &fleet.spec).unwrap();
        let discloses = fleet.method.discloses(&fleet.hyper).unwrap();
        for (_, id, up) in &fleet.sent {
            assert_eq!(up.coverage(), extent.into(), "{name}");
            assert_eq!(up.values().len(), extent.len(&fleet.spec), "{name}");
            assert!(up.prototype().is_empty() || up.prototype().len() == prototype, "{name}");
            let own = fleet.boards[id.0 as usize].counts.total();
            assert_eq!(up.samples(), if discloses == Disclosure::Nothing { 1 } else { own }, "{name}");
        }
        if discloses <= Disclosure::Backbone {
            assert!(extent == Extent::Backbone && prototype == 0, "{name}");
        }
    });
}

/// Every number in a board's private state, wherever it stands: none of them is in anything the board sent.
fn assert_nothing_kept_was_sent(fleet: &Fleet, name: &str) {
    let sent: BTreeSet<u32> =
        fleet.sent.iter().flat_map(|(_, _, up)| up.values()).map(|v| v.to_bits()).collect();
    let number = |window: &[u8]| f32::from_le_bytes([window[0], window[1], window[2], window[3]]);
    let kept = fleet.clients.iter().flat_map(|state| state.windows(4)).map(number);
    let leaked = kept.filter(|v| (1e-3..100.0).contains(&v.abs()) && sent.contains(&v.to_bits()));
    assert_eq!(leaked.count(), 0, "{name}");
}

#[test]
fn no_number_that_a_board_keeps_is_in_an_update() {
    each(|name| {
        let mut fleet = Fleet::named(name);
        fleet.rounds(3, &[0, 1, 2, 3, 4, 5]);
        assert_nothing_kept_was_sent(&fleet, name);
    });
}

#[test]
fn no_number_that_a_board_keeps_is_in_an_update_with_everything_personal_switched_on() {
    let spec = toy::spec(&[fleet::INPUTS, 8, fleet::CLASSES], 6);
    let streams = Rules { alpha_rule: AlphaRule::Choice, ..Rules::default() };
    let statistics = Conditioning { kind: Statistic::V2, clusters: Vec::new() };
    let hyper =
        cpct::Hyper { streams, statistics, teacher_start: false, recluster: 1, ..cpct::Hyper::default() };
    let (boards, aux, init) = (fleet::boards(&spec), fleet::auxiliary(&spec), toy::init(&spec, 11));
    let mut fleet = Fleet::on::<cpct::Cpct>(&hyper, &spec, boards, Some(aux), init);
    fleet.rounds(3, &[0, 1, 2, 3, 4, 5]);
    assert_nothing_kept_was_sent(&fleet, "cpct");
}

#[test]
fn bytes_that_are_too_many_or_too_few_are_refused_by_name() {
    each(|name| {
        let (method, fleet) = (method(name).unwrap(), Fleet::named(name));
        for broken in [[&fleet.state[..], &[0]].concat(), fleet.state[..fleet.state.len() - 1].to_vec()] {
            let refused = method.parts(&fleet.hyper, &broken).unwrap_err();
            assert!(matches!(refused, FedError::Decode { what: "host state", .. }), "{name}: {refused}");
        }
        let mut hyper = fleet.hyper.clone();
        hyper.push(1);
        assert!(
            matches!(method.check(&hyper), Err(FedError::Decode { what: "hyper-parameters", .. })),
            "{name}"
        );
    });
}

#[test]
fn a_name_that_nobody_has_is_answered_with_those_there_are() {
    let refused = method("fedmagic").err().unwrap().to_string();
    assert!(METHODS.iter().all(|m| refused.contains(m.name())), "{refused}");
}
