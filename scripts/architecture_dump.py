#!/usr/bin/env python3
"""Writes the "One block, followed from HIR to assembly" section of docs/architecture.md from what `quern dump` prints.

    scripts/architecture_dump.py build/bin/quern
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs/architecture.md")
MODEL = os.path.join(ROOT, "models/addition.gguf")
BEGIN, END = "<!-- dump:begin -->\n", "<!-- dump:end -->\n"


def dump(quern, *what):
    command = [quern, "dump", MODEL, "--cpu", "x86-64-v3", *what]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lines_with(text, *words):
    return "".join(line + "\n" for line in text.splitlines() if any(word in line for word in words))


def region(text):
    """The Region of the gate and up products, with its body."""
    found = re.search(r"^  %\d+ = Region\([^\n]*layers\.0/ffn/gate.*?^  \}\n", text, re.M | re.S)
    return found.group(0) if found else ""


def fenced(title, text, limit=None):
    lines = text.rstrip("\n").splitlines()
    if limit and len(lines) > limit:
        lines = lines[:limit] + [f"... {len(lines) - limit} more lines"]
    return f"{title}\n\n```\n" + "\n".join(lines) + "\n```\n\n"


def main():
    quern = sys.argv[1]
    kernel = ("--kernel", "layers.0/ffn: Mul")
    text = fenced("**HIR**: the blocks of the layer's feed-forward part.",
                  lines_with(dump(quern, "--stage", "hir"), '@"layers.0/ffn', '@"blk.0.ffn'), 12)
    text += fenced("**MIR**, lowered and expanded: the feed-forward part of it.",
                   lines_with(dump(quern, "--dump-after", "dce"), '"layers.0/ffn'), 12)
    text += fenced("**Fused MIR**: both products, the activation and the product of the two are one region.",
                   region(dump(quern, "--stage", "mir")))
    text += fenced("**LIR**: its launch, and where its values live.",
                   lines_with(dump(quern, "--stage", "lir"), "layers.0/ffn"))
    text += fenced("**KIR**: the kernel.", dump(quern, "--stage", "kir", *kernel))
    text += fenced("**LLVM IR**, linked with the bitcode and optimised.", dump(quern, "--stage", "llvm", *kernel), 60)
    text += fenced("**Assembly** (AVX2).", dump(quern, "--stage", "asm", *kernel), 60)
    page = open(PAGE).read()
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    with open(PAGE, "w") as f:
        f.write(head + BEGIN + text + END + tail)


main()
