#!/usr/bin/env bash
# Races edge-client against PyTorch on one training step: lab/peers/compare.sh [ARCH [BATCH [THREADS [ROUNDS]]]]   (cc28 64 2 5)
# The two take turns, so that whatever else the machine does hits both; the ratio is that of the medians over the rounds. CLIENT names another program
# than target/release/edge-client. For figures to quote: an idle machine, or `chrt -f 10` in front (PyTorch's spinning threads collapse beside other work).
set -euo pipefail
case ${1:-} in -h | --help) sed -n 2,4p "$0"; exit 0 ;; esac
cd "$(dirname "$0")/../.."
arch=${1:-cc28} batch=${2:-64} threads=${3:-2} rounds=${4:-5}
client=${CLIENT:-${CARGO_TARGET_DIR:-target}/release/edge-client}
[ -x "$client" ] || { printf 'compare: error: no %s: cargo build --release -p edge-client\n' "$client" >&2; exit 1; }
python=$(.ci/python peers)/bin/python
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Which of PyTorch's modes is the fastest here is found once; the race is against that one.
mode=$("$python" lab/peers/torch_train.py --arch "$arch" --batch "$batch" --threads "$threads" --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["mode"])')
printf 'PyTorch runs in mode %s\n' "$mode" >&2
for round in $(seq "$rounds"); do
  "$client" bench train --arch "$arch" --batch "$batch" --threads "$threads" --json >"$out/ours.$round"
  "$python" lab/peers/torch_train.py --arch "$arch" --batch "$batch" --threads "$threads" --mode "$mode" --json >"$out/torch.$round"
done
"$python" - "$out" "$rounds" <<'PY'
import json, pathlib, statistics, sys

folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
read = lambda who: [json.loads((folder / f"{who}.{k}").read_text()) for k in range(1, rounds + 1)]
ours, torch = read("ours"), read("torch")
median = lambda runs, key: statistics.median(r[key] for r in runs)
print(f"{'':10}{'ms/step':>10}{'samples/s':>12}{'peak MiB':>10}")
for who, runs in (("spectra", ours), ("torch", torch)):
    print(f"{who:10}{median(runs, 'ms_median'):10.2f}{median(runs, 'samples_per_s'):12.0f}{median(runs, 'peak_rss_kib') / 1024:10.0f}")
by_round = [t["ms_median"] / o["ms_median"] for o, t in zip(ours, torch)]
print(f"speed against PyTorch: {median(torch, 'ms_median') / median(ours, 'ms_median'):.2f} (by round {min(by_round):.2f} to {max(by_round):.2f})")
PY
