//! Folders of pictures: one sub-folder per class.
use super::{Fit, Loaded, LocalDataError, Target, decode, files};
use models::data::{Elements, Inputs, Samples, labels};
use std::path::{Path, PathBuf};

/// Names of corrupt pictures that are shown before the rest is only counted.
const SHOWN: usize = 5;

/// What was gathered so far.
#[derive(Default)]
struct Gathered {
    pixels: Vec<u8>,
    labels: Vec<u16>,
    corrupt: Vec<String>,
}

pub(super) fn load(path: &Path, listing: &[PathBuf], target: Target<'_>) -> Result<Loaded, LocalDataError> {
    let folders: Vec<&PathBuf> = listing.iter().filter(|p| p.is_dir()).collect();
    if folders.is_empty() {
        return Err(no_folders(path, listing, target));
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        folders.into_iter().map(|f| (f, class_of(f, target.labels))).partition(|(_, class)| class.is_some());
    if known.is_empty() {
        let found = names(unknown.iter().map(|(f, _)| *f));
        return Err(LocalDataError::AllUnknown {
            path: path.into(),
            found,
            labels: target.labels.join(", "),
        });
    }
    let mut gathered = Gathered::default();
    for (folder, class) in known.iter().filter_map(|(f, class)| class.map(|c| (f, c))) {
        gathered.add_folder(folder, class, target)?;
    }
    let mut warnings: Vec<String> = unknown.iter().map(|(f, _)| unknown_folder(f, target.labels)).collect();
    warnings.extend(gathered.warn());
    Ok(Loaded { samples: gathered.finish(path, target)?, warnings })
}

impl Gathered {
    fn add_folder(&mut self, folder: &Path, class: u16, target: Target<'_>) -> Result<(), LocalDataError> {
        let fit = Fit { input: target.input, resize: target.resize };
        for file in files::list(folder)?.iter().filter(|p| files::is_picture(p)) {
            match decode(file, fit) {
                Ok(pixels) => {
                    self.pixels.extend(pixels);
                    self.labels.push(class);
                }
                Err(e @ (LocalDataError::Picture { .. } | LocalDataError::Read { .. })) => {
                    self.corrupt.push(e.to_string());
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn warn(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.corrupt.iter().take(SHOWN).map(|c| format!("left out: {c}")).collect();
        if self.corrupt.len() > SHOWN {
            warnings.push(format!(
                "left out: {} more pictures that can't be decoded",
                self.corrupt.len() - SHOWN
            ));
        }
        warnings
    }

    fn finish(self, path: &Path, target: Target<'_>) -> Result<Samples, LocalDataError> {
        if let (true, Some(first)) = (self.labels.is_empty(), self.corrupt.first()) {
            let (count, first) = (self.corrupt.len(), first.clone());
            return Err(LocalDataError::AllCorrupt { path: path.into(), count, first });
        }
        let inputs = Inputs::new(target.input, Elements::U8(self.pixels));
        inputs.and_then(|inputs| Samples::new(inputs, self.labels)).map_err(super::at(path))
    }
}

fn no_folders(path: &Path, listing: &[PathBuf], target: Target<'_>) -> LocalDataError {
    match listing.iter().any(|p| files::is_picture(p)) {
        true => LocalDataError::NoClasses { path: path.into(), labels: target.labels.join(", ") },
        false => LocalDataError::NothingThere { path: path.into() },
    }
}

fn class_of(folder: &Path, labels: &[String]) -> Option<u16> {
    labels::class_of(&folder.file_name()?.to_string_lossy(), labels)
}

fn unknown_folder(folder: &Path, labels: &[String]) -> String {
    format!(
        "left out: folder {} is no class of the model, which knows {}",
        folder.display(),
        labels.join(", ")
    )
}

fn names<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    paths.map(|p| files::name(p)).collect::<Vec<_>>().join(", ")
}
