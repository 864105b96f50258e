//! The researcher's bench: data, worlds, fleets of boards in one process, tables, and the demonstration.
pub mod bundle;
pub mod idx;
pub mod images;
pub mod world;
