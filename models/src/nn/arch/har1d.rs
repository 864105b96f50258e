//! A small network for motion windows (accelerometer and gyroscope, 6 channels of 64 points in time): two convolutions of 5 points with ReLU and
//! pooling, 64 units. Ours, after the shape that activity-recognition papers share.
use super::{Chain, Conv2d, Graph, GraphError, ModelCard};

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let conv = |out| Conv2d::same(out, [1, 5]);
    let chain = Chain::new(card).conv("conv1", conv(16))?.relu()?.pool([1, 2])?;
    let chain = chain.conv("conv2", conv(32))?.relu()?.pool([1, 2])?.flatten()?;
    chain.linear("fc1", 64)?.relu()?.head(card)
}
