#!/usr/bin/env python3
"""LoRA adapters on the command line, beside the bundled model.

    lora_test.py QUERN SOURCE_DIR
"""
import json
import os
import random
import struct
import sys
import tempfile

from program import Program, expect

QUERN, SOURCE = Program(sys.argv[1]), sys.argv[2]
MODEL = os.path.join(SOURCE, "models/addition.gguf")
SEED = 7
F32, F16, Q8_0, STRING = 0, 1, 8, 8


def blocks(numbers):
    """Of 32 numbers each, in Q8_0: a scale in f16, and as many bytes. The bytes, and what they stand for."""
    data, values = b"", []
    for at in range(0, len(numbers), 32):
        block = numbers[at:at + 32]
        scale = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))[0]
        codes = [max(-127, min(127, round(x / scale))) for x in block]
        data += struct.pack("<e32b", scale, *codes)
        values += [scale * code for code in codes]
    return data, values


def adapter(path, tensors, architecture="llama", alpha=6.0, kinds=(F32, F16)):
    """A file of pairs; `tensors`: NAME -> (rows, columns, numbers)."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    strings = {"general.architecture": architecture, "general.type": "adapter", "adapter.type": "lora"}
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(strings) + 1)
    for key, value in strings.items():
        out += text(key) + struct.pack("<I", STRING) + text(value)
    out += text("adapter.lora.alpha") + struct.pack("<If", 6, alpha)
    data = b""
    for number, (name, (rows, columns, numbers)) in enumerate(tensors.items()):
        kind = kinds[number % len(kinds)]
        out += text(name) + struct.pack("<IQQIQ", 2, columns, rows, kind, len(data))
        data += blocks(numbers)[0] if kind == Q8_0 else struct.pack(f"<{len(numbers)}{'fe'[kind]}", *numbers)
        data += b"\0" * (-len(data) % 32)
    out += b"\0" * (-len(out) % 32)
    with open(path, "wb") as f:
        f.write(out + data)
    return path


def pairs(draw, rank):
    """Numbers for every product of the first layer."""
    listing = QUERN.run("inspect", MODEL)[0]
    tensors = {}
    # By the listing: "blk.0.attn_k.weight       F16    [128, 256]    65.5 KB".
    for line in listing.split("\n"):
        words = line.split()
        name = next((w for w in words if w.startswith("blk.0.") and w.endswith(".weight")), None)
        if name is None or "norm" in name:
            continue
        rows, columns = (int(n) for n in line[line.index("[") + 1:line.index("]")].split(","))
        tensors[name + ".lora_a"] = (rank, columns, [draw.uniform(-1, 1) for _ in range(rank * columns)])
        tensors[name + ".lora_b"] = (rows, rank, [draw.uniform(-1, 1) for _ in range(rank * rows)])
    expect(len(tensors) >= 8, f"seed {SEED}: products of the first layer in", listing)
    return tensors


def damaged(folder, path):
    """Files that are no adapters any more: each is a sentence, with the file's name in it."""
    with open(path, "rb") as f:
        whole = f.read()
    name = b"blk.0.attn_k.weight.lora_a"
    at = whole.index(name) + len(name)  # the number of dimensions, the extents, the type and the place
    other = whole.index(name[:-1] + b"b") + len(name)
    for what, data in {
            "no end": whole[:len(whole) // 2], "no tensors": whole[:at], "nothing": b"",
            "no magic": b"GGUG" + whole[4:], "version": whole[:4] + struct.pack("<I", 77) + whole[8:],
            "as many tensors as there are numbers": whole[:8] + b"\xff" * 8 + whole[16:],
            "as many keys": whole[:16] + b"\xff" * 8 + whole[24:],
            "dimensions": whole[:at] + struct.pack("<I", 9) + whole[at + 4:],
            "an extent": whole[:at + 4] + struct.pack("<Q", 1 << 62) + whole[at + 12:],
            "extents whose product is none": whole[:at + 4] + struct.pack("<QQ", 1 << 33, 1 << 33) + whole[at + 20:],
            "a type": whole[:at + 20] + struct.pack("<I", 1000) + whole[at + 24:],
            "blocks of 32 in rows of 3": whole[:other + 20] + struct.pack("<I", Q8_0) + whole[other + 24:],
            "a place": whole[:at + 24] + struct.pack("<Q", 1 << 40) + whole[at + 32:],
            "a name": whole.replace(name, b"blk.9.attn_k.weight.lora_a", 1)}.items():
        broken = os.path.join(folder, "broken.gguf")
        with open(broken, "wb") as f:
            f.write(data)
        _, err = QUERN.run("run", MODEL, "--prompt", "1", "--lora", broken, code=1)
        expect("broken.gguf" in err and err.count("\n") == 1, "damage of", what, "gives", err)


def main():
    draw = random.Random(SEED)
    tensors = pairs(draw, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = adapter(os.path.join(folder, "a.gguf"), tensors)
        logits = os.path.join(folder, "logits.f32")

        def values(*args):
            QUERN.run("run", MODEL, "--prompt", "27+58=", "--tokens", "1", "--logits", logits, *args)
            with open(logits, "rb") as f:
                data = f.read()
            return struct.unpack(f"<{len(data) // 4}f", data)

        def apart(a, b):
            return max(abs(x - y) for x, y in zip(a, b))

        plain, with_it = values(), values("--lora", path)
        expect(apart(plain, with_it) > 0.1, "an adapter changes logits")
        expect(apart(plain, values("--lora", path + ":0")) == 0, "a scale of 0 changes nothing")
        expect(apart(with_it, values("--lora", path + ":1")) == 0, "1 is the scale where none is given")
        twice = values("--lora", path, "--lora", path + ":1")
        expect(apart(twice, values("--lora", path + ":2")) < 1e-2, "two of them are their sum")
        expect(apart(twice, with_it) > 0.1, "and not one")
        expect(apart(with_it, values("--lora", path, "--threads", "1")) == 0, "any number of threads")
        # In blocks, of a rank that fills one: what their numbers are in f32. Beside blocks activations are quantised.
        large = {name: (r, c, [x / 4 for x in numbers]) for name, (r, c, numbers) in pairs(draw, 32).items()}
        packed = adapter(os.path.join(folder, "q8.gguf"), large, kinds=(Q8_0,))
        unpacked = adapter(os.path.join(folder, "f32.gguf"), kinds=(F32,), tensors={
            name: (r, c, blocks(numbers)[1]) for name, (r, c, numbers) in large.items()})
        wanted = values("--lora", unpacked, "--exact")
        expect(apart(plain, wanted) > 0.1, "an adapter of rank 32 changes logits")
        expect(apart(wanted, values("--lora", packed, "--exact")) < 1e-3, "numbers of Q8_0 are those in f32")
        expect(apart(wanted, values("--lora", packed)) < 0.3, "and near them beside int8 activations")
        QUERN.run("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--lora", packed, "--check", "ref")
        damaged(folder, path)
        # Every kernel beside the interpreter.
        out, err = QUERN.run("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--lora", path, "--check", "ref")
        expect("regions" in err, "the check says what it looked at:", out, err)
        # Compiled ahead of time: the adapter is in the object.
        QUERN.run("compile", MODEL, "-o", folder, "--name", "with_adapter", "--lora", path)
        with open(os.path.join(folder, "with_adapter.json"), encoding="utf-8") as f:
            text = f.read()
        json.loads(text)
        expect("blk.0.ffn_down.weight.lora_a" in text, "the manifest names the adapter's parameters")
        expect("lora_a" in QUERN.run("dump", MODEL, "--stage", "mir", "--lora", path)[0], "so do dumps")

        QUERN.fails("cannot open", "run", MODEL, "--prompt", "1", "--lora", os.path.join(folder, "none.gguf"))
        QUERN.fails("general.type is nothing", "run", MODEL, "--prompt", "1", "--lora", MODEL)
        QUERN.fails("its scale is no finite number", "run", MODEL, "--prompt", "1", "--lora", path + ":nan")
        other = adapter(os.path.join(folder, "b.gguf"), tensors, architecture="gemma")
        QUERN.fails("general.architecture is \"gemma\", \"llama\" expected", "run", MODEL, "--prompt", "1", "--lora",
                    other)
        graph = os.path.join(SOURCE, "bench/graphs/add_1M.qir")
        QUERN.fails("is an option of language models", "run", graph, "--lora", path)
        QUERN.fails("is an option of language models", "compile", graph, "-o", folder, "--lora", path)


if __name__ == "__main__":
    main()
