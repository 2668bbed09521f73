#!/usr/bin/env python3
"""Adding an op takes one file: this drops one into a scratch copy of the tree, builds it and runs the graph tests.

    add_op_test.py SOURCE_DIR BUILD_DIR

The copy is built with the compilers and flags of BUILD_DIR through ccache, so only the files that the new op touches
are compiled again. Passes when the suites that go through the op table pass and random graphs have drawn, fused and run
the op.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

OP = '''// Cubed: x^3.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_cubed() {
  static const OpDef* const op = Elementwise({
      .name = "Cubed",
      .doc = "x^3",
      .body = [](Args a) { return a[0] * a[0] * a[0]; },
      .reference = [](double x, double, double) -> double { return x * x * x; },
  });
  return *op;
}

}  // namespace quern::ir
'''
# Programs whose tests go through the op table, and which of their tests: text and types of each op, passes over random
# graphs, random graphs compiled and run (a slice of them), the reference of ops.
SUITES = {"ir_test": "*", "opt_test": "RandomGraphs.*", "compiler_test": "RandomGraphOps.*:Slice/RandomGraphs.*/0"}


def cached(build, name):
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        return next((line.split("=", 1)[1].strip() for line in cache if line.startswith(name + ":")), "")


def run(command, env):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} fails with one more op:\n{done.stdout[-4000:]}")
    return done.stdout


def main():
    if os.environ.get("QUERN_LONG_TESTS", "0") == "0":
        print("skipped: it builds a copy of the tree; QUERN_LONG_TESTS=1 runs it")
        sys.exit(77)
    source, build = (os.path.realpath(p) for p in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="quern_add_op_") as copy:
        for folder in ("src", "include", "cmake", "tests", "tools", "models", "scripts"):
            shutil.copytree(os.path.join(source, folder), os.path.join(copy, folder))
        shutil.copy(os.path.join(source, "CMakeLists.txt"), copy)
        with open(os.path.join(copy, "src/ir/ops/cubed.cc"), "w") as f:
            f.write(OP)
        # The copy is built where ./dev builds the original, below its root: what ccache has of that serves here.
        env = dict(os.environ, CCACHE_BASEDIR=copy, CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="pch_defines,time_macros")
        out = os.path.join(copy, "build")
        configure = ["cmake", "-S", copy, "-B", out, "-G", "Ninja", "-DQUERN_BENCH=OFF"]
        for name in ("CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER_LAUNCHER",
                     "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_EXE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS",
                     "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "CMAKE_CXX_FLAGS_DEBUG", "QUERN_SANITIZE"):
            if value := cached(build, name):
                configure.append(f"-D{name}={value}")
        start = time.monotonic()
        run(configure, env)
        run(["ninja", "-C", out, f"-j{os.environ.get('QUERN_JOBS', os.cpu_count())}", *SUITES], env)
        print(f"built in {time.monotonic() - start:.0f} s")
        for program, tests in SUITES.items():
            start = time.monotonic()
            text = run([os.path.join(out, "bin", program), "--gtest_filter=" + tests], env)
            passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
            if not passed or int(passed[1]) == 0:
                sys.exit(f"{program} ran nothing of {tests}")
            print(f"{program}: {passed[1]} tests in {time.monotonic() - start:.0f} s")
            if program == "compiler_test":
                drawn = re.search(r"Cubed (\d+) \((\d+)\)", text)
                if not drawn:
                    sys.exit("the random graphs never drew and fused the new op")
                print(f"random graphs drew the new op {drawn[1]} times, {drawn[2]} of them in regions of several")
        # With a body that disagrees with its reference the graphs that hold it must fail.
        with open(os.path.join(copy, "src/ir/ops/cubed.cc"), "w") as f:
            f.write(OP.replace("a[0] * a[0] * a[0]", "a[0] * a[0]"))
        run(["ninja", "-C", out, "compiler_test"], env)
        wrong = subprocess.run([os.path.join(out, "bin", "compiler_test"), "--gtest_filter=Slice/RandomGraphs.*/0"],
                               env=env,
                               capture_output=True, text=True)
        if wrong.returncode == 0:
            sys.exit("the random graphs pass with a new op that is wrong")
    print("a new op file is all it takes; a wrong one is caught")


if __name__ == "__main__":
    main()
