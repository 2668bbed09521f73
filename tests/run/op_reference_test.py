#!/usr/bin/env python3
"""docs/ops.md is what the tables and the targets say, and what `quern ops` shows. BLESS=1 rewrites it.

    op_reference_test.py QUERN SOURCE_DIR
"""
import os
import subprocess
import sys

quern, source = sys.argv[1:3]
page = os.path.join(source, "docs/ops.md")


def ops(*options):
    return subprocess.run([quern, "ops", *options], capture_output=True, text=True, check=True).stdout


made = ops("--compile")
if os.environ.get("BLESS") == "1":
    with open(page, "w") as f:
        f.write(made)
    sys.exit()  # the page that quern has in itself is this one when it has been built again
with open(page) as f:
    text = f.read()
if text != made:
    sys.exit(f"{page} is not what `quern ops --compile` prints: BLESS=1 rewrites it")
if ops() != text:
    sys.exit(f"`quern ops` does not print {page}")
for target in ("aot", "metal"):
    if ops("--target", target) != ops("--target", target, "--compile"):
        sys.exit(f"`quern ops --target {target}` is not what compiling says")
print("the op reference is current")
