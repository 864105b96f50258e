//! A ceiling on what training changes holds, whatever a job asks for.
use super::*;
use crate::id::ClientId;
use crate::params::{Mask, ModelSpec, Params, UpdateMode};
use std::sync::Arc;

fn trainer(arch: &str, input: [usize; 3]) -> LocalTrainer {
    let (graph, spec) = arch::build(&card(arch, input, 4, 0)).unwrap();
    let samples = Samples::random(&graph, 4, 40);
    let data = Dataset::new(Inputs::Floats(samples.inputs), samples.labels, graph.input().len(), 4).unwrap();
    LocalTrainer::new((graph, spec), data, (1, ClientId(0)), None).unwrap()
}

fn job<'a>(trains: &'a Mask, proximal: Option<Proximal<'a>>) -> Job<'a> {
    let loss = Loss { proximal, ..Loss::default() };
    let (rate, order) = (LearningRate(0.05), Key::new(1, Purpose::Batches));
    Job { trains, epochs: 2, batch: 16, rate, momentum: 0.9, order, loss, conditioning: &[] }
}

fn moved(spec: &ModelSpec, start: &Params, end: &Params) -> Vec<bool> {
    let entry = |e: &crate::params::Entry| start.values()[e.range.clone()] != end.values()[e.range.clone()];
    spec.entries().iter().map(entry).collect()
}

#[test]
fn nothing_changes_but_what_an_update_of_the_mode_covers_and_all_of_that_does() {
    for (arch, input) in
        [("cc28", [1, 12, 12]), ("cc32", [3, 8, 8]), ("res64", [3, 32, 32]), ("har1d", [6, 1, 64])]
    {
        for mode in ["full", "last:1", "last:2", "last:3", "bias", "head"] {
            let mode: UpdateMode = mode.parse().unwrap();
            let plain = trainer(arch, input);
            let start = init(plain.graph(), plain.spec(), 3);
            let anchor = init(plain.graph(), plain.spec(), 4);
            let mut limited = Limited::new(plain, mode);
            let spec = Arc::clone(limited.spec());
            let everything = Mask::all(&spec);
            let pull = Proximal { anchor: &anchor, mu: 0.1, on: &everything };
            let end = limited.train(&start, &job(&everything, Some(pull))).unwrap().params;
            let covered = if mode == UpdateMode::Head { mode.mask(&spec) } else { mode.covers(&spec) };
            for (index, moved) in moved(&spec, &start, &end).into_iter().enumerate() {
                let entry = &spec.entries()[index];
                assert!(!moved || covered.has(index), "{arch}, {mode}: {} moved", entry.name);
                let opaque = entry.role == crate::params::Role::Opaque;
                assert!(moved || opaque || !covered.has(index), "{arch}, {mode}: {} stayed", entry.name);
            }
        }
    }
}

#[test]
fn a_ceiling_of_everything_is_none_and_one_above_the_job_leaves_nothing_to_do() {
    let mut plain = trainer("cc28", [1, 12, 12]);
    let start = init(plain.graph(), plain.spec(), 3);
    let (everything, head) = (Mask::all(plain.spec()), UpdateMode::Head.mask(plain.spec()));
    let backbone = Mask::part(plain.spec(), crate::params::Part::Backbone);
    let free = plain.train(&start, &job(&everything, None)).unwrap();
    for mode in ["full", "last:50"] {
        let mut limited = Limited::new(&mut plain, mode.parse().unwrap());
        assert_eq!(limited.mode(), UpdateMode::Full);
        let same = limited.train(&start, &job(&everything, None)).unwrap();
        assert_eq!(
            (same.params, same.loss, same.visits),
            (free.params.clone(), free.loss, free.visits),
            "{mode}"
        );
    }
    let of_head = plain.train(&start, &job(&head, None)).unwrap();
    let mut limited = Limited::new(&mut plain, UpdateMode::Head);
    assert_eq!(limited.train(&start, &job(&everything, None)).unwrap().params, of_head.params);
    let idle = limited.train(&start, &job(&backbone, None)).unwrap();
    let loss = limited.evaluate(&start, &[], Split::Train).unwrap().loss;
    assert_eq!((idle.params, idle.loss, idle.visits), (start, loss, 0));
}
