//! The network of pFedKDH (S-KDH; methods §2.1), which publishes its kind but not its widths: two convolutions with ReLU and max pooling, dropout,
//! a projection (the feature) and a linear head. Ours: 32 and 64 channels of 3×3, dropout 0.25, 128 features below 32×32 and 512 from there.
use super::{Chain, Graph, GraphError, ModelCard, Op};

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let features = if card.input[1] >= 32 { 512 } else { 128 };
    let chain = Chain::new(card).conv3("conv1", 32)?.relu()?.pool([2, 2])?;
    let chain = chain
        .conv3("conv2", 64)?
        .relu()?
        .pool([2, 2])?
        .then("dropout", Op::Dropout { p: 0.25 })?
        .flatten()?;
    chain.linear("fc1", features)?.relu()?.head(card)
}
