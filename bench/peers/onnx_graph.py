"""A graph in text form as an ONNX model, as exporters write one: for ONNX Runtime and OpenVINO."""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import graph_text
import values

DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "bf16": TensorProto.BFLOAT16,
          "i32": TensorProto.INT32, "i64": TensorProto.INT64}
OPSET = 22


class Model:
    def __init__(self, graph):
        self.graph, self.nodes, self.stored, self.count = graph, [], [], 0
        self.inputs, self.names = [], []  # names: by node, of each result
        for index, node in enumerate(graph.nodes):
            names = LEAVES[node.op](self, node, index) if node.op in LEAVES else self.emit(node)
            self.names.append(names if isinstance(names, list) else [names])

    def op(self, kind, *operands, results=1, **attributes):
        names = [f"t{self.count + i}" for i in range(results)]
        self.count += results
        self.nodes.append(helper.make_node(kind, list(operands), names, **attributes))
        return names[0] if results == 1 else names

    def store(self, array, name=None):
        name = name or f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def scalar(self, number):
        return self.store(np.float32(number))

    def ints(self, numbers):
        return self.store(np.array(numbers, np.int64))

    def emit(self, node):
        if node.op not in OPS:
            raise ValueError(f"{node.op} has no row in onnx_graph.py")
        operands = [self.names[n][r] for n, r in node.operands]
        types = [self.graph.nodes[n].results[r] for n, r in node.operands]
        return OPS[node.op](self, node, operands, types)

    def proto(self):
        outputs = []
        for place, (n, r) in enumerate(self.graph.outputs):
            kind = self.graph.nodes[n].results[r]
            self.nodes.append(helper.make_node("Identity", [self.names[n][r]], [f"y{place}"]))
            outputs.append(helper.make_tensor_value_info(f"y{place}", DTYPES[kind.dtype], kind.shape))
        graph = helper.make_graph(self.nodes, self.graph.name, self.inputs, outputs, self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def typed(model, name, dtype):
    """`name` as its dtype, from the f32 that it is stored in: for dtypes that numpy does not have."""
    return model.op("Cast", name, to=DTYPES[dtype]) if dtype == "bf16" else name


def leaf_input(model, node, index):
    kind = node.results[0]
    model.inputs.append(helper.make_tensor_value_info(node.attributes["name"], DTYPES[kind.dtype], kind.shape))
    return node.attributes["name"]


def leaf_param(model, node, index):
    kind = node.results[0]
    return typed(model, model.store(values.leaf(kind, index, True), f"p_{node.attributes['name']}"), kind.dtype)


LEAVES = {
    "Input": leaf_input,
    "Param": leaf_param,
    "Constant": lambda model, node, index: model.store(values.literal(node)),
}


def product(model, a, b, types, transpose_b=False):
    """Sides of two dtypes are multiplied as f32, as ONNX has no other way to say it."""
    if types[0].dtype != types[1].dtype:
        a, b = (x if t.dtype == "f32" else model.op("Cast", x, to=TensorProto.FLOAT) for x, t in zip((a, b), types))
    if transpose_b:
        rank = len(types[1].shape)
        b = model.op("Transpose", b, perm=[*range(rank - 2), rank - 1, rank - 2])
    return model.op("MatMul", a, b)


def linear(model, node, x, types):
    y = product(model, x[0], x[1], types, node.attributes.get("transpose_b", False))
    y = model.op("Add", y, x[2]) if len(x) > 2 else y
    act = node.attributes.get("act", "")
    return y if not act else unary(act)(model, node, [y], types)


def rms_norm(model, x, gamma, eps):
    mean = model.op("ReduceMean", model.op("Mul", x, x), model.ints([-1]), keepdims=1)
    root = model.op("Sqrt", model.op("Add", mean, model.scalar(eps)))
    return model.op("Mul", model.op("Div", x, root), gamma)


def residual_norm(model, node, x, types):
    total = model.op("Add", x[0], x[1])
    return [rms_norm(model, total, x[2], node.attributes["eps"]), total]


def rope(model, node, x, types):
    words, shape = node.attributes, types[0].shape
    assert words["style"] == "neox" and words["packed"] and words["n_rot"] == words["head_dim"]
    dim, heads = words["head_dim"], shape[-1] // words["head_dim"]
    half = dim // 2
    t = model.op("Reshape", x[0], model.ints([*shape[:-1], heads, dim]))
    cos, sin = (model.op("Unsqueeze", angle, model.ints([1])) for angle in x[1:3])
    a, b = (model.op("Slice", t, model.ints([start]), model.ints([start + half]), model.ints([-1]))
            for start in (0, half))
    first = model.op("Sub", model.op("Mul", a, cos), model.op("Mul", b, sin))
    second = model.op("Add", model.op("Mul", b, cos), model.op("Mul", a, sin))
    return model.op("Reshape", model.op("Concat", first, second, axis=-1), model.ints(shape))


def attention(model, node, x, types):
    words = node.attributes
    heads, mask = words["heads"], words.get("mask", "none")
    assert words["kv_heads"] == heads and mask in ("none", "causal"), "attention of another kind"
    parts = []
    for name, kind in zip(x[:3], types):
        shape, turn = graph_text.heads_first(words, kind.shape, heads)
        name = name if shape == kind.shape else model.op("Reshape", name, model.ints(shape))
        parts.append((name, turn, shape))
    (q, turn, shape), (k, _, k_shape), (v, _, _) = parts
    scale = words.get("scale", 0.0) or 1 / math.sqrt(words["head_dim"])
    straight = turn == [0, 1, 2, 3]
    q, v = (t if straight else model.op("Transpose", t, perm=turn) for t in (q, v))
    k = model.op("Transpose", k, perm=[turn[0], turn[1], turn[3], turn[2]])
    s = model.op("Mul", model.op("MatMul", q, k), model.scalar(scale))
    if mask == "causal":
        sq, sk = (dims[2 if straight else 1] for dims in (shape, k_shape))
        s = model.op("Add", s, model.store(np.triu(np.full((sq, sk), -1e9, np.float32), 1 + sk - sq)))
    y = model.op("MatMul", model.op("Softmax", s, axis=-1), v)
    y = y if straight else model.op("Transpose", y, perm=[0, 2, 1, 3])
    return y if shape == types[0].shape else model.op("Reshape", y, model.ints(types[0].shape))


def reduce_(model, node, x, types):
    kinds = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin"}
    return model.op(kinds[node.attributes["op"]], x[0], model.ints(node.attributes["axes"]),
                    keepdims=int(node.attributes["keep_dim"]))


def best(model, x, node, count, largest):
    """`count` elements in order, and where they stood."""
    return model.op("TopK", x, model.ints([count]), results=2, axis=node.attributes["axis"], largest=int(largest))


def sort(model, node, x, types):
    return best(model, x[0], node, types[0].shape[node.attributes["axis"]], node.attributes.get("descending", False))


def top_k(model, node, x, types):
    return best(model, x[0], node, node.attributes["k"], node.attributes.get("largest", True))


def cast(model, node, x, types):
    return model.op("Cast", x[0], to=DTYPES[node.attributes["to"]])


def conv(kind):
    def emit(model, node, x, types):
        n = len(types[0].shape) - 2
        strides, pads, dilations, groups = graph_text.window(node.attributes, n)
        extra = {"output_padding": node.attributes.get("output_padding") or [0] * n} if kind != "Conv" else {}
        return model.op(kind, *x, kernel_shape=types[1].shape[2:], strides=strides, pads=pads, dilations=dilations,
                        group=groups, **extra)
    return emit


def pool(model, node, x, types):
    words = node.attributes
    strides, pads, dilations, _ = graph_text.window(words, len(types[0].shape) - 2)
    mean = words["kind"] == "mean"
    extra = {"count_include_pad": int(words.get("count_include_pad", False))} if mean else {}
    return model.op("AveragePool" if mean else "MaxPool", x[0], kernel_shape=words["kernel"], strides=strides,
                    pads=pads, dilations=dilations, ceil_mode=int(words.get("ceil", False)), **extra)


def same(kind):
    return lambda model, node, x, types: model.op(kind, *x)


def unary(op):
    return OPS[op]


OPS = {
    **{op: same(op) for op in ("Abs", "Add", "Div", "Erf", "Exp", "Max", "Min", "Mul", "Neg", "Relu", "Sigmoid", "Sin",
                               "Sqrt", "Sub", "Tanh", "Gelu")},
    "GeluApprox": lambda model, node, x, types: model.op("Gelu", x[0], approximate="tanh"),
    "Silu": lambda model, node, x, types: model.op("Mul", x[0], model.op("Sigmoid", x[0])),
    "MatMul": lambda model, node, x, types: product(model, x[0], x[1], types,
                                                    node.attributes.get("transpose_b", False)),
    "FusedMatMulBiasAct": linear,
    "LayerNorm": lambda model, node, x, types: model.op("LayerNormalization", *x, axis=-1,
                                                        epsilon=node.attributes["eps"]),
    "RmsNorm": lambda model, node, x, types: rms_norm(model, x[0], x[1], node.attributes["eps"]),
    "FusedResidualRmsNorm": residual_norm,
    "Softmax": lambda model, node, x, types: model.op("Softmax", x[0], axis=node.attributes["axis"]),
    "Reduce": reduce_,
    "CumSum": lambda model, node, x, types: model.op("CumSum", x[0], model.store(np.int64(node.attributes["axis"]))),
    "Sort": sort,
    "TopK": top_k,
    "Rope": rope,
    "Attention": attention,
    "Transpose": lambda model, node, x, types: model.op("Transpose", x[0], perm=node.attributes["perm"]),
    "Reshape": lambda model, node, x, types: model.op("Reshape", x[0], model.ints(node.results[0].shape)),
    "Cast": cast,
    "Conv": conv("Conv"),
    "ConvTranspose": conv("ConvTranspose"),
    "Pool": pool,
}


def convert(graph):
    """The model, whose inputs have the graph's names."""
    return Model(graph).proto()
