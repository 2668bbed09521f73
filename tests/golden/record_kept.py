#!/usr/bin/env python3
"""Records ops whose results have a size that data decide: kept.txt and kept.bin, which golden_test reads.

  record_kept.py [FOLDER]     writes into FOLDER, this one when not given

What numpy makes of NonZero, Compress and Unique, and ONNX Runtime of NonMaxSuppression, is what comes first; zeros and
the count follow. And the indices that ONNX Runtime's MaxPool gives. Needs what record_ops.py needs, which says how the
files are written.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from record_orders import values
from record_sequence import Sequences

DTYPES = (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.uint64)


def kept(made, dims):
    """In zeros of those dims, and how many rows (of the last dimension, for NonZero) there are."""
    whole = np.zeros(dims, made.dtype)
    whole[tuple(slice(0, n) for n in made.shape)] = made
    return whole


def non_zero(archive):
    for turn, shape in enumerate([(37,), (3, 5, 7), (2, 131), (1, 1), (0, 3), (397,), (2, 3, 5, 2)]):
        for dtype in [DTYPES[(turn * 3 + n) % len(DTYPES)] for n in range(3)] + [bool]:
            x = values(shape, dtype, turn)
            if x.dtype.kind != "b":
                x[np.abs(x) < 5] = 0
            made = np.stack(np.nonzero(x)).astype(np.int64)
            expected = [kept(made, (len(shape), x.size)), np.int64(made.shape[1])]
            archive.results("NonZero", "NonZero", {"x": x}, expected, 0)


def compress(archive):
    rows = [((37,), 0), ((3, 17, 5), 1), ((17, 3), 0), ((3, 131), -1), ((5, 0), 0), ((0, 3), 0), ((1, 7), 0)]
    for turn, (shape, axis) in enumerate(rows):
        for dtype in [DTYPES[(turn * 3 + n) % len(DTYPES)] for n in range(2)]:
            x = values(shape, dtype, turn)
            for share in (2, 7):
                condition = (np.arange(shape[axis]) * 5 + turn) % share == 0
                made = np.compress(condition, x, axis)
                expected = [kept(made, shape), np.int64(condition.sum())]
                archive.results("Compress", "Compress", {"x": x, "condition": condition}, expected, 0, axis=axis)


def unique(archive):
    for turn, n in enumerate([1, 7, 37, 131, 397, 1009]):
        for dtype in DTYPES:
            x = values((n,), dtype, turn)
            # numpy collapses NaNs, but for the place of the first and how many there are.
            y, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
            expected = [kept(y, (n,)), kept(first.astype(np.int64), (n,)), inverse.astype(np.int64).reshape(n),
                        kept(counts.astype(np.int64), (n,)), np.int64(len(y))]
            archive.results("Unique", "Unique", {"x": x}, expected, 0)


def boxes_of(shape, seed, center):
    rng = np.random.default_rng(seed)
    images, count = shape
    middle, size = rng.random((images, count, 2)), 0.05 + rng.random((images, count, 2)) * 0.5
    if center:
        return np.concatenate([middle, size], -1).astype(np.float32)
    a, b = middle - size / 2, middle + size / 2
    turned = rng.random((images, count, 1)) < 0.3  # any two corners that lie across
    return np.where(turned, np.concatenate([b, a], -1), np.concatenate([a, b], -1)).astype(np.float32)


def theirs(boxes, scores, most, iou, score, center):
    names = ["boxes", "scores", "most", "iou", "score"]
    arrays = [boxes, scores, np.array([most], np.int64), np.array([iou], np.float32), np.array([score], np.float32)]
    node = helper.make_node("NonMaxSuppression", names, ["out"], center_point_box=int(center))
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
              for n, a in zip(names, arrays)]
    output = [helper.make_tensor_value_info("out", onnx.TensorProto.INT64, None)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, output),
                              opset_imports=[helper.make_opsetid("", 11)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays)))[0]


def non_max_suppression(archive):
    rows = [(1, 1, 7, 3), (2, 3, 17, 5), (1, 2, 61, 20), (3, 1, 5, 11), (1, 1, 131, 40), (2, 2, 13, 0)]
    for turn, (images, classes, count, most) in enumerate(rows):
        for center in (False, True):
            for iou, score in ((0.5, -1e30), (0.1, 0.4), (0.0, 0.2)):
                boxes = boxes_of((images, count), turn, center)
                boxes[:, 1, 2:] = 0 if center else boxes[:, 1, :2]  # of no area: it covers nothing, itself neither
                scores = np.random.default_rng(turn + 100).random((images, classes, count)).astype(np.float32)
                made = theirs(boxes, scores, most, iou, score, center)
                expected = [kept(made.astype(np.int64), (images * classes * most, 3)), np.int64(len(made))]
                archive.checked += 1
                leaves = {"boxes": boxes, "scores": scores}
                archive.results("NonMaxSuppression", "NonMaxSuppression", leaves, expected, 0, most=most,
                                iou_threshold=iou, score_threshold=float(np.float32(score)), center=center)


def max_pool_indices(archive):
    rows = [((2, 3, 9), [3], [1], [0, 0]), ((1, 2, 7, 5), [3, 2], [2, 2], [1, 1, 1, 0]),
            ((2, 3, 13, 11), [2, 3], [1, 2], [0, 1, 1, 1]), ((1, 2, 5, 7, 6), [2, 2, 3], [2, 1, 2], [0] * 6)]
    for turn, (shape, kernel, strides, pads) in enumerate(rows):
        for ceil in (False, True):
            x = np.round(np.random.default_rng(turn).standard_normal(shape) * 3).astype(np.float32)  # with ties
            if turn == 1:
                x[0, 0, :3, :3] = -np.inf  # padding is no element
            node = helper.make_node("MaxPool", ["x"], ["y", "out"], kernel_shape=kernel, strides=strides, pads=pads,
                                    ceil_mode=int(ceil))
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
                                      [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
                                       helper.make_tensor_value_info("out", onnx.TensorProto.INT64, None)])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=10)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            pooled, indices = session.run(None, {"x": x})
            # Where all of a window is -inf it names no element of x; the first of the window is meant.
            lost = np.isinf(pooled)
            assert np.array_equal(x.reshape(-1)[indices][~lost], pooled[~lost])
            numbers = np.arange(x.size).reshape(shape)
            for at in zip(*np.nonzero(lost)):
                begin = [at[2 + d] * strides[d] - pads[d] for d in range(len(kernel))]
                window = tuple(slice(max(0, b), b + k) for b, k in zip(begin, kernel))
                indices[at] = numbers[at[:2] + window].flat[0]
            archive.checked += 1
            archive.results("MaxPoolIndices", "MaxPoolIndices", {"x": x}, [indices], 0, kernel=kernel, strides=strides,
                            pads=pads, ceil=ceil)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    for family in (non_zero, compress, unique, non_max_suppression, max_pool_indices):
        family(archive)
    (folder / "kept.txt").write_text("".join(archive.text))
    (folder / "kept.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases, {archive.checked} of them by another system")


if __name__ == "__main__":
    main()
