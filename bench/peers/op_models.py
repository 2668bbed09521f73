#!/usr/bin/env python3
"""Writes models in ONNX of one op or a few each, of sizes that people have: NAME.onnx and NAME.inputs.npz.

  op_models.py FOLDER

What op_times.py times: neighbours of what bench/graphs has (other dtypes, axes, layouts, weights that are inputs), so
that nothing beside a tuned case is slow unseen.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(7)
MS = "com.microsoft"
DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
          "i8": np.int8, "b": bool}
FLAT, IMAGES, SQUARE = (64, 16384), (8, 64, 56, 56), (1024, 1024)
ONES = [1, 1, 1, 1]


def array(*shape, t="f32"):
    if t[0] == "f":
        return RANDOM.standard_normal(shape).astype(DTYPES[t])
    if t == "b":
        return RANDOM.integers(0, 2, shape).astype(bool)
    return RANDOM.integers(1 if t[0] == "u" else -50, 100, shape).astype(DTYPES[t])


def weight(*shape):
    return array(*shape) * np.float32(0.05)


def positive(x):
    return np.abs(x) + x.dtype.type(1)


def ints(*values):
    return np.array(values, np.int64)


def places(*shape, below):
    return RANDOM.integers(0, below, shape).astype(np.int64)


def model(name, nodes, inputs, weights=None, outputs=1, opset=18):
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in inputs.items()]
    graph = helper.make_graph(nodes, name, given, [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)],
                              [numpy_helper.from_array(x, n) for n, x in (weights or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)],
                             ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(made), FOLDER / f"{name}.onnx")
    np.savez(FOLDER / f"{name}.inputs.npz", **inputs)


def one(name, op, inputs, weights=None, outputs=1, opset=18, domain="", order=None, **attributes):
    """`inputs`, `weights`: arrays, x0 and so on, then w0; `order`: their names, where an operand is absent."""
    xs, ws = {f"x{i}": x for i, x in enumerate(inputs)}, {f"w{i}": np.asarray(w) for i, w in enumerate(weights or [])}
    node = helper.make_node(op, order or [*xs, *ws], [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    model(name, [node], xs, ws, outputs, opset)


def several(name, steps, inputs, weights=None):
    """`steps`: (op, operands, result, attributes); the last result is y0."""
    model(name, [helper.make_node(op, operands.split(","), [result], **(rest[0] if rest else {}))
                 for op, operands, result, *rest in steps], inputs, weights)


def elementwise():
    for op in ("Abs Neg Exp Log Sqrt Tanh Sigmoid Erf HardSigmoid HardSwish Softplus Mish Elu LeakyRelu Sign Floor "
               "Round Sin Tan Atan Asinh Reciprocal Relu Cosh IsNaN").split():
        x = array(*FLAT)
        one(op, op, [positive(x) if op in ("Log", "Sqrt") else x])
    for t in ("f16", "f64"):
        for op in ("Exp", "Tanh", "Sigmoid", "Sqrt", "Relu"):
            one(f"{op}_{t}", op, [positive(array(*FLAT, t=t))])
    for op in ("Add", "Mul", "Div", "Max", "Mod", "Pow", "Equal", "Greater"):
        for t in ("f32", "i32", "i64", "f16", "u8"):
            a, b = array(*FLAT, t=t), positive(array(*FLAT, t=t))
            if op == "Pow":
                a, b = (positive(a), b) if t[0] == "f" else (a, places(*FLAT, below=4).astype(DTYPES[t]))
            if op != "Pow" or t != "u8":
                one(f"{op}_{t}", op, [a, b], **({"fmod": 1} if op == "Mod" and t[0] == "f" else {}))
    for power in (2, 3, 0.5, 2.5):
        one(f"Pow_{power}", "Pow", [positive(array(*FLAT))], [np.float32(power)])
    one("Where", "Where", [array(*FLAT, t="b"), array(*FLAT), array(*FLAT)])
    one("Clip", "Clip", [array(*FLAT)], [np.float32(-1), np.float32(1)])
    for pair in ("f32 f16", "f16 f32", "f32 u8", "u8 f32", "f32 i64", "i64 f32", "f32 b", "i64 i32", "f64 f32"):
        a, b = pair.split()
        x = array(*FLAT, t=a)
        one(f"Cast_{a}_{b}", "Cast", [np.abs(x)], to=helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[b])))
    for name, a, b in (("channels", IMAGES, (64, 1, 1)), ("column", SQUARE, (1024, 1)), ("outer", (1024, 1), (1, 1024)),
                       ("middle", (32, 64, 512), (32, 1, 512)), ("first", (64, 128, 128), (64, 1, 1)),
                       ("odd", (127, 129, 7), (127, 1, 7)), ("three", (512, 768, 3), (3,))):
        one(f"Add_{name}", "Add", [array(*a), array(*b)])


def folds():
    axes = {"last": ([-1], SQUARE), "first": ([0], SQUARE), "image": ([2, 3], IMAGES), "middle": ([1], (64, 128, 128)),
            "all": ([0, 1], SQUARE), "channels": ([1], IMAGES), "batch": ([0, 2, 3], IMAGES),
            "short": ([-1], (65536, 7)), "ends": ([0, 2], (64, 128, 128))}
    for op in ("Sum", "Mean", "Max", "L2", "LogSumExp", "Prod"):
        for name, (along, shape) in axes.items():
            one(f"Reduce{op}_{name}", f"Reduce{op}", [array(*shape)], [ints(*along)])
    for t in ("i64", "f16", "i32", "f64"):
        for name in ("last", "first"):
            one(f"ReduceSum_{name}_{t}", "ReduceSum", [array(*SQUARE, t=t)], [ints(*axes[name][0])])
    for name, axis, shape in (("last", -1, SQUARE), ("first", 0, SQUARE), ("channels", 1, IMAGES),
                              ("short", -1, (65536, 5))):
        for op in ("ArgMax", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
            one(f"{op}_{name}", op, [array(*shape)], axis=axis)
        one(f"CumSum_{name}", "CumSum", [array(*shape)], [np.int64(axis)])
    scales = [array(64), array(64)]
    one("BatchNorm", "BatchNormalization", [array(*IMAGES)], [*scales, array(64), positive(array(64))])
    one("InstanceNorm", "InstanceNormalization", [array(*IMAGES)], scales)
    one("GroupNorm", "GroupNormalization", [array(*IMAGES)], scales, opset=21, num_groups=8)
    for name, shape in (("", (512, 768)), ("_short", (16384, 49))):
        one(f"LayerNorm{name}", "LayerNormalization", [array(*shape)], [array(shape[1]), array(shape[1])], axis=-1)
    one("Lrn", "LRN", [array(*IMAGES)], size=5)


def moves():
    turns = {"square": (SQUARE, (1, 0)), "last": (IMAGES, (0, 2, 3, 1)), "planes": ((8, 56, 56, 64), (0, 3, 1, 2)),
             "heads": ((8, 128, 12, 64), (0, 2, 1, 3)), "keys": ((8, 12, 128, 64), (0, 1, 3, 2)),
             "three": ((4, 3, 224, 224), (0, 2, 3, 1)), "reverse": ((16, 24, 32, 40), (3, 2, 1, 0)),
             "windows": ((8, 7, 8, 7, 8, 96), (0, 1, 3, 2, 4, 5)), "small": ((4096, 4, 4), (0, 2, 1)),
             "pixels": ((8, 16, 2, 2, 56, 56), (0, 1, 4, 2, 5, 3))}
    for t in ("f32", "f16", "u8", "i64"):
        for name, (shape, perm) in turns.items():
            one(f"Transpose_{name}_{t}", "Transpose", [array(*shape, t=t)], perm=perm)
    for name, axis, shapes in (("first", 0, [(256, 1024)] * 4), ("last", -1, [(1024, 256)] * 4),
                               ("channels", 1, [(8, 32, 56, 56)] * 3), ("columns", -1, [(65536, 1)] * 4),
                               ("many", 1, [(16, 8, 64)] * 64)):
        for t in ("f32", "f16"):
            one(f"Concat_{name}_{t}", "Concat", [array(*s, t=t) for s in shapes], axis=axis)
    for name, axis, shape, parts in (("first", 0, SQUARE, 4), ("last", -1, SQUARE, 4), ("columns", -1, (65536, 2), 2)):
        one(f"Split_{name}", "Split", [array(*shape)], outputs=parts, axis=axis, num_outputs=parts)
    for name, start, end, axis, step in (("rows", 100, 900, 0, 1), ("columns", 100, 900, 1, 1), ("step", 0, 1024, 1, 2),
                                         ("back", -1, -2000, 1, -1)):
        one(f"Slice_{name}", "Slice", [array(*SQUARE)], [ints(start), ints(end), ints(axis), ints(step)])
    for mode in ("constant", "reflect", "edge", "wrap"):
        one(f"Pad_{mode}", "Pad", [array(8, 32, 112, 112)], [ints(0, 0, 3, 3, 0, 0, 3, 3)], mode=mode, opset=19)
    one("Tile", "Tile", [array(1024, 64)], [ints(1, 16)])
    one("Expand", "Expand", [array(1024, 1)], [ints(1024, 1024)])
    one("Gather_rows", "Gather", [places(8, 128, below=30000)], [array(30000, 768)], order=["w0", "x0"])
    one("Gather_short", "Gather", [places(65536, below=512)], [array(512, 8)], order=["w0", "x0"])
    one("Gather_columns", "Gather", [array(*SQUARE), places(512, below=1024)], axis=1)
    one("GatherElements", "GatherElements", [array(*SQUARE), places(1024, 512, below=1024)], axis=1)
    one("GatherND", "GatherND", [array(64, 64, 256), places(4096, 2, below=64)])
    rows = RANDOM.permutation(4096)[:1024].reshape(-1, 1).astype(np.int64)
    for how in ("none", "add"):
        one(f"ScatterND_{how}", "ScatterND", [array(4096, 256), rows, array(1024, 256)], reduction=how)
    one("OneHot", "OneHot", [places(1024, below=1000)], [np.int64(1000), np.array([0, 1], np.float32)])
    one("DepthToSpace", "DepthToSpace", [array(1, 64, 128, 128)], blocksize=2)
    for mode in ("nearest", "linear", "cubic"):
        for name, shape, scale in (("up", (1, 64, 64, 64), 2), ("down", (1, 64, 128, 128), 0.5),
                                   ("odd", (1, 3, 224, 224), 1.37)):
            one(f"Resize_{mode}_{name}", "Resize", [array(*shape)], [np.array([1, 1, scale, scale], np.float32)],
                order=["x0", "", "w0"], mode=mode)
        grid = (RANDOM.random((2, 64, 64, 2)) * 2 - 1).astype(np.float32)
        one(f"GridSample_{mode}", "GridSample", [array(2, 16, 64, 64), grid], opset=20, mode=mode)
    one("NonZero", "NonZero", [array(*SQUARE, t="b")])
    one("Compress", "Compress", [array(4096, 256), array(4096, t="b")], axis=0)
    one("Unique", "Unique", [places(100000, below=5000)])
    for k, axis, shape in ((10, -1, SQUARE), (10, 0, SQUARE), (100, -1, FLAT), (1, -1, SQUARE)):
        one(f"TopK_{k}_{axis % 2}_{shape[0]}", "TopK", [array(*shape)], [ints(k)], outputs=2, axis=axis)
    corners = RANDOM.random((1, 2000, 2)) * 400
    boxes = np.concatenate([corners, corners + 10 + RANDOM.random((1, 2000, 2)) * 60], 2).astype(np.float32)
    one("NonMaxSuppression", "NonMaxSuppression", [boxes, RANDOM.random((1, 4, 2000)).astype(np.float32)],
        [ints(100), np.array([0.5], np.float32), np.array([0.3], np.float32)])


def products():
    shapes = {"square": ((256, 512), (512, 768)), "texts": ((8, 128, 512), (512, 512)),
              "batch": ((16, 128, 64), (16, 64, 128)), "heads": ((2, 12, 128, 64), (2, 12, 64, 128)),
              "broadcast": ((8, 1, 128, 64), (1, 12, 64, 64)),
              "column": (SQUARE, (1024, 1)), "row": ((1, 1024), SQUARE), "columns": ((64, 256, 256), (64, 256, 1)),
              "rows": ((64, 1, 256), (64, 256, 256)), "one_term": ((1024, 1), (1, 1024)),
              "three_terms": ((4096, 3), (3, 64)), "three_columns": ((4096, 64), (64, 3)),
              "small": ((4096, 4, 4), (4096, 4, 4)), "odd": ((127, 257), (257, 131))}
    for name, (a, b) in shapes.items():
        one(f"MatMul_{name}", "MatMul", [array(*a), array(*b)])
        one(f"MatMul_{name}_weights", "MatMul", [array(*a)], [array(*b)])
    for t in ("f16", "f64", "i32"):
        one(f"MatMul_{t}", "MatMul", [array(256, 512, t=t), array(512, 768, t=t)])
    for a in (0, 1):
        for b in (0, 1):
            left, right = array(*((512, 256) if a else (256, 512))), array(*((768, 512) if b else (512, 768)))
            one(f"Gemm_{a}{b}", "Gemm", [left, right, array(768)], transA=a, transB=b)
            one(f"Gemm_{a}{b}_weights", "Gemm", [left], [right, array(768)], transA=a, transB=b)
    for name, equation, operands in (("scores", "bqhd,bkhd->bhqk", [(2, 128, 12, 64)] * 2),
                                     ("diagonal", "ii->i", [SQUARE]), ("sum", "ijk->j", [(64, 128, 128)]),
                                     ("outer", "i,j->ij", [(1024,)] * 2),
                                     ("bilinear", "bi,ijk,bk->bj", [(64, 64), (64, 64, 64), (64, 64)])):
        one(f"Einsum_{name}", "Einsum", [array(*s) for s in operands], equation=equation)
    a, b = array(256, 512, t="u8"), array(512, 768, t="i8")
    one("MatMulInteger", "MatMulInteger", [a], [b])
    one("MatMulInteger_inputs", "MatMulInteger", [a, b])
    for bits, level in ((4, 0), (4, 4), (8, 4)):
        packed = RANDOM.integers(0, 255, (1024, 32, 4 * bits)).astype(np.uint8)
        scales = (RANDOM.random(1024 * 32) * 0.02 + 0.001).astype(np.float32)
        for m in (1, 128):
            one(f"MatMulNBits_{bits}_{level}_{m}", "MatMulNBits", [array(m, 1024)], [packed, scales], domain=MS, K=1024,
                N=1024, bits=bits, block_size=32, accuracy_level=level)


def images():
    def conv(name, x, w, inputs=False, op="Conv", t="f32", **attributes):
        x, w, b = array(*x, t=t), weight(*w).astype(DTYPES[t]), array(w[0], t=t)
        if op == "ConvTranspose":
            b = array(w.shape[1] * attributes.get("group", 1), t=t)
        one(f"{op}_{name}", op, [x, w, b] if inputs else [x], [] if inputs else [w, b], **attributes)

    conv("3x3", (1, 64, 56, 56), (64, 64, 3, 3), pads=ONES)
    conv("3x3_inputs", (1, 64, 56, 56), (64, 64, 3, 3), inputs=True, pads=ONES)
    conv("3x3_f16", (1, 64, 56, 56), (64, 64, 3, 3), t="f16", pads=ONES)
    conv("3x3_stride3", (1, 64, 56, 56), (128, 64, 3, 3), pads=ONES, strides=[3, 3])
    conv("dilated", (1, 64, 56, 56), (64, 64, 3, 3), pads=[2] * 4, dilations=[2, 2])
    conv("1x7", (1, 128, 17, 17), (128, 128, 1, 7), pads=[0, 3, 0, 3])
    conv("groups2", (1, 96, 27, 27), (256, 48, 5, 5), pads=[2] * 4, group=2)
    conv("groups32", (1, 128, 56, 56), (128, 4, 3, 3), pads=ONES, group=32)
    conv("patch16", (1, 3, 224, 224), (768, 3, 16, 16), strides=[16, 16])
    conv("patch4", (1, 3, 224, 224), (96, 3, 4, 4), strides=[4, 4])
    conv("11x11", (1, 3, 224, 224), (64, 3, 11, 11), strides=[4, 4], pads=[2] * 4)
    conv("1d", (4, 128, 1000), (128, 128, 3), pads=[1, 1])
    conv("3d", (1, 16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6)
    conv("odd", (1, 67, 31, 37), (71, 67, 3, 3), pads=ONES)
    for k in (3, 5, 7):
        p = [k // 2] * 4
        for name, channels, size, more in (("", 64, 56, {}), ("_odd", 64, 57, {}), ("_small", 128, 14, {}),
                                           ("_stride", 64, 56, {"strides": [2, 2]})):
            conv(f"depthwise{k}{name}", (1, channels, size, size), (channels, 1, k, k), pads=p, group=channels, **more)
        x, w = {"x": array(1, 32, 28, 28)}, {"w": weight(32, 1, k, k), "v": weight(32, 1, k, k)}
        step = ("Conv", "x,w", "a", {"pads": p, "group": 32})
        several(f"depthwise{k}_residual", [step, ("Add", "a,x", "y0")], x, {"w": w["w"]})
        several(f"depthwise{k}_two", [step, ("Conv", "x,v", "b", {"pads": p, "group": 32}), ("Mul", "a,b", "y0")], x, w)
        several(f"depthwise{k}_pool", [step, ("AveragePool", "x", "b", {"kernel_shape": [k, k], "pads": p}),
                                       ("Add", "a,b", "y0")], x, {"w": w["w"]})
    conv("2x2", (1, 256, 28, 28), (256, 128, 2, 2), op="ConvTranspose", strides=[2, 2])
    conv("4x4", (1, 128, 28, 28), (128, 64, 4, 4), op="ConvTranspose", strides=[2, 2], pads=ONES)
    for op in ("MaxPool", "AveragePool"):
        for k, s, shape in ((3, 2, (1, 64, 112, 112)), (3, 1, (1, 64, 56, 56)), (5, 1, (1, 128, 40, 40)),
                            (13, 1, (1, 256, 20, 20)), (2, 2, (1, 64, 112, 112))):
            one(f"{op}_{k}_{s}", op, [array(*shape)], kernel_shape=[k, k], strides=[s, s],
                pads=[k // 2 if k % 2 else 0] * 4)
    one("GlobalAveragePool", "GlobalAveragePool", [array(8, 512, 7, 7)])
    q = [np.float32(0.02), np.uint8(128)]
    for name, x, w, more in (("3x3", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": ONES}),
                             ("depthwise", (1, 128, 56, 56), (128, 1, 3, 3), {"pads": ONES, "group": 128}),
                             ("1x1", (1, 256, 28, 28), (128, 256, 1, 1), {})):
        one(f"QLinearConv_{name}", "QLinearConv", [array(*x, t="u8")],
            [*q, array(*w, t="i8"), np.float32(0.01), np.int8(0), np.float32(0.05), np.uint8(120)], **more)


def recurrent():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for name, steps, batch, size, both in (("1", 50, 1, 128, False), ("8", 50, 8, 256, False),
                                               ("32", 20, 32, 512, False), ("both", 50, 4, 128, True)):
            d, rows = (2 if both else 1), gates * size
            one(f"{op}_{name}", op, [array(steps, batch, size)],
                [weight(d, rows, size), weight(d, rows, size), weight(d, 2 * rows)], outputs=2, hidden_size=size,
                direction="bidirectional" if both else "forward", **({"linear_before_reset": 1} if op == "GRU" else {}))


FOLDER = pathlib.Path(sys.argv[1])
FOLDER.mkdir(parents=True, exist_ok=True)
for make in (elementwise, folds, moves, products, images, recurrent):
    make()
print(f"{len(list(FOLDER.glob('*.onnx')))} models")
