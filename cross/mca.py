"""Simulates the inner loops of the NEON kernels in an assembly file with llvm-mca; see mca.sh."""

import re
import subprocess
import sys

ROUNDS = 200
WANTED = 0.7
# Tiles by kind: how they are named in the source, and what their constants mean.
TILE = re.compile(r"4neon\d*_?(?:s_)?\d*_?(?P<kind>pixels|taps|dots)(?P<constants>(?:Kj[0-9a-f]+_|KB[0-9a-zA-Z]*_)+)E")
# Depthwise windows and Winograd's transforms: one function each, of which the loop over the tallest strip counts.
WHOLE = re.compile(r"4neon\d+_?(?P<f>(?:window|winograd)_[a-z_]+)")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def constants(name, found):
    """Constants of an instance in a mangled name: hexadecimal, or where in the name there is the same one."""
    for plain, back in re.findall(r"K(?:j([0-9a-f]+)_|B([0-9a-zA-Z]*)_)", found):
        if plain:
            yield int(plain, 16)
            continue
        place = 0
        for digit in back:
            place = place * 62 + DIGITS.index(digit)
        place += 1 if back else 0
        yield int(re.match(r"K?j([0-9a-f]+)_", name[2 + place :])[1], 16)


def functions(path):
    """Names and lines of all functions of the kernels."""
    name, body = None, []
    for line in open(path, encoding="utf-8"):
        start = re.match(r"(_R\w+):", line)
        if start:
            name, body = start[1], []
        elif line.startswith(".Lfunc_end") and name:
            if "6kernel" in name:
                yield name, body
            name = None
        elif name:
            body.append(line.rstrip())


def inner_loop(body):
    """The lines of the loop with the most arithmetic on vectors: from a label to the branch back to it, with no other label between."""
    best, labels = [], {}
    for number, line in enumerate(body):
        label = re.match(r"(\.LBB\w+):", line)
        if label:
            labels[label[1]] = number
        branch = re.match(r"\s+(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,|b)\s*(\.LBB\w+)", line)
        if branch and branch[1] in labels:
            loop = body[labels[branch[1]] + 1 : number + 1]
            whole = not any(re.match(r"\.LBB", inner) for inner in loop)
            if whole and weight(loop) > weight(best):
                best = loop
    return [line for line in best if re.match(r"\s+[a-z]", line) and not re.match(r"\s+\.", line)]


def weight(loop):
    """By how much arithmetic a loop is known as a kernel's main one."""
    return len(multiply_adds(loop)), len(arithmetic(loop))


def arithmetic(loop):
    return [line for line in loop if re.match(r"\s+(fml[as]|fmul|fadd|fsub|fneg)\s+v\d+\.4s", line)]


def multiply_adds(loop):
    return [line for line in loop if re.match(r"\s+fml[as]\b", line)]


def loads(loop):
    return [line for line in loop if re.match(r"\s+(ldp|ldr|ldur|ld1r?)\s", line)]


def stores(loop):
    return [line for line in loop if re.match(r"\s+(stp|str|stur|st1)\s", line)]


def simulate(lines, cpu):
    """Cycles of one round of these lines, and those that their resources alone would take."""
    if not lines:
        return 0.0, 0.0
    code = "\n".join(re.sub(r"\.LBB\w+", "0", line) if re.match(r"\s+(b|cb|tb)", line) else line for line in lines)
    command = ["llvm-mca", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={ROUNDS}", "-resource-pressure=false", "-instruction-info=false"]
    out = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / ROUNDS, float(re.search(r"Block RThroughput:\s+([\d.]+)", out)[1])


def measure(loop, cpu):
    """Shares of the bound of the arithmetic's issue and of the tightest bound, and which that is."""
    chain, issue = simulate(arithmetic(loop), cpu)
    bounds = {"issue": issue, "loads": simulate(loads(loop), cpu)[1], "stores": simulate(stores(loop), cpu)[1]}
    if chain > 1.05 * max(bounds.values()):
        bounds["latency"] = chain
    tightest = max(bounds, key=lambda bound: (bounds[bound], bound == "issue"))
    cycles = simulate(loop, cpu)[0]
    return issue / cycles, bounds[tightest] / cycles, tightest


def describe(name):
    """How a function is called in the table, or nothing if it is no kernel."""
    tile = TILE.search(name)
    if tile:
        numbers = list(constants(name, tile["constants"]))
        if tile["kind"] == "dots":
            return "dots", "{} × {}".format(*numbers), (0, *numbers)
        rows, vectors, sums = numbers
        return tile["kind"], f"{rows} × {vectors}" + (f", {sums} sums" if sums > 1 else ""), (sums, -vectors, rows)
    whole = WHOLE.search(name)
    return (whole["f"], "", (0,)) if whole else None


def main():
    path, cpus = sys.argv[1], " ".join(sys.argv[2:]).split()
    kernels = {}
    for name, body in functions(path):
        what, loop = describe(name), inner_loop(body)
        if what and loop:
            kind, tile, order = what
            if weight(loop) > weight(kernels.get((kind, order), ("", []))[1]):
                kernels[kind, order] = tile, loop
    print("| kernel | tile | multiply-adds | all arithmetic | loads, stores | instructions | bound by |" + "".join(f" {cpu}: of issue | of the bound |" for cpu in cpus))
    print("|---|---|---|---|---|---|---|" + "---|---|" * len(cpus))
    short = 0
    for (kind, _), (tile, loop) in sorted(kernels.items()):
        measured = [measure(loop, cpu) for cpu in cpus]
        counts = f"{len(multiply_adds(loop))} | {len(arithmetic(loop))} | {len(loads(loop))}, {len(stores(loop))} | {len(loop)}"
        shares = "".join(f" {100 * issue:.0f} % | {100 * bound:.0f} % |" for issue, bound, _ in measured)
        print(f"| {kind} | {tile} | {counts} | {measured[0][2]} |{shares}")
        short += any(bound < WANTED for _, bound, _ in measured)
    print(f"mca: {len(kernels)} kernels, {short} below {100 * WANTED:.0f} % of their bound", file=sys.stderr)


if __name__ == "__main__":
    main()
