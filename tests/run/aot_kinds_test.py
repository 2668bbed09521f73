#!/usr/bin/env python3
"""Every kind of model as a C library: graphs of ops and of blocks as text, as bytes, ONNX, a folder of safetensors,
GGUF.

    aot_kinds_test.py QUERN SOURCE_DIR LIBQUERN_RT.A C_COMPILER MODELS_DIR
Each is compiled, linked by a C compiler with the runtime archive alone and run; its outputs are the bytes of
`quern run`, with parameters in the object and in a file of their own. Models of MODELS_DIR that are not there are
named.
"""
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import tempfile

from program import expect, said

QUERN, RT, CC = sys.argv[1], sys.argv[3], sys.argv[4]
SOURCE, MODELS = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[5])
LEVEL = ["--cpu", "x86-64-v3"]
BYTES = {"f32": 4, "i64": 8, "i32": 4, "bool": 1}
NUMPY = {"f32": "<f4", "i64": "<i8", "i32": "<i4", "bool": "|b1"}
PLAIN = """graph plain sym N in 1..64 {
  %0 = Input() {name = "x"} : f32[N, 13]
  %1 = Param() {name = "w"} : f32[13]
  %2 = Param() {name = "matrix"} : f32[17, 13]
  %3 = Mul(%0, %1) : f32[N, 13]
  %4 = MatMul(%3, %2) {transpose_b = true} : f32[N, 17]
  %5 = Reduce(%3) {axes = [1], keep_dim = false, op = "sum"} : f32[N]
  return %4, %5
}
"""
# Sizes that data decide: rows that are chosen, in a batch, through products and a softmax, and where some of what they
# make is not 0.
FOUND = """graph found sym B in 1..7, K in 0.., N in 0.., S in 1..64 {
  %0 = Input() {name = "x"} : f32[B, S, 13]
  %1 = Input() {name = "c"} : bool[S]
  %2 = Param() {name = "matrix"} : f32[17, 13]
  %3:2 = Compress(%0, %1) {axis = 1} : f32[B, S, 13], i64[]
  %4 = Counted(%3.0, %3.1) {axis = 1, size = <N>} : f32[B, N, 13]
  %5 = MatMul(%4, %2) {transpose_b = true} : f32[B, N, 17]
  %6 = MatMul(%4, %4) {transpose_b = true} : f32[B, N, N]
  %7 = Softmax(%6) {axis = 2} : f32[B, N, N]
  %8 = MatMul(%7, %5) : f32[B, N, 17]
  %9 = Relu(%8) : f32[B, N, 17]
  %10:2 = NonZero(%9) : i64[3, 17*B*N], i64[]
  %11 = Counted(%10.0, %10.1) {axis = 1, size = <K>} : i64[3, K]
  return %8, %11
}
"""
BLOCKS = """module blocks sym S in 1..64 fusion direct {
  %0 = Input() {name = "x"} : f32[S, 8]  @"x"
  %1 = Param() {name = "gamma"} : f32[8]  @"gamma"
  %2 = Param() {name = "w"} : f32[8, 5]  @"w"
  %3 = RmsNorm(%0, %1) {eps = 1e-05} : f32[S, 8]  @"layers.0/norm"
  %4 = Linear(%3, %2) {act = "Silu", bias = false, weight_layout = "kn"} : f32[S, 5]  @"layers.0/up"
  return %4
}
"""


def npy(path, dtype, shape, data):
    header = f"{{'descr': '{NUMPY[dtype]}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    header = header.ljust(-(10 + len(header) + 1) % 64 + len(header)) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def drawn(dtype, count):
    numbers = random.Random(count)
    if dtype == "f32":
        return struct.pack(f"<{count}f", *(numbers.choice((0, 1, 1)) * numbers.uniform(-1, 1) for _ in range(count)))
    if dtype == "bool":
        return bytes(numbers.randrange(2) for _ in range(count))
    return struct.pack(f"<{count}{'q' if dtype == 'i64' else 'i'}", *(numbers.randrange(3) for _ in range(count)))


def outputs_of(path):
    """The bytes of the tensors of a .safetensors file, by name."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    rows = json.loads(data[8:8 + size])
    return {name: data[8 + size + row["data_offsets"][0]:8 + size + row["data_offsets"][1]]
            for name, row in rows.items() if name != "__metadata__"}


def elements(shape, sizes):
    """How many there are, and the numbers that the sizes in a manifest's shape stand for."""
    shape = [n if isinstance(n, int) else eval(n.replace("*", " * "), {}, dict(sizes)) for n in shape]
    return math.prod(shape), shape


def check(at, name, model, sizes, params=True):
    """JIT and C on the same inputs and parameters, which are what `--values 1` draws where the file has none."""
    folder = at / name
    folder.mkdir()
    said(QUERN, "compile", model, "-o", folder / "model.o", *LEVEL)
    manifest = json.loads((folder / "model.json").read_text())
    expect(list(manifest["symbols"]) == sorted(manifest["symbols"]), f"{name}: symbols in another order")
    expect(set(manifest["symbols"]) == set(sizes), f"{name}: sizes {list(manifest['symbols'])}, not {list(sizes)}")
    values = [str(sizes[symbol]) for symbol in manifest["symbols"]]
    given = []
    for i, port in enumerate(manifest["inputs"]):
        count, shape = elements(port["shape"], sizes)
        data = drawn(port["dtype"], count)
        expect(len(data) == count * BYTES[port["dtype"]], "an input of another size")
        (folder / f"{i}.in").write_bytes(data)
        npy(folder / f"{i}.npy", port["dtype"], shape, data)
        given += ["--in", f"{port['name']}={folder / f'{i}.npy'}"]
    said(QUERN, "run", model, *given, *(word for s, n in sizes.items() for word in ("--size", f"{s}={n}")), "--out",
         folder / "jit.safetensors", *LEVEL)
    want = outputs_of(folder / "jit.safetensors")
    forms = [([], "-")] + ([(["--pack-weights"], folder / "packed" / "model.weights")] if params else [])
    for options, weights in forms:
        build = folder / ("packed" if options else "inside")
        written = said(QUERN, "compile", model, "-o", build, "--name", "model", *options, *LEVEL).split()
        expect(len(written) == (4 if options else 3), f"{name}: {written}")
        program = build / "program"
        said(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{build}", f"-I{SOURCE}/include",
             f"-DSIZES={''.join(f',sizes[{s}]' for s in range(len(values)))}",
             f"-DFOUND={''.join(f',&found[{s}]' for s in range(len(manifest['found_symbols'])))}",
             SOURCE / "tests/run/aot/ports.c", build / "model.o", RT, "-lpthread", "-lm", "-o", program)
        shown = said(program, weights, folder, *values).splitlines()
        names = [line.split()[1] for line in shown if line.startswith("output ")]
        expect(names == [port["name"] for port in manifest["outputs"]] and set(want) <= set(names),
               f"{name}: outputs {names}, of the JIT {list(want)}")
        found = [int(line.split()[1]) for line in shown if line.startswith("found ")]
        expect(len(found) == len(manifest["found_symbols"]), f"{name}: {found} of {manifest['found_symbols']}")
        known = sizes | dict(zip(manifest["found_symbols"], found))
        for o, port in enumerate(manifest["outputs"]):
            if port["name"] in want:
                count, _ = elements(port["shape"], known)
                out = (folder / f"{o}.out").read_bytes()[:count * BYTES[port["dtype"]]]
                expect(out == want[port["name"]], f"{name}: {port['name']} is not the JIT's")
        if options:  # another file is known by its beginning
            changed = bytearray(weights.read_bytes())
            changed[60] ^= 1
            (build / "other").write_bytes(changed)
            message = said(program, build / "other", folder, *values, code=1)
            expect("another file" in message, f"{name}: takes any weights")
    words = "".join(f", {size} of {symbol}" for symbol, size in zip(manifest["found_symbols"].values(), found))
    print(f"{name}: {len(want)} outputs, the bits of the JIT{words}")


def language_model(at, name, model, *options, tokens=True):
    """Ids to logits, by a file of weights that is mapped."""
    folder = at / name
    said(QUERN, "compile", model, "-o", folder, "--name", "model", *LEVEL, *options)
    header = (folder / "model.h").read_text()
    expect("output 0: logits  f32[LOGITS, " in header, header[:800])
    expect(("#define MODEL_BEGIN_TOKEN (1)\n" in header) == tokens, f"{name}: tokens in the header")
    weights = folder / "model.weights"
    if not options:
        weights = model if model.is_file() else next(model.glob("*.safetensors"))
    said(CC, "-std=c99", "-O1", f"-I{folder}", f"-I{SOURCE}/include", SOURCE / "tests/run/aot/driver.c",
         folder / "model.o", "-lm", "-o", folder / "driver")
    ids = said(folder / "driver", weights, "1,261,266,269", 12, folder / "c.f32").split()
    want = said(QUERN, "run", model, "--tokens-in", "1,261,266,269", "--tokens", 12, "--ids", "--logits",
                folder / "jit.f32", *LEVEL).split()
    expect(ids == want, f"{name}: {ids}, the JIT {want}")
    expect((folder / "c.f32").read_bytes() == (folder / "jit.f32").read_bytes(), f"{name}: other bits than the JIT's")
    print(f"{name}: {len(ids)} tokens, the bits of the JIT")


def progress(at):
    """Who waits at a terminal sees what is done; a file or a pipe gets nothing of it."""
    here, there = os.openpty()
    command = [QUERN, "compile", at / "plain.qir", "-o", at / "seen", *LEVEL]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=there, check=True)
    os.close(there)
    seen = b""
    try:
        while part := os.read(here, 4096):
            seen += part
    except OSError:  # what a terminal gives that nobody has open any more
        pass
    os.close(here)
    for word in (b"planning for avx2 ..", b" kernels for avx2 ..", b"generating code .."):
        expect(done.returncode == 0 and word in seen, f"{seen} without {word}")
    expect(seen.endswith(b"\r\x1b[K"), "what was shown is not wiped off")
    quiet = subprocess.run(command, capture_output=True, check=True)
    expect(quiet.stderr == b"", f"{quiet.stderr} where nobody watches")


def output_files(at):
    """-o FILE.o is that file; what cannot be is a sentence."""
    model = at / "plain.qir"
    written = said(QUERN, "compile", model, "-o", at / "out" / "my-model.o").split()
    expect(written == [str(at / "out" / f"my-model{end}") for end in (".o", ".h", ".json")], f"{written}")
    expect("my_model_step(" in (at / "out/my-model.h").read_text(), "functions of another name")
    written = said(QUERN, "compile", model, "-o", at / "out" / "text.s", "--emit", "asm").split()
    expect(written == [str(at / "out" / "text.s")], f"{written}")
    for args, sentence in ((["-o", "-"], "-o -: a folder, or a file of this name"),
                           (["-o", at / "x.s"], "no file that ends in .s; --emit asm is"),
                           (["-o", at / "x.o", "--emit", "kir"], "no file that ends in .o; --emit obj is"),
                           (["-o", at / "x.o", "--target", "metal"], "no file that ends in .o"),
                           (["--embed-vocabulary"], "--embed-vocabulary is an option of language models"),
                           (["--pack-weights", "--embed-weights"], "either embedded or packed"),
                           (["--target", "aarch64-apple-darwin"], 'unknown target "aarch64-apple-darwin"; known: '),
                           (["--target", "x86_64-pc-windows-msvc"], 'unknown target "x86_64-pc-windows-msvc"; known: '),
                           (["--target", "riscv64-linux-gnu"], 'unknown target "riscv64-linux-gnu"; known: '),
                           (["--target", "thumbv7em-none-eabi"], 'unknown target "thumbv7em-none-eabi"; known: '),
                           (["--target", "wasm32-wasi"], 'unknown target "wasm32-wasi"; known: ')):
        message = said(QUERN, "compile", model, *args, code=1)
        expect(sentence in message and message.count("\n") == 1, f"{args}: {message!r} without {sentence!r}")
    expect(not (pathlib.Path.cwd() / "-").exists(), "a folder called -")


def main():
    with tempfile.TemporaryDirectory(prefix="quern_aot_kinds_") as scratch:
        at = pathlib.Path(scratch)
        (at / "plain.qir").write_text(PLAIN)
        (at / "blocks.qir").write_text(BLOCKS)
        (at / "found.qir").write_text(FOUND)
        said(QUERN, "convert", at / "plain.qir", at / "plain.qgf")
        output_files(at)
        progress(at)
        check(at, "text", at / "plain.qir", {"N": 7})
        check(at, "binary", at / "plain.qgf", {"N": 19})
        check(at, "blocks", at / "blocks.qir", {"S": 11})
        check(at, "found", at / "found.qir", {"B": 3, "S": 37})
        finds = ("compress_11", "nms_11", "nonzero_13", "unique_11")
        with tarfile.open(SOURCE / "tests/golden/onnx/cases.tar.xz") as archive:
            names = ("layer_norm_17",) + finds
            archive.extractall(at, [m for m in archive.getmembers() if m.name.split("/")[0] in names])
        check(at, "onnx", at / "layer_norm_17/model.onnx", {"B": 3, "S": 5}, params=False)
        for name in finds:
            check(at, f"onnx_{name}", at / name / "model.onnx", {}, params=False)
        for name, sizes in (("mnist_zoo", {}),):
            path = MODELS / "onnx" / name / "model.onnx"
            if path.exists():
                check(at, name, path, sizes)
            else:
                print(f"skipped: {name} is not in {MODELS}")
        language_model(at, "gguf", SOURCE / "models/addition.gguf")
        language_model(at, "gguf_packed", SOURCE / "models/addition.gguf", "--pack-weights")
        folder = MODELS.resolve() / "safetensors/stories260K"
        if folder.exists():
            one = at / "stories"  # a folder with one file of weights
            one.mkdir()
            for file in ("config.json", "model-F32.safetensors"):
                (one / file.replace("-F32", "")).symlink_to(folder / file)
            language_model(at, "folder", one, tokens=False)  # it has no tokenizer
            language_model(at, "folder_packed", one, "--pack-weights", tokens=False)
        else:
            print(f"skipped: stories260K is not in {MODELS}")


main()
