//! The board's program; everything else is in the library.
use std::process::ExitCode;

fn main() -> ExitCode {
    give_memory_back();
    edge_client::cli::main_from(std::env::args_os())
}

/// glibc keeps the memory of large buffers that were freed, in pieces that the next ones don't fit into: a board would hold half as much
/// again as it ever uses. With a fixed threshold they go back at once. Only the environment can say so before the allocator
/// starts, so the program takes its own place once, as the same process. Where that can't be, it just goes on.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_memory_back() {
    use std::os::unix::process::CommandExt;
    const THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";
    if std::env::var_os(THRESHOLD).is_some() {
        return;
    }
    let (Ok(program), mut args) = (std::env::current_exe(), std::env::args_os()) else { return };
    let name = args.next().unwrap_or_default();
    let _failed = std::process::Command::new(program).arg0(name).args(args).env(THRESHOLD, "262144").exec();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_memory_back() {}
