//! The built-in networks, one file each with its source.
mod cc28;
mod cc32;
mod dw64;
mod har1d;
mod kdhcnn;
mod lenet5;
mod mlp;
mod res64;

use super::graph::{Conv2d, Graph, GraphBuilder, GraphError, NodeId, Op, Window};
use crate::params::{ModelCard, ModelSpec, SpecError};
use std::sync::Arc;

type Build = fn(&ModelCard) -> Result<Graph, GraphError>;

/// Name, whether it takes a conditioning vector, what it needs of an input, builder.
const ALL: [(&str, bool, &str, Build); 9] = [
    ("lenet5", false, "images of 28×28 or 32×32", lenet5::build),
    ("cc28", true, "images of at least 4×4 (made for 28×28)", cc28::build),
    ("cc32", true, "images of at least 4×4 (made for 32×32)", cc32::build),
    ("cc32-gn", true, "images of at least 4×4 (made for 32×32)", cc32::build_group_norm),
    ("kdhcnn", true, "images of at least 4×4 (made for 28×28 and 32×32)", kdhcnn::build),
    ("dw64", true, "images of at least 8×8 (made for 64×64)", dw64::build),
    ("res64", true, "images of at least 8×8 (made for 64×64)", res64::build),
    ("mlp", false, "any input", mlp::build),
    ("har1d", false, "signals [channels, 1, time] of at least 4 points", har1d::build),
];

/// Names of all architectures, as in configuration and on the command line.
pub const NAMES: [&str; ALL.len()] = {
    let mut names = [""; ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        names[i] = ALL[i].0;
        i += 1;
    }
    names
};

/// The network that a card describes, and its table of contents.
///
/// # Errors
/// [`SpecError::UnknownArch`]; [`SpecError::Unsuitable`] if it can't take the input, the classes or the statistics.
///
/// ```
/// # use models::{nn::arch, params::{ModelCard, Preprocessing}};
/// let labels = (0..10).map(|c| c.to_string()).collect();
/// let card = ModelCard { arch: "cc28".into(), input: [1, 28, 28], labels, statistics: 0, preprocessing: Preprocessing::none(1) };
/// let (_graph, spec) = arch::build(&card)?;
/// assert_eq!(spec.len(), 421_642);
/// # Ok::<(), models::params::SpecError>(())
/// ```
pub fn build(card: &ModelCard) -> Result<(Arc<Graph>, Arc<ModelSpec>), SpecError> {
    let unknown = || SpecError::UnknownArch { name: card.arch.clone(), known: NAMES.join(", ") };
    let &(name, conditioned, needs, build) = ALL.iter().find(|a| a.0 == card.arch).ok_or_else(unknown)?;
    let refuse =
        |needs: &str, got: String| SpecError::Unsuitable { arch: name.into(), needs: needs.into(), got };
    check(card, conditioned, &refuse)?;
    let [c, h, w] = card.input;
    let graph = build(card).map_err(|_| refuse(needs, format!("{c}×{h}×{w}")))?;
    let spec = graph.spec(card.clone())?;
    Ok((Arc::new(graph), Arc::new(spec)))
}

/// Numbers in a sample, classes or statistics that a card may ask for: caps what a card from elsewhere makes us allocate.
const LIMIT: usize = 1 << 20;

fn check(
    card: &ModelCard,
    conditioned: bool,
    refuse: &dyn Fn(&str, String) -> SpecError,
) -> Result<(), SpecError> {
    let [c, h, w] = card.input;
    if [c, h, w].iter().any(|&n| n == 0 || n > LIMIT) || c.saturating_mul(h).saturating_mul(w) > LIMIT {
        return Err(refuse("an input of 1 to 2^20 numbers", format!("{c}×{h}×{w}")));
    }
    if card.labels.is_empty() || card.labels.len() > usize::from(u16::MAX) {
        return Err(refuse("1 to 65535 classes", format!("{}", card.labels.len())));
    }
    if card.statistics > if conditioned { LIMIT } else { 0 } {
        return Err(refuse("no conditioning vector, or a small one", format!("{}", card.statistics)));
    }
    let (means, stds) = (&card.preprocessing.mean, &card.preprocessing.std);
    if means.len() != c || stds.len() != c || stds.iter().any(|s| *s <= 0.0 || !s.is_finite()) {
        return Err(refuse(
            "a mean and a positive deviation per channel",
            format!("{} and {}", means.len(), stds.len()),
        ));
    }
    Ok(())
}

/// A chain of layers: each reads the one before.
struct Chain {
    graph: GraphBuilder,
    last: NodeId,
}

impl Chain {
    fn new(card: &ModelCard) -> Self {
        let graph = GraphBuilder::new(card.input, card.statistics);
        let last = graph.input();
        Self { graph, last }
    }

    fn then(mut self, name: &str, op: Op) -> Result<Self, GraphError> {
        self.last = self.graph.add(name, op, &[self.last])?;
        Ok(self)
    }

    fn conv(self, name: &str, conv: Conv2d) -> Result<Self, GraphError> {
        self.then(name, Op::Conv2d(conv))
    }

    /// A 3×3 convolution that keeps the extent.
    fn conv3(self, name: &str, out: usize) -> Result<Self, GraphError> {
        self.conv(name, Conv2d::same(out, [3, 3]))
    }

    fn linear(self, name: &str, out: usize) -> Result<Self, GraphError> {
        self.then(name, Op::Linear { out, bias: true })
    }

    fn relu(self) -> Result<Self, GraphError> {
        self.then("relu", Op::Relu)
    }

    /// Batch norm with the usual epsilon.
    fn batch_norm(self, name: &str) -> Result<Self, GraphError> {
        self.then(name, Op::batch_norm(1e-5))
    }

    /// The mean of each channel.
    fn mean(self) -> Result<Self, GraphError> {
        let whole = Window::whole(self.graph.dims(self.last));
        self.then("mean", Op::AvgPool(whole))
    }

    fn pool(self, kernel: [usize; 2]) -> Result<Self, GraphError> {
        self.then("pool", Op::MaxPool(Window::tiles(kernel)))
    }

    /// Flattens, and appends the conditioning vector if there is one.
    fn flatten(mut self) -> Result<Self, GraphError> {
        self = self.then("flatten", Op::Flatten)?;
        if let Some(statistics) = self.graph.conditioning() {
            self.last = self.graph.add("concat", Op::Concat, &[self.last, statistics])?;
        }
        Ok(self)
    }

    /// The head.
    fn head(self, card: &ModelCard) -> Result<Graph, GraphError> {
        let chain = self.linear("head", card.labels.len())?;
        let last = chain.last;
        Ok(chain.graph.finish(&[last]))
    }
}
