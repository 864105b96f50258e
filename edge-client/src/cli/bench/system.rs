//! What the system tells about this process's memory and the board's heat.
use std::fmt::{Display, Formatter};
use std::fs;

/// Temperature, and whether the processor was slowed down; nothing where the board doesn't show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Heat {
    /// Of the hottest zone.
    pub celsius: Option<f64>,
    /// Now, or since.
    pub throttled: Option<bool>,
    /// How often a core was slowed down since the system started.
    events: Option<u64>,
}

impl Heat {
    pub(super) fn now() -> Self {
        let events = throttle_events();
        let throttled = raspberry().or(events.map(|_| false));
        Self { celsius: hottest(), throttled, events }
    }

    /// This reading, slowed down if more events were counted than before.
    pub(super) fn since(self, before: &Self) -> Self {
        let more = self.events.zip(before.events).map(|(now, then)| now > then);
        let throttled = match (self.throttled, more) {
            (None, more) => more,
            (Some(flag), more) => Some(flag || more.unwrap_or(false)),
        };
        Self { throttled, ..self }
    }
}

impl Display for Heat {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.celsius {
            Some(celsius) => write!(f, "{celsius:.0} °C, ")?,
            None => write!(f, "no temperature shown here, ")?,
        }
        f.write_str(match self.throttled {
            Some(true) => "slowed down by heat or power",
            Some(false) => "not slowed down",
            None => "whether slowed down is not shown here",
        })
    }
}

/// A number of kB about this process, where the system says.
pub(in crate::cli) fn rss(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The hottest thermal zone.
pub(in crate::cli) fn hottest() -> Option<f64> {
    let zones = fs::read_dir("/sys/class/thermal").into_iter().flatten().filter_map(Result::ok);
    let degrees = zones.filter_map(|zone| number(&zone.path().join("temp"), 10)).map(|t| t as f64 / 1000.0);
    degrees.fold(None, |most, t| Some(most.map_or(t, |m: f64| m.max(t))))
}

/// Cores' own counts (x86).
fn throttle_events() -> Option<u64> {
    let cores = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().filter_map(Result::ok);
    let counts =
        cores.filter_map(|core| number(&core.path().join("thermal_throttle/core_throttle_count"), 10));
    counts.map(i64::unsigned_abs).reduce(|a, b| a + b)
}

/// What a Raspberry Pi's firmware says: the lowest four bits are undervoltage, a capped clock, throttling, the soft limit.
fn raspberry() -> Option<bool> {
    const FILE: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";
    number(FILE.as_ref(), 16).map(|bits| bits & 0b1111 != 0)
}

fn number(file: &std::path::Path, radix: u32) -> Option<i64> {
    let text = fs::read_to_string(file).ok()?;
    i64::from_str_radix(text.trim().trim_start_matches("0x"), radix).ok()
}
