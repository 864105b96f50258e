//! The decisions about clusters that public code gets wrong (methods §4.5), and FedPrism's other rules.
use super::fleet::{Fleet, INPUTS};
use crate::fed::cluster::{Assignments, Clustering, centred, k_means, matched};
use crate::fed::fedprism::{FedPrism, Hyper, Server};
use crate::fed::tail::TailMean;
use crate::id::ClientId;
use crate::tensor::rng::{Key, Purpose};

fn clustering(seed: u64) -> Clustering {
    Clustering { clusters: 2, temperature: 0.1, key: Key::new(seed, Purpose::Cluster) }
}

/// Prototypes of six clients in two groups, behind a large part that all share.
fn prototype(client: u32, drift: f32) -> Vec<f32> {
    let side = if client < 3 { 1.0 } else { -1.0 };
    let mut own = Key { client, ..Key::new(5, Purpose::Test) }.stream();
    (0..INPUTS).map(|d| 100.0 + drift + if d < 3 { side } else { 0.0 } + 0.2 * own.unit()).collect()
}

fn noted(assignments: &mut Assignments, clients: impl Iterator<Item = u32>, drift: f32) {
    clients.for_each(|c| assignments.note(ClientId(c), prototype(c, drift)));
}

#[test]
fn prototypes_are_centred_before_their_cosines_are_taken() {
    let raw: Vec<Vec<f32>> = (0..6).map(|c| prototype(c, 0.0)).collect();
    let cosine = |a: &[f64], b: &[f64]| {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let wide = |v: &[f32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    assert!(cosine(&wide(&raw[0]), &wide(&raw[5])) > 0.999, "as they are, all clients look alike");
    let points = centred(&raw.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert!(cosine(&points[0], &points[5]) < -0.9 && cosine(&points[0], &points[1]) > 0.9);
    let mut assignments = Assignments::default();
    noted(&mut assignments, 0..6, 0.0);
    assignments.recluster(&clustering(1));
    assert!((0..6).all(|c| assignments.of(ClientId(c)).unwrap().iter().any(|s| *s > 0.99)));
}

#[test]
fn a_cluster_keeps_its_number_from_one_clustering_to_the_next() {
    let mut assignments = Assignments::default();
    noted(&mut assignments, 0..6, 0.0);
    assignments.recluster(&clustering(0));
    let before = assignments.labels();
    for seed in 1..20 {
        noted(&mut assignments, 0..6, seed as f32);
        assignments.recluster(&clustering(seed));
        assert_eq!(assignments.labels(), before, "k-means started from seed {seed}");
    }
}

/// k-means numbers its clusters as its start has it; matching undoes that.
#[test]
fn cold_starts_disagree_about_numbers_until_they_are_matched() {
    let raw: Vec<Vec<f32>> = (0..6).map(|c| prototype(c, 0.0)).collect();
    let points = centred(&raw.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let cold = |seed| k_means(&points, 2, &[], Key::new(seed, Purpose::Cluster));
    let first = cold(0);
    let same = |centroids: &[Vec<f64>]| centroids[0][0] * first[0][0] > 0.0;
    assert!((1..20).any(|seed| !same(&cold(seed))), "some start numbers them the other way round");
    assert!((1..20).all(|seed| same(&matched(&first, cold(seed)))));
}

#[test]
fn every_known_client_is_clustered_and_not_the_cohort_alone() {
    let mut assignments = Assignments::default();
    noted(&mut assignments, 0..2, 0.0);
    noted(&mut assignments, 3..6, 0.0);
    assignments.recluster(&clustering(1));
    assert_eq!(assignments.labels().len(), 5);
    assert_eq!(assignments.share(ClientId(2), 0, 2), 0.5, "an unknown client's shares are uniform");
    noted(&mut assignments, 2..3, 0.0);
    assignments.recluster(&clustering(2));
    let labels = assignments.labels();
    assert_eq!(labels.len(), 6, "five of them sent nothing since");
    assert_eq!(labels[&ClientId(2)], labels[&ClientId(0)]);
}

#[test]
fn shares_sum_to_one_and_fewer_clients_than_clusters_change_nothing() {
    let mut assignments = Assignments::default();
    noted(&mut assignments, 0..1, 0.0);
    assignments.recluster(&clustering(1));
    assert!(assignments.of(ClientId(0)).is_none());
    noted(&mut assignments, 0..6, 0.0);
    assignments.recluster(&clustering(1));
    let sums = (0..6).map(|c| assignments.of(ClientId(c)).unwrap().iter().sum::<f32>());
    assert!(sums.into_iter().all(|s| (s - 1.0).abs() < 1e-6));
}

#[test]
fn identical_prototypes_do_not_break_clustering() {
    let mut assignments = Assignments::default();
    (0..5).for_each(|c| assignments.note(ClientId(c), vec![3.0; 4]));
    assignments.recluster(&clustering(1));
    assert!((0..5).all(|c| assignments.of(ClientId(c)).unwrap().iter().all(|s| s.is_finite())));
}

#[test]
fn fedprism_asks_for_prototypes_only_before_a_clustering_and_finds_the_turned_boards() {
    let hyper = Hyper { clusters: 2, recluster: 2, ..Hyper::default() };
    let mut fleet = Fleet::new::<FedPrism>(&hyper);
    fleet.rounds(4, &[0, 1, 2, 3, 4, 5]);
    for (round, _, up) in &fleet.sent {
        assert_eq!(up.prototype().is_empty(), round % 2 == 0);
    }
    let server: Server = postcard::from_bytes(&fleet.state).unwrap();
    assert_eq!((server.prism.clusters.len(), server.prism.assignments.known()), (2, 6));
}

#[test]
fn a_tail_mean_is_exact_for_constants_and_right_for_two() {
    let spec = super::toy::spec(&[1, 1, 2], 0);
    let value = |v: f32| crate::params::Params::new(spec.clone(), vec![v; spec.len()]).unwrap();
    let constant =
        (0..9).fold(None, |mean: Option<TailMean<_>>, _| Some(TailMean::with(mean.as_ref(), &value(0.1))));
    assert_eq!(constant.unwrap().mean(), &value(0.1));
    let two = TailMean::with(Some(&TailMean::with(None, &value(1.0))), &value(4.0));
    assert_eq!(two.mean(), &value(2.5));
}
