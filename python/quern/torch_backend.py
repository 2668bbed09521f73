"""``torch.compile(model, backend="quern")``: the ATen ops of the table below are compiled by Quern, in pieces as large
as they come; PyTorch keeps the others. Forward and backward, on the CPU, for sizes that are known.

``quern.torch_backend.report`` has what became of the nodes of the graphs since it was last cleared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import arrays, ops
from .errors import QuernError
from .graph import Graph
from .value import Value, apply

log = logging.getLogger(__name__)
report: list[dict[str, Any]] = []

_DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
           torch.bool: "bool", torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32",
           torch.int64: "i64"}
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
aten = torch.ops.aten


def _axes(x: Value, dims: Optional[Sequence[int]]) -> list[int]:
    return [d % x.ndim for d in (dims if dims else range(x.ndim))] if x.ndim else []


def _reduce(op: str) -> Callable:
    def build(x, dims=None, keepdim=False, *, dtype=None):
        if dtype is not None:
            x = x.astype(dtype)
        dims = [dims] if isinstance(dims, int) else dims
        return ops.reduce(x, op=op, axes=_axes(x, dims), keep_dim=keepdim) if x.ndim else x
    return build


def _scaled(op: str) -> Callable:
    return lambda a, b, alpha=1: apply(op, [a, b if alpha == 1 else b * alpha])


def _permute(x: Value, order: Sequence[int]) -> Value:
    return ops.transpose(x, perm=[d % x.ndim for d in order]) if x.ndim else x


def _swap(x: Value, a: int, b: int) -> Value:
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return _permute(x, order)


def _squeeze(x: Value, dims=None) -> Value:
    dims = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {d % x.ndim for d in dims} if x.ndim else set()
    return x.reshape([n for d, n in enumerate(x.shape) if d not in gone or n != 1])


def _unsqueeze(x: Value, dim: int) -> Value:
    shape = list(x.shape)
    shape.insert(dim % (x.ndim + 1), 1)
    return x.reshape(shape)


def _expand(x: Value, shape: Sequence[int], implicit=False) -> Value:
    skip = len(shape) - x.ndim
    return ops.expand(x, shape=[n if n != -1 else x.shape[d - skip] for d, n in enumerate(shape)])


def _slice(x: Value, dim=0, start=None, end=None, step=1) -> Value:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _select(x: Value, dim: int, index: int) -> Value:
    return x[(slice(None),) * (dim % x.ndim) + (index,)]


def _layer_norm(x, shape, weight, bias, eps):
    axis = x.ndim - len(shape)
    weight = weight if weight is not None else ops.expand(x.graph.constant([1.0]).astype(x.dtype), shape=list(shape))
    return (ops.layer_norm(x, weight, bias, eps=eps, axis=axis), None, None)


def _convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    return ops.conv(x, w, bias, groups=groups, strides=list(stride), pads=list(padding) * 2, dilations=list(dilation))


def _clamp(x, low=None, high=None):
    x = x if low is None else ops.max(x, low)
    return x if high is None else ops.min(x, high)


def _softmax(op: Callable) -> Callable:
    return lambda x, dim, half: op(x.astype("f32") if half else x, axis=dim)


# A builder of each op that is covered: operands are values, other arguments as they are.
TABLE: dict[Any, Callable] = {
    aten.add.Tensor: _scaled("Add"), aten.sub.Tensor: _scaled("Sub"), aten.rsub.Scalar: lambda a, b: b - a,
    aten.mul.Tensor: lambda a, b: a * b, aten.div.Tensor: lambda a, b: a / b, aten.neg.default: lambda a: -a,
    aten.add.Scalar: _scaled("Add"), aten.sub.Scalar: _scaled("Sub"), aten.mul.Scalar: lambda a, b: a * b,
    aten.div.Scalar: lambda a, b: a / b, aten.abs.default: abs, aten.exp.default: ops.exp, aten.log.default: ops.log,
    aten.sqrt.default: ops.sqrt, aten.rsqrt.default: ops.rsqrt, aten.reciprocal.default: ops.recip,
    aten.sin.default: ops.sin, aten.cos.default: ops.cos, aten.tanh.default: ops.tanh, aten.erf.default: ops.erf,
    aten.sigmoid.default: ops.sigmoid, aten.relu.default: ops.relu, aten.silu.default: ops.silu,
    aten.floor.default: ops.floor, aten.ceil.default: ops.ceil, aten.round.default: ops.round,
    aten.gelu.default: lambda x, approximate="none": (ops.gelu if approximate == "none" else ops.gelu_approx)(x),
    aten.leaky_relu.default: lambda x, slope=0.01: ops.where(x > 0, x, x * slope),
    aten.pow.Tensor_Scalar: lambda a, b: a * a if b == 2 else a ** b, aten.pow.Tensor_Tensor: lambda a, b: a ** b,
    aten.maximum.default: ops.max, aten.minimum.default: ops.min, aten.clamp.default: _clamp,
    aten.clamp_min.default: lambda x, low: _clamp(x, low),
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.where.self: ops.where, aten.logical_not.default: lambda a: ~a if a.dtype == "bool" else a == 0,
    aten.eq.Tensor: lambda a, b: a == b, aten.eq.Scalar: lambda a, b: a == b, aten.ne.Scalar: lambda a, b: a != b,
    aten.lt.Tensor: lambda a, b: a < b, aten.lt.Scalar: lambda a, b: a < b, aten.le.Tensor: lambda a, b: a <= b,
    aten.le.Scalar: lambda a, b: a <= b, aten.gt.Tensor: lambda a, b: a > b, aten.gt.Scalar: lambda a, b: a > b,
    aten.ge.Tensor: lambda a, b: a >= b, aten.ge.Scalar: lambda a, b: a >= b,
    aten.mm.default: lambda a, b: a @ b, aten.bmm.default: lambda a, b: a @ b,
    aten.addmm.default: lambda c, a, b, beta=1, alpha=1: (
        (a @ b if alpha == 1 else (a @ b) * alpha) + (c if beta == 1 else c * beta)),
    aten.t.default: lambda x: x.T, aten.permute.default: _permute, aten.transpose.int: _swap,
    aten.view.default: lambda x, shape: x.reshape(shape), aten.reshape.default: lambda x, shape: x.reshape(shape),
    aten._unsafe_view.default: lambda x, shape: x.reshape(shape), aten.unsqueeze.default: _unsqueeze,
    aten.squeeze.dim: _squeeze, aten.squeeze.dims: _squeeze, aten.squeeze.default: _squeeze,
    aten.expand.default: _expand, aten.slice.Tensor: _slice, aten.select.int: _select,
    aten.cat.default: lambda xs, dim=0: ops.concat(*xs, axis=dim % xs[0].ndim),
    aten.clone.default: lambda x, memory_format=None: x, aten.detach.default: lambda x: x,
    aten.alias.default: lambda x: x,
    aten._to_copy.default: lambda x, *, dtype=None, **_: x if dtype is None else x.astype(dtype),
    aten.sum.dim_IntList: _reduce("sum"), aten.mean.dim: _reduce("mean"), aten.amax.default: _reduce("max"),
    aten.amin.default: _reduce("min"), aten.sum.default: _reduce("sum"), aten.mean.default: _reduce("mean"),
    aten._softmax.default: _softmax(ops.softmax), aten._log_softmax.default: _softmax(ops.log_softmax),
    aten.native_layer_norm.default: _layer_norm, aten.embedding.default: lambda w, ids, *_: ops.gather(w, ids, axis=0),
    aten.convolution.default: _convolution,
}


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    return [v for v in (value if isinstance(value, (tuple, list)) else [value]) if v is not None]


class _Covered(OperatorSupportBase):
    """Whether a node is Quern's: in the table, dense on the CPU, of dtypes and sizes that there are."""

    def is_node_supported(self, submodules, node: torch.fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if node.target is _getitem:
            return self.is_node_supported(submodules, node.args[0])
        if node.target not in TABLE:
            return False
        every = [v for n in (node, *node.all_input_nodes) for v in _tensors(n)]
        for v in every:
            if not isinstance(v, torch.Tensor) or v.device.type != "cpu" or v.dtype not in _DTYPES:
                return False
            if v.layout is not torch.strided or not all(isinstance(n, int) for n in v.shape) or v.numel() == 0:
                return False
        if node.target is aten.native_layer_norm.default:  # the statistics are not results of ours
            return all(u.target is _getitem and u.args[1] == 0 for u in node.users)
        if node.target is aten.convolution.default:
            return not node.args[6] and node.args[0].meta["val"].ndim in (3, 4, 5)
        if node.target in (aten.div.Tensor, aten.div.Scalar, aten.mean.dim, aten.mean.default):
            return all(v.dtype in _FLOATS for v in every)
        return True


def _getitem_target():
    import operator
    return operator.getitem


_getitem = _getitem_target()


class _Piece(torch.nn.Module):
    """A piece of a graph as a program."""

    def __init__(self, graph: torch.fx.Graph, options: dict[str, Any]) -> None:
        super().__init__()
        g = Graph("torch")
        values: dict[torch.fx.Node, Any] = {}
        self.inputs: list[str] = []

        def of(argument):
            return torch.fx.node.map_arg(argument, lambda n: values[n])
        for node in graph.nodes:
            if node.op == "placeholder":
                v = node.meta["val"]
                values[node] = g.input(node.name, f"{_DTYPES[v.dtype]}[{', '.join(map(str, v.shape))}]")
                self.inputs.append(node.name)
            elif node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
                self.single = not isinstance(node.args[0], (tuple, list))
                self.outputs = [(f"y{i}", tuple(r.meta["val"].shape), r.meta["val"].dtype)
                                for i, r in enumerate(results)]
                for (name, shape, dtype), r in zip(self.outputs, results):
                    g.output(name, values[r])
            elif node.target is _getitem:
                values[node] = values[node.args[0]][node.args[1]]
            else:
                made = TABLE[node.target](*of(node.args), **of(node.kwargs))
                expected = node.meta["val"]
                if isinstance(made, Value) and isinstance(expected, torch.Tensor):
                    made = made.astype(expected.dtype) if made.dtype != _DTYPES[expected.dtype] else made
                values[node] = made
        self.program = g.compile(**options)

    def forward(self, *args: torch.Tensor) -> Any:
        made = {name: torch.empty(shape, dtype=dtype) for name, shape, dtype in self.outputs}
        self.program.run(dict(zip(self.inputs, args)), made)
        results = tuple(made.values())
        return results[0] if self.single else results


def _compiler(options: dict[str, Any]) -> Callable:
    def compile_pieces(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable:
        calls = [n for n in module.graph.nodes if n.op == "call_function"]
        entry = {"nodes": len(calls), "pieces": 0, "covered": 0,
                 "kept": sorted({str(n.target) for n in calls if n.target not in TABLE and n.target is not _getitem})}
        partitioner = CapabilityBasedPartitioner(module, _Covered(), allows_single_node_partition=False)
        fused = partitioner.partition_and_fuse()
        for name, child in list(fused.named_children()):
            if not name.startswith("fused_"):
                continue
            covered = sum(n.op == "call_function" for n in child.graph.nodes)
            try:
                piece = _Piece(child.graph, options)
            except QuernError as error:  # PyTorch computes it, and whoever looks sees why
                log.warning("a piece of %d nodes stays with PyTorch: %s", covered, error)
                entry["kept"].append(str(error))
                continue
            setattr(fused, name, piece)
            entry["pieces"] += 1
            entry["covered"] += covered
        report.append(entry)
        from functorch.compile import make_boxed_func
        return make_boxed_func(fused.forward)
    return compile_pieces


def compile_graph(module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Any = None) -> Callable:
    """The backend. ``torch.compile(model, backend="quern", options={"threads": 2})``: options of Graph.compile."""
    compiler = _compiler(dict(options or {}))
    return aot_autograd(fw_compiler=compiler, bw_compiler=compiler)(module, example_inputs)
