#!/usr/bin/env python3
"""Token ids and logits of real model files against the outputs of an independent runtime.

    reference_test.py QUERN MODELS_DIR [--cpu LEVEL]

Tolerances, from the models' README: f32 weights within 1e-3 and the same 128 ids; f32 activations beside other weights
within 1e-3 of the weight-only reference, ids equal but where the two best are closer than that; int8 activations within
0.8, and the mean negative log likelihood of a text within 0.02. Exit code 77 where the models are absent.
"""
import array
import json
import math
import os
import subprocess
import sys
import tempfile

QUERN, MODELS = sys.argv[1:3]
LEVEL = sys.argv[4] if len(sys.argv) > 4 else "native"
VOCABULARY = 512
failures = 0


def quern(model, tokens_in, tokens, exact, logits):
    command = [QUERN, "run", os.path.join(MODELS, "gguf", model + ".gguf"), "--cpu", LEVEL, "--temp", "0", "--ids",
               "--tokens-in", ",".join(map(str, tokens_in)), "--tokens", str(tokens)]
    if exact:
        command.append("--exact")
    if logits:
        command += ["--logits", logits]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    values = array.array("f")
    if logits:
        with open(logits, "rb") as f:
            values.frombytes(f.read())
    return [int(i) for i in run.stdout.split()], values


def reference(name):
    path = os.path.join(MODELS, "ref/llm", name)
    data = json.load(open(path + ".json"))
    values = array.array("f")
    if os.path.exists(path + ".logits.f32"):
        with open(path + ".logits.f32", "rb") as f:
            values.frombytes(f.read())
    return data, values


def check(good, text):
    global failures
    print(("ok    " if good else "FAIL  ") + text)
    failures += not good


def largest_difference(a, b):
    n = min(len(a), len(b))
    return max(abs(x - y) for x, y in zip(a[:n], b[:n])), n // VOCABULARY


def mean_nll(logits, tokens):
    total = 0
    for i, token in enumerate(tokens[1:]):
        row = logits[i * VOCABULARY:(i + 1) * VOCABULARY]
        top = max(row)
        total += math.log(sum(math.exp(x - top) for x in row)) + top - row[token]
    return total / (len(tokens) - 1)


def greedy(model, ref, ref_logits, exact, tolerance, scratch):
    """Decodes token by token; compares ids and logits up to a place where the two best are too close to call."""
    ids, logits = quern(model, ref["prompt_tokens"], len(ref["greedy_ids"]), exact, scratch)
    want = ref["greedy_ids"]
    same = next((i for i, (a, b) in enumerate(zip(ids, want)) if a != b), min(len(ids), len(want)))
    gap = 0
    if same < len(want):
        row = sorted(ref_logits[(len(ref["prompt_tokens"]) - 1 + same) * VOCABULARY:][:VOCABULARY], reverse=True)
        gap = row[0] - row[1]
    rows = (len(ref["prompt_tokens"]) + same) * VOCABULARY
    difference, positions = largest_difference(logits[:rows], ref_logits[:rows])
    mode = "exact" if exact else "default"
    check(difference <= tolerance and (same == len(want) or gap <= 2 * tolerance),
          f"{model} {mode}: {same}/{len(want)} greedy ids, logits within {difference:.2g} over {positions} positions")
    return same


def main():
    if not os.path.isdir(os.path.join(MODELS, "gguf")):
        print(f"skipped: {MODELS} is absent")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="quern_reference_") as folder:
        scratch = os.path.join(folder, "logits")
        for model in ("stories260K-F32", "stories260K-wide256-F32"):
            ref, ref_logits = reference(model + ".once")
            same = greedy(model, ref, ref_logits, False, 1e-3, scratch)
            check(same == 128, f"{model}: all 128 ids")
        wide = ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_M", "Q4_K_S", "Q4_K_M", "Q5_K_M",
                "Q6_K", "IQ4_NL", "IQ4_XS")
        narrow = ("F16", "Q8_0", "Q4_0", "Q4_K_M", "Q6_K")
        models = [f"stories260K-wide256-{w}" for w in wide] + [f"stories260K-{w}" for w in narrow]
        for model in models:
            ref, ref_logits = reference(model + ".weightonly.once")
            greedy(model, ref, ref_logits, True, 1e-3, scratch)
            # Int8 activations: the reference's own tokens, so that one early tie does not end the comparison.
            tokens = ref["prompt_tokens"] + ref["greedy_ids"][:-1]
            _, logits = quern(model, tokens, 0, False, scratch)
            difference, positions = largest_difference(logits, ref_logits)
            check(difference < 0.8, f"{model} default: logits within {difference:.2g} over {positions} positions")
            text, _ = reference(model + ".weightonly.tom")
            _, logits = quern(model, text["prompt_tokens"], 0, False, scratch)
            nll = mean_nll(logits, text["prompt_tokens"])
            check(abs(nll - text["prompt_mean_nll"]) <= 0.02,
                  f"{model} default: mean negative log likelihood {nll:.4f}, reference {text['prompt_mean_nll']:.4f}")
    if failures:
        sys.exit(f"{failures} comparisons failed")


main()
