#!/usr/bin/env python3
"""quern profile, as a user meets it: the numbers of its JSON add up, fit the model file, and the trace is one that
viewers take.

  profile_test.py QUERN SOURCE_DIR
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

QUERN, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "models" / "addition.gguf"
FIGURES = ["calls", "chunks", "wall_ns", "busy_ns", "least_ns", "median_ns", "most_ns", "typical_ns",
           "disturbed", "share", "balance", "flops", "bf16_ops", "int8_ops",
           "read_bytes",
           "written_bytes", "gflops", "gbps", "intensity", "roof_ns", "percent_of_peak", "bound"]
SUMMED = ["calls", "chunks", "wall_ns", "typical_ns", "busy_ns", "flops", "bf16_ops", "int8_ops",
          "read_bytes", "written_bytes"]
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print(f"FAILED: {message}")


def close(a, b, relative=1e-6, absolute=1.0):
    return abs(a - b) <= max(absolute, relative * max(abs(a), abs(b)))


def run(folder, *options, home=None):
    environment = dict(os.environ, XDG_CACHE_HOME=str(home or folder / "home"), QUERN_CACHE="off")
    return subprocess.run([QUERN, "profile", *map(str, options)], capture_output=True, text=True, env=environment,
                          timeout=300)


def profile(folder, *options):
    out, trace = folder / "profile.json", folder / "trace.json"
    result = run(folder, *options, "--json", out, "--trace", trace)
    if result.returncode != 0:
        sys.exit(f"quern profile {options}: {result.stderr}")
    return json.loads(out.read_text()), json.loads(trace.read_text()), result.stdout


def weight_bytes():
    """Bytes of the tensors of the file, as `quern inspect` lists them."""
    text = subprocess.run([QUERN, "inspect", str(MODEL)], capture_output=True, text=True, check=True).stdout
    sizes = {}
    for name, type_name, dims in re.findall(r"^  (\S+) +(F16|F32) +\[([\d, ]+)\]", text, re.M):
        sizes[name] = {"F16": 2, "F32": 4}[type_name] * math.prod(int(dim) for dim in dims.split(","))
    return sizes


def check_section(section, threads, steps, name):
    check(section["steps"] == steps, f"{name}: {section['steps']} steps, {steps} expected")
    launches = section["launches"]
    for row in [section["total"], *section["kernels"], *section["blocks"], *launches]:
        check(not [f for f in FIGURES if f not in row],
              f"{name}: a row lacks figures: {sorted(set(FIGURES) - set(row))}")
        check(row["bound"] in ("memory", "compute", "overhead"), f"{name}: bound {row['bound']}")
    for launch in launches:
        check(launch["calls"] == steps, f"{name}: {launch['label']} has {launch['calls']} calls in {steps} steps")
        check(launch["chunks"] >= steps, f"{name}: {launch['label']} has no chunks")
        check(0 < launch["least_ns"] <= launch["wall_ns"] / launch["calls"] <= launch["most_ns"],
              f"{name}: extremes of {launch['label']}")
        check(launch["least_ns"] <= launch["median_ns"] <= launch["most_ns"], f"{name}: median of {launch['label']}")
        check(launch["typical_ns"] == launch["median_ns"] * launch["calls"], f"{name}: typical of {launch['label']}")
        check(launch["disturbed"] == (launch["wall_ns"] > 1.3 * launch["typical_ns"]),
              f"{name}: {launch['label']} is disturbed or not")
        check(launch["busy_ns"] <= launch["wall_ns"] * threads + launch["calls"] * threads,
              f"{name}: {launch['label']} is busier than its threads")
        for argument in launch["arguments"]:
            buffer = section["buffers"][argument["buffer"]]
            for traffic in ("read_bytes", "written_bytes"):
                check(argument[traffic] <= buffer["bytes"],
                      f"{name}: {launch['label']} touches more of {argument['param']} than there is")
            check(argument["mode"] != "in" or argument["written_bytes"] == 0,
                  f"{name}: {launch['label']} writes its input")
    # The same sums by launch, by kernel, by block and in all.
    for field in SUMMED:
        total = section["total"][field]
        for rows in ("launches", "kernels", "blocks"):
            check(close(sum(row[field] for row in section[rows]), total),
                  f"{name}: {field} of {rows} do not add up to {total}")
    for kernel in section["kernels"]:
        check(kernel["calls"] == steps * kernel["launches"], f"{name}: calls of {kernel['symbol']}")
        shares = sum(origin["share"] for origin in kernel["origins"])
        check(shares < 1e-9 or abs(shares - 1) < 1e-6,
              f"{name}: origins of {kernel['symbol']} have {shares} of its operations")
        check(kernel["kir"].startswith("kernel "), f"{name}: {kernel['symbol']} has no text")
    shares = sum(kernel["share"]
                 for kernel in section["kernels"]) + section["dispatch"]["share"] + section["bind"]["share"]
    check(abs(shares - 100) <= 1, f"{name}: shares add up to {shares}")
    check(section["kernels_wall_ns"] <= section["wall_ns"] <= section["step_ns"],
          f"{name}: kernels take longer than their steps")
    step = section["step"]
    check(step["least_ns"] <= step["median_ns"] <= step["most_ns"], f"{name}: a step {step}")
    check(step["least_ns"] * steps <= section["step_ns"] <= step["most_ns"] * steps, f"{name}: steps {step}")
    check(section["dispatch"]["wall_ns"] >= 0, f"{name}: dispatch takes {section['dispatch']['wall_ns']} ns")
    workers = section["workers"]
    check(section["total"]["busy_ns"] <= section["wall_ns"] * threads,
          f"{name}: workers are busier than the wall clock")
    check(workers["busy_ns"] + workers["idle_ns"] == workers["total_ns"] == section["wall_ns"] * threads,
          f"{name}: workers {workers}")
    for b in section["buffers"]:
        if b["home"] == "arena":
            check(0 <= b["offset"] and b["offset"] + b["bytes"] <= section["arena_bytes"],
                  f"{name}: buffer {b} is outside the arena")


def check_weights(section):
    """A step of one token reads every weight once, but of the embedding a row."""
    sizes = weight_bytes()
    embedding = sizes.pop("token_embd.weight")
    read = section["weight_bytes"]
    tables = sum(b["bytes"] for b in section["buffers"] if b["home"] == "param" and b["first_launch"] >= 0)
    check(tables >= sum(sizes.values()), "some weight is read by no kernel")
    # The model may tie its output to the embedding, which is then read as a whole.
    whole = sum(sizes.values()) + (0 if "output.weight" in sizes else embedding)
    check(abs(read - whole) <= 0.05 * whole, f"a step reads {read} bytes of weights, the file has {whole}")
    products = sum(launch["read_bytes"] / launch["calls"] for launch in section["launches"]
                   if ".matmul." in section["kernels"][launch["kernel"]]["symbol"])
    matrices = sum(size for name, size in sizes.items() if "norm" not in name)
    check(products >= matrices, f"products read {products} bytes of {matrices}")


def check_compile(data):
    steps = [step["name"] for step in data["compile"]["steps"]]
    for name in ("load", "lower", "fuse_regions", "plan"):
        check(name in steps, f"no time of the step {name}")
    check(all(step["ns"] >= 0 and step["start_ns"] >= 0 for step in data["compile"]["steps"]),
          "a step that takes less than nothing")
    kernels = data["compile"]["kernels"]
    check(len(kernels) > 0 and all(k["codegen_ns"] > 0 and k["jitlink_ns"] > 0 and not k["loaded"] for k in kernels),
          "kernels without compile times")
    symbols = {k["symbol"] for k in kernels}
    check(all(k["symbol"] in symbols for k in data["sections"][-1]["kernels"]), "a kernel that ran was not compiled")
    for variant in data["compile"]["variants"]:
        check(variant["plan_ns"] > 0 and variant["machine_code_ns"] >= 0, f"variant {variant}")


def check_timeline(data, threads):
    check(len(data["timeline"]) > 0, "no timeline")
    for run_ in data["timeline"]:
        launches = len(data["sections"][run_["section"]]["launches"])
        seen = {s[0] for s in run_["slices"]}
        check(seen == set(range(launches)), f"run {run_['step']} shows launches {sorted(seen)} of {launches}")
        end = run_["kernels_start_ns"] + run_["kernels_ns"]
        for launch, worker, start, ns, chunks in run_["slices"]:
            check(0 <= worker < threads and chunks > 0 and ns >= 0, f"slice of launch {launch}")
            check(run_["kernels_start_ns"] - 2 <= start and start + ns <= end + 2,
                  f"launch {launch} runs outside its step")


def check_trace(trace, threads):
    events = trace["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    tracks = {}
    for event in events:
        check(event["ph"] in ("M", "X"), f"event of the kind {event['ph']}")
        if event["ph"] == "X":
            check(isinstance(event["name"], str) and event["name"] and event["dur"] >= 0 and event["ts"] >= 0,
                  f"event {event}")
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for track, rows in tracks.items():
        check(track in names, f"track {track} has no name")
        for before, after in zip(rows, rows[1:]):
            check(before["ts"] <= after["ts"], f"{names.get(track)}: {after['name']} is out of order")
            check(before["ts"] + before["dur"] <= after["ts"] + 0.0011,
                  f"{names.get(track)}: {before['name']} overlaps {after['name']}")
    for worker in range(threads):
        check(f"worker {worker}" in names.values(), f"no track of worker {worker}")
    kernels = [e for e in events if e.get("cat") == "kernel"]
    check(kernels and all("chunks" in e["args"] and "label" in e["args"] for e in kernels), "kernels without arguments")
    check(any("bytes" in e["args"] and e["args"]["flops"] > 0 for e in kernels), "kernels without work")
    categories = {e.get("cat") for e in events if e["ph"] == "X"}
    check({"step", "kernel", "pass", "compile", "emit", "codegen", "jitlink"} <= categories, f"categories {categories}")


def check_counters(data):
    counters = data["counters"]
    if counters["read"]:
        check(all("counters" in k for k in data["sections"][-1]["kernels"]), "counters that no kernel has")
        check(data["sections"][-1]["total"]["counters"]["cycles"] > 0, "no cycles")
    else:
        check("errno" in counters["reason"] and counters["reason"].count("\n") == 0, f"counters: {counters['reason']}")
        print(f"  {counters['reason']}")


def check_terminal(folder):
    """Tables are as wide as the terminal is, and no wider; what is left are the figures that matter."""
    for columns in (60, 80, 120):
        os.environ["COLUMNS"] = str(columns)
        result = run(folder, MODEL, "-p", "27+58=", "-n", 2, "--repeat", 1)
        del os.environ["COLUMNS"]
        check(result.returncode == 0, f"{columns} columns: {result.stderr}")
        tables = [line for line in result.stdout.splitlines() if line.startswith("  ")]
        widest = max(map(len, tables))
        check(columns - 20 < widest <= columns, f"tables of {widest} characters in {columns} columns")
        heads = [line.split() for line in tables if line.split()[0] == "kernel" and "share" in line]
        check(heads and all("median" in head for head in heads), f"{columns} columns: {heads}")


def check_diff(folder):
    """A profile beside another: what became slower is said, in the right direction."""
    before, _, _ = profile(folder, MODEL, "-p", "27+58=", "-n", 6, "--repeat", 2, "-t", 1)
    after = json.loads(json.dumps(before))
    decode = after["sections"][1]
    slow = max(decode["kernels"], key=lambda kernel: kernel["typical_ns"])
    grown = slow["typical_ns"]
    slow["typical_ns"] *= 3
    for key in ("median_ns", "least_ns"):
        decode["step"][key] *= 2
    gone = decode["kernels"].pop(0 if decode["kernels"][0] is not slow else 1)
    paths = []
    for name, data in (("before", before), ("after", after)):
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(data))
    result = run(folder, "--diff", *paths)
    check(result.returncode == 0, f"--diff: {result.stderr}")
    phase = result.stdout[result.stdout.index("decode ("):]
    check("+100.0 %" in phase.splitlines()[0], f"a step takes twice as long: {phase.splitlines()[0]}")
    rows = [line for line in phase.splitlines() if line.startswith("  ")][1:]
    check(slow["label"] in rows[0] and "+200.0" in rows[0], f"what differs most comes first: {rows[0]}")
    check(f"{2 * grown / decode['steps'] / 1000:+.2f}" in rows[0], f"by how much: {rows[0]}")
    check(any(gone["label"] in row and "none" in row for row in rows), "a kernel that is gone")
    same = run(folder, "--diff", paths[0], paths[0])
    check(same.returncode == 0 and "+0.0 %" in same.stdout, f"nothing differs: {same.stdout}")
    for bad, word in ((["--diff", paths[0]], "--diff"), (["--diff", paths[0], folder / "none.json"], "cannot open"),
                      (["--diff", paths[0], MODEL], "no JSON of quern profile"), ([], "MODEL is required")):
        result = run(folder, *bad)
        check(result.returncode in (1, 2) and word in result.stderr and result.stderr.count("\n") == 1,
              f"{bad}: {result.stderr}")


def check_kept_peaks(folder):
    """A later run with as many threads has the peaks of an earlier one, but where its kernels pass them: such peaks
    were measured while something else ran, which a busy machine does by itself, so the file says here what they are.
    --probe measures anew in any case."""

    def machine_of(*options):
        return profile(folder, MODEL, "--tokens-in", "1,5,9", "--tokens", 1, "--repeat", 1, "--threads", 2,
                       *options)[0]["machine"]

    check(not machine_of("--probe")["stored"], "--probe takes stored peaks")
    files = list((folder / "home" / "quern").glob("machine-*-2t.json"))
    if not files:  # they could not be measured in time
        check(not machine_of()["stored"], "peaks that were not kept")
        return
    measured = json.loads(files[0].read_text())
    # Of operations: whether a kernel of a small model counts as one that memory bounds depends on the caches.
    for factor, stored in ((1000, True), (0.001, False)):
        peaks = dict(measured)
        for peak in ("f32_gflops", "bf16_gflops", "int8_gops"):
            peaks[peak] = factor * measured[peak]
        files[0].write_text(json.dumps(peaks))
        machine = machine_of()
        check(machine["stored"] == stored and machine["rounds"] == measured["rounds"] + (not stored),
              f"peaks kept, {factor} of those measured: {machine}")
    # The best of both were kept, so that they are not those of the file any more.
    check(json.loads(files[0].read_text())["rounds"] == measured["rounds"] + 1, "peaks that were passed stay")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for threads in (1, 2):
            data, trace, text = profile(folder, MODEL, "--prompt", "27+58=", "--tokens", 6, "--repeat", 2, "--threads",
                                        threads)
            check(data["schema"] == "quern.profile" and data["version"] == 1, "schema")
            check([s["phase"] for s in data["sections"]] == ["prefill", "decode"], "sections")
            prefill, decode = data["sections"]
            check_section(prefill, threads, 2, f"prefill, {threads} threads")
            check_section(decode, threads, 12, f"decode, {threads} threads")
            check(decode["tokens"] == 12 and prefill["tokens"] == 2 * 7,
                  f"tokens {prefill['tokens']} and {decode['tokens']}")
            check(decode["warm_up_steps"] == 2 and prefill["warm_up_steps"] == 1, "steps to warm up")
            check_weights(decode)
            check_compile(data)
            check_timeline(data, threads)
            check_trace(trace, threads)
            for word in ("prefill", "decode", "layers.*/ffn", "(dispatch)", "fuse_regions", "% peak"):
                check(word in text, f"the table lacks {word}")
            print(f"{threads} threads: {decode['tokens_per_second']:.0f} tokens/s, {decode['total']['gbps']:.1f} GB/s")
        check_kept_peaks(folder)
        # A cache folder that cannot be written is no error, nor are counters that there are none of.
        blocked = folder / "blocked"
        blocked.write_text("a file")
        result = run(folder, MODEL, "--tokens", 1, "--repeat", 1, "--counters", "--json", folder / "c.json",
                     home=blocked)
        check(result.returncode == 0, f"blocked home: {result.stderr}")
        check_counters(json.loads((folder / "c.json").read_text()))
        check_terminal(folder)
        check_diff(folder)
        # One kernel in the table, the rest in one row; no tokens: no decoding.
        data, _, text = profile(folder, MODEL, "--prompt", "1+1=", "--tokens", 0, "--repeat", 1, "--top", 1)
        check([s["phase"] for s in data["sections"]] == ["prefill"] and " more)" in text, "--tokens 0 --top 1")
        for bad, word in ((["--prompt", "1", "--json", folder / "no" / "such.json"], "cannot write"),
                          (["--tokens-in", "999999"], "out of range"),
                          (["--cpu", "none"], "none")):
            result = run(folder, MODEL, *bad)
            check(result.returncode == 1 and word in result.stderr and len(result.stderr.strip().splitlines()) == 1,
                  f"{bad}: {result.stderr}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
