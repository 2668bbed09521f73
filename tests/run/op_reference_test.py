#!/usr/bin/env python3
"""docs/ops.md is what the tables say. BLESS=1 rewrites it.

    op_reference_test.py QUERN SOURCE_DIR
"""
import os
import subprocess
import sys

quern, source = sys.argv[1:3]
page = os.path.join(source, "docs/ops.md")
made = subprocess.run([quern, "ops"], capture_output=True, text=True, check=True).stdout
if os.environ.get("BLESS") == "1":
    with open(page, "w") as f:
        f.write(made)
with open(page) as f:
    if f.read() != made:
        sys.exit(f"{page} is not what `quern ops` prints: BLESS=1 rewrites it")
print("the op reference is current")
