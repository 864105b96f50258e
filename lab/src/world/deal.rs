//! Class-wise Dirichlet dealing (methods §2.3 P1, variant `plain`).
use models::tensor::rng::{Key, Purpose, Stream};

/// Samples every client shall have at least, and what is settled for when that can't be drawn.
const FLOORS: [usize; 2] = [10, 2];
const RETRIES: u64 = 1_000;

/// Which training and test samples each client holds. A client's test samples mirror its training samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Deal {
    /// Training indices per client, ascending.
    pub train: Vec<Vec<usize>>,
    /// Test indices per client, ascending.
    pub test: Vec<Vec<usize>>,
    /// Training samples that had to be moved by hand so that every client has two.
    pub moved: usize,
}

/// Deals by classes: `p ~ Dir(α·1_N)` for each class, whose shuffled samples are cut at the cumulative proportions, the
/// test samples at the same ones. Drawn again until every client has at least 10 training samples (2 after a thousand
/// failures); then samples move from the largest client.
///
/// `train` and `test` hold the class of each sample. Two clients and classes of 4 and 2 samples with proportions (¾, ¼)
/// and (½, ½) give sizes 3 + 1 and 1 + 1.
pub fn dirichlet(train: &[u16], test: &[u16], classes: usize, clients: usize, alpha: f64, seed: u64) -> Deal {
    let key = Key::new(seed, Purpose::Partition);
    let attempt = |step: u64| {
        let mut stream = key.step(step).stream();
        let shares: Vec<Vec<f64>> = (0..classes).map(|_| proportions(clients, alpha, &mut stream)).collect();
        let train = cut(train, &shares, clients, &mut stream);
        Deal { train, test: cut(test, &shares, clients, &mut stream), moved: 0 }
    };
    let smallest = |deal: &Deal| deal.train.iter().map(Vec::len).min().unwrap_or(0);
    let drawn = FLOORS
        .iter()
        .zip([0, RETRIES])
        .find_map(|(&floor, from)| (from..from + RETRIES).map(attempt).find(|deal| smallest(deal) >= floor));
    drawn.unwrap_or_else(|| fill_up(attempt(0)))
}

/// Moves samples from the largest client until every one has two.
fn fill_up(mut deal: Deal) -> Deal {
    while let Some(poor) = deal.train.iter().position(|held| held.len() < FLOORS[1]) {
        let rich = (0..deal.train.len()).max_by_key(|&c| deal.train[c].len()).unwrap_or(poor);
        if deal.train[rich].len() <= FLOORS[1] {
            break;
        }
        let sample = deal.train[rich].pop();
        deal.train[poor].extend(sample);
        deal.train[poor].sort_unstable();
        deal.moved += 1;
    }
    deal
}

/// Shuffles the samples of each class and cuts them at the cumulative proportions.
fn cut(labels: &[u16], shares: &[Vec<f64>], clients: usize, stream: &mut Stream) -> Vec<Vec<usize>> {
    let mut held = vec![Vec::new(); clients];
    for (class, shares) in shares.iter().enumerate() {
        let mut samples: Vec<usize> =
            (0..labels.len()).filter(|&i| usize::from(labels[i]) == class).collect();
        stream.shuffle(&mut samples);
        let (mut from, mut sum) = (0, 0.0);
        for (client, share) in shares.iter().enumerate() {
            sum += share;
            let last = client + 1 == clients;
            let to = if last {
                samples.len()
            } else {
                ((sum * samples.len() as f64) as usize).clamp(from, samples.len())
            };
            held[client].extend_from_slice(&samples[from..to]);
            from = to;
        }
    }
    held.iter_mut().for_each(|samples| samples.sort_unstable());
    held
}

/// One draw of a symmetric Dirichlet distribution: independent gammas over their sum.
fn proportions(n: usize, alpha: f64, stream: &mut Stream) -> Vec<f64> {
    let draws: Vec<f64> = (0..n).map(|_| gamma(alpha, stream)).collect();
    let sum: f64 = draws.iter().sum();
    if sum > 0.0 { draws.iter().map(|g| g / sum).collect() } else { proportions(n, alpha, stream) }
}

/// One draw of Gamma(shape, 1) by the method of Marsaglia and Tsang (2000); below shape 1 by `Gamma(a) = Gamma(a+1)·U^(1/a)`.
/// With `libm`, so that a partition is the same on every target.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        return gamma(shape + 1.0, stream) * libm::pow(1.0 - stream.unit64(), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = stream.normal();
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(1.0 - stream.unit64()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(n: usize, classes: usize) -> Vec<u16> {
        (0..n).map(|i| ((i * 7 + i / 3) % classes) as u16).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_sample_is_dealt_once_and_nobody_is_left_out(
            clients in 1_usize..15, alpha in 0.05_f64..2.0, seed in any::<u64>(), n in 200_usize..1_500,
        ) {
            let deal = dirichlet(&labels(n, 10), &labels(n / 4, 10), 10, clients, alpha, seed);
            for (held, total) in [(&deal.train, n), (&deal.test, n / 4)] {
                let mut all: Vec<usize> = held.iter().flatten().copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..total).collect::<Vec<_>>());
            }
            prop_assert!(deal.train.iter().all(|held| held.len() >= 2));
            prop_assert_eq!(dirichlet(&labels(n, 10), &labels(n / 4, 10), 10, clients, alpha, seed), deal);
        }
    }

    #[test]
    fn test_samples_are_cut_in_the_proportions_of_training_samples() {
        let labels = labels(10_000, 10);
        let deal = dirichlet(&labels, &labels, 10, 7, 0.3, 3);
        let per_class = |held: &[usize], class| held.iter().filter(|&&i| labels[i] == class).count();
        for (train, test) in deal.train.iter().zip(&deal.test) {
            assert!((0..10).all(|class| per_class(train, class) == per_class(test, class)));
        }
    }

    #[test]
    fn a_hopeless_draw_is_filled_up_from_the_largest() {
        let deal = dirichlet(&labels(20, 1), &[], 1, 9, 0.02, 1);
        assert!(deal.train.iter().all(|held| held.len() >= 2));
        assert!(deal.moved > 0);
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for shape in [0.1, 0.3, 1.0, 4.5] {
            let mut stream = Key::new(5, Purpose::Test).stream();
            let draws: Vec<f64> = (0..40_000).map(|_| gamma(shape, &mut stream)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / draws.len() as f64;
            assert!(
                (mean / shape - 1.0).abs() < 0.06 && (variance / shape - 1.0).abs() < 0.12,
                "{shape}: {mean} {variance}"
            );
        }
    }
}
