//! What shall be answered: pictures, folders of them, IDX files. Each input has a name by which its answer is found.
use super::{Fit, LocalDataError, Target, at, decode, files, load_idx_inputs};
use models::data::Inputs;
use std::path::{Path, PathBuf};

/// Inputs in the order given, in [0, 1], channel-first, not standardised.
#[derive(Debug, Default)]
pub struct Queries {
    /// A name for each input.
    pub names: Vec<String>,
    /// All values, one input after the other.
    pub values: Vec<f32>,
    /// What could not be read, and why.
    pub unusable: Vec<LocalDataError>,
}

/// Reads all `paths`. A file that can't be used doesn't keep the others from being answered.
///
/// # Errors
/// [`LocalDataError`] if a folder can't be read, or nothing is left to answer.
pub fn queries(paths: &[PathBuf], target: Target<'_>) -> Result<Queries, LocalDataError> {
    let mut all = Queries::default();
    for path in paths {
        all.add(path, target)?;
    }
    match (all.names.is_empty(), all.unusable.is_empty()) {
        (true, false) => Err(all.unusable.swap_remove(0)),
        (true, true) => {
            Err(LocalDataError::NothingToAnswer { path: paths.first().cloned().unwrap_or_default() })
        }
        _ => Ok(all),
    }
}

impl Queries {
    fn add(&mut self, path: &Path, target: Target<'_>) -> Result<(), LocalDataError> {
        if path.is_dir() {
            return self.add_dir(path, target);
        }
        let is_idx = files::name(path).contains("idx") && !files::is_picture(path);
        let read = if is_idx { self.add_idx(path, target) } else { self.add_picture(path, target) };
        if let Err(error) = read {
            self.unusable.push(error);
        }
        Ok(())
    }

    fn add_dir(&mut self, dir: &Path, target: Target<'_>) -> Result<(), LocalDataError> {
        for path in files::list(dir)? {
            if path.is_dir() || files::is_picture(&path) || files::is_idx_images(&path) {
                self.add(&path, target)?;
            }
        }
        Ok(())
    }

    fn add_picture(&mut self, path: &Path, target: Target<'_>) -> Result<(), LocalDataError> {
        let pixels = decode(path, Fit { input: target.input, resize: target.resize })?;
        self.names.push(path.display().to_string());
        self.values.extend(pixels.into_iter().map(|p| f32::from(p) / 255.0));
        Ok(())
    }

    fn add_idx(&mut self, path: &Path, target: Target<'_>) -> Result<(), LocalDataError> {
        let inputs: Inputs = load_idx_inputs(path)?;
        inputs.check_input(target.input).map_err(at(path))?;
        self.names.extend((0..inputs.len()).map(|i| format!("{}[{i}]", path.display())));
        self.values.extend(inputs.to_f32());
        Ok(())
    }
}
