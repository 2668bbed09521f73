"""Values of a graph that is being built: operators, indices and ops by name on them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import arrays
from .errors import QuernError

if TYPE_CHECKING:
    from .graph import Graph


class Value:
    """A tensor inside a graph that is being built. Operators and the functions of ``quern`` make new ones.

    Numbers and arrays beside a value become constants: a number takes the dtype of the value, and dtypes that differ
    are cast to their common one.
    """

    __slots__ = ("graph", "node")
    __array_ufunc__ = None  # numpy leaves operators to us
    __hash__ = object.__hash__

    def __init__(self, graph: "Graph", node: tuple[int, int]) -> None:
        self.graph = graph
        self.node = node

    @property
    def type(self) -> str:
        """``"f32[BATCH, 80]"``."""
        return self.graph._graph.type_of(self.node)

    @property
    def dtype(self) -> str:
        return arrays.split_type(self.type)[0]

    @property
    def shape(self) -> tuple[Union[int, str], ...]:
        """Numbers, and as text the sizes that a run chooses."""
        return arrays.split_type(self.type)[1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<quern.Value %{self.node[0]}: {self.type}>"

    def __len__(self) -> int:
        shape = self.shape
        if not shape or not isinstance(shape[0], int):
            raise TypeError(f"{self!r} has no length that is known now")
        return shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a value has no truth while a graph is built: use quern.where or quern.if_")

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # Arithmetic.
    def __add__(self, other): return apply("Add", [self, other])
    def __radd__(self, other): return apply("Add", [other, self])
    def __sub__(self, other): return apply("Sub", [self, other])
    def __rsub__(self, other): return apply("Sub", [other, self])
    def __mul__(self, other): return apply("Mul", [self, other])
    def __rmul__(self, other): return apply("Mul", [other, self])
    def __truediv__(self, other): return _true_divide(self, other)
    def __rtruediv__(self, other): return _true_divide(other, self)
    def __floordiv__(self, other): return _floor_divide(self, other)
    def __rfloordiv__(self, other): return _floor_divide(other, self)
    def __mod__(self, other): return apply("Mod", [self, other])
    def __rmod__(self, other): return apply("Mod", [other, self])
    def __pow__(self, other): return _power(self, other)
    def __rpow__(self, other): return apply("Pow", [other, self])
    def __matmul__(self, other): return apply("MatMul", [self, other])
    def __rmatmul__(self, other): return apply("MatMul", [other, self])
    def __neg__(self): return apply("Neg", [self])
    def __pos__(self): return self
    def __abs__(self): return apply("Abs", [self])
    def __and__(self, other): return apply("BitAnd", [self, other])
    def __rand__(self, other): return apply("BitAnd", [other, self])
    def __or__(self, other): return apply("BitOr", [self, other])
    def __ror__(self, other): return apply("BitOr", [other, self])
    def __xor__(self, other): return apply("BitXor", [self, other])
    def __rxor__(self, other): return apply("BitXor", [other, self])
    def __lshift__(self, other): return apply("Shl", [self, other])
    def __rshift__(self, other): return apply("Shr", [self, other])
    def __invert__(self): return apply("Not" if self.dtype == "bool" else "BitNot", [self])
    # Comparisons give bools, element by element; values are told apart by `is`.
    def __eq__(self, other): return apply("Eq", [self, other])  # type: ignore[override]
    def __ne__(self, other): return apply("Ne", [self, other])  # type: ignore[override]
    def __lt__(self, other): return apply("Lt", [self, other])
    def __le__(self, other): return apply("Le", [self, other])
    def __gt__(self, other): return apply("Gt", [self, other])
    def __ge__(self, other): return apply("Ge", [self, other])

    def __getitem__(self, key) -> "Value":
        """Whole numbers, slices, ``None`` and ``...``, as numpy has them; an i32 or i64 value picks along dimension 0.

        Errors: out_of_range, more of them than dimensions.
        """
        if isinstance(key, Value):
            return apply("Gather", [self, key], {"axis": 0})
        keys = key if isinstance(key, tuple) else (key,)
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if used > self.ndim or sum(k is Ellipsis for k in keys) > 1:
            raise QuernError(f"{len(keys)} indices do not fit {self.type}", "out_of_range")
        if not any(k is Ellipsis for k in keys):
            keys = (*keys, Ellipsis)
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys = (*keys[:at], *[slice(None)] * (self.ndim - used), *keys[at + 1:])
        axes, starts, stops, steps, shape, dim = [], [], [], [], [], 0
        sizes = self.shape
        whole = True
        result = self
        for k in keys:
            if k is None:
                shape.append(1)
                whole = False
                continue
            size = sizes[dim]
            if isinstance(k, slice):
                if k == slice(None):
                    shape.append(size)
                else:
                    start, stop, step = _bounds(k, size)
                    axes.append(dim)
                    starts.append(start)
                    stops.append(stop)
                    steps.append(step)
                    shape.append((dim,))  # what the slice has there
            else:
                index = operator.index(k)
                if isinstance(size, int) and not -size <= index < size:
                    raise QuernError(f"index {index} is outside of {self.type}, dimension {dim}", "out_of_range")
                if index < 0:
                    index = size + index if isinstance(size, int) else f"{size} - {-index}"
                axes.append(dim)
                starts.append(str(index))
                stops.append(str(index + 1) if isinstance(index, int) else f"{index} + 1")
                steps.append(1)
                whole = False
            dim += 1
        if axes:
            result = apply("Slice", [self], {"axis": axes, "start": starts, "stop": stops, "step": steps})
        if whole:
            return result
        made = result.shape
        return result.reshape(*[made[s[0]] if isinstance(s, tuple) else s for s in shape])

    # What arrays have as methods.
    def reshape(self, *shape) -> "Value":
        """The same elements in row-major order with other extents, of which one may be -1."""
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, str)) else shape
        return apply("Reshape", [self], {"shape": [str(e) for e in extents]})

    def transpose(self, *perm) -> "Value":
        """Dimension d of the result is dimension perm[d]; without perm their order is reversed."""
        order = perm[0] if len(perm) == 1 and not isinstance(perm[0], int) else perm
        return apply("Transpose", [self], {"perm": list(order) or list(range(self.ndim))[::-1]})

    @property
    def T(self) -> "Value":
        return self.transpose()

    def astype(self, dtype) -> "Value":
        """Converted values; float to integer saturates, NaN becomes 0."""
        return apply("Cast", [self], {"to": arrays.dtype_name(dtype)})

    def _reduce(self, op: str, axis, keepdims: bool) -> "Value":
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        return apply("Reduce", [self], {"op": op, "axes": [a + self.ndim if a < 0 else a for a in axes],
                                        "keep_dim": keepdims})

    def sum(self, axis=None, keepdims: bool = False) -> "Value":
        return self._reduce("sum", axis, keepdims)

    def mean(self, axis=None, keepdims: bool = False) -> "Value":
        return self._reduce("mean", axis, keepdims)

    def max(self, axis=None, keepdims: bool = False) -> "Value":
        return self._reduce("max", axis, keepdims)

    def min(self, axis=None, keepdims: bool = False) -> "Value":
        return self._reduce("min", axis, keepdims)

    def prod(self, axis=None, keepdims: bool = False) -> "Value":
        return self._reduce("prod", axis, keepdims)


def _power(x: Value, exponent) -> Value:
    """Whole numbers by a whole exponent are products of squares: Pow is of floats."""
    if x.dtype[0] not in "iu" or not isinstance(exponent, (int, np.integer)) or isinstance(exponent, bool):
        return apply("Pow", [x, exponent])
    if exponent < 0:
        raise QuernError(f"whole numbers to the power of {exponent}: cast to a float first", "invalid")
    if exponent < 2:
        return x if exponent == 1 else x * 0 + 1
    half = _power(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half


def _bounds(k: slice, size) -> tuple[str, str, int]:
    """Start, stop and step of a slice of a dimension, as text of extents."""
    step = 1 if k.step is None else operator.index(k.step)
    if step == 0:
        raise QuernError("a slice has a step of 0", "invalid")
    if isinstance(size, int):
        start, stop, step = k.indices(size)
        return (str(start), str(stop), step) if range(start, stop, step) else ("0", "0", 1)
    if step < 0:
        raise QuernError(f"a slice of the dimension {size}, which a run chooses, goes downwards: quern.reverse does",
                         "unsupported")

    def place(at, default):
        if at is None:
            return default
        at = operator.index(at)
        return str(at) if at >= 0 else f"{size} - {-at}"
    return place(k.start, "0"), place(k.stop, str(size)), step


def _dtype_of_number(value, beside: Sequence[Value]) -> np.dtype:
    """A number takes the dtype of the values beside it, as far as that can hold it."""
    dtypes = [v.dtype for v in beside]
    kind = next((d for d in dtypes if d in ("f32", "f64", "f16", "bf16", "c64")), dtypes[0])
    if isinstance(value, bool):
        return np.dtype(bool) if kind == "bool" else arrays.numpy_dtype(kind)
    if isinstance(value, complex):
        return np.dtype(np.complex64)
    if isinstance(value, float) and kind[0] in "iu" or kind == "bool":
        return np.dtype(np.float32 if isinstance(value, float) else np.int64)
    if kind == "bf16" or kind == "f16":  # halves hold what the number says as well as they can
        return arrays.numpy_dtype(kind) if kind == "f16" else np.dtype(np.float32)
    return arrays.numpy_dtype(kind)


def _operands(operands: Sequence[Any]) -> tuple["Graph", list[tuple[int, int]]]:
    values = [o for o in operands if isinstance(o, Value)]
    if not values:
        raise TypeError("no operand is a value of a graph: functions of quern build graphs, inside quern.jit or on "
                        "what Graph.input gives")
    graph = values[0].graph
    nodes = []
    for o in operands:
        if o is None:
            nodes.append((-1, 0))
        elif isinstance(o, Value):
            if o.graph is not graph:
                raise QuernError(f"values of two graphs: {values[0]!r} and {o!r}", "unknown_operand")
            nodes.append(o.node)
        elif isinstance(o, (bool, int, float, complex)):
            dtype = _dtype_of_number(o, values)
            value = graph.constant(np.asarray(o, dtype))
            like = values[0].dtype
            nodes.append((value.astype(like) if like == "bf16" and dtype == np.float32 else value).node)
        else:
            nodes.append(graph._array(o).node)
    return graph, nodes


def apply(op: str, operands: Sequence[Any], attributes: Optional[Mapping[str, Any]] = None, label: str = "",
          bodies: Sequence["Graph"] = (), graph: Optional["Graph"] = None, block: bool = False) -> Any:
    """Adds an op (or block) by name; its result, or a tuple where it has several. ``quern.ops`` has a function of each.

    Errors: those of the op, with its label, and the operand or attribute that is wrong.
    """
    nodes: list[tuple[int, int]] = []
    if graph is None or any(o is not None for o in operands):
        graph, nodes = _operands(operands)
    given = {name: _attribute(value) for name, value in (attributes or {}).items() if value is not None}
    g = graph._graph
    if block:
        made = g.block(op, nodes, given, label)
    else:
        try:
            made = g.op(op, nodes, given, label, [b._graph for b in bodies])
        except QuernError as error:
            if error.code != "dtype_mismatch" or bodies:
                raise
            try:
                made = g.promoted(op, nodes, given, label)
            except QuernError:
                raise error from None
    for body in bodies:
        graph._kept.extend(body._kept)
    results = tuple(Value(graph, node) for node in made)
    return results[0] if len(results) == 1 else results


def _attribute(value):
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_attribute(v) for v in value] if all(not isinstance(v, str) for v in value) else [str(v) for v in value]
    return arrays.dtype_name(value)


def _true_divide(a, b) -> Value:
    if all(isinstance(v, int) or isinstance(v, Value) and v.dtype[0] in "iub" and v.dtype != "bf16" for v in (a, b)):
        a = a.astype("f32") if isinstance(a, Value) else float(a)
        b = b.astype("f32") if isinstance(b, Value) else float(b)
    return apply("Div", [a, b])


def _floor_divide(a, b) -> Value:
    value = a if isinstance(a, Value) else b
    if value.dtype[0] == "f" or value.dtype == "bf16" or isinstance(a, float) or isinstance(b, float):
        return apply("Floor", [apply("Div", [a, b])])
    # Whole numbers are divided towards zero: what is left has the sign of the divisor.
    return apply("Div", [apply("Sub", [a, apply("Mod", [a, b])]), b])
