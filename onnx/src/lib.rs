//! Interchange with the rest of the world: Spectra's models as ONNX files, ONNX files as graphs that train, and the
//! engines that run them.
//!
//! [`proto`] is the file format; one file of `op` for each operator knows both its directions; [`export()`] writes a
//! [`models::fed::Ensemble`], [`import()`] reads a [`Network`] back, [`runtime`] runs what came out.
mod export;
mod federate;
mod file;
mod frozen;
mod import;
mod metadata;
mod network;
mod op;
pub mod proto;
pub mod runtime;
mod statistics;

pub use export::{ExportError, export, write};
pub use federate::{Brought, BuildError, Built, Kept, bring, build};
pub use file::{FileError, read};
pub use frozen::{Extractor, FeatureSession, FrozenError, MOST_FEATURES};
pub use import::{ImportError, import};
pub use metadata::{Metadata, MetadataError, Role};
pub use network::{Network, NetworkError};
