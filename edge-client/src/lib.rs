//! The board: keeps its own data and personal model, trains when the host asks, answers by its dual stream.
//!
//! Blocking, no async runtime. [`cli::main_from`] is the whole program, so that another one can run itself as a board.
pub mod agent;
pub mod answers;
pub mod cli;
pub mod compare;
pub mod config;
pub mod data;
mod disk;
pub mod enrolment;
pub mod personal;
pub mod secret;
pub mod store;
pub mod train;
pub mod transport;
