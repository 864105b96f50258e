//! The table of settings.
use models::params::UpdateMode;
use toml::Value;

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A file or directory.
    Path,
    /// Several of them.
    Paths,
    /// Yes or no.
    Truth,
    /// A whole number in these bounds.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An update mode.
    Mode,
}

impl Kind {
    /// Reads the text of a variable or flag.
    pub fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Path | Self::OneOf(_) | Self::Mode => Some(Value::String(text.into())),
            Self::Paths => Some(Value::Array(text.split(':').map(|p| Value::String(p.into())).collect())),
            Self::Truth => text.parse().ok().map(Value::Boolean),
            Self::Number(..) => text.parse().ok().map(Value::Integer),
        }
    }

    /// Whether the value is of this kind.
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Path, Value::String(_)) | (Self::Truth, Value::Boolean(_)) => true,
            (Self::Paths, Value::Array(list)) => list.iter().all(Value::is_str),
            (Self::Number(least, most), Value::Integer(n)) => {
                u64::try_from(*n).is_ok_and(|n| (least..=most).contains(&n))
            }
            (Self::Mode, Value::String(mode)) => mode.parse::<UpdateMode>().is_ok(),
            (Self::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }

    fn must(self) -> String {
        match self {
            Self::Path => "a path in quotes".into(),
            Self::Paths => "a list of paths".into(),
            Self::Truth => "true or false".into(),
            Self::Mode => "full, last:K (K from 1 to 65535), head or bias".into(),
            Self::Number(least, most) => format!("a whole number from {least} to {most}"),
            Self::OneOf(words) => {
                let words: Vec<_> = words.iter().copied().filter(|w| !w.is_empty()).collect();
                format!("one of {}", words.join(", "))
            }
        }
    }
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its value if nobody says, as TOML.
    default: &'static str,
    /// What it is for.
    pub what: &'static str,
}

impl Setting {
    /// The default value.
    pub fn built_in(&self) -> Option<Value> {
        let table: toml::Table = format!("x = {}", self.default).parse().ok()?;
        table.get("x").cloned()
    }

    pub(super) fn complaint(&self, got: &str) -> String {
        format!("{} = {got}: must be {}", self.key, self.kind.must())
    }
}

/// The setting of this key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.key == key)
}

/// Whether settings live under this name.
pub(super) fn has_section(name: &str) -> bool {
    SETTINGS.iter().any(|s| s.key.split_once('.').is_some_and(|(section, _)| section == name))
}

const DISCLOSURES: &[&str] = &["nothing", "backbone", "full_model", "class_means", "statistics"];
const ENGINES: &[&str] = &["auto", "ort", "native", "tract"];
const ISAS: &[&str] = &["", "generic", "sse2", "avx2", "avx512", "neon"];

const fn row(
    key: &'static str,
    variable: &'static str,
    kind: Kind,
    default: &'static str,
    what: &'static str,
) -> Setting {
    Setting { key, variable, kind, default, what }
}

/// Every setting. There are no hyper-parameters among them: those are the host's; the board has ceilings.
pub const SETTINGS: &[Setting] = &[
    row("dir", "SPECTRA_DIR", Kind::Path, "''", "private directory: identity and personal model"),
    row("data.train", "SPECTRA_DATA_TRAIN", Kind::Paths, "[]", "image folders, IDX pairs, CIFAR files"),
    row("data.resize", "SPECTRA_DATA_RESIZE", Kind::Truth, "false", "scale images to the model's input"),
    row(
        "privacy.allow",
        "SPECTRA_PRIVACY_ALLOW",
        Kind::OneOf(DISCLOSURES),
        "'backbone'",
        "the most that may leave this board",
    ),
    row(
        "train.update",
        "SPECTRA_TRAIN_UPDATE",
        Kind::Mode,
        "'full'",
        "the most that training changes: full, last:K, head, bias",
    ),
    row(
        "limits.epochs",
        "SPECTRA_LIMITS_EPOCHS",
        Kind::Number(0, 1000),
        "10",
        "most passes over the data in one task",
    ),
    row(
        "limits.minutes",
        "SPECTRA_LIMITS_MINUTES",
        Kind::Number(0, 10_000),
        "60",
        "longest training of one task",
    ),
    row(
        "limits.memory",
        "SPECTRA_LIMITS_MEMORY",
        Kind::Number(8, 1 << 20),
        "512",
        "most MiB that a task may need",
    ),
    row(
        "limits.bytes",
        "SPECTRA_LIMITS_BYTES",
        Kind::Number(0, 1 << 40),
        "268435456",
        "most bytes one task may move",
    ),
    row(
        "limits.cache",
        "SPECTRA_LIMITS_CACHE",
        Kind::Number(0, 1 << 20),
        "256",
        "most MiB of shared parts kept on disk",
    ),
    row("compute.threads", "SPECTRA_THREADS", Kind::Number(0, 1024), "0", "0 is one for each core"),
    row("compute.isa", "SPECTRA_ISA", Kind::OneOf(ISAS), "''", "cap of the instruction set"),
    row("infer.engine", "SPECTRA_ENGINE", Kind::OneOf(ENGINES), "'auto'", "engine that answers"),
    row("infer.ort_lib", "SPECTRA_ORT_LIB", Kind::Path, "''", "ONNX Runtime's library"),
    row(
        "network.timeout",
        "SPECTRA_NETWORK_TIMEOUT",
        Kind::Number(1, 3600),
        "60",
        "longest wait for one answer, in seconds",
    ),
];
