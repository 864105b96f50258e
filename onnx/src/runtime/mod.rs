//! Engines that run ONNX graphs: the native one, ONNX Runtime and tract.
pub(crate) mod contract;
pub mod library;
mod native;
#[cfg(feature = "ort")]
mod ort;
#[cfg(feature = "tract")]
mod tract;

pub use library::{find_library, standard_places};
pub use native::Native;
#[cfg(feature = "ort")]
pub use ort::Ort;
#[cfg(feature = "tract")]
pub use tract::Tract;

use models::infer::{Runtime, RuntimeError};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// What opening an engine may depend on. Nothing is read from the environment behind the caller's back.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--ort-lib`: ONNX Runtime's library or the folder that holds it.
    pub ort_lib: Option<PathBuf>,
    /// The value of `ORT_DYLIB_PATH`.
    pub ort_dylib_path: Option<OsString>,
    /// Folders to search otherwise; [`standard_places`] has the usual ones.
    pub places: Vec<PathBuf>,
    /// Threads that a session may use.
    pub threads: NonZeroUsize,
}

impl Options {
    /// One thread, and ONNX Runtime wherever this process's environment and machine have it.
    pub fn of_process() -> Self {
        let program = std::env::current_exe().ok();
        Self {
            ort_lib: None,
            ort_dylib_path: std::env::var_os("ORT_DYLIB_PATH"),
            places: standard_places(program.as_deref()),
            threads: NonZeroUsize::MIN,
        }
    }
}

/// Which engine is wanted, as `--engine` spells it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Engine {
    /// ONNX Runtime where its library is found, else native.
    #[default]
    Auto,
    /// ONNX Runtime.
    Ort,
    /// The training engine's own forward pass: always there.
    Native,
    /// tract.
    Tract,
}

impl Engine {
    /// The three real ones, in the order in which they are reported.
    pub const ALL: [Self; 3] = [Self::Native, Self::Tract, Self::Ort];

    /// Its spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ort => "ort",
            Self::Native => "native",
            Self::Tract => "tract",
        }
    }

    /// Opens it.
    ///
    /// `Auto` falls back to native only where the user named no library: a path that was given and does not work is an error.
    ///
    /// # Errors
    /// [`RuntimeError::Missing`], with what to do about it.
    pub fn open(self, options: &Options) -> Opened {
        match self {
            Self::Native => Ok(Box::new(Native::new(options.threads))),
            Self::Tract => open_tract(),
            Self::Ort => open_ort(options),
            Self::Auto => match open_ort(options) {
                Err(_) if options.ort_lib.is_none() => Self::Native.open(options),
                opened => opened,
            },
        }
    }

    /// Opens it for a network of which a part is kept as it came: that may hold any operator, so the native engine is out.
    ///
    /// # Errors
    /// [`RuntimeError::Missing`], with what to do about it.
    pub fn open_frozen(self, options: &Options) -> Opened {
        match self {
            Self::Native => Err(RuntimeError::Missing {
                engine: "native",
                why: "it does not know the operators of the part of this network that is not trained".into(),
                remedy: "choose auto, ort or tract with --engine".into(),
            }),
            Self::Auto => match open_ort(options) {
                Err(missing) if options.ort_lib.is_none() => open_tract().map_err(|_| missing),
                opened => opened,
            },
            other => other.open(options),
        }
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = [Self::Auto, Self::Ort, Self::Native, Self::Tract];
        known
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| format!("no engine is called {name:?}; there are auto, ort, native and tract"))
    }
}

/// Opens the engine of this name; see [`Engine::open`].
///
/// # Errors
/// [`RuntimeError::Missing`].
pub fn by_name(name: &str, options: &Options) -> Opened {
    match name.parse::<Engine>() {
        Ok(engine) => engine.open(options),
        Err(why) => Err(RuntimeError::Missing { engine: "?", why, remedy: "name one of them".into() }),
    }
}

/// An engine, or why there is none.
pub type Opened = Result<Box<dyn Runtime>, RuntimeError>;

/// Every engine: opened, or why it can't be.
pub fn all(options: &Options) -> Vec<(Engine, Opened)> {
    Engine::ALL.into_iter().map(|engine| (engine, engine.open(options))).collect()
}

#[cfg(feature = "ort")]
fn open_ort(options: &Options) -> Opened {
    let library = find_library(options.ort_lib.as_deref(), options.ort_dylib_path.clone(), &options.places)?;
    Ok(Box::new(Ort::load(&library, options.threads)?))
}

#[cfg(not(feature = "ort"))]
fn open_ort(_: &Options) -> Opened {
    Err(left_out("ort"))
}

#[cfg(feature = "tract")]
fn open_tract() -> Opened {
    Ok(Box::new(Tract))
}

#[cfg(not(feature = "tract"))]
fn open_tract() -> Opened {
    Err(left_out("tract"))
}

#[cfg(not(all(feature = "ort", feature = "tract")))]
fn left_out(engine: &'static str) -> RuntimeError {
    let remedy = format!("build it with `--features {engine}`, or choose another engine with --engine");
    RuntimeError::Missing { engine, why: "this program was built without it".into(), remedy }
}
