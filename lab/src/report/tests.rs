use super::*;
use crate::evaluate::{DualReport, Duties};
use serde_json::Value;

fn report(seed: u64, specialist: f64) -> Report {
    let duties = |own| Duties { own: Some(own), unseen: Some(own / 2.0), balanced: Some(own) };
    let dual = DualReport {
        specialist: duties(specialist),
        routed: duties(specialist - 0.1),
        auroc: Some(0.9),
        ..DualReport::default()
    };
    let of = |c: Column| if c == Column::Specialist { specialist } else { 0.5 };
    Report {
        world: "mixed",
        seed,
        rounds: 3,
        boards: vec!["0".into(), "1".into()],
        late: vec!["2".into()],
        accuracy: Column::ALL.map(|c| (c, vec![Some(of(c)), Some(of(c) - 0.2)])).into(),
        late_fedper_ea: vec![Some(0.4)],
        dual: vec![dual, DualReport { auroc: None, ..dual }],
        late_dual: vec![dual],
        bytes_up: 10.4,
        bytes_down: 20.0,
        wall_s: 1.26,
        engines: vec!["native".into()],
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_json_line_has_the_keys_it_promises() {
    let line = report(7, 0.8).json();
    let top = "method world clients rounds seed accuracy worst10 late unseen router_auroc bytes_up_per_client_round bytes_down_per_client_round wall_s engines";
    assert_eq!(keys(&line).join(" "), top);
    let columns = "majority local local_long fedavg fedavg_ea fedavg_ft fedper_ea fedper_ds_ea pfedkdh_ea generalist specialist routed";
    assert_eq!(keys(&line["accuracy"]).join(" "), columns);
    assert_eq!(keys(&line["worst10"]).join(" "), columns);
    assert_eq!(keys(&line["late"]), ["routed", "fedper_ea"]);
    assert_eq!(keys(&line["unseen"]).join(" "), "specialist generalist routed prior_only fedprism_rule");
    assert_eq!(line["unseen"]["generalist"], Value::Null);
    assert_eq!(
        (line["clients"].as_u64(), line["seed"].as_u64(), line["wall_s"].as_f64()),
        (Some(2), Some(7), Some(1.3))
    );
    assert!((line["accuracy"]["specialist"].as_f64().unwrap() - 0.7).abs() < 1e-12);
    assert!((line["worst10"]["local"].as_f64().unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(line["router_auroc"], 0.9);
}

#[test]
fn the_line_over_seeds_pairs_each_column_with_the_specialist() {
    let line = summary(&[report(0, 0.6), report(1, 0.8)]);
    assert_eq!(line["seeds"], serde_json::json!([0, 1]));
    assert!((line["accuracy"]["specialist"].as_f64().unwrap() - 0.6).abs() < 1e-12);
    // Differences −0.1 and −0.3: standard deviation 0.1·√2, standard error 0.1.
    assert!((line["se"]["accuracy"]["local"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    assert!((line["se"]["late"]["fedper_ea"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(line["se"]["router_auroc"].as_f64(), Some(0.0));
    assert!(line.get("seed").is_none());
}

#[test]
fn the_tables_name_every_column_and_way() {
    let reports = [report(0, 0.6), report(1, 0.8)];
    let (one, all) = (render(&reports[0]), over_seeds(&reports));
    for heading in [
        "majority",
        "×3",
        "+aux node",
        "specialist",
        "worst 10 %",
        "classes never seen",
        "joined after",
        "route share",
    ] {
        assert!(one.contains(heading), "{heading} is missing in\n{one}");
    }
    assert!(all.contains("paired se") && all.contains("10.0"), "{all}");
}
