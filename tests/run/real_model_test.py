"""Real models answer as llama.cpp does: 64 greedy tokens of each prompt of tests/golden/real.

    real_model_test.py QUERN SOURCE_DIR

QUERN_REAL_MODELS names a folder with NAME.gguf; without it the test is skipped (docs/testing.md says where to get
them).
Both quantise activations to int8, each in its own blocks, so that logits differ a little, and where the two best are
closer than that the texts part. Up to there they have to be equal; and on llama.cpp's own text each of its tokens has
to be all but the best.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import array

from program import said

QUERN, SOURCE = sys.argv[1], sys.argv[2]
NEAR = 0.8  # what int8 activations may make of a logit (../shared/models/README.md)


def quern(model, ids, tokens, logits=None):
    text = said(QUERN, "run", model, "--tokens-in", ",".join(map(str, ids)), "--tokens", tokens, "--ids",
                *(["--logits", logits] if logits else []))
    return [int(i) for i in text.split()]


def check(model, name, golden):
    with open(model, "rb") as f:
        if hashlib.sha256(f.read()).hexdigest() != golden["sha256"]:
            sys.exit(f"{model} is not the file that tests/golden/real/{name} was recorded from")
    for text in golden["texts"]:
        tokenised = subprocess.run([QUERN, "tokenize", model, "--ids", text["prompt"]], capture_output=True, text=True)
        if [int(i) for i in tokenised.stdout.replace(",", " ").split()] != text["ids"]:
            sys.exit(f"{text['prompt']!r} is {tokenised.stdout} {tokenised.stderr}, not {text['ids']}")
        wanted = [step[0] for step in text["steps"]]
        got = quern(model, text["ids"], len(wanted))
        same = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), len(wanted))
        if same < len(wanted):
            best = dict(text["steps"][same][1])
            if got[same] not in best or best[wanted[same]] - best[got[same]] > NEAR:
                sys.exit(f"{text['prompt']!r}: token {same} is {got[same]}, llama.cpp's {wanted[same]} by far: {best}")
        with tempfile.NamedTemporaryFile(suffix=".f32") as file:
            quern(model, text["ids"] + wanted[:-1], 0, file.name)
            rows = array.array("f", file.read())
        width, worst, equal = len(rows) // (len(text["ids"]) + len(wanted) - 1), 0.0, 0
        for i, (chosen, best) in enumerate(text["steps"]):
            row = rows[(len(text["ids"]) - 1 + i) * width:][:width]
            top = max(row)
            equal += row[chosen] == top
            worst = max(worst, *(abs(row[id] - logit) for id, logit in best))
            if top - row[chosen] > NEAR:
                sys.exit(f"{text['prompt']!r}: step {i}: {chosen} is {top - row[chosen]:.2f} below the best")
        print(f"{name}: {text['prompt']!r}: {same} of {len(wanted)} tokens equal, on llama.cpp's text {equal}; "
              f"logits of its five best within {worst:.2f}")


def main():
    folder = os.environ.get("QUERN_REAL_MODELS")
    if not folder:
        return print("skipped: QUERN_REAL_MODELS names no folder of real models")
    golden = os.path.join(SOURCE, "tests", "golden", "real")
    for file in sorted(os.listdir(golden)):
        name = file.removesuffix(".json")
        model = os.path.join(folder, name + ".gguf")
        if not os.path.exists(model):
            print(f"skipped: no {name}.gguf in QUERN_REAL_MODELS")
            continue
        with open(os.path.join(golden, file), encoding="utf-8") as f:
            check(model, name, json.load(f))


main()
