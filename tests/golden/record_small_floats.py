#!/usr/bin/env python3
"""Records floats of 8, 6 and 4 bits: small_floats.txt and small_floats.bin, which golden_test reads.

  record_small_floats.py [FOLDER]   writes into FOLDER, this one when not given

Codes and values are those of ml_dtypes, the products made by numpy in double. Needs numpy, ml_dtypes, and what
record_sequence.py, which says how the files are written, imports.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
from record_ops import INF, NAN
from record_sequence import Sequences

FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
           "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn}
LARGEST = {name: float(ml_dtypes.finfo(dtype).max) for name, dtype in FORMATS.items()}
CODES = {"e4m3": 256, "e5m2": 256, "e3m2": 64, "e2m3": 64, "e2m1": 16}
SCALES = {"e8m0": ml_dtypes.float8_e8m0fnu, "e4m3": ml_dtypes.float8_e4m3fn}


def encoded(x, name, saturate):
    x = x.astype(np.float64)
    if saturate:
        x = np.where(np.isnan(x), x, np.clip(x, -LARGEST[name], LARGEST[name]))
    return x.astype(FORMATS[name]).view(np.uint8)


def decoded(codes, name):
    return codes.view(FORMATS[name]).astype(np.float64)


def spread(scale, axis, block, size):
    return np.take(np.repeat(scale, block, axis), np.arange(size), axis)


def numbers(rng, name, dtype):
    """Every value, the middles between neighbours and what is beside them, what is too large, and NaN."""
    values = decoded(np.arange(CODES[name]).astype(np.uint8), name)
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    # Where the dtype has no room for a neighbour it is the middle itself.
    beside = [np.nextafter(middles.astype(dtype), dtype(side)) for side in (-INF, INF)]
    edge = LARGEST[name] * np.array([1.03, 1.07, 1.5, 2, 300])
    return np.concatenate([values, middles, *beside, edge, -edge, [INF, -INF, NAN, 0.0, -0.0],
                           rng.standard_normal(41) * LARGEST[name] / 3, rng.standard_normal(37)]).astype(dtype)


def quantised(archive, rng):
    for name in FORMATS:
        for saturate in (True, False):
            for dtype in (np.float32, np.float64, np.float16):
                with np.errstate(over="ignore"):  # ml_dtypes rounds a double twice, by way of f32: those are in it
                    x = numbers(rng, name, np.float32 if dtype == np.float64 else dtype).astype(dtype)
                archive.results("QuantizeFloat", "QuantizeFloat", {"x": x}, [encoded(x, name, saturate)], 0,
                                format=f'"{name}"', saturate=saturate)
        x = (rng.standard_normal((3, 5, 37)) * 4).astype(np.float32)
        for axis, size in ((0, 3), (1, 5), (-1, 37)):
            scale = (2.0 ** rng.integers(-3, 4, size)).astype(np.float32)
            by = scale.reshape([-1 if a == axis % 3 else 1 for a in range(3)])
            archive.results("QuantizeFloat", "QuantizeFloat", {"x": x, "s": scale}, [encoded(x / by, name, True)], 0,
                            format=f'"{name}"', axis=axis)
        codes = rng.integers(120, 134, (3, 5, 3)).astype(np.uint8)
        by = spread(codes.view(SCALES["e8m0"]).astype(np.float64), 2, 16, 37)
        archive.results("QuantizeFloat", "QuantizeFloat", {"x": x, "s": codes}, [encoded(x / by, name, True)], 0,
                        format=f'"{name}"', axis=2, block=16)


def dequantised(archive, rng):
    for name, dtype in FORMATS.items():
        count = CODES[name]
        codes = np.arange(count).astype(np.uint8)
        for to, text in ((np.float32, "f32"), (np.float64, "f64"), (np.float16, "f16")):
            archive.results("DequantizeFloat", "DequantizeFloat", {"x": codes}, [decoded(codes, name).astype(to)], 0,
                            format=f'"{name}"', to=text)
        x = rng.integers(0, count, (4, 35)).astype(np.uint8)
        x[~np.isfinite(decoded(x, name))] = 3
        scale = rng.random(4).astype(np.float32)
        archive.results("DequantizeFloat", "DequantizeFloat", {"x": x, "s": scale},
                        [(decoded(x, name) * scale[:, None]).astype(np.float32)], 1e-6, format=f'"{name}"', axis=0)
        for scales, low, high in (("e8m0", 120, 134), ("e4m3", 8, 120)):
            s = rng.integers(low, high, (4, 3)).astype(np.uint8)
            by = spread(s.view(SCALES[scales]).astype(np.float64), 1, 16, 35)
            archive.results("DequantizeFloat", "DequantizeFloat", {"x": x, "s": s},
                            [(decoded(x, name) * by).astype(np.float32)], 1e-6, format=f'"{name}"', block=16,
                            scale_format=f'"{scales}"')


def product(archive, rng, shape, columns, a_name, b_name, form, to=np.float32):
    k = shape[-1]
    a = rng.integers(0, CODES[a_name], shape).astype(np.uint8)
    b = rng.integers(0, CODES[b_name], (columns, k)).astype(np.uint8)
    for codes, name in ((a, a_name), (b, b_name)):
        codes[~(np.abs(decoded(codes, name)) < 500)] = 5
    leaves, attributes = {"a": a, "b": b}, {"a_format": f'"{a_name}"', "b_format": f'"{b_name}"'}
    left, right = decoded(a, a_name), decoded(b, b_name)
    if form == "one":
        leaves["sa"], leaves["sb"] = np.float32(0.25).reshape(()), np.float32(1.7).reshape(())
        left, right = left * 0.25, right * np.float64(np.float32(1.7))
    if form == "rows":
        leaves["sa"] = rng.random(shape[:-1] + (1,)).astype(np.float32)
        leaves["sb"] = rng.random((columns, 1)).astype(np.float32)
        left, right = left * leaves["sa"], right * leaves["sb"]
    if form in SCALES:
        groups = -(-k // 32)
        low, high = (120, 134) if form == "e8m0" else (20, 70)
        leaves["sa"] = rng.integers(low, high, shape[:-1] + (groups,)).astype(np.uint8)
        leaves["sb"] = rng.integers(low, high, (columns, groups)).astype(np.uint8)
        left = left * spread(leaves["sa"].view(SCALES[form]).astype(np.float64), -1, 32, k)
        right = right * spread(leaves["sb"].view(SCALES[form]).astype(np.float64), -1, 32, k)
        attributes |= {"block": 32, "scale_format": f'"{form}"'}
    if to != np.float32:
        attributes["to"] = "f16"
    expected = left @ right.T
    terms = np.abs(left) @ np.abs(right).T
    archive.results("ScaledMatMul", "ScaledMatMul", leaves, [expected.astype(to)], 2e-5 if to == np.float32 else 2e-3,
                    float(terms.max(initial=0) * 2e-6), **attributes)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive, rng = Sequences(), np.random.default_rng(11)
    quantised(archive, rng)
    dequantised(archive, rng)
    pairs = [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e2m3", "e3m2"), ("e4m3", "e2m1")]
    for turn, (shape, columns) in enumerate((((3, 37), 5), ((1, 64), 17), ((2, 3, 33), 31), ((5, 128), 8), ((1, 1), 1),
                                             ((13, 97), 66), ((2, 0), 3))):
        for a_name, b_name in pairs:
            for form in ("none", "one", "rows", "e8m0", "e4m3"):
                product(archive, rng, shape, columns, a_name, b_name, form)
    product(archive, rng, (3, 37), 5, "e2m1", "e2m3", "rows", np.float16)
    (folder / "small_floats.txt").write_text("".join(archive.text))
    (folder / "small_floats.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases")


if __name__ == "__main__":
    main()
