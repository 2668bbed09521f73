"""The programs of the README in C++, word for word: compiled against the headers and the shared library, and run.

    readme_test.py SOURCE_DIR COMPILER LIBRARY QUERN
"""
import math
import os
import pathlib
import re
import sys
import tempfile

from program import expect, run, said

SOURCE, COMPILER, LIBRARY, QUERN = sys.argv[1], sys.argv[2], *(os.path.realpath(path) for path in sys.argv[3:5])
MODEL = os.path.join(SOURCE, "models", "addition.gguf")
# What a reader has around a piece: the program, and the memory that it names.
AROUND = """#include <cstdio>
#include <span>
#include <string>
#include <vector>
#include "quern/graph.h"
#include "quern/quern.h"
static int Complain(const std::string& error) {{ std::fprintf(stderr, "%s\\n", error.c_str()); return 1; }}
int main() {{
  const std::vector<float> weights(48 * 80, 0.01f), xs(3 * 48, 0.5f);
  std::vector<float> ys(3 * 80);
  (void)weights, (void)xs, (void)ys;
{piece}
{then}
  return 0;
}}
"""


def built(folder, name, piece, then):
    source, program = folder / (name + ".cc"), folder / name
    source.write_text(AROUND.format(piece=piece, then=then))
    where = os.path.dirname(LIBRARY)
    run(COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-but-set-variable", source, "-o", program,
        "-I" + os.path.join(SOURCE, "include"), LIBRARY, "-Wl,-rpath," + where)
    return said(program, cwd=folder)


def main():
    page = pathlib.Path(SOURCE, "README.md").read_text(encoding="utf-8")
    pieces = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
    expect(len(pieces) == 2, f"the README has {len(pieces)} pieces of C++: say here how each is run")
    with tempfile.TemporaryDirectory(prefix="quern_readme_") as name:
        folder = pathlib.Path(name)
        (folder / "model.gguf").symlink_to(MODEL)
        generated = built(folder, "generate", pieces[0], '  if (!logits.ok()) return Complain(logits.error());')
        by_verb = said(QUERN, "run", MODEL, "--prompt", "Once upon a time", "--tokens", "32")
        expect(generated and generated == by_verb.removesuffix("\n"), f"{generated!r}, of quern run {by_verb!r}")
        ran = built(folder, "graph", pieces[1],
                    '  if (!ran.ok()) return Complain(ran.error());\n  for (const float y : ys) std::printf("%g ", y);')
        values = [float(word) for word in ran.split()]
        total = 48 * 0.5 * 0.01
        wanted = total / (1 + math.exp(-total))
        expect(len(values) == 240 and all(abs(y - wanted) < 1e-5 for y in values), f"{wanted} expected of {values[:3]}")
    print("the README's programs in C++ do what it says")


main()
