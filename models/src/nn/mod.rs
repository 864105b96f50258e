//! Networks: a graph of layers, their losses, and local training.
pub mod head;
pub mod loss;
mod trainer;

pub use trainer::{
    ClassCounts, Distill, Features, Job, LearningRate, Loss, Metrics, Proximal, Split, TrainError, Trained,
    Trainer,
};
