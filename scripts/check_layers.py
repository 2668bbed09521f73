#!/usr/bin/env python3
"""Holds the sources to the order of dependence in docs/architecture.md, by their #include lines; well under a second.

  scripts/check_layers.py [ROOT]      prints each breach as file:line: reason, and a count; exit status 1 if any
  scripts/check_layers.py --self-test proves on small examples that every rule bites

Rules:
  - a folder of src/ includes only folders before it in LAYERS; folders of one layer see each other in one direction
    only, and hir and opt not at all
  - ir sees of kir only its expressions (kir, operators, layout, build) and the block formats (decode, quantise)
  - rt, kit and linear, which programs link without the rest, see only public headers and the system
  - simd sees only Highway, abi.h, the numbers of base/formats/grids.h and the standard library; the part that runs once
    per process may see base
  - LLVM headers only in codegen/llvm, codegen/cpu, codegen/ptx, jit and aot; the command-line parser only in tools
  - public headers include public headers only
  - c, the coat for C, sees public headers and its own
  - in src/codegen, a target's name appears in that target's own folder only
"""

import pathlib
import re
import sys

LAYERS = [
    ["rt", "kit", "linear"], ["base"], ["kir"], ["simd"], ["ir"], ["family"], ["hir", "opt"], ["codegen"], ["lir"],
    ["cache"], ["jit", "aot"], ["runtime"],
    ["import", "onnx", "text", "chat", "models", "generate", "profile", "check", "device"], ["compiler"],
    ["c", "serve"],
]
RANK = {folder: rank for rank, layer in enumerate(LAYERS) for folder in layer}
STRANGERS = {("hir", "opt"), ("opt", "hir")}
KIR_EXPRESSION_HEADERS = re.compile(r"kir/(kir|operators|layout|build|decode|quantise)\.h")
LLVM_FOLDERS = ("src/codegen/llvm/", "src/codegen/cpu/", "src/codegen/ptx/", "src/jit/", "src/aot/")
# The words of a target's own vocabulary, and the folder of src/codegen where they belong.
TARGET_WORDS = {
    "cpu": r"sse\d*|avx\d*|amx|vnni|neon|sve|x86|aarch64|znver\d*|highway|hwy",
    "ptx": r"ptx|nvptx|nvvm|cuda|sm\d+",
    "metal": r"metal|msl",
}
SOURCE_SUFFIXES = {".h", ".cc", ".c", ".inc"}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")  # kNvptxTarget, avx2_level -> k Nvptx Target avx2 level


def first_folder(path):
    return path.split("/")[0] if "/" in path else ""


def include_problem(path, system, header):
    """Why the file at `path` (from the root) may not include `header`, or None."""
    if header.startswith(("llvm/", "llvm-c/")) and not path.startswith(LLVM_FOLDERS):
        return f"LLVM header {header} outside {', '.join(LLVM_FOLDERS)}"
    if header.startswith("CLI/") and not path.startswith("tools/"):
        return f"{header}: only tools/ parses a command line"
    if path.startswith("include/"):
        if "/" in header and not header.startswith(("quern/", "sys/")):
            return f"public header includes {header}"
        return None
    if not path.startswith("src/"):
        return None
    here, there = path.split("/")[1], first_folder(header)
    if here not in RANK:
        return f"folder src/{here} has no place in the order of dependence"
    if here == "simd":
        once = path.count("/") == 2
        allowed = ("simd", "quern", "hwy", "base", "absl") if once else ("simd", "quern", "hwy")
        if there and there not in allowed and not system and header != "base/formats/grids.h":
            return f"simd includes {header}"
        return None
    if system or there not in RANK or there == here:
        return None
    if here == "c":
        return f"c sees the public interface alone, not {header}"
    if RANK[there] > RANK[here]:
        return f"{here} comes before {there}, so it may not include {header}"
    if (here, there) in STRANGERS:
        return f"{here} and {there} do not see each other: {header}"
    if here == "ir" and there == "kir" and not KIR_EXPRESSION_HEADERS.fullmatch(header):
        return f"ir uses only the expression part of kir, not {header}"
    return None


def target_problem(path, line):
    """Why this line of src/codegen names a target it should not, or None."""
    folder = path.split("/")[2]
    for owner, words in TARGET_WORDS.items():
        if folder == owner:
            continue
        for word in WORD.findall(line):
            if re.fullmatch(words, word.lower()):
                return f"'{word}' belongs to codegen/{owner}"
    return None


def check(files):
    """`files`: pairs of path from the root and text. Returns the breaches as 'path:line: reason'."""
    found = []
    edges = {}  # (folder, folder) of one layer -> where
    for path, text in files:
        in_codegen = path.startswith("src/codegen/") and path.count("/") >= 2
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}:{number}"
            match = INCLUDE.match(line)
            if match:
                reason = include_problem(path, match[1] == "<", match[2])
                if reason:
                    found.append(f"{where}: {reason}")
                if path.startswith("src/"):
                    here, there = path.split("/")[1], first_folder(match[2])
                    if here != there and here in RANK and RANK.get(there) == RANK[here]:
                        edges.setdefault((here, there), where)
            if in_codegen:
                reason = target_problem(path, line)
                if reason:
                    found.append(f"{where}: {reason}")
    for (here, there), where in sorted(edges.items()):
        if here < there and (there, here) in edges and (here, there) not in STRANGERS:
            found.append(f"{where}: {here} and {there} include each other (also {edges[there, here]})")
    return found


def sources(root):
    for top in ("include", "src", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def self_test():
    accepted = [
        ("src/ir/a.h", '#include "kir/operators.h"\n#include <vector>'),
        ("src/jit/a.cc", '#include "llvm/IR/Module.h"\n#include "codegen/cpu/target.h"'),
        ("src/codegen/matmul.cc", "assert(x); // passes, assembly, classes, resume"),
        ("src/codegen/cpu/a.cc", "avx512, sse4"),
        ("src/codegen/metal/a.cc", "Metal"),
        ("src/models/a.cc", '#include "import/gguf.h"'),
        ("src/simd/tiles/a.cc", '#include "hwy/highway.h"\n#include "quern/abi.h"\n#include "simd/simd.h"'),
        ("src/simd/library.cc", '#include "base/check.h"'),
        ("src/simd/tiles/a.h", '#include "base/formats/grids.h"'),
        ("tools/quern/main.cc", '#include <CLI/CLI.hpp>'),
        ("include/quern/a.h", '#include "quern/abi.h"\n#include <string>'),
    ]
    rejected = [
        ("src/base/a.h", '#include "kir/kir.h"'),
        ("src/c/a.cc", '#include "compiler/program.h"'),
        ("src/ir/a.h", '#include "kir/verify.h"'),
        ("src/hir/a.h", '#include "opt/fuse.h"'),
        ("src/opt/a.h", '#include "hir/module.h"'),
        ("src/codegen/a.cc", '#include "lir/plan.h"'),
        ("src/runtime/a.cc", '#include <llvm/IR/Module.h>'),
        ("src/codegen/c/a.cc", '#include "llvm/IR/Module.h"'),
        ("src/simd/tiles/a.cc", '#include "base/check.h"'),
        ("src/simd/library.cc", '#include "kir/kir.h"'),
        ("src/codegen/matmul.cc", "if (has_avx512) {"),
        ("src/codegen/matmul.cc", "Target::kNvptx"),
        ("src/codegen/ptx/a.cc", "like MSL"),
        ("src/compiler/a.cc", '#include <CLI/CLI.hpp>'),
        ("src/novel/a.cc", '#include "base/check.h"'),
        ("include/quern/a.h", '#include "absl/status/status.h"'),
    ]
    wrong = [f"rejected: {found}" for file in accepted for found in check([file])]
    wrong += [f"accepted: {file}" for file in rejected if len(check([file])) != 1]
    ring = [("src/jit/a.cc", '#include "aot/a.h"'), ("src/aot/a.cc", '#include "jit/a.h"')]
    if len(check(ring)) != 1:
        wrong.append(f"accepted: {ring}")
    return wrong


def main():
    argument = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).resolve().parent.parent)
    found = self_test() if argument == "--self-test" else check(sources(pathlib.Path(argument)))
    for line in found:
        print(line)
    print(f"{len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
