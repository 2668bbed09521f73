#!/usr/bin/env python3
"""Models of one op (op_models.py) in Quern, ONNX Runtime and OpenVINO in turn; prints those where another is quicker.

  op_times.py [--program QUERN] [--threads 1] [--rounds 2] [--only REGEX] [--below 1.0] [--out FILE.jsonl] FOLDER

Needs an interpreter with numpy, onnxruntime and, where it counts, openvino. Each round runs every system once on a
model, pinned to as many cores as there are threads, for samples of 10 ms; the least of the medians counts.
ratio: the quicker of the others by Quern's, for each model below the limit, and the geometric mean of all.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np


def median_us(run, samples=5, ms=10):
    run()
    begin = time.perf_counter()
    run()
    count = max(1, int(ms * 1e-3 / max(time.perf_counter() - begin, 1e-7)))
    times = []
    for _ in range(samples):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - begin) / count * 1e6)
    return statistics.median(times)


def onnx_runtime(path, inputs, threads):
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    bound = session.io_binding()
    for name, value in inputs.items():
        bound.bind_cpu_input(name, value)
    for output in session.get_outputs():
        bound.bind_output(output.name, "cpu")
    return lambda: session.run_with_iobinding(bound)


def open_vino(path, inputs, threads):
    import openvino
    compiled = openvino.Core().compile_model(
        path, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1})
    request = compiled.create_infer_request()
    for value in compiled.inputs:
        request.set_tensor(value, openvino.Tensor(inputs[value.any_name]))
    return request.infer


def quern(path, options):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "bench.json")
        values = str(pathlib.Path(path).with_suffix(".inputs.npz"))
        ran = subprocess.run([options.program, "bench", path, "--in", values, "--threads", str(options.threads),
                              "--samples", "5", "--ms", "10", "--cache", "off", "--json", out],
                             capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr.strip()[-200:])
        with open(out, encoding="utf-8") as file:
            return json.load(file)["graphs"][0]["median_ns"] / 1e3


def timed(path, options):
    """Least medians in us by system, or what went wrong."""
    inputs = dict(np.load(path.with_suffix(".inputs.npz")))
    others = {}
    row = {"model": path.stem, "threads": options.threads}
    for name, start in (("ort", onnx_runtime), ("openvino", open_vino)):
        try:
            others[name] = start(str(path), inputs, options.threads)
        except Exception as error:  # an op that it lacks, or a package that is not there
            row[f"{name}_error"] = str(error)[:200]
    for _ in range(options.rounds):
        for name, run in others.items():
            row[name] = min(row.get(name, math.inf), median_us(run))
        try:
            row["quern"] = min(row.get("quern", math.inf), quern(str(path), options))
        except RuntimeError as error:
            row["quern_error"] = str(error)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/quern")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--below", type=float, default=1.0)
    parser.add_argument("--out")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads:])
    ratios = []
    for path in sorted(options.folder.glob("*.onnx")):
        if not re.search(options.only, path.stem):
            continue
        row = timed(path, options)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        others = [row[name] for name in ("ort", "openvino") if name in row]
        if "quern_error" in row:
            print(f"error {path.stem}: {row['quern_error']}")
        elif others:
            ratios.append((min(others) / row["quern"], row))
    for ratio, row in sorted(ratios, key=lambda r: r[0]):
        if ratio < options.below:
            print(f"{ratio:5.2f} {row['model']}: " + ", ".join(
                f"{name} {row[name]:.1f} us" for name in ("quern", "ort", "openvino") if name in row))
    if ratios:
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        print(f"{len(ratios)} models, geometric mean {mean:.2f}")


main()
