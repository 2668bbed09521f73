#!/usr/bin/env python3
"""Models compiled ahead of time: a C program around the object gives the bits of `quern run`, at every level this
machine has, alone and with threads; the object needs the C library alone and is the same whoever makes it; every error
of the header.

    aot_test.py QUERN SOURCE_DIR LIBQUERN_RT.A C_COMPILER MODELS_DIR [PART...]
A part is a function below: archive, same_bits and so on; none: all. Models of MODELS_DIR that are not there are left
out, and named.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from program import expect, run

QUERN, SOURCE, RT, CC, MODELS = sys.argv[1:6]
SOURCE = pathlib.Path(SOURCE)
MODEL = SOURCE / "models/addition.gguf"
SUM = "1,261,266,269,264,267,270"  # 27+58=
LEVELS = ["sse4", "avx2", "avx512", "avx512vnni", "amx"]
DRIVER = SOURCE / "tests/run/aot/driver.c"
STRICT = ["-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
LIBRARY_MOST = 100_000  # bytes of text of the runtime archive
# What an object may leave undefined: memory and mathematics of the C library.
LIBC = set("atan atan2 cos erf exp exp2 expm1 fmod fmodf log log1p log2 pow sin tan tanh memcpy memset memmove".split())


def compile_model(folder, *args, model=MODEL, **kwargs):
    run(QUERN, "compile", model, "-o", folder, "--name", "model", *args, **kwargs)
    return folder


def program(folder, name, *sources, flags=("-std=c99",), rt=False):
    """Links sources with folder/model.o."""
    out = folder / name
    command = [CC, *STRICT, *flags, f"-I{folder}", f"-I{SOURCE}/include", *sources]
    if "c++" in flags:
        command += ["-x", "none"]
    run(*command, folder / "model.o", *([RT, "-lpthread"] if rt else []), "-lm", "-o", out)
    return out


def answers(driver, weights, prompt, tokens, **kwargs):
    """Ids, logits and level."""
    logits = driver.parent / f"{driver.name}.f32"
    result = run(driver, weights, prompt, tokens, logits, **kwargs)
    return result.stdout.decode().split(), logits.read_bytes(), result.stderr.decode().strip()


def jit(model, level, prompt, tokens, folder, *args):
    """What `quern run` answers; other prompts find its kernels compiled."""
    logits = folder / "jit.f32"
    result = run(QUERN, "run", model, "--cpu", level, "--threads", "1", "--tokens-in", prompt, "--tokens", tokens,
                 "--ids", "--logits", logits, *args, env={**os.environ, "QUERN_CACHE": str(folder / "cache")})
    return result.stdout.decode().split(), logits.read_bytes()


def has(level):
    return subprocess.run([QUERN, "run", str(MODEL), "--cpu", level, "--tokens", "1", "--prompt", "1"],
                          capture_output=True).returncode == 0


def same_bits(scratch, levels):
    """JIT and AOT, alone and with two workers, in C and in C++."""
    models = [(MODEL, [], [SUM, "1,262", "1," + ",".join(str(259 + i % 10) for i in range(50))])]
    for name in ("stories260K-F32", "stories260K-wide256-Q4_K_M", "stories260K-wide256-Q8_0",
                 "stories260K-wide256-Q5_1", "stories260K-wide256-IQ4_XS"):
        path = pathlib.Path(MODELS) / "gguf" / f"{name}.gguf"
        if path.exists():
            long = "1," + ",".join(str(3 + 37 * i % 500) for i in range(299))
            models.append((path, [], ["1,403,407,261,378", long]))
        else:
            print(f"skipped: {name} is not in {MODELS}")
    models.append((MODEL, ["--exact"], [SUM]))
    for model, options, prompts in models:
        for level in levels:
            folder = compile_model(scratch / f"{model.stem}{''.join(options)}-{level}", "--cpu", level, *options,
                                   model=model)
            drivers = [program(folder, "alone", DRIVER),
                       program(folder, "two", DRIVER, flags=["-std=c99", "-DWORKERS=2"], rt=True)]
            if model == MODEL:
                drivers.append(program(folder, "plus", DRIVER, flags=["-x", "c++", "-std=c++17"]))
                drivers.append(program(folder, "three", DRIVER, flags=["-x", "c++", "-std=c++17", "-DWORKERS=3"],
                                       rt=True))
            for prompt in prompts:
                ids, logits = jit(model, level, prompt, 12, folder, *options)
                for driver in drivers:
                    got_ids, got_logits, got_level = answers(driver, model, prompt, 12)
                    expect(got_level == level, f"{driver}: level {got_level}, not {level}")
                    expect(got_ids == ids, f"{driver} {prompt}: ids {got_ids}, quern run {ids}")
                    expect(got_logits == logits, f"{driver} {prompt}: other logits than quern run")
                if prompt == SUM:
                    expect(ids[:3] == ["267", "264", "2"], f"27+58= is not 85 but {ids}")
    print(f"the bits of quern run: {', '.join(levels)}; {', '.join(m.stem for m, _, _ in models)}")


def undefined(path):
    return {line.split()[-1] for line in run("nm", "-u", path).stdout.decode().splitlines() if line.startswith(" ")}


def clean(scratch, levels):
    """Symbols of the object, sections, and the object as part of a shared library."""
    folder = compile_model(scratch / "clean", "--cpu", ",".join(levels))
    left = undefined(folder / "model.o") - LIBC
    expect(not left, f"the object needs {left}")
    symbols = [line.split()
               for line in run("nm", "-g", "--defined-only", folder / "model.o").stdout.decode().splitlines()]
    foreign = [s[2] for s in symbols if not s[2].startswith("model_")]
    expect(not foreign, f"the object defines {foreign}")
    sections = run("readelf", "-SW", folder / "model.o").stdout.decode()
    expect(".note.GNU-stack" in sections and ".init_array" not in sections and ".ctors" not in sections,
           "sections:\n" + sections)
    writable = [line for line in sections.splitlines() if " WA " in line and ".data.rel.ro" not in line]
    expect(not writable, f"the object has variables: {writable}")
    # Frame pointers, which profilers follow: kernels, tiles, and what dispatches them.
    code = run("objdump", "-d", "--no-show-raw-insn", folder / "model.o").stdout.decode()
    bodies = re.findall(r"^[0-9a-f]+ <([^>]+)>:\n(.*?)(?=\n\n|\Z)", code, re.MULTILINE | re.DOTALL)
    without = [name for name, body in bodies if "%rsp,%rbp" not in body]
    expect(len(bodies) > 50 and not without, f"{len(bodies)} functions, without frame pointers {without}")
    run(CC, "-shared", "-fPIC", "-Wl,-z,text,-z,defs", folder / "model.o", "-lm", "-o", folder / "model.so")
    for name, size in (("model.o", 2_000_000), ("model.h", 20_000)):
        expect((folder / name).stat().st_size < size, f"{name} has {(folder / name).stat().st_size} bytes")

    manifest = json.loads((folder / "model.json").read_text())
    expect([l["name"] for l in manifest["levels"]] == levels, "levels of the manifest")
    defined = {line.split()[-1]
               for line in run("nm", "--defined-only", folder / "model.o").stdout.decode().splitlines()}
    for level in manifest["levels"]:
        for row in level["kernels"] + level["tiles"]:
            expect(row["symbol"] in defined and row["bytes"] > 0, f"{row} of the manifest is not in the object")
    expect(manifest["weights"]["bytes"] == MODEL.stat().st_size, "bytes of the weights")
    print(f"object: {(folder / 'model.o').stat().st_size} bytes for {len(levels)} levels")


def deterministic(scratch, _):
    """The same files from another folder, another thread count, by another path."""
    first = compile_model(scratch / "first", "--cpu", "sse4,avx2")
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(MODEL, elsewhere / "renamed.gguf")
    run("taskset", "-c", "0", QUERN, "compile", "renamed.gguf", "-o", "second", "--name", "model", "--cpu", "avx2,sse4",
        cwd=elsewhere,
        env={**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo", "HOME": "/nowhere"})
    for name in ("model.o", "model.h", "model.json"):
        expect((first / name).read_bytes() == (elsewhere / "second" / name).read_bytes(),
               f"{name} is another the second time")
    expect(str(scratch).encode() not in (first / "model.o").read_bytes(), "the object names a folder")


def archive(*_):
    text = sum(int(line.split()[0]) for line in run("size", RT).stdout.decode().splitlines()[1:])
    expect(text < LIBRARY_MOST, f"the runtime archive has {text} bytes of text")
    foreign = {s for s in undefined(RT) if s.startswith(("_Z", "llvm", "LLVM", "absl", "__cxa"))}
    expect(not foreign, f"the runtime archive needs {foreign}")
    print(f"runtime archive: {text} bytes of text")


def errors(scratch, _):
    folder = compile_model(scratch / "errors", "--cpu", "sse4,avx2")
    checks = SOURCE / "tests/run/aot/errors.c"
    run(program(folder, "errors", checks, rt=True), MODEL)
    inside = compile_model(scratch / "inside", "--cpu", "sse4,avx2", "--embed-weights")
    run(program(inside, "errors", checks, rt=True), MODEL, "embedded")


def embedded(scratch, levels):
    """The object holds the file: it runs where the file is gone, with the same bits."""
    away = scratch / "a \"strange\" folder"
    away.mkdir()
    copy = away / "model file.gguf"
    shutil.copy(MODEL, copy)
    level = levels[-1]
    folder = compile_model(scratch / "embedded", "--cpu", level, "--embed-weights", model=copy)
    copy.unlink()
    expect((folder / "model.o").stat().st_size > MODEL.stat().st_size, "the weights are not in the object")
    ids, logits = jit(MODEL, level, SUM, 12, folder)
    got = answers(program(folder, "driver", DRIVER), "-", SUM, 12)
    expect(got[:2] == (ids, logits), "embedded weights give other bits")


def levels_by_cpu(scratch, levels):
    """The object picks by CPUID; a lesser processor is made by letting the kernel trap that instruction."""
    folder = compile_model(scratch / "by_cpu", "--cpu", "x86-64-v2,x86-64-v3,x86-64-v4")
    known = [l for l in ("sse4", "avx2", "avx512") if l in levels]
    driver = program(folder, "driver", DRIVER)
    ids, logits, level = answers(driver, MODEL, SUM, 12)
    expect(level == known[-1], f"picked {level}, not {known[-1]}")
    expect((ids, logits) == jit(MODEL, level, SUM, 12, folder), f"{level} out of three gives other bits")
    only_v2 = answers(program(compile_model(scratch / "v2", "--cpu", "x86-64-v2"), "driver", DRIVER), MODEL, SUM, 12)
    expect(only_v2[2] == "sse4", f"picked {only_v2[2]} of sse4")

    hidden = program(folder, "hidden", DRIVER, SOURCE / "tests/run/aot/hide_cpu.c",
                     flags=["-std=gnu11", "-Wno-language-extension-token"])
    trial = subprocess.run([hidden, MODEL, SUM, "1", folder / "trial.f32"], capture_output=True,
                           env={**os.environ, "HIDE": "nothing"})
    if trial.returncode == 77:
        print("skipped: this system cannot trap CPUID for lesser processors")
        return
    for hide, wanted in (("nothing", known[-1]), ("avx512f", "avx2"), ("avx512f,avx2", "sse4"), ("osxsave", "sse4")):
        if wanted not in levels:
            continue
        ids, logits, level = answers(hidden, MODEL, SUM, 12, env={**os.environ, "HIDE": hide})
        expect(level == wanted, f"without {hide}: picked {level}, not {wanted}")
        expect((ids, logits) == jit(MODEL, wanted, SUM, 12, folder), f"without {hide}: other bits than {wanted}")
    for hide in ("avx512f,avx2,sse4.2", "sse4.2"):
        result = run(hidden, MODEL, SUM, 1, folder / "none.f32", code=1, env={**os.environ, "HIDE": hide})
        expect(b"runs none of the compiled levels" in result.stderr, f"without {hide}: {result.stderr}")
    print("picks by CPUID, refuses lesser processors")


def forms(scratch, levels):
    """--emit and --kernel."""
    folder, level = scratch / "forms", levels[-1]
    for emit, suffix, says in (("asm", ".s", b"model_step:"), ("llvm", ".ll", b"define i32 @model_step("),
                               ("bc", ".bc", b"BC"), ("kir", ".kir", b"\nkernel ")):
        out = run(QUERN, "compile", MODEL, "-o", folder, "--name", "model", "--cpu", level, "--emit",
                  emit).stdout.decode().split()
        expect(out == [str(folder / f"model{suffix}")], f"--emit {emit} wrote {out}")
        expect(says in (folder / f"model{suffix}").read_bytes(), f"--emit {emit} without {says}")
    # The text is the object: assembled and compiled from it, the model gives the same bits.
    whole = compile_model(scratch / "whole", "--cpu", level)
    want = answers(program(whole, "driver", DRIVER), MODEL, SUM, 12)
    shutil.copy(whole / "model.h", folder / "model.h")
    for source in ("model.s", "model.bc"):
        run(CC, "-O2", "-fPIC", "-Xclang", "-disable-llvm-passes", "-Wno-override-module",
            "-Wno-unused-command-line-argument", "-c", folder / source, "-o", folder / "model.o")
        expect(answers(program(folder, "driver", DRIVER), MODEL, SUM, 12) == want, f"{source} gives other bits")

    manifest = json.loads((whole / "model.json").read_text())
    name = next(k["symbol"] for k in manifest["levels"][0]["kernels"] if "matmul" in k["symbol"])
    for emit, suffix in (("obj", ".o"), ("asm", ".s"), ("llvm", ".ll"), ("bc", ".bc"), ("kir", ".kir")):
        out = run(QUERN, "compile", MODEL, "-o", folder, "--cpu", level, "--emit", emit, "--kernel",
                  name).stdout.decode().split()
        expect(out == [str(folder / f"{name}{suffix}")], f"--kernel wrote {out}")
    defined = [line.split()[-1]
               for line in run("nm", "-g", "--defined-only", folder / f"{name}.o").stdout.decode().splitlines()]
    expect(defined == [name], f"--kernel {name} defines {defined}")
    expect((folder / f"{name}.kir").read_text().count("\nkernel ") == 1, "one kernel as KIR")


def refusals(scratch, _):
    """One sentence and exit code 1, or 2 for an option that is none."""
    for args, sentence in (
        (["--emit", "elf"], 'cannot emit "elf"; there are obj, asm, llvm, bc and kir'),
        (["--kernel", "nothing"], "has no kernel nothing; it has "),
        (["--cpu", "x86-64-v9"], 'unknown cpu level "x86-64-v9"'),
        (["--name", "2fast"], '"2fast" cannot be the prefix of C functions'),
        (["--name", "quern_model"], "cannot be the prefix of C functions"),
        (["--name", "int"], '"int" cannot be the prefix of C functions'),
        (["--name", "class"], '"class" cannot be the prefix of C functions'),
        (["--name", "_Bool"], '"_Bool" cannot be the prefix of C functions'),
        (["-o", "/dev/null/x"], "/dev/null/x"),
        (["--context", "0x"], "--context"),
    ):
        result = run(QUERN, "compile", MODEL, *(["-o", scratch / "no"] if "-o" not in args else []), *args,
                     code=2 if "--context" in args else 1)
        text = result.stderr.decode()
        expect(sentence in text and text.count("\n") == 1, f"{args}: {text!r} without {sentence!r}")
    expect(not (scratch / "no").exists(), "a refusal leaves files")


def pool(scratch, _):
    """The thread pool under the thread sanitizer."""
    out = scratch / "pool"
    run(CC, "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=thread", f"-I{SOURCE}/include", f"-I{SOURCE}/src",
        SOURCE / "tests/run/aot/pool.c",
        *sorted((SOURCE / "src/rt").glob("*.c")), "-lpthread", "-o", out)
    run(out)


PARTS = (archive, refusals, same_bits, clean, deterministic, errors, embedded, levels_by_cpu, forms, pool)
with tempfile.TemporaryDirectory() as where:
    levels = [level for level in LEVELS if has(level)]
    for part in PARTS:
        if sys.argv[6:] and part.__name__ not in sys.argv[6:]:
            continue
        folder = pathlib.Path(where) / part.__name__
        folder.mkdir()
        part(folder, levels)
        print(f"{part.__name__}: ok", flush=True)
