//! How far a long piece of work is, on standard error: a bar on a terminal, a line at each quarter elsewhere.
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece of work of a known number of steps.
#[derive(Debug)]
pub(super) struct Progress {
    what: String,
    steps: u64,
    done: AtomicU64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Announces `what`.
    pub(super) fn new(what: &str, steps: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg:32} {wide_bar} {pos}/{len} {elapsed}");
            let bar = ProgressBar::new(steps).with_message(what.to_owned());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Self { what: what.into(), steps, done: AtomicU64::new(0), bar }
    }

    /// One step is done.
    pub(super) fn tick(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if done * 4 / self.steps.max(1) > (done - 1) * 4 / self.steps.max(1) => {
                eprintln!("{}: {done} of {}", self.what, self.steps);
            }
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}
