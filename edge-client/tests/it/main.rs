//! The board's shell: local data, private directory, configuration, command line, the loop over a host in memory.
mod config;
mod data;
mod store;
