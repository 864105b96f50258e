//! A board's choice of where to start (science §5 steps 2 and 8): a small test on its own data.
use super::training::Training;
use super::{FedError, Site};
use crate::nn::{Features, Split, Trainer, head};
use crate::params::{Head, Params};
use crate::tensor::rng::Purpose;

/// Training samples looked at, at most.
const PROBES: usize = 128;
/// Head-only epochs of the test.
const EPOCHS: u32 = 3;

/// What a board tests with.
#[derive(Clone, Copy, Debug)]
pub struct Test<'a> {
    /// Its training settings.
    pub train: Training,
    /// Its log prior, where prior correction is on.
    pub prior: Option<&'a [f32]>,
    /// What its network is conditioned on.
    pub conditioning: &'a [f32],
    /// Whose data, and when.
    pub site: Site,
}

impl Test<'_> {
    /// Index of the best start: under each candidate, the head is trained for three epochs on two thirds of at most 128 training
    /// samples, its log prior added to the bias first; the lower cross-entropy on the rest and the validation slice wins.
    /// Ties go to the first candidate, the global part.
    ///
    /// # Errors
    /// [`FedError::Train`].
    pub fn best(&self, candidates: &[Params], trainer: &mut dyn Trainer) -> Result<usize, FedError> {
        let mut best = (0, f64::INFINITY);
        for (index, candidate) in candidates.iter().enumerate() {
            let loss = self.loss(candidate, trainer)?;
            if loss < best.1 {
                best = (index, loss);
            }
        }
        Ok(best.0)
    }

    /// The test's loss of one candidate.
    fn loss(&self, candidate: &Params, trainer: &mut dyn Trainer) -> Result<f64, FedError> {
        let backbone = candidate.backbone();
        let probes = trainer.features(&backbone, self.conditioning, Split::Probe(PROBES))?;
        let validation = trainer.features(&backbone, self.conditioning, Split::Validation)?;
        let (fitting, rest) = self.divided(&probes);
        let start = self.personal(&candidate.head());
        let job = self.train.epochs(EPOCHS).head_job(self.site.key(Purpose::Adapt));
        Ok(head::cross_entropy(&rest.chain(&validation), &head::fit(&fitting, &start, &job)?))
    }

    /// The head with the board's prior.
    fn personal(&self, start: &Head) -> Head {
        self.prior.map_or_else(|| start.clone(), |r| head::add_prior(start, r, 1.0))
    }

    /// Two thirds of the probes to fit on, and the rest.
    fn divided(&self, probes: &Features) -> (Features, Features) {
        let order = self.site.key(Purpose::Choice).stream().permutation(probes.len());
        let (fitting, rest) = order.split_at(probes.len() * 2 / 3);
        (probes.select(fitting), probes.select(rest))
    }
}

/// Points (of one) by which the class-averaged accuracy must be higher.
const MARGIN: f64 = 0.10;

/// Whether `other` is right at least ten points more often than `usual`, averaged over the classes present, on the validation
/// slice and at most 128 training samples (science §8.3, `auto`).
///
/// # Errors
/// [`FedError::Train`].
pub fn clearly_better(
    other: &Params,
    usual: &Params,
    conditioning: &[f32],
    trainer: &mut dyn Trainer,
) -> Result<bool, FedError> {
    let mut balanced = |model: &Params| -> Result<f64, FedError> {
        let backbone = model.backbone();
        let probes = trainer.features(&backbone, conditioning, Split::Probe(PROBES))?;
        let validation = trainer.features(&backbone, conditioning, Split::Validation)?;
        Ok(balanced_accuracy(&model.head(), &probes.chain(&validation)))
    };
    Ok(balanced(other)? >= balanced(usual)? + MARGIN)
}

/// Mean over the classes present of the share answered right; 0 for no samples.
pub fn balanced_accuracy(head: &Head, features: &Features) -> f64 {
    let classes = head.spec().classes().max(1);
    let mut tally = vec![(0_u32, 0_u32); classes];
    for (z, &label) in head::logits(features, head).chunks_exact(classes).zip(&features.labels) {
        let (right, all) = &mut tally[usize::from(label)];
        *all += 1;
        *right += u32::from(super::argmax(z) == usize::from(label));
    }
    let present: Vec<f64> =
        tally.iter().filter(|t| t.1 > 0).map(|t| f64::from(t.0) / f64::from(t.1)).collect();
    present.iter().sum::<f64>() / present.len().max(1) as f64
}
