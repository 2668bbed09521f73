#!/usr/bin/env python3
"""Whole models in ONNX: Quern and ONNX Runtime in turns, a table in Markdown.

  onnx_models.py [--program QUERN] [--python PYTHON] [--threads 1,2] [--rounds 3] [--only TEXT] [--out FILE.json]
                 [--with "COMMAND"] MODEL...

MODEL: a folder with model.onnx and test_data_set_*/input_*.pb (the last set counts), or NAME.onnx beside
NAME.inputs.npz, as random_onnx.py writes them. --python: an interpreter with numpy, onnx and onnxruntime.

Both are told the sizes of the run before they compile (--fix-sizes; add_free_dimension_override_by_name). A round runs
each system once in a process of its own, pinned to as many cores as there are threads: the file is opened, a first run
is made, then samples of as many runs as fill --ms. Medians over the rounds are compared.
  run: the median of the samples. quickest: the ratio of the least samples.
  open: in the process, from the file to the first answer; Quern's kernels are in its cache (warm), or compiled (cold).
  start: from exec to the end of a process that opens, runs once and writes its answer. ONNX Runtime has no such
    program: its start is loading its shared library, as any program would have to, and its open; no interpreter counts.
  memory: the most that such a process had resident; of ONNX Runtime without what Python and numpy had before it came.
  difference: the largest of any output, by that output's largest magnitude.
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
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()
SAFETENSORS = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64, "I32": np.int32, "BOOL": bool,
               "I8": np.int8, "U8": np.uint8}


def name_of(model):
    path = pathlib.Path(model)
    return path.stem if path.suffix == ".onnx" else path.name


def file_of(model):
    path = pathlib.Path(model)
    return path if path.suffix == ".onnx" else path / "model.onnx"


def inputs_of(model):
    """Arrays by input name; needs `onnx` for data in .pb."""
    path = pathlib.Path(model)
    if path.suffix == ".onnx":
        return dict(np.load(path.with_suffix(".inputs.npz")))
    import onnx
    from onnx import numpy_helper
    graph = onnx.load(str(file_of(model)), load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    data = sorted(path.glob("test_data_set_*"))[-1]
    return {name: numpy_helper.to_array(onnx.load_tensor(str(data / f"input_{i}.pb"))) for i, name in enumerate(names)}


def resident(field):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def onnx_runtime(options):
    """In a process of its own: opens a model, runs it, prints what that took as JSON; answers into a file."""
    inputs = dict(np.load(options.inputs))
    before = resident("VmRSS")
    if options.dimensions:
        import onnx
        values = onnx.load(str(file_of(options.models[0])), load_external_data=False).graph.input
        named = {dim.dim_param: size for value in values if value.name in inputs
                 for dim, size in zip(value.type.tensor_type.shape.dim, inputs[value.name].shape) if dim.dim_param}
        print(json.dumps(named))
        return
    if options.library:
        import ctypes
        import importlib.util
        found = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
        library = next(pathlib.Path(found, "capi").glob("libonnxruntime.so.*"))
        start = time.perf_counter()
        ctypes.CDLL(str(library))
        print(json.dumps({"load_ms": (time.perf_counter() - start) * 1e3}))
        return
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.worker, 1
    for name, size in json.loads(options.sizes).items():
        settings.add_free_dimension_override_by_name(name, size)
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(str(file_of(options.models[0])), settings,
                                           providers=["CPUExecutionProvider"])
    answers = session.run(None, inputs)
    row = {"open_ms": (time.perf_counter() - start) * 1e3, "memory_mib": resident("VmHWM") - before}
    np.savez(options.answers, **{output.name: answer for output, answer in zip(session.get_outputs(), answers)})
    binding, kept = session.io_binding(), []
    for name, array in inputs.items():
        kept.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
        binding.bind_ortvalue_input(name, kept[-1])
    for output, answer in zip(session.get_outputs(), answers):
        kept.append(onnxruntime.OrtValue.ortvalue_from_numpy(answer))
        binding.bind_ortvalue_output(output.name, kept[-1])

    def clock(runs):
        start = time.perf_counter()
        for _ in range(runs):
            session.run_with_iobinding(binding)
        return (time.perf_counter() - start) / runs
    clock(1)
    once = clock(1)
    runs = max(1, int(options.ms * 1e-3 / once))
    samples = sorted(clock(runs) for _ in range(options.samples))
    print(json.dumps(dict(row, median_ms=samples[len(samples) // 2] * 1e3, least_ms=samples[0] * 1e3)))


def run(command, options, threads):
    """Milliseconds, MiB resident at most, and what it printed, of a command on as many cores as threads."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[-threads:]))
    command = [*shlex.split(options.before), "taskset", "-c", cores, *map(str, command)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=complaints)
        _, status, usage = os.wait4(process.pid, 0)
        wall = (time.perf_counter() - start) * 1e3
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        complaints.seek(0)
        if process.returncode != 0:
            sys.exit(f"{shlex.join(command)}: {complaints.read().decode()[-600:]}")
        return wall, usage.ru_maxrss / 1024, out.read().decode()


def safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in tensor["data_offsets"])
            yield name, np.frombuffer(data[begin:end], SAFETENSORS[tensor["dtype"]]).reshape(tensor["shape"])


def difference(ours, theirs):
    """The largest of all outputs, each by its largest magnitude."""
    got, largest = dict(safetensors(ours)), 0.0
    for name, expected in np.load(theirs).items():
        if got[name].shape != expected.shape:
            sys.exit(f"output {name}: {got[name].shape}, and {expected.shape} of ONNX Runtime")
        if expected.size:
            apart = np.abs(got[name].astype(np.float64) - expected)
            largest = max(largest, float(apart.max() / max(np.abs(expected).max(), 1e-30)))
    return largest


def compare(model, options, threads, folder):
    """Rows of every round of one model."""
    arguments = []
    np.savez(folder / "inputs.npz", **(inputs := inputs_of(model)))
    for i, (name, array) in enumerate(inputs.items()):
        np.save(folder / f"{i}.npy", array)
        arguments += ["--in", f"{name}={folder / str(i)}.npy"]
    theirs = [options.python, HERE, model, "--worker", threads, "--inputs", folder / "inputs.npz", "--answers",
              folder / "theirs.npz", "--ms", options.ms, "--samples", options.samples]
    sizes = run([*theirs, "--dimensions"], options, threads)[2]
    theirs += ["--sizes", sizes]
    common = [file_of(model), *arguments, "--fix-sizes", "--threads", threads]
    for _ in range(options.rounds):
        row = {"model": name_of(model), "threads": threads}
        answer = ["--out", folder / "ours.safetensors"]
        cold = folder / "cold"
        row["cold_ms"] = run([options.program, "run", *common, *answer, "--cache", cold], options, threads)[0]
        for file in sorted(cold.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        cached = ["--cache", folder / "cache"]
        run([options.program, "run", *common, *cached], options, threads)
        wall, memory, _ = run([options.program, "run", *common, *answer, *cached], options, threads)
        row |= {"start_ms": wall, "memory_mib": memory}
        run([options.program, "bench", *common, *cached, "--samples", options.samples, "--ms", options.ms, "--json",
             folder / "bench.json"], options, threads)
        figures = json.loads((folder / "bench.json").read_text())["graphs"][0]
        row |= {"median_ms": figures["median_ns"] * 1e-6, "least_ms": figures["least_ns"] * 1e-6,
                "open_ms": figures["start_ms"], "launches": figures["launches"], "bound": figures["bound"],
                "memory_gbps": figures["memory_gbps"], "percent_of_floor": figures["percent_of_floor"]}
        other = json.loads(run(theirs, options, threads)[2])
        load = json.loads(run([*theirs, "--library"], options, threads)[2])["load_ms"]
        row["theirs"] = dict(other, start_ms=load + other["open_ms"])
        row["difference"] = difference(folder / "ours.safetensors", folder / "theirs.npz")
        yield row


def median(rows, *keys):
    def of(row):
        for key in keys:
            row = row[key]
        return row
    return statistics.median(map(of, rows))


def table(rows):
    yield ("| model | threads | run, ms | ONNX Runtime | ratio | quickest | open, ms | ONNX Runtime | start, ms | "
           "cold | ONNX Runtime | memory, MiB | ONNX Runtime | difference |")
    yield "|" + "---|" * 14
    ratios, quickest, groups = [], [], {}
    for row in rows:
        groups.setdefault((row["threads"], row["model"]), []).append(row)
    for (threads, model), group in sorted(groups.items()):
        ours, theirs = median(group, "median_ms"), median(group, "theirs", "median_ms")
        ratios.append(theirs / ours)
        least = min(row["theirs"]["least_ms"] for row in group) / min(row["least_ms"] for row in group)
        quickest.append(least)
        cells = [model, threads, f"{ours:.4g}", f"{theirs:.4g}", f"{ratios[-1]:.2f}", f"{least:.2f}",
                 *(f"{median(group, *keys):.{1 if median(group, *keys) < 10 else 0}f}" for keys in (
                     ("open_ms",), ("theirs", "open_ms"), ("start_ms",), ("cold_ms",), ("theirs", "start_ms"),
                     ("memory_mib",), ("theirs", "memory_mib"))), f"{max(row['difference'] for row in group):.1e}"]
        yield "| " + " | ".join(map(str, cells)) + " |"
    for name, values in (("medians", ratios), ("quickest samples", quickest)):
        mean = math.exp(statistics.mean(map(math.log, values)))
        yield f"\nGeometric mean of the ratios of {name}: {mean:.2f}; the least {min(values):.2f}."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--program", default=str(HERE.parents[2] / "build" / "bin" / "quern"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--ms", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    parser.add_argument("--with", dest="before", default="")
    for hidden in ("--inputs", "--answers"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", default="{}", help=argparse.SUPPRESS)
    for hidden in ("--library", "--dimensions"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return onnx_runtime(options)
    rows = []
    for model in options.models:
        if options.only in name_of(model):
            for threads in map(int, options.threads.split(",")):
                with tempfile.TemporaryDirectory() as folder:
                    rows += compare(model, options, threads, pathlib.Path(folder))
                print(*list(table(rows[-options.rounds:]))[2:3], file=sys.stderr, flush=True)
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(rows, indent=0), encoding="utf-8")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
