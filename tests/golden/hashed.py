"""The hash that every golden file starts from: weights, inputs, labels and batch orders, with nothing stored. See README.md."""

import json

import numpy as np

MASK = 0xFFFFFFFFFFFFFFFF


def splitmix64(x):
    """SplitMix64's output function of `x` (a uint64 array), all arithmetic modulo 2^64."""
    x = np.asarray(x, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def bits(stream, n):
    """splitmix64(index + (stream << 32)) for index 0..n."""
    return splitmix64(np.arange(n, dtype=np.uint64) + np.uint64(stream << 32))


def symmetric(stream, shape):
    """Numbers in [-1, 1), exact in f32: (k - 2^23) / 2^23 with k the hash's top 24 bits."""
    k = (bits(stream, int(np.prod(shape))) >> np.uint64(40)).astype(np.int64)
    return ((k - (1 << 23)) / float(1 << 23)).reshape(shape)


def scaled(stream, shape, bound, centre=0.0):
    """centre + bound * symmetric in f64, then rounded once to f32 (and handed on as f64)."""
    return (centre + bound * symmetric(stream, shape)).astype(np.float32).astype(np.float64)


def labels(stream, n, classes):
    return (bits(stream, n) % np.uint64(classes)).astype(np.int64)


def inputs(noise_stream, pattern_stream, label, shape):
    """One row per label: half noise, half the pattern of its class. Exact in f32."""
    noise = symmetric(noise_stream, (len(label), *shape))
    pattern = {c: symmetric(pattern_stream + int(c), shape) for c in set(label.tolist())}
    return np.stack([0.5 * (noise[i] + pattern[int(c)]) for i, c in enumerate(label)])


def order(stream, n):
    """The indices 0..n sorted by their hash, ties by index."""
    return np.argsort(bits(stream, n), kind="stable")


def picks(n):
    """The four entries of a tensor that a trace keeps."""
    return [0, n // 3, 2 * n // 3, n - 1]


def write_json(path, value):
    """One key a line, arrays on one line: small, and readable in a diff."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(_pretty(value, 0) + "\n")


def _pretty(v, depth):
    if isinstance(v, dict) and v:
        pad = " " * (depth + 1)
        return "{\n" + ",\n".join(f"{pad}{json.dumps(k)}: {_pretty(x, depth + 1)}" for k, x in v.items()) + "\n" + " " * depth + "}"
    if isinstance(v, list) and v and isinstance(v[0], dict):
        pad = " " * (depth + 1)
        return "[\n" + ",\n".join(pad + json.dumps(x) for x in v) + "\n" + " " * depth + "]"
    return json.dumps(v)
