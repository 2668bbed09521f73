#!/usr/bin/env python3
"""quern calibrate and quern quantise on a model in ONNX beside ONNX Runtime's quantize_static: the same scales, zero
points and bytes of weights, and the same output; what is refused, with what and where.

    quantise_graph_test.py QUERN ARCHIVE    (tests/golden/static_quantised.tar.xz)
"""

import ast
import json
import math
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

QUERN, ARCHIVE = sys.argv[1:3]
FORMATS = {"<f4": "f", "|i1": "b", "|u1": "B"}
WAYS = {"u8": [], "i8": ["--activations", "i8"], "symmetric": ["--activations", "i8", "--symmetric", "--per-tensor"]}
PRODUCTS = {"conv1": ("x", "w1"), "conv2": ("p1", "w2"), "product": ("f", "w3")}
CONSTANT = re.compile(r'Constant\(\) hex ([0-9a-f]+) : (f32|u8|i8)\[[^\]]*\]  @"([^"]*)" by "insert_qdq"')
failures = []


def expect(true, what):
    if not true:
        failures.append(what)


def npy(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:10 + size].decode("latin-1"))
    return list(array(data[10 + size:], FORMATS[header["descr"]]))


def array(data, form):
    return struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}", data)


def run(*arguments, fails=False):
    done = subprocess.run([QUERN, *arguments], capture_output=True, text=True, check=False,
                          env=os.environ | {"QUERN_CACHE": "off"})
    if (done.returncode != 0) != fails:
        sys.exit(f"quern {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stderr if fails else done.stdout


def near(ours, theirs, relative):
    size = max(abs(v) for v in theirs)
    return len(ours) == len(theirs) and all(abs(a - b) <= relative * size for a, b in zip(ours, theirs))


def constants(text):
    """By label: what stands beside each pair, in order."""
    found = {}
    for digits, dtype, label in CONSTANT.findall(text):
        found.setdefault(label, []).append(array(bytes.fromhex(digits), {"f32": "f", "u8": "B", "i8": "b"}[dtype]))
    return found


def compare(way, at, out):
    with open(out, encoding="utf-8") as file:
        found = constants(file.read())
    for label, (x, w) in PRODUCTS.items():
        scale, zero, w_scale, w_bytes = found[label]
        theirs = {name: npy(f"{at}/{way}/{name}.npy") for name in (
            f"{x}_scale", f"{x}_zero_point", f"{w}_scale", f"{w}_quantized")}
        expect(near(scale, theirs[f"{x}_scale"], 1e-6), f"{way} {label}: scale {scale}")
        expect(list(zero) == theirs[f"{x}_zero_point"], f"{way} {label}: zero point {zero}")
        expect(near(w_scale, theirs[f"{w}_scale"], 1e-6), f"{way} {label}: scales of weights {w_scale}")
        expect(list(w_bytes) == theirs[f"{w}_quantized"], f"{way} {label}: bytes of weights")


def main():
    with tempfile.TemporaryDirectory() as at:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(at)
        model, ranges = f"{at}/model.onnx", f"{at}/ranges.json"
        for i in range(3):
            run("calibrate", model, "--in", f"x={at}/x{i}.npy", "-o", ranges, "--widen")
        with open(ranges, encoding="utf-8") as file:
            seen = json.load(file)
        xs = [v for i in range(3) for v in npy(f"{at}/x{i}.npy")]
        expect(seen["x"] == [min(xs), max(xs)], f"range of x: {seen['x']}")
        expect(math.isclose(seen["relu1"][1], seen["conv1"][1]) and seen["relu1"][0] == 0, "ranges of conv1 and relu1")
        for way, options in WAYS.items():
            for ending in ("qir", "qgf"):
                out = f"{at}/{way}.{ending}"
                run("quantise", model, "--ranges", ranges, "-o", out, "--map-out", f"{at}/map.json", *options)
                run("run", out, "--in", f"x={at}/x0.npy", "--out", f"y={at}/ours.npy")
                expect(near(npy(f"{at}/ours.npy"), npy(f"{at}/{way}/y.npy"), 1e-5), f"{way} {ending}: y")
            compare(way, at, f"{at}/{way}.qir")
            # The map says all of it.
            run("quantise", model, "--map", f"{at}/map.json", "-o", f"{at}/again.qgf")
            with open(f"{at}/again.qgf", "rb") as again, open(f"{at}/{way}.qgf", "rb") as first:
                expect(again.read() == first.read(), f"{way}: by its map")
            # Or a part of the graph, of which the same becomes.
            mapped = f"{at}/mapped-{way}.qgf"
            run("quantise", model, "--map", f"{at}/map.json", "--as-map", "-o", mapped)
            run("run", mapped, "--in", f"x={at}/x0.npy", "--out", f"y={at}/of_map.npy")
            run("run", f"{at}/{way}.qgf", "--in", f"x={at}/x0.npy", "--out", f"y={at}/of_pairs.npy")
            expect(npy(f"{at}/of_map.npy") == npy(f"{at}/of_pairs.npy"), f"{way}: y by the map of the graph")
            run("quantise", mapped, "-o", f"{at}/own.qgf", "--map-out", f"{at}/own.json")
            with open(f"{at}/own.json", encoding="utf-8") as own, open(f"{at}/map.json", encoding="utf-8") as given:
                expect(sorted(map(json.dumps, json.load(own).values()))
                       == sorted(map(json.dumps, json.load(given).values())), f"{way}: the graph's own map")
            run("run", f"{at}/own.qgf", "--in", f"x={at}/x0.npy", "--out", f"y={at}/of_own.npy")
            expect(npy(f"{at}/of_own.npy") == npy(f"{at}/of_pairs.npy"), f"{way}: y by pairs of the graph's own map")
        mapped = f"{at}/mapped-u8.qgf"
        expect(run("dump", mapped, "--stage", "hir").count('\n  quantise "') == 6, "a line for each scheme")
        expect('quantise "' in run("dump", mapped, "--dump-after", "lower"), "the map, before any pass")
        after = run("dump", mapped, "--dump-after", "insert_qdq")
        expect('quantise "' not in after and " QuantizeLinear(" in after, "pairs, after the first")
        run("convert", mapped, f"{at}/mapped.qir")
        run("convert", f"{at}/mapped.qir", f"{at}/back.qgf")
        with open(mapped, "rb") as first, open(f"{at}/back.qgf", "rb") as back:
            expect(first.read() == back.read(), "text and back")
        run("run", mapped, "--in", f"x={at}/x0.npy", "--check", "ref")
        expect("quantised   6 values" in run("inspect", mapped), run("inspect", mapped))
        with open(f"{at}/mapped.qir", encoding="utf-8") as file:
            text = file.read()
        with open(f"{at}/other.qir", "w", encoding="utf-8") as file:
            file.write(re.sub(r"high = [0-9.e+-]+", "high = 77.5", text, count=1))
        done = subprocess.run([QUERN, "diff", mapped, f"{at}/other.qir"], capture_output=True, text=True, check=False)
        difference = done.stdout.splitlines()
        marks = [line[:12] for line in difference]
        expect(marks == ['- quantise "', '+ quantise "'] and "77.5" in difference[-1], difference)
        with open(f"{at}/none.qir", "w", encoding="utf-8") as file:
            file.write(text.replace('quantise "x"', 'quantise "xx"'))
        error = run("run", f"{at}/none.qir", fails=True)
        expect("there is no value xx" in error and "did you mean x?" in error and error.count("\n") == 1, error)
        mir = run("dump", f"{at}/u8.qgf", "--dump-after", "dce")
        expect(len(re.findall(r"MatMul\(.*: i32\[", mir)) == 3, "three sums of integers")
        expect(len(re.findall(r"MatMul\(.*: f32\[", mir)) == 0, "no product of floats")
        run("quantise", model, "--ranges", ranges, "-o", f"{at}/kept.qgf", "--keep", "conv")
        expect(run("dump", f"{at}/kept.qgf", "--dump-after", "dce").count(": i32[2, 5]") > 0, "--keep: the product")
        expect("i32[2, 1, 6, 75]" not in run("dump", f"{at}/kept.qgf", "--dump-after", "dce"), "--keep: conv1")
        # Weights that no file has are bytes when they are bound.
        graph = f"{at}/graph.qir"
        with open(graph, "w", encoding="utf-8") as file:
            file.write('graph g {\n  %0 = Input() {name = "x"} : f32[3, 7]\n  %1 = Param() {name = "w"} : f32[7, 5]\n'
                       "  %2 = MatMul(%0, %1) : f32[3, 5]\n  return %2\n}\n")
        run("calibrate", graph, "-o", f"{at}/g.json")
        run("quantise", graph, "--ranges", f"{at}/g.json", "-o", f"{at}/g.qir")
        with open(f"{at}/g.qir", encoding="utf-8") as file:
            expect('Param() {name = "w"} : f32[7, 5]' in file.read(), "weights without values stay parameters")
        run("run", f"{at}/g.qir", "--check", "ref")
        # What is wrong, and where.
        def refused(text, what, *options):
            with open(f"{at}/wrong.json", "w", encoding="utf-8") as file:
                file.write(text)
            error = run("quantise", model, *options, f"{at}/wrong.json", "-o", f"{at}/no.qgf", fails=True)
            expect(what in error and error.count("\n") == 1, f"{text}: {error}")
            expect(not os.path.exists(f"{at}/no.qgf"), f"{text}: a file was written")
        refused('{"conv7": [0, 1]}', "conv7", "--ranges")
        refused('{"conv1": [1, 0]}', "conv1: [least, greatest] expected", "--ranges")
        refused("ranges", "wrong.json: ranges", "--ranges")
        refused('{"x": {"dtype": "u4"}}', 'x: dtype "u8" or "i8" expected', "--map")
        refused('{"x": {"dtype": "u8"}}', "x", "--map")
        error = run("quantise", model, "-o", f"{at}/no.qgf", fails=True)
        expect("--ranges or --map" in error, error)
        error = run("calibrate", model, "--in", f"x={at}/x0.npy", "-o", f"{at}/wrong.json", "--widen", fails=True)
        expect("wrong.json" in error, error)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
