//! What a file says about itself beside its graph, in ONNX's `metadata_props`, so that it can be used anywhere.
use crate::proto::StringStringEntryProto;
use models::id::Hash;
use models::params::{ModelCard, ModelSpec, Preprocessing};
use std::str::FromStr;

/// Which of a board's two streams a graph is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// The board's personal model.
    Specialist,
    /// The shared model, without the board's prior.
    Generalist,
}

impl Role {
    /// Its spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Specialist => "specialist",
            Self::Generalist => "generalist",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = [Self::Specialist, Self::Generalist];
        known
            .into_iter()
            .find(|role| role.name() == name)
            .ok_or_else(|| format!("no role is called {name:?}"))
    }
}

/// The keys `arch`, `labels`, `mean`, `std`, `role` and `spec`; lists and texts in them are JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Architecture.
    pub arch: String,
    /// Name of each class, in the order of the outputs; empty if the file does not say.
    pub labels: Vec<String>,
    /// What is done to a sample in [0, 1] before the network sees it; `None` if the file does not say.
    pub preprocessing: Option<Preprocessing>,
    /// Which stream it is; `None` for a file of other origin.
    pub role: Option<Role>,
    /// Hash of the specification that the model was trained under; `None` for a file of other origin.
    pub spec: Option<Hash>,
}

/// A key whose text can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("metadata {key}: {why}; write it anew or leave it out")]
pub struct MetadataError {
    /// The key.
    pub key: &'static str,
    /// Why.
    pub why: String,
}

impl Metadata {
    /// What a trained model says about itself.
    pub fn of(spec: &ModelSpec, role: Role) -> Self {
        let ModelCard { arch, labels, preprocessing, .. } = spec.card().clone();
        Self { arch, labels, preprocessing: Some(preprocessing), role: Some(role), spec: Some(spec.hash()) }
    }

    pub(crate) fn to_props(&self) -> Vec<StringStringEntryProto> {
        let entry = |key: &str, value: String| StringStringEntryProto { key: key.into(), value };
        let known = |key: &str, value: Option<String>| value.map(|value| entry(key, value));
        let preprocessing = self.preprocessing.as_ref();
        let optional = [
            known("mean", preprocessing.map(|p| json(&p.mean))),
            known("role", self.role.map(|role| role.name().into())),
            known("spec", self.spec.map(|hash| hash.to_string())),
            known("std", preprocessing.map(|p| json(&p.std))),
        ];
        let always = [entry("arch", self.arch.clone()), entry("labels", json(&self.labels))];
        always.into_iter().chain(optional.into_iter().flatten()).collect()
    }

    pub(crate) fn of_props(props: &[StringStringEntryProto]) -> Result<Self, MetadataError> {
        let text = |key: &str| props.iter().find(|prop| prop.key == key).map(|prop| prop.value.as_str());
        let mean = text("mean").map(|text| parse::<Vec<f32>>("mean", text)).transpose()?;
        let std = text("std").map(|text| parse::<Vec<f32>>("std", text)).transpose()?;
        let hash =
            |text| Hash::from_hex(text).ok_or_else(|| error("spec", "it is not 64 hexadecimal digits"));
        Ok(Self {
            arch: text("arch").unwrap_or("imported").into(),
            labels: text("labels").map(|text| parse("labels", text)).transpose()?.unwrap_or_default(),
            preprocessing: mean.zip(std).map(|(mean, std)| Preprocessing { mean, std }),
            role: text("role")
                .map(|name| name.parse().map_err(|why: String| error("role", &why)))
                .transpose()?,
            spec: text("spec").map(hash).transpose()?,
        })
    }

    /// The card of a network with these inputs and outputs; what the file does not say gets a neutral value.
    pub(crate) fn card(&self, input: [usize; 3], classes: usize) -> Result<ModelCard, MetadataError> {
        let labels = if self.labels.is_empty() {
            (0..classes).map(|c| c.to_string()).collect()
        } else {
            self.labels.clone()
        };
        if labels.len() != classes {
            return Err(error("labels", &format!("{} names for {classes} classes", labels.len())));
        }
        let preprocessing = self.preprocessing.clone().unwrap_or_else(|| Preprocessing::none(input[0]));
        let usable = |values: &[f32]| values.len() == input[0] && values.iter().all(|v| v.is_finite());
        if !usable(&preprocessing.mean)
            || !usable(&preprocessing.std)
            || preprocessing.std.iter().any(|&s| s <= 0.0)
        {
            return Err(error(
                "std",
                &format!("mean and std need one finite number per channel ({}), std above zero", input[0]),
            ));
        }
        Ok(ModelCard { arch: self.arch.clone(), input, labels, statistics: 0, preprocessing })
    }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|_| unreachable!("lists of finite numbers and of texts have a JSON form"))
}

fn parse<T: serde::de::DeserializeOwned>(key: &'static str, text: &str) -> Result<T, MetadataError> {
    serde_json::from_str(text).map_err(|e| error(key, &e.to_string()))
}

fn error(key: &'static str, why: &str) -> MetadataError {
    MetadataError { key, why: why.into() }
}
