//! The sections of the configuration, each with its own check.
use crate::http::Limits;
use models::data::MOST_EXTENT;
use models::fed::Method;
use models::fed::erased::{AnyMethod, MethodVisitor, method, with_method};
use models::params::{ModelCard, Preprocessing};
use models::wire;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Longest handshake: whoever means it needs a few round trips.
const HANDSHAKE_SECONDS: u32 = 5;

/// `[server]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port; port 0 takes a free one.
    pub listen: String,
    /// More names or addresses for the host's certificate.
    pub names: Vec<String>,
    /// Most connections of boards at a time.
    pub connections: usize,
    /// Most connections at a time from one address (of IPv6: one /64) that have not shown a board's certificate.
    pub guests: usize,
    /// Most of these from everywhere; boards' connections don't count.
    pub reserve: usize,
    /// Most connections at a time of one board.
    pub each: usize,
    /// Seconds that a board has for a request's head or a message, and up to five of them for a handshake.
    pub message_seconds: u32,
    /// Seconds that a board has to send an update.
    pub update_seconds: u32,
    /// Seconds that a connection lives.
    pub connection_seconds: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let listen = "0.0.0.0:8443".into();
        Self {
            listen,
            names: Vec::new(),
            connections: 256,
            guests: 32,
            reserve: 128,
            each: 8,
            message_seconds: 30,
            update_seconds: 600,
            connection_seconds: 1_800,
        }
    }
}

/// `[model]`: fixed once the run has begun.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Name of a built-in architecture; `onnx:` and a hash for the network in the directory's file, which `init --model` has put there.
    pub arch: String,
    /// Channels, height, width.
    pub input: [usize; 3],
    /// Name of each class, in the order of the outputs.
    pub labels: Vec<String>,
    /// Width of the conditioning vector; 0 for none.
    pub statistics: usize,
    /// Mean per channel that is taken off a sample in [0, 1]; none for 0.
    pub mean: Vec<f32>,
    /// Standard deviation per channel that it is divided by; none for 1.
    pub std: Vec<f32>,
    /// The file of a network that was brought along.
    #[serde(skip)]
    pub file: Option<Arc<[u8]>>,
}

/// `[auxiliary]`: written by `init`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuxiliarySettings {
    /// SHA-256 of the host's own samples, `auxiliary.samples`; empty if it has none.
    pub sha256: String,
}

/// `[method]`: fixed once the run has begun.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MethodSettings {
    /// The method's name.
    pub name: String,
    /// Its hyper-parameters; what is left out has the method's default.
    pub hyper: toml::Table,
}

impl Default for MethodSettings {
    fn default() -> Self {
        Self { name: "cpct".into(), hyper: toml::Table::new() }
    }
}

impl ServerSettings {
    pub(super) fn address(&self) -> Result<SocketAddr, Vec<String>> {
        let wrong = || {
            vec![format!(
                "[server] listen = {:?}: must be an address and a port, such as 0.0.0.0:8443",
                self.listen
            )]
        };
        self.listen.to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(wrong)
    }

    pub(super) fn limits(&self) -> Result<Limits, Vec<String>> {
        let all = [
            ("connections", self.connections),
            ("guests", self.guests),
            ("reserve", self.reserve),
            ("each", self.each),
            ("message_seconds", self.message_seconds as usize),
            ("update_seconds", self.update_seconds as usize),
            ("connection_seconds", self.connection_seconds as usize),
        ];
        let wrong: Vec<_> = all
            .iter()
            .filter(|l| l.1 == 0)
            .map(|l| format!("[server] {} = 0: must be at least 1", l.0))
            .collect();
        let seconds = |s: u32| Duration::from_secs(u64::from(s));
        match wrong.is_empty() {
            true => Ok(Limits {
                connections: self.connections,
                guests: self.guests,
                reserve: self.reserve,
                each: self.each,
                handshake: seconds(self.message_seconds.min(HANDSHAKE_SECONDS)),
                head: seconds(self.message_seconds),
                message: seconds(self.message_seconds),
                update: seconds(self.update_seconds),
                life: seconds(self.connection_seconds),
                farewell: Duration::from_secs(5),
            }),
            false => Err(wrong),
        }
    }
}

impl ModelSettings {
    /// What boards are told of the network.
    pub(super) fn card(&self) -> Result<ModelCard, Vec<String>> {
        // Before anything is made for so many channels.
        if self.input.iter().any(|extent| *extent > MOST_EXTENT) {
            let [c, h, w] = self.input;
            return Err(vec![format!(
                "[model] input = {c}x{h}x{w}: channels, height and width may be at most {MOST_EXTENT}"
            )]);
        }
        let none = Preprocessing::none(self.input[0]);
        let or = |given: &Vec<f32>, none: Vec<f32>| if given.is_empty() { none } else { given.clone() };
        let preprocessing = Preprocessing { mean: or(&self.mean, none.mean), std: or(&self.std, none.std) };
        let (arch, labels) = (self.arch.clone(), self.labels.clone());
        Ok(ModelCard { arch, input: self.input, labels, statistics: self.statistics, preprocessing })
    }

    pub(super) fn build(&self) -> Result<onnx::Built, Vec<String>> {
        let built =
            onnx::build(&self.card()?, self.file.as_deref()).map_err(|e| vec![format!("[model] {e}")])?;
        match wire::to_bytes(&wire::Envelope::at(u64::MAX, built.spec.card())) {
            Ok(_) => Ok(built),
            Err(_) => Err(vec!["[model] labels: all names together must stay under 16 KiB".into()]),
        }
    }
}

/// A method, its hyper-parameters encoded, and the same with every default written out.
pub(super) type Chosen = (&'static dyn AnyMethod, Vec<u8>, toml::Table);

impl From<&ModelCard> for ModelSettings {
    fn from(card: &ModelCard) -> Self {
        let ModelCard { arch, input, labels, statistics, preprocessing } = card.clone();
        let Preprocessing { mean, std } = preprocessing;
        Self { arch, input, labels, statistics, mean, std, file: None }
    }
}

impl MethodSettings {
    /// A method with these hyper-parameters.
    ///
    /// # Errors
    /// If a hyper-parameter has no form in TOML.
    pub fn of<M: Method>(hyper: &M::Hyper) -> Result<Self, toml::ser::Error> {
        Ok(Self { name: M::NAME.into(), hyper: toml::Table::try_from(hyper)? })
    }

    pub(super) fn parse(&self) -> Result<Chosen, String> {
        let found = method(&self.name).map_err(|e| format!("[method] {e}"))?;
        let (bytes, table) = with_method(&self.name, ReadHyper(&self.hyper))
            .map_err(|e| e.to_string())?
            .map_err(|e| format!("[method.hyper] {e}"))?;
        Ok((found, bytes, table))
    }
}

/// Reads hyper-parameters with the method's own types.
struct ReadHyper<'a>(&'a toml::Table);

impl MethodVisitor for ReadHyper<'_> {
    type Out = Result<(Vec<u8>, toml::Table), String>;

    fn visit<M: Method>(self) -> Self::Out {
        let mut written = toml::Table::try_from(M::Hyper::default()).map_err(|e| e.to_string())?;
        overlay(&mut written, self.0);
        let hyper: M::Hyper = written.try_into().map_err(|e: toml::de::Error| e.to_string())?;
        M::check(&hyper).map_err(|e| e.to_string())?;
        let bytes = postcard::to_stdvec(&hyper).map_err(|e| e.to_string())?;
        let mut table = toml::Table::try_from(&hyper).map_err(|e| e.to_string())?;
        table.iter_mut().for_each(|(_, value)| shorten(value));
        Ok((bytes, table))
    }
}

/// Puts what was typed over the method's defaults, table by table: a key left out of `[method.hyper.streams]` has the default that
/// *this* method gives it, which may differ from what another method gives the same table.
fn overlay(defaults: &mut toml::Table, typed: &toml::Table) {
    for (key, value) in typed {
        match (defaults.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => overlay(below, above),
            _ => drop(defaults.insert(key.clone(), value.clone())),
        }
    }
}

/// Writes numbers that were `f32` as briefly as `f32` can be: 0.015, not 0.014999999664723873.
fn shorten(value: &mut toml::Value) {
    match value {
        toml::Value::Float(x) if f64::from(*x as f32) == *x => {
            *x = (*x as f32).to_string().parse().unwrap_or(*x);
        }
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| shorten(value)),
        toml::Value::Array(values) => values.iter_mut().for_each(shorten),
        _ => {}
    }
}
