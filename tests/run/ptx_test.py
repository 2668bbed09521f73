#!/usr/bin/env python3
"""Runs the golden PTX of tests/ptx by ptx_run, an interpreter of PTX, and compares with the same in Python's doubles.

    ptx_test.py PTX_RUN SOURCE_DIR

The unit test codegen_ptx holds these files to what is emitted; this one holds them to what they should compute. Sizes
are from distinct primes, so that blocks, rows and the last step of the inner dimension are cut.
"""
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

PTX_RUN, SOURCE = sys.argv[1:]
SEED = 7393


def to_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def to_bits(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def half(bits):
    return struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]


def brain(bits):
    return to_float((bits & 0xFFFF) << 16)


def to_half(value):
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def to_brain(value):
    bits = to_bits(value)
    return 0x7FFF if math.isnan(value) else bits + 0x7FFF + (bits >> 16 & 1) >> 16


def signed(value, width):
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def floats(values):
    return bytearray(struct.pack(f"<{len(values)}f", *values))


def run(name, blocks, arguments, entry=None):
    """Runs an entry of a golden file; what it writes is written to the bytearrays among its arguments."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for i, argument in enumerate(arguments):
            words.append(str(argument) if isinstance(argument, int) else f"@{folder}/{i}")
            if not isinstance(argument, int):
                with open(f"{folder}/{i}", "wb") as file:
                    file.write(argument)
        path = os.path.join(SOURCE, "tests", "ptx", name + ".ptx")
        subprocess.run([PTX_RUN, path, entry or name, str(blocks), *words], check=True)
        for i, argument in enumerate(arguments):
            if isinstance(argument, bytearray):
                with open(f"{folder}/{i}", "rb") as file:
                    argument[:] = file.read()


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
    y = bytearray(b"\xff" * 4 * n)
    run("map", -(-n // 1024), [floats(x), y, n])
    expect(f"map {n}", y, [v / (1 + math.exp(-v)) for v in x], 1e-5)


def check_rows(m, c):
    x, g = random_floats(m * c), random_floats(c)
    y = bytearray(b"\xff" * 4 * m * c)
    run("rows", m, [floats(x), floats(g), y, m, c])
    wanted = []
    for r in range(m):
        row = x[r * c:(r + 1) * c]
        scale = 1 / math.sqrt(sum(v * v for v in row) / c + 1e-5)
        wanted += [v * scale * w for v, w in zip(row, g, strict=True)]
    expect(f"rows {m} x {c}", y, wanted, 1e-5)


def check_spread(m, c):
    x = random_floats(m * c)
    y = bytearray(b"\xff" * 4 * m * c)
    run("spread", m, [floats(x), y, m, c])
    wanted = []
    for r in range(m):
        row = x[r * c:(r + 1) * c]
        mean = sum(row) / c
        squares = [(v - mean) ** 2 for v in row]
        total = sum(q * q + q for q in squares)
        wanted += [total / sum((v * k) ** 2 + 1 for k in (1, 2, 3)) for v in row]
    expect(f"spread {m} x {c}", y, wanted, 1e-5)


def check_product(dtype, m, n, k, fixed=False):
    def operand(count):
        values = random_floats(count, 0.1, 1)
        if dtype == "f32":
            return values, floats(values)
        bits = [(to_half if dtype == "f16" else to_brain)(v) for v in values]
        return [(half if dtype == "f16" else brain)(b) for b in bits], bytearray(struct.pack(f"<{count}H", *bits))

    (a, a_bytes), (b, b_bytes) = operand(m * k), operand(n * k)
    c = bytearray(b"\xff" * 4 * m * n)
    blocks = -(-m // 64) * -(-n // 64)
    name, sizes = (f"product_{dtype}_async", [m, n]) if fixed else ("product_" + dtype, [m, n, k])
    run(name, blocks, [a_bytes, b_bytes, c] + sizes)
    wanted = [sum(a[i * k + t] * b[j * k + t] for t in range(k)) for i in range(m) for j in range(n)]
    expect(f"product {dtype} {m} x {n} x {k}", c, wanted, 1e-5)


# Blocks of the ggml formats from random bytes, and their elements by the definitions of the formats (docs of ggml).
def scale_bytes(low=0.001, high=0.02):
    return struct.pack("<e", random.uniform(low, high))


def block_q4_0():
    d, codes = scale_bytes(), random.randbytes(16)
    scale = struct.unpack("<e", d)[0]
    return d + codes, [((codes[i % 16] >> (i // 16 * 4) & 15) - 8) * scale for i in range(32)]


def block_q5_0():
    d, high, codes = scale_bytes(), random.randbytes(4), random.randbytes(16)
    scale, fifth = struct.unpack("<e", d)[0], int.from_bytes(high, "little")
    return d + high + codes, [((codes[i % 16] >> (i // 16 * 4) & 15) + (fifth >> i & 1) * 16 - 16) * scale
                              for i in range(32)]


LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def block_iq4_nl():
    d, codes = scale_bytes(), random.randbytes(16)
    scale = struct.unpack("<e", d)[0]
    return d + codes, [LEVELS[codes[i % 16] >> (i // 16 * 4) & 15] * scale for i in range(32)]


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


def block_added(fifth):
    head, high, codes = scale_bytes() + scale_bytes(), random.randbytes(4 if fifth else 0), random.randbytes(16)
    d, least = struct.unpack("<2e", head)
    bits = int.from_bytes(high, "little")
    return head + high + codes, [((codes[i % 16] >> (i // 16 * 4) & 15) + (bits >> i & 1) * 16) * d + least
                                 for i in range(32)]


def pair(pairs, i):
    return pairs[i // 128 * 32 + i % 32] >> i // 32 % 4 * 2 & 3


def block_q2_k():
    both, pairs, head = random.randbytes(16), random.randbytes(64), scale_bytes() + scale_bytes()
    d, dmin = struct.unpack("<2e", head)
    return both + pairs + head, [d * (both[i // 16] & 15) * pair(pairs, i) - dmin * (both[i // 16] >> 4)
                                 for i in range(256)]


def block_q3_k():
    high, pairs, packed, head = random.randbytes(32), random.randbytes(64), random.randbytes(12), scale_bytes()
    d = struct.unpack("<e", head)[0]
    values = []
    for i in range(256):
        group = i // 16
        low = packed[group] & 15 if group < 8 else packed[group - 8] >> 4
        scale = (low | (packed[8 + group % 4] >> 2 * (group // 4) & 3) << 4) - 32
        values.append(d * scale * (pair(pairs, i) - (0 if high[i % 32] >> i // 32 & 1 else 4)))
    return high + pairs + packed + head, values


def block_iq4_xs():
    head, high, low, codes = scale_bytes(), random.randbytes(2), random.randbytes(4), random.randbytes(128)
    d, top = struct.unpack("<e", head)[0], int.from_bytes(high, "little")
    values = []
    for i in range(256):
        group = i // 32
        scale = ((low[group // 2] >> 4 * (group % 2) & 15) | (top >> 2 * group & 3) << 4) - 32
        values.append(d * scale * LEVELS[codes[group * 16 + i % 16] >> (i % 32 // 16 * 4) & 15])
    return head + high + low + codes, values


E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


def block_mxfp4():
    exponent, codes = random.randrange(115, 122), random.randbytes(16)
    values = []
    for i in range(32):
        code = codes[i % 16] >> (i // 16 * 4) & 15
        values.append((-1 if code & 8 else 1) * E2M1[code & 7] * 2.0 ** (exponent - 127))
    return bytes([exponent]) + codes, values


def block_tq1_0():
    digits = [random.randrange(3) for _ in range(256)]
    data = bytearray()
    for first, stride, count, each in ((0, 32, 32, 5), (160, 16, 16, 5), (240, 4, 4, 4)):
        for m in range(count):
            number = 0
            for n in range(each):
                number = number * 3 + digits[first + m + n * stride]
            number *= 3 ** (5 - each)
            data.append((number * 256 + 242) // 243)
    head = scale_bytes()
    d = struct.unpack("<e", head)[0]
    return bytes(data) + head, [d * (x - 1) for x in digits]


def block_tq2_0():
    pairs, head = random.randbytes(64), scale_bytes()
    d = struct.unpack("<e", head)[0]
    return pairs + head, [d * (pair(pairs, i) - 1) for i in range(256)]


def grid(name):
    """A grid of base/formats/grids.h, which kir_test holds to ggml."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/base/formats/grids.h")
    with open(path, encoding="utf-8") as f:
        body = re.search(name + r"\[\] = \{(.*?)\}", f.read(), re.S).group(1)
    return [int(word, 16) for word in re.findall(r"0x\w+", body)]


def block_iq2_xs():
    head, words, nibbles = scale_bytes(), [random.randrange(65536) for _ in range(32)], random.randbytes(8)
    d, entries, values = struct.unpack("<e", head)[0], grid("kIQ2XSGrid"), []
    for i in range(256):
        word = words[i // 8]
        signs = word >> 9
        signs |= (signs.bit_count() & 1) << 7
        level = (8, 25, 43)[entries[word & 511] >> 2 * (i % 8) & 3] * (-1 if signs >> i % 8 & 1 else 1)
        values.append(d * (0.5 + (nibbles[i // 32] >> i // 16 % 2 * 4 & 15)) * 0.25 * level)
    return head + struct.pack("<32H", *words) + nibbles, values


def block_iq3_s():
    head, low, ninth, signs, nibbles = scale_bytes(), *(random.randbytes(n) for n in (64, 8, 32, 4))
    d, entries, values = struct.unpack("<e", head)[0], grid("kIQ3SGrid"), []
    for i in range(256):
        entry = entries[low[i // 4] | (ninth[i // 32] >> i // 4 % 8 & 1) << 8]
        level = (2 * (entry >> i % 4 * 4 & 7) + 1) * (-1 if signs[i // 8] >> i % 8 & 1 else 1)
        values.append(d * (1 + 2 * (nibbles[i // 64] >> i // 32 % 2 * 4 & 15)) * level)
    return head + low + ninth + signs + nibbles, values


def block_iq1_m():
    low, upper = random.randbytes(32), random.randbytes(16)
    scales, head = [random.randrange(4096) for _ in range(4)], scale_bytes()
    d, entries, values = struct.unpack("<e", head)[0], grid("kIQ1Grid"), []
    for i in range(256):
        nibble = upper[i // 16] >> i // 8 % 2 * 4
        code = entries[low[i // 8] | (nibble & 7) << 8] >> 2 * (i % 8) & 3
        scale = scales[i // 64] >> 3 * (i // 16 % 4) & 7
        values.append(d * (2 * scale + 1) * (code - 1 + (-0.125 if nibble & 8 else 0.125)))
    bits = struct.unpack("<H", head)[0]
    return low + upper + struct.pack("<4H", *(s | (bits >> 4 * n & 15) << 12 for n, s in enumerate(scales))), values


BLOCKS = {"q4_0": block_q4_0, "q8_0": block_q8_0, "q4_K": lambda: block_k(False), "q5_K": lambda: block_k(True),
          "q6_K": block_q6_k, "q5_0": block_q5_0, "iq4_nl": block_iq4_nl, "q4_1": lambda: block_added(False),
          "q5_1": lambda: block_added(True), "q2_K": block_q2_k, "q3_K": block_q3_k, "iq4_xs": block_iq4_xs,
          "mxfp4": block_mxfp4, "tq1_0": block_tq1_0, "tq2_0": block_tq2_0,
          "iq2_xs": block_iq2_xs, "iq3_s": block_iq3_s, "iq1_m": block_iq1_m}


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
    c = bytearray(b"\xff" * 4 * m * n)
    blocks = -(-m // 64) * -(-n // 64)
    run(f"product_{dtype}_{half_dtype}", blocks, [floats(x), w, c, m, n])

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


def check_attention(rows, before):
    keys = before + rows
    q, k, v = random_floats(rows * 64), random_floats(keys * 32), random_floats(keys * 32)
    k, v = [half(to_half(x)) for x in k], [half(to_half(x)) for x in v]
    out = bytearray(b"\xff" * 4 * rows * 64)
    cache = [bytearray(struct.pack(f"<{keys * 32}e", *x)) for x in (k, v)]
    run("attention_prompt", 4 * -(-rows // 32), [floats(q), out, *cache, before, rows])
    wanted = []
    for r in range(rows):
        for head in range(4):
            row = q[r * 64 + head * 16:][:16]
            seen = range(before + r + 1)
            scores = [math.exp(sum(a * b for a, b in zip(row, k[t * 32 + head // 2 * 16:][:16], strict=True)) / 4)
                      for t in seen]
            wanted += [sum(s * v[t * 32 + head // 2 * 16 + d] for s, t in zip(scores, seen, strict=True)) / sum(scores)
                       for d in range(16)]
    expect(f"attention {rows} after {before}", out, wanted, 0, 2e-6)


def check_gemv(dtype, n):
    w, values = matrix_of_blocks(dtype, n, 768)
    x = random_floats(768)
    y = bytearray(b"\xff" * 4 * n)
    run("gemv_" + dtype, n, [w, floats(x), y, n])
    wanted = [sum(a * b for a, b in zip(row, x, strict=True)) for row in values]
    size = max(sum(abs(a * b) for a, b in zip(row, x, strict=True)) for row in values)
    expect(f"gemv {dtype} {n}", y, wanted, 0, 1e-6 * size)


def c_pow(a, b):
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.nan if a < 0 else -math.inf if math.copysign(1, a) < 0 and b % 2 == 1 else math.inf


def c_mod(a, b):
    if math.isnan(a + b) or math.isinf(a) or b == 0:
        return math.nan
    rest = math.fmod(a, b)
    return rest + b if rest != 0 and (rest < 0) != (b < 0) else rest


def limited(function):
    def value(a):
        try:
            return function(a)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if a == 0 else math.nan
    return value


def c_log1p(a):
    return -math.inf if a == -1 else limited(math.log1p)(a)


def sigmoid(a):
    return 1 / (1 + math.exp(-a)) if a > -700 else math.exp(a) / (1 + math.exp(a))


# Of each function its meaning, its arguments and how far results may be off, in units of the last place:
# docs/targets.md.
SPREAD, ANGLES = (-12, 12), (-100000, 100000)
FUNCTIONS = {
    "exp": (limited(math.exp), (-86, 88), 3, 2), "exp2": (limited(lambda a: 2.0 ** a), (-125, 127), 2, 2),
    "expm1": (limited(math.expm1), (-20, 88), 3, 3), "log1p": (c_log1p, (-1, 1e30), 3, 3),
    "sigmoid": (sigmoid, (-85, 85), 4, 3), "log": (limited(math.log), (1e-30, 1e30), 2, 2),
    "log2": (limited(math.log2), (1e-30, 1e30), 2, 2), "sin": (limited(math.sin), ANGLES, 2, 2),
    "cos": (limited(math.cos), ANGLES, 2, 2), "tan": (limited(math.tan), ANGLES, 4, 4), 
    "atan": (math.atan, SPREAD, 2, 2),
    "tanh": (math.tanh, SPREAD, 3, 4), "erf": (math.erf, SPREAD, 3, 32), "pow": (c_pow, SPREAD, 1, 8),
    "atan2": (math.atan2, SPREAD, 3, 3), "mod": (c_mod, (-1e6, 1e6), 0.5, 0),
}


def unit(value, wide):
    """The last place of a result."""
    return max(math.ulp(value) * (1 if wide else 2.0 ** 29), 2.0 ** (-1074 if wide else -149))


def check_function(name, wide):
    meaning, (low, high), *bounds = FUNCTIONS[name]
    bound = bounds[wide]
    two = name in ("pow", "atan2", "mod")
    code = "<%dd" if wide else "<%df"

    def rounded(values):
        return list(struct.unpack(code % len(values), struct.pack(code % len(values), *values)))

    def some(count):
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-40, -1e-7, 1e30, -1e30, math.inf, -math.inf, math.nan]
        while len(values) < count:
            value = random.uniform(low, high)
            # As many near 0 as far out.
            values.append(value if random.random() < 0.5 else math.copysign(abs(value) ** random.random(), value))
        return rounded(values)

    a, b = some(150 if wide else 400), some(150 if wide else 400)
    if two:
        a, b = a + a[:14] * 14, b + [v for v in b[:14] for _ in range(14)]
    n = len(a)
    y = bytearray(b"\xff" * (8 if wide else 4) * n)
    inputs = [bytearray(struct.pack(code % n, *v)) for v in ((a, b) if two else (a,))]
    run("math_f64" if wide else "math_f32", -(-n // 32), inputs + [y, n], f"{name}_f{64 if wide else 32}")
    worst = 0.0
    for i, got in enumerate(struct.unpack(code % n, y)):
        arguments = (a[i], b[i]) if two else (a[i],)
        if name in ("sin", "cos", "tan") and abs(a[i]) > 2.0 ** 50:
            continue  # bounded, and no more
        want = meaning(*arguments)
        if not wide and not math.isnan(want) and abs(want) > 3.4028235e38:
            want = math.copysign(math.inf, want)
        if math.isnan(want) or math.isinf(want):
            right = math.isnan(got) if math.isnan(want) else got == want
            off = 0.0 if right else math.inf
        else:
            off = abs(got - want) / unit(want, wide) if math.isfinite(got) else math.inf
        flushes = name in ("exp", "exp2", "sigmoid", "pow", "expm1", "log1p") and not wide
        if flushes and abs(want) < 2.0 ** -126 and abs(got) < 2.0 ** -126:
            off = min(off, 1.0)
        if off > bound:
            sys.exit(f"{name} of {arguments}: {got}, not {want}: {off:.2f} units of the last place, more than {bound} "
                     f"(seed {SEED})")
        worst = max(worst, off)
    print(f"{name} f{64 if wide else 32}: {n} elements, {worst:.2f} units of the last place, of {bound}")


def nearest(value, bits, least):
    """A number rounded to `bits` bits, ties to even, the last of them worth 2^least at the least."""
    if value == 0 or (isinstance(value, float) and not math.isfinite(value)):
        return float(value)
    exact = Fraction(value)
    exponent = max(math.frexp(float(abs(exact)))[1] - bits, least)
    return float(round(exact / Fraction(2) ** exponent) * Fraction(2) ** exponent)


def wrapped(value):
    return signed(value, 64)


def clamped(value, low, high):
    return 0 if math.isnan(value) else int(min(max(value, low), high))


def check_scalars():
    x = [0.0, -0.0, math.inf, -math.inf, math.nan, 65519.999, 65520.0, 1 + 2.0 ** -11, 1 + 2.0 ** -11 + 2.0 ** -45,
         1 + 2.0 ** -8 + 2.0 ** -40,
         1 + 2.0 ** -8, 1e-7, 3e-8, 1e300, -7.5, 255.5, 2.0 ** -133, 1e-40]
    f = [0.5, 1.5, 2.5, -0.5, -1.5, math.nan, math.inf, -math.inf, 3e9, -3e9, 0.49999997, 8388607.5, -0.0, 1e-40, 7.0,
         -7.3, 1e20, 2.0]
    n = [0, -1, 2049, 2051, 65519, 65520, -(1 << 63), (1 << 63) - 1, (1 << 56) + (1 << 48), (1 << 56) + (1 << 48) + 1,
         -(1 << 56) - (1 << 48),
         -(1 << 56) - (1 << 48) - 1, 7, -7, 7, -7, 1 << 40, 12345]
    m = [1, 2, -1, 3, 0, 64, -1, 63, -3, 5, 62, 7, -2, 2, 2, -2, 1 << 33, 100]
    count = len(x)
    outs = [bytearray(b"\xff" * count * size) for size in (4, 4, 8, 32, 28)]
    inputs = [bytearray(struct.pack(f"<{count}{c}", *v)) for c, v in (("d", x), ("f", f), ("q", n), ("q", m))]
    f = list(struct.unpack(f"<{count}f", inputs[1]))
    run("scalars", 1, inputs + outs + [count])
    halves = struct.unpack(f"<{2 * count}e", outs[0])
    brains = [brain(b) for b in struct.unpack(f"<{2 * count}H", outs[1])]
    ints, longs = struct.unpack(f"<{2 * count}i", outs[2]), struct.unpack(f"<{4 * count}q", outs[3])
    reals = struct.unpack(f"<{7 * count}f", outs[4])

    def over(value, most):
        return value if math.isnan(value) or abs(value) < most else math.copysign(math.inf, value)

    for i in range(count):
        a, g, p, q = x[i], f[i], n[i], m[i]
        narrow = to_float(to_bits(a))
        whole = quotient(p, q) if q else 0
        still = not math.isfinite(g)
        root = math.nan if g < 0 or math.isnan(g) else math.inf if g == 0 else nearest(math.sqrt(g), 24, -149)
        want = [over(nearest(a, 11, -24), 65520), over(nearest(p, 11, -24), 65520),
                over(nearest(a, 8, -133), 2.0 ** 128), nearest(p, 8, -133),
                clamped(g, -(1 << 31), (1 << 31) - 1), clamped(a, 0, 255),
                wrapped(whole), (p % q if q else 0), wrapped(p << q) if 0 <= q < 64 else 0,
                p >> q if 0 <= q < 64 else p >> 63,
                *[g if still else float(each(g)) for each in (math.floor, math.ceil, math.trunc, round)],
                math.nan if math.isnan(g + narrow) and (math.isnan(g) or math.isnan(narrow)) else min(g, narrow),
                math.nan if math.isnan(g) or math.isnan(narrow) else max(g, narrow),
                math.inf if g == 0 else nearest(1 / root, 24, -149)]
        got = [*halves[2 * i:2 * i + 2], *brains[2 * i:2 * i + 2], *ints[2 * i:2 * i + 2], *longs[4 * i:4 * i + 4],
               *reals[7 * i:7 * i + 7]]
        for k, (have, wish) in enumerate(zip(got, want, strict=True)):
            if not (have == wish or (math.isnan(wish) and math.isnan(have))):
                sys.exit(f"scalars {i}, result {k}: {have}, not {wish}, of {a}, {g}, {p}, {q}")
    print(f"scalars: {count} elements")


random.seed(SEED)
check_scalars()
for size in (1, 31, 1031):
    check_map(size)
check_rows(2, 7)
check_rows(3, 263)
check_spread(2, 7)
check_spread(3, 263)
for kind in ("f32", "f16", "bf16"):
    check_product(kind, 67, 5, 37)
check_product("f16", 13, 71, 3)
check_product("f16", 67, 5, 136, fixed=True)
check_product("f32", 13, 71, 36, fixed=True)
check_mixed_product("q4_K", "f16", 5, 67)
check_mixed_product("q8_0", "bf16", 67, 3)
check_attention(9, 5)
for kind in BLOCKS:
    check_gemv(kind, 3)
for function in FUNCTIONS:
    for is_double in (False, True):
        check_function(function, is_double)
