//! Where ONNX Runtime's shared library lies on this machine.
use models::infer::RuntimeError;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const REMEDY: &str = "install it with `edge-client ort install --from WHEEL` (the Python package onnxruntime holds it), \
                      name it with --ort-lib or ORT_DYLIB_PATH, or choose another engine with --engine";

/// Folders in which ONNX Runtime is commonly installed, best first: beside the program, then the system's.
pub fn standard_places(program: Option<&Path>) -> Vec<PathBuf> {
    let beside = program.and_then(Path::parent).map(|dir| [dir.join("lib"), dir.to_path_buf()]);
    let system = ["/usr/local/lib", "/opt/onnxruntime/lib", "/usr/lib", "/usr/lib64"].map(PathBuf::from);
    let debian = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    beside.into_iter().flatten().chain(system).chain([debian]).collect()
}

/// The library's file: `explicit` (`--ort-lib`) if given, else `env` (`ORT_DYLIB_PATH`) if set, else the first of `places` that has it.
///
/// Each may be the file or a folder that holds it; in a folder the newest version wins.
///
/// # Errors
/// [`RuntimeError::Missing`]: a path that was given has no library (the search does not go on behind the user's
/// back), or no place has one.
pub fn find_library(
    explicit: Option<&Path>,
    env: Option<OsString>,
    places: &[PathBuf],
) -> Result<PathBuf, RuntimeError> {
    let named = |path: &Path, by: &str| {
        library_at(path).ok_or_else(|| {
            missing(format!("{by} names {}, where there is no {}", path.display(), file_name()))
        })
    };
    match (explicit, env.filter(|value| !value.is_empty())) {
        (Some(path), _) => named(path, "--ort-lib"),
        (None, Some(path)) => named(Path::new(&path), "ORT_DYLIB_PATH"),
        (None, None) => places.iter().find_map(|place| library_at(place)).ok_or_else(|| {
            let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            missing(format!(
                "no {} in {}",
                file_name(),
                if looked.is_empty() { "any place".into() } else { looked.join(", ") }
            ))
        }),
    }
}

pub(super) fn missing(why: String) -> RuntimeError {
    RuntimeError::Missing { engine: "ort", why, remedy: REMEDY.into() }
}

fn file_name() -> String {
    format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}")
}

fn library_at(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    let name = file_name();
    let files = std::fs::read_dir(path).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    files
        .filter_map(|file| Some((version(file.file_name()?.to_str()?, &name)?, file)))
        .max()
        .map(|(_, file)| file)
}

/// The version in `libonnxruntime.so.1.31.1`; the bare name counts as newest, since whoever installs keeps it current.
fn version(file: &str, name: &str) -> Option<Vec<u32>> {
    let rest = file.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(vec![u32::MAX]);
    }
    rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_the_bare_name_wins() {
        let name = "libonnxruntime.so";
        assert!(version("libonnxruntime.so.1.31.1", name) > version("libonnxruntime.so.1.9.2", name));
        assert!(version("libonnxruntime.so", name) > version("libonnxruntime.so.1.31.1", name));
        assert_eq!(version("libonnxruntime_providers_shared.so", name), None);
        assert_eq!(version("libonnxruntime.so.old", name), None);
    }

    #[test]
    fn the_first_place_given_is_the_only_one_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(format!("{}.1.31.1", file_name()));
        std::fs::write(&file, b"").unwrap();
        let places = [dir.path().to_path_buf()];
        assert_eq!(find_library(None, None, &places).unwrap(), file);
        assert_eq!(find_library(None, Some("".into()), &places).unwrap(), file);
        assert_eq!(find_library(Some(&file), Some("/nowhere".into()), &[]).unwrap(), file);
        let refused = find_library(Some(Path::new("/nowhere")), None, &places).unwrap_err().to_string();
        assert!(refused.contains("--ort-lib names /nowhere") && refused.contains("ort install"), "{refused}");
        let refused = find_library(None, Some("/nowhere".into()), &places).unwrap_err().to_string();
        assert!(refused.contains("ORT_DYLIB_PATH names /nowhere"), "{refused}");
        assert!(find_library(None, None, &[]).unwrap_err().to_string().contains("no libonnxruntime"));
    }
}
