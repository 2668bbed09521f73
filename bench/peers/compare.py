#!/usr/bin/env python3
"""Runs `quern bench` and other systems in turn on the same graphs, and prints their times side by side.

  compare.py [--program QUERN] [--python PYTHON] [--engines ort,openvino,jax] [--threads 1] [--rounds 3]
             [--out FILE.json] [--with "COMMAND"] GRAPH...

Each round runs every system once; what counts is the median over the rounds of each run's median, beside it how far
rounds lay apart. ratio: the quickest other system's time by Quern's; from quickest samples in the last column. A system
that computes in bf16 whatever it is given (openvino-bf16) counts for graphs whose inputs are of bf16, one that has its
inputs and results in layouts of its own (onednn-any) for none. --with goes before each command (a lock, a scheduler).
--out adds its rounds to those that the file has, so a comparison may be made in pieces, and stopped; --rounds 0 prints
what it has.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import graph_text

HERE = pathlib.Path(__file__).resolve().parent


def quern_rows(options, before):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "bench.json")
        # Pinned as the others are: their threads stay on as many cores.
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[-options.threads:]))
        command = [*before, "taskset", "-c", cores, options.program, "bench", *options.graphs, "--threads",
                   str(options.threads), "--samples", str(options.samples), "--ms", str(options.ms), "--json", out]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"{shlex.join(command)}: {ran.stderr}")
        with open(out, encoding="utf-8") as file:
            return [dict(row, engine="quern") for row in json.load(file)["graphs"]]


def other_rows(engine, options, before):
    command = [*before, options.python, str(HERE / "time_graphs.py"), engine, str(options.threads), *options.graphs,
               "--samples", str(options.samples), "--ms", str(options.ms)]
    ran = subprocess.run(command, capture_output=True, text=True)
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode != 0:
        print(f"{engine}: exit status {ran.returncode}: {ran.stderr.strip()[-300:]}", file=sys.stderr)
    return rows


def of_halves(path):
    return any(node.results[0].dtype == "bf16" for node in graph_text.read(path).leaves("Input"))


def table(rows, threads, halves):
    """Lines of a table in Markdown of the rows with so many threads; `halves`: names of graphs of bf16."""
    by, graphs, engines, found = {}, [], [], {}
    for row in rows:
        if row["threads"] != threads:
            continue
        by.setdefault((row["graph"], row["engine"]), []).append(row)
        graphs += [row["graph"]] if row["graph"] not in graphs else []
        engines += [row["engine"]] if row["engine"] not in engines else []
    yield "| graph | " + " | ".join(engines) + " | % of floor | ratio | ratio, quickest |"
    yield "|" + "---|" * (len(engines) + 4)
    for graph in graphs:
        cells, medians, least = [], {}, {}
        for engine in engines:
            timed = [row for row in by.get((graph, engine), []) if "error" not in row]
            if not timed:
                cells.append("error" if (graph, engine) in by else "")
                continue
            times = [row["median_ns"] for row in timed]
            medians[engine], least[engine] = statistics.median(times), min(row["least_ns"] for row in timed)
            cells.append(f"{medians[engine] * 1e-3:.1f} ±{100 * (max(times) - min(times)) / medians[engine]:.0f}%")
        others = [engine for engine in medians
                  if engine != "quern" and not engine.endswith("-any") and
                  (not engine.endswith("-bf16") or graph in halves)]
        ratios, floor = ["", ""], ""
        if "quern" in medians:
            floor = f"{100 * by[graph, 'quern'][-1]['floor_ns'] / medians['quern']:.0f}"
            if others:
                numbers = [min(times[e] for e in others) / times["quern"] for times in (medians, least)]
                found[graph], ratios = numbers[0], [f"{number:.2f}" for number in numbers]
        yield f"| {graph} | " + " | ".join([*cells, floor, *ratios]) + " |"
    if found:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in found.values()))
        behind = sorted((ratio, graph) for graph, ratio in found.items() if ratio < 0.98)
        yield f"\n{len(found)} graphs, geometric mean of the ratios {mean:.3f}; below 0.98: {len(behind)}"
        for ratio, graph in behind:
            yield f"  {ratio:.2f} {graph}"


def disagreements(rows):
    """Graphs on which the other systems' outputs are not the same."""
    means = {}
    for row in rows:
        if "mean" in row:
            means.setdefault(row["graph"], {})[row["engine"]] = row["mean"]
    for graph, by in means.items():
        if max(by.values()) - min(by.values()) > 1e-2 * max(abs(mean) for mean in by.values()):
            yield f"{graph}: the systems' outputs differ: {by}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(HERE.parents[1] / "build" / "bin" / "quern"))
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--engines", default="ort,openvino,jax")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=11)
    parser.add_argument("--ms", type=float, default=10)
    parser.add_argument("--out")
    parser.add_argument("--with", dest="before", default="")
    options = parser.parse_args()
    rows = []
    if options.out and os.path.exists(options.out):
        with open(options.out, encoding="utf-8") as file:
            rows = json.load(file)
    before = shlex.split(options.before)
    for _ in range(options.rounds):
        rows += quern_rows(options, before)
        for engine in filter(None, options.engines.split(",")):
            rows += other_rows(engine, options, before)
        if options.out:
            pathlib.Path(options.out).write_text(json.dumps(rows, indent=0))
    halves = {pathlib.Path(path).stem for path in options.graphs if of_halves(path)}
    for line in [*table(rows, options.threads, halves), *disagreements(rows)]:
        print(line)
    for row in rows[-len(options.graphs) * (1 + len(options.engines.split(","))):]:
        if "error" in row:
            print(f"{row['graph']}, {row['engine']}: {row['error']}")


if __name__ == "__main__":
    main()
