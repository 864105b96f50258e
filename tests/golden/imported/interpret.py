"""Runs the nodes of an ONNX file in PyTorch, so that the file itself, not the module it came from, is the reference."""
import numpy as np
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper


def constants(model, dtype, fill):
    """Every initializer as a tensor, `fill` giving the values of those that are learned."""
    out = {}
    for t in model.graph.initializer:
        if t.data_type == 1:
            values = fill(t)
            out[t.name] = torch.tensor(values if values is not None else numpy_helper.to_array(t), dtype=dtype)
        else:
            out[t.name] = torch.from_numpy(numpy_helper.to_array(t).copy())
    return out


def halves(pads):
    n = len(pads) // 2
    return pads[:n], pads[n:]


def padded(x, pads, value):
    begin, end = halves(pads)
    flat = [p for b, e in zip(reversed(begin), reversed(end)) for p in (b, e)]
    return F.pad(x, flat, value=value) if any(flat) else x


def pool(x, at, maximum):
    dims = len(at["kernel_shape"])
    stride, pads = at.get("strides", [1] * dims), at.get("pads", [0] * 2 * dims)
    begin, end = halves(pads)
    assert begin == end, "the references pool evenly"
    f = {(1, True): F.max_pool1d, (2, True): F.max_pool2d, (1, False): F.avg_pool1d, (2, False): F.avg_pool2d}[dims, maximum]
    kw = {} if maximum else {"count_include_pad": bool(at.get("count_include_pad", 0))}
    return f(x, at["kernel_shape"], stride, begin, ceil_mode=bool(at.get("ceil_mode", 0)), **kw)


def run(model, values, x, training, running=None):
    """The value of each name. In training, norms take the batch's statistics and update `running`; softmax at the end is left out by callers."""
    env = {**values, model.graph.input[0].name: x, "": None}
    for node in model.graph.node:
        at = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        i, op = [env.get(name) for name in node.input], node.op_type
        if op == "Constant":
            (key, v), = at.items()
            y = torch.tensor(np.array(numpy_helper.to_array(v) if key == "value" else v))
        elif op == "Conv":
            dims = i[1].dim() - 2
            f = F.conv1d if dims == 1 else F.conv2d
            y = f(padded(i[0], at.get("pads", [0] * 2 * dims), 0.0), i[1].to(x.dtype), i[2].to(x.dtype) if len(i) > 2 else None,
                  at.get("strides", [1] * dims), 0, at.get("dilations", [1] * dims), at.get("group", 1))
        elif op == "Gemm":
            w = i[1] if at.get("transB", 0) else i[1].t()
            y = F.linear(i[0], w, i[2] if len(i) > 2 else None)
        elif op == "BatchNormalization":
            mean, var = (running[n] for n in node.input[3:5]) if training else (i[3], i[4])
            y = F.batch_norm(i[0], mean, var, i[1], i[2], training, 0.1, at.get("epsilon", 1e-5))
        elif op == "InstanceNormalization":
            y = F.instance_norm(i[0], None, None, i[1].to(x.dtype), i[2].to(x.dtype), eps=at.get("epsilon", 1e-5))
        elif op == "GroupNormalization":
            y = F.group_norm(i[0], at["num_groups"], i[1], i[2], at.get("epsilon", 1e-5))
        elif op == "Clip":
            y = torch.clamp(i[0], *(None if v is None else float(v) for v in (i[1:] + [None, None])[:2]))
        elif op in ("MaxPool", "AveragePool"):
            y = pool(i[0], at, op == "MaxPool")
        elif op == "GlobalAveragePool":
            y = i[0].mean(dim=tuple(range(2, i[0].dim())), keepdim=True)
        elif op == "ReduceMean":
            axes = at.get("axes") or [int(a) for a in i[1].flatten()]
            y = i[0].mean(dim=tuple(axes), keepdim=bool(at.get("keepdims", 1)))
        elif op == "Reshape":
            target = [int(v) for v in i[1].flatten()]
            y = i[0].reshape([i[0].shape[k] if v == 0 and not at.get("allowzero", 0) else v for k, v in enumerate(target)])
        elif op == "Flatten":
            y = i[0].flatten(1)
        elif op == "Concat":
            y = torch.cat([v.reshape(-1) if v.dim() == 0 else v for v in i], at["axis"])
        elif op == "Shape":
            y = torch.tensor(i[0].shape[at.get("start", 0):at.get("end", None)])
        elif op == "Gather":
            y = i[0][i[1].long()]
        elif op in ("Unsqueeze", "Squeeze"):
            axes = [int(a) for a in i[1].flatten()] if len(i) > 1 else None
            y = i[0]
            if op == "Unsqueeze":
                for a in sorted(axes):
                    y = y.unsqueeze(a)
            else:
                y = y.squeeze() if axes is None else y.squeeze(axes)
        elif op == "Expand":
            y = i[0].expand(torch.broadcast_shapes(tuple(int(v) for v in i[1]), i[0].shape))
        elif op == "ConstantOfShape":
            y = torch.zeros([int(v) for v in i[0]], dtype=torch.int64)
        elif op == "Slice":
            assert [int(v) for v in (i[1][0], i[3][0], i[4][0])] == [-1, 0, -1], "only rows in reverse"
            y = i[0].flip(0)
        elif op == "Pad":
            y = padded(i[0], [int(v) for v in i[1]], 0.0)
        elif op == "Range":
            y = torch.arange(int(i[0]), int(i[1]), int(i[2]))
        elif op in ("Cast", "CastLike", "Identity", "Dropout"):
            y = i[0]  # dropouts have the ratio 0 here, and numbers one type
        else:
            y = {
                "Relu": lambda: F.relu(i[0]), "LeakyRelu": lambda: F.leaky_relu(i[0], at.get("alpha", 0.01)),
                "Sigmoid": lambda: torch.sigmoid(i[0]), "HardSwish": lambda: F.hardswish(i[0]),
                "HardSigmoid": lambda: torch.clamp(at.get("alpha", 0.2) * i[0] + at.get("beta", 0.5), 0, 1),
                "Max": lambda: torch.maximum(i[0], i[1].to(x.dtype)), "Min": lambda: torch.minimum(i[0], i[1].to(x.dtype)),
                "Transpose": lambda: i[0].permute(at["perm"]),
                "Add": lambda: i[0] + i[1], "Sub": lambda: i[0] - i[1], "Mul": lambda: i[0] * i[1], "Div": lambda: i[0] / i[1],
                "Softmax": lambda: torch.softmax(i[0], at.get("axis", -1)), "MatMul": lambda: i[0] @ i[1],
                "RandomUniformLike": lambda: torch.zeros_like(i[0]), "Less": lambda: (i[0] < i[1]).to(x.dtype),
            }[op]()
        env[node.output[0]] = y
    return env
