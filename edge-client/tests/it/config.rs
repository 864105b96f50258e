//! Configuration: four layers, every problem at once, no unknown key.
use edge_client::config::{Config, ConfigError, Raw, SETTINGS};
use models::fed::Disclosure;
use std::path::PathBuf;

fn check(file: &str) -> Result<Config, ConfigError> {
    Raw::default().with_file(file).check()
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_defaults() {
    let file = "dir = 'a'\n[limits]\nepochs = 3\n[privacy]\nallow = 'nothing'\n[infer]\nengine = 'tract'";
    let environment = |name: &str| match name {
        "SPECTRA_LIMITS_EPOCHS" => Some("4".into()),
        "SPECTRA_ENGINE" => Some("native".into()),
        _ => None,
    };
    let raw = Raw::default().with_file(file).with_environment(environment);
    let config = raw.with_flag("infer.engine", Some("ort".into())).with_flag("dir", None).check().unwrap();
    assert_eq!((config.dir.clone(), config.ceilings.epochs, config.engine.name()), ("a".into(), 4, "ort"));
    assert_eq!((config.ceilings.allow, config.minutes), (Disclosure::Nothing, 60));
    let shown = config.to_toml();
    for line in [
        "engine = \"ort\"  # flag",
        "epochs = 4  # environment",
        "allow = \"nothing\"  # file",
        "minutes = 60  # default",
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
}

#[test]
fn what_validate_prints_is_a_file_that_gives_the_same() {
    let first = check("dir = 'x'\n[data]\ntrain = ['p', 'q']\nresize = true").unwrap();
    let second = check(&first.to_toml()).unwrap();
    assert_eq!(
        (&second.data, second.resize, second.dir.clone()),
        (&vec![PathBuf::from("p"), "q".into()], true, "x".into())
    );
    assert_eq!(first.ceilings, second.ceilings);
}

#[test]
fn all_problems_are_reported_together() {
    let file =
        "colour = 1\n[limits]\nepochs = -1\nbytes = 'many'\n[privacy]\nallow = 'all'\n[training]\nrate = 0.1";
    let raw =
        Raw::default().with_file(file).with_environment(|n| (n == "SPECTRA_THREADS").then(|| "two".into()));
    let ConfigError(problems) = raw.check().unwrap_err();
    let text = problems.join("\n");
    for part in [
        "colour is not a setting",
        "limits.epochs = -1",
        "limits.bytes = \"many\"",
        "one of nothing, backbone",
        "training is not a setting",
        "compute.threads = \"two\" (environment)",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(problems.len(), 6, "{text}");
    assert!(check("dir = ").unwrap_err().0[0].contains("not valid TOML"));
}

#[test]
fn the_default_lets_nothing_but_the_backbone_leave() {
    let config = check("").unwrap();
    assert_eq!(config.ceilings.allow, Disclosure::Backbone);
    assert!(config.data.is_empty() && config.dir.ends_with("spectra"));
}

#[test]
fn every_setting_has_a_default_of_its_own_kind() {
    for setting in SETTINGS {
        let default = setting.built_in().unwrap_or_else(|| panic!("{}: no default", setting.key));
        assert!(setting.kind.accepts(&default), "{} = {default}", setting.key);
        assert!(setting.variable.starts_with("SPECTRA_"), "{}", setting.variable);
    }
}

#[test]
fn an_update_mode_comes_from_every_layer_and_a_wrong_one_is_named() {
    let environment = |name: &str| (name == "SPECTRA_TRAIN_UPDATE").then(|| "last:3".into());
    let raw = Raw::default().with_file("[train]\nupdate = 'bias'");
    let mode = |raw: Raw| raw.check().unwrap().ceilings.update.to_string();
    assert_eq!(mode(Raw::default()), "full");
    assert_eq!(mode(raw.clone()), "bias");
    let raw = raw.with_environment(environment);
    assert_eq!(mode(raw.clone()), "last:3");
    assert_eq!(mode(raw.with_flag("train.update", Some("head".into()))), "head");
    for wrong in ["last:0", "first:2", "last:70000", ""] {
        let problems = check(&format!("[train]\nupdate = '{wrong}'")).unwrap_err().0;
        assert!(problems[0].contains("train.update") && problems[0].contains("last:K"), "{problems:?}");
    }
}
