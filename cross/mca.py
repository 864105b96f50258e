"""Simulates the inner loops of the NEON tiles in an assembly file with llvm-mca; see mca.sh."""

import re
import subprocess
import sys

ROUNDS = 200
# Tiles by kind: how they are named in the source, and what their two constants mean.
TILE = re.compile(r"4neon\d*_?(?:s_)?(?P<kind>pixels|taps|dots)Kj(?P<a>[0-9a-f]+)_Kj(?P<b>[0-9a-f]+)_")


def functions(path):
    """Names and lines of the functions that are tiles."""
    name, body = None, []
    for line in open(path, encoding="utf-8"):
        start = re.match(r"(_R\w+):", line)
        if start:
            name, body = start[1], []
        elif line.startswith(".Lfunc_end") and name:
            found = TILE.search(name)
            if found:
                yield found["kind"], int(found["a"], 16), int(found["b"], 16), body
            name = None
        elif name:
            body.append(line.rstrip())


def inner_loop(body):
    """The lines of the loop with the most multiply-adds: from a label to the branch back to it, with no other label between."""
    best, labels = [], {}
    for number, line in enumerate(body):
        label = re.match(r"(\.LBB\w+):", line)
        if label:
            labels[label[1]] = number
        branch = re.match(r"\s+(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,|b)\s*(\.LBB\w+)", line)
        if branch and branch[1] in labels:
            loop = body[labels[branch[1]] + 1 : number + 1]
            whole = not any(re.match(r"\.LBB", inner) for inner in loop)
            if whole and count(loop) > count(best):
                best = loop
    return [line for line in best if re.match(r"\s+[a-z]", line) and not re.match(r"\s+\.", line)]


def multiply_adds(loop):
    return [line for line in loop if re.match(r"\s+fmla\b", line)]


def count(loop):
    return len(multiply_adds(loop))


def simulate(lines, cpu):
    """Cycles of one round of these lines, and those that their resources alone would take."""
    code = "\n".join(re.sub(r"\.LBB\w+", "0", line) if re.match(r"\s+(b|cb|tb)", line) else line for line in lines)
    command = ["llvm-mca", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={ROUNDS}", "-resource-pressure=false", "-instruction-info=false"]
    out = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / ROUNDS, float(re.search(r"Block RThroughput:\s+([\d.]+)", out)[1])


def main():
    path, cpus = sys.argv[1], " ".join(sys.argv[2:]).split()
    print("| kernel | tile | multiply-adds | instructions |" + "".join(f" {cpu} |" for cpu in cpus))
    print("|---|---|---|---|" + "---|" * len(cpus))
    worst = {}
    for kind, a, b, body in sorted(functions(path), key=lambda f: f[:3]):
        loop = inner_loop(body)
        if not loop:
            continue
        row = []
        for cpu in cpus:
            share = simulate(multiply_adds(loop), cpu)[1] / simulate(loop, cpu)[0]
            row.append(f" {100 * share:.0f} % |")
            worst.setdefault((kind, b), {}).setdefault(a, []).append(share)
        what = f"{a} × {b}" if kind == "dots" else f"{a} rows × {b} vectors"
        print(f"| {kind} | {what} | {count(loop)} | {len(loop)} |" + "".join(row))
    for (kind, b), tiles in sorted(worst.items()):
        tallest = max(tiles)
        print(f"mca: {kind}, {b} wide, {tallest} tall: at least {100 * min(tiles[tallest]):.0f} %", file=sys.stderr)


if __name__ == "__main__":
    main()
