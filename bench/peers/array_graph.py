"""A graph in text form as a function of arrays, in JAX or in PyTorch: one row for each op of either library.

  run = array_graph.function(graph, array_graph.Jax())     run(params, inputs) gives the first output
"""

import math

import numpy as np

import graph_text
import values


class Jax:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        self.jax, self.np = jax, jnp
        self.dtypes = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16, "f64": jnp.float64}
        nn = jax.nn
        self.unary = {"Gelu": lambda x: nn.gelu(x, approximate=False), "GeluApprox": nn.gelu, "Silu": nn.silu,
                      "Relu": nn.relu, "Sigmoid": nn.sigmoid, "Erf": jax.scipy.special.erf, "Exp": jnp.exp,
                      "Tanh": jnp.tanh, "Abs": jnp.abs, "Sin": jnp.sin, "Sqrt": jnp.sqrt, "Neg": jnp.negative}
        self.reductions = {"sum": jnp.sum, "mean": jnp.mean, "max": jnp.max, "min": jnp.min}
        self.softmax = lambda x, axis: nn.softmax(x, axis=axis)
        self.cumsum, self.sort, self.largest = jnp.cumsum, jnp.sort, lambda x, k, axis: jax.lax.top_k(x, k)[0]
        self.rsqrt, self.where, self.concat, self.max, self.min = (
            jax.lax.rsqrt, jnp.where, lambda xs: jnp.concatenate(xs, -1), jnp.maximum, jnp.minimum)

    def array(self, numbers, dtype):
        return self.np.asarray(numbers, self.dtypes[dtype])

    def cast(self, x, dtype):
        return x.astype(self.dtypes[dtype])

    def transpose(self, x, perm):
        return x.transpose(perm)

    def reduce(self, kind, x, axes, keep):
        return self.reductions[kind](x, axis=tuple(axes), keepdims=keep)

    def conv(self, x, w, strides, pads, dilations, groups, inner=None):
        n = len(strides)
        return self.jax.lax.conv_general_dilated(x, w, strides, list(zip(pads[:n], pads[n:])), lhs_dilation=inner,
                                                 rhs_dilation=dilations, feature_group_count=groups)

    def conv_transpose(self, x, w, strides, pads, dilations, groups, extra):
        assert groups == 1, "JAX has no transposed convolution of groups in one call"
        n = len(strides)
        w = self.np.flip(self.np.swapaxes(w, 0, 1), range(2, 2 + n))
        reach = [d * (k - 1) for d, k in zip(dilations, w.shape[2:])]
        around = [r - p for r, p in zip(reach, pads)] + [r - p + e for r, p, e in zip(reach, pads[n:], extra)]
        return self.conv(x, w, [1] * n, around, dilations, 1, inner=strides)

    def pool(self, kind, x, kernel, strides, pads):
        n, lax = len(kernel), self.jax.lax
        around = [(0, 0), (0, 0), *zip(pads[:n], pads[n:])]
        if kind == "max":
            return lax.reduce_window(x, -np.inf, lax.max, (1, 1, *kernel), (1, 1, *strides), around)
        assert not any(pads), "a mean of fewer cells"
        return lax.reduce_window(x, 0.0, lax.add, (1, 1, *kernel), (1, 1, *strides), around) / math.prod(kernel)


class Torch:
    def __init__(self):
        import torch
        import torch.nn.functional as F
        self.torch, self.F = torch, F
        self.dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
        self.unary = {"Gelu": F.gelu, "GeluApprox": lambda x: F.gelu(x, approximate="tanh"), "Silu": F.silu,
                      "Relu": F.relu, "Sigmoid": torch.sigmoid, "Erf": torch.erf, "Exp": torch.exp, "Tanh": torch.tanh,
                      "Abs": torch.abs, "Sin": torch.sin, "Sqrt": torch.sqrt, "Neg": torch.neg}
        self.reductions = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
        self.softmax = F.softmax
        self.cumsum, self.sort, self.largest = (torch.cumsum, lambda x, axis: torch.sort(x, axis)[0],
                                                lambda x, k, axis: torch.topk(x, k, axis)[0])
        self.rsqrt, self.where, self.concat, self.max, self.min = (
            torch.rsqrt, torch.where, lambda xs: torch.cat(xs, -1), torch.maximum, torch.minimum)

    def array(self, numbers, dtype):
        return self.torch.from_numpy(np.array(numbers, np.float32)).to(self.dtypes[dtype])

    def cast(self, x, dtype):
        return x.to(self.dtypes[dtype])

    def transpose(self, x, perm):
        return x.permute(perm).contiguous()

    def reduce(self, kind, x, axes, keep):
        return self.reductions[kind](x, dim=axes, keepdim=keep)

    def symmetric(self, x, pads, value=0.0):
        """x and the pads that a call takes, which are the same at both ends."""
        n = len(pads) // 2
        if pads[:n] == pads[n:]:
            return x, pads[:n]
        return self.F.pad(x, [p for d in reversed(range(n)) for p in (pads[d], pads[n + d])], value=value), [0] * n

    def conv(self, x, w, strides, pads, dilations, groups):
        x, pads = self.symmetric(x, pads)
        call = (self.F.conv1d, self.F.conv2d, self.F.conv3d)[len(strides) - 1]
        return call(x, w, None, strides, pads, dilations, groups)

    def conv_transpose(self, x, w, strides, pads, dilations, groups, extra):
        n = len(strides)
        assert pads[:n] == pads[n:]
        call = (self.F.conv_transpose1d, self.F.conv_transpose2d, self.F.conv_transpose3d)[n - 1]
        return call(x, w, None, strides, pads[:n], extra, groups, dilations)

    def pool(self, kind, x, kernel, strides, pads):
        n, F = len(kernel), self.F
        if kind == "max":
            x, pads = self.symmetric(x, pads, -math.inf)
            return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1](x, kernel, strides, pads)
        assert not any(pads), "a mean of fewer cells"
        return (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1](x, kernel, strides)


def product(lib, words, x):
    a, b = x
    if a.dtype != b.dtype:
        a, b = lib.cast(a, "f32"), lib.cast(b, "f32")
    return a @ (b.swapaxes(-1, -2) if words.get("transpose_b", False) else b)


def linear(lib, words, x):
    y = product(lib, words, x[:2])
    y = y + x[2] if len(x) > 2 else y
    return lib.unary[words["act"]](y) if words.get("act", "") else y


def rms_norm(lib, words, x):
    return x[0] * lib.rsqrt(lib.reduce("mean", x[0] * x[0], [-1], True) + words["eps"]) * x[1]


def layer_norm(lib, words, x):
    centred = x[0] - lib.reduce("mean", x[0], [-1], True)
    return centred * lib.rsqrt(lib.reduce("mean", centred * centred, [-1], True) + words["eps"]) * x[1] + x[2]


def residual_norm(lib, words, x):
    total = x[0] + x[1]
    return rms_norm(lib, words, [total, x[2]]), total


def rope(lib, words, x):
    assert words["style"] == "neox" and words["packed"] and words["n_rot"] == words["head_dim"]
    dim = words["head_dim"]
    t = x[0].reshape(*x[0].shape[:-1], -1, dim)
    a, b = t[..., :dim // 2], t[..., dim // 2:]
    cos, sin = x[1][:, None, :], x[2][:, None, :]
    return lib.concat([a * cos - b * sin, b * cos + a * sin]).reshape(x[0].shape)


def attention(lib, words, x):
    heads, mask = words["heads"], words.get("mask", "none")
    assert words["kv_heads"] == heads and mask in ("none", "causal"), "attention of another kind"
    parts = []
    for operand in x[:3]:
        shape, turn = graph_text.heads_first(words, list(operand.shape), heads)
        parts.append(lib.transpose(operand.reshape(shape), turn) if turn[1] == 2 else operand)
    q, k, v = parts
    s = q @ k.swapaxes(-1, -2) * (words.get("scale", 0.0) or 1 / math.sqrt(words["head_dim"]))
    if mask == "causal":
        sq, sk = s.shape[-2:]
        s = s + lib.array(np.triu(np.full((sq, sk), -1e9, np.float32), 1 + sk - sq), "f32")
    y = lib.softmax(s, -1) @ v
    return (lib.transpose(y, turn) if turn[1] == 2 else y).reshape(x[0].shape)


def with_bias(lib, y, x):
    return y + x[2].reshape(-1, *[1] * (len(y.shape) - 2)) if len(x) > 2 else y


def conv(lib, words, x):
    return with_bias(lib, lib.conv(x[0], x[1], *graph_text.window(words, len(x[0].shape) - 2)), x)


def conv_transpose(lib, words, x):
    n = len(x[0].shape) - 2
    extra = words.get("output_padding") or [0] * n
    return with_bias(lib, lib.conv_transpose(x[0], x[1], *graph_text.window(words, n), extra), x)


def pool(lib, words, x):
    strides, pads, dilations, _ = graph_text.window(words, len(words["kernel"]))
    assert set(dilations) == {1} and not words.get("ceil", False), "a pool of another kind"
    return lib.pool(words["kind"], x[0], words["kernel"], strides, pads)


OPS = {
    "Add": lambda lib, words, x: x[0] + x[1],
    "Sub": lambda lib, words, x: x[0] - x[1],
    "Mul": lambda lib, words, x: x[0] * x[1],
    "Div": lambda lib, words, x: x[0] / x[1],
    "Max": lambda lib, words, x: lib.max(x[0], x[1]),
    "Min": lambda lib, words, x: lib.min(x[0], x[1]),
    "MatMul": product,
    "FusedMatMulBiasAct": linear,
    "LayerNorm": layer_norm,
    "RmsNorm": rms_norm,
    "FusedResidualRmsNorm": residual_norm,
    "Softmax": lambda lib, words, x: lib.softmax(x[0], words["axis"]),
    "CumSum": lambda lib, words, x: lib.cumsum(x[0], words["axis"]),
    "Sort": lambda lib, words, x: lib.sort(x[0], words["axis"]),
    "TopK": lambda lib, words, x: lib.largest(x[0], words["k"], words["axis"]),  # of the last axis
    "Reduce": lambda lib, words, x: lib.reduce(words["op"], x[0], words["axes"], words["keep_dim"]),
    "Rope": rope,
    "Attention": attention,
    "Transpose": lambda lib, words, x: lib.transpose(x[0], words["perm"]),
    "Cast": lambda lib, words, x: lib.cast(x[0], words["to"]),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Pool": pool,
}


def params(graph, lib):
    """By name."""
    return {node.attributes["name"]: lib.array(values.leaf(node.results[0], index, True), node.results[0].dtype)
            for index, node in enumerate(graph.nodes) if node.op == "Param"}


def function(graph, lib):
    """Of params and inputs by name, to the first output."""
    constants = {index: lib.array(values.literal(node), node.results[0].dtype)
                 for index, node in enumerate(graph.nodes) if node.op == "Constant"}

    def run(weights, inputs):
        made = []
        for index, node in enumerate(graph.nodes):
            x = [made[n][r] for n, r in node.operands]
            if node.op in ("Input", "Param"):
                y = (inputs if node.op == "Input" else weights)[node.attributes["name"]]
            elif node.op == "Constant":
                y = constants[index]
            elif node.op == "Reshape":
                y = x[0].reshape(node.results[0].shape)
            elif node.op in lib.unary:
                y = lib.unary[node.op](x[0])
            elif node.op in OPS:
                y = OPS[node.op](lib, node.attributes, x)
            else:
                raise ValueError(f"{node.op} has no row in array_graph.py")
            made.append(y if isinstance(y, tuple) else (y,))
        node, result = graph.outputs[0]
        return made[node][result]

    return run
