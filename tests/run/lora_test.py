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
F32, F16, STRING = 0, 1, 8


def adapter(path, tensors, architecture="llama", alpha=6.0):
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
        half = number % 2 == 1
        out += text(name) + struct.pack("<IQQIQ", 2, columns, rows, F16 if half else F32, len(data))
        data += struct.pack(f"<{len(numbers)}{'e' if half else 'f'}", *numbers)
        data += b"\0" * (-len(data) % 32)
    out += b"\0" * (-len(out) % 32)
    with open(path, "wb") as f:
        f.write(out + data)
    return path


def main():
    draw = random.Random(SEED)
    listing = QUERN.run("inspect", MODEL)[0]
    rank, tensors = 3, {}
    # Every product of the first layer, by the listing: "blk.0.attn_k.weight       F16    [128, 256]    65.5 KB".
    for line in listing.split("\n"):
        words = line.split()
        name = next((w for w in words if w.startswith("blk.0.") and w.endswith(".weight")), None)
        if name is None or "norm" in name:
            continue
        rows, columns = (int(n) for n in line[line.index("[") + 1:line.index("]")].split(","))
        tensors[name + ".lora_a"] = (rank, columns, [draw.uniform(-1, 1) for _ in range(rank * columns)])
        tensors[name + ".lora_b"] = (rows, rank, [draw.uniform(-1, 1) for _ in range(rank * rows)])
    expect(len(tensors) >= 8, f"seed {SEED}: products of the first layer in", listing)
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
        QUERN.fails("not for graphs", "run", graph, "--lora", path)
        QUERN.fails("not for graphs", "compile", graph, "-o", folder, "--lora", path)


if __name__ == "__main__":
    main()
