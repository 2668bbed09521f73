#!/usr/bin/env python3
"""Graphs in text (of ops, of blocks) and binary form through every verb that takes them, and an interrupt that stops a
loop.

  text_graph_test.py QUERN SOURCE CC
"""

import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

from program import expect_in, said

QUERN, SOURCE, CC = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]

PLAIN = """# A row sum, with a weight.
# sizes: N=3
graph plain sym N in 1..64 {
  %0 = Input() {name = "x"} : f32[N, 4]
  %1 = Param() {name = "w"} : f32[4]
  %2 = Mul(%0, %1) : f32[N, 4]
  %3 = Reduce(%2) {axes = [1], keep_dim = false, op = "sum"} : f32[N]
  return %3
}
"""
STEPS = """graph steps {
  %0 = Input() {name = "x"} : f32[4]
  %1 = Constant() hex 0000000000000000 : i64[]
  %2:2 = While(%1, %0) {carries = 2, max = 0} : i64[], f32[4]  @"loop"
    cond graph cond {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[4]
      %2 = Constant() hex LIMIT : i64[]
      %3 = Lt(%0, %2) : bool[]
      return %3
    }
    body graph body {
      %0 = Input() {name = "i"} : i64[]
      %1 = Input() {name = "x"} : f32[4]
      %2 = Constant() hex 0100000000000000 : i64[]
      %3 = Add(%0, %2) : i64[]
      %4 = Neg(%1) : f32[4]
      return %3, %4
    }
  return %2.0, %2.1
}
"""


def quern(*arguments, code=0):
    return said(QUERN, *arguments, code=code, timeout=300, env=dict(os.environ, QUERN_CACHE="off"))


def check_plain(folder):
    path = folder / "plain.qir"
    path.write_text(PLAIN)
    first = quern("run", path)
    expect_in(first, "output 0  f32[3]  ")
    if quern("run", path) != first or quern("run", path, "--check", "ref") != first:
        sys.exit("the same file has other values")
    if quern("run", path, "--values", 2) == first:
        sys.exit("another seed has the same values")
    expect_in(quern("run", path, "--size", "N=7"), "f32[7]")
    expect_in(quern("run", path, "--size", "N=65", code=1), "N is 65", "1..64")
    expect_in(quern("run", path, "--size", "M=1", code=1), "there is no symbol M; there is: N")
    expect_in(quern("run", path, "--size", "N", code=1), "SYMBOL=NUMBER")
    expect_in(quern("dump", path, "--stage", "kir"), "kernel ")
    expect_in(quern("dump", path, "--dump-after", "dce"), "Reduce(")
    expect_in(quern("profile", path, "--repeat", 5), "5 steps after 1 to warm up")
    expect_in(quern("bench", path, "--samples", 3, "--ms", 0), "plain ")
    path.write_text(PLAIN.replace("Mul(%0", "Mull(%0"))
    expect_in(quern("run", path, code=1), "Mull")


def check_binary(folder):
    """The same graph as bytes, and back: no verb sees a difference, and diff says so."""
    text, binary, again = folder / "plain.qir", folder / "plain.qgf", folder / "again.qir"
    text.write_text(PLAIN)
    quern("convert", text, binary)
    quern("convert", binary, again)
    if again.read_text() != PLAIN[PLAIN.index("graph"):]:
        sys.exit(f"the text came back as\n{again.read_text()}")
    for verb in (["run", "--size", "N=3"], ["dump", "--stage", "kir"], ["inspect"]):
        if quern(verb[0], text, *verb[1:]) != quern(verb[0], binary, *verb[1:]):
            sys.exit(f"{verb[0]} differs between text and bytes")
    expect_in(quern("inspect", binary), "fingerprint ", "parameters  1, 4 elements, 16 bytes", "size        N in 1..64")
    expect_in(quern("compile", binary, "-o", folder), "plain.o")
    if quern("diff", text, binary) != "":
        sys.exit("text and bytes differ")
    again.write_text(PLAIN.replace('"sum"', '"mean"'))
    ran = subprocess.run([QUERN, "diff", binary, again], capture_output=True, text=True, timeout=60)
    if ran.returncode != 1:
        sys.exit(f"diff of what differs: {ran.returncode}")
    expect_in(ran.stdout, '- %3 = Reduce(%2)', '+ %3 = Reduce(%2)', 'op = "mean"')
    data = bytearray(binary.read_bytes())
    data[70] ^= 1
    binary.write_bytes(data)
    expect_in(quern("run", binary, code=1), "its hash is another")
    expect_in(quern("diff", binary, text, code=2), "its hash is another")


def check_steps(folder):
    path = folder / "steps.qir"
    path.write_text(STEPS.replace("LIMIT", "0300000000000000"))
    ran = quern("run", path, "--check", "ref")
    expect_in(ran, "output 0  i64[]  3\n")
    expect_in(quern("dump", path, "--stage", "lir"), "while b", "loop/body/")
    expect_in(quern("profile", path), "loop")
    quern("compile", path, "-o", folder)
    (folder / "main.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include \"steps.h\"\n"
        "int main(void) {\n"
        "  float x[4] = {1, 2, 3, 4}, y[4];\n  int64_t n = 0;\n  steps* model;\n"
        "  const void* inputs[] = {x};\n  void* outputs[] = {&n, y};\n"
        "  size_t bytes = (size_t)steps_workspace_bytes(1);\n  void* memory = aligned_alloc(64, bytes);\n"
        "  int32_t error = steps_init(&model, memory, bytes, NULL, 0, NULL);\n"
        "  if (error == 0) error = steps_step(model, inputs, outputs);\n"
        "  printf(\"%d %d %g %g\\n\", (int)error, (int)n, (double)y[0], (double)y[3]);\n  return 0;\n}\n")
    subprocess.run([CC, "-I", folder, folder / "main.c", folder / "steps.o", "-lm", "-o", folder / "main"], check=True)
    expect_in(subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout, "0 3 -1 -4\n")


def check_symbols(folder):
    """Sizes by words that C and the header have for themselves."""
    path = folder / "words.qir"
    for symbol in ("int", "inputs", "i", "begin"):
        text = PLAIN
        for old, new in (("graph plain", "graph words"), ("sizes: N", f"sizes: {symbol}"), ("sym N", f"sym {symbol}"),
                         ("[N", f"[{symbol}")):
            text = text.replace(old, new)
        path.write_text(text)
        expect_in(quern("run", path, "--check", "ref"), "output 0  f32[3]  ")
        quern("compile", path, "-o", folder)
        (folder / "words.c").write_text('#include "words.h"\n')
        subprocess.run([CC, "-Wall", "-Werror", "-fsyntax-only", "-I", folder, folder / "words.c"], check=True)


def npy(values, shape):
    """A file as numpy.save writes it, of f32."""
    sizes = "".join(f"{n}, " for n in shape)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}".ljust(117)
    return b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\n" + struct.pack(f"<{len(values)}f", *values)


def check_archives(folder, path, x):
    """.npz files: Python's zipfile writes what is read and reads what is written; damaged ones are errors."""
    archive, out = folder / "x.npz", folder / "y.npz"
    w = npy([1, 10, 100, 1000], [4])

    def write(entries, method=zipfile.ZIP_STORED):
        with zipfile.ZipFile(archive, "w", method) as file:
            for name, data in entries:
                file.writestr(name, data)

    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        write([("x.npy", x), ("w.npy", w)], method)
        expect_in(quern("run", path, "--in", archive, "--out", out), "output 0  f32[2]  4321 8765\n")
        with zipfile.ZipFile(out) as file:
            values = struct.unpack("<2f", file.read("0.npy")[-8:])
            if file.testzip() or file.namelist() != ["0.npy"] or values != (4321, 8765):
                sys.exit("the .npz file has other values")
    whole = archive.read_bytes()

    def refused(data, words):
        archive.write_bytes(data)
        expect_in(quern("run", path, "--in", archive, code=1), "x.npz: ", words)

    refused(b"", "no ZIP archive")
    refused(whole[:40], "no ZIP archive")
    refused(whole[:45] + bytes([whole[45] ^ 255]) + whole[46:], "x: ")
    lists = whole.index(b"PK\1\2")
    refused(whole[:lists + 24] + b"\xff\xff\xff\x7f" + whole[lists + 28:], "x: its size cannot be")
    write([("x.npy", x), ("readme.txt", b"")])
    refused(archive.read_bytes(), '"readme.txt" is no array')
    write([("x.npy", x[:-1])])
    refused(archive.read_bytes(), "x: byte 128: the data does not have the bytes of")


def check_values(folder):
    """Values from files and into files; sizes follow from shapes."""
    path, x, w = folder / "plain.qir", folder / "x.npy", folder / "w.safetensors"
    path.write_text(PLAIN)
    x.write_bytes(npy([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]))
    header = b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    w.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, 10, 100, 1000))
    out, all_out = folder / "y.npy", folder / "all.safetensors"
    expect_in(quern("run", path, "--in", f"x={x}", "--in", w, "--out", f"0={out}", "--out", all_out, "--check", "ref"),
              "output 0  f32[2]  4321 8765\n")
    if struct.unpack("<2f", out.read_bytes()[-8:]) != (4321, 8765) or b"'shape': (2,)" not in out.read_bytes():
        sys.exit("the .npy file has other values")
    data = all_out.read_bytes()
    if struct.unpack("<2f", data[-8:]) != (4321, 8765) or b'"0":{"dtype":"F32"' not in data:
        sys.exit("the .safetensors file has other values")
    expect_in(quern("profile", path, "--in", f"x={x}"), "run")
    expect_in(quern("bench", path, "--in", f"x={x}", "--samples", 2, "--ms", 0), "plain")
    expect_in(quern("run", path, "--in", f"x={x}", "--size", "N=3", code=1), "tensor x", "[2, 4]", "[3, 4] expected")
    expect_in(quern("run", path, "--in", f"w={x}", code=1), "tensor w", "[2, 4]", "[4] expected")
    expect_in(quern("run", path, "--in", f"y={x}", code=1), "there is no input or parameter y; there is: w, x")
    expect_in(quern("run", path, "--in", x, code=1), "is not NAME=FILE.npy, FILE.npz or FILE.safetensors")
    expect_in(quern("run", path, "--out", f"1={out}", code=1), "there is no output 1; there is: 0")
    check_archives(folder, path, x.read_bytes())
    x.write_bytes(x.read_bytes()[:-1])
    expect_in(quern("run", path, "--in", f"x={x}", code=1), "x.npy: byte 128: the data does not have the bytes of")


BLOCKS = """# sizes: S=3
module blocks sym S in 1..64 fusion direct {
  %0 = Input() {name = "x"} : f32[S, 8]  @"x"
  %1 = Param() {name = "gamma"} : f32[8]  @"gamma"
  %2 = Param() {name = "w"} : f32[8, 5]  @"w"
  %3 = RmsNorm(%0, %1) {eps = 1e-05} : f32[S, 8]  @"layers.0/norm"
  %4 = Linear(%3, %2) {act = "Silu", bias = false, weight_layout = "kn"} : f32[S, 5]  @"layers.0/up"
  %5 = Mir.Softmax(%4) {axis = -1} : f32[S, 5]  @"%5"
  return %5
}
"""


def check_blocks(folder):
    """Text of blocks through every verb: it comes back as it was, and is the graph of its ops."""
    path, again, ops = folder / "blocks.qir", folder / "again.qir", folder / "ops.qir"
    path.write_text(BLOCKS)
    if quern("dump", path, "--stage", "hir") != BLOCKS[BLOCKS.index("module"):]:
        sys.exit("blocks come back as\n" + quern("dump", path, "--stage", "hir"))
    quern("convert", path, again)
    if again.read_text() != BLOCKS[BLOCKS.index("module"):]:
        sys.exit(f"the text came back as\n{again.read_text()}")
    ops.write_text(quern("dump", path, "--dump-after", "lower"))
    expect_in(ops.read_text(), "graph blocks", "MatMul(")
    if quern("diff", path, ops) != "" or quern("run", path) != quern("run", ops, "--size", "S=3"):
        sys.exit("the ops of the blocks are another graph")
    expect_in(quern("run", path, "--check", "ref"), "output 0  f32[3, 5]  ")
    quern("convert", path, folder / "blocks.qgf")
    if quern("inspect", path) != quern("inspect", folder / "blocks.qgf"):
        sys.exit("the bytes of the blocks are another graph")
    expect_in(quern("profile", path), "layers.*/up")
    expect_in(quern("bench", path, "--samples", 3, "--ms", 0), "blocks ")
    expect_in(quern("compile", path, "-o", folder), "blocks.o")
    path.write_text(BLOCKS.replace("RmsNorm(%0", "RmsNrm(%0"))
    expect_in(quern("run", path, code=1), "6:14: there is no block or op RmsNrm; did you mean RmsNorm?")
    # A whole model, whose cache is carried.
    path.write_text(quern("dump", SOURCE / "models/addition.gguf", "--stage", "hir"))
    if quern("dump", path, "--stage", "hir") != path.read_text():
        sys.exit("a model's blocks come back as others")
    expect_in(quern("run", path, "--size", "SEQ=1", "--size", "LOGITS=1"), "output 0 ")


def check_refused(folder):
    """A parameter in a block format is no output: it lies as no caller knows it."""
    path = folder / "blocks.qir"
    path.write_text('graph g {\n  %0 = Param() {name = "w"} : q4_0[3, 32]\n  return %0\n}\n')
    for verb in (["dump", path, "--stage", "lir"], ["run", path], ["profile", path], ["compile", path, "-o", folder]):
        expect_in(quern(*verb, code=1), "Output: value is q4_0[3, 32], which is not supported")


def check_interrupt(folder, verb):
    path = folder / "endless.qir"
    path.write_text(STEPS.replace("LIMIT", "0000000000001000"))
    running = subprocess.Popen([QUERN, verb, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, QUERN_CACHE="off"))
    time.sleep(2)
    if running.poll() is not None:
        sys.exit(f"a loop without an end ended: {running.communicate()}")
    running.send_signal(signal.SIGINT)
    try:
        _, errors = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        sys.exit("an interrupt stops nothing")
    if running.returncode != 130:
        sys.exit(f"an interrupted {verb} gives {running.returncode}")
    expect_in(errors, "the run was cancelled")


with tempfile.TemporaryDirectory() as text:
    check_plain(pathlib.Path(text))
    check_binary(pathlib.Path(text))
    check_steps(pathlib.Path(text))
    check_symbols(pathlib.Path(text))
    check_values(pathlib.Path(text))
    check_blocks(pathlib.Path(text))
    check_refused(pathlib.Path(text))
    for verb in ("run", "profile", "bench"):
        check_interrupt(pathlib.Path(text), verb)
print("graphs in text form: run, dump, profile, bench, compile, interrupted")
