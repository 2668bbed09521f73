#!/usr/bin/env python3
"""Records products by packed weights: packed.txt and packed.bin, which golden_test reads.

  record_packed.py [FOLDER]   writes into FOLDER, this one when not given

DequantMatMul of every scheme. The numbers of 8 bits are decoded by ml_dtypes, the products made by numpy in double.
Needs numpy, onnx, onnxruntime, scipy (of record_ops.py, which says how the files are written) and ml_dtypes.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
from record_sequence import Sequences

SHAPES = ((3, 37, 5), (1, 64, 17), (2, 33, 31), (5, 128, 8), (1, 1, 1), (13, 97, 66))
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def rows_of(scale, rows, k):
    return np.repeat(scale.astype(np.float64), rows, 0)[:k]


def halves(codes):
    """Two numbers a byte, the first in the low half; a last one alone has 0 beside it."""
    flat = codes.reshape(-1).astype(np.uint8)
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return flat[0::2] | flat[1::2] << 4


def add(archive, scheme, x, operands, weight, **attributes):
    names = dict(zip(("x", "w", "scale", "extra"), (x, *operands)))
    expected = (x.astype(np.float64) @ weight).astype(x.dtype)
    archive.results("DequantMatMul", "DequantMatMul", names, [expected], 2e-5 if x.dtype != np.float16 else 2e-3,
                    float(np.abs(x.astype(np.float64)).max() * np.abs(weight).sum(0).max() * 2e-6),
                    scheme=f'"{scheme}"', **attributes)


def record(archive):
    rng = np.random.default_rng(7)
    for turn, (m, k, n) in enumerate(SHAPES):
        x = rng.standard_normal((m, k)).astype([np.float32, np.float16, np.float64][turn % 3])
        for block in (16, 32):
            groups = -(-k // block)
            scale = (0.01 + rng.random((groups, n)) * 0.1).astype(np.float32)
            zero = np.round(rng.random((groups, n)) * 15).astype(np.float32)
            w8 = rng.integers(-128, 128, (k, n)).astype(np.int8)
            w4 = rng.integers(0, 16, (k, n))
            s, z = rows_of(scale, block, k), rows_of(zero, block, k)
            add(archive, "int8", x, (w8, scale), w8 * s, block=block)
            add(archive, "int8a", x, (w8, scale, zero), (w8 - z) * s, block=block)
            add(archive, "int4", x, (halves(w4), scale, zero), (w4 - z) * s, block=block)
        for scheme, dtype in (("fp8e4m3", ml_dtypes.float8_e4m3fn), ("fp8e5m2", ml_dtypes.float8_e5m2)):
            codes = rng.integers(0, 256, (k, n)).astype(np.uint8)
            codes[~np.isfinite(codes.view(dtype).astype(np.float64))] = 0x3A
            codes[np.abs(codes.view(dtype).astype(np.float64)) > 500] &= 0xBF  # sums stay in half precision
            scale = (0.01 + rng.random(n) * 0.02).astype(np.float32)
            decoded = codes.view(dtype).astype(np.float64)
            add(archive, scheme, x, (codes, scale), decoded * scale)
            if x.dtype != np.float16:
                add(archive, scheme, x, (codes,), decoded)
        groups = -(-k // 16)
        codes, scale = rng.integers(0, 16, (k, n)), rng.integers(0x20, 0x50, (groups, n)).astype(np.uint8)
        whole = np.array([0.125], np.float32)
        decoded = E2M1[codes] * rows_of(scale.view(ml_dtypes.float8_e4m3fn), 16, k) * whole
        add(archive, "nvfp4", x, (halves(codes), scale, whole), decoded)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    record(archive)
    (folder / "packed.txt").write_text("".join(archive.text))
    (folder / "packed.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases")


if __name__ == "__main__":
    main()
