//! What training takes, counted by the allocator of this very process: as much as was planned, nothing in a step, never more.
use models::nn::bench::BenchPlan;
use models::nn::graph::Conv2d;
use models::nn::{GraphBuilder, Op};
use models::params::{ModelCard, Preprocessing, UpdateMode};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Counts are of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Pools that are there from the first test to the last: threads allocate when they start and when they end.
fn pool(threads: usize) -> &'static rayon::ThreadPool {
    static POOLS: LazyLock<[rayon::ThreadPool; 2]> =
        LazyLock::new(|| [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap()));
    POOLS.iter().for_each(|pool| drop(pool.broadcast(|_| rayon::join(|| (), || ()))));
    &POOLS[threads - 1]
}

fn plan(arch: &str, batch: usize, mode: &str) -> BenchPlan {
    BenchPlan::new(arch, batch, mode.parse().unwrap(), None).unwrap()
}

/// A network whose middle layer is this convolution, from 8 channels to 8.
fn around(middle: Conv2d) -> BenchPlan {
    let mut g = GraphBuilder::new([3, 12, 12], 0);
    let mut last = g.input();
    for (name, op) in [
        ("stem", Op::Conv2d(Conv2d::same(8, [3, 3]))),
        ("norm", Op::batch_norm(1e-5)),
        ("relu", Op::Relu),
        ("middle", Op::Conv2d(middle)),
        ("flatten", Op::Flatten),
        ("head", Op::Linear { out: 10, bias: true }),
    ] {
        last = g.add(name, op, &[last]).unwrap();
    }
    let graph = g.finish(&[last]);
    let labels = (0..10).map(|c| c.to_string()).collect();
    let preprocessing = Preprocessing::none(3);
    let card = ModelCard { arch: "own".into(), input: [3, 12, 12], labels, statistics: 0, preprocessing };
    let spec = graph.spec(card).unwrap();
    BenchPlan::of((Arc::new(graph), Arc::new(spec)), 32, UpdateMode::Full, None)
}

#[test]
fn a_step_allocates_nothing_and_training_takes_what_was_planned() {
    let _alone = alone();
    let (same, two) = (Conv2d::same(8, [3, 3]), [2, 2]);
    let own = [
        ("dilated", Conv2d { dilation: two, padding: two, ..same }),
        ("dilated and grouped, with strides", Conv2d { dilation: [2, 1], groups: 4, stride: two, ..same }),
        ("grouped", Conv2d { groups: 2, ..same }),
        ("depthwise", Conv2d { groups: 8, ..same }),
        ("depthwise and dilated", Conv2d { groups: 8, dilation: two, ..same }),
        ("one column wide", Conv2d { kernel: [3, 1], padding: [1, 0], ..same }),
    ];
    own.into_iter().for_each(|(what, middle)| nothing_is_allocated_by(what, &around(middle)));
    for (arch, mode) in [
        ("res64", "full"),
        ("dw64", "full"),
        ("cc28", "full"),
        ("cc28", "bias"),
        ("cc28", "head"),
        ("cc32", "full"),
        ("cc32", "last:3"),
        ("cc32-gn", "full"),
        ("kdhcnn", "full"),
        ("har1d", "full"),
        ("mlp", "full"),
    ] {
        nothing_is_allocated_by(&format!("{arch}, {mode}"), &plan(arch, 32, mode));
    }
}

fn nothing_is_allocated_by(what: &str, plan: &BenchPlan) {
    for threads in [1, 2] {
        pool(threads).install(|| {
            let taken = Region::new(ALLOCATOR);
            let mut net = plan.start(threads);
            let taken = taken.change();
            let live = taken.bytes_allocated - taken.bytes_deallocated;
            let planned = plan.memory(threads).bytes;
            let apart = live.abs_diff(planned);
            let tolerance = planned / 50 + (64 << 10);
            assert!(apart < tolerance, "{what}, {threads} threads: {live} bytes live, {planned} planned");
            // The test harness allocates now and then, too: what a step allocates, it allocates every time.
            let counts = (0..5).map(|_| {
                let region = Region::new(ALLOCATOR);
                (0..3).for_each(|_| assert!(net.step().is_finite()));
                region.change().allocations + region.change().reallocations
            });
            assert_eq!(counts.min(), Some(0), "{what}, {threads} threads: a step allocates");
        });
    }
}

/// Resident pages of this process, in KiB.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|l| l.starts_with("VmRSS:"))?.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn resident_memory_is_flat_over_ten_thousand_steps() {
    let _alone = alone();
    pool(2).install(|| {
        let mut net = plan("mlp", 16, "full").start(2);
        (0..100).for_each(|_| assert!(net.step().is_finite()));
        let before = resident();
        (0..10_000).for_each(|_| assert!(net.step().is_finite()));
        let grown = resident().zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
        assert!(grown <= 128, "{grown} KiB more after ten thousand steps");
    });
}

#[test]
fn modes_that_train_less_take_less() {
    let _alone = alone();
    let bytes = |mode: &str| plan("cc28", 64, mode).memory(2).bytes;
    let (full, last, bias, head) = (bytes("full"), bytes("last:2"), bytes("bias"), bytes("head"));
    assert!(head < last && last < full && bias < full, "{full} {last} {bias} {head}");
    let covered = |mode: &str| plan("cc28", 64, mode).update_bytes();
    assert_eq!(covered("full"), 4 * 420_352);
    assert_eq!(covered("last:2"), 4 * (3136 * 128 + 128));
    assert_eq!(covered("bias"), 4 * (32 + 64 + 128));
    assert_eq!(covered("head"), 0);
    assert_eq!(plan("cc28", 64, "last:1").trained(), 1290);
}

#[test]
fn the_plan_stops_below_the_lowest_trained_layer() {
    let _alone = alone();
    let gradients = |mode: &str| {
        let memory = plan("cc28", 64, mode).memory(1);
        let gradients = memory.buffers.into_iter().map(|b| b.what).filter(|w| w.starts_with("gradient "));
        gradients.collect::<Vec<_>>()
    };
    assert_eq!(gradients("head").len(), 1, "{:?}", gradients("head"));
    assert_eq!(gradients("last:2").len(), 2, "{:?}", gradients("last:2"));
    assert!(gradients("last:3").len() > 2 && gradients("full").len() > gradients("last:3").len());
}

#[test]
fn smaller_micro_batches_take_less_and_all_fit_their_bounds() {
    let _alone = alone();
    let bytes = |run| BenchPlan::new("cc32-gn", 64, UpdateMode::Full, Some(run)).unwrap().memory(2).bytes;
    assert!(bytes(1) < bytes(4) && bytes(4) <= bytes(16));
    let mib = |arch: &str| plan(arch, 64, "full").memory(2).bytes >> 20;
    assert!(mib("cc28") < 16 && mib("cc32") < 72 && mib("cc32-gn") < 36);
}
