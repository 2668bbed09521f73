#!/usr/bin/env python3
"""A graph with complex numbers and with linear algebra, compiled ahead of time: its header and manifest name the C
functions, libquern_linear.a has them, and the program solves a system of a known answer. Quern itself loads
LAPACK only for such a graph.

  linear_algebra_test.py QUERN SOURCE LIBQUERN_LINEAR CC
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from program import said

GRAPH = """graph solve {
  %0 = Input() {name = "a"} : f32[2, 3, 3]
  %1 = Input() {name = "b"} : f32[2, 3]
  %2 = Input() {name = "z"} : c64[8]
  %3 = BatchedDenseSolve(%0, %1) {vector = true} : f32[2, 3]
  %4 = Fft(%2) : c64[8]
  return %3, %4
}
"""

# [[2, 1, 0], [0, 0, 4], [0, 3, 0]] x = (4, 12, 6) and ten times that: x = (1, 2, 3), (10, 20, 30). The transform of
# a single 1 + 2i at 1 begins with it, and is that by -i at 2.
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "solve.h"
int main(void) {
  static const float a[18] = {2, 1, 0, 0, 0, 4, 0, 3, 0, 2, 1, 0, 0, 0, 4, 0, 3, 0};
  static const float b[6] = {4, 12, 6, 40, 120, 60};
  static const float z[16] = {0, 0, 1, 2};
  static float x[6], y[16];
  const void* inputs[SOLVE_INPUTS] = {a, b, z};
  void* outputs[SOLVE_OUTPUTS] = {x, y};
  const size_t bytes = (size_t)solve_workspace_bytes(1);
  void* memory = aligned_alloc(64, bytes);
  solve* model;
  int32_t error = solve_init(&model, memory, bytes, NULL, 0, NULL);
  if (error == QUERN_OK) error = solve_step(model, inputs, outputs);
  if (error != QUERN_OK) return fprintf(stderr, "%s\n", solve_error(error)), 1;
  for (int i = 0; i < 6; ++i) printf("%.3f ", (double)x[i]);
  printf("%.3f %.3f %.3f %.3f\n", (double)y[0], (double)y[1], (double)y[4], (double)y[5]);
  free(memory);
  return 0;
}
"""
EXPECTED = "1.000 2.000 3.000 10.000 20.000 30.000 1.000 2.000 2.000 -1.000"


# Quern itself loads LAPACK for a graph that needs it, and for no other.
OTHER = """graph other {
  %0 = Input() {name = "x"} : f32[3]
  %1 = Exp(%0) : f32[3]
  return %1
}
"""


def loads_when_needed(quern, folder):
    (folder / "other.qir").write_text(OTHER)
    libraries = said("readelf", "-d", quern)
    if "NEEDED" not in libraries or "lapack" in libraries:
        sys.exit(f"{quern} is linked to LAPACK:\n{libraries}")

    def run(graph, library):
        return subprocess.run([str(quern), "run", str(folder / graph)], capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, QUERN_LAPACK=library))

    for library, reason in (("/nowhere/lapacke.so", "/nowhere/lapacke.so"), ("libm.so.6", "has no LAPACKE_")):
        if (ran := run("other.qir", library)).returncode != 0:
            sys.exit(f"a graph without linear algebra, with {library}: {ran.stderr}")
        ran = run("solve.qir", library)
        if ran.returncode != 1 or "linear algebra needs LAPACK" not in ran.stderr or reason not in ran.stderr:
            sys.exit(f"with {library}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    if (ran := run("solve.qir", "")).returncode != 0:
        sys.exit(f"{ran.returncode}\n{ran.stderr}")


def main():
    quern, source, archive, cc = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "solve.qir").write_text(GRAPH)
        (folder / "main.c").write_text(MAIN)
        loads_when_needed(quern, folder)
        said(quern, "compile", folder / "solve.qir", "-o", folder)
        manifest = json.loads((folder / "solve.json").read_text())
        calls = [call["symbol"] for call in manifest["calls"]]
        if calls != ["quern_solve"] or "quern_kernel quern_solve;" not in (folder / "solve.h").read_text():
            sys.exit(f"the functions that are called: {calls}")
        kinds = [port["dtype"] for port in manifest["inputs"]]
        if kinds != ["f32", "f32", "c64"]:
            sys.exit(f"the dtypes of the inputs: {kinds}")
        program = folder / "program"
        said(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", source / "include", folder / "main.c",
             folder / "solve.o", archive, "-llapacke", "-lm", "-o", program)
        printed = said(program).strip()
        if printed != EXPECTED:
            sys.exit(f"it prints {printed}, not {EXPECTED}")


main()
