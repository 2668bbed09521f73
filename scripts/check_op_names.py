#!/usr/bin/env python3
"""Holds every op to its own file: its name, as a string, stands in src/ir/ops and where graphs are made, nowhere else.

  scripts/check_op_names.py [ROOT]       prints each breach as file:line: reason, and a count; exit status 1 if any
  scripts/check_op_names.py --self-test  proves on small examples that it bites

A pass, a kernel family, a plan or a target asks the op table (ir/op.h) what an op is; one that compared names would
have to know each new op. Files that make graphs name the ops that they put there: src/hir, src/models, src/onnx, norms
and other composites, and the builder and parser of src/ir, whose functions make leaves. The registry of C functions is
part of Custom. The steps that If, While and Scan become are rows of src/lir/place_steps.cc. Comments may say
anything.
"""

import pathlib
import re
import sys
import tempfile

MAKERS = ("src/ir/ops/", "src/ir/norm.cc", "src/ir/residual_norm.cc", "src/ir/composite.cc", "src/ir/sort.cc",
          "src/ir/kept.cc", "src/ir/max_places.cc", "src/ir/packed_weight.cc", "src/ir/group_norm_backward.cc",
          "src/ir/recurrent.cc", "src/ir/chunks.cc", "src/ir/small_float.cc", "src/ir/scan_backward.cc",
          "src/ir/philox.cc", "src/ir/pairs.cc", "src/ir/fourier.cc", "src/ir/linear_algebra.cc",
          "src/ir/linear_quantise.cc", "src/ir/integer_product.cc", "src/ir/fake_quantise.cc",
          "src/ir/backward.cc", "src/ir/backward.h",
          "src/ir/norm_backward.cc", "src/ir/cross_entropy.cc", "src/ir/requantise.cc",
          "src/ir/graph.cc", "src/ir/written.cc", "src/ir/spell_attention.cc",
          "src/ir/custom.cc", "src/ir/column_squares.cc", "src/hir/", "src/models/", "src/onnx/",
          "src/lir/place_steps.cc")
NAME = re.compile(r'(?:\.name = |\bLeaf\()"([A-Z]\w*)"')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def code_of(line):
    """A line without its comment; a string that holds // is no comment."""
    out, inside = [], False
    for i, c in enumerate(line):
        if c == '"' and (i == 0 or line[i - 1] != "\\"):
            inside = not inside
        if not inside and line.startswith("//", i):
            break
        out.append(c)
    return "".join(out)


def op_names(root):
    return {name for path in sorted((root / "src/ir/ops").glob("*.cc"))
            for name in NAME.findall(path.read_text(encoding="utf-8"))}


def check(root):
    names, found = op_names(root), []
    for path in sorted((root / "src").rglob("*")):
        place = path.relative_to(root).as_posix()
        if path.suffix not in {".cc", ".h"} or place.startswith(MAKERS):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith("#include"):
                continue
            found += [f"{place}:{number}: the op {name} by name" for name in STRING.findall(code_of(line))
                      if name in names]
    return found, len(names)


def self_test():
    files = {  # text -> breaches
        "src/ir/ops/silu.cc": ('.name = "Silu",', 0),
        "src/opt/pass.cc": ('if (Is(node, "Silu")) return;  // "Silu"', 1),
        "src/opt/comment.cc": ('// MatMul, "Silu"', 0),
        "src/opt/other.cc": ('Say("Silu is fine"); Say("https://x");', 0),
        "src/hir/block.cc": ('Add("Silu")', 0),
        "src/ir/op.h": ('F("http://a", "Silu");', 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for place, (text, _) in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text + "\n", encoding="utf-8")
        found, _ = check(root)
    wrong = [place for place, (_, count) in files.items()
             if sum(line.startswith(place + ":") for line in found) != count]
    for place in wrong:
        print(f"self-test: {place}: expected {files[place][1]} breaches")
    return 1 if wrong else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    found, names = check(root)
    for line in found:
        print(line)
    print(f"{len(found)} breaches, {names} ops")
    return 1 if found or names < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
