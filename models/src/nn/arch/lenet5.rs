//! LeNet-5 as FedPrism's public code trains it (methods §2.1): two 5×5 convolutions with max pooling, then 120 and 84 units, ReLU
//! between; 28×28 images are padded to 32×32 by the first convolution. 61,706 parameters on grey images of 10 classes.
use super::{Chain, Conv2d, Graph, GraphError, ModelCard};

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let padding = if card.input[1] >= 32 { 0 } else { 2 };
    let conv = |out, padding| Conv2d { padding: [padding; 2], ..Conv2d::same(out, [5, 5]) };
    let chain = Chain::new(card).conv("conv1", conv(6, padding))?.relu()?.pool([2, 2])?;
    let chain = chain.conv("conv2", conv(16, 0))?.relu()?.pool([2, 2])?.flatten()?;
    chain.linear("fc1", 120)?.relu()?.linear("fc2", 84)?.relu()?.head(card)
}
