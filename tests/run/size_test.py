#!/usr/bin/env python3
"""Prints the sizes of what Quern gives to its users, and fails where one has grown.

  size_test.py BUILD ROOT

LIMITS are bytes of machine code and constant data, as `size` counts text. One that grows for a good reason is raised
here, in the commit that is the reason; one that has become a fifth smaller is to be lowered, so that it guards again.
"""

import pathlib
import subprocess
import sys
import tempfile

BUILD, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
LIMITS = {
    "libquern_kit.a": 13_000,
    "libquern_linear.a": 9_000,
    # 1.7 KB of it are runs that are watched or cancelled, as programs that compile in process have them
    "libquern_rt.a": 10_500,
    "addition.o, x86-64-v2": 250_000,
    "addition.o, x86-64-v3": 198_000,
    "addition.o, x86-64-v4": 290_000,
    "addition.o, all three": 697_000,
    "addition.o, aarch64": 128_000,
    # libLLVM, a shared library of Debian's, not in it; 0.56 MB are the tile of doubles, as objects and as bitcode,
    # 0.08 docs/ops.md, 0.6 what came with verbs, quantisers, tokenizers and ops, and 8.3 the tiles of the seven formats
    # with grids: six each, as objects and as bitcode, for six levels, each with its own numbers; 0.5 came with math of
    # doubles, frame pointers, graphs over bytes, sizes that runs find and kept plans; 0.5 quantisers by an importance;
    # 0.9 the tiles of three formats of one scale a block; 0.4 products of a few rows that ask for what is packed next;
    # 1.1 the tiles of the four formats with scales of f32, and two rows of weights at once beside f32
    "quern": 46_000_000,
}


def text_bytes(path):
    lines = subprocess.run(["size", str(path)], check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    return sum(int(line.split()[0]) for line in lines)


def compiled(folder, name, *flags):
    subprocess.run([BUILD / "bin/quern", "compile", ROOT / "models/addition.gguf", "-o", folder / name, *flags],
                   check=True, stdout=subprocess.DEVNULL)
    return folder / name / "addition.o"


with tempfile.TemporaryDirectory(prefix="quern_size_") as scratch:
    at = pathlib.Path(scratch)
    files = {
        "libquern_kit.a": BUILD / "src/kit/libquern_kit.a",
        "libquern_linear.a": BUILD / "src/linear/libquern_linear.a",
        "libquern_rt.a": BUILD / "src/rt/libquern_rt.a",
        "addition.o, x86-64-v2": compiled(at, "v2", "--cpu", "x86-64-v2"),
        "addition.o, x86-64-v3": compiled(at, "v3", "--cpu", "x86-64-v3"),
        "addition.o, x86-64-v4": compiled(at, "v4", "--cpu", "x86-64-v4"),
        "addition.o, all three": compiled(at, "all", "--cpu", "x86-64-v2,x86-64-v3,x86-64-v4"),
        "addition.o, aarch64": compiled(at, "arm", "--target", "aarch64-linux-gnu"),
        "quern": BUILD / "bin/quern",
    }
    wrong = []
    for name, path in files.items():
        size, limit = text_bytes(path), LIMITS[name]
        print(f"{name:24} {size:>12,} bytes of text, at most {limit:,}")
        if size > limit:
            wrong.append(f"{name} has {size:,} bytes, {limit:,} are allowed")
        if size < 0.8 * limit:
            wrong.append(f"{name} has only {size:,} bytes: lower its limit of {limit:,}")
if wrong:
    sys.exit("\n".join(wrong))
