//! Soft clustering of clients by their prototypes (FedPrism, methods §4.5 and its decisions).
//!
//! Four decisions matter, and public code takes none of them: prototypes are centred before their cosines are taken,
//! the latest prototype of every known client is used and not the cohort's alone, and new labels are matched to the
//! old ones so that index k keeps meaning C_k.
use crate::id::{ClientId, RoundId};
use crate::tensor::rng::{Key, Stream};
use pathfinding::kuhn_munkres::kuhn_munkres_min;
use pathfinding::matrix::Matrix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Restarts of k-means, the warm one included.
const RESTARTS: u64 = 10;
/// Lloyd steps at most.
const STEPS: usize = 300;
/// Centroids that move less (squared) have arrived.
const TOLERANCE: f64 = 1e-8;

/// Who is like whom: the host's knowledge of its clients.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Assignments {
    /// Latest prototype of every client ever seen.
    prototypes: BTreeMap<ClientId, Vec<f32>>,
    /// Centroids, in the order of the cluster parts.
    centroids: Vec<Vec<f64>>,
    /// π of every client clustered so far.
    shares: BTreeMap<ClientId, Vec<f32>>,
}

/// How clients are clustered.
#[derive(Clone, Copy, Debug)]
pub struct Clustering {
    /// Number of clusters (K).
    pub clusters: usize,
    /// Temperature of the assignment (τ).
    pub temperature: f32,
    /// Key of the starts.
    pub key: Key,
}

impl Clustering {
    /// Whether the clients are clustered again after `round`, at every `every`-th.
    ///
    /// ```
    /// use models::{fed::cluster::Clustering, id::RoundId};
    /// assert_eq!((0..8).filter(|&t| Clustering::is_due(RoundId(t), 4)).collect::<Vec<_>>(), [3, 7]);
    /// ```
    pub fn is_due(round: RoundId, every: u32) -> bool {
        (round.0 + 1).is_multiple_of(every)
    }
}

impl Assignments {
    /// Remembers a client's latest prototype.
    pub fn note(&mut self, client: ClientId, prototype: Vec<f32>) {
        self.prototypes.insert(client, prototype);
    }

    /// Number of clients with a prototype.
    pub fn known(&self) -> usize {
        self.prototypes.len()
    }

    /// π of a client; nothing before its first clustering.
    pub fn of(&self, client: ClientId) -> Option<&[f32]> {
        self.shares.get(&client).map(Vec::as_slice)
    }

    /// π_k of a client, uniform while it is unknown.
    pub fn share(&self, client: ClientId, cluster: usize, clusters: usize) -> f32 {
        self.of(client).and_then(|s| s.get(cluster).copied()).unwrap_or(1.0 / clusters.max(1) as f32)
    }

    /// Hardest assignment of every clustered client.
    pub fn labels(&self) -> BTreeMap<ClientId, usize> {
        self.shares.iter().map(|(&id, s)| (id, super::argmax(s))).collect()
    }

    /// Clusters all known clients again. Nothing changes while fewer than K are known.
    pub fn recluster(&mut self, how: &Clustering) {
        if self.prototypes.len() < how.clusters.max(1) {
            return;
        }
        let points = centred(&self.prototypes.values().map(Vec::as_slice).collect::<Vec<_>>());
        let found = k_means(&points, how.clusters, &self.centroids, how.key);
        let centroids = matched(&self.centroids, found);
        let share = |point: &Vec<f64>| assignment(point, &centroids, how.temperature);
        self.shares = self.prototypes.keys().copied().zip(points.iter().map(share)).collect();
        self.centroids = centroids;
    }
}

/// Prototypes minus their mean, each L2-normalised. Final layers share most of their norm: without centring all cosines
/// are near one and every client looks like every other.
///
/// ```
/// let points = models::fed::cluster::centred(&[&[10.0, 1.0], &[10.0, -1.0]]);
/// assert_eq!(points, [[0.0, 1.0], [0.0, -1.0]]);
/// ```
pub fn centred(prototypes: &[&[f32]]) -> Vec<Vec<f64>> {
    let width = prototypes.first().map_or(0, |p| p.len());
    let mean: Vec<f64> = (0..width)
        .map(|d| prototypes.iter().map(|p| f64::from(p[d])).sum::<f64>() / prototypes.len() as f64)
        .collect();
    prototypes.iter().map(|p| unit(p.iter().zip(&mean).map(|(x, m)| f64::from(*x) - m).collect())).collect()
}

fn unit(mut point: Vec<f64>) -> Vec<f64> {
    let norm = libm::sqrt(point.iter().map(|x| x * x).sum());
    if norm > 0.0 {
        point.iter_mut().for_each(|x| *x /= norm);
    }
    point
}

/// `π_k = softmax_k(cos(h, μ_k) / τ)` (methods §4.5 step 5).
///
/// At τ = 1, cosines 1 and 0: π = (e, 1)/(e + 1).
/// ```
/// let pi = models::fed::cluster::assignment(&[1.0, 0.0], &[vec![2.0, 0.0], vec![0.0, 1.0]], 1.0);
/// assert!((f64::from(pi[0]) - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-6);
/// ```
pub fn assignment(point: &[f64], centroids: &[Vec<f64>], temperature: f32) -> Vec<f32> {
    let cosine = |c: &Vec<f64>| point.iter().zip(unit(c.clone())).map(|(a, b)| a * b).sum::<f64>();
    let scores: Vec<f64> = centroids.iter().map(|c| cosine(c) / f64::from(temperature)).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exps: Vec<f64> = scores.iter().map(|s| libm::exp(s - top)).collect();
    let total: f64 = exps.iter().sum();
    exps.iter().map(|e| (e / total) as f32).collect()
}

/// The `m` largest shares, renormalised, as (cluster, weight) in the order of the clusters; of equal shares the first.
///
/// ```
/// assert_eq!(models::fed::cluster::top(&[0.5, 0.125, 0.375], 2), [(0, 0.5714286), (2, 0.42857143)]);
/// ```
pub fn top(shares: &[f32], m: usize) -> Vec<(usize, f32)> {
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
    order.truncate(m.max(1));
    order.sort_unstable();
    let total: f32 = order.iter().map(|&k| shares[k]).sum();
    order.into_iter().map(|k| (k, shares[k] / total)).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Index of the nearest centroid and the squared distance to it.
fn nearest(point: &[f64], centroids: &[Vec<f64>]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (k, centroid) in centroids.iter().enumerate() {
        let d = distance(point, centroid);
        if d < best.1 {
            best = (k, d);
        }
    }
    best
}

/// Centroids of `k` clusters: k-means++ starts, each its own stream, the first one warm from `old`; the tightest result, of
/// equal ones the first.
///
/// Two pairs of points give the two midpoints:
/// ```
/// # use models::tensor::rng::{Key, Purpose};
/// let points = [vec![0.0], vec![0.2], vec![4.0], vec![4.2]];
/// let mut found = models::fed::cluster::k_means(&points, 2, &[], Key::new(1, Purpose::Cluster));
/// found.sort_by(|a, b| a[0].total_cmp(&b[0]));
/// assert!((found[0][0] - 0.1).abs() < 1e-12 && (found[1][0] - 4.1).abs() < 1e-12);
/// ```
pub fn k_means(points: &[Vec<f64>], k: usize, old: &[Vec<f64>], key: Key) -> Vec<Vec<f64>> {
    let warm = old.len() == k && old.iter().all(|c| c.len() == points[0].len());
    let start = |restart: u64| {
        if restart == 0 && warm { old.to_vec() } else { spread(points, k, &mut key.step(restart).stream()) }
    };
    let mut best = (Vec::new(), f64::INFINITY);
    for restart in 0..RESTARTS {
        let (centroids, inertia) = lloyd(points, start(restart));
        if inertia < best.1 {
            best = (centroids, inertia);
        }
    }
    best.0
}

/// k-means++: each next start is drawn with probability proportional to its squared distance from those before.
fn spread(points: &[Vec<f64>], k: usize, stream: &mut Stream) -> Vec<Vec<f64>> {
    let mut centroids = vec![points[stream.below(points.len())].clone()];
    while centroids.len() < k {
        let gaps: Vec<f64> = points.iter().map(|p| nearest(p, &centroids).1).collect();
        let total: f64 = gaps.iter().sum();
        let next =
            if total > 0.0 { drawn(&gaps, stream.unit64() * total) } else { stream.below(points.len()) };
        centroids.push(points[next].clone());
    }
    centroids
}

fn drawn(gaps: &[f64], mut at: f64) -> usize {
    for (i, gap) in gaps.iter().enumerate() {
        if at < *gap {
            return i;
        }
        at -= gap;
    }
    gaps.len() - 1
}

/// Lloyd's steps until nothing moves; an empty cluster restarts at the point farthest from its centroid.
fn lloyd(points: &[Vec<f64>], mut centroids: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, f64) {
    for _ in 0..STEPS {
        let next = moved(points, &centroids);
        let shift: f64 = centroids.iter().zip(&next).map(|(a, b)| distance(a, b)).sum();
        centroids = next;
        if shift < TOLERANCE {
            break;
        }
    }
    let inertia = points.iter().map(|p| nearest(p, &centroids).1).sum();
    (centroids, inertia)
}

fn moved(points: &[Vec<f64>], centroids: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut near: Vec<(usize, f64)> = points.iter().map(|p| nearest(p, centroids)).collect();
    for k in 0..centroids.len() {
        if near.iter().all(|n| n.0 != k) {
            let far = (1..near.len()).fold(0, |best, i| if near[i].1 > near[best].1 { i } else { best });
            near[far] = (k, 0.0);
        }
    }
    let mean = |k: usize| {
        let members: Vec<&Vec<f64>> =
            points.iter().zip(&near).filter(|(_, n)| n.0 == k).map(|(p, _)| p).collect();
        let at = |d: usize| members.iter().map(|m| m[d]).sum::<f64>() / members.len() as f64;
        if members.is_empty() { centroids[k].clone() } else { (0..points[0].len()).map(at).collect() }
    };
    (0..centroids.len()).map(mean).collect()
}

/// `found`, reordered so that each keeps the index of the old centroid it continues: the assignment of least summed squared
/// distance.
///
/// ```
/// let old = [vec![0.0], vec![9.0]];
/// assert_eq!(models::fed::cluster::matched(&old, vec![vec![8.0], vec![1.0]]), [[1.0], [8.0]]);
/// ```
pub fn matched(old: &[Vec<f64>], found: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    if old.len() != found.len() {
        return found;
    }
    let cost = |(o, f): (usize, usize)| (distance(&old[o], &found[f]) * 1e9) as i64;
    let costs = Matrix::from_fn(old.len(), found.len(), cost);
    let (_, continues) = kuhn_munkres_min(&costs);
    continues.into_iter().map(|f| found[f].clone()).collect()
}
