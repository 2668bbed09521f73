#!/usr/bin/env python3
"""quern quantise beside llama.cpp's files: the same weights in every type, tensor by tensor and byte by byte; a folder
of safetensors beside the GGUF file of it; by an importance matrix beside llama.cpp's by it
(tests/golden/importance); what is refused, and that nothing is left then.

    quantise_test.py QUERN SOURCE_DIR MODELS
Needs ../shared/models (MODELS) for the first two; the rest by the bundled model and one that is made here.
"""
import os
import subprocess
import sys
import tempfile

import program
from gguf_file import Gguf, digest

QUERN, SOURCE, MODELS = sys.argv[1:4]
BUNDLED = os.path.join(SOURCE, "models/addition.gguf")
IMPORTANCE = os.path.join(SOURCE, "tests/golden/importance")
sys.path.insert(0, IMPORTANCE)
import synthetic  # pylint: disable=wrong-import-position


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


def by_importance(folder):
    model, out = os.path.join(folder, "model.gguf"), os.path.join(folder, "out.gguf")
    matrices = {form: os.path.join(folder, "importance." + form) for form in ("gguf", "dat")}
    synthetic.write_model(model)
    synthetic.write_importance(matrices["gguf"])
    synthetic.write_importance_dat(matrices["dat"])
    count = 0
    with open(os.path.join(IMPORTANCE, "mixtures.txt"), encoding="ascii") as file:
        for line in file:
            form, kind, wanted = line.strip().split(" ", 2)
            run(model, "-o", out, "--type", kind, "--imatrix", matrices[form])
            made = Gguf(out)
            if digest(made) != wanted:
                types = zip(sorted(made.tensors), *(text.split()[1].split(",") for text in (digest(made), wanted)))
                sys.exit(f"{kind} by {form}: not llama.cpp's; of other types: {[t for t in types if t[1] != t[2]]}")
            count += 1
    for key, value in (("file", matrices["dat"]), ("dataset", "some text"), ("entries_count", 113),
                       ("chunks_count", 5)):
        if made.metadata["quantize.imatrix." + key][1] != value:
            sys.exit(f"quantize.imatrix.{key} is {made.metadata['quantize.imatrix.' + key]}")
    listed = run(model, "-o", out, "--type", "Q4_K", "--imatrix", matrices["gguf"], "--list")
    program.expect(listed.stdout.decode().count("by importance") == 102, listed.stdout.decode())
    program.expect_in(listed.stderr.decode(), "102 by importance: ")
    os.unlink(out)
    for args, sentence in (
            ((model, "--type", "Q2_K_S"), "the type Q2_K_S needs an importance matrix (--imatrix), with the tensor"),
            ((model, "--type", "Q2_K_S", "--imatrix", matrices["gguf"]), "the type Q2_K_S needs an importance matrix"),
            ((model, "--imatrix", os.path.join(folder, "none.gguf")), "none.gguf"),
            ((model, "--imatrix", model), 'general.type is not "imatrix"'),
            ((BUNDLED, "--imatrix", matrices["gguf"]), "has 256 numbers, the model's tensor 1 matrices of"),
            ((model, "--imatrix", os.path.join(IMPORTANCE, "story.txt")), "the file ends inside")):
        error = run(*args, "-o", out, code=1).stderr.decode()
        if sentence not in error or error.count("\n") != 1 or os.path.exists(out):
            sys.exit(f"quantise {args} says {error!r}, not {sentence!r}")
    error = run(model, "-o", matrices["gguf"], "--imatrix", matrices["gguf"], code=1).stderr.decode()
    program.expect_in(error, "would be written over the input")
    print(f"{count} files by an importance are llama.cpp's, byte by byte")


def main():
    with tempfile.TemporaryDirectory() as folder:
        refused(folder)
    with tempfile.TemporaryDirectory() as folder:
        by_importance(folder)
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
