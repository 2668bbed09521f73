#!/usr/bin/env python3
"""docs/add-a-step.md, followed word for word in a scratch copy of the tree, which is built and tested.

    add_step_test.py SOURCE_DIR BUILD_DIR [--apply FOLDER]

A line of the page that begins with a path in code and ends with a colon says where the block after it goes: `path`,
whole; before `text`; in place of `text`. --apply does that to FOLDER, a copy of the tree, and no more.
"""
import os
import re
import shutil
import sys
import tempfile

from add_op_test import cached, run

SUITES = {"steps_test": "Twice.*:While.*", "ir_test": "*"}
WHERE = re.compile(r"^`([\w./]+)`, (whole|before|in place of)(?: `(.+?)`)?(?:\.|:|,).*$")


def blocks(page):
    """(path, what, text, block) of every block that the page says a place for."""
    lines = page.split("\n")
    place = None
    at = 0
    while at < len(lines):
        if found := WHERE.match(lines[at]):
            place = found.groups()
        elif lines[at].startswith("```") and place:
            end = lines.index("```", at + 1)
            yield *place, "\n".join(lines[at + 1:end]) + "\n"
            place, at = None, end
        at += 1


def follow(page, tree):
    count = 0
    for path, what, text, block in blocks(page):
        full = os.path.join(tree, path)
        if what == "whole":
            with open(full, "x") as file:
                file.write(block)
        else:
            with open(full) as file:
                source = file.read()
            if source.count(text) != 1:
                sys.exit(f"{path} has {source.count(text)} times, not once: {text}")
            now = block + text if what == "before" else block.rstrip("\n")
            # What stands before the beginning of a line goes before the whole line.
            with open(full, "w") as file:
                file.write(source.replace(text, now))
        count += 1
    return count


def main():
    source, build = (os.path.realpath(p) for p in sys.argv[1:3])
    with open(os.path.join(source, "docs/add-a-step.md")) as file:
        page = file.read()
    if len(sys.argv) == 5 and sys.argv[3] == "--apply":
        print(f"{follow(page, sys.argv[4])} blocks")
        return
    if os.environ.get("QUERN_LONG_TESTS", "0") == "0":
        print("skipped: it builds a copy of the tree; QUERN_LONG_TESTS=1 runs it")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="quern_add_step_") as copy:
        for folder in ("src", "include", "cmake", "tests", "tools", "models", "scripts", "docs"):
            shutil.copytree(os.path.join(source, folder), os.path.join(copy, folder))
        shutil.copy(os.path.join(source, "CMakeLists.txt"), copy)
        count = follow(page, copy)
        env = dict(os.environ, CCACHE_BASEDIR=copy, CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="pch_defines,time_macros")
        out = os.path.join(copy, "build")
        configure = ["cmake", "-S", copy, "-B", out, "-G", "Ninja", "-DQUERN_BENCH=OFF"]
        for name in ("CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER_LAUNCHER",
                     "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_EXE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS",
                     "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "CMAKE_CXX_FLAGS_DEBUG", "QUERN_SANITIZE"):
            if value := cached(build, name):
                configure.append(f"-D{name}={value}")
        run(configure, env)
        run(["ninja", "-C", out, f"-j{os.environ.get('QUERN_JOBS', os.cpu_count())}", *SUITES], env)
        for program, tests in SUITES.items():
            text = run([os.path.join(out, "bin", program), "--gtest_filter=" + tests], env)
            passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
            if not passed or int(passed[1]) == 0:
                sys.exit(f"{program} ran nothing of {tests}")
            print(f"{program}: {passed[1]} tests")
    print(f"{count} blocks of the page are a step that runs everywhere")


if __name__ == "__main__":
    main()
