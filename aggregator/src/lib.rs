//! The host: it enrols boards, runs rounds over TLS and keeps what a restart needs.
//!
//! [`dir::HostDir`] is a host's directory, [`server::Server`] runs it, [`cli::main_from`] is the whole program.
pub mod blobs;
pub mod cli;
pub mod clock;
pub mod compute;
pub mod config;
pub mod crash;
pub mod dir;
mod disk;
pub mod drive;
mod http;
pub mod ledger;
pub mod pki;
pub mod server;
mod stop;
