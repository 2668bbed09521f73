#!/usr/bin/env python3
"""Models in ONNX (opset 17) of the shapes that people export, with random weights, spelled out as exporters do.

  random_onnx.py FOLDER [NAME...]     writes FOLDER/NAME.onnx and FOLDER/NAME.inputs.npz, of all or of the named

resnet50: ResNet-50 at 224x224, its normalisations folded into the convolutions. bert: four layers of BERT-base with
batch and sequence in symbols (128 tokens here, 13 of them masked) and what Shape, Gather and Concat make of these.
yolo: YOLOv8n at 320x320, from the image to boxes and scores. whisper: the encoder of Whisper tiny, 3000 frames of 80
bands.
"""

import argparse
import math
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import values


class Builder:
    """Nodes and initialisers of a model; every function returns the name of a value, or of each of several."""

    def __init__(self):
        self.nodes, self.initialisers, self.seed = [], [], 0

    def op(self, kind, *operands, outputs=1, **attributes):
        self.seed += 1
        names = [f"{kind}_{self.seed}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), names, name=f"{kind}_{self.seed}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        self.seed += 1
        name = f"constant_{self.seed}"
        self.initialisers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def number(self, value):
        return self.constant(np.float32(value))

    def weight(self, *shape, scale):
        return self.constant(values.noise(math.prod(shape), self.seed, scale).reshape(shape))

    def conv(self, x, channels, out, kernel, stride=1, group=1, gain=1.0, bias=True):
        """kernel: a number for images, a tuple of one for sequences."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        taps = channels // group * math.prod(kernel)
        operands = [x, self.weight(out, channels // group, *kernel, scale=gain * math.sqrt(3 / taps))]
        if bias:
            operands.append(self.weight(out, scale=0.1))
        return self.op("Conv", *operands, kernel_shape=kernel, strides=[stride] * len(kernel), group=group,
                       dilations=[1] * len(kernel), pads=[k // 2 for k in kernel] * 2)

    def linear(self, x, columns, out, bias=True):
        y = self.op("MatMul", x, self.weight(columns, out, scale=math.sqrt(3 / columns)))
        return self.op("Add", self.weight(out, scale=0.1), y) if bias else y

    def norm(self, x, width, epsilon):
        return self.op("LayerNormalization", x, self.constant(np.ones(width, np.float32)),
                       self.weight(width, scale=0.1), axis=-1, epsilon=epsilon)

    def gelu(self, x):
        e = self.op("Add", self.op("Erf", self.op("Div", x, self.number(math.sqrt(2)))), self.number(1))
        return self.op("Mul", self.op("Mul", x, e), self.number(0.5))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def feed_forward(self, x, width):
        return self.linear(self.gelu(self.linear(x, width, 4 * width)), 4 * width, width)

    def model(self, inputs, outputs):
        """inputs, outputs: (name, dtype, shape)."""
        made = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "random", *made, self.initialisers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def resnet50():
    b = Builder()
    x = b.op("Relu", b.conv("image", 3, 64, 7, 2, gain=1.4))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
    channels = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = b.op("Relu", b.conv(x, channels, width, 1, gain=1.4))
            y = b.op("Relu", b.conv(y, width, width, 3, stride, gain=1.4))
            y = b.conv(y, width, 4 * width, 1, gain=0.5)
            if block == 0:
                x = b.conv(x, channels, 4 * width, 1, stride)
            x, channels = b.op("Relu", b.op("Add", y, x)), 4 * width
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    weights = [b.weight(1000, 2048, scale=0.04), b.weight(1000, scale=0.1)]
    b.nodes.append(helper.make_node("Gemm", [x, *weights], ["logits"], transB=1))
    image = values.noise(3 * 224 * 224, 1, 2).reshape(1, 3, 224, 224)
    return b.model([("image", TensorProto.FLOAT, image.shape)], [("logits", TensorProto.FLOAT, [1, 1000])]), {
        "image": image}


def bert(layers=4, width=768, heads=12, vocabulary=8000, length=128):
    b = Builder()
    shape = b.op("Shape", "input_ids")
    batch, tokens = (b.op("Unsqueeze", b.op("Gather", shape, b.constant(np.int64(i)), axis=0), b.integers(0))
                     for i in range(2))
    positions = b.op("Slice", b.constant(np.arange(512, dtype=np.int64)[None]), b.integers(0), tokens, b.integers(1))
    x = b.op("Add", b.op("Gather", b.weight(vocabulary, width, scale=1), "input_ids", axis=0),
             b.op("Gather", b.weight(2, width, scale=0.2), "token_type_ids", axis=0))
    x = b.norm(b.op("Add", x, b.op("Gather", b.weight(512, width, scale=0.2), positions, axis=0)), width, 1e-12)
    mask = b.op("Cast", b.op("Unsqueeze", "attention_mask", b.integers(1, 2)), to=TensorProto.FLOAT)
    mask = b.op("Mul", b.op("Sub", b.number(1), mask), b.number(np.finfo(np.float32).min))
    split = b.op("Concat", batch, tokens, b.integers(heads), b.integers(width // heads), axis=0)
    joined = b.op("Concat", batch, tokens, b.integers(width), axis=0)
    for _ in range(layers):
        q, k, v = (b.op("Reshape", b.linear(x, width, width), split) for _ in range(3))
        scores = b.op("MatMul", b.op("Transpose", q, perm=[0, 2, 1, 3]), b.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = b.op("Add", b.op("Div", scores, b.number(math.sqrt(width // heads))), mask)
        y = b.op("MatMul", b.op("Softmax", scores, axis=-1), b.op("Transpose", v, perm=[0, 2, 1, 3]))
        y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), joined)
        x = b.norm(b.op("Add", b.linear(y, width, width), x), width, 1e-12)
        x = b.norm(b.op("Add", b.feed_forward(x, width), x), width, 1e-12)
    first = b.op("Gather", x, b.constant(np.int64(0)), axis=1)
    pooled = b.op("Gemm", first, b.weight(width, width, scale=0.06), b.weight(width, scale=0.1), transB=1)
    b.nodes += [helper.make_node("Identity", [x], ["last_hidden_state"]),
                helper.make_node("Tanh", [pooled], ["pooler_output"])]
    ids = (np.arange(length, dtype=np.int64) * 797 % vocabulary)[None]
    mask = np.ones((1, length), np.int64)
    mask[0, -13:] = 0
    sizes = ["batch", "sequence"]
    return b.model([(name, TensorProto.INT64, sizes) for name in ("input_ids", "token_type_ids", "attention_mask")],
                   [("last_hidden_state", TensorProto.FLOAT, [*sizes, width]),
                    ("pooler_output", TensorProto.FLOAT, ["batch", width])]), {
        "input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": mask}


def yolo(size=320, classes=80):
    b = Builder()

    def conv(x, channels, out, kernel=1, stride=1):
        return b.silu(b.conv(x, channels, out, kernel, stride, gain=1.6))

    def c2f(x, channels, out, count, shortcut):
        half = out // 2
        parts = b.op("Split", conv(x, channels, out), b.integers(half, half), outputs=2, axis=1)
        for _ in range(count):
            y = conv(conv(parts[-1], half, half, 3), half, half, 3)
            parts.append(b.op("Add", parts[-1], y) if shortcut else y)
        return conv(b.op("Concat", *parts, axis=1), (2 + count) * half, out)

    def up(x):
        return b.op("Resize", x, "", b.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    x = conv(conv("images", 3, 16, 3, 2), 16, 32, 3, 2)
    x = conv(c2f(x, 32, 32, 1, True), 32, 64, 3, 2)
    p3 = c2f(x, 64, 64, 2, True)
    p4 = c2f(conv(p3, 64, 128, 3, 2), 128, 128, 2, True)
    x = c2f(conv(p4, 128, 256, 3, 2), 256, 256, 1, True)
    pools = [conv(x, 256, 128)]
    for _ in range(3):
        pools.append(b.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2], ceil_mode=0))
    p5 = conv(b.op("Concat", *pools, axis=1), 512, 256)
    n4 = c2f(b.op("Concat", up(p5), p4, axis=1), 384, 128, 1, False)
    n3 = c2f(b.op("Concat", up(n4), p3, axis=1), 192, 64, 1, False)
    n4 = c2f(b.op("Concat", conv(n3, 64, 64, 3, 2), n4, axis=1), 192, 128, 1, False)
    n5 = c2f(b.op("Concat", conv(n4, 128, 128, 3, 2), p5, axis=1), 384, 256, 1, False)
    flat, anchors, strides = [], [], []
    for stride, x, channels in ((8, n3, 64), (16, n4, 128), (32, n5, 256)):
        box = b.conv(conv(conv(x, channels, 64, 3), 64, 64, 3), 64, 64, 1)
        score = b.conv(conv(conv(x, channels, 80, 3), 80, 80, 3), 80, classes, 1)
        flat.append(b.op("Reshape", b.op("Concat", box, score, axis=1), b.integers(1, 64 + classes, -1)))
        side = size // stride
        rows, columns = np.mgrid[:side, :side].reshape(2, -1) + 0.5
        anchors.append(np.stack([columns, rows]))
        strides.append(np.full((1, side * side), stride))
    anchors, strides = (np.concatenate(part, 1)[None].astype(np.float32) for part in (anchors, strides))
    count = anchors.shape[2]
    box, score = b.op("Split", b.op("Concat", *flat, axis=2), b.integers(64, classes), outputs=2, axis=1)
    box = b.op("Transpose", b.op("Reshape", box, b.integers(1, 4, 16, count)), perm=[0, 2, 1, 3])
    bins = b.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    box = b.op("Conv", b.op("Softmax", box, axis=1), bins, kernel_shape=[1, 1])
    box = b.op("Reshape", box, b.integers(1, 4, count))
    low, high = (b.op("Slice", box, b.integers(2 * i), b.integers(2 * i + 2), b.integers(1)) for i in range(2))
    low, high = b.op("Sub", b.constant(anchors), low), b.op("Add", b.constant(anchors), high)
    middle = b.op("Div", b.op("Add", low, high), b.number(2))
    box = b.op("Mul", b.op("Concat", middle, b.op("Sub", high, low), axis=1), b.constant(strides))
    b.nodes.append(helper.make_node("Concat", [box, b.op("Sigmoid", score)], ["output0"], axis=1))
    image = np.abs(values.noise(3 * size * size, 1, 1)).reshape(1, 3, size, size)
    return b.model([("images", TensorProto.FLOAT, image.shape)],
                   [("output0", TensorProto.FLOAT, [1, 4 + classes, count])]), {"images": image}


def whisper(layers=4, width=384, heads=6, frames=3000, bands=80):
    b = Builder()
    x = b.gelu(b.conv("input_features", bands, width, (3,), gain=1.4))
    x = b.gelu(b.conv(x, width, width, (3,), 2, gain=1.4))
    x = b.op("Add", b.op("Transpose", x, perm=[0, 2, 1]), b.weight(frames // 2, width, scale=0.3))
    split, joined = (b.integers(1, frames // 2, *end) for end in ((heads, width // heads), (width,)))
    for _ in range(layers):
        y = b.norm(x, width, 1e-5)
        q = b.op("Mul", b.linear(y, width, width), b.number((width // heads) ** -0.5))
        q, k, v = (b.op("Transpose", b.op("Reshape", part, split), perm=[0, 2, 1, 3])
                   for part in (q, b.linear(y, width, width, bias=False), b.linear(y, width, width)))
        scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
        y = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = b.op("Add", x, b.linear(b.op("Reshape", y, joined), width, width))
        x = b.op("Add", x, b.feed_forward(b.norm(x, width, 1e-5), width))
    b.nodes.append(helper.make_node("Identity", [b.norm(x, width, 1e-5)], ["last_hidden_state"]))
    mel = values.noise(bands * frames, 1, 1).reshape(1, bands, frames)
    return b.model([("input_features", TensorProto.FLOAT, mel.shape)],
                   [("last_hidden_state", TensorProto.FLOAT, [1, frames // 2, width])]), {"input_features": mel}


MODELS = {"resnet50": resnet50, "bert": bert, "yolo": yolo, "whisper": whisper}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", choices=[*MODELS, []])
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for name in options.names or MODELS:
        model, inputs = MODELS[name]()
        onnx.checker.check_model(model)
        onnx.save(model, os.path.join(options.folder, f"{name}.onnx"))
        np.savez(os.path.join(options.folder, f"{name}.inputs.npz"), **inputs)


if __name__ == "__main__":
    main()
