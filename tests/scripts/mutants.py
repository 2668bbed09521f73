#!/usr/bin/env python3
"""Mutants: one line of a source is made wrong, and the test that its row of mutant_table.py names has to fail.

    mutants.py SOURCE_DIR BUILD_DIR [--only REGEX] [--jobs N] [--timeout SECONDS] [--work FOLDER] [--long]
    mutants.py SOURCE_DIR BUILD_DIR --check    every row is of this tree: sources, tests, the table of docs/testing.md
    mutants.py --list [--only REGEX]           the rows, one a line
    mutants.py --table                         the rows as the table of docs/testing.md

Works in copies of the tree, one for each job, built with the compilers and flags of BUILD_DIR through ccache; --work
keeps them for the next time. REGEX is looked for in a row as --list prints it. Without --long or QUERN_LONG_TESTS=1
no mutant is run: they take most of an hour. Exits with 1 when one survives that has no reason to, cannot be compiled,
takes too long, or dies though its row says that none can tell.
"""
import argparse
import concurrent.futures
import contextlib
import fnmatch
import os
import queue
import re
import resource
import subprocess
import sys
import tempfile
import time

import mutant_table
import scratch_build

MOST_MEMORY = 24 << 30  # addresses of a test whose mutant allocates without end
FIRST, LAST = "<!-- mutants:begin -->\n", "<!-- mutants:end -->\n"


def text_of(row):
    return f"{row.file}: {row.old} => {row.new or '(nothing)'}  [{row.program} {row.tests}]"


def table():
    def code(text):
        text = text.replace("|", "\\|")
        return f"`{text}`" if text else "nothing"

    lines = ["| source | line | becomes | killed by |", "|---|---|---|---|"]
    for row in mutant_table.ROWS:
        killer = f"`{row.program} {row.tests}`" if row.reason is None else "nothing: " + row.reason
        lines.append(f"| `{row.file}` | {code(row.old)} | {code(row.new)} | {killer} |")
    return "\n".join(lines) + "\n"


def tests_of(program):
    """Names of the tests that a program of gtest holds."""
    names, suite = [], ""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + word)
        else:
            suite = word
    return names


def faults_of(row, source, tests):
    """What is wrong with a row, beside the tree and the tests of its program."""
    path = os.path.join(source, row.file)
    if not os.path.exists(path):
        return f"there is no {row.file}"
    with open(path) as file:
        times = file.read().count(row.old)
    if times != 1:
        return f"the text to be changed stands there {times} times, not once"
    if "\n" in row.old + row.new or row.old == row.new:
        return "a mutant changes one line"
    for pattern in row.tests.split(":"):
        if not fnmatch.filter(tests, pattern):
            return f"{row.program} has no test {pattern}"
    return None


def check(source, build):
    rows = mutant_table.ROWS
    tests = {program: tests_of(os.path.join(build, "bin", program)) for program in sorted({r.program for r in rows})}
    wrong = [f"{text_of(row)}\n  {fault}" for row in rows if (fault := faults_of(row, source, tests[row.program]))]
    if len({(row.file, row.old, row.new) for row in rows}) != len(rows):
        wrong.append("a mutant has two rows")
    with open(os.path.join(source, "docs", "testing.md")) as file:
        page = file.read()
    if page.count(FIRST) != 1 or page.split(FIRST)[1].split(LAST)[0] != table():
        wrong.append("docs/testing.md has another table than mutants.py --table prints")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(rows)} mutants in {len({row.file for row in rows})} sources, killed by {len(tests)} programs")


class Copy:
    """A copy of the tree in which mutants are built and run, one after the other."""

    def __init__(self, source, build, folder, timeout):
        self.folder, self.timeout = folder, timeout
        self.env = scratch_build.environment(folder)
        # Every mutant is compiled, whatever the cache of kernels holds.
        self.env.update(QUERN_CACHE="off")
        scratch_build.copy_tree(source, folder)
        command, self.out = scratch_build.configure(folder, build)
        done = scratch_build.run(command, self.env)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stdout}")
        self.passing = set()

    def build(self, program):
        return scratch_build.run(["ninja", "-C", self.out, "-j1", program], self.env)

    def test(self, row):
        """(whether its tests pass, None where they take too long; what they print)."""
        command = [os.path.join(self.out, "bin", row.program), "--gtest_brief=1", "--gtest_filter=" + row.tests]
        try:
            done = scratch_build.run(
                command, self.env, timeout=self.timeout, cwd=self.out,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)))
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode == 0, done.stdout

    def outcome(self, row):
        """(what became of the mutant, more about that)."""
        if (row.program, row.tests) not in self.passing:
            if (built := self.build(row.program)).returncode != 0:
                return "not built", built.stdout[-2000:]
            passes, text = self.test(row)
            if not passes or re.search(r"\[  PASSED  \] 0 tests", text):
                return "not tested", "without the mutant: " + (text[-2000:] or "too slow")
            self.passing.add((row.program, row.tests))
        path = os.path.join(self.folder, row.file)
        with open(path) as file:
            right = file.read()
        try:
            with open(path, "w") as file:
                file.write(right.replace(row.old, row.new))
            if (built := self.build(row.program)).returncode != 0:
                return "does not compile", "\n".join(re.findall(r".*error:.*", built.stdout)[:3])
            passes, text = self.test(row)
        finally:
            with open(path, "w") as file:
                file.write(right)
        if passes is None:
            return "timed out", f"after {self.timeout} s"
        failed = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", text, re.M)
        return ("survived", "") if passes else ("killed", ", ".join(dict.fromkeys(failed)) or "it crashed")


def run(arguments, rows):
    source, build = os.path.realpath(arguments.source), os.path.realpath(arguments.build)
    counts, bad = {}, []
    with contextlib.ExitStack() as stack:
        work = arguments.work or stack.enter_context(tempfile.TemporaryDirectory(prefix="quern_mutants_"))
        copies = queue.Queue()

        def one(row):
            copy = copies.get()
            start = time.monotonic()
            what, more = copy.outcome(row)
            copies.put(copy)
            counts[what] = counts.get(what, 0) + 1
            if what != ("killed" if row.reason is None else "survived"):
                bad.append(row)
            print(f"{what} ({time.monotonic() - start:.0f} s): {text_of(row)}\n    {more}", flush=True)

        for job in range(arguments.jobs):
            copies.put(Copy(source, build, os.path.join(work, str(job)), arguments.timeout))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(one, sorted(rows, key=lambda row: row.program)))
    print(f"{len(rows)} mutants: " + ", ".join(f"{counts[what]} {what}" for what in sorted(counts)))
    if bad:
        sys.exit("not as their rows say:\n" + "\n".join(text_of(row) for row in bad))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("build", nargs="?")
    for flag in ("--check", "--list", "--table", "--long"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--work")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=240)
    arguments = parser.parse_args()
    rows = [row for row in mutant_table.ROWS if arguments.only.search(text_of(row))]
    if arguments.table:
        print(table(), end="")
    elif arguments.list:
        print("\n".join(text_of(row) for row in rows))
    elif arguments.build is None:
        parser.error("SOURCE_DIR and BUILD_DIR are needed")
    elif arguments.check:
        check(os.path.realpath(arguments.source), os.path.realpath(arguments.build))
    elif not arguments.long and os.environ.get("QUERN_LONG_TESTS", "0") == "0":
        print("skipped: it builds a mutant after the other; --long or QUERN_LONG_TESTS=1 runs them")
        sys.exit(77)
    else:
        run(arguments, rows)


if __name__ == "__main__":
    main()
