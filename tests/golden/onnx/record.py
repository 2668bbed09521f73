#!/usr/bin/env python3
"""Records what ONNX Runtime computes, without optimisation, for ops that ONNX's own test data (opset 17) has not:
their forms of later opsets, and those of com.microsoft. Needs onnx and onnxruntime.

  record.py cases.tar.xz      a folder for each case: model.onnx, test_data_set_0/input_0.pb, output_0.pb ..
"""

import io
import sys
import tarfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(7)
MS = "com.microsoft"
CASES = []


def f32(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def integers(*shape, low=0, high=8, dtype=np.int64):
    return RANDOM.integers(low, high, shape).astype(dtype)


def case(name, op, inputs, outputs=1, opset=22, domain="", constants=(), symbols=None, **attributes):
    """`inputs`: arrays, or None for one that is absent; those whose number is in `constants` are initializers.
    `symbols`: by input, names of dimensions. `outputs`: how many, or names, "" for one that is not wanted."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    node = helper.make_node(op, names, results, name=name, domain=domain, **attributes)
    graph([node], name, {n: x for n, x in zip(names, inputs) if n}, [r for r in results if r], opset,
          {f"x{i}" for i in constants}, symbols or {})


def graph(nodes, name, values, results, opset, constants=(), symbols=None, functions=()):
    symbols = symbols or {}
    values = {n: np.asarray(x) for n, x in values.items()}
    given = {n: x for n, x in values.items() if n not in constants}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), symbols.get(n, x.shape))
             for n, x in given.items()]
    made = helper.make_graph(nodes, name, infos, [onnx.ValueInfoProto(name=r) for r in results],
                             [numpy_helper.from_array(values[n], n) for n in values if n in constants])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    if functions:
        imports.append(helper.make_opsetid("local", 1))
    model = helper.make_model(made, opset_imports=imports, ir_version=10, functions=list(functions))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    outputs = session.run(results, given)
    # Types of results, as exporters say them.
    del model.graph.output[:]
    for r, y in zip(results, outputs):
        model.graph.output.append(helper.make_tensor_value_info(r, helper.np_dtype_to_tensor_dtype(y.dtype), None))
    CASES.append((name, model, given, outputs))


def elementwise():
    x = f32(3, 5)
    case("gelu_20", "Gelu", [x])
    case("gelu_tanh_20", "Gelu", [x], approximate="tanh")
    case("mish_18", "Mish", [x])
    case("hard_swish_14", "HardSwish", [x])
    case("isinf_20", "IsInf", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], detect_negative=0)
    case("bitwise_and_18", "BitwiseAnd", [integers(3, 4, dtype=np.int32), integers(4, dtype=np.int32)])
    case("bitwise_not_18", "BitwiseNot", [integers(3, 4, dtype=np.int32)])
    case("bitwise_xor_18", "BitwiseXor", [integers(3, 4, dtype=np.uint8), integers(4, dtype=np.uint8)])
    case("pow_15", "Pow", [f32(3, low=0.5, high=2), np.array([2, 3, -1], np.int64)])
    case("clip_13", "Clip", [x, np.float32(-0.5), np.float32(0.25)])
    case("clip_int_13", "Clip", [integers(9, low=-9, high=9, dtype=np.int64), None, np.int64(3)])
    case("cast_19", "Cast", [f32(4, low=-300, high=300)], to=TensorProto.INT16)
    case("where_16", "Where", [x > 0, integers(3, 5), integers(5)])
    case("equal_19", "Equal", [integers(3, 4), integers(4)])
    case("mod_13", "Mod", [integers(8, low=-9, high=9), np.array([3, -3, 4, -4, 5, -5, 2, -2])])
    case("fmod_13", "Mod", [f32(8, low=-9, high=9), f32(8, low=1, high=3)], fmod=1)
    case("sum_13", "Sum", [f32(3, 1), f32(4), f32(1, 4)])
    case("prelu_16", "PRelu", [x, f32(5)])


def shapes():
    x = f32(3, 4, 5)
    case("split_18", "Split", [f32(7, 2)], outputs=3, num_outputs=3, axis=0)
    case("split_sizes_18", "Split", [x, np.array([1, 3])], outputs=2, axis=1, constants=[1])
    case("pad_axes_18", "Pad", [x, np.array([1, 2, 0, 1]), np.float32(2), np.array([0, 2])], constants=[1, 3])
    case("pad_edge_19", "Pad", [x, np.array([0, 1, 2, 0, 0, 1])], mode="edge", constants=[1])
    case("pad_wrap_19", "Pad", [x, np.array([0, 1, 2, 0, 2, 1])], mode="wrap", constants=[1])
    case("pad_cut_13", "Pad", [x, np.array([0, -1, 1, 0, 0, -2])], constants=[1])
    case("slice_symbol_13", "Slice", [x, np.array([-3]), np.array([2**62]), np.array([1])], constants=[1, 2, 3],
         symbols={"x0": ["A", "B", 5]})
    case("slice_back_13", "Slice", [x, np.array([-1, 4]), np.array([-2**62, 0]), np.array([0, 2]), np.array([-1, -2])],
         constants=[1, 2, 3, 4])
    case("squeeze_symbol_13", "Squeeze", [f32(1, 4, 1), np.array([0, 2])], constants=[1], symbols={"x0": [1, "N", 1]})
    case("expand_symbol_13", "Expand", [f32(3, 1), np.array([2, 1, 4])], constants=[1], symbols={"x0": ["N", 1]})
    case("tile_13", "Tile", [x, np.array([2, 1, 3])], constants=[1])
    case("shape_19", "Shape", [x], start=1, end=-1, symbols={"x0": ["A", "B", "C"]})
    case("range_11", "Range", [np.float32(1), np.float32(5), np.float32(0.5)], constants=[0, 1, 2])
    case("center_crop_pad_18", "CenterCropPad", [x, np.array([6, 3, 2])], constants=[1])
    case("trilu_14", "Trilu", [f32(2, 4, 5), np.array(1)], upper=0, constants=[1])
    case("center_crop_pad_reshape", "Reshape", [x, np.array([0, -1])], constants=[1], symbols={"x0": ["N", 4, 5]})
    case("depth_to_space_13", "DepthToSpace", [f32(1, 8, 2, 3)], blocksize=2, mode="CRD")
    case("one_hot_11", "OneHot", [integers(2, 3, low=-5, high=5), np.array(5), np.array([0.5, 2], np.float32)],
         constants=[1], axis=1)


def gathers():
    x = f32(4, 5)
    case("gather_elements_13", "GatherElements", [x, integers(2, 5, low=-4, high=4)], axis=0)
    case("gather_nd_13", "GatherND", [f32(2, 3, 4), integers(2, 2, 1, high=3)], batch_dims=1)
    for reduction in ("none", "add", "mul", "max", "min"):
        case(f"scatter_elements_{reduction}_18", "ScatterElements",
             [x, np.array([[0, 2, 1, 3, 0], [1, 0, 3, 2, 2]]), f32(2, 5)], axis=0, reduction=reduction)
        case(f"scatter_nd_{reduction}_18", "ScatterND", [x, np.array([[1], [3]]), f32(2, 5)], reduction=reduction)
    case("topk_11", "TopK", [f32(3, 9), np.array([4])], outputs=2, largest=0, constants=[1])
    case("nonzero_13", "NonZero", [(f32(3, 4) > 0).astype(np.float32)])
    case("unique_11", "Unique", [integers(12)], outputs=4, sorted=0)
    case("compress_11", "Compress", [x, np.array([True, False, True, True])], axis=0)
    boxes = np.sort(f32(2, 6, 2, 2, low=0), axis=2).reshape(2, 6, 4)
    case("nms_11", "NonMaxSuppression", [boxes, f32(2, 3, 6, low=0), np.array([2]), np.array([0.3], np.float32),
                                         np.array([0.2], np.float32)], constants=[2, 3, 4])


def reductions():
    x = f32(3, 4, 5)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceLogSumExp", "ReduceSumSquare"):
        case(f"{op.lower()}_18", op, [x, np.array([0, -1])], keepdims=0, constants=[1])
        case(f"{op.lower()}_all_18", op, [x])
    case("reduce_noop_18", "ReduceSum", [x, np.array([], np.int64)], noop_with_empty_axes=1, constants=[1])
    case("reduce_max_bool_20", "ReduceMax", [x > 0.7, np.array([1])], constants=[1])
    case("argmax_13", "ArgMax", [x], axis=-1, select_last_index=1)
    case("cumsum_14", "CumSum", [x, np.array(1)], exclusive=1, reverse=1, constants=[1])
    case("softmax_13", "Softmax", [x], axis=1)
    case("softmax_11", "Softmax", [x], axis=1, opset=11)
    case("logsoftmax_symbol_13", "LogSoftmax", [x], axis=-1, symbols={"x0": ["A", "B", 5]})


def products():
    case("matmul_13", "MatMul", [f32(2, 1, 3, 4), f32(3, 4, 5)], symbols={"x0": ["A", 1, "B", 4]})
    case("matmul_vector_13", "MatMul", [f32(4), f32(3, 4, 5)])
    case("gemm_13", "Gemm", [f32(4, 3), f32(5, 4), f32(5)], transA=1, transB=1, alpha=0.5, beta=2.0)
    for equation, shapes_ in (("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
                              ("...ij,...jk->...ik", [(2, 1, 3, 4), (3, 4, 5)]), ("ijk->kji", [(2, 3, 4)]),
                              ("ij->", [(3, 4)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)])):
        if "..." in equation:
            shapes_ = [(2, 3, 4), (2, 4, 5)]
        case(f"einsum_{len(CASES)}", "Einsum", [f32(*s) for s in shapes_], equation=equation)
    case("conv_same_22", "Conv", [f32(2, 4, 9, 8), f32(6, 2, 3, 3), f32(6)], auto_pad="SAME_UPPER", strides=[2, 3],
         group=2, constants=[1, 2])
    case("conv_1d_22", "Conv", [f32(1, 3, 11), f32(4, 3, 3)], dilations=[2], pads=[1, 2], constants=[1],
         symbols={"x0": ["N", 3, "T"]})
    case("conv_transpose_22", "ConvTranspose", [f32(1, 3, 4, 5), f32(3, 2, 3, 3)], strides=[2, 2], pads=[1, 0, 0, 1],
         output_padding=[1, 0], constants=[1])
    case("average_pool_19", "AveragePool", [f32(1, 2, 9, 9)], kernel_shape=[3, 3], dilations=[2, 2], strides=[2, 2],
         ceil_mode=0)
    case("max_pool_12", "MaxPool", [f32(1, 2, 8, 8)], outputs=2, kernel_shape=[3, 2], pads=[1, 0, 1, 1],
         strides=[2, 2])
    case("lp_pool_18", "LpPool", [f32(1, 2, 8, 8)], kernel_shape=[2, 2], strides=[2, 2], p=2)


def norms():
    case("layer_norm_17", "LayerNormalization", [f32(2, 3, 4), f32(4), f32(4)], symbols={"x0": ["B", "S", 4]})
    case("group_norm_21", "GroupNormalization", [f32(2, 6, 4), f32(6), f32(6)], num_groups=3, opset=21)
    case("group_norm_18", "GroupNormalization", [f32(2, 6, 4), f32(3), f32(3)], num_groups=3, opset=18)
    case("instance_norm", "InstanceNormalization", [f32(2, 3, 4, 5), f32(3), f32(3)])
    case("batch_norm_15", "BatchNormalization", [f32(2, 3, 4, 5), f32(3), f32(3), f32(3), f32(3, low=0.1)])
    case("lp_norm", "LpNormalization", [f32(3, 4)], p=1, axis=0)


def images():
    x = f32(1, 2, 5, 6)
    empty = np.array([], np.float32)
    for mode, coordinate in (("linear", "half_pixel"), ("cubic", "pytorch_half_pixel"), ("nearest", "asymmetric"),
                             ("linear", "align_corners"), ("cubic", "half_pixel_symmetric")):
        case(f"resize_{mode}_{coordinate}_19", "Resize", [x, empty, np.array([1, 1, 1.6, 0.7], np.float32)],
             mode=mode, coordinate_transformation_mode=coordinate, constants=[1, 2])
    case("resize_antialias_18", "Resize", [f32(1, 1, 12, 12), None, None, np.array([1, 1, 5, 7])], mode="linear",
         antialias=1, constants=[3])
    case("resize_axes_18", "Resize", [x, None, np.array([2, 3], np.float32)], axes=[2, 3], mode="nearest",
         constants=[2])
    case("resize_symbol_19", "Resize", [x, None, np.array([1, 1, 2, 2], np.float32)], mode="nearest",
         coordinate_transformation_mode="asymmetric", nearest_mode="floor", constants=[2],
         symbols={"x0": [1, 2, "H", "W"]})
    case("grid_sample_20", "GridSample", [x, f32(1, 3, 4, 2, low=-1.2, high=1.2)], mode="linear", opset=20)
    case("grid_sample_cubic_20", "GridSample", [x, f32(1, 3, 4, 2, low=-0.9, high=0.9)], mode="cubic",
         padding_mode="border", opset=20)
    case("affine_grid_20", "AffineGrid", [f32(2, 2, 3), np.array([2, 3, 4, 5])], constants=[1], opset=20)
    case("affine_grid_3d_20", "AffineGrid", [f32(1, 3, 4), np.array([1, 2, 3, 4, 2])], constants=[1], opset=20,
         align_corners=1)
    case("col2im_18", "Col2Im", [f32(1, 12, 9), np.array([5, 6]), np.array([2, 3])], constants=[1, 2],
         pads=[1, 0, 0, 1], strides=[2, 2])
    case("roi_align_16", "RoiAlign", [x, np.array([[0.5, 0.2, 4, 3], [1, 1, 5, 4]], np.float32), np.array([0, 0])],
         output_height=2, output_width=3, sampling_ratio=2, opset=16)


def quantised():
    x = f32(3, 8, low=-2, high=2)
    scale, zero = np.float32(0.02), np.uint8(117)
    case("quantize_21", "QuantizeLinear", [x, f32(3, low=0.01, high=0.05), integers(3, high=200, dtype=np.uint8)],
         axis=0, opset=21)
    case("quantize_i16_21", "QuantizeLinear", [x, scale, np.int16(5)], opset=21)
    case("quantize_block_21", "QuantizeLinear", [x, f32(3, 2, low=0.01, high=0.05),
                                                 integers(3, 2, high=200, dtype=np.uint8)], axis=1, block_size=4)
    case("dequantize_block_21", "DequantizeLinear", [integers(8, 6, low=-9, high=9, dtype=np.int8), f32(2, 6)], axis=0,
         block_size=4)
    case("dequantize_i32_19", "DequantizeLinear", [integers(8, low=-999, high=999, dtype=np.int32), scale])
    case("dynamic_quantize", "DynamicQuantizeLinear", [x], outputs=3)
    a, b = integers(3, 8, high=255, dtype=np.uint8), integers(8, 5, low=-128, high=127, dtype=np.int8)
    case("mat_mul_integer", "MatMulInteger", [a, b, zero, np.int8(3)])
    case("mat_mul_integer_columns", "MatMulInteger", [a, b, zero, integers(5, low=-9, high=9, dtype=np.int8)])
    case("q_linear_mat_mul", "QLinearMatMul", [a, scale, zero, b, np.float32(0.01), np.int8(2), np.float32(0.05),
                                               np.uint8(100)])
    image, w = integers(1, 4, 6, 6, high=255, dtype=np.uint8), integers(6, 2, 3, 3, low=-128, high=127, dtype=np.int8)
    case("q_linear_conv", "QLinearConv", [image, scale, zero, w, f32(6, low=0.01, high=0.02), np.zeros(6, np.int8),
                                          np.float32(0.3), np.uint8(128), integers(6, low=-99, high=99,
                                                   dtype=np.int32)],
         group=2, pads=[1, 1, 1, 1], constants=[1, 2, 3, 4, 5, 6, 7, 8])
    case("conv_integer", "ConvInteger", [image, integers(5, 4, 3, 3, high=255, dtype=np.uint8), zero, np.uint8(100)],
         pads=[1, 0, 1, 1], constants=[1, 2, 3])
    half = (a[:, :6], np.float32(0.03), np.uint8(10))
    other = (integers(3, 6, high=255, dtype=np.uint8), np.float32(0.02), np.uint8(90))
    case("q_linear_add", "QLinearAdd", [*half, *other, np.float32(0.0413), np.uint8(20)], domain=MS)
    case("q_linear_mul", "QLinearMul", [*half, *other, np.float32(0.1), np.uint8(20)], domain=MS)
    case("q_linear_sigmoid", "QLinearSigmoid", [*half, np.float32(1 / 256), np.uint8(0)], domain=MS,
         constants=[1, 2, 3, 4])
    case("q_linear_concat", "QLinearConcat", [np.float32(0.05), np.uint8(9), *half, *other], domain=MS, axis=0,
         constants=[0, 1, 3, 4, 6, 7])
    case("q_linear_global_average", "QLinearGlobalAveragePool", [image, scale, zero, np.float32(0.01), np.uint8(60)],
         domain=MS, constants=[1, 2, 3, 4])
    case("dynamic_quantize_mat_mul", "DynamicQuantizeMatMul", [x, b, np.float32(0.02), np.int8(0)], domain=MS,
         constants=[1, 2, 3])
    case("mat_mul_integer_to_float", "MatMulIntegerToFloat", [a, b, scale, f32(5, low=0.01), zero], domain=MS)
    w = numpy_helper.from_array(f32(8, 5).astype(np.float32), "w")
    graph([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
           helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
           helper.make_node("DequantizeLinear", ["wq", "ws"], ["wd"], axis=1),
           helper.make_node("MatMul", ["d", "wd"], ["m"]),
           helper.make_node("QuantizeLinear", ["m", "s", "z"], ["mq"]),
           helper.make_node("DequantizeLinear", ["mq", "s", "z"], ["y"])],
          "qdq", {"x": x, "s": np.float32(0.05), "z": np.uint8(128), "wq": b, "ws": f32(5, low=0.005, high=0.01)},
                   ["y"],
          17, constants={"s", "z", "wq", "ws"})


def recurrent():
    x = f32(5, 2, 3)
    for direction, d in (("forward", 1), ("bidirectional", 2)):
        case(f"lstm_{direction}", "LSTM", [x, f32(d, 16, 3), f32(d, 16, 4), f32(d, 32), np.array([5, 3], np.int32),
                                           f32(d, 2, 4), f32(d, 2, 4)], outputs=3, hidden_size=4, direction=direction)
        case(f"gru_{direction}", "GRU", [x, f32(d, 12, 3), f32(d, 12, 4), f32(d, 24)], outputs=2, hidden_size=4,
             direction=direction, linear_before_reset=1)
        case(f"rnn_{direction}", "RNN", [x, f32(d, 4, 3), f32(d, 4, 4)], outputs=2, hidden_size=4, direction=direction)


def control():
    x = f32(4, 3)
    i64 = TensorProto.INT64
    cond = helper.make_tensor("t", TensorProto.BOOL, [], [True])
    body = helper.make_graph(
        [helper.make_node("Add", ["a_in", "x"], ["a_out"]),
         helper.make_node("ReduceMax", ["a_out"], ["most"], keepdims=0),
         helper.make_node("Less", ["most", "limit"], ["go"])],
        "body", [helper.make_tensor_value_info("i", i64, []), helper.make_tensor_value_info("go_in",
                 TensorProto.BOOL, []),
                 helper.make_tensor_value_info("a_in", TensorProto.FLOAT, [4, 3])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("a_out", TensorProto.FLOAT, [4, 3])])
    graph([helper.make_node("Loop", ["", "go0", "x"], ["y"], body=body)], "loop_while",
          {"x": np.abs(x), "limit": np.float32(9), "go0": np.array(True)}, ["y"], 19)
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), helper.make_node("Add", ["a_in", "f"],
                 ["a_out"]),
         helper.make_node("Identity", ["go_in"], ["go"]), helper.make_node("ReduceSum", ["a_out"], ["s"], keepdims=0)],
        "body", [helper.make_tensor_value_info("i", i64, []), helper.make_tensor_value_info("go_in",
                 TensorProto.BOOL, []),
                 helper.make_tensor_value_info("a_in", TensorProto.FLOAT, [4, 3])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("a_out", TensorProto.FLOAT, [4, 3]),
         helper.make_tensor_value_info("s", TensorProto.FLOAT, [])])
    graph([helper.make_node("Constant", [], ["m"], value=helper.make_tensor("m", i64, [], [5])),
           helper.make_node("Constant", [], ["t"], value=cond),
           helper.make_node("Loop", ["m", "t", "x"], ["y", "s"], body=body)], "loop_for", {"x": x}, ["y", "s"], 19)
    then = helper.make_graph([helper.make_node("Add", ["x", "x"], ["t"])], "then", [],
                             [helper.make_tensor_value_info("t", TensorProto.FLOAT, [4, 3])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [],
                              [helper.make_tensor_value_info("e", TensorProto.FLOAT, [4, 3])])
    for yes in (True, False):
        graph([helper.make_node("If", ["p"], ["y"], then_branch=then, else_branch=other)], f"if_{yes}".lower(),
              {"x": x, "p": np.array(yes)}, ["y"], 19)
    step = helper.make_graph(
        [helper.make_node("Add", ["h_in", "r"], ["h_out"]), helper.make_node("Mul", ["h_out", "r"], ["o"])], "step",
        [helper.make_tensor_value_info("h_in", TensorProto.FLOAT, [3]),
         helper.make_tensor_value_info("r", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("h_out", TensorProto.FLOAT, [3]),
         helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])])
    graph([helper.make_node("Scan", ["h", "x"], ["y", "o"], body=step, num_scan_inputs=1, scan_input_directions=[1])],
          "scan_reverse", {"h": f32(3), "x": x}, ["y", "o"], 19, symbols={"x": ["T", 3]})
    twice = helper.make_function("local", "Twice", ["a"], ["b"],
                                 [helper.make_node("LeakyRelu", ["a"], ["c"]),
                                  helper.make_node("Add", ["c", "c"], ["b"])],
                                 [helper.make_opsetid("", 19)], ["alpha"])
    twice.node[0].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=1))
    graph([helper.make_node("Twice", ["x"], ["y"], domain="local", alpha=0.3)], "function", {"x": x}, ["y"], 19,
          functions=[twice])
    graph([helper.make_node("SplitToSequence", ["x", "n"], ["s"], axis=0),
           helper.make_node("SequenceAt", ["s", "k"], ["p"]), helper.make_node("SequenceLength", ["s"], ["l"]),
           helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=1)], "sequences",
          {"x": x, "n": np.array(2), "k": np.array(1)}, ["p", "l", "y"], 19, constants={"n", "k"})
    # Sizes through Shape, Gather, arithmetic and Concat, of symbols.
    graph([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
           helper.make_node("Mul", ["n", "three"], ["n3"]), helper.make_node("Unsqueeze", ["n3", "axis"], ["u"]),
           helper.make_node("Concat", ["u", "one"], ["shape"], axis=0), helper.make_node("Reshape", ["x", "shape"],
                    ["y"]),
           helper.make_node("ConstantOfShape", ["shape"], ["z"])], "size_chain",
          {"x": x, "zero": np.array(0), "three": np.array(3), "axis": np.array([0]), "one": np.array([1])}, ["y",
                   "z"], 19,
          constants={"zero", "three", "axis", "one"}, symbols={"x": ["N", 3]})


def contributed():
    x, gamma, beta = f32(2, 3, 8), f32(8), f32(8)
    case("ms_gelu", "Gelu", [x], domain=MS)
    case("ms_bias_gelu", "BiasGelu", [x, beta], domain=MS)
    case("ms_fast_gelu", "FastGelu", [x, beta], domain=MS)
    case("ms_quick_gelu", "QuickGelu", [x], domain=MS, alpha=1.702)
    case("ms_fused_mat_mul", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], domain=MS, transA=1, transB=1, alpha=0.25)
    case("ms_skip_layer_norm", "SkipLayerNormalization", [x, f32(2, 3, 8), gamma, beta, f32(8)],
         outputs=["y", "", "", "sum"], domain=MS, epsilon=1e-5)
    case("ms_skip_simplified", "SkipSimplifiedLayerNormalization", [x, f32(2, 3, 8), gamma],
         outputs=["y", "", "", "sum"], domain=MS, epsilon=1e-5)
    case("ms_simplified", "SimplifiedLayerNormalization", [x, gamma], axis=-1, epsilon=1e-5)
    case("ms_embed_layer_norm", "EmbedLayerNormalization",
         [integers(2, 3, dtype=np.int32), integers(2, 3, high=2, dtype=np.int32), f32(9, 8), f32(5, 8), f32(2, 8),
                  gamma,
          beta, np.array([[1, 1, 0], [1, 1, 1]], np.int32)], outputs=2, domain=MS)
    w, b = f32(8, 24), f32(24)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    case("ms_attention", "Attention", [x, w, b], domain=MS, num_heads=2)
    case("ms_attention_mask", "Attention", [x, w, b, mask], domain=MS, num_heads=2)
    case("ms_attention_lengths", "Attention", [x, w, b, np.array([2, 3], np.int32)], domain=MS, num_heads=2)
    case("ms_attention_causal", "Attention", [x, w, b], domain=MS, num_heads=2, unidirectional=1)
    case("ms_attention_past", "Attention", [x, w, b, None, f32(2, 2, 2, 5, 4)], outputs=2, domain=MS, num_heads=2,
         unidirectional=1)
    q, k, v = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8)
    case("ms_multi_head", "MultiHeadAttention", [q, k, v], domain=MS, num_heads=2)
    case("ms_multi_head_bias", "MultiHeadAttention", [q, k, v, f32(24)], domain=MS, num_heads=2)
    case("ms_multi_head_mask", "MultiHeadAttention", [q, k, v, None, np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32)],
         domain=MS, num_heads=2)
    case("ms_multi_head_added", "MultiHeadAttention", [q, k, v, None, None, f32(1, 2, 3, 5)], domain=MS, num_heads=2)
    case("ms_multi_head_past", "MultiHeadAttention", [q, q, q, None, None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4)],
         outputs=3, domain=MS, num_heads=2, unidirectional=1)
    angles = np.outer(np.arange(16), 1.0 / 100 ** (np.arange(4) / 4))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    for interleaved in (0, 1):
        case(f"ms_rotary_{interleaved}", "RotaryEmbedding", [f32(2, 3, 16), integers(2, 3, high=16), cos, sin],
                 domain=MS,
             interleaved=interleaved)
    case("ms_rotary_offset", "RotaryEmbedding", [f32(2, 2, 3, 8), np.array([5]), cos, sin], domain=MS)
    grouped = dict(domain=MS, num_heads=4, kv_num_heads=2)
    angles = np.outer(np.arange(16), 1.0 / 100 ** (np.arange(8) / 8))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    q, k, v = f32(1, 3, 64), f32(1, 3, 32), f32(1, 3, 32)
    case("ms_grouped_prompt", "GroupQueryAttention",
         [q, k, v, None, None, np.array([2], np.int32), np.array(3, np.int32), cos, sin], outputs=3, constants=[6],
         do_rotary=1, **grouped)
    past = (f32(1, 2, 5, 16), f32(1, 2, 5, 16))
    one = (f32(1, 1, 64), f32(1, 1, 32), f32(1, 1, 32))
    case("ms_grouped_step", "GroupQueryAttention",
         [*one, *past, np.array([5], np.int32), np.array(6, np.int32), cos, sin], outputs=3, constants=[6], do_rotary=1,
         rotary_interleaved=1, **grouped)
    case("ms_grouped_packed", "GroupQueryAttention",
         [f32(1, 3, 128), None, None, None, None, np.array([2], np.int32), np.array(3, np.int32)], outputs=3,
         constants=[6], **grouped)
    case("ms_grouped_window", "GroupQueryAttention",
         [q, k, v, None, None, np.array([2], np.int32), np.array(3, np.int32)], outputs=3, constants=[6],
         local_window_size=2, **grouped)
    for block, zeros in ((32, False), (16, True), (32, True)):
        n, kk = 6, 64
        blocks = kk // block
        operands = [f32(3, kk), integers(n, blocks, block // 2, high=256, dtype=np.uint8), f32(n * blocks, low=0.01)]
        if zeros:
            operands.append(integers(n * ((blocks + 1) // 2), high=256, dtype=np.uint8))
        case(f"ms_mat_mul_4_bits_{block}_{zeros}".lower(), "MatMulNBits", operands, domain=MS, K=kk, N=n, bits=4,
             block_size=block, constants=range(1, len(operands)))


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op.lower()}_{outputs[0]}", **attributes)


def found():
    """Ops behind those of whose results only data decide how large they are."""
    places = [node("NonZero", ["x"], ["places"]), node("Transpose", ["places"], ["rows"], perm=[1, 0]),
              node("GatherND", ["x", "rows"], ["values"]), node("Exp", ["values"], ["e"]),
              node("ReduceSum", ["e"], ["sum"], keepdims=1), node("Div", ["e", "sum"], ["share"]),
              node("Shape", ["places"], ["shape"]), node("Gather", ["shape", "one"], ["n"]),
              node("Range", ["zero", "n", "one"], ["range"]), node("Cast", ["range"], ["order"], to=TensorProto.FLOAT),
              node("Mul", ["order", "share"], ["weighed"])]
    for name, x in (("some", np.where(f32(5, 7) > 0.2, f32(5, 7), 0)), ("all", f32(3, 11, low=0.5)),
                    ("none", np.zeros((2, 3), np.float32)), ("one", np.eye(1, 13, 6, dtype=np.float32))):
        graph(places, f"found_places_{name}", {"x": x, "zero": np.array(0), "one": np.array(1)},
              ["rows", "share", "weighed", "shape"], 17, {"zero", "one"}, {"x": ["N", "M"]})
    kept = [node("Compress", ["x", "c"], ["a"], axis=0), node("Compress", ["y", "c"], ["b"], axis=1),
            node("Transpose", ["b"], ["t"], perm=[1, 0]), node("Add", ["a", "t"], ["both"]),
            node("MatMul", ["b", "both"], ["product"]), node("Softmax", ["b"], ["soft"], axis=1),
            node("Concat", ["a", "t"], ["joined"], axis=0), node("MatMul", ["both", "w"], ["last"])]
    for name, c in (("some", f32(17) > 0), ("all", np.ones(8, bool)), ("none", np.zeros(5, bool)),
                    ("one", np.arange(9) == 4)):
        n = len(c)
        graph(kept, f"found_kept_{name}", {"x": f32(n, 3), "y": f32(3, n), "c": c, "w": f32(3, 5)},
              ["both", "product", "soft", "joined", "last"], 17, {"w"}, {"x": ["N", 3], "y": [3, "N"], "c": ["N"]})
    unlike = [node("Unique", ["x"], ["u", "first", "back", "counts"], sorted=1),
              node("Mul", ["u", "counts"], ["total"]),
              node("ReduceSum", ["total"], ["sum"], keepdims=0), node("Gather", ["x", "first"], ["again"]),
              node("Gather", ["counts", "back"], ["often"]), node("Sub", ["again", "u"], ["zero"])]
    graph(unlike, "found_unlike", {"x": integers(23)}, ["total", "sum", "again", "often", "zero"], 17, (), {"x": ["N"]})
    boxes = np.sort(f32(1, 24, 2, 2, low=0), axis=2).reshape(1, 24, 4)
    best = [node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
            node("Gather", ["chosen", "two"], ["at"], axis=1), node("Squeeze", ["boxes", "first"], ["flat"]),
            node("Gather", ["flat", "at"], ["left"]), node("ReduceMax", ["left"], ["largest"], axes=[1], keepdims=0),
            node("Mul", ["left", "left"], ["squares"])]
    graph(best, "found_boxes", {"boxes": boxes, "scores": f32(1, 2, 24, low=0), "most": np.array([7]),
                                "iou": np.array([0.3], np.float32), "least": np.array([0.4], np.float32),
                                "two": np.array(2), "first": np.array([0])},
          ["left", "largest", "squares", "chosen"], 17, {"most", "iou", "least", "two", "first"},
          {"boxes": [1, "N", 4], "scores": [1, 2, "N"]})


def edges():
    """What random calls found wrong."""
    case("one_hot_far", "OneHot", [np.array([[-6, -5, -4], [-1, 0, 3], [4, 5, 2]]), np.array(4),
                                   np.array([0.5, 2], np.float32)], constants=[1], opset=11)
    x = f32(3, 4, 5)
    for op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceMax"):
        case(f"{op.lower()}_noop", op, [x], noop_with_empty_axes=1)
    case("reducelogsum_noop", "ReduceLogSum", [x + 2], noop_with_empty_axes=1)
    case("lp_pool_past_end", "LpPool", [f32(2, 3, 7)], kernel_shape=[2], strides=[3], ceil_mode=1, p=3)
    case("lp_pool_pads_past_end", "LpPool", [f32(2, 3, 8, 8)], symbols={"x0": ["N", 3, "H", "W"]}, kernel_shape=[3, 2],
         strides=[3, 2], pads=[1, 1, 0, 1], dilations=[2, 1], ceil_mode=1, p=2)
    for name, scale, coordinate, nearest in (
            ("down", 0.3, "half_pixel", "round_prefer_ceil"), ("up", 1.7, "asymmetric", "floor"),
            ("cut", 0.7, "asymmetric", "floor"), ("centre", 0.5, "half_pixel_symmetric", "floor")):
        x = f32(1, 1, 10 if name == "cut" else 11)
        case(f"resize_tie_{name}", "Resize", [x, None, np.array([1, 1, scale], np.float32)],
             constants=[2], mode="nearest", coordinate_transformation_mode=coordinate, nearest_mode=nearest)
    x = f32(5, 2, 3)
    case("lstm_activations", "LSTM", [x, f32(1, 16, 3), f32(1, 16, 4)], outputs=3, hidden_size=4,
         activations=["HardSigmoid", "Softplus", "Relu"])
    case("gru_activations", "GRU", [x, f32(2, 12, 3), f32(2, 12, 4)], outputs=2, hidden_size=4,
         direction="bidirectional", activations=["HardSigmoid", "Softsign"] * 2)
    case("rnn_activations", "RNN", [x, f32(1, 4, 3), f32(1, 4, 4)], outputs=2, hidden_size=4, activations=["Softsign"])
    case("layer_norm_f64", "LayerNormalization", [f32(3, 7).astype(np.float64), f32(7).astype(np.float64)], outputs=3)


def version_23():
    q, k, v = f32(2, 4, 3, 8), f32(2, 2, 7, 8), f32(2, 2, 7, 8)
    visible = np.maximum(RANDOM.integers(0, 2, (3, 7)), np.arange(7) == 0).astype(bool)
    case("attention_23", "Attention", [q, k, v], opset=23, scale=0.3, softcap=2.0)
    case("attention_23_bools", "Attention", [q, k, v, visible], opset=23, symbols={"x0": ["B", 4, "S", 8]})
    case("attention_23_packed", "Attention", [f32(2, 5, 32), f32(2, 3, 16), f32(2, 3, 16)], opset=23, is_causal=1,
         q_num_heads=4, kv_num_heads=2)
    past = f32(2, 2, 4, 8), f32(2, 2, 4, 8)
    case("attention_23_past", "Attention", [f32(2, 2, 3, 8), f32(2, 2, 3, 8), f32(2, 2, 3, 8), f32(3, 7), *past],
         outputs=3, opset=23, is_causal=1)
    cos, sin = f32(9, 2), f32(9, 2)
    case("rotary_23", "RotaryEmbedding", [f32(2, 3, 5, 8), cos, sin, integers(2, 5)], opset=23, interleaved=1,
         rotary_embedding_dim=4)
    case("rotary_23_packed", "RotaryEmbedding", [f32(2, 5, 12), f32(2, 5, 2), f32(2, 5, 2)], opset=23, num_heads=3)
    case("rms_normalization_23", "RMSNormalization", [f32(3, 7), f32(7)], opset=23)
    case("ms_multi_head_fewer_keys", "MultiHeadAttention", [f32(1, 5, 8), f32(1, 4, 8), f32(1, 4, 8)], domain=MS,
         num_heads=2, unidirectional=1)
    x, w = f32(1, 3, 5, 7), f32(4, 3, 3, 3)
    for act, numbers in (("Relu", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        extra = {"activation_params": numbers} if numbers else {}
        case(f"ms_fused_conv_{act.lower()}", "FusedConv", [x, w, f32(4)], domain=MS, constants=[1, 2],
             pads=[1, 1, 1, 1], kernel_shape=[3, 3], activation=act, **extra)
    case("ms_fused_conv_sum", "FusedConv", [x, w, f32(4), f32(1, 4, 3, 5)], domain=MS, constants=[1, 2],
         activation="Relu")
    case("ms_qlinear_average_pool", "QLinearAveragePool",
         [integers(2, 3, 5, 7, high=256, dtype=np.uint8), np.float32(0.1), np.uint8(9), np.float32(0.07), np.uint8(3)],
         domain=MS, constants=[1, 2, 3, 4], kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1])


def found_in_bodies():
    """The same in the bodies of loops and branches, of results that are as large as the operands."""
    def info(name, shape, dtype=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, dtype, shape)

    def larger(x, than):
        """Those of x that are larger: `values`, `places`, and `sum`."""
        return [node("Greater", [x, than], ["mask"]), node("NonZero", ["mask"], ["found"]),
                node("Transpose", ["found"], ["places"], perm=[1, 0]), node("GatherND", [x, "places"], ["values"]),
                node("ReduceSum", ["values"], ["sum"], keepdims=0), node("Mul", ["values", "half"], ["less"])]

    half = np.float32(0.5)
    steps = larger("a_in", "half") + [node("ScatterND", ["a_in", "places", "less"], ["a_out"])]
    trips = [info("i", [], TensorProto.INT64), info("go_in", [], TensorProto.BOOL), info("a_in", ["N"])]
    body = helper.make_graph(steps + [node("Greater", ["sum", "zero"], ["go"])], "body", trips,
                             [info("go", [], TensorProto.BOOL), info("a_out", ["N"])])
    graph([node("Loop", ["most", "go0", "x"], ["y"], body=body)], "found_while",
          {"x": f32(23, low=-1, high=9), "most": np.array(9), "go0": np.array(True), "half": half,
           "zero": np.float32(0)}, ["y"], 19, {"half", "zero"}, {"x": ["N"]})
    body = helper.make_graph(steps + [node("Identity", ["go_in"], ["go"])], "body", trips,
                             [info("go", [], TensorProto.BOOL), info("a_out", ["N"]), info("sum", [])])
    graph([node("Loop", ["five", "yes", "x"], ["y", "sums"], body=body)], "found_for",
          {"x": f32(17, low=-1, high=9), "five": np.array(5), "yes": np.array(True), "half": half}, ["y", "sums"], 19,
          {"five", "yes", "half"}, {"x": ["N"]})
    then = helper.make_graph(larger("x", "half"), "then", [], [info("sum", [])])
    other = helper.make_graph(
        [node("Unique", ["x"], ["different", "", "", "often"], sorted=1), node("Cast", ["often"], ["times"], to=1),
         node("Mul", ["different", "times"], ["all"]), node("ReduceMax", ["all"], ["largest"], keepdims=0)],
        "other", [], [info("largest", [])])
    for yes in (True, False):
        graph([node("If", ["p"], ["y"], then_branch=then, else_branch=other)], f"found_if_{yes}".lower(),
              {"x": integers(19).astype(np.float32), "p": np.array(yes), "half": half}, ["y"], 19, {"half"},
              {"x": ["N"]})
    step = helper.make_graph(
        [node("Compress", ["row", "keep"], ["kept"], axis=0), node("Add", ["kept", "h_in"], ["moved"]),
         node("MatMul", ["moved", "w"], ["product"]), node("ReduceSum", ["product", "first"], ["total"], keepdims=0),
         node("Tanh", ["total"], ["h_out"])], "step",
        [info("h_in", [3]), info("row", ["N", 3]), info("keep", ["N"], TensorProto.BOOL)],
        [info("h_out", [3]), info("total", [3])])
    keep = np.stack([f32(7) > 0, np.zeros(7, bool), np.ones(7, bool), np.arange(7) == 3, f32(7) > 0.5])
    graph([node("Scan", ["h", "x", "keep"], ["y", "totals"], body=step, num_scan_inputs=2)], "found_scan",
          {"h": f32(3), "x": f32(5, 7, 3), "keep": keep, "w": f32(3, 3), "first": np.array([0])}, ["y", "totals"], 19,
          {"w", "first"}, {"x": ["T", "N", 3], "keep": ["T", "N"]})


def packed_weights():
    """MatMulNBits of 8 bits, of more scales than small tensors have, and with int8 activations allowed: rows that int8
    holds exactly, since each block of 32 has 127 as its largest, so that how activations are rounded does not show."""
    def packed(name, x, n, block, bits, zeros, level=0, low=0, high=256, scale=None):
        k = x.shape[-1]
        blocks = -(-k // block)
        operands = [x, integers(n, blocks, block * bits // 8, low=low, high=high, dtype=np.uint8),
                    f32(n * blocks, low=0.01) if scale is None else scale]
        if zeros:
            operands.append(integers(n * ((blocks * bits + 7) // 8), high=high, dtype=np.uint8))
        case(f"ms_packed_{name}", "MatMulNBits", operands, domain=MS, K=k, N=n, bits=bits, block_size=block,
             accuracy_level=level, constants=range(1, len(operands)))

    for zeros in (False, True):
        packed(f"8_bits_{zeros}".lower(), f32(3, 64), 7, 32, 8, zeros)
    packed("many_scales", f32(1, 32), 16411, 32, 4, False, high=1,
           scale=np.resize(np.arange(1, 24, dtype=np.float32), 16411))
    x = integers(3, 96, low=0, high=127).astype(np.float32)
    x[:, ::32] = 127
    half = np.resize(np.float32([0.5, 0.375, 0.01171875, -0.25]), 7 * 3)
    near = np.resize(np.float32([0.1, 0.0301, 1.7]), 7 * 3)
    for bits in (4, 8):
        packed(f"{bits}_bits_int8", x, 7, 32, bits, False, level=4, scale=half)
        packed(f"{bits}_bits_int8_near", x, 7, 32, bits, False, level=4, low=8 * 17, scale=near)  # all of one sign
        packed(f"{bits}_bits_int8_zeros", x, 7, 32, bits, True, level=4, scale=near if bits == 4 else half)
        packed(f"{bits}_bits_int8_wide", x, 7, 64, bits, True, level=4, scale=(near if bits == 4 else half)[:14])
    packed("4_bits_int8_even", x[:, :64], 7, 64, 4, True, level=4, scale=near[:7])
    packed("4_bits_int8_tiny", x, 7, 32, 4, False, level=4, scale=near * np.float32(2.0**-24))


def blocks_of_codes():
    """MatMulNBits beside floats: many rows and columns, a batch, scales of longer blocks, zero points that are floats,
    halves; rows of tables by GatherBlockQuantized, packed, of 4 bits a byte and of 8; and of another axis."""
    def product(name, x, n, block, bits, zeros=None, bias=False):
        k = x.shape[-1]
        blocks = -(-k // block)
        operands = [x, integers(n, blocks, block * bits // 8, high=256, dtype=np.uint8),
                    f32(n * blocks, low=0.01).astype(x.dtype), None, None]
        if zeros == "bytes":
            operands[3] = integers(n * ((blocks * bits + 7) // 8), high=256, dtype=np.uint8)
        elif zeros == "floats":
            operands[3] = f32(n * blocks, low=4, high=11).astype(x.dtype)
        operands += [f32(n).astype(x.dtype)] if bias else []
        given = [i for i in range(1, len(operands)) if operands[i] is not None]
        case(f"ms_codes_{name}", "MatMulNBits", operands, domain=MS, K=k, N=n, bits=bits, block_size=block,
             constants=given)

    product("rows", f32(19, 96), 37, 32, 4)
    product("rows_zeros", f32(19, 96), 37, 32, 4, "bytes")
    product("wide", f32(1, 256), 37, 128, 4, "bytes")
    product("batch", f32(2, 3, 128), 17, 64, 4, "floats", bias=True)
    product("halves", f32(3, 96).astype(np.float16), 17, 32, 4)
    product("short", f32(3, 16), 5, 32, 4, "bytes")
    product("rows_8", f32(17, 64), 37, 64, 8)
    product("rows_8_zeros", f32(17, 64), 37, 32, 8, "bytes")

    def table(name, data, scales, zeros=None, at=integers(2, 3, high=7), **attributes):
        operands = [data, at, scales] + ([] if zeros is None else [zeros])
        case(f"ms_table_{name}", "GatherBlockQuantized", operands, domain=MS, constants=[0, *range(2, len(operands))],
             **attributes)

    def dequantised(name, w, scales, zeros, axis, reader, x):
        names = ["w", "scales"] + ([] if zeros is None else ["zeros"])
        values = {"x": x, "w": w, "scales": scales} | ({} if zeros is None else {"zeros": zeros})
        graph([node("DequantizeLinear", names, ["w_floats"], axis=axis, block_size=32), reader], f"blocks_{name}",
              values, ["y"], 21, set(names))

    by_columns, x = node("MatMul", ["x", "w_floats"], ["y"]), f32(2, 5, 96)
    dequantised("i4", integers(96, 37, low=-8, dtype=ml_dtypes.int4), f32(3, 37), None, 0, by_columns, x)
    dequantised("u4", integers(96, 37, high=16, dtype=ml_dtypes.uint4), f32(3, 37),
                integers(3, 37, high=16, dtype=ml_dtypes.uint4), 0, by_columns, x)
    dequantised("i8", integers(96, 37, low=-128, high=128, dtype=np.int8), f32(3, 37),
                integers(3, 37, low=-128, high=128, dtype=np.int8), 0, by_columns, x)
    dequantised("rows", integers(7, 96, high=16, dtype=ml_dtypes.uint4), f32(7, 3), None, 1,
                node("Gemm", ["x", "w_floats"], ["y"], transB=1, alpha=0.5), f32(3, 96))
    dequantised("table", integers(7, 96, low=-8, dtype=ml_dtypes.int4), f32(7, 3), None, -1,
                node("Gather", ["w_floats", "x"], ["y"]), integers(2, 3, high=7))

    packed, scales = integers(7, 48, high=256, dtype=np.uint8), f32(7, 3, low=0.01)
    table("packed", packed, scales, bits=4, block_size=32)
    table("packed_zeros", packed, scales, integers(7, 2, high=256, dtype=np.uint8), bits=4, block_size=32)
    table("short", packed[:, :16], scales[:, :1], at=np.array(5), bits=4, block_size=128)
    table("bytes", integers(7, 64, high=256, dtype=np.uint8), scales[:, :2], bits=8, block_size=32)
    table("i4", integers(7, 96, low=-8, dtype=ml_dtypes.int4), scales, bits=4, block_size=32)
    table("u4", integers(7, 96, high=16, dtype=ml_dtypes.uint4), scales, bits=4, block_size=32)
    table("u4_zeros", integers(7, 48, high=16, dtype=ml_dtypes.uint4), scales,
          integers(7, 3, high=16, dtype=ml_dtypes.uint4), bits=4, block_size=16)
    table("columns", integers(64, 7, low=-8, dtype=ml_dtypes.int4), f32(2, 7), bits=4, block_size=32, gather_axis=1,
          quantize_axis=0)


def convolutions_of_bytes():
    """QLinearConv and ConvInteger: zero points of both sides, padding with the zero point of x, strides, groups, a
    channel by itself, one and three dimensions; three in a row with a residual; and zero points that the run brings."""
    def conv(name, shape, rows, kernel, group=1, x_zero=None, w_zero=0, w_type=np.int8, bias=True, **attributes):
        x_type = np.uint8 if x_zero is None or x_zero >= 0 else np.int8
        x_zero = 128 if x_zero is None else x_zero
        low = 0 if x_type == np.uint8 else -128
        terms = shape[1] // group * int(np.prod(kernel))
        w = integers(rows, shape[1] // group, *kernel, low=-128 if w_type == np.int8 else 0,
                     high=128 if w_type == np.int8 else 256, dtype=w_type)
        operands = [integers(*shape, low=low, high=low + 256, dtype=x_type), np.float32(0.02), np.array(x_zero, x_type),
                    w, f32(rows, low=0.01, high=0.02), np.full(rows, w_zero, w_type),
                    np.float32(0.06 * np.sqrt(terms)), np.array(x_zero, x_type)]
        if bias:
            operands.append(integers(rows, low=-9999, high=9999, dtype=np.int32))
        case(f"q_conv_{name}", "QLinearConv", operands, group=group, constants=range(1, len(operands)), **attributes)

    conv("padded", (2, 5, 9, 11), 7, (3, 3), pads=[1, 1, 1, 1])
    conv("many_channels", (1, 67, 13, 9), 37, (3, 2), pads=[1, 0, 1, 1], strides=[2, 1])
    conv("of_points", (2, 33, 7, 9), 65, (1, 1), bias=False)
    conv("signed", (1, 12, 11, 10), 17, (3, 3), x_zero=-7, pads=[0, 1, 2, 1], dilations=[2, 1])
    conv("weights_with_zero", (2, 9, 8, 7), 11, (3, 3), w_zero=113, w_type=np.uint8, pads=[1, 1, 1, 1])
    conv("groups_with_zero", (1, 12, 8, 7), 8, (3, 3), group=4, w_zero=140, w_type=np.uint8, pads=[1, 1, 1, 1])
    conv("by_channel", (1, 35, 12, 11), 35, (3, 3), group=35, pads=[1, 1, 1, 1], strides=[1, 2])
    conv("of_a_line", (2, 18, 57), 33, (5,), pads=[2, 2])
    conv("of_space", (1, 4, 5, 6, 7), 9, (2, 3, 2), pads=[0, 1, 1, 1, 1, 0])
    image = integers(1, 6, 9, 8, high=256, dtype=np.uint8)
    for name, zero in (("zero_of_the_run", np.uint8(99)), ("no_zero", None)):
        case(f"conv_integer_{name}", "ConvInteger",
             [image, integers(11, 6, 3, 3, low=-128, high=128, dtype=np.int8), zero], constants=[1], pads=[1, 1, 1, 1])
        case(f"conv_integer_{name}_both", "ConvInteger",
             [image, integers(6, 3, 3, 3, high=256, dtype=np.uint8), zero, np.uint8(77)], constants=[1, 3], group=2,
             pads=[1, 0, 0, 1])
    values = {"x": f32(1, 16, 12, 13), "s": np.float32(0.01), "z": np.uint8(121), "r": np.float32(0.05),
              "p": np.uint8(4)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q0"]), node("DequantizeLinear", ["q0", "s", "z"], ["d0"])]
    last = "d0"
    for i in range(3):
        values |= {f"w{i}": integers(16, 16, 3, 3, low=-128, high=128, dtype=np.int8),
                   f"v{i}": f32(16, low=0.001, high=0.002), f"b{i}": f32(16)}
        nodes += [node("DequantizeLinear", [f"w{i}", f"v{i}"], [f"f{i}"], axis=0),
                  node("Conv", [last, f"f{i}", f"b{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
                  node("QuantizeLinear", [f"c{i}", "r", "z"], [f"q{i + 1}"]),
                  node("DequantizeLinear", [f"q{i + 1}", "r", "z"], [f"e{i}"]),
                  node("Add", [f"e{i}", last], [f"a{i}"]), node("Relu", [f"a{i}"], [f"r{i}"]),
                  node("QuantizeLinear", [f"r{i}", "r", "p"], [f"k{i}"]),
                  node("DequantizeLinear", [f"k{i}", "r", "p"], [f"d{i + 1}"])]
        last = f"d{i + 1}"
    graph(nodes, "q_convs_with_residuals", values, [last], 17, set(values) - {"x"})
    zero, scale = np.uint8(100), np.float32(0.03)
    a = integers(5, 19, high=256, dtype=np.uint8)
    b = integers(19, 13, low=-128, high=128, dtype=np.int8)
    bias = integers(13, low=-2000, high=2000, dtype=np.int32)
    by_column = f32(13, low=0.01, high=0.02)
    result = [np.float32(0.4), np.uint8(90)]
    for name, left, right, extra, more in (
            ("plain", a, b, result, {}), ("floats", a, b, [], {}), ("turned", a.T.copy(), b.T.copy(), result,
                                                                    {"transA": 1, "transB": 1, "alpha": 0.5})):
        zeros = np.zeros(13, np.int8)
        case(f"ms_q_gemm_{name}", "QGemm", [left, scale, zero, right, by_column, zeros, bias, *extra], domain=MS,
             constants=range(1, 7 + len(extra)), **more)
    half = (integers(3, 7, high=256, dtype=np.uint8), np.float32(0.03), np.uint8(120))
    names = ["x", "s", "z", "r", "p"]
    graph([node("QLinearSoftmax", names, ["y"], domain=MS, axis=-1, opset=13)], "ms_q_linear_softmax",
          dict(zip(names, [*half, np.float32(1 / 256), np.uint8(0)])), ["y"], 17, set(names) - {"x"})
    case("ms_q_linear_where", "QLinearWhere",
         [f32(3, 7) > 0, *half, integers(3, 7, high=256, dtype=np.uint8), np.float32(0.05), np.uint8(9),
          np.float32(0.06), np.uint8(77)], domain=MS, constants=[2, 3, 5, 6, 7, 8])
    case("ms_quantize", "QuantizeLinear", [f32(3, 8, low=-2, high=2), np.float32(0.02), np.uint16(4000)], domain=MS)
    case("ms_dequantize", "DequantizeLinear",
         [integers(3, 8, high=9999, dtype=np.uint16), np.float32(0.02), np.uint16(4000)], domain=MS)


# Attention and embeddings of bytes.
def fused_bytes():
    byte = lambda *dims, high=256, dtype=np.uint8: integers(*dims, high=high, dtype=dtype)
    x, w, bias = byte(2, 3, 8), byte(8, 24, high=120, dtype=np.int8), f32(24)
    scales = [np.float32(0.01), np.float32(0.02)]
    case("ms_q_attention", "QAttention", [x, w, bias, *scales, None, np.uint8(120), np.int8(5)], domain=MS, num_heads=2,
         constants=[1, 2, 3, 4, 6, 7])
    case("ms_q_attention_mask", "QAttention",
         [x, byte(8, 24), bias, np.float32(0.01), f32(24, low=0.01, high=0.03),
          np.array([[1, 1, 0], [1, 1, 1]], np.int32), np.uint8(120), byte(24, high=200)], domain=MS, num_heads=4)
    case("ms_q_attention_past", "QAttention",
         [x, w, bias, *scales, None, np.uint8(120), np.int8(0), f32(2, 2, 2, 5, 4)], outputs=2, domain=MS, num_heads=2,
         unidirectional=1)
    ids, segments = integers(2, 3, dtype=np.int32), integers(2, 3, high=2, dtype=np.int32)
    step = lambda: np.float32(f32(1, low=0.01, high=0.03)[0])
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    case("ms_q_embed_layer_norm", "QEmbedLayerNormalization",
         [ids, segments, byte(9, 8), byte(5, 8), byte(2, 8), byte(8), byte(8), mask, *[step() for _ in range(5)],
          *[np.uint8(z) for z in (120, 100, 90, 7, 130)]], outputs=2, domain=MS)
    case("ms_q_embed_words", "QEmbedLayerNormalization",
         [ids, None, byte(9, 8), byte(5, 8), None, byte(8), byte(8), None, step(), step(), None, step(), step(),
          np.uint8(120), np.uint8(100), None, np.uint8(7), np.uint8(130)], outputs=2, domain=MS)
    case("ms_embed_words", "EmbedLayerNormalization",
         [ids, None, f32(9, 8), f32(5, 8), None, f32(8), f32(8)], outputs=2, domain=MS)


for make in (elementwise, shapes, gathers, reductions, products, norms, images, quantised, recurrent, control,
             contributed, found, edges, version_23, found_in_bodies, packed_weights, convolutions_of_bytes,
             blocks_of_codes, fused_bytes):
    make()
with tarfile.open(sys.argv[1], "w:xz") as archive:
    def add(path, data):
        info = tarfile.TarInfo(path)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    for name, model, given, outputs in CASES:
        add(f"{name}/model.onnx", model.SerializeToString())
        for i, (n, x) in enumerate(given.items()):
            add(f"{name}/test_data_set_0/input_{i}.pb", numpy_helper.from_array(x, n).SerializeToString())
        for i, y in enumerate(outputs):
            add(f"{name}/test_data_set_0/output_{i}.pb", numpy_helper.from_array(np.asarray(y)).SerializeToString())
print(f"{len(CASES)} cases")
