#!/usr/bin/env python3
"""Models compiled for devices, as a user meets them.

    device_test.py QUERN SOURCE_DIR FAKE_CUDA

The text of a target and its manifest agree, and do not depend on the folder; dumps show the same text; `run --device`
runs on the emulated device, and says what is wrong with others. FAKE_CUDA: a driver library without kernels
(tests/fake_cuda).
"""
import json
import os
import re
import subprocess
import sys
import tempfile

QUERN, SOURCE, FAKE = sys.argv[1:4]
MODEL = os.path.join(SOURCE, "models/addition.gguf")
problems = []


def run(*words, driver=None):
    environment = dict(os.environ, QUERN_CUDA_DRIVER=driver) if driver else None
    done = subprocess.run([QUERN, *words], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def works(*words):
    status, out, error = run(*words)
    if status != 0:
        problems.append(f"{words}: exit {status}: {error}")
    return out


def fails(sentence, *words, driver=None):
    status, out, error = run(*words, driver=driver)
    if status != 1 or sentence not in error or error.count("\n") != 1 or out:
        problems.append(f"{words}: exit {status}, {error!r}; expected one sentence with {sentence!r}")


def expect(condition, text):
    if not condition:
        problems.append(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# How an entry of a text is written, with its name and its parameters.
ENTRIES = {
    "ptx": (re.compile(r"\.visible \.entry (\w+)\(([^)]*)\)"), lambda text: text.count(".param"),
            lambda params, symbols: params + symbols),
    "metal": (re.compile(r"\[\[kernel[^\]]*\]\] void (\w+)\((.*?)\) \{", re.S), lambda text: text.count("[[buffer("),
              lambda params, symbols: params + (1 if symbols else 0)),
}


def compiled(folder, target, extension, *words):
    printed = works("compile", MODEL, "--target", target, "-o", folder, *words).split()
    paths = [os.path.join(folder, "addition." + suffix) for suffix in (extension, extension + ".json")]
    expect(printed == paths, f"{target}: printed {printed}")
    text, manifest = read(paths[0]), json.loads(read(paths[1]))
    expect(manifest["target"] == target and manifest["text"] == "addition." + extension,
           f"{target}: {manifest['target']} {manifest['text']}")
    expression, count, expected = ENTRIES[extension]
    entries = {name: count(parameters) for name, parameters in expression.findall(text)}
    said = {kernel["symbol"]: expected(len(kernel["params"]), len(kernel["symbols"])) for kernel in manifest["kernels"]}
    expect(len(said) > 20 and entries == said, f"{target}: the text has {entries}, the manifest {said}")
    expect(manifest["weights"]["bytes"] == os.path.getsize(MODEL), f"{target}: {manifest['weights']}")
    for variant in manifest["variants"]:
        for launch in variant["once"] + variant["launches"]:
            expect(len(launch["arguments"]) == len(manifest["kernels"][launch["kernel"]]["params"]),
                   f"{target}: {launch}")
    return text, manifest


def main():
    with tempfile.TemporaryDirectory() as folder:
        here, there = os.path.join(folder, "a"), os.path.join(folder, "b")
        for target, extension in (("nvptx64", "ptx"), ("metal", "metal")):
            first = compiled(here, target, extension)
            expect(first == compiled(there, target, extension), f"{target}: another folder gives other files")
            kernel = first[1]["kernels"][0]["symbol"]
            works("compile", MODEL, "--target", target, "-o", folder, "--kernel", kernel)
            expect(kernel in read(os.path.join(folder, f"{kernel}.{extension}")), f"{target}: no {kernel}")
            works("compile", MODEL, "--target", target, "-o", folder, "--emit", "kir")
            expect("thread t" in read(os.path.join(folder, "addition.kir")), f"{target}: KIR without threads")
            dumped = works("dump", MODEL, "--stage", extension, "--kernel", "layers.0/ffn")
            found = ENTRIES[extension][0].findall(dumped)
            expect(found and all(name.startswith("k_layers_0_ffn") for name, _ in found),
                   f"{target}: the dump has {found}")
        _, sm_90 = compiled(here, "nvptx64", "ptx", "--cpu", "sm_90")
        expect(sm_90["cpu"] == "sm_90", f"cpu {sm_90['cpu']}")
    expect("thread t" in works("dump", MODEL, "--stage", "kir", "--cpu", "sm_80"),
           "KIR of a device's level without threads")
    expect("mma_f16" not in works("dump", MODEL, "--stage", "kir", "--cpu", "sm_80", "--exact", "--step", "40"),
           "--exact multiplies halves")

    fails('nvptx64 has no cpu "sm_10"; known: sm_80', "compile", MODEL, "--target", "nvptx64", "--cpu", "sm_10")
    fails("a text for metal is for one cpu, not for 2", "compile", MODEL, "--target", "metal", "--cpu", "apple7,apple8")
    fails("a text for nvptx64 holds no weights", "compile", MODEL, "--target", "nvptx64", "--embed-weights")
    fails('cannot emit "asm" for nvptx64', "compile", MODEL, "--target", "nvptx64", "--emit", "asm")
    fails("has no kernel nothing; it has k_", "compile", MODEL, "--target", "nvptx64", "--kernel", "nothing")
    fails("of devices: nvptx64, metal", "compile", MODEL, "--target", "riscv64-linux-gnu")
    fails('metal has no cpu "sm_80"', "dump", MODEL, "--stage", "metal", "--cpu", "sm_80")
    fails("there is no stage spirv", "dump", MODEL, "--stage", "spirv")

    prompt = ("run", MODEL, "--prompt", "27+58=")
    expect(works(*prompt, "--device", "emulated") == "85\n", "the emulated device does not add")
    fails('there is no device "tpu"; there are cpu, cuda, emulated and metal', *prompt, "--device", "tpu")
    fails("checks are made on device cpu only, not on emulated", *prompt, "--device", "emulated", "--check", "ref")
    fails("a map for perf is written on device cpu only", *prompt, "--device", "cuda", "--perf-map")
    fails("there is no NVIDIA driver: /nowhere.so", *prompt, "--device", "cuda", driver="/nowhere.so")
    # Everything but the kernels themselves: the driver has none.
    fails("cuStreamSynchronize, work on the device: CUDA_ERROR_ILLEGAL_ADDRESS 700", *prompt, "--device", "cuda",
          driver=FAKE)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
