#!/usr/bin/env python3
"""Records static_quantised.tar.xz: a model of floats, values for it, and what ONNX Runtime's quantize_static and its
kernels make of it in each way: scales and zero points of activations, bytes and scales of weights, and the output.

    record_static_quantised.py FOLDER       needs onnx, onnxruntime and numpy
"""

import io
import pathlib
import sys
import tarfile
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

RUNS = 3
WAYS = {
    "u8": {"activation_type": QuantType.QUInt8, "per_channel": True},
    "i8": {"activation_type": QuantType.QInt8, "per_channel": True},
    "symmetric": {"activation_type": QuantType.QInt8, "per_channel": False, "more": {"ActivationSymmetric": True}},
}


def spread(shape, seed, low, high):
    at = np.arange(int(np.prod(shape)), dtype=np.float64) + 17 * seed
    return (low + (high - low) * ((at * 0.6180339887498949 + 0.137) % 1.0)).reshape(shape).astype(np.float32)


def model():
    """Convolutions (padded, strided, grouped), a maximum pool, and a product over rows, of odd sizes."""
    weights = {"w1": spread((6, 3, 3, 3), 1, -0.4, 0.6), "b1": spread((6,), 2, -0.5, 0.5),
               "w2": spread((4, 3, 2, 2), 3, -0.7, 0.5), "w3": spread((28, 5), 4, -0.9, 0.4),
               "b3": spread((5,), 5, -1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], "conv2", group=2, strides=[1, 2], pads=[0, 0, 1, 0]),
        helper.make_node("Flatten", ["c2"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "w3"], ["m"], "product"),
        helper.make_node("Add", ["m", "b3"], ["y"], "bias"),
    ]
    graph = helper.make_graph(
        nodes, "static", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3, 15, 5])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 5])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


class Reader(CalibrationDataReader):
    def __init__(self, inputs):
        self.left = iter([{"x": x} for x in inputs])

    def get_next(self):
        return next(self.left, None)


def run(path, x, optimised):
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def main():
    inputs = [spread((2, 3, 15, 5), 10 + i, -1 - 0.3 * i, 2) for i in range(RUNS)]
    files = {f"x{i}.npy": x for i, x in enumerate(inputs)}
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        onnx.save(model(), at / "model.onnx")
        files["y.npy"] = run(at / "model.onnx", inputs[0], False)
        for way, form in WAYS.items():
            quantize_static(at / "model.onnx", at / "q.onnx", Reader(inputs), quant_format=QuantFormat.QDQ,
                            activation_type=form["activation_type"], weight_type=QuantType.QInt8,
                            per_channel=form["per_channel"], op_types_to_quantize=["Conv", "MatMul"],
                            extra_options={"OpTypesToExcludeOutputQuantization": ["Conv", "MatMul"],
                                           "QuantizeBias": False, "WeightSymmetric": True} | form.get("more", {}))
            for tensor in onnx.load(at / "q.onnx").graph.initializer:
                if tensor.name.endswith(("_scale", "_zero_point", "_quantized")):
                    files[f"{way}/{tensor.name}.npy"] = numpy_helper.to_array(tensor)
            files[f"{way}/y.npy"] = run(at / "q.onnx", inputs[0], False)
        with tarfile.open(pathlib.Path(sys.argv[1]) / "static_quantised.tar.xz", "w:xz") as archive:
            def add(name, data):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            add("model.onnx", (at / "model.onnx").read_bytes())
            for name, value in sorted(files.items()):
                data = io.BytesIO()
                np.save(data, np.ascontiguousarray(value))
                add(name, data.getvalue())
                print(name, value.dtype, value.shape, value.reshape(-1)[:3])


if __name__ == "__main__":
    main()
