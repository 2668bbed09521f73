#!/usr/bin/env python3
"""Cases of ops that ONNX Runtime recorded (tests/golden/onnx/record.py), each compiled just in time; all pass.

  onnx_golden_test.py ONNX_NODES CASES.tar.xz
"""

import subprocess
import sys
import tarfile
import tempfile

with tempfile.TemporaryDirectory(prefix="quern_onnx_") as folder:
    with tarfile.open(sys.argv[2]) as archive:
        archive.extractall(folder)
    text = subprocess.run([sys.argv[1], folder], check=True, capture_output=True, text=True).stdout
print(text, end="")
sys.exit(0 if text.endswith("\n100.00 %\n") else 1)
