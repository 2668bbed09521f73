"""The times of docs/python.md: the package beside numpy, ONNX Runtime and llama.cpp, in rounds that take turns.

    python_times.py MODEL.onnx MODEL.gguf     in an environment that has quern, numpy and onnxruntime; llama_cpp is
                                              measured where it is installed

Prints a table in Markdown: medians of the rounds. Numpy's BLAS is told nothing about the processor
(OPENBLAS_CORETYPE), and everything has one thread: what waits for another is what a loaded machine changes most.
"""
import os
import statistics
import sys
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import quern  # noqa: E402

ROUNDS, SECONDS = 11, 0.05


def compare(**functions):
    """Median seconds of a call of each, in rounds that take turns."""
    calls = {}
    for name, f in functions.items():
        f()
        start = time.perf_counter()
        f()
        calls[name] = max(1, int(SECONDS / (time.perf_counter() - start)))
    times = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, f in functions.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                f()
            times[name].append((time.perf_counter() - start) / calls[name])
    return {name: statistics.median(t) for name, t in times.items()}


def row(what, ours, other, theirs, name):
    print(f"| {what} | {ours} | {other} {name} | {theirs:.2f} x |")


def main():
    onnx, gguf = sys.argv[1:3]
    print("| what | Quern | beside | |\n|---|---|---|---|")
    rng = np.random.default_rng(1)
    gate, up = (rng.standard_normal((512, 2048), np.float32) / 23 for _ in range(2))
    down = rng.standard_normal((2048, 512), np.float32) / 45
    ffn = quern.jit(lambda x: (quern.silu(x @ gate) * (x @ up)) @ down, dynamic={"x": {0: "BATCH"}}, threads=1)

    def by_numpy(x):
        g = x @ gate
        return (g / (1 + np.exp(-g)) * (x @ up)) @ down
    for batch in (1, 3, 64):
        x = rng.standard_normal((batch, 512), np.float32)
        t = compare(quern=lambda: ffn(x), numpy=lambda: by_numpy(x))
        row(f"the function, batch {batch}", f"{t['quern'] * 1e6:.0f} us", f"{t['numpy'] * 1e6:.0f} us",
            t["numpy"] / t["quern"], "numpy")

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    quern.OnnxModel(onnx, threads=1)  # fills the cache of kernels
    start = time.perf_counter()
    theirs = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    middle = time.perf_counter()
    model = quern.OnnxModel(onnx, threads=1)
    end = time.perf_counter()
    inputs = {p.name: rng.standard_normal(p.shape, np.float32) for p in model.inputs}
    for got, expected in zip(model.run(inputs).values(), theirs.run(None, inputs)):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
    t = compare(quern=lambda: model.run(inputs), theirs=lambda: theirs.run(None, inputs))
    row("the model in ONNX", f"{t['quern'] * 1e6:.0f} us", f"{t['theirs'] * 1e6:.0f} us", t["theirs"] / t["quern"],
        "ONNX Runtime")
    row("opening it (kernels from the cache)", f"{(end - middle) * 1e3:.0f} ms", f"{(middle - start) * 1e3:.0f} ms",
        (middle - start) / (end - middle), "ONNX Runtime")

    session = quern.Session(gguf, threads=1)
    functions = {"quern": lambda: sum(1 for _ in session.generate("Once upon a time", max_tokens=64))}
    try:
        import llama_cpp
    except ImportError:
        llama_cpp = None
    if llama_cpp:
        llama = llama_cpp.Llama(gguf, n_threads=1, n_ctx=512, verbose=False)
        functions["llama"] = lambda: sum(
            1 for _ in llama("Once upon a time", max_tokens=64, temperature=0, stream=True))
    t = compare(**functions)
    if llama_cpp:
        row("64 tokens as text", f"{64 / t['quern']:.0f} tok/s", f"{64 / t['llama']:.0f} tok/s",
            t["llama"] / t["quern"], "llama.cpp")
    else:
        print(f"| 64 tokens as text | {64 / t['quern']:.0f} tok/s | llama.cpp's package is not installed here | |")


main()
