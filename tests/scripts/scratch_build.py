"""A copy of the tree, built where ./dev builds the original, below its root: what ccache has of that serves here."""
import filecmp
import os
import shutil
import subprocess

FOLDERS = ("src", "include", "cmake", "tests", "tools", "models", "scripts", "docs", "examples")
FILES = ("CMakeLists.txt", "LICENSE")  # what configuring asks for
KEPT = ("CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER_LAUNCHER",
        "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_EXE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS",
        "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "CMAKE_CXX_FLAGS_DEBUG", "QUERN_SANITIZE")


def copy_changed(source, copy):
    if not os.path.exists(copy) or not filecmp.cmp(source, copy, shallow=False):
        shutil.copy(source, copy)  # with the time of now, so that it is built again


def copy_tree(source, copy):
    """Into a folder that is not there, or that was such a copy before."""
    for folder in FOLDERS:
        shutil.copytree(os.path.join(source, folder), os.path.join(copy, folder), copy_function=copy_changed,
                        dirs_exist_ok=True)
    for file in FILES:
        copy_changed(os.path.join(source, file), os.path.join(copy, file))


def environment(copy):
    return dict(os.environ, CCACHE_BASEDIR=copy, CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="pch_defines,time_macros")


def cached(build, name):
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        return next((line.split("=", 1)[1].strip() for line in cache if line.startswith(name + ":")), "")


def configure(copy, build):
    """The command that configures `copy` with the compilers and flags of `build`, and the folder it is built in."""
    out = os.path.join(copy, "build")
    command = ["cmake", "-S", copy, "-B", out, "-G", "Ninja", "-DQUERN_BENCH=OFF"]
    command += [f"-D{name}={value}" for name in KEPT if (value := cached(build, name))]
    return command, out


def run(command, env, **options):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
