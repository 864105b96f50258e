"""A golden federated run, three rounds on four clients, made with PyTorch: FedAvg, FedPer, pFedKDH and FedPrism written plainly.

    python tests/golden/torch_federated.py        # writes tests/golden/federated/*.{json,bin}

Made with PyTorch 2.15.0, numpy 2.4.6, CPython 3.11, one CPU thread. Every decision is written down in README.md beside this file.
"""

import itertools
import pathlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import hashed
from torch_traces import distil, load_hashed, named

OUT = pathlib.Path(__file__).parent / "federated"
BASE = 300000
WIDTH, CLASSES = 20, 4
SIZES = [37, 24, 53, 18]
GROUPS = [[0, 1], [0, 1], [2, 3], [2, 3]]
AUXILIARY, TEST = 100, 200  # their place in the streams where a client's number would stand
ROUNDS, LR, MOMENTUM = 3, 0.05, 0.9
# Purposes of a batch order.
LOCAL, CALIBRATE, SPECIALIST, PRIVATE = 4, 6, 13, 14
SETTINGS = {
    "full_batch": {"batch": 64, "epochs": 4, "private_epochs": 2, "auxiliary": 24},
    "small_batch": {"batch": 8, "epochs": 2, "private_epochs": 1, "auxiliary": 8},
}
KDH = {"lambda": 0.5, "temperature": 2.0, "mu": 0.01, "calibration_epochs": 3}
PRISM = {"clusters": 2, "recluster": 2, "tau": 0.1, "a0": 0.5, "eta_a": 0.05, "private_l2": 1e-4, "router_temperature": 1.0}
APART = {**PRISM, "recluster": 100, "spread": 0.1, "assignment": [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]}


def build(dtype):
    net = named(fc1=nn.Linear(WIDTH, 16), relu1=nn.ReLU(), fc2=nn.Linear(16, 8), relu2=nn.ReLU(), fc3=nn.Linear(8, CLASSES)).to(dtype)
    load_hashed(net, BASE)
    return net


HEAD = 8 * CLASSES + CLASSES  # the last entries of the flat vector: fc3.weight, fc3.bias


def data(who, n, classes, dtype):
    picks = hashed.labels(BASE + 2000 + who, n, len(classes))
    y = np.array(classes)[picks]
    return torch.from_numpy(hashed.inputs(BASE + 1000 + who, BASE + 4000, y, (WIDTH,))).to(dtype), torch.from_numpy(y)


def order(purpose, rnd, client, epoch, n):
    return hashed.order((1 << 30) + ((rnd * 8 + client) * 32 + purpose) * 64 + epoch, n)


class World:
    """The clients' data, one network to compute with, and SGD on flat vectors."""

    def __init__(self, dtype, setting):
        self.dtype, self.setting, self.net = dtype, setting, build(dtype)
        self.init = nn.utils.parameters_to_vector(self.net.parameters()).detach().clone()
        self.clients = [data(i, n, GROUPS[i], dtype) for i, n in enumerate(SIZES)]
        self.auxiliary = data(AUXILIARY, setting["auxiliary"], range(CLASSES), dtype)
        self.test = data(TEST, 6, range(CLASSES), dtype)

    def logits(self, w, x):
        parts, at = {}, 0
        for name, p in self.net.named_parameters():
            parts[name] = w[at : at + p.numel()].view_as(p)
            at += p.numel()
        return torch.func.functional_call(self.net, parts, (x,))

    def features(self, w, x):
        h = F.relu(F.linear(x, w[:320].view(16, 20), w[320:336]))
        return F.relu(F.linear(h, w[336:464].view(8, 16), w[464:472]))

    def sgd(self, start, objective, xy, epochs, purpose, rnd, client):
        """Momentum starts at zero; PyTorch's rule: v <- m v + g; w <- w - lr v. The last, smaller batch is kept."""
        w, v = start.clone(), torch.zeros_like(start)
        x, y = xy
        for epoch in range(epochs):
            turn = torch.from_numpy(order(purpose, rnd, client, epoch, len(y)))
            for at in range(0, len(y), self.setting["batch"]):
                rows = turn[at : at + self.setting["batch"]]
                leaf = w.clone().requires_grad_()
                (g,) = torch.autograd.grad(objective(leaf, x[rows], y[rows]), leaf)
                v = MOMENTUM * v + g
                w = w - LR * v
        return w

    def cross_entropy(self, w, x, y):
        return F.cross_entropy(self.logits(w, x), y)

    def mean(self, values, weights=SIZES):
        total = sum(weights)
        return sum((n / total) * v for n, v in zip(weights, values))


def fedavg(world):
    w = world.init
    for t in range(ROUNDS):
        w = world.mean([world.sgd(w, world.cross_entropy, xy, world.setting["epochs"], LOCAL, t, i) for i, xy in enumerate(world.clients)])
    return {"global": w}


def fedper(world):
    body, heads = world.init[:-HEAD], [world.init[-HEAD:]] * 4
    for t in range(ROUNDS):
        ends = [world.sgd(torch.cat([body, heads[i]]), world.cross_entropy, xy, world.setting["epochs"], LOCAL, t, i) for i, xy in enumerate(world.clients)]
        body, heads = world.mean([w[:-HEAD] for w in ends]), [w[-HEAD:] for w in ends]
    return {"global": body, **{f"head{i}": h for i, h in enumerate(heads)}}


def calibrate(world, body, head, rnd):
    """Head-only steps on cached features of the auxiliary set, from the head as it was. `rnd` ROUNDS stands for before the first round."""
    x, y = world.auxiliary
    cached = world.features(torch.cat([body, head]), x)

    def objective(h, f, label):
        return F.cross_entropy(F.linear(f, h[: 8 * CLASSES].view(CLASSES, 8), h[8 * CLASSES :]), label)

    return world.sgd(head, objective, (cached, y), KDH["calibration_epochs"], CALIBRATE, rnd, 7)


def pfedkdh(world):
    body, heads = world.init[:-HEAD], [world.init[-HEAD:]] * 4
    teacher = calibrate(world, body, world.init[-HEAD:], ROUNDS)
    first = teacher
    for t in range(ROUNDS):
        ends = []
        for i, xy in enumerate(world.clients):
            shared = torch.cat([body, teacher])

            def objective(w, x, y, shared=shared):
                j = distil(world.logits(w, x), world.logits(shared, x), y, KDH["lambda"], KDH["temperature"])
                return j + KDH["mu"] / 2 * ((w[:-HEAD] - shared[:-HEAD]) ** 2).sum()

            ends.append(world.sgd(torch.cat([body, heads[i]]), objective, xy, world.setting["epochs"], LOCAL, t, i))
        body, heads = world.mean([w[:-HEAD] for w in ends]), [w[-HEAD:] for w in ends]
        teacher = calibrate(world, body, teacher, t)
    return {"global": body, "teacher_at_start": first, "teacher": teacher, **{f"head{i}": h for i, h in enumerate(heads)}}


def two_means(points):
    """The best split of a few points in two, by trying all: what k-means finds when the groups stand well apart. Client 0 is in cluster 0."""
    best = None
    for side in itertools.product([0, 1], repeat=len(points) - 1):
        side = (0, *side)
        if sum(side) == 0:
            continue
        centres = [torch.stack([p for p, s in zip(points, side) if s == k]).mean(0) for k in (0, 1)]
        cost = sum(((p - centres[s]) ** 2).sum().item() for p, s in zip(points, side))
        if best is None or cost < best[0]:
            best = (cost, centres, side)
    return best[1], best[2]


def assign(prototypes, tau):
    h = torch.stack(prototypes)
    h = F.normalize(h - h.mean(0), dim=1)
    centres, side = two_means(list(h))
    cosine = torch.stack([F.cosine_similarity(h, c[None], dim=1) for c in centres], 1)
    return F.softmax(cosine / tau, 1), cosine, side


def fedprism(world, hyper):
    parts = [world.init.clone() for _ in range(hyper["clusters"])]
    w_g = world.init
    pi = torch.full((4, hyper["clusters"]), 1.0 / hyper["clusters"], dtype=world.dtype)
    if "spread" in hyper:
        parts = [p + torch.from_numpy(hashed.scaled(BASE + 600 + k, p.shape, hyper["spread"])).to(world.dtype) for k, p in enumerate(parts)]
        pi = torch.tensor(hyper["assignment"], dtype=world.dtype)
    a, private, special = [hyper["a0"]] * 4, [torch.zeros_like(w_g)] * 4, [world.init] * 4
    out, margins = {}, []

    def assembled(i):
        mix = sum(pi[i, k] * parts[k] for k in range(len(parts)))
        return a[i] * w_g + (1 - a[i]) * mix + private[i]

    for t in range(ROUNDS):
        deltas, prototypes = [], []
        for i, xy in enumerate(world.clients):
            start = assembled(i)
            end = world.sgd(start, world.cross_entropy, xy, world.setting["epochs"], LOCAL, t, i)
            deltas.append(end - start)
            shared = end - private[i]

            def objective(w, x, y, shared=shared):
                return world.cross_entropy(w, x, y) + hyper["private_l2"] / 2 * ((w - shared) ** 2).sum()

            private[i] = world.sgd(end, objective, xy, world.setting["private_epochs"], PRIVATE, t, i) - shared
            special[i] = world.sgd(special[i], world.cross_entropy, xy, world.setting["epochs"], SPECIALIST, t, i)
            nearest = int(pi[i].argmax())
            d_g, d_c = (end - w_g).norm().item(), (end - parts[nearest]).norm().item()
            margins.append(abs(d_g - d_c) / d_g)
            a[i] = min(1.0, max(0.0, a[i] + hyper["eta_a"] * (1 if d_g < d_c else -1)))
            prototypes.append(end[-HEAD:-CLASSES])
        new_parts = [parts[k] + world.mean(deltas, [pi[i, k] * n for i, n in enumerate(SIZES)]) for k in range(len(parts))]
        w_g, parts = w_g + world.mean(deltas), new_parts
        if (t + 1) % hyper["recluster"] == 0:
            pi, cosine, side = assign(prototypes, hyper["tau"])
            out |= {"cosine": cosine, "cluster_of": torch.tensor(side, dtype=world.dtype)}
    out |= {"global": w_g, "assignment": pi}
    out |= {f"cluster{k}": c for k, c in enumerate(parts)}
    for i in range(4):
        out |= {f"private{i}": private[i], f"specialist{i}": special[i]}
    if "spread" in hyper:  # elsewhere the two distances are equal but for rounding, and a_i is not determined
        out["a"] = torch.tensor(a, dtype=world.dtype)
        x, _ = world.test
        for i in range(4):
            expert, backbone = world.logits(special[i], x), world.logits(assembled(i), x)
            trust = F.softmax(expert / hyper["router_temperature"], 1).max(1, keepdim=True).values
            out[f"routed{i}"] = trust * F.softmax(expert, 1) + (1 - trust) * F.softmax(backbone, 1)
        assert min(margins) > 1e-4, margins
    return out


METHODS = {
    "fedavg": ({}, fedavg),
    "fedper": ({}, fedper),
    "pfedkdh": (KDH, pfedkdh),
    "fedprism": (PRISM, lambda w: fedprism(w, PRISM)),
    "fedprism_apart": (APART, lambda w: fedprism(w, APART)),
}


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    for setting, numbers in SETTINGS.items():
        blob, methods = [], {}
        for name, (hyper, method) in METHODS.items():
            wide, narrow = method(World(torch.float64, numbers)), method(World(torch.float32, numbers))
            arrays, worst = [], 0.0
            for key, value in wide.items():
                off = (value - narrow[key].double()).abs().max().item()
                arrays.append({"name": key, "shape": list(value.shape), "at": sum(map(len, blob)), "f32_off": float(f"{off:.1e}")})
                blob.append(value.flatten().numpy().astype("<f4"))
                worst = max(worst, off)
            print(f"{setting} {name}: f32 run off by at most {worst:.1e}")
            methods[name] = {"hyper": hyper, "arrays": arrays}
        np.concatenate(blob).tofile(OUT / f"{setting}.bin")
        hashed.write_json(OUT / f"{setting}.json", {
            "rounds": ROUNDS, "sizes": SIZES, "groups": GROUPS, "lr": LR, "momentum": MOMENTUM, **numbers, "methods": methods,
        })


if __name__ == "__main__":
    main()
