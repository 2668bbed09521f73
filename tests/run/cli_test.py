#!/usr/bin/env python3
"""The command line as a user meets it: answers, ids, seeds, and one clear sentence with exit code 1 for bad input.

    cli_test.py QUERN SOURCE_DIR
"""
import os
import subprocess
import sys
import tempfile

QUERN, SOURCE = sys.argv[1:3]
MODEL = os.path.join(SOURCE, "models/addition.gguf")


def run(*args):
    return subprocess.run([QUERN, *args], capture_output=True, text=True)


def expect(condition, what, result):
    if not condition:
        sys.exit(f"{what}\n  stdout: {result.stdout!r}\n  stderr: {result.stderr!r}\n  exit code: {result.returncode}")


def fails(sentence, *args):
    result = run(*args)
    expect(result.returncode == 1, f"{args} must exit with 1", result)
    expect(sentence in result.stderr, f"{args} must say {sentence!r}", result)
    expect(result.stderr.count("\n") == 1, f"{args} must print one line", result)


answer = run("run", MODEL, "--prompt", "27+58=")
expect(answer.returncode == 0 and answer.stdout == "85\n", "27+58 is 85", answer)
for word in ("load", "compile", "prefill", "decode"):
    expect(word in answer.stderr, f"the summary names {word}", answer)

ids = run("run", MODEL, "--tokens-in", "1,261,266,269,264,267,270", "--tokens", "2", "--ids")
text = run("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--ids")
expect(ids.stdout == text.stdout and len(ids.stdout.split()) == 2, "ids in and text in agree", ids)

one = run("run", MODEL, "--prompt", "27+58=", "--threads", "1", "--exact")
expect(one.stdout == "85\n", "one thread, exact", one)

hot = [run("run", MODEL, "--prompt", "3", "--temp", "1.5", "--seed", seed, "--tokens", "20", "--ids").stdout for seed in ("7", "7", "8")]
expect(hot[0] == hot[1] != hot[2], "a seed reproduces a run", answer)

for level in ("x86-64-v2", "x86-64-v3"):
    result = run("run", MODEL, "--prompt", "27+58=", "--cpu", level)
    expect(result.stdout == "85\n", level, result)

with tempfile.TemporaryDirectory(prefix="quern_cli_") as folder:
    broken = os.path.join(folder, "broken.gguf")
    with open(MODEL, "rb") as f, open(broken, "wb") as g:
        g.write(f.read()[:100000])
    fails("reaches past the end of the file", "run", broken, "--prompt", "1")
    other = os.path.join(folder, "text.gguf")
    with open(other, "w") as g:
        g.write("hello, world")
    fails("not a GGUF file", "run", other, "--prompt", "1")
fails("cannot open", "run", "/nonexistent.gguf", "--prompt", "1")
fails("out of range", "run", MODEL, "--tokens-in", "1,99999")
fails("unknown cpu level", "run", MODEL, "--prompt", "1", "--cpu", "pentium")
fails("--tokens", "run", MODEL, "--prompt", "1", "--tokens", "-3")
fails("MODEL", "run")

inspect = run("inspect", MODEL)
expect("token_embd.weight" in inspect.stdout and "general.architecture" in inspect.stdout, "inspect lists keys and tensors", inspect)
for stage, word in (("hir", "LlamaDecoderBlock"), ("mir", "MatMul"), ("lir", "arena"), ("kir", "kernel"), ("llvm", "define"), ("asm", "ret")):
    result = run("dump", MODEL, "--stage", stage)
    expect(result.returncode == 0 and word in result.stdout, f"dump --stage {stage} holds {word}", result)
help_text = run("--help")
expect(help_text.returncode == 0 and "Examples" in help_text.stdout, "help has examples", help_text)
print("the command line does what it says")
