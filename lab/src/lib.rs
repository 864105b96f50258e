//! The researcher's bench: data, worlds, fleets of boards in one process, tables, and the demonstration.
pub mod baselines;
pub mod bench;
pub mod bundle;
pub mod camera;
pub mod cli;
pub mod demo;
pub mod evaluate;
pub mod fleet;
pub mod idx;
pub mod measure;
pub mod report;
pub mod table;
pub mod world;
