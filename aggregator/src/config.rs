//! The host's configuration: as typed ([`Settings`]), then checked ([`Plan`]), all problems together.
use crate::http::Limits;
use models::fed::erased::{AnyMethod, MethodVisitor, method, with_method};
use models::fed::{Extent, Method};
use models::nn::Graph;
use models::nn::arch;
use models::params::{ModelCard, ModelSpec, Preprocessing};
use models::round::{Charter, Policy};
use models::wire;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The file in a host's directory.
pub const FILE: &str = "aggregator.toml";

/// The configuration as typed. Unknown keys are errors; what is left out has a default.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where and how boards are served.
    pub server: ServerSettings,
    /// The network.
    pub model: ModelSettings,
    /// Rounds.
    pub rounds: Policy,
    /// The federated method.
    pub method: MethodSettings,
}

/// `[server]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port; port 0 takes a free one.
    pub listen: String,
    /// More names or addresses for the host's certificate.
    pub names: Vec<String>,
    /// Most connections at a time.
    pub connections: usize,
    /// Seconds that a board has for a handshake, a request's head, or a message.
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
    /// Name of a built-in architecture.
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

/// What is wrong with a configuration, all of it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct ConfigError {
    /// One sentence each.
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration can't be used:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// A configuration that can be used.
pub struct Plan {
    /// The network.
    pub graph: Arc<Graph>,
    /// Its table of contents.
    pub spec: Arc<ModelSpec>,
    /// The method.
    pub method: &'static dyn AnyMethod,
    /// Its hyper-parameters, encoded.
    pub hyper: Vec<u8>,
    /// Rounds.
    pub policy: Policy,
    /// What an update covers.
    pub extent: Extent,
    /// How many values of a prototype an update may carry.
    pub prototype: usize,
    /// Passes over a board's data in one task.
    pub epochs: u32,
    /// More names for the host's certificate.
    pub names: Vec<String>,
    pub(crate) listen: SocketAddr,
    pub(crate) limits: Limits,
    charter: Charter,
}

impl Settings {
    /// Reads a directory's file.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of what is wrong.
    pub fn read(dir: &Path) -> Result<Self, ConfigError> {
        let path = dir.join(FILE);
        let wrong = |why: String| ConfigError { problems: vec![format!("{}: {why}", path.display())] };
        let text = std::fs::read_to_string(&path)
            .map_err(|e| wrong(format!("{e}; `aggregator init {}` makes one", dir.display())))?;
        toml::from_str(&text).map_err(|e| wrong(e.to_string()))
    }

    /// Checks everything and reports all problems together.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<Plan, ConfigError> {
        let mut problems = Vec::new();
        let listen = note(&mut problems, self.server.address());
        let limits = note(&mut problems, self.server.limits());
        let model = note(&mut problems, self.model.build());
        note(
            &mut problems,
            self.rounds
                .check()
                .map_err(|wrong| wrong.iter().map(|e| format!("[rounds] {e}")).collect::<Vec<_>>()),
        );
        let chosen = note(&mut problems, self.method.parse().map_err(|e| vec![e]));
        match (listen, limits, model, chosen) {
            (Some(listen), Some(limits), Some((graph, spec)), Some((method, hyper, _)))
                if problems.is_empty() =>
            {
                self.plan(listen, limits, graph, spec, method, hyper)
                    .map_err(|problem| ConfigError { problems: vec![problem] })
            }
            _ => Err(ConfigError { problems }),
        }
    }

    fn plan(
        &self,
        listen: SocketAddr,
        limits: Limits,
        graph: Arc<Graph>,
        spec: Arc<ModelSpec>,
        method: &'static dyn AnyMethod,
        hyper: Vec<u8>,
    ) -> Result<Plan, String> {
        let (extent, prototype) = method.uplink(&hyper, &spec).map_err(|e| e.to_string())?;
        let epochs = method.epochs(&hyper).map_err(|e| e.to_string())?;
        let charter = Charter {
            method: wire::Name::try_from(method.name())
                .map_err(|_| "the method's name is too long".to_owned())?,
            hyper: wire::Bytes::from_slice(&hyper)
                .map_err(|_| "[method.hyper] takes more than 2048 bytes".to_owned())?,
            spec: spec.hash(),
            epochs,
        };
        let (policy, names) = (self.rounds.clone(), self.server.names.clone());
        Ok(Plan {
            graph,
            spec,
            method,
            hyper,
            policy,
            extent,
            prototype,
            epochs,
            names,
            listen,
            limits,
            charter,
        })
    }

    /// The configuration with every default written out.
    ///
    /// # Errors
    /// [`ConfigError`] if the method can't be read.
    pub fn effective(&self) -> Result<Self, ConfigError> {
        let (_, _, hyper) = self.method.parse().map_err(|e| ConfigError { problems: vec![e] })?;
        Ok(Self { method: MethodSettings { name: self.method.name.clone(), hyper }, ..self.clone() })
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({} on {}, {} rounds)", self.method.name(), self.spec.card().arch, self.policy.rounds)
    }
}

impl Plan {
    /// What is the same for every task of the run.
    pub fn charter(&self) -> Charter {
        self.charter.clone()
    }
}

/// Keeps what is right and notes what is wrong.
fn note<T>(problems: &mut Vec<String>, checked: Result<T, Vec<String>>) -> Option<T> {
    checked.map_err(|wrong| problems.extend(wrong)).ok()
}

impl ServerSettings {
    fn address(&self) -> Result<SocketAddr, Vec<String>> {
        let wrong = || {
            vec![format!(
                "[server] listen = {:?}: must be an address and a port, such as 0.0.0.0:8443",
                self.listen
            )]
        };
        self.listen.to_socket_addrs().ok().and_then(|mut all| all.next()).ok_or_else(wrong)
    }

    fn limits(&self) -> Result<Limits, Vec<String>> {
        let all = [
            ("connections", self.connections),
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
    fn card(&self) -> ModelCard {
        let none = Preprocessing::none(self.input[0]);
        let or = |given: &Vec<f32>, none: Vec<f32>| if given.is_empty() { none } else { given.clone() };
        let preprocessing = Preprocessing { mean: or(&self.mean, none.mean), std: or(&self.std, none.std) };
        let (arch, labels) = (self.arch.clone(), self.labels.clone());
        ModelCard { arch, input: self.input, labels, statistics: self.statistics, preprocessing }
    }

    fn build(&self) -> Result<(Arc<Graph>, Arc<ModelSpec>), Vec<String>> {
        let (graph, spec) = arch::build(&self.card()).map_err(|e| vec![format!("[model] {e}")])?;
        match wire::to_bytes(&wire::Envelope::at(u64::MAX, spec.card())) {
            Ok(_) => Ok((graph, spec)),
            Err(_) => Err(vec!["[model] labels: all names together must stay under 16 KiB".into()]),
        }
    }
}

/// A method, its hyper-parameters encoded, and the same with every default written out.
type Chosen = (&'static dyn AnyMethod, Vec<u8>, toml::Table);

impl MethodSettings {
    fn parse(&self) -> Result<Chosen, String> {
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
        let hyper: M::Hyper = self.0.clone().try_into().map_err(|e: toml::de::Error| e.to_string())?;
        M::check(&hyper).map_err(|e| e.to_string())?;
        let bytes = postcard::to_stdvec(&hyper).map_err(|e| e.to_string())?;
        let mut table = toml::Table::try_from(&hyper).map_err(|e| e.to_string())?;
        table.iter_mut().for_each(|(_, value)| shorten(value));
        Ok((bytes, table))
    }
}

/// Writes numbers that were `f32` as briefly as `f32` can be: 0.015, not 0.014999999664723873.
fn shorten(value: &mut toml::Value) {
    match value {
        toml::Value::Float(x) if f64::from(*x as f32) == *x => {
            *x = (*x as f32).to_string().parse().unwrap_or(*x)
        }
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| shorten(value)),
        toml::Value::Array(values) => values.iter_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let labels = vec!["cat".into(), "dog".into()];
        Settings {
            model: ModelSettings { arch: "mlp".into(), input: [1, 2, 2], labels, ..ModelSettings::default() },
            method: MethodSettings { name: "fedavg".into(), hyper: toml::Table::new() },
            ..Settings::default()
        }
    }

    #[test]
    fn a_configuration_survives_its_file_with_every_default_written_out() {
        let effective = settings().effective().unwrap();
        let text = toml::to_string(&effective).unwrap();
        let again: Settings = toml::from_str(&text).unwrap();
        assert_eq!(again, effective);
        assert_eq!(again.check().unwrap().charter(), settings().check().unwrap().charter());
    }

    #[test]
    fn all_problems_come_together() {
        let mut wrong = settings();
        wrong.server.listen = "nowhere".into();
        wrong.server.connections = 0;
        wrong.model.arch = "transformer".into();
        wrong.rounds.participation = 0.0;
        wrong.method.name = "magic".into();
        let problems = wrong.check().unwrap_err().problems;
        for part in ["listen", "connections", "transformer", "participation", "magic"] {
            assert!(problems.iter().any(|p| p.contains(part)), "{part} in {problems:?}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        assert!(toml::from_str::<Settings>("[rounds]\nround = 3").unwrap_err().to_string().contains("round"));
        let mut wrong = settings();
        wrong.method.hyper.insert("lerning_rate".into(), 0.1.into());
        assert!(wrong.check().unwrap_err().problems[0].contains("lerning_rate"));
    }
}
