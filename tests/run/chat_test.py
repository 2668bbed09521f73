#!/usr/bin/env python3
"""quern chat and quern run --chat, with the bundled model and templates put into its file.

    chat_test.py QUERN SOURCE_DIR
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from program import expect, Program
from model_keys import with_template

QUERN, SOURCE = Program(sys.argv[1]), sys.argv[2]
run = QUERN.run
MODEL = os.path.join(SOURCE, "models/addition.gguf")
LAST = "{{ messages[-1].content }}"
ALL = "{% for m in messages %}{{ '#' if m.role == 'system' else '' }}{{ m.content }}{% endfor %}"


def prefilled(summary):
    return int(summary.split("prefill ")[1].split()[0])


def turns(folder):
    last = with_template(MODEL, folder, "last.gguf", LAST)
    expect(run("run", last, "--chat", "--prompt", "27+58=")[0] == "85\n", "one question")
    expect(run("run", last, "--prompt", "27+58=")[0] == "85\n", "without --chat the template is not used")
    expect(run("chat", last, input=b"27+58=\n\n3+4=\n")[0] == "85\n7\n", "two turns")
    # The text grows; what is run is only what is new.
    every = with_template(MODEL, folder, "all.gguf", ALL)
    out, err = run("chat", every, "--tokens", "3", input=b"1+1=\n2+2=\n3+3=\n")
    said = out.split("\n")[:3]
    text = ""
    for question, answer in zip(("1+1=", "2+2=", "3+3="), said):
        text += question
        expect(run("run", every, "--prompt", text, "--tokens", "3")[0] == answer + "\n", "the same as in one go:", text)
        text += answer
    ids = run("tokenize", every, "--ids", text)[0].split(",")
    expect(prefilled(err) <= len(ids), "a turn runs only its own tokens:", prefilled(err), "of", len(ids))
    out, _ = run("run", every, "--chat", "--system", "7", "--prompt", "1+1=", "--ids", "--tokens", "1")
    want, _ = run("run", every, "--prompt", "#71+1=", "--ids", "--tokens", "1")
    expect(out == want, "a system prompt")
    one, two = (run("chat", every, "--temp", "1.5", "--seed", "5", "--threads", n, input=b"1+1=\n5+5=\n")[0]
                for n in ("1", "2"))
    expect(one == two, "the same seed, the same talk, on any number of threads")


def commands(folder):
    every = with_template(MODEL, folder, "all.gguf", ALL)
    saved = os.path.join(folder, "saved.json")
    run("chat", every, "--system", "1", input=f"2+2=\n/save {saved}\n".encode())
    with open(saved, encoding="utf-8") as f:
        messages = json.load(f)
    expect([m["role"] for m in messages] == ["system", "user", "assistant"] and messages[1]["content"] == "2+2=",
           "what is saved:", messages)
    again = os.path.join(folder, "again.json")
    run("chat", every, input=f"/load {saved}\n/save {again}\n/quit\nnot read".encode())
    with open(again, encoding="utf-8") as f:
        expect(json.load(f) == messages, "what is loaded is what was saved")
    run("chat", every, input=f"/load {saved}\n/clear\n/save {again}\n/system\n/save {saved}\n".encode())
    with open(again, encoding="utf-8") as f, open(saved, encoding="utf-8") as g:
        expect(json.load(f) == messages[:1] and json.load(g) == [], "/clear keeps the system prompt, /system drops it")
    expect("/save FILE" in run("chat", every, input=b"/help\n")[0], "/help")
    for line, sentence in (("/frob", "there is no /frob"), ("/load /no/such", "cannot open /no/such"),
                           ("/save /no/such/x", "cannot write"), (f"/load {every}", "no conversation"),
                           ("1+1=" * 500, "do not fit the context")):
        _, err = run("chat", every, "--context", "32", input=line.encode(), code=1)
        expect(sentence in err and err.startswith("quern: "), line[:30], "says", sentence, "not", err)
    _, err = run("chat", every, "--context", "12", "--logit-bias", "2=-inf", input=b"1+1=\n")
    expect("the context of 12 positions is full" in err, "a full context is said", err)


def errors(folder):
    for args in (("chat", MODEL), ("run", MODEL, "--chat", "--prompt", "1")):
        _, err = run(*args, input=b"", code=1)
        expect("has no chat template" in err, err)
    broken = with_template(MODEL, folder, "broken.gguf", "a\n{{ 1 + }}")
    expect("chat template, 2:8: an expression expected" in run("chat", broken, input=b"1\n", code=1)[1], "its place")
    refuses = with_template(MODEL, folder, "refuses.gguf", "{{ raise_exception('no ' + messages[0].role) }}")
    expect("the template refuses: no user" in run("chat", refuses, input=b"1\n", code=1)[1], "what it refuses")
    own = os.path.join(folder, "own.jinja")
    with open(own, "w", encoding="utf-8") as f:
        f.write("{{ messages[0].content }}{{ plus }}")
    expect(run("run", MODEL, "--chat", "--template", own, "--prompt", "27+58=")[0] == "85\n", "a template of a file")
    out, _ = run("chat", MODEL, "--template", own, "--template-variables", '{"plus": "8="}', input=b"27+5\n")
    expect(out == "85\n", "variables", out)
    _, err = run("chat", MODEL, "--template", own, "--template-variables", "[", input=b"1\n", code=1)
    expect("no JSON object" in err, err)


def interrupt(folder):
    """Ctrl-C stops an answer; the next line is answered."""
    last = with_template(MODEL, folder, "last.gguf", LAST)
    talk = subprocess.Popen([QUERN.path, "chat", last, "--logit-bias", "2=-inf", "--context", "100000", "--tokens",
                             "1000000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    talk.stdin.write(b"27+58=\n")
    talk.stdin.flush()
    expect(talk.stdout.read(2) == b"85", "an answer begins")
    time.sleep(0.2)
    talk.send_signal(signal.SIGINT)
    while talk.stdout.read(1) != b"\n":
        pass
    out, err = talk.communicate(b"/quit\n", timeout=60)
    expect(talk.returncode == 0 and b"[stopped]" in err and b"decode" in err, "stopped, not ended:", out, err)


with tempfile.TemporaryDirectory(prefix="quern_chat_") as scratch:
    turns(scratch)
    commands(scratch)
    errors(scratch)
    interrupt(scratch)
print("a conversation goes on from where it was")
