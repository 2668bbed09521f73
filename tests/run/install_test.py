"""What is installed is enough for other projects: a CMake package, pkg-config, and a checkout as a part of another.

    install_test.py SOURCE_DIR BUILD_DIR CXX GENERATOR
"""
import os
import re
import subprocess
import sys
import tempfile

from program import expect, expect_typed, said

SOURCE, BUILD, CXX, GENERATOR = sys.argv[1:5]
MODEL = os.path.join(SOURCE, "models", "addition.gguf")
CONSUMER = os.path.join(SOURCE, "tests", "install")


def consumer(folder, *options):
    """The consumer, configured and built with these; its program."""
    said("cmake", "-S", CONSUMER, "-B", folder, "-G", GENERATOR, f"-DCMAKE_CXX_COMPILER={CXX}", *options)
    said("cmake", "--build", folder)
    return os.path.join(folder, "consumer")


def main():
    with tempfile.TemporaryDirectory(prefix="quern_install_") as folder:
        first, prefix = os.path.join(folder, "first"), os.path.join(folder, "prefix")
        said("cmake", "--install", BUILD, "--prefix", first)
        os.rename(first, prefix)  # it lies where it was not installed to
        files = sorted(os.listdir(os.path.join(prefix, "include", "quern")))
        if files != sorted(os.listdir(os.path.join(SOURCE, "include", "quern"))):
            sys.exit(f"the headers that are installed are {files}")
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        program = os.path.join(prefix, "bin", "quern")
        answer = said(program, "run", MODEL, "--prompt", "27+58=", env=environment)
        expect(answer == "85\n", program, "answers", answer)
        expect_typed(os.path.join(prefix, "share"), lambda *arguments: said(program, *arguments, env=environment))
        if "level" in said(program, "man", env=environment).split("\n")[0]:
            sys.exit("the manual page names the machine that it was made on")
        shown = said("nm", "-DC", "--defined-only", os.path.join(prefix, "lib", "libquern.so")).splitlines()
        hidden = [line for line in shown
                  if not re.search(r" quern::.*@@QUERN_0\.1$| quern_[a-z_]+@@QUERN_C_1$| A QUERN_(0\.|C_)1", line)]
        if hidden or len(shown) < 100:
            sys.exit(f"the library shows {len(shown)} names, and of others {hidden[:5]}")
        built = consumer(os.path.join(folder, "package"), f"-DCMAKE_PREFIX_PATH={prefix}")
        answer = said(built, MODEL, env=environment)
        expect(answer == "85\n12\n", built, "answers", answer)
        # Another version is not taken.
        wrong = os.path.join(folder, "wrong")
        os.mkdir(wrong)
        with open(os.path.join(wrong, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES CXX)\n"
                    "find_package(quern 0.2 REQUIRED)\n")
        configure = ["cmake", "-S", wrong, "-B", os.path.join(wrong, "b"), f"-DCMAKE_PREFIX_PATH={prefix}"]
        refused = subprocess.run(configure, capture_output=True, text=True)
        if refused.returncode == 0 or "0.1" not in refused.stderr:
            sys.exit(f"version 0.2 is found where 0.1 is installed\n{refused.stderr}")
        flags = said("pkg-config", "--cflags", "--libs", "quern",
                     env=dict(environment, PKG_CONFIG_PATH=os.path.join(prefix, "lib", "pkgconfig"))).split()
        by_hand = os.path.join(folder, "by_hand")
        said(CXX, os.path.join(CONSUMER, "consumer.cc"), "-o", by_hand, *flags)
        answer = said(by_hand, MODEL, env=dict(environment, LD_LIBRARY_PATH=os.path.join(prefix, "lib")))
        expect(answer == "85\n12\n", by_hand, "answers", answer)
        # A checkout in another project: configured, with its target; building it would be building all of it again.
        part = os.path.join(folder, "part")
        said("cmake", "-S", CONSUMER, "-B", part, "-G", GENERATOR, f"-DCMAKE_CXX_COMPILER={CXX}",
             f"-DQUERN_SOURCE={SOURCE}")
        targets = said("cmake", "--build", part, "--target", "help")
        for target, wanted in (("quern_shared", True), ("compiler_test", False)):
            if (target in targets) != wanted:
                sys.exit(f"{target} is {'not ' if wanted else ''}a target of a project that has Quern in it")
    print("an installed package, pkg-config and a checkout serve another project")


main()
