#!/usr/bin/env python3
"""Times graphs in text form in another system: one JSON object a graph on standard output, as compare.py reads them.

  time_graphs.py ENGINE THREADS [--ms 10] [--samples 15] GRAPH...

ENGINE: ort (ONNX Runtime), openvino, openvino-bf16, jax, torch (PyTorch's own operators), torch-compiled, onednn
(graphs of one primitive, as these lie), onednn-any (in layouts of its own, which nobody converts). What is timed
is a call with inputs and outputs in memory that is already there: warmed up, samples of as many calls as fill --ms.
mean: of the absolute values of the first output, by which systems are held against each other.
"""

import argparse
import json
import os
import time
import warnings

import numpy as np

import graph_text
import values


def clocked(call, options):
    """Compiling apart: the median, the least, in nanoseconds of a call."""
    call()
    start = time.perf_counter()
    call()
    if time.perf_counter() - start < 0.5:
        call()
        start = time.perf_counter()
        call()
    once = time.perf_counter() - start
    calls = max(1, int(options.ms * 1e-3 / once))
    samples = []
    for _ in range(options.samples if once < 0.5 else 3):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls * 1e9)
    samples.sort()
    return samples[len(samples) // 2], samples[0]


def inputs_of(graph):
    return {node.attributes["name"]: (node.results[0], values.leaf(node.results[0], 1000 + i, False))
            for i, node in enumerate(graph.leaves("Input"))}


def onnx_runtime(graph, options):
    import onnxruntime

    import onnx_graph
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
    session = onnxruntime.InferenceSession(onnx_graph.convert(graph).SerializeToString(), settings,
                                           providers=["CPUExecutionProvider"])
    binding, kept = session.io_binding(), []
    for name, (kind, array) in inputs_of(graph).items():
        if kind.dtype == "bf16":
            raise ValueError("numpy has no bf16, so ONNX Runtime is not given any")
        kept.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
        binding.bind_ortvalue_input(name, kept[-1])
    for output in session.get_outputs():
        kept.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(output.shape, np.float32)))
        binding.bind_ortvalue_output(output.name, kept[-1])
    first = kept[len(session.get_inputs())]
    return lambda: session.run_with_iobinding(binding), first.numpy


def openvino(precision):
    def make(graph, options):
        import openvino as ov

        import onnx_graph
        model = ov.Core().read_model(onnx_graph.convert(graph).SerializeToString())
        compiled = ov.Core().compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision})
        request, kept = compiled.create_infer_request(), []
        for name, (kind, array) in inputs_of(graph).items():
            if kind.dtype == "bf16":  # a tensor of bits is a view of them
                kept.append(values.bf16_bits(array))
                request.set_tensor(name, ov.Tensor(kept[-1], ov.Shape(kind.shape), ov.Type.bf16))
            else:
                request.set_tensor(name, ov.Tensor(array))
        return lambda kept=kept: request.infer(), lambda: request.get_output_tensor(0).data
    return make


def jax(graph, options):
    import jax as library

    import array_graph
    lib = array_graph.Jax()
    params = array_graph.params(graph, lib)
    inputs = {name: lib.array(array, kind.dtype) for name, (kind, array) in inputs_of(graph).items()}
    compiled = library.jit(array_graph.function(graph, lib)).lower(params, inputs).compile()
    return (lambda: compiled(params, inputs).block_until_ready(),
            lambda: np.asarray(compiled(params, inputs).astype("float32")))


def torch(compiles):
    def make(graph, options):
        import torch as library

        import array_graph
        library.set_num_threads(options.threads)
        library.set_grad_enabled(False)
        lib = array_graph.Torch()
        params = array_graph.params(graph, lib)
        inputs = {name: lib.array(array, kind.dtype) for name, (kind, array) in inputs_of(graph).items()}
        run = array_graph.function(graph, lib)
        if compiles:
            run = library.compile(run)
        return lambda: run(params, inputs), lambda: run(params, inputs).float().numpy()
    return make


def onednn(layouts):
    def make(graph, options):
        import onednn as library
        return library.prepare(graph, layouts)
    return make


ENGINES = {"ort": onnx_runtime, "openvino": openvino("f32"), "openvino-bf16": openvino("bf16"), "jax": jax,
           "torch": torch(False), "torch-compiled": torch(True), "onednn": onednn("given"), "onednn-any": onednn("any")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("threads", type=int)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--ms", type=float, default=10)
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    # One core for one thread, and no threads beside those that are asked for; before a library starts its own.
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(allowed[-options.threads:]))
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    for path in options.graphs:
        name = os.path.splitext(os.path.basename(path))[0]
        row = {"graph": name, "engine": options.engine, "threads": options.threads}
        try:
            call, output = ENGINES[options.engine](graph_text.read(path), options)
            row["median_ns"], row["least_ns"] = clocked(call, options)
            row["mean"] = float(np.abs(np.asarray(output(), np.float64)).mean())
        except (AssertionError, ValueError, RuntimeError, KeyError, NotImplementedError) as error:
            row["error"] = str(error).strip().split("\n")[0][:200]
        except Exception as error:  # noqa: BLE001: systems have errors of their own
            row["error"] = f"{type(error).__name__}: {str(error)[:160]}"
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
