#!/usr/bin/env python3
"""quern perplexity beside llama.cpp (tests/golden/perplexity/record.cc), for any number of threads; what it prints, and
what is refused.

    perplexity_test.py QUERN SOURCE_DIR MODELS
Needs ../shared/models (MODELS) but for the bundled model.
"""
import json
import os
import sys
import tempfile

import program

QUERN, SOURCE, MODELS = sys.argv[1:4]
BUNDLED = os.path.join(SOURCE, "models/addition.gguf")
TEXTS = os.path.join(SOURCE, "tests/golden/importance")
STORY, ADDITION = os.path.join(TEXTS, "story.txt"), os.path.join(TEXTS, "addition.txt")

# Model, text, tokens of a chunk; llama.cpp's perplexity, and of how many tokens; how far off that may be.
RECORDED = (
    (BUNDLED, ADDITION, 48, 326469630.859036, 161, 1e-3),
    ("stories260K-F32", STORY, 512, 8.208256, 255, 1e-3),
    ("stories260K-F32", STORY, 128, 9.726090, 378, 1e-3),
    ("stories260K-F16", STORY, 128, 9.725061, 378, 1e-3),
    ("stories260K-wide256-Q4_K_M", STORY, 128, 9.988600, 378, 5e-3))
# Model, base, of the story by chunks of 128; llama.cpp's divergence and how many likeliest tokens are the same, and how
# far off those may be: sums of int8 products differ, and so do the few tokens that are nearly as likely as another.
DIVERGED = (
    ("stories260K-wide256-Q4_K_M", "stories260K-wide256-F32", 0.01401572, 362, 0.06),
    ("stories260K-wide256-Q8_0", "stories260K-wide256-F32", 0.00038014, 373, 0.08),
    ("stories260K-wide256-Q2_K", "stories260K-wide256-F32", 0.24398533, 280, 0.02))


def measure(*args):
    return json.loads(program.said(QUERN, "perplexity", *args, "--json"))


def beside_llama_cpp(model, text, chunk, wanted, tokens, apart):
    path = model if model == BUNDLED else os.path.join(MODELS, "gguf", model + ".gguf")
    if not os.path.exists(path):
        print(f"skipped: {path} is not there")
        return
    made = measure(path, "-f", text, "-c", chunk)
    program.expect(made["tokens"] == tokens and made["chunk_size"] == chunk, path, made)
    off = abs(made["perplexity"] / wanted - 1)
    program.expect(off < apart, path, made["perplexity"], "is not", wanted)
    print(f"{os.path.basename(path)}, chunks of {chunk}: {off:.1e} from llama.cpp's")


def diverges_as_in_llama_cpp(model, base, wanted, same, apart):
    paths = [os.path.join(MODELS, "gguf", name + ".gguf") for name in (model, base)]
    if not all(map(os.path.exists, paths)):
        print(f"skipped: {paths} are not there")
        return
    made = measure(paths[0], "-f", STORY, "-c", 128, "--base", paths[1])["base"]
    off = abs(made["divergence"] / wanted - 1)
    program.expect(off < apart, model, made, "is not", wanted)
    program.expect(abs(made["same_top"] * 378 - same) < 4, model, made, "is not", same)
    print(f"{model} from {base}: {off:.1e} from llama.cpp's divergence")


def prints():
    whole = measure(BUNDLED, "-f", ADDITION, "-c", 48, "--threads", 1)
    program.expect(whole == measure(BUNDLED, "-f", ADDITION, "-c", 48, "--threads", 2), "threads change the sum")
    some = program.said(QUERN, "perplexity", BUNDLED, "-f", ADDITION, "-c", "48", "--chunks", "2")
    program.expect_in(some, "perplexity ", " +/- ", ", of 46 tokens in 2 chunks of 48\n")
    itself = program.said(QUERN, "perplexity", BUNDLED, "-f", ADDITION, "-c", "48", "--base", BUNDLED)
    program.expect_in(itself, "from the base, perplexity ",
                      ": divergence 0 +/- 0, at most 0; the same likeliest token 100.00 %\n")
    with open(ADDITION, "rb") as text:
        program.expect(some == program.said(QUERN, "perplexity", BUNDLED, "-f", "-", "-c", "48", "--chunks", "2",
                                            stdin=text), "another text by standard input")


def refused(folder):
    for args, sentence in (
            ((BUNDLED, "-f", ADDITION, "-c", "64000"), "less than a chunk of 64000 (--context)"),
            ((BUNDLED, "-f", ADDITION, "-c", "3"), "a chunk of 3 tokens (--context) is too short: at least 4"),
            ((BUNDLED, "-f", os.path.join(folder, "none.txt")), "none.txt"),
            ((BUNDLED, "-f", ADDITION, "-c", "48", "--base", os.path.join(folder, "none.gguf")), "none.gguf"),
            ((os.path.join(folder, "none.gguf"), "-f", ADDITION), "none.gguf")):
        program.expect_in(program.said(QUERN, "perplexity", *args, code=1), sentence)


def main():
    for row in RECORDED:
        beside_llama_cpp(*row)
    for row in DIVERGED:
        diverges_as_in_llama_cpp(*row)
    prints()
    with tempfile.TemporaryDirectory() as folder:
        refused(folder)
    print("perplexity: all as it should be")


main()
