#!/usr/bin/env python3
"""Records what ONNX Runtime, numpy and scipy make of single ops: ops.txt and ops.bin, which golden_test reads.

  record_ops.py [FOLDER]      writes into FOLDER, this one when not given

record_places.py, record_orders.py and record_quantised.py have the cases of ops with places, of orders, of quantisation
and of norms over several dimensions.

Needs numpy, scipy, onnx and onnxruntime, which neither a build nor a test does. ops.txt has cases one after the other:

  case NAME rtol R atol A
  dims 3,5;7;;3,7         of each Input in order and of the output; nothing between semicolons is a scalar
  graph in text form

and ops.bin the bytes of the inputs and of the output of each, little-endian. What is recorded is numpy's or scipy's
result in double, rounded once; ONNX Runtime, where it has the op for that dtype, must agree to 2e-5 of the largest
element, or nothing is written. Sizes are primes; elements include NaN, both infinities and both zeros, and extents
include 0. Cases are the same in every run.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import record_orders
import record_places
import record_quantised
import scipy.special
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as native

AGREE = 2e-5
DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int8": "i8", "int16": "i16", "int32": "i32",
          "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool"}
REFUSED = (native.Fail, native.InvalidArgument, native.InvalidGraph, native.NotImplemented, native.RuntimeException)

INF, NAN = np.inf, np.nan
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1e-20, -1e-20, 3.7, -3.7, 19, -19, 87.5, -87.5, 1e18, -1e18, INF, -INF,
                  NAN, 2.5, -2.5, 1.5, -1.5, 0.99999994, -0.99999994, 1.0000001, 7e-4, -7e-4, 0.3], np.float64)


class Archive:
    def __init__(self):
        self.text, self.bytes, self.checked, self.count = [], [], 0, 0

    def add(self, name, lines, leaves, expected, rtol=1e-6, atol=0.0, types=None, ours=None, pick=None):
        """`lines`: the ops, "Tan(%0)" or ("Tan(%0)", "f32[29]") where the type is not that of the result. `pick`: which
        of the results of the last, whose types it then has, is meant."""
        expected = np.asarray(expected)
        if ours is not None:
            self.checked += 1
            check(name, np.asarray(ours), expected)
        symbols = " sym S in 0..64" if types else ""
        text = [f"graph g{symbols} {{"]
        for at, (leaf, array) in enumerate(leaves.items()):
            text.append(f'  %{at} = Input() {{name = "{leaf}"}} : {types[leaf] if types else type_of(array)}')
        for at, line in enumerate(lines, len(leaves)):
            op, kind = line if isinstance(line, tuple) else (line, type_of(expected))
            last = at + 1 == len(leaves) + len(lines) and pick is not None
            text.append(f"  %{at}{':' + str(kind.count('[')) if last else ''} = {op} : {kind}")
        text += [f"  return %{len(leaves) + len(lines) - 1}{'' if pick is None else f'.{pick}'}", "}"]
        dims = ";".join(",".join(map(str, a.shape)) for a in [*leaves.values(), expected])
        self.text.append(f"case {name} rtol {rtol:g} atol {atol:g}\ndims {dims}\n" + "\n".join(text) + "\n")
        self.bytes += [np.ascontiguousarray(a).tobytes() for a in [*leaves.values(), expected]]
        self.count += 1


def type_of(array):
    return f"{DTYPES[array.dtype.name]}[{', '.join(map(str, array.shape))}]"


def check(name, ours, expected):
    if ours.shape != expected.shape:
        sys.exit(f"{name}: ONNX Runtime gives {ours.shape}, not {expected.shape}")
    a, b = ours.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (np.isnan(a) & np.isnan(b)) | (a == b)
    scale = np.maximum(np.abs(b), np.abs(b[finite]).max(initial=1e-3))
    with np.errstate(invalid="ignore"):
        close = finite & (np.abs(a - b) <= AGREE * scale)
    if not (same | close).all():
        bad = ~(same | close)
        sys.exit(f"{name}: ONNX Runtime gives {a[bad][:4]}, not {b[bad][:4]}")


def onnx_of(op, leaves, dtype, constants=None, nodes=None, **attributes):
    """What ONNX Runtime makes of the leaves, or None where it does not compute this."""
    constants = constants or {}
    names = [*leaves, *constants]
    graph = helper.make_graph(
        nodes or [helper.make_node(op, names, ["out"], **attributes)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in leaves.items()],
        [helper.make_tensor_value_info("out", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, leaves)[0]
    except REFUSED:
        return None


def attributes_text(attributes):
    def text(v):
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, tuple):
            return "<" + ", ".join(map(str, v)) + ">"
        return str(v)

    words = ", ".join(f"{k} = {text(v)}" for k, v in sorted(attributes.items()))
    return f" {{{words}}}" if words else ""


def wave(shape, seed=0, low=-2.0, high=2.0):
    """Numbers between low and high, none equal."""
    at = np.arange(int(np.prod(shape)), dtype=np.float64) + 17 * seed
    return (low + (high - low) * ((at * 0.6180339887498949 + 0.137) % 1.0)).reshape(shape)


def elementwise(archive):
    selu = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)
    sigmoid = scipy.special.expit
    rows = [
        # op, ONNX's name and attributes, attributes here, the function, rtol
        ("Tan", "Tan", {}, {}, np.tan, 1e-6), ("Asin", "Asin", {}, {}, np.arcsin, 1e-6),
        ("Acos", "Acos", {}, {}, np.arccos, 1e-6), ("Atan", "Atan", {}, {}, np.arctan, 1e-6),
        ("Sinh", "Sinh", {}, {}, np.sinh, 1e-6), ("Cosh", "Cosh", {}, {}, np.cosh, 1e-6),
        ("Asinh", "Asinh", {}, {}, np.arcsinh, 1e-6), ("Acosh", "Acosh", {}, {}, np.arccosh, 1e-6),
        ("Atanh", "Atanh", {}, {}, np.arctanh, 1e-6),
        ("Trunc", None, {}, {}, np.trunc, 0), ("Round", "Round", {}, {}, np.round, 0),
        ("StopGradient", "Identity", {}, {}, lambda x: x, 0),
        ("LeakyRelu", "LeakyRelu", {}, {}, lambda x: np.where(x < 0, 0.01 * x, x), 1e-6),
        ("LeakyRelu", "LeakyRelu", {"alpha": 0.3}, {"alpha": 0.3}, lambda x: np.where(x < 0, 0.3 * x, x), 1e-6),
        ("Selu", "Selu", {}, {}, lambda x: selu[0] * np.where(x < 0, selu[1] * np.expm1(x), x), 1e-6),
        ("Celu", "Celu", {}, {}, lambda x: np.where(x < 0, np.expm1(x), x), 1e-6),
        ("Celu", "Celu", {"alpha": 2.0}, {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x / 2), x), 1e-6),
        ("Elu", "Elu", {"alpha": 0.5}, {"alpha": 0.5}, lambda x: np.where(x < 0, 0.5 * np.expm1(x), x), 1e-6),
        ("HardSigmoid", "HardSigmoid", {}, {"alpha": 0.2}, lambda x: np.clip(0.2 * x + 0.5, 0, 1), 1e-6),
        ("ThresholdedRelu", None, {}, {}, lambda x: np.where(x <= 1, 0, x), 0),
        ("ThresholdedRelu", None, {}, {"alpha": 0.25}, lambda x: np.where(x <= 0.25, 0, x), 0),
        ("QuickGelu", None, {}, {}, lambda x: x * sigmoid(1.702 * x), 1.2e-5),
        ("IsNaN", "IsNaN", {}, {}, np.isnan, 0), ("IsInf", "IsInf", {}, {}, np.isinf, 0),
        ("IsInf", "IsInf", {"detect_negative": 0}, {"negative": False}, np.isposinf, 0),
        ("IsInf", "IsInf", {"detect_positive": 0}, {"positive": False}, np.isneginf, 0),
        ("IsInf", None, {}, {"positive": False, "negative": False}, lambda x: np.zeros(x.shape, bool), 0),
    ]
    for op, other, theirs, attributes, function, rtol in rows:
        for dtype in (np.float32, np.float64):
            for shape in ((29,), (0, 3)):
                x = EDGES.astype(dtype) if shape == (29,) else np.zeros(shape, dtype)
                with np.errstate(all="ignore"):
                    y = np.asarray(function(x.astype(np.float64)))
                    y = y if y.dtype == bool else y.astype(dtype)
                ours = onnx_of(other, {"x": x}, y.dtype, **theirs) if other and shape == (29,) else None
                # Of what ONNX Runtime's own functions make of the edges only the finite part is held against anyone.
                if ours is not None and y.dtype != bool:
                    ours = np.where(np.isfinite(ours) & np.isfinite(y), ours, y)
                scale = 1 if dtype == np.float32 else 2.0 ** -29
                archive.add(op, [f"{op}(%0){attributes_text(attributes)}"], {"x": x}, y, rtol * scale,
                            2e-7 * scale if op == "HardSigmoid" else 0, ours=ours)
    # Several operands, broadcast.
    f32 = lambda a: np.asarray(a, np.float32)
    x = f32(EDGES).reshape(29, 1)
    low, high = f32([-1, 0.25, 2, NAN, -INF]), f32([1, 0.25, -2, 1, 3])
    nan = np.isnan(x) | np.isnan(low) | np.isnan(high)
    y = np.where(nan, np.float32(NAN), np.minimum(np.maximum(x, low), high))
    archive.add("Clamp", ["Clamp(%0, %1, %2)"], {"x": x, "l": low, "h": high}, y, 0)
    for dtype in (np.int8, np.int32, np.uint64):
        values = np.array([0, 1, 7, 100, 55, 3, 127], dtype)
        archive.add("Clamp", ["Clamp(%0, %1, %2)"],
                    {"x": values, "l": np.asarray(3, dtype), "h": np.asarray(99, dtype)}, np.clip(values, 3, 99), 0,
                    ours=onnx_of("Clip", {"x": values}, dtype, {"l": dtype(3), "h": dtype(99)}))
    a, b = f32(wave((7, 5), 1)), f32(wave((5,), 2))
    c = -(a * b).astype(np.float32)
    archive.add("Fma", ["Fma(%0, %1, %2)"], {"a": a, "b": b, "c": c},
                (a.astype(np.float64) * b + c.astype(np.float64)).astype(np.float32), 1e-6)
    slope = f32([0.25, -1, 2])
    archive.add("PRelu", ["PRelu(%0, %1)"], {"x": x, "s": slope}, np.where(x < 0, x * slope, x).astype(np.float32))
    numbers = f32([5.5, -5.5, 0.0, -0.0, 7, -7, 1e10, INF, NAN, 3])
    divisors = f32([2, -2, 0.75, INF, 0]).reshape(5, 1)
    with np.errstate(all="ignore"):
        y = np.fmod(numbers.astype(np.float64), divisors.astype(np.float64)).astype(np.float32)
    archive.add("Fmod", ["Fmod(%0, %1)"], {"a": numbers, "b": divisors}, y, 0,
                ours=onnx_of("Mod", {"a": numbers, "b": divisors}, np.float32, fmod=1))
    for dtype in (np.int8, np.int32, np.int64, np.uint16):
        a = np.array([7, 8, 0, 100, 127, 1, 2], dtype)
        b = np.array([3, 3, 5, 7, 1, 1, 99], dtype)
        if np.issubdtype(dtype, np.signedinteger):
            a, b = a * np.array([1, -1, 1, -1, 1, -1, 1], dtype), b * np.array([1, 1, -1, -1, -1, 1, 1], dtype)
            a[-1] = np.iinfo(dtype).min
            b[-1] = -1
        with np.errstate(all="ignore"):
            y = np.fmod(a, b)
        archive.add("Fmod", ["Fmod(%0, %1)"], {"a": a, "b": b}, y, 0)
        zeros = np.zeros(7, dtype)
        archive.add("Fmod", ["Fmod(%0, %1)"], {"a": a, "b": zeros}, zeros, 0)
        archive.add("BitNot", ["BitNot(%0)"], {"x": a}, ~a, 0, ours=onnx_of("BitwiseNot", {"x": a}, dtype))
        for op in ("Round", "Trunc"):
            archive.add(op, [f"{op}(%0)"], {"x": a}, a, 0)


def reductions(archive):
    functions = {
        "ReduceL1": lambda x, k: np.abs(x).sum(**k), "ReduceL2": lambda x, k: np.sqrt((x * x).sum(**k)),
        "ReduceSumSquare": lambda x, k: (x * x).sum(**k), "ReduceLogSum": lambda x, k: np.log(x.sum(**k)),
        "ReduceLogSumExp": lambda x, k: scipy.special.logsumexp(x, **k) if x.size else np.log(np.exp(x).sum(**k)),
    }
    for op, function in functions.items():
        for shape, axes in (((3, 5, 7), [1]), ((3, 5, 7), [0, -1]), ((2, 67), [1]), ((31, 3), [0]), ((5,), [0]),
                            ((3, 0), [1]), ((0, 3), [1])):
            for keep in (False, True):
                for dtype in (np.float32, np.float64):
                    x = wave(shape, 3, 0.25 if op == "ReduceLogSum" else -2.0).astype(dtype)
                    k = {"axis": tuple(axes), "keepdims": keep}
                    with np.errstate(all="ignore"):
                        y = np.asarray(function(x.astype(np.float64), k), np.float64).astype(dtype)
                    ours = onnx_of(op, {"x": x}, dtype, {"axes": np.array(axes, np.int64)}, keepdims=int(keep))
                    text = f"{op}(%0){attributes_text({'axes': axes, 'keep_dim': keep})}"
                    archive.add(op, [text], {"x": x}, y, 2e-5 if dtype == np.float32 else 1e-12, 1e-12,
                                ours=ours if x.size else None)
        edges = np.array([[1, 2, NAN], [INF, 1, 2], [-INF, 1, 2], [-INF, -INF, -INF], [INF, -INF, 1], [80, 90, 100],
                          [-200, -201, -202]], np.float32)
        with np.errstate(all="ignore"):
            y = np.asarray(function(edges.astype(np.float64), {"axis": 1}), np.float64)
        if op == "ReduceLogSumExp":
            y[4] = INF
        archive.add(op, [f"{op}(%0){attributes_text({'axes': [1]})}"], {"x": edges}, y.astype(np.float32), 2e-5)
    for dtype in (np.int8, np.int32, np.uint16, np.int64):
        x = np.arange(-17, 18).astype(dtype).reshape(5, 7)
        for op, y in (("ReduceL1", np.abs(x).sum(axis=1, dtype=dtype)),
                      ("ReduceSumSquare", (x * x).sum(axis=1, dtype=dtype))):
            archive.add(op, [f"{op}(%0){attributes_text({'axes': [1]})}"], {"x": x}, y, 0)
    for shape, axis in (((5, 7), 1), ((5, 7), 0), ((2, 3, 37), -1), ((3, 17, 2), 1), ((1, 1), 0), ((0, 3), 1)):
        for dtype in (np.float32, np.float64):
            x = (3 * wave(shape, 5)).astype(dtype)
            wide = x.astype(np.float64)
            small = 1e-5 if dtype == np.float32 else 1e-12
            text = attributes_text({"axis": axis})
            ours = (lambda op: onnx_of(op, {"x": x}, dtype, axis=axis)) if x.size else lambda op: None
            archive.add("LogSoftmax", [f"LogSoftmax(%0){text}"], {"x": x},
                        scipy.special.log_softmax(wide, axis=axis).astype(dtype) if x.size else x, small, small,
                        ours=ours("LogSoftmax"))
            first = np.zeros(shape, dtype)
            if x.size:
                np.put_along_axis(first, np.expand_dims(x.argmax(axis), axis), 1, axis)
            archive.add("Hardmax", [f"Hardmax(%0){text}"], {"x": x}, first, 0, ours=ours("Hardmax"))
            for exclusive in (False, True):
                for reverse in (False, True):
                    turned = np.flip(wide, axis) if reverse else wide
                    y = np.cumprod(turned, axis)
                    if exclusive and x.size:
                        y = np.roll(y, 1, axis)
                        first_of = [slice(None)] * y.ndim
                        first_of[axis] = 0
                        y[tuple(first_of)] = 1
                    y = np.flip(y, axis) if reverse else y
                    words = attributes_text({"axis": axis, "exclusive": exclusive, "reverse": reverse})
                    archive.add("CumProd", [f"CumProd(%0){words}"], {"x": x}, y.astype(dtype), 2 * small)
    lines = np.array([[NAN, 1, 2, 3, 0], [1, 1, 1, 1, 1], [-INF] * 5, [3, INF, NAN, INF, 1], [0, 5, 5, -1, 5]],
                     np.float32)
    hard = np.zeros((5, 5), np.float32)
    hard[range(5), [0, 0, 0, 2, 1]] = 1
    archive.add("Hardmax", ["Hardmax(%0)"], {"x": lines}, hard, 0)
    with np.errstate(all="ignore"):
        archive.add("LogSoftmax", ["LogSoftmax(%0)"], {"x": lines},
                    np.where([[True], [False], [True], [True], [False]], NAN,
                             scipy.special.log_softmax(lines.astype(np.float64), axis=1)).astype(np.float32), 1e-5)
        archive.add("CumProd", ["CumProd(%0) {axis = 1}"], {"x": lines},
                    np.cumprod(lines.astype(np.float64), 1).astype(np.float32), 2e-5)
    wrapping = np.array([[3, 5, 7, 11, 13, 17, 19], [-1, 2, -3, 4, -5, 6, -7]], np.int16)
    archive.add("CumProd", ["CumProd(%0) {axis = 1}"], {"x": wrapping}, np.cumprod(wrapping, 1, dtype=np.int16), 0)


def norms(archive):
    f32 = np.float32
    node = helper.make_node

    def channels(seed, c):
        return {"g": wave((c,), seed, 0.5, 1.5).astype(f32), "b": wave((c,), seed + 1).astype(f32)}

    def normal(x, axes, eps):
        wide = x.astype(np.float64)
        centred = wide - wide.mean(axis=axes, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + eps)

    def by_channel(v, rank):
        return v.astype(np.float64).reshape([-1] + [1] * (rank - 2))

    for shape, groups in (((2, 6, 5, 7), 3), ((3, 6), 2), ((1, 15, 11), 5), ((2, 4, 3, 2, 5), 1), ((0, 6, 5), 3)):
        for offset in (0, 1e4):
            x = (wave(shape, 7) + offset).astype(f32)
            leaves = {"x": x, **channels(8, shape[1])}
            end = lambda n: (n * by_channel(leaves["g"], len(shape)) + by_channel(leaves["b"], len(shape))).astype(f32)
            atol = 2e-5 if offset == 0 else 2e-3
            ask = lambda *a, **k: onnx_of(*a, **k) if x.size and offset == 0 and len(shape) > 2 else None
            grouped = x.reshape(shape[0], groups, -1) if x.size else x
            n = normal(grouped, (2,), 1e-5).reshape(shape) if x.size else x
            text = f"GroupNorm(%0, %1, %2){attributes_text({'groups': groups})}"
            archive.add("GroupNorm", [text], leaves, end(n), 2e-5, atol,
                        ours=ask("GroupNormalization", leaves, f32, num_groups=groups, epsilon=1e-5))
            if len(shape) > 2:
                n = normal(x, tuple(range(2, len(shape))), 1e-5) if x.size else x
                archive.add("InstanceNorm", ["InstanceNorm(%0, %1, %2)"], leaves, end(n), 2e-5, atol,
                            ours=ask("InstanceNormalization", leaves, f32, epsilon=1e-5))
            n = normal(x, (1,), 1e-6) if x.size else x
            last = [0, *range(2, len(shape)), 1]
            chain = [node("Transpose", ["x"], ["t"], perm=last),
                     node("LayerNormalization", ["t", "g", "b"], ["n"], axis=-1, epsilon=1e-6),
                     node("Transpose", ["n"], ["out"], perm=[int(i) for i in np.argsort(last)])]
            archive.add("LayerNorm2d", ["LayerNorm2d(%0, %1, %2) {eps = 1e-06}"], leaves, end(n), 2e-5, atol,
                        ours=ask("", leaves, f32, nodes=chain))
        leaves.update({"m": wave((shape[1],), 9).astype(f32), "v": wave((shape[1],), 10, 0.1, 3).astype(f32)})
        wide = {k: by_channel(v, len(shape)) for k, v in leaves.items() if k != "x"}
        leaves["x"] = x = wave(shape, 11).astype(f32)
        y = (x.astype(np.float64) - wide["m"]) / np.sqrt(wide["v"] + 1e-3) * wide["g"] + wide["b"]
        archive.add("BatchNormInference", ["BatchNormInference(%0, %1, %2, %3, %4) {eps = 0.001}"], leaves,
                    y.astype(f32), 2e-6, 5e-6,
                    ours=onnx_of("BatchNormalization", leaves, f32, epsilon=1e-3) if x.size else None)
    for shape in ((2, 3, 5, 7), (17, 11), (1, 1), (3, 0, 5)):
        x = wave(shape, 12).astype(f32)
        y = x.repeat(2, axis=-1).repeat(2, axis=-2)
        ours = onnx_of("Resize", {"x": x}, f32, {"roi": np.zeros(0, f32), "s": np.array([1, 1, 2, 2], f32)},
                       mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor") \
            if len(shape) == 4 else None
        archive.add("ResizeNearest2x", ["ResizeNearest2x(%0)"], {"x": x}, y, 0, ours=ours)
    for m, k, n, r in ((5, 7, 11, 2), (1, 67, 33, 3), (13, 3, 2, 1), (2, 5, 3, 0)):
        shapes = {"x": (m, k), "w": (k, n), "a": (k, r), "b": (r, n)}
        leaves = {name: wave(shape, 13 + at).astype(f32) for at, (name, shape) in enumerate(shapes.items())}
        x, w, a, b = (v.astype(np.float64) for v in leaves.values())
        chain = [node("MatMul", ["x", "a"], ["xa"]), node("MatMul", ["xa", "b"], ["low"]),
                 node("Mul", ["low", "s"], ["sl"]), node("MatMul", ["x", "w"], ["xw"]),
                 node("Add", ["xw", "sl"], ["out"])]
        archive.add("LoraMatMul", ["LoraMatMul(%0, %1, %2, %3) {scale = 0.5}"], leaves,
                    (x @ w + 0.5 * ((x @ a) @ b)).astype(f32), 4e-6, 1e-4,
                    ours=onnx_of("", leaves, f32, {"s": f32(0.5)}, chain) if r else None)
    leaves = {"x": wave((3, 5, 7), 17).astype(f32), "g": wave((3, 1, 7), 18).astype(f32),
              "y": wave((3, 5, 7), 19).astype(f32)}
    x, g, y = (v.astype(np.float64) for v in leaves.values())
    archive.add("GatedResidual", ["GatedResidual(%0, %1, %2)"], leaves, (x + g * y).astype(f32), 1e-6, 1e-6)
    leaves = {"x": wave((3, 5, 11), 20).astype(f32), "s": wave((3, 1, 11), 21).astype(f32),
              "h": wave((11,), 22).astype(f32)}
    x, s, h = (v.astype(np.float64) for v in leaves.values())
    chain = [node("LayerNormalization", ["x", "one"], ["n"], axis=-1, epsilon=1e-5), node("Mul", ["n", "s"], ["ns"]),
             node("Add", ["n", "ns"], ["m"]), node("Add", ["m", "h"], ["out"])]
    archive.add("AdaLayerNorm", ["AdaLayerNorm(%0, %1, %2)"], leaves, (normal(x, (2,), 1e-5) * (1 + s) + h).astype(f32),
                2e-5, 2e-5, ours=onnx_of("", leaves, f32, {"one": np.ones(11, f32)}, chain))


def moves(archive):
    """Ops that move elements: exact, of any dtype."""
    def number(shape, dtype, seed=0):
        if dtype == bool:
            return wave(shape, seed) > 0
        if np.issubdtype(dtype, np.integer):
            return (wave(shape, seed) * 60).astype(dtype) if np.issubdtype(dtype, np.signedinteger) else \
                (wave(shape, seed, 0, 250)).astype(dtype)
        x = wave(shape, seed).astype(dtype)
        if x.size > 3:
            x.flat[:3] = [NAN, INF, -0.0]
        return x

    for dtype in (np.float32, np.float64, np.int8, np.int64, bool):
        for shape, repeats in (((3, 5), [2, 3]), ((7,), [1]), ((1, 7, 2), [5, 1, 3]), ((3,), [0]), ((0, 3), [2, 2])):
            x = number(shape, dtype, 1)
            archive.add("Tile", [f"Tile(%0){attributes_text({'repeats': repeats})}"], {"x": x}, np.tile(x, repeats), 0,
                        ours=onnx_of("Tile", {"x": x}, dtype, {"r": np.array(repeats, np.int64)}) if x.size else None)
        for shape in ((5, 7), (2, 7, 5), (3, 3), (0, 4)):
            for k in (0, 2, -3, 17, -17):
                for upper in (True, False):
                    x = number(shape, dtype, 2)
                    archive.add("Trilu", [f"Trilu(%0){attributes_text({'upper': upper, 'k': k})}"], {"x": x},
                                (np.triu if upper else np.tril)(x, k), 0,
                                ours=onnx_of("Trilu", {"x": x}, dtype, {"k": np.array(k, np.int64)}, upper=int(upper))
                                if x.size else None)
        for index in (np.int32, np.int64):
            at = np.array([[0, 6, -1, 2, -7], [3, 5, 4, -2, 1]], index)
            for axis in (-1, 0, 1):
                on, off = np.asarray(3 if dtype != bool else True).astype(dtype), np.asarray(0).astype(dtype)
                y = np.where(np.expand_dims(at % 7, axis) == np.arange(7).reshape(
                    [7 if d == axis % 3 else 1 for d in range(3)]), on, off)
                archive.add("OneHot", [f"OneHot(%0, %1, %2){attributes_text({'depth': 7, 'axis': axis})}"],
                            {"i": at, "on": on, "off": off}, y, 0,
                            ours=onnx_of("OneHot", {"i": at}, dtype, {"d": np.array(7, index),
                                                                      "v": np.array([off, on], dtype)}, axis=axis))
            far = np.array([0, 7, -8, 1 << 30, 6], index)
            archive.add("OneHot", ["OneHot(%0, %1, %2) {depth = 7}"], {"i": far, "on": on, "off": off},
                        np.where(far[:, None] == np.arange(7), on, off), 0)
            x = number((5, 7), dtype, 3)
            for axis, shape in ((0, (3, 7)), (1, (5, 11)), (-1, (2, 3)), (0, (1, 1))):
                size = x.shape[axis]
                at = ((np.arange(np.prod(shape)) * 7 + 3) % (2 * size) - size).astype(index).reshape(shape)
                part = x[tuple(slice(None) if d == axis % 2 else slice(shape[d]) for d in range(2))]
                archive.add("GatherElements", [f"GatherElements(%0, %1){attributes_text({'axis': axis})}"],
                            {"x": x, "i": at}, np.take_along_axis(part, at % size, axis), 0,
                            ours=onnx_of("GatherElements", {"x": x, "i": at}, dtype, axis=axis))
            far = np.array([[0, 100, -100, 4, -5, 5, -6]], index)
            archive.add("GatherElements", ["GatherElements(%0, %1) {axis = 0}"], {"x": x, "i": far},
                        np.take_along_axis(x, np.array([[0, 4, 0, 4, 0, 4, 0]]), 0), 0)
            x = number((3, 5, 2), dtype, 4)
            at = np.array([[0, 1], [2, -1], [-3, 4], [1, 1], [2, 0], [0, 4], [-1, -5]], index)
            archive.add("GatherND", ["GatherND(%0, %1)"], {"x": x, "i": at}, x[at[:, 0], at[:, 1]], 0,
                        ours=onnx_of("GatherND", {"x": x, "i": at.astype(np.int64)}, dtype))
            deep = np.concatenate([at, at[:, :1] % 2], 1)
            archive.add("GatherND", ["GatherND(%0, %1)"], {"x": x, "i": deep}, x[deep[:, 0], deep[:, 1], deep[:, 2]], 0,
                        ours=onnx_of("GatherND", {"x": x, "i": deep.astype(np.int64)}, dtype))
            batch = np.array([[[1], [-1]], [[0], [2]], [[4], [-5]]], index)
            archive.add("GatherND", ["GatherND(%0, %1) {batch_dims = 1}"], {"x": x, "i": batch},
                        np.stack([x[b][batch[b, :, 0]] for b in range(3)]), 0,
                        ours=onnx_of("GatherND", {"x": x, "i": batch.astype(np.int64)}, dtype, batch_dims=1))
            far = np.array([[-9, 9], [9, -9], [1, 1]], index)
            archive.add("GatherND", ["GatherND(%0, %1)"], {"x": x, "i": far}, x[[0, 2, 1], [4, 0, 1]], 0)
            x = number((5, 11), dtype, 5)
            written = "DynamicUpdateSlice(%0, %1, %2)"
            for start in ((0, 0), (1, 3), (-4, 2), (100, -1), (2, 100)):
                at = np.array(start, index)
                r, c = np.clip(start[0], 0, 2), np.clip(start[1], 0, 4)
                archive.add("DynamicSlice", ["DynamicSlice(%0, %1) {sizes = <3, 7>}"], {"x": x, "at": at},
                            x[r:r + 3, c:c + 7], 0)
                part = number((3, 7), dtype, 6)
                y = x.copy()
                y[r:r + 3, c:c + 7] = part
                archive.add("DynamicUpdateSlice", [written], {"x": x, "u": part, "at": at}, y, 0)
                rows = number((2, 11), dtype, 7)
                r = np.clip(start[0], 0, 3)
                y = x.copy()
                y[r:r + 2] = rows
                archive.add("DynamicUpdateSlice", [written], {"x": x, "u": rows, "at": at}, y, 0)
            nothing = np.zeros((0, 11), dtype)
            archive.add("DynamicUpdateSlice", [written],
                        {"x": x, "u": nothing, "at": np.array([3, 1], index)}, x, 0)
            archive.add("DynamicSlice", ["DynamicSlice(%0, %1) {sizes = <5, 0>}"],
                        {"x": x, "at": np.array([3, 1], index)}, x[:, :0], 0)
    for name, dtype in (("i32", np.int32), ("i64", np.int64), ("f32", np.float32), ("f64", np.float64)):
        for shape, axis in (((7,), 0), ((3, 5), 1), ((3, 5), -2), ((2, 3, 5), 1), ((3, 0), 0)):
            at = np.arange(shape[axis], dtype=dtype).reshape([-1 if d == axis % len(shape) else 1
                                                              for d in range(len(shape))])
            archive.add("Iota", [f"Iota(){attributes_text({'shape': shape, 'axis': axis, 'dtype': name})}"], {},
                        np.broadcast_to(at, shape).copy(), 0)
    # Of symbols, in a graph that has them.
    x = wave((17, 3), 8).astype(np.float32)
    archive.add("Size", [("Size() {extent = <3 * S + 1>}", "i64[]"), ("Cast(%1) {to = f32}", "f32[]"),
                         ("Iota() {axis = 0, dtype = f32, shape = <S, 3>}", "f32[S, 3]"), ("Mul(%3, %2)", "f32[S, 3]"),
                         ("Add(%0, %4)", "f32[S, 3]")],
                {"x": x}, x + np.arange(17, dtype=np.float32)[:, None] * np.float32(52), 1e-6, types={"x": "f32[S, 3]"})
    for rows in (5, 0):
        x = wave((rows, 3), 9).astype(np.float32)
        archive.add("Tile", [("Tile(%0) {repeats = [3, 2]}", "f32[3 * S, 6]")], {"x": x}, np.tile(x, (3, 2)), 0,
                    types={"x": "f32[S, 3]"})
    x = wave((17, 3), 8).astype(np.float32)
    archive.add("Trilu", [("Trilu(%0) {upper = false, k = 1}", "f32[S, 3]"),
                          ("Tile(%1) {repeats = [2, 2]}", "f32[2 * S, 6]"), ("ResizeNearest2x(%2)", "f32[4 * S, 12]")],
                {"x": x}, np.tile(np.tril(x, 1), (2, 2)).repeat(2, 0).repeat(2, 1), 0, types={"x": "f32[S, 3]"})


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Archive()
    for family in (elementwise, reductions, norms, moves):
        family(archive)
    for other in (record_places, record_orders, record_quantised):
        other.record(archive, sys.modules[__name__])
    (folder / "ops.txt").write_text("".join(archive.text))
    (folder / "ops.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases, {archive.checked} of them by ONNX Runtime too")


if __name__ == "__main__":
    main()
