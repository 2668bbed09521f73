#!/usr/bin/env python3
"""A model in ONNX through every verb that takes a graph, by the names that it has.

  onnx_test.py QUERN CASES.tar.xz
"""

import json
import os
import pathlib
import struct
import sys
import tarfile
import tempfile

from program import expect_in, said

QUERN = sys.argv[1]
NAME = "layer_norm_17"  # x0 [B, S, 4], x1 [4], x2 [4] -> y0


def run(*arguments, code=0, debug_kernels=""):
    return said(QUERN, *arguments, code=code, env={**os.environ, "QUERN_DEBUG_KERNELS": str(debug_kernels)})


def npy(path):
    """The floats of a .npy of f32."""
    data = path.read_bytes()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])


with tempfile.TemporaryDirectory(prefix="quern_onnx_") as scratch:
    at = pathlib.Path(scratch)
    with tarfile.open(sys.argv[2]) as archive:
        archive.extractall(at, [m for m in archive.getmembers() if m.name.startswith((NAME, "qdq"))])
    model, data = at / NAME / "model.onnx", at / NAME / "test_data_set_0"
    values = [word for i in range(3) for word in ("--in", f"x{i}={data}/input_{i}.pb")]
    # raw_data is the last field of the tensors in these files.
    want = struct.unpack("<24f", (data / "output_0.pb").read_bytes()[-96:])

    shown = run("run", model, *values, "--out", f"y0={at}/y.npy", "--out", at / "all.safetensors", "--check", "ref")
    expect_in(shown, "output y0  f32[2, 3, 4]")
    for got, right in zip(npy(at / "y.npy"), want, strict=True):
        if abs(got - right) > 1e-5:
            sys.exit(f"{got} instead of {right}")
    header = (at / "all.safetensors").read_bytes()
    if list(json.loads(header[8:8 + struct.unpack_from("<Q", header)[0]])) != ["y0"]:
        sys.exit("all.safetensors has other tensors than y0")
    # What runs here is compiled for the sizes of the run, unless all are asked for.
    for verb, more in (("run", []), ("profile", ["--repeat", "1"]), ("bench", ["--samples", "1"])):
        for sizes in ("", "--fix-sizes", "--symbolic-sizes"):
            texts = at / f"{verb}{sizes}"
            shown = run(verb, model, "--size", "B=3", *more, *filter(None, [sizes]), debug_kernels=texts)
            expect_in(shown, "output y0  f32[3, 8, 4]" if verb == "run" else "")
            symbols = any(" sym " in path.read_text() for path in texts.glob("*.kir"))
            if symbols != (sizes == "--symbolic-sizes") or not list(texts.glob("*.kir")):
                sys.exit(f"quern {verb} {sizes}: kernels {'of symbols' if symbols else 'without symbols, or none'}")
    expect_in(run("run", model, "--out", f"z={at}/z.npy", code=1), "no output z", "y0")
    expect_in(run("inspect", model), "input       x0  f32[B, S, 4]", "output      y0  f32[B, S, 4]", "LayerNorm")
    expect_in(run("dump", model, "--stage", "mir"), "f32[B, S, 4]")
    expect_in(run("profile", model, *values, "--repeat", "1"), NAME)
    expect_in(run("bench", model, *values, "--samples", "1"), "launches")
    expect_in(run("dispatch", model), "LayerNorm")
    run("compile", model, "-o", at / "out", "--name", "norm")
    expect_in((at / "out/norm.h").read_text(), "input 0: x0  f32[B, S, 4]", "output 0: y0  f32[B, S, 4]")
    # As a graph in the other forms.
    run("convert", model, at / "norm.qir")
    run("convert", model, at / "norm.qgf")
    if run("diff", model, at / "norm.qir") + run("diff", at / "norm.qgf", model):
        sys.exit("a graph is another one in another form")
    for form in (".qir", ".qgf"):
        expect_in(run("inspect", at / f"norm{form}"), "output      y0  f32[B, S, 4]")

    # Between DequantizeLinear and QuantizeLinear sums stay integers.
    expect_in(run("dump", at / "qdq/model.onnx", "--stage", "mir"), "i32[3, 5]")

    # What there is no importer for is said before anything runs.
    broken = at / "broken.onnx"
    broken.write_bytes(model.read_bytes().replace(b"LayerNormalization", b"LayerNormalizatioX"))
    expect_in(run("inspect", broken), f"not covered: op LayerNormalizatioX (first: {NAME})")
    expect_in(run("run", broken, code=1), f"no importer of the op LayerNormalizatioX, which the node {NAME} is")
    broken.write_bytes(model.read_bytes()[:-9])
    expect_in(run("run", broken, code=1), "broken.onnx", "cut short")
print("a model in ONNX: run, inspect, dump, profile, bench, dispatch, compile, convert, diff")
