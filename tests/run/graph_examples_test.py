#!/usr/bin/env python3
"""Examples that compile a graph both ways: what the program prints with the JIT, a C program prints that links what was
compiled ahead of time.

  graph_examples_test.py EXAMPLES SOURCE CC
EXAMPLES is the folder of the built examples, SOURCE the checkout, CC a C compiler.
"""

import json
import pathlib
import sys
import tempfile

from program import said


def check(examples, source, cc, name, model, more, calls):
    jit = said(examples / name)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        said(examples / name, "--compile", folder)
        program = folder / "program"
        sources = [source / "examples" / file for file in (f"{name}_main.c", *more)]
        said(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", source / "include", *sources,
             folder / f"{model}.o", "-lm", "-o", program)
        ahead = said(program)
        named = [call["symbol"] for call in json.loads((folder / f"{model}.json").read_text())["calls"]]
    if jit != ahead or len(jit.split()) < 3:
        sys.exit(f"{name}: the JIT prints\n{jit}ahead of time it is\n{ahead}")
    if named != calls:
        sys.exit(f"{name}: the manifest names the functions {named}, not {calls}")
    print(f"{name}: {jit}", end="")


def main():
    examples, source, cc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    check(examples, source, cc, "generate_loop", "generate", [], [])
    check(examples, source, cc, "custom_op", "smooth", ["median.c"], ["median_filter"])


main()
