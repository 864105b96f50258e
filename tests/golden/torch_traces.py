"""Golden traces of training, made with PyTorch: losses and weights that models::nn must reproduce.

    python tests/golden/torch_traces.py        # writes tests/golden/traces/*.json

Made with PyTorch 2.15.0, numpy 2.4.6, CPython 3.11, one CPU thread. What the files hold and how to replay them: README.md beside this file.
"""

import collections
import pathlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import hashed

OUT = pathlib.Path(__file__).parent / "traces"
BATCH = 8
STEPS = 20
MOMENTUM = 0.9


class WithStatistics(nn.Module):
    """CC28 with 32 data statistics joined to the flattened features."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(3136 + 32, 128), nn.Linear(128, 10)

    def forward(self, x, s):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.cat([x.flatten(1), s.expand(len(x), -1)], 1)
        return self.fc2(F.relu(self.fc1(x)))


def named(**layers):
    return nn.Sequential(collections.OrderedDict(layers))





def lenet5():
    return named(
        pad=nn.ZeroPad2d(2),
        conv1=nn.Conv2d(1, 6, 5), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(6, 16, 5), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        flat=nn.Flatten(), fc1=nn.Linear(400, 120), relu3=nn.ReLU(), fc2=nn.Linear(120, 84), relu4=nn.ReLU(), fc3=nn.Linear(84, 10),
    )


def cc28():
    return named(
        conv1=nn.Conv2d(1, 32, 3, padding=1), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(32, 64, 3, padding=1), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        flat=nn.Flatten(), fc1=nn.Linear(3136, 128), relu3=nn.ReLU(), fc2=nn.Linear(128, 10),
    )


def cc32():
    layers = {}
    for k, (i, o) in enumerate([(3, 32), (32, 32), (32, 64), (64, 64)], 1):
        layers |= {f"conv{k}": nn.Conv2d(i, o, 3, padding=1), f"bn{k}": nn.BatchNorm2d(o), f"relu{k}": nn.ReLU()}
        if k % 2 == 0:
            layers[f"pool{k // 2}"] = nn.MaxPool2d(2)
    return named(**layers, flat=nn.Flatten(), fc1=nn.Linear(4096, 256), relu5=nn.ReLU(), fc2=nn.Linear(256, 10))


def kdhcnn():
    return named(
        conv1=nn.Conv2d(3, 32, 3, padding=1), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(32, 64, 3, padding=1), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2), drop=nn.Dropout(0.0),
        flat=nn.Flatten(), fc1=nn.Linear(4096, 512), relu3=nn.ReLU(), fc2=nn.Linear(512, 10),
    )


def mlp():
    return named(flat=nn.Flatten(), fc1=nn.Linear(784, 64), relu1=nn.ReLU(), fc2=nn.Linear(64, 10))


def motion():
    return named(
        conv1=nn.Conv1d(6, 16, 5, padding=2), relu1=nn.ReLU(), pool1=nn.MaxPool1d(2),
        conv2=nn.Conv1d(16, 32, 5, padding=2), relu2=nn.ReLU(), pool2=nn.MaxPool1d(2),
        flat=nn.Flatten(), fc1=nn.Linear(512, 64), relu3=nn.ReLU(), fc2=nn.Linear(64, 5),
    )


def normed(name, i, o, window, stride=1, groups=1):
    """A convolution without bias and its batch norm."""
    conv = nn.Conv2d(i, o, window, stride, window // 2, groups=groups, bias=False)
    return {name: conv, f"{name}_bn": nn.BatchNorm2d(o)}


def dw64():
    layers, before = normed("stem", 3, 16, 3, 2) | {"relu": nn.ReLU()}, 16
    for k, (o, stride) in enumerate([(32, 1), (64, 2), (64, 1), (128, 2), (128, 1)], 1):
        layers |= normed(f"dw{k}", before, before, 3, stride, groups=before) | {f"dw{k}_relu": nn.ReLU()}
        layers |= normed(f"pw{k}", before, o, 1) | {f"pw{k}_relu": nn.ReLU()}
        before = o
    return named(**layers, mean=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(128, 10))


class Block(nn.Module):
    """A basic residual block."""

    def __init__(self, i, o, stride):
        super().__init__()
        self.body = named(**normed("a", i, o, 3, stride), relu=nn.ReLU(), **normed("b", o, o, 3))
        self.short = named(**normed("short", i, o, 1, stride)) if (i, stride) != (o, 1) else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def res64():
    blocks = {f"block{k}": Block(*block) for k, block in enumerate([(16, 16, 1), (16, 32, 2), (32, 64, 2)], 1)}
    return named(**normed("stem", 3, 16, 3, 2), relu=nn.ReLU(), **blocks, mean=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(64, 10))


# name: (number, builder, input shape, classes, learning rate, extra objective)
TRACES = {
    "lenet5": (1, lenet5, (1, 28, 28), 10, 0.05, {}),
    "cc28": (2, cc28, (1, 28, 28), 10, 0.05, {}),
    "cc32": (3, cc32, (3, 32, 32), 10, 0.02, {}),
    "kdhcnn": (4, kdhcnn, (3, 32, 32), 10, 0.05, {}),
    "mlp": (5, mlp, (1, 28, 28), 10, 0.05, {}),
    "motion": (6, motion, (6, 64), 5, 0.03, {}),
    "cc28_statistics": (11, WithStatistics, (1, 28, 28), 10, 0.02, {"statistics": 32}),
    "dw64": (15, dw64, (3, 16, 16), 10, 0.01, {}),
    "res64": (16, res64, (3, 16, 16), 10, 0.01, {}),
    "mlp_distil": (8, mlp, (1, 28, 28), 10, 0.05, {"lambda": 0.5, "temperature": 2.0}),
    "mlp_proximal": (9, mlp, (1, 28, 28), 10, 0.05, {"mu": 0.1}),
    "mlp_l2": (10, mlp, (1, 28, 28), 10, 0.05, {"l2": 0.01}),
}


def load_hashed(net, base):
    """Sets every parameter from the hash: streams base, base+1, … in PyTorch's order of parameters."""
    modules = dict(net.named_modules())
    with torch.no_grad():
        for k, (name, p) in enumerate(net.named_parameters()):
            layer, kind = modules[name.rsplit(".", 1)[0]], name.rsplit(".", 1)[1]
            if isinstance(layer, nn.BatchNorm2d):
                v = hashed.scaled(base + k, p.shape, 0.1, 1.0 if kind == "weight" else 0.0)
            else:
                v = hashed.scaled(base + k, p.shape, 1.0 / np.sqrt(layer.weight[0].numel()))
            p.copy_(torch.from_numpy(v))


def distil(student, teacher, y, lam, temperature):
    """(1-l) CE + l T^2 KL(teacher || student), means over the batch."""
    kl = F.kl_div(F.log_softmax(student / temperature, 1), F.log_softmax(teacher / temperature, 1), log_target=True, reduction="batchmean")
    return (1 - lam) * F.cross_entropy(student, y) + lam * temperature**2 * kl


def batch(base, step, shape, classes, dtype):
    y = hashed.labels(base + 2000 + step, BATCH, classes)
    x = hashed.inputs(base + 1000 + step, base + 4000, y, shape)
    return torch.from_numpy(x).to(dtype), torch.from_numpy(y)


def run(number, build, shape, classes, lr, extra, dtype):
    base = number * 10000
    net = build().to(dtype)
    load_hashed(net, base)
    teacher = None
    if "lambda" in extra:
        teacher = build().to(dtype).eval()
        load_hashed(teacher, base + 5000)
    anchor = [p.detach().clone() for p in net.parameters()]
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=MOMENTUM, weight_decay=extra.get("l2", 0.0))

    def call(model, x, step):
        if "statistics" not in extra:
            return model(x)
        return model(x, torch.from_numpy(hashed.symmetric(base + 3000 + step, (extra["statistics"],))).to(dtype))

    losses, first = [], None
    net.train()
    for step in range(STEPS):
        x, y = batch(base, step, shape, classes, dtype)
        z = call(net, x, step)
        if teacher is not None:
            with torch.no_grad():
                t = teacher(x)
            loss = distil(z, t, y, extra["lambda"], extra["temperature"])
        else:
            loss = F.cross_entropy(z, y)
        if "mu" in extra:
            loss = loss + extra["mu"] / 2 * sum(((p - a) ** 2).sum() for p, a in zip(net.parameters(), anchor))
        optimizer.zero_grad()
        loss.backward()
        if first is None:
            first = [summary(n, p.grad) for n, p in net.named_parameters()]
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    x, y = batch(base, STEPS, shape, classes, dtype)
    with torch.no_grad():
        logits = call(net, x, STEPS)
    final = [summary(n, p) for n, p in net.named_parameters()]
    final += [summary(n, b) for n, b in net.named_buffers() if b.dim() > 0]
    return {"losses": losses, "eval_loss": F.cross_entropy(logits, y).item(), "eval_logits": logits.flatten().tolist(), "gradient": first, "final": final}


def summary(name, t):
    flat = t.detach().double().flatten()
    return {"name": name, "shape": list(t.shape), "norm": flat.norm().item(), "picks": [flat[i].item() for i in hashed.picks(len(flat))]}


def trace(name):
    number, build, shape, classes, lr, extra = TRACES[name]
    wide = run(number, build, shape, classes, lr, extra, torch.float64)
    narrow = run(number, build, shape, classes, lr, extra, torch.float32)
    gap = max(abs(a - b) for a, b in zip(wide["losses"], narrow["losses"]))
    weights = max(abs(a["norm"] - b["norm"]) / a["norm"] for a, b in zip(wide["final"], narrow["final"]) if a["norm"] > 1e-6)
    picks = max(abs(p - q) for a, b in zip(wide["final"], narrow["final"]) for p, q in zip(a["picks"], b["picks"]))
    print(f"{name}: loss {wide['losses'][0]:.4f} -> {wide['losses'][-1]:.4f}; f32 run off by {gap:.1e} (loss), {weights:.1e} (norms), {picks:.1e} (entries)")
    head = {"trace": number, "input": list(shape), "classes": classes, "batch": BATCH, "steps": STEPS, "lr": lr, "momentum": MOMENTUM, **extra}
    hashed.write_json(OUT / f"{name}.json", {**head, "f64": wide, "f32": narrow})


def losses():
    """Each loss alone, in f64, with its gradient: hashed logits of 6 rows and 5 classes."""
    rows, classes, base = 6, 5, 200000
    y = torch.from_numpy(hashed.labels(base + 2, rows, classes))
    s0 = torch.from_numpy(hashed.scaled(base, (rows, classes), 4.0))
    t = torch.from_numpy(hashed.scaled(base + 1, (rows, classes), 4.0))
    counts = torch.tensor([1.0, 40.0, 3.0, 0.5, 7.0], dtype=torch.float64)
    w0 = torch.from_numpy(hashed.scaled(base + 3, (10,), 1.0))
    anchor = torch.from_numpy(hashed.scaled(base + 4, (10,), 1.0))

    def case(name, start, f, **settings):
        v = start.clone().requires_grad_()
        loss = f(v)
        loss.backward()
        return {"name": name, **settings, "value": loss.item(), "gradient": v.grad.flatten().tolist()}

    cases = [case("cross_entropy", s0, lambda z: F.cross_entropy(z, y))]
    for lam, temperature in [(0.0, 1.0), (0.5, 2.0), (0.3, 4.0), (1.0, 1.0), (1.0, 2.0)]:
        cases.append(case("distil", s0, lambda z: distil(z, t, y, lam, temperature), **{"lambda": lam, "temperature": temperature}))
    cases.append(case("prior_corrected", s0, lambda z: F.cross_entropy(z + (counts / counts.sum()).log(), y), counts=counts.tolist()))
    cases.append(case("proximal", w0, lambda w: 0.3 / 2 * ((w - anchor) ** 2).sum(), mu=0.3))
    cases.append(case("l2", w0, lambda w: 0.3 / 2 * (w**2).sum(), l2=0.3))
    hashed.write_json(OUT / "losses.json", {"rows": rows, "classes": classes, "labels": y.tolist(), "cases": cases})


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    known = {str(k): int(hashed.splitmix64(k)) for k in (0, 1, 5 + (3 << 32))}
    hashed.write_json(OUT / "hash.json", {
        "splitmix64": {k: f"{v:016x}" for k, v in known.items()},
        "symmetric_stream_7": hashed.symmetric(7, (4,)).tolist(),
        "labels_stream_7_of_10": hashed.labels(7, 8, 10).tolist(),
        "order_stream_7_of_8": hashed.order(7, 8).tolist(),
    })
    losses()
    for name in TRACES:
        trace(name)


if __name__ == "__main__":
    main()
