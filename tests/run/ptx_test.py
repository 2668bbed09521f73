#!/usr/bin/env python3
"""Runs the golden PTX of tests/ptx on a small interpreter of PTX and compares with the same in Python's doubles.

    ptx_test.py SOURCE_DIR

The unit test codegen_ptx holds these files to what is emitted; this one holds them to what they should compute. Sizes are
from distinct primes, so that blocks, rows and the last step of the inner dimension are cut.
"""
import math
import os
import random
import struct
import sys

from ptx_interpreter import Kernel, Memory, brain, half, to_bits

SOURCE = sys.argv[1]
SEED = 7393


def floats(values):
    return bytearray(struct.pack(f"<{len(values)}f", *values))


def kernel(name):
    with open(os.path.join(SOURCE, "tests", "ptx", name + ".ptx"), encoding="utf-8") as file:
        return Kernel(file.read())


def expect(name, data, wanted, rtol):
    got = struct.unpack(f"<{len(wanted)}f", data)
    for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
        if not abs(x - y) <= rtol * abs(y):
            sys.exit(f"{name}: element {i} is {x}, not {y} (seed {SEED})")
    print(f"{name}: {len(wanted)} elements")


def random_floats(count, low=-1.0, high=1.0):
    return list(struct.unpack(f"<{count}f", floats([random.uniform(low, high) for _ in range(count)])))


def check_map(n):
    x = random_floats(n, -85, 85)
    memory, y = Memory(), bytearray(b"\xff" * 4 * n)
    kernel("map").run(-(-n // 1024), [memory.add(floats(x)), memory.add(y), n], memory)
    expect(f"map {n}", y, [v / (1 + math.exp(-v)) for v in x], 1e-5)


def check_rows(m, c):
    x, g = random_floats(m * c), random_floats(c)
    memory, y = Memory(), bytearray(b"\xff" * 4 * m * c)
    kernel("rows").run(m, [memory.add(floats(x)), memory.add(floats(g)), memory.add(y), m, c], memory)
    wanted = []
    for r in range(m):
        row = x[r * c:(r + 1) * c]
        scale = 1 / math.sqrt(sum(v * v for v in row) / c + 1e-5)
        wanted += [v * scale * w for v, w in zip(row, g, strict=True)]
    expect(f"rows {m} x {c}", y, wanted, 1e-5)


def check_product(dtype, m, n, k):
    def operand(count):
        values = random_floats(count, 0.1, 1)
        if dtype == "f32":
            return values, floats(values)
        if dtype == "f16":
            bits = [struct.unpack("<H", struct.pack("<e", v))[0] for v in values]
        else:
            bits = [to_bits(v) >> 16 for v in values]
        return [(half if dtype == "f16" else brain)(b) for b in bits], bytearray(struct.pack(f"<{count}H", *bits))

    (a, a_bytes), (b, b_bytes) = operand(m * k), operand(n * k)
    memory, c = Memory(), bytearray(b"\xff" * 4 * m * n)
    blocks = -(-m // 64) * -(-n // 64)
    kernel("product_" + dtype).run(blocks, [memory.add(a_bytes), memory.add(b_bytes), memory.add(c), m, n, k], memory)
    wanted = [sum(a[i * k + t] * b[j * k + t] for t in range(k)) for i in range(m) for j in range(n)]
    expect(f"product {dtype} {m} x {n} x {k}", c, wanted, 1e-5)


random.seed(SEED)
for size in (1, 31, 1031):
    check_map(size)
check_rows(2, 7)
check_rows(3, 263)
for kind in ("f32", "f16", "bf16"):
    check_product(kind, 67, 5, 37)
    check_product(kind, 13, 71, 3)
