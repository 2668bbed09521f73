#!/usr/bin/env python3
"""Checks of runs as a user meets them: whole models pass, a damaged weight is named, its reproduction replays and
reduces, and files that are no reproductions are refused in one sentence.

    check_test.py QUERN SOURCE_DIR MODELS_DIR
"""
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

QUERN, SOURCE, MODELS = sys.argv[1:4]
ADDITION = os.path.join(SOURCE, "models/addition.gguf")
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's metadata types


def run(*args, **kwargs):
    return subprocess.run([QUERN, *args], capture_output=True, text=True, timeout=300, **kwargs)


def expect(condition, what, result):
    if not condition:
        sys.exit(f"{what}\n  stdout: {result.stdout}\n  stderr: {result.stderr}\n  exit code: {result.returncode}")


def tensors(data):
    """Name, dims, type and place of every tensor of a GGUF file."""
    at = 8

    def number(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        length = number("Q")
        at += length
        return data[at - length:at].decode()

    def skip(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            element, count = number("I"), number("Q")
            for _ in range(count):
                skip(element)
        else:
            at += SIZES[kind]

    count, keys = number("Q"), number("Q")
    alignment = 32
    for _ in range(keys):
        key, kind = text(), number("I")
        if key == "general.alignment":
            alignment = struct.unpack_from("<I", data, at)[0]
        skip(kind)
    found = []
    for _ in range(count):
        name = text()
        dims = [number("Q") for _ in range(number("I"))]
        found.append((name, dims, number("I"), number("Q")))
    start = -(-at // alignment) * alignment
    return [(name, dims, kind, start + offset) for name, dims, kind, offset in found]


def whole_models():
    for check in ("ref", "nan"):
        plain = run("run", ADDITION, "--prompt", "27+58=")
        result = run("run", ADDITION, "--prompt", "27+58=", "--check", check)
        expect(result.returncode == 0 and result.stdout == plain.stdout,
               f"--check {check} must pass and leave the answer", result)
        seen = re.search(r"checked (\d+) regions, (\d+) elements", result.stderr)
        expect(seen and int(seen[1]) > 20 and int(seen[2]) > 10000, "it must say what it looked at", result)
    for name in ("stories260K-F32", "stories260K-wide256-Q4_K_M"):
        path = os.path.join(MODELS, "gguf", name + ".gguf")
        if not os.path.exists(path):
            print(f"skipped: {name} is not in {MODELS}")
            continue
        for check in ("ref", "nan"):
            result = run("run", path, "--prompt", "Once upon", "--tokens", "3", "--check", check)
            expect(result.returncode == 0 and "checked" in result.stderr, f"{name} --check {check} must pass", result)
    result = run("run", ADDITION, "--prompt", "1+1=", "--check", "all")
    expect(result.returncode == 1 and "there are nan and ref" in result.stderr, "an unknown check must be refused",
           result)


def damaged_weight(folder):
    data = bytearray(open(ADDITION, "rb").read())
    name, dims, _, at = next(t for t in tensors(data) if t[0] == "blk.1.ffn_norm.weight" and t[2] == 0)
    struct.pack_into("<f", data, at + 4 * 5, float("nan"))
    model = os.path.join(folder, "damaged.gguf")
    open(model, "wb").write(data)
    out = os.path.join(folder, "found")
    result = run("run", model, "--prompt", "27+58=", "--check", "nan", "--check-out", out)
    expect(result.returncode == 1, "a NaN must end the run", result)
    lines = result.stderr.splitlines()
    expect(re.match(r"quern: \w+ of layers\.1/\S+ reads a NaN: " + re.escape(name) + r" f32\[\d+\] at \[5\]", lines[0]),
           "the op, its block and the element", result)
    expect(any(f"parameter {name} holds it" in line for line in lines), "the parameter is named", result)
    paths = glob.glob(os.path.join(out, "check-layers.1-*.qir"))
    expect(len(paths) == 1 and any(paths[0] in line for line in lines), "the reproduction is there, and named", result)
    again = run("replay", paths[0])
    expect(again.returncode == 1 and "reads a NaN" in again.stdout, "the reproduction fails again", again)
    # The command on top is one that works, from its folder.
    command = open(paths[0]).readline().split()
    expect(command[:3] == ["#", "quern", "replay"], "the command stands on top", again)
    again = run(*command[2:], cwd=out)
    expect(again.returncode == 1, "it works from the folder of the file", again)
    # Against the interpreter there is nothing to say: it has the NaN too.
    result = run("run", model, "--prompt", "27+58=", "--tokens", "1", "--check", "ref", "--check-out", out)
    expect(result.returncode == 0, "--check ref compares", result)
    reduced = run("reduce", paths[0], "-o", os.path.join(folder, "small.qir"))
    expect(reduced.returncode == 0 and reduced.stdout.strip().endswith("small.qir"), "it is reduced", reduced)
    again = run("replay", reduced.stdout.strip())
    expect(again.returncode == 1 and "reads a NaN" in again.stdout, "what is smaller fails too", again)
    sizes = [os.path.getsize(p[:-4] + ".safetensors") for p in (paths[0], reduced.stdout.strip())]
    expect(sizes[1] < sizes[0] and sizes[1] < 400, f"and is smaller: {sizes}", reduced)


GRAPH = """# quern replay tall.qir
# options: cpu=native threads=1 passes=all fuse=on exact=off specialise=off
# sizes: S=6
# data: tall.safetensors
graph tall sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 8]
  %1 = Param() {name = "w"} : f32[16, 8]
  %2 = Tanh(%0) : f32[S, 8]
  %3 = MatMul(%2, %1) {transpose_b = true} : f32[S, 16]
  %4 = Exp(%3) : f32[S, 16]
  %5 = Neg(%4) : f32[S, 16]
  %6 = Add(%5, %3) : f32[S, 16]
  return %6, %2
}
"""


def tall(folder):
    values = {"x": [6, 8], "w": [16, 8]}
    header, data = {}, b""
    for name, shape in sorted(values.items()):
        count = shape[0] * shape[1]
        elements = [(i * 7 % 11 - 5) / 8 for i in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *elements)
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + data
    open(os.path.join(folder, "tall.safetensors"), "wb").write(data)
    path = os.path.join(folder, "tall.qir")
    open(path, "w").write(GRAPH)
    return path, data


def ops(path):
    return re.findall(r"= (\w+)\(", open(path).read().replace("Input(", "").replace("Param(", ""))


def reduce_by_command(folder):
    path, _ = tall(folder)
    result = run("replay", path)
    expect(result.returncode == 0 and result.stdout.startswith("ok: 2 outputs"), "a healthy graph replays", result)
    result = run("reduce", path)
    expect(result.returncode == 1 and "does not fail" in result.stderr, "nothing to reduce", result)
    for command, left in (("! (grep -q 'Exp(' {} && grep -q 'MatMul(' {})", ["Exp", "MatMul"]),  # an exit status
                          ("if grep -q 'Neg(' {}; then kill -SEGV $$; fi", ["Neg"]),               # a crash
                          ("if grep -q 'Tanh(' {}; then sleep 60; fi", ["Tanh"])):                 # no end
        result = run("reduce", path, "-o", os.path.join(folder, "less.qir"), "--command", command, "--seconds", "0.5",
                     "--attempts", "60")
        expect(result.returncode == 0, f"{command} reduces", result)
        small = sorted(ops(result.stdout.strip()))
        expect(small == left, f"{command} leaves {left}, not {small}", result)
        expect("the whole: " in result.stderr and " nodes, " in result.stderr, "steps are told", result)
    result = run("reduce", path, "--command", "false")
    expect(result.returncode == 1 and "no {}" in result.stderr, "a command without the file", result)


# Of each a graph, its inputs as (shape, values), and what is found in the whole and in what is left.
NANS = {
    "log": ("""
  %2 = Mul(%0, %1) : f32[S, 24]
  %3 = Exp(%0) : f32[S, 24]
  %4 = Sub(%2, %3) : f32[S, 24]
  %5 = Log(%4) : f32[S, 24]
  %6 = Tanh(%5) : f32[S, 24]
  %7 = Softmax(%6) {axis = 1} : f32[S, 24]
  return %7""", "Log makes a NaN of negative"),
    "div": ("""
  %2 = Relu(%0) : f32[S, 24]
  %3 = Mul(%2, %1) : f32[S, 24]
  %4 = Div(%3, %2) : f32[S, 24]
  %5 = Reduce(%4) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]
  %6 = Sub(%4, %5) : f32[S, 24]
  return %6""", "Div makes a NaN of zero and zero"),
}


def reduce_nans(folder):
    """What reducing leaves makes the same NaN, and no input holds one: another bug would be found there."""
    for name, (body, signature) in NANS.items():
        path = os.path.join(folder, name + ".qir")
        open(path, "w").write(f"""# check: nan
# sizes: S=7
# data: {name}.safetensors
graph {name} sym S in 1..64 {{
  %0 = Input() {{name = "x"}} : f32[S, 24]
  %1 = Input() {{name = "y"}} : f32[S, 24]{body}
}}
""")
        header, data = {}, b""
        for k, leaf in enumerate("xy"):
            header[leaf] = {"dtype": "F32", "shape": [7, 24], "data_offsets": [len(data), len(data) + 672]}
            data += struct.pack("<168f", *[((i + k) * 7 % 11 - 5) / 8 for i in range(168)])
        text = json.dumps(header).encode()
        open(path[:-4] + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
        whole = run("replay", "--brief", path)
        expect(whole.returncode == 1 and whole.stdout.strip() == signature, f"{name} makes its NaN", whole)
        small = os.path.join(folder, name + "-small.qir")
        reduced = run("reduce", path, "-o", small)
        expect(reduced.returncode == 0 and f"the whole: {signature}" in reduced.stderr, f"{name} is reduced", reduced)
        again = run("replay", "--brief", small)
        expect(again.returncode == 1 and again.stdout.strip() == signature, f"{name} makes the same NaN", again)
        nodes = len(re.findall(r"^  %", open(small).read(), re.M))
        expect(nodes <= 3, f"{nodes} nodes of {name} are left", reduced)
        left = open(small[:-4] + ".safetensors", "rb").read()
        start = 8 + struct.unpack_from("<Q", left)[0]
        values = struct.unpack(f"<{(len(left) - start) // 4}f", left[start:])
        expect(all(v == v for v in values), f"an input of {name} holds a NaN", reduced)


def hostile(folder):
    path, data = tall(folder)

    def refused(what):
        result = run("replay", path)
        expect(result.returncode == 2, f"{what} must exit with 2", result)
        expect(result.stderr.startswith("quern: ") and result.stderr.count("\n") == 1 and not result.stdout,
               f"{what} must be one sentence", result)

    binary = path[:-4] + ".safetensors"
    for cut in (0, 7, 12, 20, 40, len(data) - 1):
        open(binary, "wb").write(data[:cut])
        refused(f"data cut to {cut} bytes")
    for at, what in ((0, "length of the header"), (8, "header"), (20, "name"), (len(data) // 8, "an entry")):
        open(binary, "wb").write(data[:at] + b"\xff\xff\xff\xff" + data[at + 4:])
        refused(what)
    open(binary, "wb").write(data)
    for old, new in (("S=6", "S=41"), ("S=6", ""), ("f32[S, 8]", "f32[S, 99999999999999]"), ("Tanh(", "Tanhh("),
                     ("return", "retur"),
                     ("threads=1", "threads=many"), ("tall.safetensors", "/etc/passwd"),
                     ("cpu=native", "cpu=native level=9")):
        open(path, "w").write(GRAPH.replace(old, new))
        refused(f"{old} changed to {new}")
    open(path, "w").write(GRAPH[:200])
    refused("a text cut short")
    for args in (["replay"], ["replay", folder], ["replay", os.path.join(folder, "none.qir")],
                 ["replay", path, "--threads", "0"]):
        result = run(*args)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"{args} must exit with 2", result)


def main():
    whole_models()
    with tempfile.TemporaryDirectory() as folder:
        damaged_weight(folder)
        reduce_by_command(folder)
        reduce_nans(folder)
        hostile(folder)
    print("checks: ok")


main()
