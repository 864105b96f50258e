//! A perceptron with one hidden layer of 64 units: the smallest network that has a backbone. Ours, for tests and tables of numbers.
use super::{Chain, Graph, GraphError, ModelCard};

pub(super) fn build(card: &ModelCard) -> Result<Graph, GraphError> {
    Chain::new(card).flatten()?.linear("fc1", 64)?.relu()?.head(card)
}
