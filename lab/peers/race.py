"""Everything that has a speed to reach, measured in one run: edge-client in turns with PyTorch in training and with ONNX Runtime in answering.

    .cross/peers/bin/python lab/peers/race.py [--rounds 5] [--only w1,w2] [--client PATH] [--ort-lib PATH] [--json FILE]

The machine may be busy: only what runs in turns compares. Each round runs one side, then the other; a figure is the median over the rounds of the median
over the steps, a ratio that of the figures, with the span of the rounds' own ratios beside it. PyTorch runs in the fastest of its modes (eager,
channels-last, torch.compile; found first, with the same allocator settings). Both sides run under `chrt -f 10` where that is permitted.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
AVX2 = {"SPECTRA_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
# Name, what is asked for, architecture, batch, threads, limited to AVX2; the target is the ratio to reach (0: none but what the two-thread rows imply).
TRAINING = [
    ("w1", "cc28", 64, 1, False, 2.0),
    ("w1", "cc28", 64, 2, False, 2.2),
    ("w2", "cc32", 64, 1, False, 1.35),
    ("w2", "cc32", 64, 2, False, 1.45),
    ("avx2", "cc28", 64, 1, True, 1.3),
    ("avx2", "cc28", 64, 2, True, 1.3),
    ("avx2", "cc32", 64, 1, True, 1.1),
    ("avx2", "cc32", 64, 2, True, 1.1),
    ("dw64", "dw64", 16, 1, False, 1.0),
    ("dw64", "dw64", 16, 2, False, 1.0),
    ("res64", "res64", 16, 1, False, 1.0),
    ("res64", "res64", 16, 2, False, 1.0),
]
ANSWERING = [("infer", "cc28", 1, 1.0), ("infer", "cc28", 64, 1 / 1.2)]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=20, help="timed steps of a turn")
    p.add_argument("--only", default="", help="w1, w2, avx2, dw64, res64, infer; several with commas")
    p.add_argument("--client", default=os.environ.get("CLIENT") or f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/release/edge-client")
    p.add_argument("--ort-lib", default=os.environ.get("ORT_DYLIB_PATH"), help="ONNX Runtime's library, for infer")
    p.add_argument("--json", help="where to write all rounds")
    return p.parse_args()


def realtime():
    """A prefix that keeps other work off our cores, where we may."""
    prefix = ["chrt", "-f", "10"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return prefix if allowed else []


class Torch:
    """A PyTorch process for one number of threads and one instruction set."""

    def __init__(self, prefix, threads, env):
        command = [*prefix, sys.executable, str(HERE / "torch_train.py"), "--serve", "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | env)

    def turn(self, arch, batch, mode, steps, warmup):
        self.process.stdin.write(json.dumps({"arch": arch, "batch": batch, "mode": mode, "steps": steps, "warmup": warmup}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        # Its threads spin for a moment after the last step; they must not meet the next turn.
        time.sleep(0.05)
        return answer

    def best_mode(self, arch, batch):
        found = {}
        for mode in ["eager", "channels_last", "compiled"]:
            answer = self.turn(arch, batch, mode, 8, 4)
            if "ms_median" in answer:
                found[mode] = answer["ms_median"]
            else:
                print(f"race: {mode} does not work for {arch}: {answer['error']}", file=sys.stderr)
        return min(found, key=found.get)


def ours(prefix, client, what, env, steps, *more):
    command = [*prefix, client, "bench", what, "--steps", str(steps), "--json", *more]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | env, check=False)
    if run.returncode:
        sys.exit(f"race: error: {' '.join(command)}: {run.stderr.strip()}")
    return json.loads(run.stdout)["ms_median"]


def report(name, target, mine, theirs, peer):
    ratio = statistics.median(theirs) / statistics.median(mine)
    each = [t / m for m, t in zip(mine, theirs)]
    verdict = "" if not target else (" reached" if ratio >= target else " short")
    print(
        f"| {name} | {statistics.median(mine):.3f} ms | {statistics.median(theirs):.3f} ms ({peer}) | {ratio:.2f} ({min(each):.2f} to {max(each):.2f}) |"
        f" {target:.2f}{verdict} |",
        flush=True,
    )


def race(args, turns):
    """Rounds of both sides in turns: `turns` is (ours, theirs)."""
    mine, theirs = [], []
    for _ in range(args.rounds):
        for side, times in zip(turns, (mine, theirs)):
            times.append(side())
    return mine, theirs


def main():
    args = arguments()
    wanted = set(filter(None, args.only.split(",")))
    prefix, peers, record, medians = realtime(), {}, [], {}
    print("| what | ours | peer | ratio (rounds) | wanted |\n|---|---|---|---|---|", flush=True)
    for group, arch, batch, threads, avx2, target in TRAINING:
        if wanted and group not in wanted:
            continue
        env = AVX2 if avx2 else {}
        torch = peers.setdefault((threads, avx2), None) or Torch(prefix, threads, env)
        peers[threads, avx2] = torch
        mode = torch.best_mode(arch, batch)
        options = ["--arch", arch, "--batch", str(batch), "--threads", str(threads)]
        turns = (
            lambda: ours(prefix, args.client, "train", env, args.steps, *options),
            lambda: torch.turn(arch, batch, mode, args.steps, 2)["ms_median"],
        )
        mine, theirs = race(args, turns)
        name = f"{arch}, batch {batch}, {threads} thread{'s' * (threads > 1)}{', AVX2' * avx2}"
        report(name, target, mine, theirs, mode)
        record.append({"what": name, "ours": mine, "peer": theirs, "mode": mode})
        medians[arch, avx2, threads] = statistics.median(mine)
    for (arch, avx2, threads), ms in medians.items():
        if threads == 2 and (arch, avx2, 1) in medians:
            print(f"| {arch}{', AVX2' * avx2}: two threads against one | | | {medians[arch, avx2, 1] / ms:.2f} | 1.85 |", flush=True)
    for group, arch, batch, target in ANSWERING:
        if (wanted and group not in wanted) or not args.ort_lib:
            continue
        options = ["--arch", arch, "--batch", str(batch), "--threads", "1"]
        steps = args.steps * 20
        turns = (
            lambda: ours(prefix, args.client, "infer", {}, steps, *options, "--engine", "native"),
            lambda: ours(prefix, args.client, "infer", {}, steps, *options, "--engine", "ort", "--ort-lib", args.ort_lib),
        )
        mine, theirs = race(args, turns)
        name = f"{arch} answering, batch {batch}, 1 thread"
        report(name, target, mine, theirs, "ONNX Runtime")
        record.append({"what": name, "ours": mine, "peer": theirs})
    for torch in peers.values():
        torch.process.stdin.close()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
