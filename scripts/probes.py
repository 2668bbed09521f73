#!/usr/bin/env python3
"""The probes: small graphs and kernels that once showed a fault or a limit, each with the outcome that is wanted.

    scripts/probes.py build/bin/quern ../shared/probes [NAME...] [--rounds 9]

Of every graph: the CPU seconds in which its kernels are compiled, and whether a run is what the interpreter in double
makes of it. Of joins: their time beside a copy of as many elements, the median of interleaved rounds. One line a probe;
exit code 1 when one is not as wanted.
"""
import argparse
import glob
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

COPY = "copy"
# Joins and the most that they may take beside the copy.
JOINS = {"cat2": 1.3, "cat16": 1.3, "cat64": 1.3, "catx": 1.3, "pad": 1.3, "pad0": 1.3}
REFUSED = {
    "blow": r"dimensions are more than|terms of symbols",
    # Written for ops and attributes that the vocabulary does not have: one sentence says which.
    "convim": "attribute axes is unknown", "l1p": "there is no block or op Log1p", "topk": "expected an integer",
}
SIZES = {"smbig": {"S": 2000000}, "smg": {"N": 70001}, "big": {"B": 4097}, "ss": {"S": 47}}
# Too much work for an interpreter: compiled, run, but not compared.
UNCOMPARED = {"lead", "k49152", "k12288", "lin3", "big", "k3072", "k768", "lin2", "bf16", "flatrow", "onerow",
              "realistic"}
MOST_SECONDS = {}  # of CPU to compile, where it is not this
SECONDS = 2.0
KERNELS = {"smaxis": 1, "gn": 1, "gap": 1}  # how many kernels it becomes


def cpu(command, timeout=120):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None, timeout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def last(done):
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1][:110] if lines else ""


def sizes_of(path, name):
    with open(path) as file:
        header = re.search(r"^\s*graph \S+ sym (.*?) \{", file.read(), re.M)
    sizes = dict(SIZES.get(name, {}))
    for symbol, low, high in re.findall(r"(\w+) in (\d+)\.\.(\d*)", header[1] if header else ""):
        sizes.setdefault(symbol, min(int(high or 7), max(int(low), 7)))
    return [word for symbol, size in sizes.items() for word in ("--size", f"{symbol}={size}")]


def step_ms(quern, path, folder):
    out = os.path.join(folder, "profile.json")
    subprocess.run([quern, "profile", path, "--threads", "1", "--repeat", "20", "--json", out], check=True,
                   stdout=subprocess.DEVNULL)
    with open(out) as file:
        section = json.load(file)["sections"][0]
    return section["step_ns"] / section["steps"] / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("quern")
    options.add_argument("probes")
    options.add_argument("names", nargs="*")
    options.add_argument("--rounds", type=int, default=9)
    options = options.parse_args()
    failed = 0

    def line(name, seconds, outcome, good):
        nonlocal failed
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'}  {name:24} {seconds:7.2f} s  {outcome}", flush=True)

    with tempfile.TemporaryDirectory(prefix="quern_probes_") as folder:
        for path in sorted(glob.glob(os.path.join(options.probes, "*.qir"))):
            name = os.path.splitext(os.path.basename(path))[0]
            if options.names and name not in options.names:
                continue
            text = os.path.join(folder, name + ".qir")  # without the name of a file of values that is not there
            with open(path) as file, open(text, "w") as copy:
                copy.write("".join(row for row in file if not row.startswith("#")))
            done, seconds = cpu([options.quern, "dump", text, "--stage", "asm"])
            if name in REFUSED:
                good = done is not None and done.returncode == 1 and re.search(REFUSED[name], done.stderr)
                line(name, seconds, "refused: " + last(done) if done else "hangs", good and seconds < 1)
                continue
            if done is None or done.returncode != 0:
                line(name, seconds, last(done) if done else "hangs", False)
                continue
            kernels = len(set(re.findall(r"^kernel (\w+)", subprocess.run(
                [options.quern, "dump", text, "--stage", "kir"], capture_output=True, text=True, check=False).stdout,
                re.M)))
            check = [] if name in UNCOMPARED else ["--check", "ref", "--check-out", folder]
            ran, _ = cpu([options.quern, "run", text, "--threads", "2", *sizes_of(path, name), *check], 300)
            good = ran is not None and ran.returncode == 0 and seconds < MOST_SECONDS.get(name, SECONDS)
            good = good and kernels <= KERNELS.get(name, kernels)
            line(name, seconds, f"{kernels} kernel{'s' * (kernels != 1)}; " + (last(ran) if ran else "hangs"), good)
        joins = [name for name in JOINS if not options.names or name in options.names]
        times = {name: [] for name in [COPY, *joins]}
        for _ in range(options.rounds if joins else 0):
            for name, taken in times.items():
                taken.append(step_ms(options.quern, os.path.join(options.probes, name + ".qir"), folder))
        for name in joins:
            ratio = statistics.median(t / c for t, c in zip(times[name], times[COPY]))
            line(name, 0, f"{ratio:.2f} of a copy, at most {JOINS[name]}", ratio <= JOINS[name])
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
