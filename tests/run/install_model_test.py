#!/usr/bin/env python3
"""Models as C libraries in projects that have no checkout: the component `model` of what is installed, also for another
processor; by FetchContent; the archives alone.

    install_model_test.py SOURCE_DIR BUILD_DIR CC GENERATOR
"""
import pathlib
import re
import sys
import tempfile

from program import expect, said

SOURCE, BUILD, CC, GENERATOR = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3], sys.argv[4]
MODEL = SOURCE / "models/addition.gguf"
PROJECT = SOURCE / "tests/install/model"
# The program of the tutorial, as it stands there.
ANSWER = re.search(r"^```c main\.c\n(.*?)^```$", (SOURCE / "docs/ship-a-model.md").read_text(), re.M | re.S).group(1)


def project(at, name, *options):
    main = at / "main.c"
    main.write_text(ANSWER)
    said("cmake", "-S", PROJECT, "-B", at / name, "-G", GENERATOR, f"-DMODEL={MODEL}", f"-DANSWER={main}", *options)
    return at / name


def main():
    with tempfile.TemporaryDirectory(prefix="quern_install_model_") as folder:
        at = pathlib.Path(folder)
        said("cmake", "--install", BUILD, "--prefix", at / "first")
        prefix = (at / "first").rename(at / "prefix")  # it lies where it was not installed to
        found = f"-DCMAKE_PREFIX_PATH={prefix}"
        here = project(at, "here", found, f"-DCMAKE_C_COMPILER={CC}")
        cache = (here / "CMakeCache.txt").read_text()
        expect(f"QUERN_COMPILER:FILEPATH={prefix / 'bin/quern'}" in cache, "another quern than the installed one")
        expect(str(SOURCE / "src") not in cache, "the checkout is used")
        said("cmake", "--build", here)
        expect(said(here / "answer", "27+58=") == "85\n", "the model of the installed package")
        cross = project(at, "cross", found, f"-DCMAKE_TOOLCHAIN_FILE={SOURCE / 'examples/aot/aarch64.cmake'}")
        said("cmake", "--build", cross)
        expect(said("qemu-aarch64", cross / "answer", "27+58=") == "85\n", "the model for aarch64")
        # A component that there is not.
        wrong = at / "wrong"
        wrong.mkdir()
        (wrong / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES C)\n"
                                              "find_package(quern 0.1 REQUIRED COMPONENTS model fortran)\n")
        message = said("cmake", "-S", wrong, "-B", wrong / "b", found, code=1)
        expect("quern has no component fortran; there are library and model" in message, "a component is made up")
        # Without CMake: the object, and the archives that are installed.
        said(prefix / "bin/quern", "compile", MODEL, "-o", at / "addition.o", "--embed-weights", "--embed-vocabulary")
        said(CC, "-std=c11", f"-I{at}", f"-I{prefix}/include", at / "main.c", at / "addition.o",
             prefix / "lib/libquern_kit.a", prefix / "lib/libquern_rt.a", "-lm", "-lpthread", "-o", at / "by_hand")
        expect(said(at / "by_hand", "27+58=") == "85\n", "the installed archives")
        # A checkout by FetchContent: configured, with its targets; building it would be building all of it again.
        part = project(at, "part", f"-DQUERN_SOURCE={SOURCE}", f"-DCMAKE_C_COMPILER={CC}",
                       "-DCMAKE_CXX_COMPILER=clang++-19")
        targets = said("cmake", "--build", part, "--target", "help")
        for target, wanted in (("quern_shared", True), ("quern_kit", True), ("addition", True),
                               ("compiler_test", False)):
            expect((target in targets) == wanted,
                   f"{target} is {'no' if wanted else 'a'} target where Quern is fetched")
    print("installed, for another processor, fetched and by hand: a model as a C library")


main()
