//! Training on data at hand.
use super::data::{Dataset, Standardise};
use super::engine::{Batch, Fan, Setup, Targets, Teacher, Training};
use super::graph::Graph;
use super::head::{self, HeadJob};
use super::optim::Sgd;
use super::{
    ClassCounts, Distill, Extractor, FeatureCache, Features, Job, Loss, Metrics, Precision, Proximal, Split,
    TrainError, Trained, Trainer, metrics,
};
use crate::id::{ClientId, Hash, RoundId};
use crate::params::{Backbone, Mask, ModelSpec, Params, Part, Role, SpecError};
use crate::tensor::rng::{Key, Purpose};
use rayon::ThreadPool;
use std::sync::Arc;

/// From the key of an epoch and the number of training samples to their order.
pub type Shuffle = Arc<dyn Fn(Key, usize) -> Vec<usize> + Send + Sync>;

/// A [`Trainer`] on a data set in memory.
pub struct LocalTrainer {
    spec: Arc<ModelSpec>,
    extractor: Extractor,
    data: Arc<Dataset>,
    standardise: Standardise,
    train: Vec<usize>,
    validation: Vec<usize>,
    counts: ClassCounts,
    client: ClientId,
    draws: Key,
    pool: Option<Arc<ThreadPool>>,
    shuffle: Shuffle,
    cache: Option<FeatureCache>,
    /// Names of the samples, once the cache has asked for them.
    hashes: Vec<Hash>,
    /// The most bytes that training may take.
    ceiling: Option<usize>,
}

/// Bytes of features that a trainer remembers.
const REMEMBERED: usize = 4 << 20;

impl std::fmt::Debug for LocalTrainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalTrainer({} of client {})", self.spec.card().arch, self.client)
    }
}

impl LocalTrainer {
    /// A trainer of `graph` on the data of `client`. The validation slice is drawn from `seed` and the client's number. Without
    /// a pool everything runs on the calling thread; the numbers are the same.
    ///
    /// # Errors
    /// [`SpecError::WrongLength`] if the samples or the specification are not of this network.
    pub fn new(
        (graph, spec): (Arc<Graph>, Arc<ModelSpec>),
        data: impl Into<Arc<Dataset>>,
        (seed, client): (u64, ClientId),
        pool: Option<Arc<ThreadPool>>,
    ) -> Result<Self, SpecError> {
        let data = data.into();
        let fits = |scope, expected, got| {
            if expected == got { Ok(()) } else { Err(SpecError::WrongLength { scope, expected, got }) }
        };
        fits("sample", graph.input().len(), data.width())?;
        fits("specification", graph.len(), spec.len())?;
        let draws = Key::new(seed, Purpose::Validation).of(RoundId(0), client);
        let (train, validation) = data.split(draws);
        Ok(Self {
            extractor: Extractor::new(graph, pool.clone()),
            standardise: Standardise::new(&spec.card().preprocessing),
            counts: data.counts(&train, spec.classes()),
            shuffle: Arc::new(|key, n| key.stream().permutation(n)),
            spec,
            data,
            train,
            validation,
            client,
            draws,
            pool,
            cache: Some(FeatureCache::new(Precision::F32, REMEMBERED)),
            hashes: vec![],
            ceiling: None,
        })
    }

    /// The same without a validation slice: everything is trained on.
    #[must_use]
    pub fn without_validation(mut self) -> Self {
        self.train = (0..self.data.len()).collect();
        self.validation = vec![];
        self.counts = self.data.counts(&self.train, self.spec.classes());
        self
    }

    /// The same with another rule for the order of samples.
    #[must_use]
    pub fn with_order(mut self, shuffle: Shuffle) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// The same with another memory for features. Without one, training the head alone goes through the whole network each time; with one, and
    /// [`Precision::F32`], the result has the same bits.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<FeatureCache>) -> Self {
        self.cache = cache;
        self
    }

    /// The same with a ceiling on the memory of training: more is refused before any of it is taken.
    #[must_use]
    pub fn with_ceiling(mut self, bytes: usize) -> Self {
        self.ceiling = Some(bytes);
        self
    }

    /// Bytes of features that it remembers now.
    pub fn remembered(&self) -> usize {
        self.cache.as_ref().map_or(0, FeatureCache::bytes)
    }

    /// The network.
    pub fn graph(&self) -> &Arc<Graph> {
        self.extractor.graph()
    }

    fn split(&self, split: Split) -> Vec<usize> {
        match split {
            Split::Train => self.train.clone(),
            Split::Validation => self.validation.clone(),
            Split::Probe(most) if most >= self.train.len() => self.train.clone(),
            Split::Probe(most) => {
                let mut order = self.draws.step(1).stream().permutation(self.train.len());
                order.truncate(most);
                order.sort_unstable();
                order.into_iter().map(|i| self.train[i]).collect()
            }
        }
    }

    fn check(&self, params: &Params, conditioning: &[f32]) -> Result<(), TrainError> {
        let (expected, got) = (self.spec.len(), params.values().len());
        if expected != got {
            return Err(SpecError::WrongLength { scope: "model", expected, got }.into());
        }
        let (expected, got) = (self.graph().statistics(), conditioning.len());
        if expected != got {
            return Err(TrainError::Conditioning { expected, got });
        }
        if self.train.is_empty() { Err(TrainError::NoSamples { client: self.client }) } else { Ok(()) }
    }

    /// The teacher's logits by sample of the data set, for those that are trained on.
    fn taught(&self, distill: &Distill<'_>, conditioning: &[f32]) -> Result<Vec<f32>, TrainError> {
        let rows = self.extractor.logits(distill.teacher, conditioning, &self.data, &self.train)?;
        let classes = self.spec.classes();
        let mut all = vec![0.0; self.data.len() * classes];
        for (row, &sample) in rows.chunks_exact(classes).zip(&self.train) {
            all[sample * classes..][..classes].copy_from_slice(row);
        }
        Ok(all)
    }

    /// Refuses what would take more than the ceiling.
    fn fits(&self, job: &Job<'_>) -> Result<(), TrainError> {
        let Some(allowed) = self.ceiling else { return Ok(()) };
        let trains = trainable(&self.spec, job.trains);
        let threads = self.pool.as_ref().map_or(1, |pool| pool.current_num_threads());
        let needed = Setup::new(&trains, true, self.batch_size(job)).memory(self.graph(), threads).bytes;
        if needed > allowed { Err(TrainError::Memory { needed, allowed }) } else { Ok(()) }
    }

    fn batch_size(&self, job: &Job<'_>) -> usize {
        job.batch.clamp(1, self.train.len())
    }

    fn training(&self, start: &Params, job: &Job<'_>, fan: Fan) -> Training {
        let trains = trainable(&self.spec, job.trains);
        let sgd = Sgd { rate: job.rate.0, momentum: job.momentum, weight_decay: 0.0 };
        let setup = Setup::new(&trains, true, self.batch_size(job));
        let mut training = Training::new(self.graph(), start.values(), setup, sgd, fan);
        if let Some(Proximal { anchor, mu, on }) = job.loss.proximal {
            training.pull(anchor.values(), mu, on.ranges(&self.spec).collect());
        }
        training
    }

    fn epochs(
        &self,
        start: &Params,
        job: &Job<'_>,
        teacher: Option<&[f32]>,
        fan: Fan,
    ) -> Result<Trained, TrainError> {
        let mut training = self.training(start, job, fan);
        let (mut visits, mut mean) = (0, 0.0);
        let (mut steps, needs_two) = (0, training.needs_two());
        for epoch in 0..job.epochs {
            let order = (self.shuffle)(job.order.step(u64::from(epoch)), self.train.len());
            let order: Vec<usize> = order.into_iter().map(|i| self.train[i]).collect();
            let (mut sum, mut seen) = (0.0, 0);
            for picks in order.chunks(job.batch.max(1)).filter(|picks| picks.len() > 1 || !needs_two) {
                let loss = training.step(&self.batch(job, teacher, picks, steps));
                if !loss.is_finite() {
                    return Err(TrainError::Diverged { epoch });
                }
                steps += 1;
                seen += picks.len();
                sum += loss * picks.len() as f64;
            }
            visits += seen as u64;
            mean = sum / seen.max(1) as f64;
        }
        let diverged = |_| TrainError::Diverged { epoch: job.epochs.saturating_sub(1) };
        let params = Params::new(Arc::clone(&self.spec), training.into_params()).map_err(diverged)?;
        Ok(Trained { params, loss: mean, visits })
    }

    /// Whether nothing but the whole head is trained, on nothing but cross-entropy: then features say all about the backbone.
    fn is_of_the_head(&self, job: &Job<'_>) -> bool {
        let head = self.graph().head();
        let plain = self.graph().outputs().first() == head.as_ref()
            && head.is_some_and(|head| self.graph().node(head).entries.len() == 2);
        let whole = *job.trains == Mask::part(&self.spec, Part::Head);
        plain && whole && job.loss.distill.is_none() && job.loss.proximal.is_none()
    }

    /// Training of the head on features.
    fn train_head(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError> {
        let features = self.features(&start.backbone(), job.conditioning, Split::Train)?;
        let &Job { epochs, batch, rate, momentum, order, loss: Loss { prior, .. }, .. } = job;
        let job = HeadJob { epochs, batch, rate, momentum, order, prior };
        let (head, loss) = head::fit_in_order(&features, &start.head(), &job, &*self.shuffle)?;
        let visits = u64::from(epochs) * features.len() as u64;
        Ok(Trained { params: Params::join(&start.backbone(), &head), loss, visits })
    }

    fn batch<'a>(
        &'a self,
        job: &Job<'a>,
        teacher: Option<&'a [f32]>,
        picks: &'a [usize],
        step: u64,
    ) -> Batch<'a> {
        let distill = job.loss.distill.zip(teacher);
        let teacher =
            distill.map(|(d, logits)| Teacher { logits, temperature: d.temperature, weight: d.weight });
        Batch {
            source: self.data.source(&self.standardise),
            picks,
            targets: Targets { labels: self.data.labels(), prior: job.loss.prior, teacher },
            conditioning: job.conditioning,
            dropout: Key { purpose: Purpose::Dropout, ..job.order.step(step) },
            share: 1.0 / picks.len() as f64,
        }
    }
}

/// Which entries a mask lets change.
fn trainable(spec: &ModelSpec, mask: &Mask) -> Vec<bool> {
    let entries = spec.entries().iter().enumerate();
    entries.map(|(i, e)| mask.has(i) && e.role == Role::Trainable).collect()
}

impl Trainer for LocalTrainer {
    fn spec(&self) -> &Arc<ModelSpec> {
        &self.spec
    }

    fn counts(&self) -> &ClassCounts {
        &self.counts
    }

    fn samples(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train.len(),
            Split::Validation => self.validation.len(),
            Split::Probe(most) => most.min(self.train.len()),
        }
    }

    fn train(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError> {
        self.check(start, job.conditioning)?;
        if self.cache.is_some() && self.is_of_the_head(job) {
            return self.train_head(start, job);
        }
        self.fits(job)?;
        let teacher = job.loss.distill.map(|d| self.taught(&d, job.conditioning)).transpose()?;
        Fan::within(self.pool.as_deref(), |fan| self.epochs(start, job, teacher.as_deref(), fan))
    }

    fn evaluate(
        &mut self,
        params: &Params,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Metrics, TrainError> {
        let picks = self.split(split);
        let logits = self.extractor.logits(params, conditioning, &self.data, &picks)?;
        let labels: Vec<u16> = picks.iter().map(|&i| self.data.labels()[i]).collect();
        Ok(metrics(&logits, &labels, self.spec.classes()))
    }

    fn features(
        &mut self,
        backbone: &Backbone,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Features, TrainError> {
        let samples = self.split(split);
        let Some(cache) = &mut self.cache else {
            return self.extractor.of_samples(backbone, conditioning, &self.data, &samples);
        };
        if self.hashes.is_empty() {
            self.hashes = self.data.hashes();
        }
        cache.features(&self.extractor, backbone, conditioning, (&self.data, &self.hashes), &samples)
    }

    fn gradient(&mut self, params: &Params, conditioning: &[f32]) -> Result<Vec<f32>, TrainError> {
        const CHUNK: usize = 64;
        self.check(params, conditioning)?;
        let trains = trainable(&self.spec, &Mask::all(&self.spec));
        let sgd = Sgd { rate: 0.0, momentum: 0.0, weight_decay: 0.0 };
        let this = &*self;
        Ok(Fan::within(this.pool.as_deref(), |fan| {
            let setup = Setup::new(&trains, false, CHUNK);
            let mut training = Training::new(this.graph(), params.values(), setup, sgd, fan);
            let mut sum = vec![0.0; params.values().len()];
            for picks in this.train.chunks(CHUNK) {
                let batch = Batch {
                    source: this.data.source(&this.standardise),
                    picks,
                    targets: Targets { labels: this.data.labels(), prior: None, teacher: None },
                    conditioning,
                    dropout: this.draws,
                    share: 1.0 / this.train.len() as f64,
                };
                training.accumulate(&batch, &mut sum);
            }
            training.natural(sum)
        }))
    }

    fn visit(&self, look: &mut dyn FnMut(&[f32], u16)) {
        let mut sample = vec![0.0; self.data.width()];
        for &i in &self.train {
            self.data.sample(i, &mut sample);
            look(&sample, self.data.labels()[i]);
        }
    }
}
