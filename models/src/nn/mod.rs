//! Networks: a graph of layers, their losses, and local training.
pub mod arch;
pub mod bench;
mod cache;
pub mod data;
mod engine;
mod forward;
pub mod graph;
pub mod head;
mod init;
mod isa;
mod layer;
mod limited;
mod local;
pub mod loss;
mod metrics;
pub mod optim;
mod trainer;

pub use cache::{FeatureCache, Precision};
pub use data::{DataError, Dataset, Inputs};
pub use engine::{MemoryPlan, Planned};
pub use forward::{Extractor, Forward};
pub use graph::{Graph, GraphBuilder, GraphError, NodeId, Op};
pub use init::init;
pub use isa::{cap_isa, isa};
pub use limited::Limited;
pub use local::{LocalTrainer, Shuffle};
pub use metrics::metrics;
pub use trainer::{
    ClassCounts, Distill, Features, Job, LearningRate, Loss, Metrics, Proximal, Split, TrainError, Trained,
    Trainer,
};

#[cfg(test)]
mod tests;
