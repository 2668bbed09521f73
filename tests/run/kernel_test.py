#!/usr/bin/env python3
"""quern kernel: kernels in text are verified, held to the interpreter and timed.

  kernel_test.py QUERN SOURCE
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from program import expect_in, run

QUERN, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])

SCALE = """kernel scale (
  x : f32[M, 48] in
  y : f32[M, 48] out
) sym M in 1..512 {
  grid r in 0..M { vec c in 0..48 { y[r, c] = exp(x[r, c]) * 0.5 } }
}
kernel twice (
  x : f32[8] in
  y : f32[8] out
) {
  grid r in 0..8 { y[r] = x[r] + x[r] }
}
"""


def kernel(*arguments, code=0):
    ran = run(QUERN, "kernel", *arguments, code=code, text=True, timeout=300, env=dict(os.environ, QUERN_CACHE="off"))
    return ran.stderr if code == 2 else ran.stdout


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "scale.kir"
    path.write_text(SCALE)
    # 7 rows of 48: an exp and a product each; as many floats read as written.
    first = kernel(path, "--size", "M=7", "--kernel", "scale", "--samples", 3, "--ms", 0)
    expect_in(first, "scale  M=7: 7 chunks, 672 operations, 2688 bytes", "7 of the chunks compared", " us (quartiles ")
    expect_in(kernel(path, "--untimed", "--values", 9), "scale  M=8: ", "twice: 8 chunks")
    expect_in(kernel(path, "--kernel", "scale", "--tolerance", 0, "--untimed", code=1), "  wrong: y[", ", not ")
    expect_in(kernel(path, "--size", "M=513", "--kernel", "scale", code=2), "M is 513", "1..512")
    expect_in(kernel(path, "--size", "N=1", "--kernel", "scale", code=2), "there is no symbol N; there is: M")
    expect_in(kernel(path, "--kernel", "half", code=2), "there is no kernel half; there is: scale, twice")
    path.write_text(SCALE.replace("exp(x[r, c])", "exp(x[r, c + 1])"))
    expect_in(kernel(path, "--untimed", code=2), "scale", "x[r, c + 1]")
    path.write_text(SCALE.replace("in 0..M", "from 0..M"))
    expect_in(kernel(path, "--untimed", code=2), "5:")
    path.write_text("kernel b (\n  y : f32[32] out\n) {\n"
                    "  grid r in 0..1 { thread t in 0..32 @ block { y[t] = 1.0 } }\n}\n")
    expect_in(kernel(path, "--untimed", code=2), "a kernel for blocks of threads")
    # What code generation makes comes back as text that is right.
    dumped = subprocess.run([QUERN, "dump", SOURCE / "models/addition.gguf", "--stage", "kir",
                             "--kernel", "layers.0/ffn"],
                            capture_output=True, text=True, check=True).stdout
    path.write_text(dumped)
    expect_in(kernel(path, "--untimed", "--tolerance", 1e-3), "as the interpreter in double")
    expect_in(kernel(SOURCE / "tests/kir/rms_norm_q8.kir", "--size", "M=5", "--samples", 2, "--ms", 0, "--threads", 2),
              "rms_norm_q8  M=5", "2 threads")
print("kernels in text: verified, compared, timed")
