//! What the integration tests share: where things are, the golden hash, and fleets of the real programs.
pub mod fleet;
pub mod hand;
pub mod hashed;
pub mod pictures;
pub mod process;
pub mod programs;
pub mod readme;
pub mod relay;
pub mod sentinel;

use std::path::{Path, PathBuf};

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A golden file.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// A golden JSON file.
///
/// # Panics
/// If it is absent or damaged: it is part of the repository.
pub fn golden_json(name: &str) -> serde_json::Value {
    let path = golden(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The numbers of a JSON array.
pub fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
}
