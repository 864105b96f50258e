//! The board's configuration: one table of settings, four layers (defaults < file < environment < flags), checked together.
mod settings;

pub use settings::{Kind, SETTINGS, Setting};

use models::fed::Disclosure;
use models::round::Ceilings;
use onnx::runtime::Engine;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where a value comes from, weakest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Origin {
    /// Built in.
    Default,
    /// The configuration file.
    File,
    /// A `SPECTRA_…` variable.
    Environment,
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

/// A configuration that can't be meant: every problem at once.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the configuration has {} problem(s):\n  {}", .0.len(), .0.join("\n  "))]
pub struct ConfigError(pub Vec<String>);

/// Settings as typed, with where each came from.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    values: BTreeMap<&'static str, (toml::Value, Origin)>,
    problems: Vec<String>,
}

impl Raw {
    /// Reads the text of a configuration file. Unknown keys are problems.
    #[must_use]
    pub fn with_file(mut self, text: &str) -> Self {
        match text.parse::<toml::Table>() {
            Ok(table) => self.add_table(&table, ""),
            Err(e) => self.problems.push(format!("not valid TOML: {}", e.message())),
        }
        self
    }

    /// Reads the variables that belong to a setting; others are not ours.
    #[must_use]
    pub fn with_environment(mut self, lookup: impl Fn(&str) -> Option<String>) -> Self {
        for setting in SETTINGS {
            if let Some(text) = lookup(setting.variable) {
                self.set_text(setting, &text, Origin::Environment);
            }
        }
        self
    }

    /// Sets one value from the command line, if it was given.
    ///
    /// # Panics
    /// If no setting has this key.
    #[must_use]
    pub fn with_flag(mut self, key: &str, value: Option<toml::Value>) -> Self {
        let setting = settings::find(key).expect("flags name settings of the table");
        if let Some(value) = value {
            self.set(setting, value, Origin::Flag);
        }
        self
    }

    fn add_table(&mut self, table: &toml::Table, prefix: &str) {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match (settings::find(&key), value) {
                (Some(setting), value) => self.set(setting, value.clone(), Origin::File),
                (None, toml::Value::Table(inner)) if prefix.is_empty() && settings::has_section(name) => {
                    self.add_table(inner, &format!("{name}."));
                }
                (None, _) => self.problems.push(unknown_key(&key)),
            }
        }
    }

    fn set_text(&mut self, setting: &'static Setting, text: &str, origin: Origin) {
        match setting.kind.read(text) {
            Some(value) => self.set(setting, value, origin),
            None => self.problems.push(setting.complaint(&format!("{text:?} ({origin})"))),
        }
    }

    fn set(&mut self, setting: &'static Setting, value: toml::Value, origin: Origin) {
        match setting.kind.accepts(&value) {
            true => drop(self.values.insert(setting.key, (value, origin))),
            false => self.problems.push(setting.complaint(&format!("{value} ({origin})"))),
        }
    }

    fn value(&self, key: &str) -> (toml::Value, Origin) {
        let built_in = || {
            (
                settings::find(key).and_then(Setting::built_in).unwrap_or(toml::Value::Boolean(false)),
                Origin::Default,
            )
        };
        self.values.get(key).cloned().unwrap_or_else(built_in)
    }

    fn text(&self, key: &str) -> String {
        self.value(key).0.as_str().unwrap_or_default().to_owned()
    }

    fn number(&self, key: &str) -> u64 {
        self.value(key).0.as_integer().unwrap_or_default().try_into().unwrap_or_default()
    }

    fn truth(&self, key: &str) -> bool {
        self.value(key).0.as_bool().unwrap_or_default()
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.text(key)).filter(|t| !t.is_empty()).map(PathBuf::from)
    }

    /// The checked configuration.
    ///
    /// # Errors
    /// All problems together.
    pub fn check(self) -> Result<Config, ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError(self.problems));
        }
        let ceilings = Ceilings {
            allow: disclosure(&self.text("privacy.allow")),
            epochs: u32::try_from(self.number("limits.epochs")).unwrap_or(u32::MAX),
            bytes: self.number("limits.bytes"),
            // `Kind::Mode` let nothing else through.
            update: self.text("train.update").parse().unwrap_or_default(),
        };
        Ok(Config {
            dir: self.path("dir").unwrap_or_else(default_dir),
            data: self.paths("data.train"),
            resize: self.truth("data.resize"),
            ceilings,
            minutes: self.number("limits.minutes"),
            memory: self.number("limits.memory") << 20,
            cache: self.number("limits.cache") << 20,
            threads: self.number("compute.threads") as usize,
            isa: Some(self.text("compute.isa")).filter(|t| !t.is_empty()),
            // `Kind::OneOf` let nothing else through.
            engine: self.text("infer.engine").parse().unwrap_or_default(),
            ort_lib: self.path("infer.ort_lib"),
            timeout: Duration::from_secs(self.number("network.timeout")),
            raw: self,
        })
    }

    fn paths(&self, key: &str) -> Vec<PathBuf> {
        let (value, _) = self.value(key);
        let list = value.as_array().cloned().unwrap_or_default();
        list.iter().filter_map(toml::Value::as_str).map(PathBuf::from).collect()
    }
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The private directory.
    pub dir: PathBuf,
    /// Where the training data are.
    pub data: Vec<PathBuf>,
    /// Whether images of another size are scaled to the model's.
    pub resize: bool,
    /// What a task may ask.
    pub ceilings: Ceilings,
    /// Longest training of one task, in minutes.
    pub minutes: u64,
    /// Most memory of one task, in bytes.
    pub memory: u64,
    /// Most bytes of the cache of shared parts.
    pub cache: u64,
    /// Threads to compute with; 0 is one for each core.
    pub threads: usize,
    /// Cap of the instruction set.
    pub isa: Option<String>,
    /// Engine that answers.
    pub engine: Engine,
    /// ONNX Runtime's library.
    pub ort_lib: Option<PathBuf>,
    /// Longest wait for one answer of the host.
    pub timeout: Duration,
    raw: Raw,
}

impl Config {
    /// The effective configuration as a file that would give it, with where each value came from.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for setting in SETTINGS {
            let (value, origin) = self.raw.value(setting.key);
            let value = if setting.key == "dir" { self.dir.display().to_string().into() } else { value };
            let (in_section, name) = setting.key.split_once('.').unwrap_or(("", setting.key));
            if in_section != section {
                text.push_str(&format!("\n[{in_section}]\n"));
                section = in_section;
            }
            text.push_str(&format!("{name} = {value}  # {origin}; {}\n", setting.what));
        }
        text
    }
}

fn unknown_key(key: &str) -> String {
    let known: Vec<&str> = SETTINGS.iter().map(|s| s.key).collect();
    format!("{key} is not a setting; there are {}", known.join(", "))
}

fn disclosure(name: &str) -> Disclosure {
    match name {
        "nothing" => Disclosure::Nothing,
        "full_model" => Disclosure::FullModel,
        "class_means" => Disclosure::ClassMeans,
        "statistics" => Disclosure::Statistics,
        // What `Kind::OneOf` lets through beside the above.
        _ => Disclosure::Backbone,
    }
}

/// Where state goes if nobody says: the user's state directory, as the desktop base directory specification has it.
fn default_dir() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/state"));
    state.or_else(home).unwrap_or_default().join("spectra")
}
