//! The larger network of Client-Conditional (S-CC; methods §2.1): four padded 3×3 convolutions (32, 32, 64, 64), each followed by batch norm and
//! ReLU (their order is ours), max pooling after every second; 4096 numbers and the statistics feed 256 units. 1,125,546 parameters with 32 statistics.
//! `cc32-gn` has group norm (8 groups) in place of batch norm (methods §1.4).
use super::{Chain, Graph, GraphError, ModelCard, Op};

const EPSILON: f32 = 1e-5;

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    stack(card, "bn", Op::batch_norm(EPSILON))
}

pub(super) fn build_group_norm(card: &ModelCard) -> Result<Graph, GraphError> {
    stack(card, "gn", Op::GroupNorm { groups: 8, epsilon: EPSILON })
}

fn stack(card: &ModelCard, prefix: &str, norm: Op) -> Result<Graph, GraphError> {
    let mut chain = Chain::new(card);
    for (i, out) in (1..).zip([32, 32, 64, 64]) {
        chain = chain.conv3(&format!("conv{i}"), out)?.then(&format!("{prefix}{i}"), norm)?.relu()?;
        if i % 2 == 0 {
            chain = chain.pool([2, 2])?;
        }
    }
    chain.flatten()?.linear("fc1", 256)?.relu()?.head(card)
}
