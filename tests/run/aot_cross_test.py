#!/usr/bin/env python3
"""Models compiled for aarch64: linked into static programs, run under qemu, compared with `quern run` on this machine.

    aot_cross_test.py QUERN SOURCE_DIR MODELS_DIR [PART...]
A part is a function below; none: all. Models of MODELS_DIR that are not there are left out, and named. Exit code 77:
this machine has no cross linker, C library or qemu-aarch64.
"""
import array
import json
import pathlib
import shutil
import sys
import tempfile

from program import expect, run

QUERN, SOURCE, MODELS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
MODEL = SOURCE / "models/addition.gguf"
DRIVER = SOURCE / "tests/run/aot/driver.c"
TARGET = ["--target", "aarch64-linux-gnu"]
CC = ["clang-19", "--target=aarch64-linux-gnu", "-fuse-ld=lld"]
SUM = "1,261,266,269,264,267,270"  # 27+58=
STORY = "1,403,407,261,378"
LONG = "1," + ",".join(str(3 + 37 * i % 500) for i in range(99))
# Logits of another processor: f32 activations round in other places; quantised ones may round to another code.
CLOSE, QUANTISED = 1e-3, 0.8
LIBRARY_MOST = 100_000  # bytes of text of the runtime archive


def compile_model(folder, *args, model=MODEL, **kwargs):
    run(QUERN, "compile", model, "-o", folder, "--name", "model", *TARGET, *args, **kwargs)
    return folder


def library(folder):
    """libquern_rt.a, by the commands of docs/aot.md."""
    objects = []
    for source in sorted((SOURCE / "src/rt").glob("*.c")):
        objects.append(folder / f"{source.stem}.o")
        run(*CC, "-std=c11", "-D_GNU_SOURCE", "-O2", f"-I{SOURCE}/include", f"-I{SOURCE}/src", "-c", source, "-o",
            objects[-1])
    run("llvm-ar-19", "rcs", folder / "libquern_rt.a", *objects)
    return folder / "libquern_rt.a"


def program(folder, name, *flags, rt=None):
    out = folder / name
    run(*CC, "-static", "-std=c99", "-O1", *flags, f"-I{folder}", f"-I{SOURCE}/include", DRIVER, folder / "model.o",
        *([rt, "-lpthread"] if rt else []),
        "-lm", "-o", out)
    return out


def answers(driver, weights, prompt, tokens):
    logits = driver.parent / f"{driver.name}.f32"
    result = run("qemu-aarch64", driver, weights, prompt, tokens, logits)
    expect(result.stderr.decode().strip() == "neon", f"{driver}: level {result.stderr}")
    return result.stdout.decode().split(), logits.read_bytes()


def here(model, prompt, tokens, folder, *args):
    logits = folder / "here.f32"
    result = run(QUERN, "run", model, "--tokens-in", prompt, "--tokens", tokens, "--ids", "--logits", logits, *args)
    return result.stdout.decode().split(), logits.read_bytes()


def difference(a, b):
    a, b = array.array("f", a), array.array("f", b)
    expect(len(a) == len(b) and len(a) > 0, f"{len(a)} logits, not {len(b)}")
    expect(all(x == x for x in a), "a logit is no number")
    return max(abs(x - y) for x, y in zip(a, b))


def same_answers(scratch):
    """Ids, logits; one thread and three. Every format of weights."""
    rt = library(scratch)
    rows = [(MODEL, [], CLOSE, [(SUM, 12), ("1,262", 4)]), (MODEL, ["--exact"], CLOSE, [(SUM, 12)])]
    for name, options, tolerance, prompts in (
        ("stories260K-wide256-F32", [], CLOSE, [(STORY, 24), (LONG, 4)]),
        ("stories260K-wide256-Q4_K_M", [], QUANTISED, [(STORY, 8), (LONG, 1)]),
        ("stories260K-wide256-Q4_K_M", ["--exact"], CLOSE, [(STORY, 8)]),
        ("stories260K-wide256-F16", [], CLOSE, [(STORY, 4)]),
        ("stories260K-wide256-Q8_0", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q4_0", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q5_K_M", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q6_K", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q5_0", ["--exact"], CLOSE, [(STORY, 4)]),
        ("stories260K-wide256-Q5_1", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-IQ4_NL", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-IQ4_XS", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q2_K", [], QUANTISED, [(STORY, 4)]),
        ("stories260K-wide256-Q3_K_M", ["--exact"], CLOSE, [(STORY, 4)]),
    ):
        path = MODELS / "gguf" / f"{name}.gguf"
        if path.exists():
            rows.append((path, options, tolerance, prompts))
        else:
            print(f"skipped: {name} is not in {MODELS}")
    for model, options, tolerance, prompts in rows:
        folder = compile_model(scratch / f"{model.stem}{''.join(options)}", *options, model=model)
        alone, three = program(folder, "alone"), program(folder, "three", "-DWORKERS=3", rt=rt)
        furthest = 0
        for prompt, tokens in prompts:
            ids, logits = here(model, prompt, tokens, folder, *options)
            got = answers(alone, model, prompt, tokens)
            expect(got == answers(three, model, prompt, tokens), f"{folder.name}: three threads give other bits")
            # Quantised activations may lead elsewhere where the two best are close: the prompt's logits count alone.
            same = got[0] == ids
            expect(same or tolerance == QUANTISED, f"{folder.name}: ids {got[0]}, here {ids}")
            rows_of_prompt = len(logits) // (len(prompt.split(",")) + tokens - 1) * len(prompt.split(","))
            end = len(logits) if same else rows_of_prompt
            furthest = max(furthest, difference(got[1][:end], logits[:end]))
            if prompt == SUM:
                expect(got[0][:3] == ["267", "264", "2"], f"27+58= is not 85 but {got[0]}")
        print(f"{folder.name}: logits within {furthest:.2g} of {tolerance}")
        expect(furthest <= tolerance, f"{folder.name}: logits differ by {furthest}, more than {tolerance}")


def undefined(path):
    return {line.split()[-1] for line in run("llvm-nm-19", "-u", path).stdout.decode().splitlines() if " U " in line}


def clean(scratch):
    """What the object needs and defines, and what the manifest says of it."""
    folder = compile_model(scratch)
    left = undefined(folder / "model.o") - {"memcpy", "memset"}
    expect(not left, f"the object needs {left}")
    symbols = [line.split()[-1]
               for line in run("llvm-nm-19", "-g", "--defined-only", folder / "model.o").stdout.decode().splitlines()]
    foreign = [s for s in symbols if not s.startswith("model_")]
    expect(not foreign, f"the object defines {foreign}")
    header = run("llvm-readelf-19", "-h", folder / "model.o").stdout.decode()
    expect("AArch64" in header and "REL (" in header, header)
    manifest = json.loads((folder / "model.json").read_text())
    expect(manifest["target"] == "aarch64-linux-gnu" and [l["name"] for l in manifest["levels"]] == ["neon"],
           "levels of the manifest")
    for row in manifest["levels"][0]["kernels"] + manifest["levels"][0]["tiles"]:
        expect(row["bytes"] > 0, f"{row} of the manifest is not in the object")
    expect(manifest["levels"][0]["tiles"], "no tiles")
    text = sum(int(line.split()[0]) for line in run("llvm-size-19", library(scratch)).stdout.decode().splitlines()[1:])
    expect(text < LIBRARY_MOST, f"the runtime archive has {text} bytes of text")
    print(f"object: {(folder / 'model.o').stat().st_size} bytes; runtime archive: {text} bytes of text")


def deterministic(scratch):
    first = compile_model(scratch / "first")
    shutil.copy(MODEL, scratch / "renamed.gguf")
    run("taskset", "-c", "0", QUERN, "compile", "renamed.gguf", "-o", "second", "--name", "model", "--cpu", "armv8-a",
        *TARGET, cwd=scratch)
    for name in ("model.o", "model.h", "model.json"):
        expect((first / name).read_bytes() == (scratch / "second" / name).read_bytes(),
               f"{name} is another the second time")


def forms(scratch):
    """Embedded weights; the object from its assembly and from its bitcode: the same bits."""
    want = answers(program(compile_model(scratch / "whole"), "driver"), MODEL, SUM, 6)
    inside = compile_model(scratch / "inside", "--embed-weights")
    expect(answers(program(inside, "driver"), "-", SUM, 6) == want, "embedded weights give other bits")
    for emit, suffix in (("asm", ".s"), ("bc", ".bc")):
        folder = compile_model(scratch / emit, "--emit", emit)
        shutil.copy(scratch / "whole/model.h", folder / "model.h")
        run(*CC, "-O2", "-fPIC", "-Xclang", "-disable-llvm-passes", "-Wno-override-module",
            "-Wno-unused-command-line-argument", "-c",
            folder / f"model{suffix}", "-o", folder / "model.o")
        expect(answers(program(folder, "driver"), MODEL, SUM, 6) == want, f"model{suffix} gives other bits")
    # Code that cannot run here can still be looked at.
    text = run(QUERN, "dump", MODEL, "--stage", "asm", "--cpu", "neon", "--kernel", "layers.0/ffn").stdout
    expect(b"bl\tqk_dot_f16_neon" in text, "dump --cpu neon shows no call of the tile")


def refusals(scratch):
    for verb, args, sentence in (
        ("compile", ["--target", "mips"], 'unknown target "mips"; known: x86_64-linux-gnu, aarch64-linux-gnu'),
        ("compile", [*TARGET, "--cpu", "x86-64-v3"],
         'unknown cpu level "x86-64-v3" of aarch64-linux-gnu; known: neon or armv8-a'),
        ("compile", [*TARGET, "--cpu", "native"],
         'unknown cpu level "native" of aarch64-linux-gnu; known: neon or armv8-a'),
        ("compile", ["--target", "x86_64-linux-gnu", "--cpu", "neon"],
         'unknown cpu level "neon" of x86_64-linux-gnu; known: '),
        ("run", ["--cpu", "neon"], "cpu level neon cannot run on this machine: it lacks an aarch64 processor"),
    ):
        text = run(QUERN, verb, MODEL, *args, *(["-o", scratch / "no"] if verb == "compile" else []),
                   code=1).stderr.decode()
        expect(sentence in text and text.count("\n") == 1, f"{args}: {text!r} without {sentence!r}")
    expect(not (scratch / "no").exists(), "a refusal leaves files")


def example(scratch):
    """examples/aot with its toolchain file, word for word as in docs/aot.md."""
    run("cmake", "-G", "Ninja", "-S", "examples/aot", "-B", scratch / "add",
        "-DCMAKE_TOOLCHAIN_FILE=aarch64.cmake", f"-DQUERN_COMPILER={QUERN}", cwd=SOURCE)
    run("cmake", "--build", scratch / "add")
    got = run("qemu-aarch64", scratch / "add/add", MODEL, "27+58=").stdout.decode()
    expect(got == "85\n", f"the example prints {got!r}")


def usable(scratch):
    (scratch / "trial.c").write_text("int main(void) { return 0; }\n")
    try:
        run(*CC, "-static", scratch / "trial.c", "-o", scratch / "trial")
        run("qemu-aarch64", scratch / "trial")
    except (SystemExit, FileNotFoundError) as error:
        print(f"skipped: {error}")
        return False
    return True


PARTS = (refusals, clean, deterministic, forms, same_answers, example)
with tempfile.TemporaryDirectory() as where:
    if not usable(pathlib.Path(where)):
        sys.exit(77)
    for part in PARTS:
        if sys.argv[4:] and part.__name__ not in sys.argv[4:]:
            continue
        folder = pathlib.Path(where) / part.__name__
        folder.mkdir()
        part(folder)
        print(f"{part.__name__}: ok", flush=True)
