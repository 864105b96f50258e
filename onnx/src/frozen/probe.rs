//! Whether engines agree that an extractor is one: each sample for itself, the same each time, finite.
use super::{Extractor, FeatureSession, FrozenError};
use crate::runtime::{Engine, Options};
use models::infer::Runtime;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The engines that a part may be run by, best first.
const ENGINES: [Engine; 2] = [Engine::Ort, Engine::Tract];
/// How far a sample's features may differ with the samples beside it, relative to one.
const APART: f32 = 1e-3;

/// Names of the engines that this machine has and that run the part.
///
/// # Errors
/// [`FrozenError`] if there is none, or what it gives can't be used.
pub(super) fn probe(extractor: &Extractor, options: &Options) -> Result<Vec<&'static str>, FrozenError> {
    let (mut able, mut wrong) = (vec![], vec![]);
    for engine in ENGINES {
        match engine
            .open(options)
            .map_err(FrozenError::from)
            .and_then(|runtime| guarded(extractor, &*runtime))
        {
            Ok(()) => able.push(engine.name()),
            Err(error @ FrozenError::Features { .. }) => return Err(error),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if able.is_empty() { Err(FrozenError::Engines { why: wrong.join("; ") }) } else { Ok(able) }
}

/// An engine that panics over a strange graph does not take this program with it.
fn guarded(extractor: &Extractor, runtime: &dyn Runtime) -> Result<(), FrozenError> {
    let tried = catch_unwind(AssertUnwindSafe(|| try_out(&mut extractor.open(runtime)?, extractor)));
    let broke = || FrozenError::Engines { why: format!("{} broke down over it", runtime.name()) };
    tried.unwrap_or_else(|_| Err(broke()))
}

fn try_out(session: &mut FeatureSession, extractor: &Extractor) -> Result<(), FrozenError> {
    let len: usize = extractor.input().iter().product();
    let dark = vec![0.0; len];
    let striped = (0..len).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0);
    let both: Vec<f32> = dark.iter().copied().chain(striped).collect();
    let alone = session.run(&dark)?;
    let engine = session.engine();
    let single = |e: FrozenError| {
        let remedy = "export the network with a free number of samples (`dynamic_axes` or `dynamic_shapes`)";
        FrozenError::Features { engine, why: format!("come for one sample alone ({e})"), remedy }
    };
    let first = session.run(&both).map_err(single)?;
    let again = session.run(&both)?;
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= APART * (1.0 + a.abs()));
    if !near(&first, &again) {
        let why = "differ from run to run".into();
        return Err(
            session.refuse(why, "export the network in evaluation mode (`net.eval()`), without dropout")
        );
    }
    if !near(&alone, &first[..alone.len()]) {
        let why = "of a sample depend on the samples beside it".into();
        let remedy = "export the network in evaluation mode (`net.eval()`), with a free number of samples";
        return Err(session.refuse(why, remedy));
    }
    Ok(())
}
