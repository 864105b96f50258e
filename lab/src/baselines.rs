//! The rivals, on the same partition, initial weights, cohorts and batch order as `cpct`, with equal client sample visits.
use crate::bench::Bench;
use crate::evaluate::own_accuracy;
use crate::fleet::{self, Answering, Crew, FleetError, Recipe};
use crate::report::Column;
use crate::world::Board;
use models::fed::adapt::{Adapt, Adaptation};
use models::fed::erased::method;
use models::fed::{Down, FedError, Method, Site, fedavg, fedper, local, pfedkdh};
use models::id::RoundId;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How much longer the long column trains alone.
const LONG: u32 = 3;

/// What the rivals reach.
#[derive(Clone, Debug, Default)]
pub struct Rivals {
    /// Own accuracy of each board that trained.
    pub accuracy: BTreeMap<Column, Vec<Option<f64>>>,
    /// FedPer+EA on the boards that join late.
    pub late_fedper_ea: Vec<Option<f64>>,
}

/// One training, and the columns its adaptations fill.
struct Job {
    recipe: Recipe,
    columns: Vec<Column>,
    late: bool,
    auxiliary: bool,
}

/// Steps of [`rivals`] that its `tick` hears of.
pub fn steps(bench: &Bench<'_>) -> u64 {
    let rounds = u64::from(bench.policy.rounds);
    rounds * jobs(bench).map_or(0, |j| j.len() as u64) + 2 * bench.world.trained().len() as u64
}

/// Trains and evaluates them all, on the current rayon pool: no core waits for a method's slowest board.
///
/// # Errors
/// [`FleetError`].
pub fn rivals(bench: &Bench<'_>, tick: &(dyn Fn() + Sync)) -> Result<Rivals, FleetError> {
    let (federated, alone) = rayon::join(
        || {
            jobs(bench)?
                .into_par_iter()
                .map(|job| federated(bench, &job, tick))
                .collect::<Result<Vec<_>, _>>()
        },
        || bench.world.trained().par_iter().map(|b| alone(bench, b, tick)).collect::<Result<Vec<_>, _>>(),
    );
    let mut rivals = Rivals::default();
    for (columns, late) in federated? {
        rivals.accuracy.extend(columns);
        rivals.late_fedper_ea.extend(late);
    }
    let alone = alone?;
    rivals.accuracy.insert(Column::Local, alone.iter().map(|a| a.0).collect());
    rivals.accuracy.insert(Column::LocalLong, alone.iter().map(|a| a.1).collect());
    let majority = bench.world.trained().iter().map(|b| Some(b.majority())).collect();
    rivals.accuracy.insert(Column::Majority, majority);
    Ok(rivals)
}

fn jobs(bench: &Bench<'_>) -> Result<Vec<Job>, FleetError> {
    let train = bench.training;
    let adapt = |kind| Adaptation { kind, ..Adaptation::default() };
    let fedavg = |kind| fedavg::Hyper { train, adapt: adapt(kind) };
    let fedper = |aux_node| fedper::Hyper { train, adapt: adapt(Adapt::Ea), aux_node };
    let pfedkdh = pfedkdh::Hyper { train, adapt: adapt(Adapt::Ea), ..pfedkdh::Hyper::default() };
    Ok(vec![
        Job {
            recipe: recipe::<pfedkdh::PFedKdh>(&[pfedkdh])?,
            columns: vec![Column::PFedKdhEa],
            late: false,
            auxiliary: true,
        },
        Job {
            recipe: recipe::<fedper::FedPer>(&[fedper(true)])?,
            columns: vec![Column::FedPerDsEa],
            late: false,
            auxiliary: true,
        },
        Job {
            recipe: recipe::<fedper::FedPer>(&[fedper(false)])?,
            columns: vec![Column::FedPerEa],
            late: true,
            auxiliary: false,
        },
        Job {
            recipe: recipe::<fedavg::FedAvg>(&[
                fedavg(Adapt::None),
                fedavg(Adapt::Ea),
                fedavg(Adapt::Finetune),
            ])?,
            columns: vec![Column::FedAvg, Column::FedAvgEa, Column::FedAvgFt],
            late: false,
            auxiliary: false,
        },
    ])
}

/// A method under the first of these hyper-parameters, adapted by each of them.
///
/// # Errors
/// If they can't be encoded.
pub fn recipe<M: Method>(answers: &[M::Hyper]) -> Result<Recipe, FleetError> {
    let answers = answers.iter().map(encoded::<M>).collect::<Result<Vec<_>, _>>()?;
    Ok(Recipe { method: M::NAME, hyper: answers.first().cloned().unwrap_or_default(), answers })
}

fn encoded<M: Method>(hyper: &M::Hyper) -> Result<Vec<u8>, FleetError> {
    let broken = |e: postcard::Error| FedError::Decode {
        what: "hyper-parameters",
        method: M::NAME,
        why: e.to_string(),
    };
    Ok(postcard::to_stdvec(hyper).map_err(broken)?)
}

type Columns = Vec<(Column, Vec<Option<f64>>)>;

fn federated(
    bench: &Bench<'_>,
    job: &Job,
    tick: &(dyn Fn() + Sync),
) -> Result<(Columns, Vec<Option<f64>>), FleetError> {
    let crew = Crew {
        trained: bench.trainers(bench.world.trained()),
        late: if job.late { bench.trainers(bench.world.late()) } else { Vec::new() },
        auxiliary: job.auxiliary.then(|| bench.auxiliary()),
    };
    let outcome = fleet::run(&job.recipe, bench.policy.clone(), bench.init.clone(), crew, tick)?;
    let judge = |answering: &Answering| -> Result<Vec<Option<f64>>, FleetError> {
        let board = &bench.world.boards[answering.client.0 as usize];
        let judged = answering.predictors.iter().map(|p| own_accuracy(board, p, &mut bench.engine()));
        Ok(judged.collect::<Result<_, _>>().map_err(FedError::from)?)
    };
    let mut judged = outcome.boards.par_iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    let late = judged.split_off(bench.world.trained().len());
    let column = |(at, &column): (usize, &Column)| (column, judged.iter().map(|board| board[at]).collect());
    Ok((
        job.columns.iter().enumerate().map(column).collect(),
        late.into_iter().map(|board| board[0]).collect(),
    ))
}

/// A board alone: with a federated client's budget, then on to the long one. The long run's beginning is the short run.
fn alone(
    bench: &Bench<'_>,
    board: &Board,
    tick: &(dyn Fn() + Sync),
) -> Result<(Option<f64>, Option<f64>), FleetError> {
    let method = method(<local::Local as Method>::NAME)?;
    let budget = bench.budget();
    let hyper = |epochs| encoded::<local::Local>(&local::Hyper { train: bench.training, epochs });
    let site = |round| Site { seed: bench.policy.seed, round: RoundId(round), client: board.client };
    let mut trainer = bench.trainer(board);
    let down = Down { parts: vec![bench.init.values().into()], task: Vec::new() };
    let initial = method.enroll(&hyper(budget)?, bench.init.spec())?;
    let mut state = method.adopt(&hyper(budget)?, &initial, down, site(0), &mut *trainer)?;
    let mut reach = |round, epochs| {
        state = method.adapt(&hyper(epochs)?, &state, site(round), &mut *trainer)?;
        let predictor = method.predictor(&hyper(epochs)?, &state, bench.init.spec())?;
        tick();
        Ok::<_, FleetError>(own_accuracy(board, &predictor, &mut bench.engine()).map_err(FedError::from)?)
    };
    Ok((reach(0, budget)?, reach(1, LONG * budget)?))
}
