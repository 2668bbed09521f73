#!/usr/bin/env python3
"""Every reproduction in tests/repro: faults that were found once, as graphs with values. `quern replay` must say ok, at
this machine's own level and at the least of x86-64.

    repro_test.py QUERN SOURCE_DIR
"""
import glob
import os
import platform
import subprocess
import sys

QUERN, SOURCE = sys.argv[1:3]


def main():
    files = sorted(glob.glob(os.path.join(SOURCE, "tests/repro/*.qir")))
    if not files:
        sys.exit("there are no reproductions")
    levels = [[], ["--cpu", "x86-64-v2"]] if platform.machine() == "x86_64" else [[]]
    failed = 0
    for path in files:
        for level in levels:
            result = subprocess.run([QUERN, "replay", path, *level], capture_output=True, text=True, timeout=120)
            print(os.path.basename(path), *level, result.stdout.strip() or result.stderr.strip())
            failed += result.returncode != 0
    print(f"{len(files)} reproductions, {failed} failures")
    sys.exit(failed != 0)


main()
