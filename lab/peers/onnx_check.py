"""Checks ONNX files with ONNX's own tools, and runs them in ONNX Runtime for a test to compare with.

    .venv/bin/python lab/peers/onnx_check.py [--rows N] FILE…

Each file goes through onnx.checker with full_check (shapes and types inferred strictly), then through onnxruntime on the CPU. Input number k of a file, counted from 0, is
`symmetric(900000 + k, i)` of tests/golden/README.md; dimensions without a number are N rows. Prints one JSON array, an object per file: `file`,
`ir`, `opset`, `producer`, `metadata`, `inputs` and `outputs` (name, shape, and the outputs' values, row-major). Exit code 1 if a file is refused.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
import hashed  # noqa: E402

INPUT_STREAM = 900000


def check(path, rows):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {}
    for k, value in enumerate(session.get_inputs()):
        if value.type != "tensor(float)":
            raise ValueError(f"input {value.name} is {value.type}, not tensor(float)")
        shape = [d if isinstance(d, int) else rows for d in value.shape]
        feed[value.name] = hashed.symmetric(INPUT_STREAM + k, shape).astype(np.float32)
    names = [o.name for o in session.get_outputs()]
    results = session.run(names, feed)
    return {
        "file": path,
        "ir": model.ir_version,
        "opset": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "metadata": {p.key: p.value for p in model.metadata_props},
        "inputs": [{"name": n, "shape": list(v.shape)} for n, v in feed.items()],
        "outputs": [{"name": n, "shape": list(v.shape), "values": v.astype(np.float64).flatten().tolist()} for n, v in zip(names, results)],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rows", type=int, default=3, help="rows of each input")
    p.add_argument("files", nargs="+", metavar="FILE")
    args = p.parse_args()
    found, refused = [], False
    for path in args.files:
        try:
            found.append(check(path, args.rows))
        except Exception as error:  # whatever a checker says about a file is the answer
            print(f"onnx_check: {path}: {type(error).__name__}: {error}", file=sys.stderr)
            refused = True
    print(json.dumps(found))
    sys.exit(refused)


if __name__ == "__main__":
    main()
