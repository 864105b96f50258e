//! A small multilayer perceptron that trains in a few plain loops: what the laws of methods are tried on.
use crate::fed::{Extractor, Stream};
use crate::id::ClientId;
use crate::nn::{ClassCounts, Features, Job, Metrics, Split, TrainError, Trained, Trainer, loss};
use crate::params::{Backbone, EntryDecl, ModelCard, ModelSpec, Params, Part, Preprocessing, Role};
use crate::tensor::rng::{Key, Purpose};
use crate::tensor::{Shape, TensorView};
use std::sync::Arc;

/// Specification of a perceptron of these widths, the last of them the classes; the conditioning vector enters the first layer.
pub(crate) fn spec(widths: &[usize], statistics: usize) -> Arc<ModelSpec> {
    let classes = widths[widths.len() - 1];
    let card = ModelCard {
        arch: "toy".into(),
        input: [1, 1, widths[0]],
        labels: (0..classes).map(|c| c.to_string()).collect(),
        statistics,
        preprocessing: Preprocessing::none(1),
    };
    let mut entries = Vec::new();
    for (l, pair) in widths.windows(2).enumerate() {
        let input = pair[0] + if l == 0 { statistics } else { 0 };
        let part = if l + 2 == widths.len() { Part::Head } else { Part::Backbone };
        for (kind, extents) in [("weight", vec![pair[1], input]), ("bias", vec![pair[1]])] {
            let name = format!("fc{}.{kind}", l + 1);
            entries.push(EntryDecl { name, shape: Shape::new(extents), part, role: Role::Trainable });
        }
    }
    Arc::new(ModelSpec::new(card, entries).unwrap())
}

/// Weights drawn from a stream.
pub(crate) fn init(spec: &Arc<ModelSpec>, seed: u64) -> Params {
    let mut stream = Key::new(seed, Purpose::Init).stream();
    Params::new(spec.clone(), (0..spec.len()).map(|_| stream.unit() - 0.5).collect()).unwrap()
}

/// Inputs with their classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    pub(crate) inputs: Vec<Vec<f32>>,
    pub(crate) labels: Vec<u16>,
}

/// In which order the samples of an epoch are taken.
pub(crate) type Order = fn(Key, usize) -> Vec<usize>;

/// A trainer on such a network.
#[derive(Clone, Debug)]
pub(crate) struct Toy {
    pub(crate) id: ClientId,
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) train: Set,
    pub(crate) validation: Set,
    pub(crate) counts: ClassCounts,
    pub(crate) order: Order,
}

impl Toy {
    pub(crate) fn new(id: ClientId, spec: &Arc<ModelSpec>, train: Set, validation: Set) -> Self {
        let mut counts = vec![0; spec.classes()];
        train.labels.iter().for_each(|&l| counts[usize::from(l)] += 1);
        let order = |key: Key, n| key.stream().permutation(n);
        Self { id, spec: spec.clone(), train, validation, counts: ClassCounts(counts), order }
    }

    fn set(&self, split: Split) -> Set {
        match split {
            Split::Train => self.train.clone(),
            Split::Validation => self.validation.clone(),
            Split::Probe(n) => {
                let mut order = Key { client: self.id.0, ..Key::new(3, Purpose::Validation) }
                    .stream()
                    .permutation(self.train.labels.len());
                order.truncate(n);
                let inputs = order.iter().map(|&i| self.train.inputs[i].clone()).collect();
                Set { inputs, labels: order.iter().map(|&i| self.train.labels[i]).collect() }
            }
        }
    }
}

/// Widths of a layer: outputs and inputs, with the place of its weight and bias.
fn layers(spec: &ModelSpec) -> Vec<(usize, usize, usize, usize)> {
    let pairs = spec.entries().chunks_exact(2);
    pairs
        .map(|e| {
            let extents = e[0].shape.extents();
            (extents[0], extents[1], e[0].range.start, e[1].range.start)
        })
        .collect()
}

/// Activations of every layer, the input first and the logits last.
fn forward(spec: &ModelSpec, w: &[f32], input: Vec<f32>) -> Vec<Vec<f32>> {
    let all = layers(spec);
    let mut acts = vec![input];
    for (l, &(out, width, weight, bias)) in all.iter().enumerate() {
        let x = &acts[l];
        let unit = |o: usize| {
            let row = &w[weight + o * width..weight + (o + 1) * width];
            let z = w[bias + o] + row.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
            if l + 1 < all.len() { z.max(0.0) } else { z }
        };
        acts.push((0..out).map(unit).collect());
    }
    acts
}

/// Adds the gradient of one sample, given that of its logits.
fn backward(spec: &ModelSpec, w: &[f32], acts: &[Vec<f32>], mut d: Vec<f32>, grad: &mut [f32]) {
    for (l, &(_, width, weight, bias)) in layers(spec).iter().enumerate().rev() {
        let mut below = vec![0.0; width];
        for (o, &g) in d.iter().enumerate() {
            grad[bias + o] += g;
            for i in 0..width {
                grad[weight + o * width + i] += g * acts[l][i];
                below[i] += g * w[weight + o * width + i];
            }
        }
        d = below.iter().zip(&acts[l]).map(|(b, a)| if l == 0 || *a > 0.0 { *b } else { 0.0 }).collect();
    }
}

fn fed(x: &[f32], conditioning: &[f32]) -> Vec<f32> {
    x.iter().chain(conditioning).copied().collect()
}

/// Gradient and value of the job's loss over some samples.
fn gradient(spec: &ModelSpec, w: &[f32], set: &Set, rows: &[usize], job: &Job<'_>) -> (Vec<f32>, f64) {
    let (mut grad, mut value) = (vec![0.0; w.len()], 0.0);
    let share = 1.0 / rows.len() as f64;
    for &i in rows {
        let acts = forward(spec, w, fed(&set.inputs[i], job.conditioning));
        let mut z = acts[acts.len() - 1].clone();
        let mut d = vec![0.0; z.len()];
        let weight = job.loss.distill.map_or(0.0, |t| f64::from(t.weight));
        if let Some(taught) = job.loss.distill {
            let teacher = forward(spec, taught.teacher.values(), fed(&set.inputs[i], job.conditioning));
            let there = &teacher[teacher.len() - 1];
            value +=
                weight * share * loss::distillation(&z, there, taught.temperature, weight * share, &mut d);
        }
        job.loss.prior.into_iter().for_each(|r| z.iter_mut().zip(r).for_each(|(z, r)| *z += r));
        value += (1.0 - weight)
            * share
            * loss::cross_entropy(&z, usize::from(set.labels[i]), (1.0 - weight) * share, &mut d);
        backward(spec, w, &acts, d, &mut grad);
    }
    if let Some(pull) = job.loss.proximal {
        for range in pull.on.ranges(spec) {
            let anchor = &pull.anchor.values()[range.clone()];
            value += loss::proximal(&w[range.clone()], anchor, pull.mu, &mut grad[range]);
        }
    }
    (grad, value)
}

impl Trainer for Toy {
    fn spec(&self) -> &Arc<ModelSpec> {
        &self.spec
    }
    fn counts(&self) -> &ClassCounts {
        &self.counts
    }
    fn samples(&self, split: Split) -> usize {
        self.set(split).labels.len()
    }
    fn train(&mut self, start: &Params, job: &Job<'_>) -> Result<Trained, TrainError> {
        let (got, expected) = (job.conditioning.len(), self.spec.card().statistics);
        if got != expected {
            return Err(TrainError::Conditioning { expected, got });
        }
        let (mut w, mut v) = (start.values().to_vec(), vec![0.0; start.values().len()]);
        let (n, mut mean) = (self.train.labels.len(), 0.0);
        for epoch in 0..job.epochs {
            mean = 0.0;
            for batch in (self.order)(job.order.step(u64::from(epoch)), n).chunks(job.batch) {
                let (grad, value) = gradient(&self.spec, &w, &self.train, batch, job);
                mean += value * batch.len() as f64 / n as f64;
                for at in job.trains.ranges(&self.spec).flatten() {
                    v[at] = job.momentum * v[at] + grad[at];
                    w[at] -= job.rate.0 * v[at];
                }
            }
        }
        let params = Params::new(self.spec.clone(), w)?;
        Ok(Trained { params, loss: mean, visits: u64::from(job.epochs) * n as u64 })
    }
    fn evaluate(
        &mut self,
        params: &Params,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Metrics, TrainError> {
        let set = self.set(split);
        let (mut sum, mut right) = (0.0, 0.0);
        for (x, &y) in set.inputs.iter().zip(&set.labels) {
            let acts = forward(&self.spec, params.values(), fed(x, conditioning));
            let z = &acts[acts.len() - 1];
            sum += loss::log_sum_exp(z) - f64::from(z[usize::from(y)]);
            right += f64::from(u8::from(crate::fed::argmax(z) == usize::from(y)));
        }
        let n = set.labels.len().max(1) as f64;
        let samples = set.labels.len() as u32;
        Ok(Metrics { loss: sum / n, accuracy: right / n, balanced: right / n, samples })
    }
    fn features(
        &mut self,
        backbone: &Backbone,
        conditioning: &[f32],
        split: Split,
    ) -> Result<Features, TrainError> {
        let set = self.set(split);
        let values = set.inputs.iter().flat_map(|x| features(backbone, fed(x, conditioning))).collect();
        Ok(Features { width: self.spec.features(), values, labels: set.labels })
    }
    fn gradient(&mut self, params: &Params, conditioning: &[f32]) -> Result<Vec<f32>, TrainError> {
        let everything = crate::params::Mask::all(&self.spec);
        let job = Job {
            trains: &everything,
            epochs: 1,
            batch: 1,
            rate: crate::nn::LearningRate(1.0),
            momentum: 0.0,
            order: Key::new(0, Purpose::Test),
            loss: crate::nn::Loss::default(),
            conditioning,
        };
        let rows: Vec<usize> = (0..self.train.labels.len()).collect();
        Ok(gradient(&self.spec, params.values(), &self.train, &rows, &job).0)
    }
    fn visit(&self, look: &mut dyn FnMut(&[f32], u16)) {
        self.train.inputs.iter().zip(&self.train.labels).for_each(|(x, &y)| look(x, y));
    }
}

fn features(backbone: &Backbone, input: Vec<f32>) -> Vec<f32> {
    let spec = backbone.spec();
    let whole = Params::join(backbone, &crate::params::Head::zeros(spec));
    let mut acts = forward(spec, whole.values(), input);
    acts.swap_remove(layers(spec).len() - 1)
}

/// The same network as an engine for answers.
#[derive(Debug)]
pub(crate) struct Engine;

impl Extractor for Engine {
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError> {
        let one = |i| features(&stream.backbone, fed(inputs.row(i), &stream.conditioning));
        Ok((0..inputs.rows()).flat_map(one).collect())
    }
}
