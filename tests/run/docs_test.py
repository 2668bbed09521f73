#!/usr/bin/env python3
"""What the pages name is there: relative links, paths of the tree, and options of the command line.

    docs_test.py QUERN SOURCE_DIR

A path is a word in code (`src/kir/kir.h`, or a line of a block) that begins with a folder of the tree; NAME and the
like in it stand for anything. An option is a word that begins with -- after `quern` or `quern COMMAND` in code, or code
of its own.
"""
import os
import re
import subprocess
import sys

QUERN, SOURCE = sys.argv[1], os.path.realpath(sys.argv[2])
FOLDERS = ("bench", "cmake", "docs", "examples", "include", "models", "scripts", "src", "tests", "tools", "training")
TO_BE_WRITTEN = {"src/base/formats/t4.cc", "src/codegen/triangle.cc", "src/ir/ops/cubed.cc", "src/ir/ops/cum_min.cc",
                 "src/ir/ops/min_max.cc", "src/ir/ops/permanent.cc", "src/ir/ops/triangle_sum.cc",
                 "src/ir/ops/twice.cc", "src/linear/permanent.c", "src/opt/drop_negations.cc",
                 "src/simd/tiles/dot_t4_x.cc", "tests/unit/codegen/cum_min_test.cc",
                 "tests/unit/codegen/triangle_test.cc", "tests/unit/compiler/min_max_test.cc",
                 "tests/unit/compiler/permanent_test.cc", "tests/unit/kir/t4_test.cc",
                 "tests/unit/steps/twice_test.cc"}  # by the reader who follows the page

LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?<![\w./-])(?:" + "|".join(FOLDERS) + r")/[\w./*+-]*")
# Verbs, and verbs of verbs.
COMMANDS = ("bench", "cache clear", "cache explain", "cache gc", "cache list", "cache verify", "cache", "calibrate",
            "chat", "compile", "completion bash", "completion zsh", "completion", "convert", "diff", "dispatch", "dump",
            "embed", "imatrix", "inspect", "kernel", "man", "ops", "perplexity", "plan", "profile", "quantise",
            "reduce", "replay", "run", "serve", "tokenize")
COMMAND = re.compile(r"(?:^|[\s/])quern(?: (" + "|".join(COMMANDS) + r"))?(?= |$)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def pages():
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".md"))


def code_of(text):
    """The pieces of code of a page: spans, and the lines of indented and fenced blocks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()
        else:
            yield from SPAN.findall(line)


def options_of(command):
    text = subprocess.run([QUERN, *command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(OPTION.findall(text.split("Examples:")[0]))


def path_exists(path):
    path = path.rstrip(".,:")
    if path in TO_BE_WRITTEN:
        return True
    while re.search(r"[A-Z]{4,}|\*", path) and not os.path.exists(os.path.join(SOURCE, path)):
        path = os.path.dirname(path)  # a placeholder: what it lies in
    return any(os.path.exists(os.path.join(SOURCE, folder, path)) for folder in ("", "src"))  # src: of an #include


def main():
    options = {command: options_of(command.split()) for command in ("", *COMMANDS)}
    every = set().union(*options.values())
    wrong, seen = [], {"links": 0, "paths": 0, "options": 0}
    for page in pages():
        name = os.path.relpath(page, SOURCE)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:|#", link):
                continue
            seen["links"] += 1
            if not os.path.exists(os.path.join(os.path.dirname(page), link.split("#")[0])):
                wrong.append(f"{name}: the link {link} leads nowhere")
        for code in code_of(text):
            for path in PATH.findall(code):
                seen["paths"] += 1
                if not path_exists(path):
                    wrong.append(f"{name}: there is no {path}")
            command = COMMAND.search(code)
            known = options[command[1] or ""] if command else every if code.startswith("--") else None
            rest = code[command.end():] if command else code  # what stands before belongs to another program
            for option in OPTION.findall(rest if known is not None else ""):
                seen["options"] += 1
                if option not in known:
                    wrong.append(f"{name}: quern has no {option} in: {code}")
    with open(os.path.join(SOURCE, "docs/headers.md"), encoding="utf-8") as f:
        headers = set(re.findall(r"`quern/(\w+\.h)`", f.read()))
    for header in sorted(headers ^ set(os.listdir(os.path.join(SOURCE, "include/quern")))):
        wrong.append(f"docs/headers.md and include/quern do not agree on {header}")
    if wrong:
        sys.exit("\n".join(wrong))
    if min(seen.values()) < 10:
        sys.exit(f"the pages hardly name anything, so this test reads them wrongly: {seen}")
    print("the pages name what is there: " + ", ".join(f"{count} {what}" for what, count in seen.items()))


main()
