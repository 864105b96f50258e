//! The host's configuration: as typed ([`Settings`]), then checked ([`Plan`]), all problems together.
mod sections;

pub use sections::{AuxiliarySettings, MethodSettings, ModelSettings, ServerSettings};

use crate::disk;
use crate::http::Limits;
use models::fed::erased::AnyMethod;
use models::fed::{Coverage, Disclosure, Extent};
use models::nn::Graph;
use models::params::{ModelSpec, Params};
use models::round::{Charter, Policy};
use models::wire;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// The file in a host's directory.
pub const FILE: &str = "aggregator.toml";
/// The file in a host's directory of a network that was brought along.
pub const NETWORK: &str = "network.onnx";

/// Why a method that shares backbones is refused where a backbone has nothing to train.
const NOTHING_TO_SHARE: &str = "it shares what is trained below the head, and of this network only the head trains: boards would \
    share nothing; with cpct say --profile shared_head, or choose --method fedavg (boards must allow full_model)";

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
    /// The host's own samples.
    pub auxiliary: AuxiliarySettings,
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
    /// The file that boards read it from, if it was brought along.
    pub network: Option<Arc<[u8]>>,
    /// The weights that it came with.
    pub start: Option<Params>,
    /// The part of it below the head, if that is kept as it came.
    pub extractor: Option<Arc<onnx::Extractor>>,
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
        let text = disk::text(&path)
            .map_err(|e| wrong(format!("{e}; `aggregator init {}` makes one", dir.display())))?;
        let mut settings: Self = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if settings.model.card().is_ok_and(|card| card.imported().is_some()) {
            let path = dir.join(NETWORK);
            let bytes = onnx::read(&path).map_err(|e| ConfigError {
                problems: vec![format!(
                    "{e}; the network lies beside the configuration: `aggregator restore` brings both back"
                )],
            })?;
            settings.model.file = Some(bytes.into());
        }
        Ok(settings)
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
            (Some(listen), Some(limits), Some(built), Some((method, hyper, _))) if problems.is_empty() => {
                self.plan(listen, limits, built, method, hyper)
                    .map_err(|problem| ConfigError { problems: vec![problem] })
            }
            _ => Err(ConfigError { problems }),
        }
    }

    fn plan(
        &self,
        listen: SocketAddr,
        limits: Limits,
        built: onnx::Built,
        method: &'static dyn AnyMethod,
        hyper: Vec<u8>,
    ) -> Result<Plan, String> {
        let onnx::Built { graph, spec, start, extractor } = built;
        let (extent, prototype) = method.uplink(&hyper, &spec).map_err(|e| e.to_string())?;
        let discloses = method.discloses(&hyper).map_err(|e| e.to_string())?;
        if extent == Extent::Backbone && extent.len(&spec) == 0 && discloses > Disclosure::Nothing {
            return Err(format!("[method] {}: {NOTHING_TO_SHARE}", method.name()));
        }
        let epochs = method.epochs(&hyper).map_err(|e| e.to_string())?;
        let charter = Charter {
            method: wire::Name::try_from(method.name())
                .map_err(|_| "the method's name is too long".to_owned())?,
            hyper: wire::Bytes::from_slice(&hyper)
                .map_err(|_| "[method.hyper] takes more than 2048 bytes".to_owned())?,
            spec: Arc::clone(&spec),
            extent,
            epochs,
        };
        let (policy, names) = (self.rounds.clone(), self.server.names.clone());
        if !(Coverage { extent, mode: policy.update }).is_possible(&spec) {
            let (update, name) = (policy.update.to_string(), method.name());
            return Err(format!(
                "[rounds] update = {update:?}: of this model boards would send nothing that {name} shares; choose full or more layers"
            ));
        }
        Ok(Plan {
            graph,
            spec,
            network: self.model.file.clone(),
            start,
            extractor,
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

    /// The form in which [`Settings::read`] reads it.
    ///
    /// # Errors
    /// [`ConfigError`] if a number is larger than the form can hold.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|e| ConfigError { problems: vec![e.to_string()] })
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
    fn every_methods_hyper_parameters_survive_the_file_bit_for_bit() {
        for method in models::fed::erased::METHODS {
            let mut one = settings();
            one.method.name = method.name().into();
            let text = one.effective().unwrap().to_toml().unwrap();
            let (_, hyper, _) = toml::from_str::<Settings>(&text).unwrap().method.parse().unwrap();
            assert_eq!(hyper, method.default_hyper().unwrap(), "{}", method.name());
        }
    }

    #[test]
    fn a_table_typed_in_part_keeps_the_methods_own_defaults_for_the_rest() {
        let mut one = settings();
        one.method.name = "cpct".into();
        one.method.hyper = toml::from_str("streams.alpha_rate = 0.1").unwrap();
        let (_, hyper, _) = one.method.parse().unwrap();
        let hyper: models::fed::cpct::Hyper = postcard::from_bytes(&hyper).unwrap();
        let mut expected = models::fed::cpct::Hyper::default();
        expected.streams.alpha_rate = 0.1;
        assert_eq!(hyper, expected);
    }

    #[test]
    fn a_mode_that_sends_nothing_of_this_method_is_refused() {
        let asked = |method: &str, update: &str| {
            let mut one = settings();
            one.method.name = method.into();
            one.rounds.update = update.parse().unwrap();
            one.check().map(|plan| plan.policy.update.to_string()).map_err(|e| e.problems[0].clone())
        };
        for (method, update) in
            [("fedavg", "last:1"), ("fedavg", "bias"), ("fedper", "last:2"), ("fedper", "full")]
        {
            assert_eq!(asked(method, update).unwrap(), update, "{method}");
        }
        for (method, update) in [("fedavg", "head"), ("fedper", "last:1"), ("fedper", "last:99")] {
            let problem = asked(method, update).unwrap_err();
            assert!(problem.contains(&format!("[rounds] update = {update:?}")), "{problem}");
        }
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
    fn an_absurd_input_is_refused_before_anything_is_made_for_it() {
        for input in [[u32::MAX as usize, 1, 1], [1, 5000, 1], [usize::MAX; 3]] {
            let mut absurd = settings();
            absurd.model.input = input;
            let problems = absurd.check().unwrap_err().problems;
            assert!(problems[0].contains("at most 4096"), "{problems:?}");
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
