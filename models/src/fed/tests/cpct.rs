//! What `cpct` does beyond the methods it contains.
use super::fleet::{self, Fleet};
use super::toy;
use crate::fed::cpct::{Cpct, Hyper, Mixture, Profile, Prototype, Reach, RouterKind, Server};
use crate::fed::streams::{AlphaRule, Rules};
use crate::fed::{Disclosure, FedError, Method, Predictor, Router, Start};
use crate::id::ClientId;
use crate::tensor::TensorView;

fn longer() -> Hyper {
    let train = crate::fed::training::Training { epochs: 4, batch: 8, ..Default::default() };
    Hyper { clusters: 2, recluster: 2, train, ..Hyper::default() }
}

fn everybody(hyper: &Hyper) -> Fleet {
    let mut fleet = Fleet::new::<Cpct>(hyper);
    fleet.rounds(8, &[0, 1, 2, 3, 4, 5]);
    fleet.settle();
    fleet
}

/// Share of right answers of board `i` on fresh inputs of these classes, as its camera sees them.
fn accuracy(fleet: &Fleet, i: usize, classes: &[u16], predictor: &Predictor) -> f64 {
    let set = fleet::draw(classes, 40, i >= 3, 777 + i as u64);
    let inputs = set.inputs.concat();
    let answers = predictor.answer(&mut toy::Engine, TensorView::new(&[40, fleet::INPUTS], &inputs)).unwrap();
    let right = answers.iter().zip(&set.labels).filter(|(a, l)| a.class() == usize::from(**l));
    assert_eq!(fleet.boards[i].id, ClientId(i as u32));
    right.count() as f64 / 40.0
}

#[test]
fn boards_that_see_the_world_turned_are_found_in_both_profiles() {
    for profile in [Profile::PrivateHead, Profile::SharedHead] {
        let fleet = everybody(&Hyper { profile, ..longer() });
        let labels = match postcard::from_bytes(&fleet.state).unwrap() {
            Server::Backbone(state) => state.prism.assignments.labels(),
            Server::Model(state) => state.prism.assignments.labels(),
        };
        if profile == Profile::PrivateHead {
            let side = |c: u32| labels[&ClientId(c)];
            assert!(side(0) == side(1) && side(3) == side(4) && side(0) != side(3), "{labels:?}");
        }
        assert_eq!(labels.len(), 7, "the auxiliary node is clustered too");
    }
}

#[test]
fn a_board_is_right_about_its_own_world_and_answers_about_the_rest() {
    let fleet = everybody(&longer());
    let held = [[0_u16, 1], [1, 2], [2, 3]];
    for (i, held) in held.iter().enumerate() {
        let predictor = fleet.predictor(i);
        assert!(accuracy(&fleet, i, held, &predictor) > 0.9, "board {i} knows its own classes");
        let absent: Vec<u16> = (0..4).filter(|c| !held.contains(c)).collect();
        let alone = predictor.clone().routed_by(Router::Specialist);
        let routed = accuracy(&fleet, i, &absent, &predictor);
        assert!(routed >= accuracy(&fleet, i, &absent, &alone), "routing doesn't hurt on absent classes");
    }
}

#[test]
fn both_streams_and_the_smoothed_prior_come_with_a_teacher() {
    let fleet = everybody(&longer());
    let Predictor::DualStream { specialist, generalist, router } = fleet.predictor(0) else {
        panic!("one stream")
    };
    let sum = |e: &crate::fed::Ensemble| e.members.iter().map(|m| m.share).sum::<f32>();
    assert!((sum(&specialist) - 1.0).abs() < 1e-6 && (sum(&generalist) - 1.0).abs() < 1e-6);
    assert!(matches!(router, Router::Familiarity { epsilon, .. } if epsilon == 0.03));
    assert_eq!(generalist.members.len(), 1, "the shared model and the teacher head");
    assert!(fleet.predictor(0).smoothed_prior().is_some());
}

#[test]
fn without_auxiliary_data_there_is_no_generalist_and_boards_keep_their_own_heads() {
    let spec = toy::spec(&[fleet::INPUTS, 8, fleet::CLASSES], 0);
    let mut fleet = Fleet::on::<Cpct>(&longer(), &spec, fleet::boards(&spec), None, toy::init(&spec, 11));
    fleet.rounds(4, &[0, 1, 2, 3]);
    fleet.settle();
    assert!(matches!(fleet.predictor(0), Predictor::Single(_)));
    assert!(fleet.answers(5).iter().all(|r| r.probabilities.iter().all(|p| p.is_finite())));
}

#[test]
fn a_stranger_compares_every_cluster_part_and_a_known_board_gets_its_mix() {
    let mut fleet = Fleet::new::<Cpct>(&longer());
    fleet.rounds(4, &[0, 1, 3, 4]);
    let task = |to: u32| -> super::super::cpct::Task {
        let plan = fleet.method.offer(&fleet.hyper, &fleet.state, ClientId(to)).unwrap();
        postcard::from_bytes(&plan.task).unwrap()
    };
    assert!(task(5).each && !task(0).each);
    assert_eq!(task(5).mix.len(), 2);
    let top = Hyper { top: 1, ..longer() };
    let hyper = postcard::to_stdvec(&top).unwrap();
    let plan = fleet.method.configure(&hyper, &fleet.state, ClientId(0)).unwrap();
    assert_eq!(plan.parts.len(), 3, "global, one cluster, the teacher head");
}

#[test]
fn a_start_from_the_mix_is_said_and_every_start_before_the_first_clustering_is_global() {
    let hyper = Hyper { client_choice: false, ..longer() };
    let mut fleet = Fleet::new::<Cpct>(&hyper);
    fleet.rounds(3, &[0, 1, 2, 3, 4, 5]);
    for (round, _, up) in &fleet.sent {
        assert_eq!(up.start(), if *round < 2 { Start::Global } else { Start::Mix });
    }
}

#[test]
fn every_switch_runs_in_both_profiles() {
    let streams =
        Rules { private_delta: true, specialist: true, alpha_rule: AlphaRule::Choice, ..Rules::default() };
    let variants = [
        Hyper { streams, ..longer() },
        Hyper { mixture: Mixture::Lite, ..longer() },
        Hyper { mixture: Mixture::Full, streams, ..longer() },
        Hyper { mixture: Mixture::None, router: RouterKind::Fedprism, streams, ..longer() },
        Hyper { teacher_start: false, ..longer() },
        Hyper { distill: 0.3, proximal: 0.01, ..longer() },
        Hyper { recalibrate: super::super::cpct::Recalibrate::Every, ..longer() },
        Hyper { prior_correction: false, tail: 0.0, aux_node: false, ..longer() },
        Hyper { top: 1, router: RouterKind::Specialist, ..longer() },
    ];
    for profile in [Profile::PrivateHead, Profile::SharedHead] {
        for hyper in &variants {
            let fleet = Fleet::new::<Cpct>(&Hyper { profile, ..hyper.clone() }).run();
            for i in 0..6 {
                let sums = fleet.answers(i).into_iter().map(|r| r.probabilities.iter().sum::<f32>());
                assert!(sums.into_iter().all(|s| (s - 1.0).abs() < 1e-3), "{hyper:?}");
            }
        }
    }
}

#[test]
fn profiles_disclose_what_they_upload_and_contradictions_are_refused() {
    assert_eq!(Cpct::discloses(&Hyper::default()), Disclosure::Backbone);
    assert_eq!(
        Cpct::discloses(&Hyper { profile: Profile::SharedHead, ..Hyper::default() }),
        Disclosure::FullModel
    );
    let weights = Hyper { prototype: Some(Prototype::Weights), ..Hyper::default() };
    assert_eq!(Cpct::discloses(&weights), Disclosure::FullModel);
    let refused = |hyper: Hyper, named| {
        let error = Cpct::check(&hyper).unwrap_err();
        assert!(matches!(error, FedError::Hyper { name, .. } if name == named), "{error}");
    };
    refused(Hyper { prototype: Some(Prototype::Head), ..Hyper::default() }, "prototype");
    refused(Hyper { epsilon: f32::NAN, ..Hyper::default() }, "epsilon");
    refused(Hyper { scope: Some(Reach::Backbone), clusters: 0, ..Hyper::default() }, "clusters");
    let learned = Rules { alpha_rule: AlphaRule::Distance, ..Hyper::default().streams };
    refused(Hyper { streams: learned, ..Hyper::default() }, "prototype");
}

/// A head recalibrated on a part that sees the world turned would be wrong (science §9.2 point 3): the calibrated head is made on the
/// global part, and boards on a cluster part get the raw one.
#[test]
fn the_calibrated_head_is_the_teacher_fitted_on_the_global_part() {
    let fleet = everybody(&longer());
    let parts = fleet.method.parts(&fleet.hyper, &fleet.state).unwrap();
    let (global, raw, calibrated) = (&parts[0].1, &parts[4].1, &parts[5].1);
    let backbone = crate::params::Backbone::new(fleet.spec.clone(), global.clone()).unwrap();
    let seat = |head: &Vec<f32>| {
        let head = crate::params::Head::new(fleet.spec.clone(), head.clone()).unwrap();
        crate::params::Params::join(&backbone, &head)
    };
    use crate::nn::{Split, Trainer};
    let mut aux = fleet::auxiliary(&fleet.spec);
    let mut loss = |head| aux.evaluate(&seat(head), &[], Split::Train).unwrap().loss;
    assert!(loss(calibrated) < loss(raw));
}
