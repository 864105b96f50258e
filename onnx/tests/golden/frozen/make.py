"""Exports networks with parts that are not trained here, whole, and writes what ONNX Runtime says about them: see README.md."""
import json
import logging
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from torch import nn

sys.path.append(str(Path(__file__).parents[4] / "tests/golden/imported"))
from exporting import export, plain

HERE, SAMPLES, CLASSES, SIDE = Path(__file__).parent, 6, 4, 8


class Block(nn.Module):
    """A block of a transformer as it is usually written: norms before attention and MLP."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(q @ k.transpose(-2, -1) * (w // self.heads) ** -0.5, dim=-1)
        x = x + self.out((attention @ v).transpose(1, 2).reshape(n, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    """A vision transformer of two blocks on 2x2 patches of 4x4 pixels, with a token for the class."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.2)
        self.places = nn.Parameter(torch.randn(1, 5, width) * 0.2)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.dropout(self.norm(self.blocks(x))[:, 0]))


class Next(nn.Module):
    """A block of ConvNeXt: a norm over channels that stand last, GELU, a scale for each channel; the answer is a softmax."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 2, 2)
        self.deep = nn.Conv2d(width, width, 3, 1, 1, groups=width)
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.rand(width))
        self.head = nn.Linear(width, CLASSES, bias=False)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        x = x + y.permute(0, 3, 1, 2)
        return torch.softmax(self.head(self.last(x.mean((2, 3)))), 1)


# network, exporter, operator set
FORMS = [("vit", "script", 17), ("vit", "dynamo", 18), ("vit", "dynamo", 23), ("next", "script", 14), ("next", "plain", 20)]
NETS = {"vit": Vit, "next": Next}


def feature(model):
    """What the last Gemm or MatMul reads."""
    return next(node.input[0] for node in reversed(model.graph.node) if node.op_type in ("Gemm", "MatMul"))


def run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"picture": x})


def main():
    torch.set_num_threads(1)
    rows = np.arange(SAMPLES * SIDE * SIDE, dtype=np.float32)
    x = (np.sin(rows * 0.7) + np.cos(rows * rows * 0.01)).astype(np.float32).reshape(SAMPLES, 1, SIDE, SIDE)
    cases = []
    for name, exporter, opset in FORMS:
        torch.manual_seed(11)
        net, case = NETS[name](), f"{name}.{exporter}.{opset}"
        path = HERE / f"{case}.onnx"
        export(net, (1, SIDE, SIDE), exporter, opset, path, names=("picture", "answer"))
        model = plain(onnx.load(path))
        onnx.save(model, path)
        with_feature = onnx.ModelProto()
        with_feature.CopyFrom(model)
        with_feature.graph.output.append(helper.make_tensor_value_info(feature(model), TensorProto.FLOAT, None))
        answer, features = run(with_feature, x)
        assert np.abs(answer - net(torch.tensor(x)).detach().numpy()).max() < 1e-5, case
        write = lambda a: [[float(f"{v:.8g}") for v in row] for row in a.tolist()]
        cases.append({"case": case, "answer": write(answer), "features": write(features)})
        print(case, path.stat().st_size, sorted({n.op_type for n in model.graph.node}), flush=True)
    (HERE / "cases.json").write_text(json.dumps({"input": [float(v) for v in x.ravel()], "cases": cases}, separators=(",", ":")).replace('{"case"', '\n{"case"') + "\n")


if __name__ == "__main__":
    main()
