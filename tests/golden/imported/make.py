"""Exports networks from PyTorch, without their weights, and writes what ONNX Runtime and PyTorch say about them: see README.md."""
import argparse
import json
import logging
import struct
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

import interpret
import nets
from exporting import export, plain

HERE, SAMPLES, STEPS = Path(__file__).parent, 8, 10
CANDIDATES, MOVED, STILL = 64, 5e-7, 0.999995
# exporter, form, operator set
FORMS = [("script", "train", 17), ("script", "eval", 13), ("dynamo", "train", 18), ("dynamo", "eval", 20), ("plain", "train", 21)]


def splitmix64(x):
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def symmetric(name, count):
    """`symmetric(stream, i)` of ../README.md, the stream being the FNV-1a hash of a name."""
    stream = 2166136261
    for byte in name.encode():
        stream = (stream ^ byte) * 16777619 % 2**32
    with np.errstate(over="ignore"):
        bits = splitmix64(np.arange(count, dtype=np.uint64) + np.uint64(stream << 32))
    return ((bits >> np.uint64(40)).astype(np.float64) - 8388608.0) / 8388608.0


def weights(name, shape):
    """A learned array, by its name and extents alone."""
    s = symmetric(name, int(np.prod(shape)))
    if len(shape) > 1:
        values = s * np.sqrt(3.0 / np.prod(shape[1:]))
    elif name.endswith("running_var"):
        values = 1.0 + 0.5 * s
    elif name.endswith(".weight"):
        values = 1.0 + 0.1 * s
    else:
        values = 0.1 * s
    return values.astype(np.float32).reshape(shape)


def learned(t):
    values = numpy_helper.to_array(t)
    return t.data_type == 1 and values.size > 1 and not np.all(values == values.flat[0])


def strip(model):
    """Without weights, and without the exporter's notes."""
    for t in model.graph.initializer:
        if learned(t):
            t.ClearField("raw_data")
            t.ClearField("float_data")
    return plain(model)


def empty(t):
    return t.data_type == 1 and not t.raw_data and not t.float_data and int(np.prod(t.dims)) > 0


def filled(model):
    """With the weights that the names stand for, for evaluation."""
    full = onnx.ModelProto()
    full.CopyFrom(model)
    for t in full.graph.initializer:
        if empty(t):
            t.raw_data = weights(t.name, list(t.dims)).tobytes()
    for node in full.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            kept = [a for a in node.attribute if a.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend(kept)
        if node.op_type == "Dropout":
            del node.input[1:]
    return full


def reference(model, x, labels, rate, dtype=torch.float64):
    """Losses of STEPS steps of plain gradient descent, and the first gradients."""
    values = interpret.constants(model, dtype, lambda t: weights(t.name, list(t.dims)) if empty(t) else None)
    names = [t.name for t in model.graph.initializer if empty(t) and "running_" not in t.name]
    running = {name: v for name, v in values.items() if "running_" in name}
    trained = [values[name].requires_grad_() for name in names]
    losses, first = [], None
    for _ in range(STEPS):
        loss = F.cross_entropy(answered(model, interpret.run(model, values, x.to(dtype), True, running)), labels)
        gradients = torch.autograd.grad(loss, trained)
        first = first or [g.detach().numpy().copy() for g in gradients]
        losses.append(loss.item())
        with torch.no_grad():
            for value, gradient in zip(trained, gradients):
                value -= rate * gradient
    return losses, dict(zip(names, first))


def samples(name, shape):
    return torch.tensor(symmetric(name, SAMPLES * int(np.prod(shape))).astype(np.float32).reshape(SAMPLES, *shape))


def inputs(models, shape):
    """The first stream of inputs whose first gradients stay where they are when weights move by rounding: no number that
    counts lies so near a kink, such as zero of a ReLU, that rounding decides on which side it is."""
    for name in ["input"] + [f"input-{k}" for k in range(1, CANDIDATES)]:
        x = samples(name, shape)
        if all(is_still(model, x.double()) for model in models):
            return name, x
    raise SystemExit("no stream is still enough")


def is_still(model, x):
    still = first_gradients(model, x, 0)
    return all(cosine(still, first_gradients(model, x, k)) >= STILL for k in range(1, 5))


def first_gradients(model, x, which):
    """In f64, with every weight moved a little: another little for each number but 0."""
    fill = lambda t: weights(t.name, list(t.dims)) * (1 + (MOVED * symmetric(f"{t.name}/{which}", int(np.prod(t.dims))).reshape(list(t.dims)) if which else 0))
    values = interpret.constants(model, torch.float64, lambda t: fill(t) if empty(t) else None)
    names = [t.name for t in model.graph.initializer if empty(t) and "running_" not in t.name]
    running = {name: v for name, v in values.items() if "running_" in name}
    trained = [values[name].requires_grad_() for name in names]
    answer = answered(model, interpret.run(model, values, x, True, running))
    loss = F.cross_entropy(answer, torch.arange(SAMPLES) % answer.shape[1])
    return {k: g.numpy() for k, g in zip(names, torch.autograd.grad(loss, trained))}


def answered(model, env):
    last = model.graph.node[-1]
    return env[last.input[0] if last.op_type == "Softmax" else last.output[0]]


def cosine(ones, others):
    """The worst of all arrays that have a gradient but for rounding."""
    return min(float((others[k] * g).sum() / np.sqrt((others[k] ** 2).sum() * (g**2).sum())) for k, g in ones.items() if np.sqrt((g**2).sum()) > 1e-6)


def steady(model, x, labels):
    """The same with the largest rate at which PyTorch agrees with itself, in f32 and f64: deep norms amplify rounding."""
    for rate in (5e-3, 2e-4, 2e-5, 2e-6):
        (losses, gradients), (rough, coarse) = reference(model, x, labels, rate), reference(model, x, labels, rate, torch.float32)
        if max(abs(a - b) for a, b in zip(losses, rough)) < 1e-4:
            worst = cosine(gradients, coarse)
            print(f"rate {rate}, f32 against f64: losses {max(abs(a - b) for a, b in zip(losses, rough)):.1e}, worst cosine {worst:.7f}")
            return rate, losses, gradients, worst
    raise SystemExit("no rate is small enough")


def module_losses(net, x, labels, rate):
    """The same by the module itself, in f32, where the file has its names."""
    net.train()
    net.load_state_dict({k: torch.tensor(weights(k, list(v.shape))) if v.dim() else v for k, v in net.state_dict().items()})
    optim, losses = torch.optim.SGD(net.parameters(), rate), []
    for _ in range(STEPS):
        out = net(x)
        out = out.log() if isinstance(net, nets.Signal) else out  # its softmax's logarithm has the same cross-entropy
        loss = F.cross_entropy(out, labels)
        optim.zero_grad(), loss.backward(), optim.step()
        losses.append(loss.item())
    return losses


def own():
    """Whole files, weights and all, for tests that federate them."""
    torch.manual_seed(7)
    export(nets.Own(), (1, 8, 8), "script", 17, HERE / "own.onnx", training=True)
    for name, net in {"dropping": nets.Dropping(), "dropping_rows": nets.Dropping(rows=True)}.items():
        export(net, (6,), "plain", 21, HERE / f"{name}.onnx", training=True)
        onnx.save(plain(onnx.load(HERE / f"{name}.onnx")), HERE / f"{name}.onnx")
    inputs, names = (torch.randn(2, 1, 8, 8), torch.randn(2, 12)), {"input_names": ["input", "statistics"], "output_names": ["logits"]}
    axes = {name: {0: "N"} for name in ["input", "statistics", "logits"]}
    torch.onnx.export(nets.Conditioned(), inputs, HERE / "conditioned.onnx", dynamo=False, opset_version=17, dynamic_axes=axes, **names)


def main(wanted, networks, folder, choose=inputs):
    """Makes the cases of these networks, or of all, on the inputs that are chosen."""
    page, stored = folder / "cases.json", {}
    known = json.loads(page.read_text()) if page.exists() else []
    for name, (net, shape) in networks.items():
        if wanted and name not in wanted:
            continue
        torch.manual_seed(1)
        cases = []
        for p in net.state_dict().values():
            if p.is_floating_point():
                p.add_(0.1 * torch.rand_like(p))
        models = {}
        for exporter, form, opset in FORMS:
            case = f"{name}.{exporter}.{form}.{opset}"
            with tempfile.TemporaryDirectory() as scratch:
                export(net, shape, exporter, opset, f"{scratch}/net.onnx", training=form == "train")
                model = strip(onnx.load(f"{scratch}/net.onnx"))
            onnx.save(model, folder / f"{case}.onnx")
            models[case] = model
        stream, x = choose(list(models.values()), shape)
        for case, model in models.items():
            session = onnxruntime.InferenceSession(filled(model).SerializeToString(), providers=["CPUExecutionProvider"])
            answer = session.run(None, {"input": x.numpy()})[0]
            labels = torch.arange(SAMPLES) % answer.shape[1]
            rate, losses, gradients, worst = steady(model, x, labels)
            by_name = {t.name for t in model.graph.initializer if empty(t)} == {k for k, v in net.state_dict().items() if v.dim()}
            if by_name:
                apart = max(abs(a - b) for a, b in zip(losses, module_losses(net, x, labels, rate)))
                assert apart < 1e-3, (case, apart)
            scale = {k: float(np.abs(g).max()) or 1.0 for k, g in gradients.items()}
            packed = b"".join(np.round(g / scale[k] * 32767).astype("<i2").tobytes() for k, g in gradients.items())
            file = stored.setdefault(packed, f"{case}.gradients")  # forms of one network with the same names have the same
            (folder / file).write_bytes(packed)
            cases.append({"case": case, "input": stream, "file": file, "rate": rate, "answer": [[float(f"{v:.7g}") for v in row] for row in answer.tolist()],
                          "losses": [round(v, 7) for v in losses],
                          "gradients": [{"name": k, "len": int(g.size), "scale": scale[k]} for k, g in gradients.items()]}
                         | ({"cosine": worst} if worst < 0.99999 else {}))
            print(case, "module" if by_name else "file", len(packed), np.round(losses[:2] + losses[-1:], 4), flush=True)
        known = [case for case in known if not case["case"].startswith(name + ".")] + cases
        known.sort(key=lambda case: list(networks).index(case["case"].split(".")[0]))
        page.write_text(json.dumps(known, separators=(",", ":")).replace('{"case"', '\n{"case"') + "\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("nets", metavar="NET", nargs="*", help="only these")
    options.add_argument("--full", metavar="FOLDER", type=Path, help="at their full widths, into this folder: see README.md")
    options = options.parse_args()
    torch.set_num_threads(1)
    if options.full:
        options.full.mkdir(parents=True, exist_ok=True)
        main(options.nets, nets.full(), options.full, lambda _, shape: ("input", samples("input", shape)))
    else:
        own()
        main(options.nets, nets.narrow(), HERE)
