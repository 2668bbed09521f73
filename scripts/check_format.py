#!/usr/bin/env python3
"""Holds the sources to 120 columns, and C, C++ and Objective-C++ to clang-format-19 (`./dev fmt` formats them).

  scripts/check_format.py [ROOT]       prints each breach as file:line: reason, and a count; exit status 1 if any, 77
                                       where clang-format-19 is missing and the columns are right
  scripts/check_format.py --self-test  proves on small examples that both bite

Text that is data stays as it is: goldens, models, pages. Folders named build and hidden ones are not looked at.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

COLUMNS = 120
FORMATTER = "clang-format-19"
FORMATTED = {".c", ".cc", ".h", ".mm"}
LIMITED = FORMATTED | {".cmake", ".py"}
LIMITED_NAMES = {"CMakeLists.txt", "CMakePresets.json", "dev", "run"}


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f != "build" and (f == ".ci" or not f.startswith(".")))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in LIMITED or name in LIMITED_NAMES:
                yield path


def long_lines(path, text):
    return [f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"
            for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS]


def unformatted(paths, root):
    """Breaches as the formatter words them, one a file."""
    def run(batch):
        done = subprocess.run([FORMATTER, f"--style=file:{root / '.clang-format'}", "--dry-run", "-Werror", *batch],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{FORMATTER} ends with {done.returncode}:\n{done.stderr}")
        return [line for line in done.stderr.splitlines() if ": error: " in line]

    batches = [paths[i:i + 20] for i in range(0, len(paths), 20)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = [line for found in pool.map(run, batches) for line in found]
    first = {}
    for line in lines:
        first.setdefault(line.split(":")[0], line)
    return list(first.values())


def check(root):
    files = list(sources(root))
    found = [line for path in files for line in long_lines(path, path.read_text(encoding="utf-8"))]
    if shutil.which(FORMATTER):
        found += unformatted([path for path in files if path.suffix in FORMATTED], root)
    return found


def self_test(root):
    """What is wrong with the checks themselves, on a tree of their own under this one's .clang-format."""
    long_name = "x" * 101
    cases = {  # text -> how many breaches
        "long.py": (f"{long_name} = 1  # {'y' * 30}\n", 1),
        "limit.py": (f"# {'y' * 118}\n", 0),
        "over.py": (f"# {'y' * 119}\n", 1),
        "umlauts.py": (f"# {'ü' * 118}\n", 0),
        "CMakeLists.txt": (f"set({long_name} {'y' * 30})\n", 1),
        "some.cmake": (f"# {'y' * 119}\n", 1),
        "comment.cc": (f"// {'y' * 118}\n", 1),
        "good.cc": ("int F() { return 1; }\n", 0),
        "spaces.cc": ("int  F( ) { return 1; }\n", 1),
        "spaces.h": ("#pragma once\nint  G( );\n", 1),
        "spaces.c": ("int  F( void );\n", 1),
        "spaces.mm": ("int  F( );\n", 1),
        "golden.ptx": (f"{'y' * 200}\n", 0),
        "build/made.cc": (f"// {'y' * 118}\n", 0),
    }
    wrong = []
    with tempfile.TemporaryDirectory(prefix="quern_format_") as scratch:
        for name, (text, _) in cases.items():
            path = pathlib.Path(scratch, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shutil.copy(root / ".clang-format", scratch)
        found = check(pathlib.Path(scratch))
        for name, (_, breaches) in cases.items():
            of_file = [line for line in found if line.startswith(f"{scratch}/{name}:")]
            if len(of_file) != breaches:
                wrong.append(f"{name}: {breaches} breaches expected, found {of_file}")
    return wrong


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    argument = sys.argv[1] if len(sys.argv) > 1 else str(here)
    missing = shutil.which(FORMATTER) is None
    if argument != "--self-test":
        found = check(pathlib.Path(argument))
    else:
        found = [] if missing else self_test(here)
    for line in found:
        print(line)
    print(f"{len(found)} breaches")
    if missing and not found:
        print(f"skipped: {FORMATTER} is not installed")
        return 77
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
