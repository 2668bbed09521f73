"""Records what llama.cpp answers with a real model, greedily: tests/golden/real/NAME.json.

    record_real.py LREF MODEL.gguf NAME

LREF is ../shared/models/tools/lref.c, built beside llama.cpp's library (LLAMA_BINS names its folder).
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

PROMPTS = ["The capital of France is", "Once upon a time, in a small village by the sea,", "def fibonacci(n):\n",
           "<start_of_turn>user\nName three fruits.<end_of_turn>\n<start_of_turn>model\n"]


def main():
    lref, model, name = sys.argv[1:4]
    texts = []
    for prompt in PROMPTS:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([lref, model, prompt, "64", out.name], check=True, stdout=subprocess.DEVNULL)
            answer = json.load(open(out.name))
        texts.append({"prompt": prompt, "ids": answer["prompt_tokens"],
                      # Of each step what was chosen, then the five best with their logits.
                      "steps": [[step[0], [[i, round(l, 3)] for i, l in step[1:]]] for step in answer["steps"]]})
    with open(model, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "real", name + ".json"), "w") as f:
        f.write('{"sha256": "%s", "texts": [\n' % digest)
        f.write(",\n".join(json.dumps(text, separators=(",", ":")) for text in texts) + "\n]}\n")


main()
