//! The rules of the house that a machine can see.
use std::path::{Path, PathBuf};
use workspace_tests::root;

/// Layers of `models`, leftmost first; a module uses only what stands before it. Modules of one row don't use each other.
const LAYERS: [&[&str]; 9] = [
    &["id"],
    &["tensor"],
    &["params"],
    &["data"],
    &["nn"],
    &["stats"],
    &["fed"],
    &["infer", "wire"],
    &["round"],
];

/// What the pure core must not touch, with the reason.
const IMPURE: [(&str, &str); 10] = [
    ("std::fs", "no I/O"),
    ("std::net", "no I/O"),
    ("std::env", "no ambient configuration"),
    ("std::time", "time is an argument"),
    ("std::process", "no I/O"),
    ("std::thread", "thread pools are arguments"),
    ("Instant::now", "time is an argument"),
    ("HashMap", "unordered: its order could reach a number"),
    ("HashSet", "unordered: its order could reach a number"),
    ("println!", "stdout belongs to the shells"),
];

/// Longest file. Tables would be named here, with the reason.
const LONGEST: usize = 500;

fn sources(of: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    walk(&root().join(of), &mut found);
    found.sort();
    assert!(!found.is_empty(), "nothing found under {of}");
    found
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            walk(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    ["models", "onnx", "edge-client", "aggregator", "lab", "tests"].into_iter().flat_map(sources).collect()
}

/// The part of a file before its tests.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn is_test(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == "tests")
        || path.file_stem().is_some_and(|s| s == "tests" || s == "laws")
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = all_sources()
        .into_iter()
        .filter(|(_, t)| t.lines().count() > LONGEST)
        .map(|(p, t)| (p, t.lines().count()))
        .collect();
    assert!(long.is_empty(), "over {LONGEST} lines: {long:?}");
}

#[test]
fn imports_in_models_point_left() {
    let base = root().join("models/src");
    for (path, text) in sources("models/src") {
        let Ok(inside) = path.strip_prefix(&base) else { continue };
        let own = inside
            .iter()
            .next()
            .and_then(|c| Path::new(c).file_stem())
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        let Some(here) = layer(own) else {
            assert_eq!(own, "lib", "{}: a module that LAYERS doesn't know", path.display());
            continue;
        };
        for used in product(&text).split("crate::").skip(1) {
            let module: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if module == own || module.is_empty() {
                continue;
            }
            let there = layer(&module).unwrap_or_else(|| panic!("{}: uses crate::{module}", path.display()));
            assert!(
                there < here,
                "{}: {own} uses {module}, which stands to its right or beside it",
                path.display()
            );
        }
    }
}

#[test]
fn the_core_is_pure() {
    for (path, text) in sources("models/src") {
        if is_test(&path) {
            continue;
        }
        for (banned, why) in IMPURE {
            assert!(!product(&text).contains(banned), "{}: {banned} ({why})", path.display());
        }
    }
}

#[test]
fn no_method_uses_another() {
    let methods = ["local", "fedavg", "fedper", "pfedkdh", "fedprism", "conditional", "cpct"];
    for (path, text) in sources("models/src/fed") {
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        if !methods.contains(&stem) || is_test(&path) {
            continue;
        }
        for other in methods.into_iter().filter(|m| *m != stem) {
            assert!(
                !product(&text).contains(&format!("{other}::")),
                "{}: uses method {other}",
                path.display()
            );
        }
    }
}

#[test]
fn unsafe_has_one_address() {
    let kernel = root().join("models/src/tensor/kernel");
    for (path, text) in all_sources() {
        let words = text
            .lines()
            .filter(|l| !l.trim_start().starts_with("//"))
            .any(|l| l.contains("unsafe {") || l.contains("unsafe fn"));
        assert!(
            !words || path.starts_with(&kernel) || path.ends_with("tidy.rs"),
            "{}: unsafe outside the kernels",
            path.display()
        );
    }
}

#[test]
fn the_board_carries_no_async_runtime_and_no_host() {
    let manifest = std::fs::read_to_string(root().join("edge-client/Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
    for banned in ["tokio", "axum", "aggregator", "sqlx", "hyper", "lab"] {
        let used = dependencies.lines().any(|l| l.starts_with(banned));
        assert!(!used, "edge-client depends on {banned}");
    }
}

#[test]
fn nothing_is_left_open() {
    let marks = [
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore"),
    ];
    for (path, text) in all_sources() {
        for mark in marks {
            assert!(!text.contains(mark), "{}: {mark}", path.display());
        }
    }
}
