#!/usr/bin/env python3
"""Kernels as perf and gdb see them, through the tools themselves; what is not installed or not permitted is skipped,
saying so.

  debug_test.py QUERN ROOT
"""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

QUERN, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = str(ROOT / "models/addition.gguf")
RUN = [QUERN, "run", MODEL, "--prompt", "27+58=", "--tokens", "60", "--ids", "--threads", "1"]


def fail(message):
    sys.exit(f"debug_test: {message}")


def call(command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **kwargs)


def perf_map():
    process = subprocess.Popen([*RUN, "--perf-map"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.wait(timeout=300)
    path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
    lines = path.read_text().splitlines()
    path.unlink()
    for line in lines:
        if not re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ quern:[\w.]+", line):
            fail(f"a line of the perf map: {line!r}")
    if not any("quern:layers.0.ffn.matmul" in line for line in lines):
        fail(f"no product of a layer in the perf map: {lines}")
    # From outside, for a program whose sources do not know of it.
    process = subprocess.Popen(RUN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "QUERN_PERF_MAP": "1"})
    process.wait(timeout=300)
    pathlib.Path(f"/tmp/perf-{process.pid}.map").unlink()
    return len(lines)


def gdb(folder):
    if shutil.which("gdb") is None:
        return "skipped: gdb is not installed"
    commands = ["set breakpoint pending on", "set debuginfod enabled off", "break 'layers.0.ffn.matmul.f16'", "run",
                "bt 1", "info source", "list", "next", "continue 0"]
    arguments = [argument for command in commands[:-1] for argument in ("-ex", command)]
    result = call(["gdb", "-batch", "-nx", *arguments, "--args", *RUN, "--debug-kernels", folder])
    if "ptrace" in result.stderr and "not permitted" in result.stderr:
        return "skipped: tracing is not permitted to gdb"
    out = result.stdout
    if not re.search(r"Breakpoint 1,.*layers\.0\.ffn\.matmul\.f16.*\n?.*\.kir:\d+", out):
        fail(f"gdb does not stop in the kernel, or knows no line of it:\n{out}\n{result.stderr}")
    if "grid" not in out:
        fail(f"gdb does not list the kernel's text:\n{out}")
    return "gdb stops in a kernel by name and lists its text"


def perf(folder):
    if shutil.which("perf") is None:
        return "skipped: perf is not installed"
    data, injected = f"{folder}/perf.data", f"{folder}/perf.jit.data"
    # A second of steps, so that a coarse clock sees kernels, whose own code is a tenth of them.
    steps = [QUERN, "profile", MODEL, "--prompt", "27+58=", "--tokens", "50", "--repeat", "200", "--threads", "1"]
    recorded = call(["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "5000", "-o", data, *steps],
                    env={**os.environ, "QUERN_DEBUG_KERNELS": folder, "XDG_CACHE_HOME": folder})
    if not os.path.exists(data) or os.path.getsize(data) == 0:
        return f"skipped: perf may not record: {recorded.stderr.strip().splitlines()[-1:]}"
    result = call(["perf", "inject", "--jit", "-i", data, "-o", injected])
    if result.returncode != 0:
        fail(f"perf inject refuses the jitdump: {result.stderr}")
    report = call(["perf", "report", "-i", injected, "--stdio", "--sort", "sym"])
    names = re.findall(r"\] (layers\.\d[\w.]*|output[\w.]*)", report.stdout)
    if not names:
        fail(f"perf report names no kernel:\n{report.stdout[:3000]}\n{report.stderr[:500]}")
    annotated = call(["perf", "annotate", "--stdio", "-l", "-i", injected, names[0]])
    if not re.search(re.escape(names[0]) + r"\.kir:\d+", annotated.stdout):
        fail(f"perf annotate knows no line of {names[0]}:\n{annotated.stdout[:3000]}\n{annotated.stderr[:500]}")
    return f"perf names {len(set(names))} kernels, and their lines"


def callers(folder):
    """Chains of frame pointers from a product's tile by its kernel to who runs it."""
    if shutil.which("perf") is None:
        return "skipped: perf is not installed"
    data = f"{folder}/callers.data"
    steps = [QUERN, "profile", MODEL, "--prompt", "27+58=", "--tokens", "50", "--repeat", "200", "--threads", "1"]
    recorded = call(["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "5000", "-o", data, *steps],
                    env={**os.environ, "QUERN_PERF_MAP": "1", "XDG_CACHE_HOME": folder})
    if not os.path.exists(data) or os.path.getsize(data) == 0:
        return f"skipped: perf may not record: {recorded.stderr.strip().splitlines()[-1:]}"
    script = call(["perf", "script", "-i", data, "-F", "pid,ip,sym"]).stdout
    chains = [re.findall(r"^\s+[0-9a-f]+ (.*)$", sample, re.MULTILINE) for sample in script.split("\n\n")]
    for pid in set(re.findall(r"^ *(\d+) *$", script, re.MULTILINE)):
        pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
    tiles = [chain for chain in chains if chain and re.search(r"\bDot|^qk_dot", chain[0])]
    whole = [c for c in tiles if any("quern:" in at and "matmul" in at for at in c[1:4]) and
             any("quern::" in at for at in c[2:])]
    if len(tiles) < 20:
        return f"skipped: perf saw tiles {len(tiles)} times in {len(chains)} samples"
    # A sample in a tile's first or last instruction lacks a frame.
    if len(whole) < 0.8 * len(tiles):
        fail(f"{len(whole)} of {len(tiles)} samples of tiles lead to a kernel and its caller:\n{script[:3000]}")
    return f"{len(whole)} of {len(tiles)} samples of tiles lead to a kernel and its caller"


with tempfile.TemporaryDirectory(prefix="quern_debug_") as scratch:
    mapped = perf_map()
    texts = call([*RUN, "--debug-kernels", scratch])
    kir = glob.glob(f"{scratch}/*.kir")
    if texts.returncode != 0 or not kir or not glob.glob(f"{scratch}/jit-*.dump"):
        fail(f"--debug-kernels writes {os.listdir(scratch)}: {texts.stderr}")
    if not any("\nkernel " in "\n" + pathlib.Path(path).read_text() for path in kir):
        fail("the texts are no kernels")
    print(f"{mapped} kernels in the perf map", gdb(scratch), perf(scratch), callers(scratch), sep="\n")
