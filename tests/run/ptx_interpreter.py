"""Runs PTX text on the CPU: the instructions that codegen/ptx emits, one block after the other.

    kernel = Kernel(text)
    kernel.run(blocks=3, params=[address, address, 17], memory=memory)

The threads of a block go on by themselves until one stands at an instruction that needs others: a shuffle or matrix product waits for
its warp, a barrier for the block. Registers hold bits. An instruction that is not known is an error, as is an address outside
every buffer. Fragments of matrices follow the PTX ISA, "Matrix fragments for mma.m16n8k16".
"""
import math
import operator
import re
import struct
from fractions import Fraction


def to_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def to_bits(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def to_double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def double_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


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


TO_FLOAT = {"f32": to_float, "f64": to_double, "f16": half, "bf16": brain}
FROM_FLOAT = {"f32": to_bits, "f64": double_bits, "f16": to_half, "bf16": to_brain}


def signed(value, width):
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def divided(a, b):
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if b == 0:
        return math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def fused(kind, a, b, c):
    if kind == "f32" or not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c  # of f32 the product is exact
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return math.copysign(math.inf, exact)


def compare(name, a, b):
    if math.isnan(a) or math.isnan(b):
        return name.endswith("u") or name == "nan"
    return name == "num" or name != "nan" and COMPARE[name[:2]](a, b)


def real(name, parts, a):
    """An instruction on floats, in double: the caller rounds."""
    if name == "setp":
        return compare(parts[1], *a)
    if name in ("min", "max"):
        numbers = [x for x in a if not math.isnan(x)]
        if len(numbers) < 2 and ("NaN" in parts or not numbers):
            return math.nan
        return (min if name == "min" else max)(numbers)
    if name == "ex2":
        return math.nan if math.isnan(a[0]) else 2.0 ** a[0] if abs(a[0]) < 1000 else (0.0 if a[0] < 0 else math.inf)
    if name == "sqrt":
        return math.sqrt(a[0]) if a[0] >= 0 else math.nan
    return REAL[name](parts[-1], *a)


REAL = {"add": lambda _, a, b: a + b, "sub": lambda _, a, b: a - b, "mul": lambda _, a, b: a * b, "div": lambda _, a, b: divided(a, b),
        "fma": fused, "rcp": lambda _, a: divided(1.0, a), "neg": lambda _, a: -a, "abs": lambda _, a: abs(a)}


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def whole(name, parts, a, width):
    """An instruction on integers, before it wraps."""
    return COMPARE[parts[1]](*a) if name == "setp" else WHOLE[name](parts, width, *a)


COMPARE = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}
WHOLE = {"add": lambda p, w, a, b: a + b, "sub": lambda p, w, a, b: a - b, "mul": lambda p, w, a, b: a * b >> (w if p[1] == "hi" else 0),
         "mad": lambda p, w, a, b, c: a * b + c, "or": lambda p, w, a, b: a | b, "and": lambda p, w, a, b: a & b,
         "xor": lambda p, w, a, b: a ^ b, "not": lambda p, w, a: ~a, "neg": lambda p, w, a: -a, "abs": lambda p, w, a: abs(a),
         "shl": lambda p, w, a, b: a << min(b, w), "shr": lambda p, w, a, b: a >> min(b, w), "min": lambda p, w, *a: min(a),
         "max": lambda p, w, *a: max(a), "div": lambda p, w, a, b: quotient(a, b), "rem": lambda p, w, a, b: a - quotient(a, b) * b,
         "bfe": lambda p, w, a, b, c: signed(a >> b, c) if p[-1][0] == "s" else (a >> b) & ((1 << c) - 1)}


def convert(parts, value):
    to, source, rounding = parts[-2], parts[-1], parts[1]
    if source[0] in "us":
        value = signed(value, int(source[1:])) if source[0] == "s" else value & ((1 << int(source[1:])) - 1)
        # Of 64 bits, so that rounding to f32 rounds once.
        return FROM_FLOAT[to](float(value) if to != "f32" else nearest_float(value)) if to in FROM_FLOAT else value
    number = TO_FLOAT[source](value)
    if to in FROM_FLOAT and (rounding in ("rn", "f32", "f64") or not math.isfinite(number)):
        return FROM_FLOAT[to](number)
    if math.isnan(number):
        return 0
    least, most = (-(1 << int(to[1:]) - 1), (1 << int(to[1:]) - 1) - 1) if to[0] == "s" else (0, (1 << int(to[1:])) - 1)
    if math.isinf(number):
        return most if number > 0 else least
    number = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[rounding](number)
    return FROM_FLOAT[to](math.copysign(number, TO_FLOAT[source](value))) if to in FROM_FLOAT else min(max(number, least), most)


def nearest_float(value):
    shift = max(abs(value).bit_length() - 26, 0)
    lost = value & ((1 << shift) - 1)
    return float((value >> shift | (lost != 0)) << shift)


class Memory:
    """Buffers by address; each is a bytearray."""

    def __init__(self):
        self.buffers = []

    def add(self, data):
        address = (len(self.buffers) + 1) << 32
        self.buffers.append((address, data))
        return address

    def place(self, address, size):
        number = (address >> 32) - 1
        if not 0 <= number < len(self.buffers):
            raise IndexError(f"address {address:#x} is in no buffer")
        base, data = self.buffers[number]
        if address - base + size > len(data):
            raise IndexError(f"{size} bytes at {address - base} of a buffer of {len(data)}")
        if address % size:
            raise IndexError(f"{size} bytes at {address - base}, which is not aligned")
        return data, address - base

    def load(self, address, size):
        data, at = self.place(address, size)
        return int.from_bytes(data[at:at + size], "little")

    def store(self, address, size, value):
        data, at = self.place(address, size)
        data[at:at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


class Thread:
    def __init__(self, number, block):
        self.number, self.block, self.at, self.registers, self.waits = number, block, 0, {}, None
        self.copies, self.groups = [], []  # cp.async: since the last commit, and by commit


class Kernel:
    def __init__(self, text, entry=None):
        self.shared = {name: int(bits) // 8 * int(size or 1)
                       for bits, name, size in re.findall(r"\.shared[^\n]*? \.[a-z](\d+) ([\w$]+)(?:\[(\d+)\])?;", text)}
        text = re.search(r"\.visible \.entry " + (entry or r"\w+") + r"\(.*?^\}", text, re.S | re.M).group(0)
        self.threads = int(re.search(r"\.maxntid (\d+)", text).group(1))
        self.params = re.findall(r"\.param \.u64[^\n]*?(\w+_param_\d+)", text)
        body = re.search(r"^\{(.*)^\}", text, re.S | re.M).group(1)
        self.code, self.labels = [], {}
        body = re.sub(r"//[^\n]*", "", body)
        for piece in body.split(";"):
            piece = " ".join(piece.split()).removeprefix("} ").removeprefix("{ ")
            while label := re.match(r"(\$\w+): ?", piece):
                self.labels[label.group(1)] = len(self.code)
                piece = piece[label.end():]
            if not piece or piece.startswith((".", "}")):
                continue
            guard = re.match(r"@(!?)(%p\d+) ", piece)
            opcode, _, rest = piece[guard.end() if guard else 0:].partition(" ")
            operands = [o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest) if o.strip()]
            self.code.append((guard.groups() if guard else None, opcode, opcode.split("."), operands))

    def run(self, blocks, params, memory):
        for block in range(blocks):
            self.memory = Memory()
            self.memory.buffers = list(memory.buffers)
            self.values = dict(zip(self.params, params, strict=True))
            for name, size in self.shared.items():
                self.values[name] = self.memory.add(bytearray(b"\xa5" * size))  # whatever was there before
            self.run_block([Thread(t, block) for t in range(self.threads)])

    def run_block(self, threads):
        while True:
            for thread in threads:
                while thread.waits is None:
                    self.step(thread)
            moved = False
            for first in range(0, len(threads), 32):
                warp = threads[first:first + 32]
                if warp[0].waits == "warp" and all(t.waits == "warp" and t.at == warp[0].at for t in warp):
                    self.together(warp)
                    moved = True
            if moved:
                continue
            if all(t.waits == "end" for t in threads):
                return
            if not all(t.waits == "block" for t in threads):
                raise RuntimeError("threads wait for different things")
            for thread in threads:
                thread.waits = None
                thread.at += 1

    def value(self, thread, operand):
        if operand.startswith("%"):
            if operand == "%tid.x":
                return thread.number
            if operand == "%ctaid.x":
                return thread.block
            return thread.registers[operand]
        if operand.startswith(("0f", "0d")):
            return int(operand[2:], 16)
        if operand in self.values:
            return self.values[operand]
        return int(operand, 0)

    def address(self, thread, operand):
        base, _, offset = operand[1:-1].partition("+")
        return self.value(thread, base) + (int(offset) if offset else 0)

    def step(self, thread):
        guard, opcode, parts, operands = self.code[thread.at]
        if guard and bool(thread.registers[guard[1]]) == bool(guard[0]):
            thread.at += 1
            return
        name, kind = parts[0], parts[-1]
        if name == "bra":
            thread.at = self.labels[operands[0]]
            return
        if name in ("shfl", "mma", "ldmatrix", "bar", "ret"):
            thread.waits = {"bar": "block", "ret": "end"}.get(name, "warp")
            return
        thread.at += 1
        registers = thread.registers
        width = 16 if kind == "bf16" else int(kind[1:]) if kind[1:].isdigit() else 1
        mask = (1 << width) - 1
        if name == "cp":
            self.copy(thread, parts, operands)
            return
        if name in ("ld", "st"):
            self.move(thread, parts, operands, width // 8)
            return
        if name == "mov" and "{" in operands[0] + operands[1]:
            self.regroup(thread, operands, width)
            return
        a = [self.value(thread, o) for o in operands[1:]]
        if name == "mov":
            result = a[0]
        elif name == "selp":
            result = a[0] if a[2] else a[1]
        elif opcode in ("cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32"):
            low, high = (FROM_FLOAT[parts[2][:-2]](to_float(x)) for x in (a[1], a[0]))
            result, mask = low | high << 16, 0xFFFFFFFF
        elif name == "cvt":
            result, mask = convert(parts, a[0]), (1 << int(re.sub(r"\D+", "", parts[-2].removeprefix("bf")))) - 1
        elif kind in TO_FLOAT:
            result = real(name, parts, [TO_FLOAT[kind](x) for x in a])
            if name != "setp":
                result = FROM_FLOAT[kind](result)
        else:
            result = whole(name, parts, [signed(x, width) if kind[0] == "s" else x & mask for x in a], width)
            if parts[1] == "wide":
                mask = (1 << 2 * width) - 1
        registers[operands[0]] = int(result) & mask if name != "setp" else result

    def move(self, thread, parts, operands, size):
        if parts[1] == "param":
            thread.registers[operands[0]] = self.values[operands[1][1:-1]]
            return
        load = parts[0] == "ld"
        address = self.address(thread, operands[1 if load else 0])
        group = operands[0 if load else 1]
        names = [n.strip() for n in group.strip("{}").split(",")]
        for i, each in enumerate(names):
            if load:
                value = self.memory.load(address + i * size, size)
                thread.registers[each] = signed(value, 8 * size) & (1 << 64) - 1 if parts[-1][0] == "s" else value
            else:
                self.memory.store(address + i * size, size, self.value(thread, each))

    def copy(self, thread, parts, operands):
        """cp.async: the bytes arrive no earlier than a wait_group asks for them."""
        if parts[2] == "commit_group":
            thread.groups.append(thread.copies)
            thread.copies = []
        elif parts[2] == "wait_group":
            while len(thread.groups) > int(operands[0]):
                for to, source, size, given in thread.groups.pop(0):
                    value = self.memory.load(source, size) if given == size else 0
                    self.memory.store(to, size, value)
        else:
            size = int(operands[2], 0)
            given = self.value(thread, operands[3]) if len(operands) > 3 else size
            if given not in (0, size):
                raise NotImplementedError(f"{given} of {size} bytes")
            thread.copies.append((self.address(thread, operands[0]), self.address(thread, operands[1]), size, given))

    def regroup(self, thread, operands, width):
        """mov between a register and the parts of one, in braces."""
        inside, outside = (0, 1) if "{" in operands[0] else (1, 0)
        names = [n.strip() for n in operands[inside].strip("{}").split(",")]
        part = width // len(names)
        if inside == 1:
            thread.registers[operands[0]] = sum((self.value(thread, n) & ((1 << part) - 1)) << i * part for i, n in enumerate(names))
            return
        for i, each in enumerate(names):
            thread.registers[each] = self.value(thread, operands[outside]) >> i * part & ((1 << part) - 1)

    def together(self, warp):
        _, opcode, parts, operands = self.code[warp[0].at]
        if parts[0] == "shfl":
            if parts[2] != "bfly":
                raise NotImplementedError(opcode)
            given = [self.value(t, operands[1]) for t in warp]
            for lane, thread in enumerate(warp):
                thread.registers[operands[0].split("|")[0]] = given[lane ^ self.value(thread, operands[2])]
        elif parts[0] == "ldmatrix":
            self.load_matrices(warp, int(parts[4][1:]), operands)
        else:
            self.multiply(warp, brain if "bf16" in parts else half, operands)
        for thread in warp:
            thread.waits = None
            thread.at += 1

    def load_matrices(self, warp, count, operands):
        names = [n.strip() for n in operands[0].strip("{}").split(",")]
        for i in range(count):
            rows = [self.memory.load(self.address(t, operands[1]), 16) for t in warp[8 * i:8 * i + 8]]
            for lane, thread in enumerate(warp):
                thread.registers[names[i]] = rows[lane // 4] >> 32 * (lane % 4) & 0xFFFFFFFF

    def multiply(self, warp, element, operands):
        d, a, b, c = ([n.strip() for n in o.strip("{}").split(",")] for o in operands)
        left = [[0.0] * 16 for _ in range(16)]
        right = [[0.0] * 8 for _ in range(16)]
        for lane, thread in enumerate(warp):
            group, pair = lane // 4, lane % 4 * 2
            for r, name in enumerate(a):
                for part in range(2):
                    left[group + 8 * (r % 2)][pair + part + 8 * (r // 2)] = element(self.value(thread, name) >> 16 * part)
            for r, name in enumerate(b):
                for part in range(2):
                    right[pair + part + 8 * r][group] = element(self.value(thread, name) >> 16 * part)
        for lane, thread in enumerate(warp):
            group, pair = lane // 4, lane % 4 * 2
            sums = []
            for r, name in enumerate(c):
                row, column = group + 8 * (r // 2), pair + r % 2
                sums.append(to_bits(to_float(self.value(thread, name)) + sum(left[row][k] * right[k][column] for k in range(16))))
            for name, bits in zip(d, sums, strict=True):
                thread.registers[name] = bits
