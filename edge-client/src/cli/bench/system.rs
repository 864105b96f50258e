//! What the system tells about this process's memory and the board's heat.
use std::fmt::{Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel shows devices.
const SYS: &str = "/sys";

/// Temperature, and whether the processor was slowed down; nothing where the board doesn't show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heat {
    /// Of the hottest zone.
    pub celsius: Option<f64>,
    /// Now, or since.
    pub throttled: Option<bool>,
    /// How often a core was slowed down since the system started.
    events: Option<u64>,
    /// What the firmware remembers since the system started, a bit for each kind.
    remembered: Option<u64>,
}

impl Heat {
    pub(super) fn now() -> Self {
        Self::of(SYS.as_ref())
    }

    fn of(sys: &Path) -> Self {
        let (events, firmware) = (throttle_events(sys), firmware(sys));
        let now = [firmware.map(|bits| bits & 0b1111 != 0), cooled(sys), events.map(|_| false)];
        Self {
            celsius: hottest_of(sys),
            throttled: now.into_iter().flatten().reduce(|a, b| a || b),
            events,
            remembered: firmware.map(|bits| bits >> 16 & 0b1111),
        }
    }

    /// This reading, slowed down if more events were counted than before, or the firmware remembers more.
    pub(super) fn since(self, before: &Self) -> Self {
        let more = |now: Option<u64>, then: Option<u64>, grown: fn(u64, u64) -> bool| {
            now.zip(then).map(|(now, then)| grown(now, then))
        };
        let events = more(self.events, before.events, |now, then| now > then);
        let bits = more(self.remembered, before.remembered, |now, then| now & !then != 0);
        let flags = [before.throttled, self.throttled, events, bits];
        Self { throttled: flags.into_iter().flatten().reduce(|a, b| a || b), ..self }
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
    hottest_of(SYS.as_ref())
}

fn hottest_of(sys: &Path) -> Option<f64> {
    let zones = entries(&sys.join("class/thermal"), "thermal_zone", "");
    let degrees = zones.filter_map(|zone| number(&zone.join("temp"), 10)).map(|t| t as f64 / 1000.0);
    degrees.reduce(f64::max)
}

/// Cores' own counts (x86).
fn throttle_events(sys: &Path) -> Option<u64> {
    let cores = entries(&sys.join("devices/system/cpu"), "cpu", "");
    let counts = cores.filter_map(|core| number(&core.join("thermal_throttle/core_throttle_count"), 10));
    counts.map(i64::unsigned_abs).reduce(|a, b| a + b)
}

/// Whether the kernel holds a core's clock down to cool it (Jetson and most other ARM boards).
fn cooled(sys: &Path) -> Option<bool> {
    let clock =
        |device: &PathBuf| fs::read_to_string(device.join("type")).is_ok_and(|kind| kind.contains("cpufreq"));
    let devices = entries(&sys.join("class/thermal"), "cooling_device", "").filter(clock);
    devices.filter_map(|device| number(&device.join("cur_state"), 10)).map(|s| s > 0).reduce(|a, b| a || b)
}

/// What a Raspberry Pi's firmware says. The lowest four bits are undervoltage, a capped clock, throttling, the soft limit; sixteen above
/// them are the same since the system started.
fn firmware(sys: &Path) -> Option<u64> {
    let chips = entries(&sys.join("devices/platform"), "soc", "");
    let mut firmware = chips.flat_map(|chip| entries(&chip, "soc", ":firmware"));
    firmware.find_map(|device| number(&device.join("get_throttled"), 16)).map(i64::unsigned_abs)
}

/// What lies in a folder under such names.
fn entries(folder: &Path, start: &'static str, end: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let named = move |name: &str| name.starts_with(start) && name.ends_with(end);
    entries.filter(move |e| e.file_name().to_str().is_some_and(named)).map(|entry| entry.path())
}

fn number(file: &Path, radix: u32) -> Option<i64> {
    let text = fs::read_to_string(file).ok()?;
    i64::from_str_radix(text.trim().trim_start_matches("0x"), radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like `/sys` with these files.
    fn sys(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn heat(files: &[(&str, &str)]) -> Heat {
        Heat::of(sys(files).path())
    }

    const PI: &str = "devices/platform/soc/soc:firmware/get_throttled";
    const CORE: &str = "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";

    #[test]
    fn a_board_that_shows_nothing_is_said_to_show_nothing() {
        let nothing = heat(&[
            ("class/thermal/thermal_zone0/temp", "broken\n"),
            ("class/thermal/cooling_device0/cur_state", "1\n"),
        ]);
        assert_eq!(nothing, Heat::default());
        assert_eq!(nothing.clone().since(&nothing), nothing);
        assert_eq!(nothing.to_string(), "no temperature shown here, whether slowed down is not shown here");
    }

    #[test]
    fn the_hottest_zone_counts() {
        let zone = |i: usize, t: &'static str| (format!("class/thermal/thermal_zone{i}/temp"), t);
        let files = [zone(0, "48312\n"), zone(1, "61000\n"), zone(2, "-3000\n")];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, t)| (name.as_str(), *t)).collect();
        let heat = heat(&files);
        assert_eq!((heat.celsius, heat.throttled), (Some(61.0), None));
        assert_eq!(heat.to_string(), "61 °C, whether slowed down is not shown here");
    }

    #[test]
    fn a_raspberry_pi_tells_what_is_and_what_was() {
        let told = |bits: &str| heat(&[(PI, bits)]);
        assert_eq!((told("0").throttled, told("0x5\n").throttled), (Some(false), Some(true)));
        // Throttled at some time since the system started, but neither now nor in this run.
        let before = told("40000\n");
        assert_eq!(before.throttled, Some(false));
        assert_eq!(before.clone().since(&before).throttled, Some(false));
        assert_eq!(told("50000\n").since(&before).throttled, Some(true), "a new kind since");
        assert_eq!(told("40000\n").since(&told("40004\n")).throttled, Some(true), "at the start of the run");
        let newer = heat(&[("devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled", "2\n")]);
        assert_eq!(newer.throttled, Some(true));
        assert!(newer.to_string().ends_with("slowed down by heat or power"));
    }

    #[test]
    fn a_clock_that_is_held_down_is_throttled() {
        let board = |state: &'static str| {
            heat(&[
                ("class/thermal/cooling_device0/type", "pwm-fan\n"),
                ("class/thermal/cooling_device0/cur_state", "3\n"),
                ("class/thermal/cooling_device1/type", "cpufreq-cpu0\n"),
                ("class/thermal/cooling_device1/cur_state", state),
            ])
        };
        assert_eq!((board("0\n").throttled, board("2\n").throttled), (Some(false), Some(true)));
    }

    #[test]
    fn cores_that_count_are_compared_with_before() {
        let count = |n: &'static str| heat(&[(CORE, n), ("devices/system/cpu/cpu0/online", "1\n")]);
        assert_eq!(count("7\n").since(&count("7\n")).throttled, Some(false));
        assert_eq!(count("8\n").since(&count("7\n")).throttled, Some(true));
    }
}
