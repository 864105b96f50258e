//! Times of something done again and again, beside what the machine could do at most and what it cost in memory.
use super::system::{Heat, rss};
use crate::cli::args::BenchArgs;
use ::models::nn::bench::exert;
use serde_json::{Value, json};
use std::time::Instant;

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub ms_median: f64,
    ms_p95: f64,
    gflops: f64,
    /// Multiply-adds on registers alone, of all threads together, in this run.
    peak_gflops: f64,
    idle_rss_kib: Option<u64>,
    rss_kib: Option<u64>,
    peak_rss_kib: Option<u64>,
    heat: Heat,
}

/// Times `step` after a tenth of warming up, the first of which takes the memory.
pub(super) fn measure(
    args: &BenchArgs,
    threads: usize,
    flops: f64,
    mut step: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Measured> {
    let (before, first) = (Heat::now(), peak(threads));
    let idle_rss_kib = rss("VmRSS:");
    (0..args.steps.div_ceil(10)).try_for_each(|_| step())?;
    let mut timed = || -> anyhow::Result<f64> {
        let started = Instant::now();
        step()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    let mut times = (0..args.steps).map(|_| timed()).collect::<Result<Vec<_>, _>>()?;
    let (rss_kib, peak_rss_kib) = (rss("VmRSS:"), rss("VmHWM:"));
    times.sort_by(f64::total_cmp);
    let ms_median = times[times.len() / 2];
    Ok(Measured {
        ms_median,
        ms_p95: times[(times.len() * 95).div_ceil(100) - 1],
        gflops: flops / ms_median / 1e6,
        peak_gflops: first.max(peak(threads)),
        idle_rss_kib,
        rss_kib,
        peak_rss_kib,
        heat: Heat::now().since(&before),
    })
}

/// The best of a few tries of all threads at once; called in the pool that has them.
fn peak(threads: usize) -> f64 {
    const ROUNDS: u32 = 400_000;
    let try_once = |_| {
        let started = Instant::now();
        let flops: f64 = match threads {
            1 => exert(ROUNDS),
            _ => rayon::broadcast(|_| exert(ROUNDS)).into_iter().sum(),
        };
        flops / started.elapsed().as_secs_f64() / 1e9
    };
    (0..7).map(try_once).fold(0.0, f64::max)
}

impl Measured {
    pub(super) fn json(&self, batch: u32) -> Value {
        json!({
            "ms_median": self.ms_median,
            "ms_p95": self.ms_p95,
            "samples_per_s": self.samples_per_s(batch),
            "gflops": self.gflops,
            "peak_gflops": self.peak_gflops,
            "peak_share": self.gflops / self.peak_gflops,
            "idle_rss_kib": self.idle_rss_kib,
            "rss_kib": self.rss_kib,
            "peak_rss_kib": self.peak_rss_kib,
            "isa": isa(),
            "temperature_c": self.heat.celsius,
            "throttled": self.heat.throttled,
        })
    }

    pub(super) fn text(&self, batch: u32) -> String {
        let &Self { ms_median, ms_p95, gflops, peak_gflops, .. } = self;
        let mib = |kib: Option<u64>| kib.map_or("?".into(), |kib| format!("{:.1}", kib as f64 / 1024.0));
        format!(
            "{ms_median:.2} ms (95 %: {ms_p95:.2}), {:.0} samples/s, {gflops:.1} GFLOP/s as written (Winograd does with fewer), {:.0} % of the {peak_gflops:.0} that {} does at most here\n\
             {} MiB at most, {} now, {} before the first step; {}",
            self.samples_per_s(batch),
            100.0 * gflops / peak_gflops,
            isa(),
            mib(self.peak_rss_kib),
            mib(self.rss_kib),
            mib(self.idle_rss_kib),
            self.heat,
        )
    }

    fn samples_per_s(&self, batch: u32) -> f64 {
        f64::from(batch) / self.ms_median * 1e3
    }
}

fn isa() -> &'static str {
    ::models::nn::isa().level().name()
}
