#!/usr/bin/env python3
"""From exec to the first kernel, and to the first token, of models that are compiled ahead of time.

    scripts/aot_start.py build/bin/quern build/src/rt/libquern_rt.a MODEL... [--rounds 9] [--cc cc]

Each model is compiled for this machine with its weights left in the file, linked with bench/aot_start.c, and started in
interleaved rounds of fresh processes, the file in the page cache. One JSON object a model, medians: init_ms until
`init` is done (the next thing that runs is the first kernel), token_ms until the first logits are there, true_ms what
/bin/true takes in the same rounds.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("quern")
arguments.add_argument("archive")
arguments.add_argument("models", nargs="+")
arguments.add_argument("--rounds", type=int, default=9)
arguments.add_argument("--cc", default="cc")
options = arguments.parse_args()
ROOT = pathlib.Path(__file__).resolve().parent.parent


def now_ms():
    return time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3


with tempfile.TemporaryDirectory(prefix="quern_aot_start_") as name:
    folder = pathlib.Path(name)
    programs, figures = {}, {}
    for i, model in enumerate(options.models):
        out = folder / str(i)
        subprocess.run([options.quern, "compile", model, "-o", out, "--name", "model"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([options.cc, "-std=gnu11", "-O2", f"-I{out}", f"-I{ROOT}/include", ROOT / "bench/aot_start.c",
                        out / "model.o", options.archive,
                        "-lm", "-lpthread", "-o", out / "start"], check=True)
        programs[model] = out / "start"
        figures[model] = {"init_ms": [], "token_ms": [], "true_ms": []}
    for round_number in range(options.rounds + 1):
        for model, program in programs.items():
            start = now_ms()
            subprocess.run(["/bin/true"], check=True)
            true_ms = now_ms() - start
            line = subprocess.run([program, model, repr(now_ms())], check=True, capture_output=True, text=True).stdout
            if round_number == 0:
                continue  # pages the file in
            values = dict(zip(("init_ms", "token_ms"), map(float, line.split())), true_ms=true_ms)
            for key, value in values.items():
                figures[model][key].append(value)
    for model, columns in figures.items():
        medians = {key: round(statistics.median(values), 2) for key, values in columns.items()}
        size = (programs[model].parent / "model.o").stat().st_size
        print(json.dumps({"model": pathlib.Path(model).name, **medians, "object_bytes": size}))
