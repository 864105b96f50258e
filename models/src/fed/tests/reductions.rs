//! Methods are special cases of one another, to the bit (methods §8.8, science §5).
use super::fleet::{self, Fleet};
use super::toy;
use crate::fed::adapt::{Adapt, Adaptation};
use crate::fed::conditioning::Conditioning;
use crate::fed::cpct::{ColumnsTrainedBy, Cpct, Hyper, Mixture, Prototype, Reach, Recalibrate, RouterKind};
use crate::fed::streams::{AlphaRule, Rules};
use crate::fed::{Method, conditional, fedavg, fedper, fedprism, local, pfedkdh};
use crate::stats::Statistic;

/// `cpct` with every switch off, sharing the whole model.
fn off() -> Hyper {
    Hyper {
        scope: Some(Reach::Whole),
        prototype: Some(Prototype::Head),
        teacher_start: false,
        clusters: 1,
        recluster: 2,
        prior_correction: false,
        aux_node: false,
        recalibrate: Recalibrate::Never,
        tail: 0.0,
        mixture: Mixture::None,
        router: RouterKind::None,
        ..Hyper::default()
    }
}

/// The same with a private head.
fn private() -> Hyper {
    Hyper { scope: Some(Reach::Backbone), prototype: Some(Prototype::Projection), ..off() }
}

fn ea(kind: Adapt) -> Adaptation {
    Adaptation { kind, ..Adaptation::default() }
}

fn same<A: Method, B: Method>(a: &A::Hyper, b: &B::Hyper) {
    let (a, b) = (Fleet::new::<A>(a).run(), Fleet::new::<B>(b).run());
    assert!(a.bits().len() > 100);
    assert_eq!(a.bits(), b.bits(), "{} and {}", A::NAME, B::NAME);
}

#[test]
fn pfedkdh_without_teacher_and_pull_is_fedper() {
    let hyper = pfedkdh::Hyper { distill: 0.0, proximal: 0.0, ..pfedkdh::Hyper::default() };
    same::<pfedkdh::PFedKdh, fedper::FedPer>(&hyper, &fedper::Hyper::default());
}

#[test]
fn fedprism_with_one_cluster_and_nothing_personal_is_fedavg() {
    let streams = Rules { private_delta: false, specialist: false, ..Rules::default() };
    let hyper = fedprism::Hyper { clusters: 1, recluster: 2, streams, ..fedprism::Hyper::default() };
    same::<fedprism::FedPrism, fedavg::FedAvg>(&hyper, &fedavg::Hyper::default());
}

#[test]
fn conditional_on_nothing_is_fedavg() {
    same::<conditional::Conditional, fedavg::FedAvg>(
        &conditional::Hyper::default(),
        &fedavg::Hyper::default(),
    );
}

#[test]
fn cpct_with_everything_off_is_fedavg_with_and_without_adaptation() {
    same::<Cpct, fedavg::FedAvg>(&off(), &fedavg::Hyper::default());
    let adapted = Hyper { mixture: Mixture::Ea, ..off() };
    same::<Cpct, fedavg::FedAvg>(
        &adapted,
        &fedavg::Hyper { adapt: ea(Adapt::Ea), ..fedavg::Hyper::default() },
    );
}

#[test]
fn cpct_with_a_private_head_alone_is_fedper_with_and_without_adaptation() {
    same::<Cpct, fedper::FedPer>(&private(), &fedper::Hyper::default());
    let adapted = Hyper { mixture: Mixture::Ea, ..private() };
    same::<Cpct, fedper::FedPer>(
        &adapted,
        &fedper::Hyper { adapt: ea(Adapt::Ea), ..fedper::Hyper::default() },
    );
}

#[test]
fn cpct_with_a_private_head_and_the_auxiliary_node_is_fedper_with_that_node() {
    let node = fedper::Hyper { aux_node: true, ..fedper::Hyper::default() };
    same::<Cpct, fedper::FedPer>(&Hyper { aux_node: true, ..private() }, &node);
}

#[test]
fn cpct_with_a_private_head_teacher_and_pull_is_pfedkdh() {
    let hyper = Hyper {
        distill: 0.5,
        distill_temperature: 2.0,
        proximal: 0.01,
        recalibrate: Recalibrate::Every,
        calibration_epochs: 3,
        ..private()
    };
    same::<Cpct, pfedkdh::PFedKdh>(&hyper, &pfedkdh::Hyper::default());
    let adapted = pfedkdh::Hyper { adapt: ea(Adapt::Ea), ..pfedkdh::Hyper::default() };
    same::<Cpct, pfedkdh::PFedKdh>(&Hyper { mixture: Mixture::Ea, ..hyper }, &adapted);
}

#[test]
fn cpct_with_clusters_private_delta_specialist_and_confidence_is_fedprism() {
    for alpha_rule in [AlphaRule::Distance, AlphaRule::Loss, AlphaRule::Gradient] {
        let streams = Rules { alpha_rule, ..Rules::default() };
        let hyper = Hyper {
            clusters: 2,
            prototype: Some(Prototype::Weights),
            streams,
            router: RouterKind::Fedprism,
            ..off()
        };
        let prism = fedprism::Hyper { clusters: 2, recluster: 2, streams, ..fedprism::Hyper::default() };
        same::<Cpct, fedprism::FedPrism>(&hyper, &prism);
    }
}

#[test]
fn cpct_with_statistics_trained_by_boards_is_conditional() {
    let spec = toy::spec(&[fleet::INPUTS, 8, fleet::CLASSES], 6);
    for kind in [Statistic::V1, Statistic::V2, Statistic::Random] {
        let statistics = Conditioning { kind, clusters: Vec::new() };
        let hyper = Hyper { statistics: statistics.clone(), columns: ColumnsTrainedBy::Boards, ..off() };
        let (world, aux, init) =
            (|| fleet::boards(&spec), || Some(fleet::auxiliary(&spec)), || toy::init(&spec, 11));
        let a = Fleet::on::<Cpct>(&hyper, &spec, world(), aux(), init()).run();
        let there = conditional::Hyper { statistics, ..conditional::Hyper::default() };
        let b = Fleet::on::<conditional::Conditional>(&there, &spec, world(), aux(), init()).run();
        assert_eq!(a.bits(), b.bits(), "{kind:?}");
    }
}

#[test]
fn cpct_with_a_specialist_that_is_always_heard_is_local() {
    let streams = Rules { private_delta: false, alpha_rule: AlphaRule::Choice, ..Rules::default() };
    let hyper = Hyper { streams, router: RouterKind::Specialist, ..off() };
    let (a, b) =
        (Fleet::new::<Cpct>(&hyper).run(), Fleet::new::<local::Local>(&local::Hyper::default()).run());
    for i in 0..6 {
        let (specialist, alone) = (a.answers(i), b.answers(i));
        let bits = |r: &[crate::fed::Routed]| {
            r.iter().flat_map(|r| r.probabilities.clone()).map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(bits(&specialist), bits(&alone));
    }
}
