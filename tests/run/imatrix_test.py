#!/usr/bin/env python3
"""quern imatrix beside llama.cpp's llama-imatrix: the same weights, counts and, to a part in 100000, sums of squares
(tests/golden/importance); that quern quantise takes the file; what is refused, and that nothing is left then.

    imatrix_test.py QUERN SOURCE_DIR MODELS
Needs ../shared/models (MODELS) but for the bundled model.
"""
import os
import struct
import sys
import tempfile

import program
from gguf_file import Gguf

QUERN, SOURCE, MODELS = sys.argv[1:4]
BUNDLED = os.path.join(SOURCE, "models/addition.gguf")
GOLDEN = os.path.join(SOURCE, "tests/golden/importance")


def golden(name):
    return os.path.join(GOLDEN, name)


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def beside_llama_cpp(name, model, text, context, folder, threads="1"):
    out = os.path.join(folder, name + ".gguf")
    program.run(QUERN, "imatrix", "-m", model, "-f", golden(text), "-o", out, "-c", context, "--process-output",
                "--threads", threads)
    made, wanted = Gguf(out), Gguf(golden(name + ".gguf"))
    program.expect(made.tensors.keys() == wanted.tensors.keys(), name,
                   sorted(made.tensors.keys() ^ wanted.tensors.keys()))
    for key in ("general.type", "imatrix.chunk_count", "imatrix.chunk_size"):
        program.expect(made.metadata[key] == wanted.metadata[key], name, key, made.metadata[key], wanted.metadata[key])
    worst = 0.0
    for tensor, (kind, dims, data) in wanted.tensors.items():
        got = made.tensors[tensor]
        program.expect(got[:2] == (kind, dims), name, tensor, got[:2], (kind, dims))
        if tensor.endswith(".counts"):
            program.expect(got[2] == data, name, tensor, floats(got[2]), floats(data))
            continue
        for a, b in zip(floats(got[2]), floats(data)):
            worst = max(worst, abs(a - b) / max(abs(b), 1e-30))
    program.expect(worst < 1e-5, name, "sums are", worst, "apart")
    print(f"{name}: {len(wanted.tensors) // 2} weights, sums at most {worst:.1e} from llama.cpp's")
    return out


def refused(folder):
    out = os.path.join(folder, "out.gguf")
    text = golden("addition.txt")
    for args, sentence in (
            ((BUNDLED, "-f", text, "-c", "64000"), "less than a chunk of 64000 (--context)"),
            ((BUNDLED, "-f", os.path.join(folder, "none.txt")), "none.txt"),
            ((os.path.join(folder, "none.gguf"), "-f", text), "none.gguf"),
            ((golden("addition.gguf"), "-f", text), "general.architecture")):
        error = program.said(QUERN, "imatrix", *args, "-o", out, code=1)
        program.expect(sentence in error and error.count("\n") == 1, args, error)
    error = program.said(QUERN, "imatrix", BUNDLED, "-f", text, "-c", "16", "-o", BUNDLED, code=1)
    program.expect_in(error, "would be written over the input")
    program.expect(not os.listdir(folder), "left behind:", os.listdir(folder))


def main():
    with tempfile.TemporaryDirectory() as folder:
        refused(folder)
        one = beside_llama_cpp("addition", BUNDLED, "addition.txt", 48, folder)
        # The last layer's output is not asked for, and a chunk is counted once.
        some = os.path.join(folder, "some.gguf")
        said = program.run(QUERN, "imatrix", BUNDLED, "-f", golden("addition.txt"), "-o", some, "-c", 48, "--chunks",
                           "2").stderr.decode()
        program.expect_in(said, "by 2 chunks of 48 tokens")
        tensors = Gguf(some).tensors
        program.expect(floats(tensors["blk.0.attn_q.weight.counts"][2]) == (96.0,), tensors.keys())
        program.expect("output.weight.counts" not in tensors, tensors.keys())
        program.run(QUERN, "quantise", BUNDLED, "-o", os.path.join(folder, "small.gguf"), "--type", "Q5_0", "--imatrix",
                    one)
        if not os.path.isdir(os.path.join(MODELS, "gguf")):
            print("skipped: no " + MODELS)
            sys.exit(77)
        # A chunk that is longer than a step, and not a whole number of them.
        beside_llama_cpp("stories260K", os.path.join(MODELS, "gguf/stories260K-F32.gguf"), "story.txt", 300, folder)
        beside_llama_cpp("llama-moe4x2", os.path.join(MODELS, "archs/llama-moe4x2-rand.gguf"), "story.txt", 37, folder)
    print("imatrix: all as it should be")


main()
