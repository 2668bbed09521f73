#!/usr/bin/env python3
"""quern quantise beside llama.cpp's files: the same weights in every type, tensor by tensor and byte by byte; a folder
of safetensors beside the GGUF file of it; what is refused, and that nothing is left then.

    quantise_test.py QUERN SOURCE_DIR MODELS
Needs ../shared/models (MODELS) for the first two; the rest by the bundled model.
"""
import os
import struct
import subprocess
import sys
import tempfile

import program

QUERN, SOURCE, MODELS = sys.argv[1:4]
BUNDLED = os.path.join(SOURCE, "models/addition.gguf")
SIZES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
         11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
         34: (256, 54), 35: (256, 66)}
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Gguf:
    """Metadata (type and value) and tensors (type, extents, bytes) of a file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        if self.data[:4] != b"GGUF":
            sys.exit(f"{path} is no GGUF file")
        self.at = 4
        self.version, tensors, keys = self.number("<I"), self.number("<Q"), self.number("<Q")
        self.metadata = {}
        for _ in range(keys):
            key = self.text()
            kind = self.number("<I")
            self.metadata[key] = (kind, self.value(kind))
        rows = []
        for _ in range(tensors):
            name, rank = self.text(), self.number("<I")
            dims = [self.number("<Q") for _ in range(rank)]
            rows.append((name, dims, self.number("<I"), self.number("<Q")))
        start = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, dims, kind, offset in rows:
            elements, size = SIZES[kind]
            count = size
            for dim in dims:
                count *= dim
            self.tensors[name] = (kind, dims, self.data[start + offset:start + offset + count // elements])

    def number(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.number("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            each, count = self.number("<I"), self.number("<Q")
            return each, [self.value(each) for _ in range(count)]
        return self.number(FORMATS[kind])


def run(*args, code=0):
    return program.run(QUERN, "quantise", *args, code=code, timeout=300)


def same(made, wanted, what):
    """Every tensor of `wanted` is in `made`, of the same type, extents and bytes."""
    if made.tensors.keys() != wanted.tensors.keys():
        sys.exit(f"{what}: tensors are {sorted(made.tensors.keys() ^ wanted.tensors.keys())} apart")
    for name, (kind, dims, data) in wanted.tensors.items():
        got = made.tensors[name]
        if got[0] != kind or got[1] != dims:
            sys.exit(f"{what}: {name} is {got[:2]}, {(kind, dims)} expected")
        if got[2] != data:
            differ = sum(a != b for a, b in zip(got[2], data))
            sys.exit(f"{what}: {differ} of {len(data)} bytes of {name} differ")


def beside_llama_cpp(folder):
    # One file was not made from the F32 file: where a weight of that lies midway between two halves it may have either.
    files = sorted(set(os.listdir(os.path.join(MODELS, "gguf"))) - {"stories260K-wide256-F16.gguf"})
    count = 0
    for file in files:
        model, kind = file.removesuffix(".gguf").rsplit("-", 1)
        out = os.path.join(folder, file)
        source = os.path.join(MODELS, "gguf", model + "-F32.gguf")
        run(source, "-o", out, "--type", kind)
        wanted, made = Gguf(os.path.join(MODELS, "gguf", file)), Gguf(out)
        same(made, wanted, file)
        for key, value in Gguf(source).metadata.items():
            if key not in ("general.file_type", "general.quantization_version") and made.metadata[key] != value:
                sys.exit(f"{file}: {key} is {made.metadata[key]}")
        if kind != "F32" and made.metadata["general.file_type"] != wanted.metadata["general.file_type"]:
            sys.exit(f"{file}: general.file_type is {made.metadata['general.file_type']}")
        count += 1
    print(f"the weights of {count} files are llama.cpp's, byte by byte")


def refused(folder):
    out = os.path.join(folder, "out.gguf")
    for args, sentence in (
            ((BUNDLED, "-o", out, "--type", "Q4_X"), 'there is no type "Q4_X" to quantise to: there are F32, '),
            ((os.path.join(folder, "none.gguf"), "-o", out), "none.gguf"),
            ((BUNDLED, "-o", os.path.join(folder, "no/folder.gguf")), "cannot write"),
            ((BUNDLED, "-o", BUNDLED), "would be written over the input")):
        error = run(*args, code=1).stderr.decode()
        if sentence not in error or error.count("\n") != 1:
            sys.exit(f"quantise {args} says {error!r}, not {sentence!r}")
    # A model of blocks, and weights that are no numbers.
    q8 = os.path.join(folder, "q8.gguf")
    run(BUNDLED, "-o", q8, "--type", "Q8_0")
    error = run(q8, "-o", out, "--type", "Q4_0", code=1).stderr.decode()
    if "quantising it again loses more" not in error:
        sys.exit(f"blocks: {error!r}")
    run(q8, "-o", out, "--type", "Q4_0", "--requantise")
    os.unlink(out)
    with open(BUNDLED, "rb") as file:
        data = bytearray(file.read())
    data[-64:] = b"\xff\x7f" * 32  # NaN, as halves and as floats
    bad = os.path.join(folder, "nan.gguf")
    with open(bad, "wb") as file:
        file.write(data)
    error = run(bad, "-o", out, "--type", "Q8_0", code=1).stderr.decode()
    if "it cannot be quantised" not in error:
        sys.exit(f"NaN: {error!r}")
    with open(bad, "wb") as file:
        file.write(data[:len(data) // 2])
    run(bad, "-o", out, "--type", "Q8_0", code=1)
    left = sorted(os.listdir(folder))
    if left != ["nan.gguf", "q8.gguf"]:
        sys.exit(f"left behind: {left}")
    # The same bytes for any number of threads; a quantised model still adds.
    one = os.path.join(folder, "one.gguf")
    run(BUNDLED, "-o", one, "--type", "Q8_0", "--threads", "3")
    with open(one, "rb") as a, open(q8, "rb") as b:
        if a.read() != b.read():
            sys.exit("bytes depend on threads")
    text = subprocess.run([QUERN, "run", q8, "--prompt", "27+58="], capture_output=True, check=True).stdout
    if b"85" not in text:
        sys.exit(f"the quantised model says {text!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        refused(folder)
    if not os.path.isdir(os.path.join(MODELS, "gguf")):
        print("skipped: no " + MODELS)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        beside_llama_cpp(folder)
        out = os.path.join(folder, "folder.gguf")
        run(os.path.join(MODELS, "safetensors/stories260K/model-F32.safetensors"), "-o", out, "--type", "Q8_0")
        same(Gguf(out), Gguf(os.path.join(MODELS, "gguf/stories260K-Q8_0.gguf")), "a folder")
    print("quantise: all as it should be")


main()
