//! The small network of Client-Conditional (S-CC; methods §2.1): two padded 3×3 convolutions of 32 and 64 channels, each with ReLU and 2×2 max
//! pooling; the flattened 3136 numbers and the client's statistics feed 128 units. 421,642 parameters without statistics.
use super::{Chain, Graph, GraphError, ModelCard};

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let chain = Chain::new(card).conv3("conv1", 32)?.relu()?.pool([2, 2])?;
    let chain = chain.conv3("conv2", 64)?.relu()?.pool([2, 2])?.flatten()?;
    chain.linear("fc1", 128)?.relu()?.head(card)
}
