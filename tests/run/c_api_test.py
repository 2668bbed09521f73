"""The C API: its test in C, which calls every function that the header declares, and the examples.

    c_api_test.py SOURCE_DIR C_API ONNX_MODEL GRAPH GENERATE
"""
import os
import re
import subprocess
import sys
import tempfile

SOURCE, C_API, ONNX, GRAPH, GENERATE = sys.argv[1:6]
MODEL = os.path.join(SOURCE, "models", "addition.gguf")


def prints(out, *command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode or (out is not None and result.stdout != out):
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def main():
    with open(os.path.join(SOURCE, "include", "quern", "c.h"), encoding="utf-8") as f:
        declared = set(re.findall(r"\b(quern_[a-z_]+)\(", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)))
    with open(os.path.join(SOURCE, "tests", "c_api", "c_api.c"), encoding="utf-8") as f:
        called = set(re.findall(r"\b(quern_[a-z_]+)\(", f.read()))
    if len(declared) < 50 or declared - called:
        sys.exit(f"of {len(declared)} functions the test leaves out {sorted(declared - called)}")
    with tempfile.TemporaryDirectory(prefix="quern_c_api_") as folder:
        print(prints(None, C_API, MODEL, ONNX, folder).strip())
    prints("1.5 4 0.5\n3.5 0 0\n", GRAPH)
    prints("85\n", GENERATE, MODEL, "27+58=")


main()
