#!/usr/bin/env python3
"""The pages that say how to add something, followed word for word in a scratch copy of the tree, built and tested.

    pages_test.py SOURCE_DIR BUILD_DIR [--apply FOLDER]

A line of a page that begins with a path in code says where the block after it goes: `path`, whole; before `text`;
in place of `text`. --apply does that to FOLDER, a copy of the tree, and no more. All pages go into one copy,
which is built with the compilers and flags of BUILD_DIR through ccache: only what the pages touch is compiled again.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import scratch_build

# The pages, and what must hold of the tree that follows them: programs and their tests.
PAGES = {
    "docs/add-an-op.md": {"ir_test": "*", "opt_test": "RandomGraphs.*", "codegen_test": "CumMin.*",
                          "compiler_test": "RandomGraphOps.*:Slice/RandomGraphs.*/0:MinMax.*:Permanent.*"},
    "docs/add-a-family.md": {"codegen_test": "Triangle.*"},
    "docs/add-a-step.md": {"steps_test": "Twice.*:While.*"},
    "docs/add-a-format.md": {"kir_test": "T4.*:BlockFormats.*", "codegen_c_test": "Tables.*",
                             "codegen_metal_test": "EmitMetal.RunsOnTheCpu:EmitMetal.CopiesAndBarriers",
                             "jit_test": "Kernels.Decode*:Kernels.PacksToFloats:Kernels.DotsOfEveryFormat",
                             "compiler_test": "BlockFormats.*"},
}
WHERE = re.compile(r"^`([\w./]+)`, (whole|before|in place of)(?: `(.+?)`)?(?:\.|:|,).*$")
CUBED = "src/ir/ops/cubed.cc"


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


def follow(name, tree):
    with open(os.path.join(tree, name)) as file:
        page = file.read()
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
                sys.exit(f"{name}: {path} has {source.count(text)} times, not once: {text}")
            with open(full, "w") as file:
                file.write(source.replace(text, block + text if what == "before" else block.rstrip("\n")))
        count += 1
    if count == 0:
        sys.exit(f"{name} has no block that says where it goes")
    print(f"{name}: {count} blocks")


def run(command, env):
    done = scratch_build.run(command, env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} fails in the tree that follows the pages:\n{done.stdout[-4000:]}")
    return done.stdout


def main():
    if len(sys.argv) == 5 and sys.argv[3] == "--apply":
        for page in PAGES:
            follow(page, sys.argv[4])
        return
    if os.environ.get("QUERN_LONG_TESTS", "0") == "0":
        print("skipped: it builds a copy of the tree; QUERN_LONG_TESTS=1 runs it")
        sys.exit(77)
    source, build = (os.path.realpath(p) for p in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="quern_pages_") as copy:
        scratch_build.copy_tree(source, copy)
        for page in PAGES:
            follow(page, copy)
        env = scratch_build.environment(copy)
        configure, out = scratch_build.configure(copy, build)
        start = time.monotonic()
        run(configure, env)
        programs = sorted({program for suites in PAGES.values() for program in suites})
        run(["ninja", "-C", out, f"-j{os.environ.get('QUERN_JOBS', os.cpu_count())}", *programs], env)
        print(f"built in {time.monotonic() - start:.0f} s")
        for page, suites in PAGES.items():
            for program, tests in suites.items():
                start = time.monotonic()
                text = run([os.path.join(out, "bin", program), "--gtest_filter=" + tests], env)
                passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
                if not passed or int(passed[1]) == 0:
                    sys.exit(f"{page}: {program} ran nothing of {tests}")
                print(f"{page}: {program}: {passed[1]} tests in {time.monotonic() - start:.0f} s")
                if page == "docs/add-an-op.md" and program == "compiler_test":
                    drawn = re.search(r"Cubed (\d+) \((\d+)\)", text)
                    if not drawn:
                        sys.exit("the random graphs never drew and fused the new op")
                    print(f"random graphs drew the new op {drawn[1]} times, {drawn[2]} of them in regions of several")
        # With a body that disagrees with its reference the graphs that hold it must fail.
        with open(os.path.join(copy, CUBED)) as file:
            op = file.read()
        with open(os.path.join(copy, CUBED), "w") as file:
            file.write(op.replace("a[0] * a[0] * a[0]", "a[0] * a[0]"))
        run(["ninja", "-C", out, "compiler_test"], env)
        wrong = subprocess.run([os.path.join(out, "bin", "compiler_test"), "--gtest_filter=Slice/RandomGraphs.*/0"],
                               env=env, capture_output=True, text=True)
        if wrong.returncode == 0:
            sys.exit("the random graphs pass with a new op that is wrong")
    print("what the pages say is all it takes; an op that is wrong is caught")


if __name__ == "__main__":
    main()
