use super::federation::federate;
use super::*;
use crate::baselines::recipe;
use crate::fleet::tests::{bits, small_world};
use crate::fleet::{self, Crew};

#[test]
fn a_federation_over_tls_gives_the_bits_of_the_one_in_memory() {
    let world = small_world();
    let bench = Bench::new(&world, 2).unwrap();
    let hyper = cpct::Hyper { recluster: 1, ..cpct::Hyper::default() };
    let dir = tempfile::tempdir().unwrap();
    let real = federate(Life::Thread, &bench, &hyper, dir.path(), &|| {}).unwrap();
    let crew = Crew {
        trained: bench.trainers(world.trained()),
        late: bench.trainers(world.late()),
        auxiliary: Some(bench.auxiliary()),
    };
    let recipe = recipe::<cpct::Cpct>(&[hyper]).unwrap();
    let simulated = fleet::run(&recipe, bench.policy.clone(), bench.init.clone(), crew, &|| {}).unwrap();
    assert!(bits(&real.boards) == bits(&simulated.boards));
    assert!(real.traffic.up > 0 && real.traffic.up <= simulated.traffic.up);
}
