use super::*;
use crate::baselines::recipe;
use crate::bench::Bench;
use crate::bundle::Bundle;
use crate::world::{World, WorldName, WorldPlan};
use models::fed::adapt::{Adapt, Adaptation};
use models::fed::{Method, cpct, fedavg, fedper, fedprism, pfedkdh};
use models::nn::Limited;

/// Three boards and two late ones with some sixty images each.
pub(crate) fn small_world() -> World {
    let whole = Bundle::embedded();
    let first = |of: &models::data::Samples, n: usize| of.select(&(0..n).collect::<Vec<_>>());
    let bundle = Bundle {
        clients: first(&whole.clients, 300),
        auxiliary: first(&whole.auxiliary, 40),
        test: first(&whole.test, 50),
    };
    WorldPlan { clients: 3, alpha: 1.0, ..WorldPlan::fixed(WorldName::Mixed, 1) }.build(&bundle)
}

fn crew(bench: &Bench<'_>) -> Crew {
    Crew {
        trained: bench.trainers(bench.world.trained()),
        late: bench.trainers(bench.world.late()),
        auxiliary: Some(bench.auxiliary()),
    }
}

/// Every number of the answering networks.
pub(crate) fn bits(boards: &[Answering]) -> Vec<u32> {
    let networks =
        boards.iter().flat_map(|b| &b.predictors).flat_map(|p| [Some(p.specialist()), p.generalist()]);
    let values = networks.flatten().flat_map(|network| {
        let backbones = network.streams.iter().flat_map(|s| s.backbone.values());
        backbones.chain(network.members.iter().flat_map(|m| m.head.values().iter().chain([&m.share])))
    });
    values.map(|v| v.to_bits()).collect()
}

fn two_rounds(recipe: &Recipe, threads: usize) -> Outcome {
    let world = small_world();
    let bench = Bench::new(&world, 2).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let rounds = std::sync::atomic::AtomicU32::new(0);
    let folded = || {
        rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let run = || run(recipe, bench.policy.clone(), bench.init.clone(), crew(&bench), &folded);
    let outcome = pool.install(run).unwrap();
    assert_eq!(rounds.into_inner(), 2);
    outcome
}

fn check<M: Method>(answers: &[M::Hyper]) {
    let recipe = recipe::<M>(answers).unwrap();
    let outcome = two_rounds(&recipe, 1);
    assert_eq!(outcome.boards.iter().map(|b| b.client.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(outcome.boards.iter().all(|b| b.predictors.len() == answers.len()));
    assert!(outcome.traffic.up > 0 && outcome.traffic.down > 0);
    let again = two_rounds(&recipe, 3);
    assert_eq!(outcome.traffic, again.traffic);
    assert!(bits(&outcome.boards) == bits(&again.boards), "{} depends on the number of threads", M::NAME);
}

#[test]
fn fedavg_and_its_adaptations() {
    let adapted = |kind| fedavg::Hyper {
        adapt: Adaptation { kind, ..Adaptation::default() },
        ..fedavg::Hyper::default()
    };
    check::<fedavg::FedAvg>(&[Adapt::None, Adapt::Ea, Adapt::Finetune].map(adapted));
}

#[test]
fn fedper_with_and_without_the_auxiliary_node() {
    for aux_node in [false, true] {
        check::<fedper::FedPer>(&[fedper::Hyper { aux_node, ..fedper::Hyper::default() }]);
    }
}

#[test]
fn pfedkdh() {
    check::<pfedkdh::PFedKdh>(&[pfedkdh::Hyper::default()]);
}

#[test]
fn fedprism() {
    check::<fedprism::FedPrism>(&[fedprism::Hyper::default()]);
}

#[test]
fn cpct_in_both_profiles() {
    for profile in [cpct::Profile::PrivateHead, cpct::Profile::SharedHead] {
        check::<cpct::Cpct>(&[cpct::Hyper { profile, recluster: 1, ..cpct::Hyper::default() }]);
    }
}

/// The production machines and bytes in virtual time, with a board that trains all, one that trains less and one that only ever trains its head.
#[test]
fn boards_of_different_modes_run_together_and_a_head_board_only_takes_the_model_over() {
    let recipe = recipe::<cpct::Cpct>(&[cpct::Hyper { recluster: 1, ..cpct::Hyper::default() }]).unwrap();
    let run_with = |modes: [&str; 3], threads: usize| {
        let world = small_world();
        let bench = Bench::new(&world, 2).unwrap();
        let mut crew = crew(&bench);
        let limited = |((id, trainer), mode): ((ClientId, AnyTrainer), &str)| {
            (id, Box::new(Limited::new(trainer, mode.parse().unwrap())) as AnyTrainer)
        };
        crew.trained = crew.trained.into_iter().zip(modes).map(limited).collect();
        // A round opens with all that have something to send: which are there first doesn't count.
        let min_boards = modes.iter().filter(|mode| **mode != "head").count() as u32;
        let policy = Policy { min_boards, participation: 1.0, ..bench.policy.clone() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&recipe, policy, bench.init.clone(), crew, &|| ())).unwrap()
    };
    let (mixed, again) = (run_with(["full", "last:2", "head"], 1), run_with(["full", "last:2", "head"], 3));
    assert!(bits(&mixed.boards) == bits(&again.boards), "it depends on the number of threads");
    assert!(mixed.boards.iter().all(|board| board.predictors.len() == 1), "everybody answers");
    let all = run_with(["full"; 3], 1);
    let (less, silent) = (run_with(["full", "last:2", "full"], 1), run_with(["full", "full", "head"], 1));
    assert!(less.traffic.up < all.traffic.up, "a part is fewer bytes");
    // Of three equal shares one is gone, but for the polls.
    assert!(10 * silent.traffic.up < 7 * all.traffic.up, "{:?} {:?}", silent.traffic, all.traffic);
    assert!(10 * silent.traffic.up > 6 * all.traffic.up, "{:?} {:?}", silent.traffic, all.traffic);
    assert!(mixed.traffic.up < silent.traffic.up);
}
