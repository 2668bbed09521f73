"""The Python package: a wheel is built in an environment of its own, and tried in another with the pages' examples.

    python_test.py SOURCE_DIR BUILD_DIR

QUERN_TEST_TORCH=1 installs PyTorch as well, which is large, and tests beside it. 77, skipped: pip reaches no index.
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

SOURCE, BUILD = (os.path.realpath(a) for a in sys.argv[1:3])
MOST = 60 << 20  # bytes of the wheel
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def works(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout[-8000:]}{result.stderr[-4000:]}")
    return result.stdout


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
    works("cmake", "--install", BUILD, "--strip", "--prefix", prefix)
    works(python, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
          "--wheel-dir", wheels, "-C", f"cmake.define.QUERN_PREFIX={prefix}", "-C",
          f"build-dir={os.path.join(folder, 'build')}")
    (wheel,) = glob.glob(os.path.join(wheels, "*.whl"))
    return wheel


def check_contents(wheel, folder):
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
    shown = [line.split()[-1] for line in works("nm", "-D", "--defined-only", module).splitlines()]
    if shown != ["PyInit__quern"]:
        sys.exit(f"the extension module shows {shown[:9]}")


def examples(python, folder):
    """The programs of docs/python.md and the README, word for word, beside a model in ONNX."""
    place = os.path.join(folder, "examples")
    os.mkdir(place)
    os.symlink(os.path.join(SOURCE, "models"), os.path.join(place, "models"))
    works(python, "-c", ONNX_MODEL, cwd=place)
    count = 0
    for page in ("README.md", os.path.join("docs", "python.md")):
        with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
            blocks = BLOCK.findall(f.read())
        for code, prints in blocks:
            out = works(python, "-c", code, cwd=place, env=dict(os.environ, QUERN_CACHE="off"))
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
        wheel = build(builder, folder)
        check_contents(wheel, folder)
        install(user, wheel + "[test]", *(["torch"] if torch else []))
        tests = os.path.join(folder, "tests")
        shutil.copytree(os.path.join(SOURCE, "python", "tests"), tests)
        out = works(user, "-m", "pytest", "-q", "-rs", tests, cwd=folder,
                    env=dict(os.environ, QUERN_SOURCE=SOURCE, QUERN_CACHE="off"))
        print(out[-1500:])
        count = examples(user, folder)
        print(f"a wheel of {os.path.getsize(wheel) / 1e6:.1f} MB; {count} programs of the pages run as they stand")


main()
