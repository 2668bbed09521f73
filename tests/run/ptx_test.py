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

from ptx_interpreter import Kernel, Memory, brain, half, signed, to_brain, to_half

SOURCE = sys.argv[1]
SEED = 7393


def floats(values):
    return bytearray(struct.pack(f"<{len(values)}f", *values))


def kernel(name):
    with open(os.path.join(SOURCE, "tests", "ptx", name + ".ptx"), encoding="utf-8") as file:
        return Kernel(file.read())


def expect(name, data, wanted, rtol, atol=0.0):
    got = struct.unpack(f"<{len(wanted)}f", data)
    for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
        if not abs(x - y) <= atol + rtol * abs(y):
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


def check_product(dtype, m, n, k, fixed=False):
    def operand(count):
        values = random_floats(count, 0.1, 1)
        if dtype == "f32":
            return values, floats(values)
        bits = [(to_half if dtype == "f16" else to_brain)(v) for v in values]
        return [(half if dtype == "f16" else brain)(b) for b in bits], bytearray(struct.pack(f"<{count}H", *bits))

    (a, a_bytes), (b, b_bytes) = operand(m * k), operand(n * k)
    memory, c = Memory(), bytearray(b"\xff" * 4 * m * n)
    blocks = -(-m // 64) * -(-n // 64)
    name, sizes = (f"product_{dtype}_async", [m, n]) if fixed else ("product_" + dtype, [m, n, k])
    kernel(name).run(blocks, [memory.add(a_bytes), memory.add(b_bytes), memory.add(c)] + sizes, memory)
    wanted = [sum(a[i * k + t] * b[j * k + t] for t in range(k)) for i in range(m) for j in range(n)]
    expect(f"product {dtype} {m} x {n} x {k}", c, wanted, 1e-5)


# Blocks of the ggml formats from random bytes, and their elements by the definitions of the formats (docs of ggml).
def scale_bytes(low=0.001, high=0.02):
    return struct.pack("<e", random.uniform(low, high))


def block_q4_0():
    d, codes = scale_bytes(), random.randbytes(16)
    scale = struct.unpack("<e", d)[0]
    return d + codes, [((codes[i % 16] >> (i // 16 * 4) & 15) - 8) * scale for i in range(32)]


def block_q8_0():
    d, codes = scale_bytes(), random.randbytes(32)
    scale = struct.unpack("<e", d)[0]
    return d + codes, [signed(c, 8) * scale for c in codes]


def block_k(fifth):
    head, packed = scale_bytes() + scale_bytes(), random.randbytes(12)
    high, codes = random.randbytes(32 if fifth else 0), random.randbytes(128)
    d, dmin = struct.unpack("<2e", head)
    values = []
    for i in range(256):
        sub = i // 32
        if sub < 4:
            scale, minimum = packed[sub] & 63, packed[sub + 4] & 63
        else:
            scale = packed[sub + 4] & 15 | packed[sub - 4] >> 6 << 4
            minimum = packed[sub + 4] >> 4 | packed[sub] >> 6 << 4
        code = codes[i // 64 * 32 + i % 32] >> i // 32 % 2 * 4 & 15
        if fifth:
            code |= (high[i % 32] >> sub & 1) << 4
        values.append(d * scale * code - dmin * minimum)
    return head + packed + high + codes, values


def block_q6_k():
    low, high, scales, head = random.randbytes(128), random.randbytes(64), random.randbytes(16), scale_bytes()
    d = struct.unpack("<e", head)[0]
    values = []
    for i in range(256):
        part, row, lane = i // 128, i % 128 // 32, i % 32
        code = low[part * 64 + row % 2 * 32 + lane] >> row // 2 * 4 & 15 | (high[part * 32 + lane] >> 2 * row & 3) << 4
        values.append(d * signed(scales[i // 16], 8) * (code - 32))
    return low + high + scales + head, values


BLOCKS = {"q4_0": block_q4_0, "q8_0": block_q8_0, "q4_K": lambda: block_k(False), "q5_K": lambda: block_k(True), "q6_K": block_q6_k}


def matrix_of_blocks(dtype, rows, columns):
    data, values = bytearray(), []
    for _ in range(rows):
        row = []
        while len(row) < columns:
            packed, elements = BLOCKS[dtype]()
            data += packed
            row += elements
        values.append(row)
    return data, values


def check_mixed_product(dtype, half_dtype, m, n):
    w, values = matrix_of_blocks(dtype, n, 512)
    x = random_floats(m * 512)
    memory, c = Memory(), bytearray(b"\xff" * 4 * m * n)
    blocks = -(-m // 64) * -(-n // 64)
    kernel(f"product_{dtype}_{half_dtype}").run(blocks, [memory.add(floats(x)), memory.add(w), memory.add(c), m, n], memory)

    def rounded(value):
        return half(to_half(value)) if half_dtype == "f16" else brain(to_brain(value))

    rows = [[rounded(v) for v in row] for row in values]
    wanted, size = [], 0
    for i in range(m):
        left = [rounded(v) for v in x[i * 512:i * 512 + 512]]
        for row in rows:
            terms = [a * b for a, b in zip(left, row, strict=True)]
            wanted.append(sum(terms))
            size = max(size, sum(map(abs, terms)))
    expect(f"product of {dtype} as {half_dtype} {m} x {n}", c, wanted, 0, 1e-6 * size)


def check_gemv(dtype, n):
    w, values = matrix_of_blocks(dtype, n, 768)
    x = random_floats(768)
    memory, y = Memory(), bytearray(b"\xff" * 4 * n)
    kernel("gemv_" + dtype).run(n, [memory.add(w), memory.add(floats(x)), memory.add(y), n], memory)
    wanted = [sum(a * b for a, b in zip(row, x, strict=True)) for row in values]
    size = max(sum(abs(a * b) for a, b in zip(row, x, strict=True)) for row in values)
    expect(f"gemv {dtype} {n}", y, wanted, 0, 1e-6 * size)


random.seed(SEED)
for size in (1, 31, 1031):
    check_map(size)
check_rows(2, 7)
check_rows(3, 263)
for kind in ("f32", "f16", "bf16"):
    check_product(kind, 67, 5, 37)
    check_product(kind, 13, 71, 3)
check_product("f16", 67, 5, 136, fixed=True)
check_product("f32", 13, 71, 36, fixed=True)
check_mixed_product("q4_K", "f16", 5, 67)
check_mixed_product("q8_0", "bf16", 67, 3)
for kind in BLOCKS:
    check_gemv(kind, 3)
