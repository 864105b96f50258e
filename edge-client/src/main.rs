//! The board's program; everything else is in the library.
use std::process::ExitCode;

fn main() -> ExitCode {
    edge_client::cli::main_from(std::env::args_os())
}
