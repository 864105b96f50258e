//! The programs under test, as `cargo` built them beside the test binary; built here if they are absent or older than their sources.
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// Whether the programs carry crash points: those of debug builds do.
pub const CRASH_POINTS: bool = cfg!(debug_assertions);

/// The host's program.
pub fn aggregator() -> &'static Path {
    &PROGRAMS[0]
}

/// The board's program.
pub fn edge_client() -> &'static Path {
    &PROGRAMS[1]
}

/// Where both are.
pub fn folder() -> &'static Path {
    PROGRAMS[0].parent().unwrap_or_else(|| Path::new("."))
}

static PROGRAMS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let folder = profile_folder();
    let paths = ["aggregator", "edge-client"].map(|name| folder.join(name));
    if paths.iter().any(|p| is_stale(p)) {
        build(&folder);
    }
    paths
});

/// `target/<profile>`: the test binary lies in its `deps`.
fn profile_folder() -> PathBuf {
    let own = std::env::current_exe().expect("a process knows its own program");
    let deps = own.parent().filter(|p| p.ends_with("deps")).or(own.parent());
    let folder = if deps.is_some_and(|p| p.ends_with("deps")) { deps.and_then(Path::parent) } else { deps };
    folder.expect("a program lies in a folder").to_path_buf()
}

fn is_stale(program: &Path) -> bool {
    let Ok(built) = program.metadata().and_then(|m| m.modified()) else { return true };
    ["models", "onnx", "edge-client", "aggregator"]
        .iter()
        .any(|of| newest(&root().join(of).join("src")) > built)
}

/// When the youngest source under `folder` was written.
fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let written = |path: &Path| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let age = |path: PathBuf| if path.is_dir() { newest(&path) } else { written(&path) };
    entries.map(|e| age(e.path())).max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn build(folder: &Path) {
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or("debug");
    let profile = if name == "debug" { "dev" } else { name };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--quiet", "-p", "aggregator", "-p", "edge-client", "--bins"]);
    command.args(["--profile", profile]).arg("--target-dir").arg(folder.parent().unwrap_or(folder));
    let built = command.status().expect("cargo runs");
    assert!(built.success(), "the programs can't be built");
}
