//! The board's shell: local data, private directory, configuration, command line, the loop over a host in memory.
mod agent;
mod bench;
mod cli;
mod config;
mod data;
mod frozen;
mod help;
mod host;
mod store;
mod transport;
