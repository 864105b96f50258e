//! A residual network of three basic blocks (He et al. 2016, arXiv:1512.03385; as small as MLPerf Tiny's ResNet-8), its first
//! convolution with a stride of two: batch norm after each convolution, 1×1 convolutions where a block changes extents, the mean
//! over what is left, the head. 78,042 trained parameters on 3×64×64 with ten classes, without conditioning.
use super::{Chain, Conv2d, Graph, GraphError, ModelCard, Op};

/// Channels and strides of the blocks.
const BLOCKS: [(usize, usize); 3] = [(16, 1), (32, 2), (64, 2)];

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    let mut chain = Chain::new(card).normed("stem", 16, 3, 2)?.relu()?;
    for (i, (out, stride)) in (1..).zip(BLOCKS) {
        chain = chain.block(&format!("block{i}"), out, stride)?;
    }
    chain.mean()?.flatten()?.head(card)
}

impl Chain {
    /// A convolution without bias, and its batch norm.
    fn normed(self, name: &str, out: usize, window: usize, stride: usize) -> Result<Self, GraphError> {
        let conv = Conv2d { stride: [stride; 2], bias: false, ..Conv2d::same(out, [window; 2]) };
        self.conv(name, conv)?.batch_norm(&format!("{name}_bn"))
    }

    fn block(self, name: &str, out: usize, stride: usize) -> Result<Self, GraphError> {
        let (from, changes) = (self.last, self.graph.dims(self.last).channels != out || stride > 1);
        let mut chain = self.normed(&format!("{name}_a"), out, 3, stride)?.relu()?;
        chain = chain.normed(&format!("{name}_b"), out, 3, 1)?;
        let body = std::mem::replace(&mut chain.last, from);
        if changes {
            chain = chain.normed(&format!("{name}_short"), out, 1, stride)?;
        }
        chain.last = chain.graph.add(&format!("{name}_sum"), Op::Add, &[body, chain.last])?;
        chain.relu()
    }
}
