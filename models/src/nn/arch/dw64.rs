//! MobileNet's depthwise-separable blocks (Howard et al. 2017, arXiv:1704.04861), half as wide and five of them: a 3×3
//! convolution per channel, then a 1×1 one across channels, each with batch norm and ReLU; three times a stride of two, the mean
//! over what is left, the head. 37,162 trained parameters on 3×64×64 with ten classes, without conditioning.
use super::{Chain, Conv2d, Graph, GraphError, ModelCard};

/// Channels and strides of the blocks.
const BLOCKS: [(usize, usize); 5] = [(32, 1), (64, 2), (64, 1), (128, 2), (128, 1)];

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let stem = Conv2d { stride: [2, 2], bias: false, ..Conv2d::same(16, [3, 3]) };
    let mut chain = Chain::new(card).conv("stem", stem)?.batch_norm("stem_bn")?.relu()?;
    let mut channels = stem.out;
    for (i, (out, stride)) in (1..).zip(BLOCKS) {
        let window =
            Conv2d { stride: [stride; 2], groups: channels, bias: false, ..Conv2d::same(channels, [3, 3]) };
        let across = Conv2d { bias: false, ..Conv2d::same(out, [1, 1]) };
        chain = chain.conv(&format!("dw{i}"), window)?.batch_norm(&format!("dw{i}_bn"))?.relu()?;
        chain = chain.conv(&format!("pw{i}"), across)?.batch_norm(&format!("pw{i}_bn"))?.relu()?;
        channels = out;
    }
    chain.mean()?.flatten()?.head(card)
}
