"""PyTorch at its best on this machine, on the training step that `edge-client bench train` measures.

    .cross/peers/bin/python lab/peers/torch_train.py --arch cc28 --batch 64 --threads 2 --json

Channels-last, an allocator that keeps freed memory, and torch.compile where it works and is faster: each mode is measured, the fastest is
reported and named. `ms_median` is the median of the timed steps of one process; `peak_rss_kib` is the whole process, PyTorch included.
With `--serve` it answers one JSON request per line of standard input ({"arch", "batch", "mode", "steps", "warmup"}): how `race.py` has it take turns.
"""

import argparse
import json
import os
import statistics
import sys
import time

# glibc reads these at start only: without them every large activation is mapped and faulted in anew, at 6 to 25 % of the time.
KEEP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "67108864"}
MODES = ["eager", "channels_last", "compiled"]
SHAPES = {"cc28": (1, 28, 28), "cc32": (3, 32, 32), "dw64": (3, 64, 64), "res64": (3, 64, 64)}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--arch", choices=list(SHAPES), default="cc28")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=30, help="timed steps")
    p.add_argument("--warmup", type=int, default=8)
    p.add_argument("--mode", choices=["best", *MODES], default="best", help="best: all of them, each in a process of its own")
    p.add_argument("--json", action="store_true")
    p.add_argument("--serve", action="store_true", help="answer requests from standard input")
    return p.parse_args()


def network(arch):
    import torch.nn as nn

    def conv(i, o, k, stride=1, groups=1):
        return [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.body = nn.Sequential(*conv(i, o, 3, stride), nn.ReLU(), *conv(o, o, 3))
            self.short = nn.Sequential(*conv(i, o, 1, stride)) if (i, stride) != (o, 1) else nn.Identity()
            self.relu = nn.ReLU()

        def forward(self, x):
            return self.relu(self.body(x) + self.short(x))

    if arch == "cc28":
        body = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*body, nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    if arch == "cc32":
        body = []
        for k, (i, o) in enumerate([(3, 32), (32, 32), (32, 64), (64, 64)]):
            body += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
            if k % 2:
                body.append(nn.MaxPool2d(2))
        return nn.Sequential(*body, nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 10))
    if arch == "dw64":
        body = [*conv(3, 16, 3, 2), nn.ReLU()]
        for i, o, stride in [(16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]:
            body += [*conv(i, i, 3, stride, groups=i), nn.ReLU(), *conv(i, o, 1), nn.ReLU()]
        return nn.Sequential(*body, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(128, 10))
    body = [*conv(3, 16, 3, 2), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    return nn.Sequential(*body, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10))


class Step:
    """One training step of a network, as often as it is called."""

    def __init__(self, arch, batch, mode):
        import torch

        torch.manual_seed(0)
        net, shape = network(arch), SHAPES[arch]
        self.x, self.y = torch.randn(batch, *shape), torch.arange(batch) % 10
        if mode != "eager":
            net, self.x = net.to(memory_format=torch.channels_last), self.x.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        self.call = torch.compile(net) if mode == "compiled" else net

    def __call__(self):
        import torch.nn.functional as F

        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.call(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def timed(step, steps, warmup):
    """Milliseconds of each step, and the last loss."""
    times, loss = [], None
    for k in range(warmup + steps):
        start = time.perf_counter()
        loss = step()
        if k >= warmup:
            times.append((time.perf_counter() - start) * 1e3)
    return times, loss


def measure(args):
    import torch

    torch.set_num_threads(args.threads)
    times, loss = timed(Step(args.arch, args.batch, args.mode), args.steps, args.warmup)
    median = statistics.median(times)
    with open("/proc/self/status", encoding="utf-8") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return {
        "engine": f"torch {torch.__version__}", "mode": args.mode, "arch": args.arch, "batch": args.batch, "threads": args.threads, "steps": args.steps,
        "ms_median": median, "ms_min": min(times), "samples_per_s": args.batch / median * 1e3, "peak_rss_kib": peak, "loss": loss,
    }


def fastest(args):
    import subprocess

    results, failed = [], {}
    for mode in MODES:
        again = [sys.executable, __file__, "--json", "--mode", mode]
        for name in ("arch", "batch", "threads", "steps", "warmup"):
            again += [f"--{name}", str(getattr(args, name))]
        run = subprocess.run(again, capture_output=True, text=True, env=os.environ | KEEP)
        if run.returncode == 0:
            results.append(json.loads(run.stdout))
        else:
            failed[mode] = (run.stderr.strip().splitlines() or ["no message"])[-1]
    for mode, why in failed.items():
        print(f"torch_train: {mode} does not work here: {why}", file=sys.stderr)
    if not results:
        sys.exit(1)
    return min(results, key=lambda r: r["ms_median"]) | {"modes": {r["mode"]: r["ms_median"] for r in results}}


def serve(args):
    import torch

    torch.set_num_threads(args.threads)
    steps = {}
    for line in sys.stdin:
        ask = json.loads(line)
        key = (ask["arch"], ask["batch"], ask["mode"])
        try:
            if key not in steps:
                steps[key] = Step(*key)
            times, _ = timed(steps[key], ask["steps"], ask["warmup"])
            answer = {"ms_median": statistics.median(times)}
        except Exception as why:  # whatever torch.compile may raise: the race goes on without that mode
            answer = {"error": (str(why).strip().splitlines() or [type(why).__name__])[-1]}
        print(json.dumps(answer), flush=True)


def main():
    args = arguments()
    if args.mode == "best" and not args.serve:
        result = fastest(args)
    elif any(os.environ.get(k) != v for k, v in KEEP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP)
    elif args.serve:
        return serve(args)
    else:
        result = measure(args)
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
