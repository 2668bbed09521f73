"""A graph of one primitive and what may follow it (bias, activation) by oneDNN alone, through its C interface.

  call, output = onednn.prepare(graph_text.read("bench/graphs/silu_128x3072.qir"), onednn.GIVEN)

The library is version 3 by GNU's OpenMP: `pip install onednn-cpu-gomp`, or DNNL_LIBRARY=libdnnl.so. Parameters are in
the layout that the library asks for, put so before anything is timed. GIVEN: inputs and results lie as the graph says.
ANY: as the library likes them best, and nobody pays for putting them so: what it does inside of a network.
"""

import ctypes
import math
import os
import sys

import numpy as np

import graph_text
import values

GIVEN, ANY = "given", "any"
NUMPY = {"f32": np.float32, "i32": np.int32, "i8": np.int8, "u8": np.uint8, "bf16": np.uint16}
# The numbers of dnnl_types.h.
DTYPES = {"bf16": 2, "f32": 3, "i32": 4, "i8": 5, "u8": 6}
SRC, DST, WEIGHTS, BIAS, SCALE, SHIFT = 1, 17, 33, 41, 51, 52
INFERENCE, SOFTMAX, DIRECT, TRANSPOSED, POOL_MAX, POOL_MEAN = 96, 0x30000, 1, 0xa, 0x1ff, 0x3ff
RELU, TANH, EXP, GELU_TANH, SWISH, GELU_ERF = 0x20, 0x21, 0x2a, 0x2b, 0x2c, 0x31
SRC_MD, WEIGHTS_MD, DST_MD = 129, 131, 133
ACTIVATIONS = {"Relu": (RELU, 0), "Tanh": (TANH, 0), "Exp": (EXP, 0), "GeluApprox": (GELU_TANH, 0), "Silu": (SWISH, 1),
               "Gelu": (GELU_ERF, 0)}


class Argument(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]


def dims(numbers):
    return (ctypes.c_int64 * 12)(*numbers)


def real(number):
    return ctypes.c_float(number)


class Library:
    def __init__(self):
        path = os.environ.get("DNNL_LIBRARY", os.path.join(sys.prefix, "lib", "libdnnl.so"))
        self.dll = ctypes.CDLL(path)
        self.engine = self.new("engine_create", 1, ctypes.c_size_t(0))
        self.stream = self.new("stream_create", self.engine, 1)

    def new(self, name, *arguments):
        made = ctypes.c_void_p()
        self.run(name, ctypes.byref(made), *arguments)
        return made

    def run(self, name, *arguments):
        status = getattr(self.dll, f"dnnl_{name}")(*arguments)
        if status:
            raise RuntimeError(f"dnnl_{name}: status {status}")

    def layout(self, shape, dtype, strides=None):
        """A descriptor; without strides in the layout that the library chooses."""
        if strides is None:
            return self.new("memory_desc_create_with_tag", len(shape), dims(shape), DTYPES[dtype], 1)
        return self.new("memory_desc_create_with_strides", len(shape), dims(shape), DTYPES[dtype], dims(strides))

    def rows(self, shape, dtype):
        return self.layout(shape, dtype, [math.prod(shape[i + 1:]) for i in range(len(shape))])

    def asked(self, primitive, which):
        query = self.dll.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        return ctypes.c_void_p(query(primitive, which, 0))

    def memory(self, layout, address):
        return self.new("memory_create", layout, self.engine, address)

    def room(self, layout):
        """Memory of the library's own: address -1 is DNNL_MEMORY_ALLOCATE."""
        return self.memory(layout, ctypes.c_void_p(2 ** 64 - 1))

    def execute(self, primitive, arguments):
        table = (Argument * len(arguments))(*[Argument(arg, memory.value) for arg, memory in arguments])
        run, handle, stream, count = self.dll.dnnl_primitive_execute, primitive, self.stream, len(arguments)
        return lambda: run(handle, stream, count, table)

    def moved(self, memory, source, target):
        """Memory as `target` says, of what `memory` has as `source` says."""
        made = self.room(target)
        plan = self.new("reorder_primitive_desc_create", source, self.engine, target, self.engine, None)
        self.execute(self.new("primitive_create", plan), [(SRC, memory), (DST, made)])()
        return made


class Case:
    """What a graph of one primitive says: its node, who feeds it, what follows it."""

    def __init__(self, graph):
        self.graph, body = graph, [n for n in graph.nodes if n.op not in ("Input", "Param")]
        self.node, self.bias, self.activations = body[0], None, []
        self.operands = [graph.nodes[at] for at, _ in self.node.operands]
        if any(node.op not in ("Input", "Param") for node in self.operands):
            raise ValueError(f"{self.node.op} of a computed operand is more than one primitive")
        for node in body[1:]:
            sides = [graph.nodes[at] for at, _ in node.operands]
            if node.op == "Add" and sides[1].op == "Param" and len(sides[1].results[0].shape) == 1 and not self.bias:
                self.bias = sides[1]
            elif node.op in ACTIVATIONS:
                self.activations.append(ACTIVATIONS[node.op])
            elif node.op != "Cast":  # the product's result may be of another dtype
                raise ValueError(f"{node.op} after {self.node.op} is another primitive")
        self.result = body[-1].results[0]

    def array(self, node):
        """What it holds, the same as in the other systems but for bytes, which those are not given."""
        kind, seed = node.results[0], self.graph.nodes.index(node)
        if node.op == "Input":
            seed = 1000 + self.graph.leaves("Input").index(node)
        if kind.dtype in ("i8", "u8"):
            low = -127 if kind.dtype == "i8" else 0
            return np.random.default_rng(seed).integers(low, 128, kind.shape, NUMPY[kind.dtype])
        drawn = values.leaf(kind, seed, node.op == "Param")
        return values.bf16_bits(drawn) if kind.dtype == "bf16" else drawn


def product(lib, case, sides, result, post, free):
    x, w = (node.results[0] for node in case.operands)
    shape = list(w.shape)
    given = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    if case.node.attributes.get("transpose_b"):
        shape[-2:], given[-2:] = shape[:-3:-1], given[:-3:-1]
    while len(shape) < len(x.shape):
        shape, given = [1, *shape], [math.prod(w.shape), *given]
    sides[WEIGHTS] = (case.operands[1], lib.layout(shape, w.dtype, given))
    dynamic = case.operands[1].op == "Input"
    bias = None
    if case.bias:
        bias = lib.rows([1] * (len(shape) - 1) + case.bias.results[0].shape, "f32")
        sides[BIAS] = (case.bias, bias)
    return lib.new("matmul_primitive_desc_create", lib.engine, free(x),
                   lib.layout(shape, w.dtype, given if dynamic else None), bias, free(result), post)


def convolution(lib, case, sides, result, post, free):
    x, w = (node.results[0] for node in case.operands[:2])
    spatial = len(x.shape) - 2
    strides, pads, dilations, groups = graph_text.window(case.node.attributes, spatial)
    transposed = case.node.op == "ConvTranspose"
    shape = list(w.shape)
    given = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    if transposed:  # [in, out, ...] is what the file has
        if groups != 1:
            raise ValueError("transposed convolutions of groups have no row in onednn.py")
        shape[:2], given[:2] = shape[1::-1], given[1::-1]
    if groups > 1:
        shape, given = [groups, shape[0] // groups, *shape[1:]], [given[0] * shape[0] // groups, *given]
    sides[WEIGHTS] = (case.operands[1], lib.layout(shape, w.dtype, given))
    bias = None
    if len(case.operands) > 2:
        bias = lib.rows(case.operands[2].results[0].shape, "f32")
        sides[BIAS] = (case.operands[2], bias)
    name = "deconvolution" if transposed else "convolution"
    return lib.new(f"{name}_forward_primitive_desc_create", lib.engine, INFERENCE, TRANSPOSED if transposed else DIRECT,
                   free(x), lib.layout(shape, w.dtype), bias, free(result), dims(strides),
                   dims([d - 1 for d in dilations]), dims(pads[:spatial]), dims(pads[spatial:]), post)


def softmax(lib, case, sides, result, post, free):
    rank = len(result.shape)
    return lib.new("softmax_forward_primitive_desc_create", lib.engine, INFERENCE, SOFTMAX, free(result), free(result),
                   case.node.attributes["axis"] % rank, post)


def layer_norm(lib, case, sides, result, post, free):
    for arg, node in zip((SCALE, SHIFT), case.operands[1:]):
        sides[arg] = (node, lib.rows(node.results[0].shape, "f32"))
    return lib.new("layer_normalization_forward_primitive_desc_create", lib.engine, INFERENCE, free(result),
                   free(result), None, real(case.node.attributes["eps"]), 6, post)


def pool(lib, case, sides, result, post, free):
    x = case.operands[0].results[0]
    spatial = len(x.shape) - 2
    strides, pads, dilations, _ = graph_text.window(case.node.attributes, spatial)
    kind = POOL_MAX if case.node.attributes["kind"] == "max" else POOL_MEAN
    return lib.new("pooling_forward_primitive_desc_create", lib.engine, INFERENCE, kind, free(x), free(result),
                   dims(strides), dims(case.node.attributes["kernel"]), dims([d - 1 for d in dilations]),
                   dims(pads[:spatial]), dims(pads[spatial:]), post)


def pointwise(lib, case, sides, result, post, free):
    kind, alpha = ACTIVATIONS[case.node.op]
    return lib.new("eltwise_forward_primitive_desc_create", lib.engine, INFERENCE, kind, free(result), free(result),
                   real(alpha), real(0), post)


PRIMITIVES = {"MatMul": product, "Conv": convolution, "ConvTranspose": convolution, "Softmax": softmax,
              "LayerNorm": layer_norm, "Pool": pool, **{op: pointwise for op in ACTIVATIONS}}


def prepare(graph, layouts):
    case = Case(graph)
    if case.node.op not in PRIMITIVES:
        raise ValueError(f"{case.node.op} has no row in onednn.py")
    lib, sides = Library(), {}
    post = None
    if case.activations:
        chain = lib.new("post_ops_create")
        for kind, alpha in case.activations:
            lib.run("post_ops_append_eltwise", chain, kind, real(alpha), real(0))
        post = lib.new("primitive_attr_create")
        lib.run("primitive_attr_set_post_ops", post, chain)

    def free(kind):
        return lib.layout(kind.shape, kind.dtype) if layouts == ANY else lib.rows(kind.shape, kind.dtype)

    plan = PRIMITIVES[case.node.op](lib, case, sides, case.result, post, free)
    kept, arguments = [], []
    sides[SRC] = (case.operands[0], lib.rows(case.operands[0].results[0].shape, case.operands[0].results[0].dtype))
    asked = {SRC: SRC_MD, WEIGHTS: WEIGHTS_MD}
    for arg, (node, layout) in sides.items():
        kept.append(np.ascontiguousarray(case.array(node)))
        memory = lib.memory(layout, ctypes.c_void_p(kept[-1].ctypes.data))
        if arg in asked:
            target = lib.asked(plan, asked[arg])
            memory = memory if lib.dll.dnnl_memory_desc_equal(layout, target) else lib.moved(memory, layout, target)
        arguments.append((arg, memory))
    wanted, result = lib.asked(plan, DST_MD), lib.rows(case.result.shape, case.result.dtype)
    answer = lib.room(wanted)
    call = lib.execute(lib.new("primitive_create", plan), [*arguments, (DST, answer)])
    if call():
        raise RuntimeError("dnnl_primitive_execute failed")

    def output(kept=kept):
        memory, address = lib.moved(answer, wanted, result), ctypes.c_void_p()
        lib.run("memory_get_data_handle", memory, ctypes.byref(address))
        count = math.prod(case.result.shape) * np.dtype(NUMPY[case.result.dtype]).itemsize
        return np.frombuffer(ctypes.string_at(address, count), NUMPY[case.result.dtype])

    return call, output
