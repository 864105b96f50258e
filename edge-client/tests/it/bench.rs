//! `bench` by the real program: what was planned is what the system says was taken.
use serde_json::Value;
use std::process::{Command, Output};

fn bench(args: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_edge-client");
    Command::new(program).arg("bench").args(args.split_whitespace()).output().unwrap()
}

fn line(args: &str) -> Value {
    let output = bench(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn planned_and_measured_memory_agree_within_fifteen_percent() {
    for what in ["cc28 --batch 64", "cc28 --batch 64 --update last:2", "cc32 --batch 16", "res64 --batch 16"]
    {
        for threads in [1, 2] {
            let told = line(&format!("train --arch {what} --threads {threads} --steps 5 --json"));
            let number = |key: &str| told[key].as_f64().unwrap_or_else(|| panic!("{key} in {told}"));
            let taken = number("peak_rss_kib") - number("idle_rss_kib");
            let apart = (taken / number("planned_kib") - 1.0).abs();
            assert!(apart < 0.15, "{what}, {threads} threads: {taken} KiB taken, {told}");
            assert!(number("ms_p95") >= number("ms_median") && number("peak_gflops") > 0.0, "{told}");
        }
    }
}

#[test]
fn more_than_the_cap_is_refused_with_the_numbers_before_anything_is_taken() {
    let refused = bench("train --arch cc32 --batch 64 --threads 2 --ram-cap 40");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("needs 5") && said.contains("allows 40"), "{said}");
    let plan = line("train --arch cc32 --batch 64 --threads 2 --ram-cap 72 --plan --json");
    let buffers = plan.as_array().unwrap();
    let alive = |what: &str| buffers.iter().find(|b| b["what"].as_str().unwrap().starts_with(what)).unwrap();
    assert_eq!(alive("parameters")["alive"], "always");
    assert_eq!(alive("value conv1")["alive"], "forward 1 to backward 1");
}

#[test]
fn a_head_on_remembered_features_is_trained_many_times_as_fast() {
    let told = line("train --arch cc28 --update head --threads 1 --steps 5 --json");
    // A debug build beside other tests: far from the twenty times that an idle machine shows, and far from none.
    assert!(told["cached_speedup"].as_f64().unwrap() > 4.0, "{told}");
    assert_eq!(told["update_bytes"], 0);
}
