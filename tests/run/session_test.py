#!/usr/bin/env python3
"""quern run and quern chat with --session, and quern run --report.

    session_test.py QUERN SOURCE_DIR
"""
import json
import os
import sys
import tempfile

from program import Program, expect
from random_mamba import random_mamba
from model_keys import with_template

QUERN, SOURCE = Program(sys.argv[1]), sys.argv[2]
MODEL = os.path.join(SOURCE, "models/addition.gguf")
ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def said(*args, model=MODEL):
    out, err = QUERN.run("run", model, "--report", "--invariant", *args)
    expect(not err and out.count("\n") == 1, "one line of JSON alone:", out, err)
    return json.loads(out)


def runs(folder):
    path = os.path.join(folder, "a.session")
    keep = ("--session", path)
    text = "1+2=3, 3+4=7, 5+6=11, "
    ids = QUERN.run("tokenize", MODEL, "--ids", text)[0].strip().split(",")
    whole = said("--prompt", text + "27+58=", "--tokens", "5")
    first = said("--prompt", text, "--tokens", "3", *keep)
    expect(first["reused_tokens"] == 0 and first["prompt_tokens"] == len(ids), "there was no file:", first)
    second = said("--prompt", text + "27+58=", "--tokens", "5", *keep)
    expect(second["reused_tokens"] == len(ids), f"all of {len(ids)} tokens are those of the file:", second)
    expect(second["prompt_tokens"] == whole["prompt_tokens"] and second["text"] == whole["text"], second, whole)
    # The whole text, what was drawn among it, is there; the last token of a prompt is run in any case.
    third = said("--prompt", text + "27+58=", "--tokens", "5", *keep)
    expect(third["reused_tokens"] == third["prompt_tokens"] - 1 and third["text"] == whole["text"], third, whole)
    other = said("--prompt", "9+9=", *keep)
    expect(other["text"] == said("--prompt", "9+9=")["text"] and other["reused_tokens"] <= 1, "another text:", other)
    # Penalties look back on tokens that were not run again.
    hot = ("--temp", "1.5", "--seed", "3", "--repeat-penalty", "1.5", "--tokens", "9", "--prompt", text)
    expect(said(*hot, *keep)["text"] == said(*hot)["text"] == said(*hot, *keep)["text"], "penalties see all")
    expect(said("--prompt", text, "--tokens", "0", *keep)["ids"] == [], "nothing is drawn")
    report = said("--tokens-in", "1,261,266,269,264,267,270", "--tokens", "2", "--ids")
    expect(report["ending"] == "tokens" and len(report["ids"]) == 2 and report["text"] == "", report)
    expect(said("--prompt", "27+58=")["ending"] == "end", "an end token ends")


def states(folder):
    """Of a model whose states go on with every token a file has the last: for what begins with all of its text."""
    path = os.path.join(folder, "d.session")
    model = random_mamba(MODEL, folder)
    ask = ("--prompt", "12+34=", "--tokens", "1", "--session", path)
    first = said(*ask, model=model)
    for prompt, reused in (("12+34=5", first["prompt_tokens"]), ("12+35=", 0)):
        more = ("--prompt", prompt, "--tokens", "12", "--ids")
        alone, kept = said(*more, model=model), said(*more, "--session", path, model=model)
        expect(kept["ids"] == alone["ids"] and kept["reused_tokens"] == reused, kept, alone)


def refused(folder):
    path = os.path.join(folder, "b.session")
    ask = ("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--session", path)
    QUERN.run(*ask)
    good = read(path)
    for damaged in (good[:-1], good[:40], good[:7], b"", b"GGUF" + good[4:], good + b"x",
                    *(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:] for at in (9, 45, 75, 90, 120, len(good) - 5))):
        write(path, damaged)
        QUERN.fails(path + ": ", *ask)
        expect(read(path) == damaged, "a file that is refused is left as it is")
    write(path, good)
    other = with_template(MODEL, folder, "other.gguf", ALL)
    QUERN.fails("of another model", "run", other, *ask[2:])
    QUERN.fails("do not fit", *ask, "--context", "5")
    QUERN.fails("bytes, not", *ask, "--exact")
    expect(read(path) == good, "nothing is lost")
    model = os.path.join(folder, "model.gguf")
    write(model, read(MODEL))
    QUERN.fails("over the input", "run", model, "--prompt", "1", "--session", model)
    expect(read(model) == read(MODEL), "the model is as it was")
    QUERN.fails("cannot", *ask[:-1], os.path.join(folder, "no/such/folder/file"))
    QUERN.fails("Is a directory", *ask[:-1], folder)
    QUERN.fails("excludes", *ask, "--logits", os.path.join(folder, "l"), code=2)


def chats(folder):
    model = with_template(MODEL, folder, "chat.gguf", ALL)
    path = os.path.join(folder, "c.session")
    talk = ("chat", model, "--tokens", "3", "--invariant")
    whole = QUERN.run(*talk, input=b"1+1=\n2+2=\n3+3=\n")[0].split("\n")
    first = QUERN.run(*talk, "--session", path, input=b"1+1=\n2+2=\n")[0].split("\n")
    out, err = QUERN.run(*talk, "--session", path, input=b"3+3=\n")
    expect(first[:2] + out.split("\n")[:1] == whole[:3], "a talk goes on:", first, out, whole)
    prompt = int(err.split("prefill ")[1].split()[0])
    expect(prompt <= 8, "and runs what is new alone:", err)
    saved = os.path.join(folder, "talk.json")
    QUERN.run(*talk, "--session", path, "--system", "7", input=f"/save {saved}\n".encode())
    with open(saved, encoding="utf-8") as f:
        roles = [message["role"] for message in json.load(f)]
    expect(roles == ["system"] + ["user", "assistant"] * 3, "the conversation is in the file:", roles)


def main():
    with tempfile.TemporaryDirectory() as folder:
        runs(folder)
        states(folder)
        refused(folder)
        chats(folder)


if __name__ == "__main__":
    main()
