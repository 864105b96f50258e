//! The golden hash is the one of the script that wrote the golden files.
use workspace_tests::{golden_json, hashed, numbers};

#[test]
fn bits_numbers_labels_and_orders_agree() {
    let golden = golden_json("traces/hash.json");
    for (at, expected) in golden["splitmix64"].as_object().unwrap() {
        let at: u64 = at.parse().unwrap();
        assert_eq!(format!("{:016x}", hashed::bits(at >> 32, at & 0xffff_ffff)), expected.as_str().unwrap());
    }
    let symmetric: Vec<f64> = (0..4).map(|i| hashed::symmetric(7, i)).collect();
    assert_eq!(symmetric, numbers(&golden["symmetric_stream_7"]));
    let labels: Vec<f64> = (0..8).map(|i| f64::from(hashed::label(7, i, 10))).collect();
    assert_eq!(labels, numbers(&golden["labels_stream_7_of_10"]));
    let order: Vec<f64> = hashed::order(7, 8).iter().map(|&i| i as f64).collect();
    assert_eq!(order, numbers(&golden["order_stream_7_of_8"]));
}
