"""Graphs: built by operators on values, compiled to programs, run on arrays."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _quern, arrays
from .errors import QuernError
from .profile import Profile

_LARGE = 256  # elements of an array that is an operand: from here on a parameter, which is not copied


def _adapter(given: Any) -> _quern.LoraAdapter:
    """Of a path, or of a pair of a path and a scale."""
    made = _quern.LoraAdapter()
    path, made.scale = given if isinstance(given, tuple) else (given, 1.0)
    made.path = os.fspath(path)
    return made


def options_of(options: Mapping[str, Any]) -> _quern.Options:
    """The options of C++ by name: cpu, threads, compile_threads, exact, kernels, cache, check, context, ..."""
    made = _quern.Options()
    for name, value in options.items():
        if not hasattr(made, name):
            known = ", ".join(n for n in dir(made) if not n.startswith("_"))
            raise TypeError(f"there is no option {name!r}: there are {known}")
        if name == "lora":
            value = [_adapter(each) for each in value]
        setattr(made, name, os.fspath(value) if isinstance(value, os.PathLike) else value)
    return made


def _split(type_: str) -> tuple[str, tuple[Union[int, str], ...]]:
    """``("f32", ("BATCH", 80))`` of ``"f32[BATCH, 80]"``."""
    dtype, _, rest = type_.partition("[")
    sizes, depth, start = [], 0, 0
    for at, c in enumerate(rest):  # sizes may have calls in them: ceil(S / 2)
        depth += (c == "(") - (c == ")")
        if c in ",]" and depth == 0:
            text = rest[start:at].strip()
            start = at + 1
            if text:
                sizes.append(int(text) if text.lstrip("-").isdigit() else text)
    return dtype, tuple(sizes)


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
        return _split(self.type)[0]

    @property
    def shape(self) -> tuple[Union[int, str], ...]:
        """Numbers, and as text the sizes that a run chooses."""
        return _split(self.type)[1]

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
    def __pow__(self, other): return apply("Pow", [self, other])
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


def _bounds(k: slice, size) -> tuple[str, str, int]:
    """Start, stop and step of a slice of a dimension, as text of extents."""
    step = 1 if k.step is None else operator.index(k.step)
    if step == 0:
        raise QuernError("a slice has a step of 0", "invalid")
    if isinstance(size, int):
        start, stop, step = k.indices(size)
        return str(start), str(max(start, stop) if step > 0 else stop), step
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


class Graph:
    """A graph of ops and blocks. For one thread at a time.

    >>> g = quern.Graph("ffn")
    >>> g.symbol("BATCH", 1, 64)                    # a size that each run may choose
    >>> x = g.input("x", "f32[BATCH, 48]")
    >>> g.output("y", quern.silu(x @ weights))      # a numpy array
    >>> y = g.compile()(numpy.ones((3, 48), "f32"))
    """

    def __init__(self, name: str = "graph") -> None:
        self._graph = _quern.Graph(name)
        self._kept: list[Any] = []  # arrays whose memory parameters are
        self._read: list[tuple[Any, Value]] = []  # the same by object: an array is one parameter

    @classmethod
    def _of(cls, graph: _quern.Graph, *kept: Any) -> "Graph":
        made = cls.__new__(cls)
        made._graph, made._kept, made._read = graph, list(kept), []
        return made

    @classmethod
    def parse(cls, text: str) -> "Graph":
        """A graph of text (docs/graph-files.md). Its outputs are called "0", "1", ...

        Errors: invalid, with line and column; those of its ops.
        """
        return cls._of(_quern.Graph.parse(text))

    @classmethod
    def from_binary(cls, data: bytes) -> "Graph":
        """What ``binary`` gave, here or elsewhere; the bytes are not trusted."""
        return cls._of(_quern.Graph.from_binary(data))

    def symbol(self, name: str, low: int = 1, high: int = 1 << 20) -> str:
        """Declares a size that types may name, and the values that it may have."""
        self._graph.symbol(name, low, high)
        return name

    def specialise(self, symbol: str, low: int, high: int) -> None:
        """Also compiles a variant for these sizes alone."""
        self._graph.specialise(symbol, low, high)

    def input(self, name: str, type: str) -> Value:
        """What each run is given: ``"f32[BATCH, 48]"``."""
        return Value(self, self._graph.input(name, type))

    def param(self, name: str, data: Any = None, type: Optional[str] = None) -> Value:
        """A weight: an array, which is read in place and must stay as it is; or its type, and the bytes later.

        Of a block format ("q4_K[512, 256]"), ``data`` is its bytes as u8.
        """
        if data is None:
            if type is None:
                raise TypeError("a parameter has data, a type, or both")
            return Value(self, self._graph.param(name, type))
        array = arrays.take(data)
        value = Value(self, self._graph.param(name, type or array.type))
        self.bind(name, array.data)
        return value

    def bind(self, name: str, data: Any) -> None:
        """Gives a parameter its bytes. Errors: unknown_name, shape_mismatch."""
        array = arrays.take(data)
        self._graph.bind(name, array.data)
        self._kept.append(array.data)

    def constant(self, data: Any) -> Value:
        """Data that is part of the graph; copied."""
        array = arrays.take(data)
        return Value(self, self._graph.constant(array.type, array.data))

    def _array(self, data: Any) -> Value:
        """An array beside values: a constant, or where it is large a parameter."""
        for known, value in self._read:
            if known is data:
                return value
        array = arrays.take(data)
        if array.data.size < _LARGE:
            return self.constant(array.data if array.dtype != "bf16" else data)
        value = self.param(f"array_{len(self._read)}", data)
        self._read.append((data, value))
        return value

    def output(self, name: str, value: Value) -> None:
        self._graph.output(name, value.node)

    def carry(self, input: str, value: Value) -> None:
        """``value`` becomes what the input holds in the next run: state, which runs are not given."""
        self._graph.carry(input, value.node)

    def inline(self, other: "Graph", *values: Value, label: str = "") -> Any:
        """Another graph inside this one, whose inputs ``values`` are; its outputs."""
        graph, nodes = _operands(values)
        made = tuple(Value(self, node) for node in self._graph.inline(other._graph, nodes, label))
        self._kept.extend(other._kept)
        return made[0] if len(made) == 1 else made

    def text(self) -> str:
        """As text of blocks, without the bytes of parameters."""
        return self._graph.text()

    def binary(self) -> bytes:
        return self._graph.binary()

    def fingerprint(self) -> str:
        """32 hexadecimal digits that tell graphs apart, on every machine."""
        return self._graph.fingerprint()

    def dump(self, stage: str = "mir", kernel: str = "", **options: Any) -> str:
        """The text of a stage: hir, mir, lir, kir, llvm, asm, ptx or metal."""
        return self._graph.dump(stage, kernel, options_of(options))

    def compile(self, **options: Any) -> "Program":
        """A program for this machine. Options: cpu, threads, exact, kernels, cache, check, ... (quern/quern.h).

        Errors: those of the graph; unsupported; invalid, an unknown level; resource.
        """
        return Program(self._graph.compile(options_of(options)), list(self._kept) + [self])

    def compile_files(self, folder: Union[str, os.PathLike], name: str, **options: Any) -> list[str]:
        """The graph as a C library, ahead of time (docs/aot.md): paths of its object, header and manifest."""
        return self._graph.compile_files(options_of(options), os.fspath(folder), name)

    def __repr__(self) -> str:
        return self.text()


class Port:
    """An input, output, parameter or state of a program: ``name``, ``type``, ``dtype``, ``shape``."""

    __slots__ = ("name", "type", "dtype", "shape")

    def __init__(self, name: str, type: str) -> None:
        self.name, self.type = name, type
        self.dtype, self.shape = _split(type)

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Program:
    """A compiled graph with its parameters, its state and its threads. For one thread at a time.

    A run leaves the GIL to others. Ctrl-C stops it, between two kernels, with KeyboardInterrupt; ``cancel`` does from
    another thread, with QuernError of code "cancelled".
    """

    def __init__(self, program: _quern.Program, kept: Sequence[Any] = ()) -> None:
        self._program = program
        self._kept = list(kept)
        self._profile: Optional[Profile] = None
        self.inputs = [Port(*p) for p in program.inputs()]
        self.outputs = [Port(*p) for p in program.outputs()]
        self.params = [Port(*p) for p in program.params()]
        self.states = [Port(*p) for p in program.states()]

    def run(self, inputs: Mapping[str, Any], outputs: Optional[Mapping[str, Any]] = None,
            sizes: Optional[Mapping[str, int]] = None) -> dict[str, np.ndarray]:
        """Computes the outputs, by name.

        Arrays whose memory is dense and row-major are read in place, others are copied first. ``outputs`` may give
        some of the outputs their memory: writable arrays of numpy, or of others by DLPack, dense, which are written in
        place. ``sizes``: of symbols that follow from no input.

        Errors, after which no output and no state has changed: missing, unknown_name, shape_mismatch, dtype_mismatch,
        out_of_range, size_conflict, busy. After "cancelled" they may hold anything.
        """
        given = []
        for name, value in inputs.items():
            array = arrays.take(value)
            given.append((name, array.data, array.dtype))
        symbols = dict(sizes or {})
        shapes = self._program.output_shapes(given, symbols)
        own = dict(outputs or {})
        results, written = {}, []
        for port, shape in zip(self.outputs, shapes):
            if port.name in own:
                result = own.pop(port.name)
                view, dtype = arrays.take_output(result, port.name)
            else:
                result, view = arrays.new(port.dtype, tuple(shape))
                dtype = port.dtype
            results[port.name] = result
            written.append((port.name, view, dtype))
        for name in own:
            raise QuernError(f"there is no output {name}", "unknown_name", operand=name)
        self._program.run(given, written, symbols)
        return results

    def __call__(self, *args: Any, sizes: Optional[Mapping[str, int]] = None,
                 out: Optional[Mapping[str, Any]] = None, **kwargs: Any) -> Any:
        """``run`` with inputs in the order of the graph or by name; the output, or a tuple of several."""
        if len(args) > len(self.inputs):
            raise TypeError(f"{len(args)} arrays for {len(self.inputs)} inputs: {self.inputs}")
        named = {port.name: value for port, value in zip(self.inputs, args)}
        for name, value in kwargs.items():
            if name in named:
                raise TypeError(f"input {name} is given twice")
            named[name] = value
        results = tuple(self.run(named, out, sizes).values())
        return results[0] if len(results) == 1 else results

    def bind(self, name: str, data: Any) -> None:
        """Another memory for a parameter: read in place, it must stay as it is."""
        array = arrays.take(data)
        self._program.bind(name, array.data)
        self._kept.append(array.data)

    def state(self, name: str) -> np.ndarray:
        """The memory of a state, of the largest size that it may have, to read and write between runs."""
        port = next((p for p in self.states if p.name == name), None)
        array = self._program.state(name)
        return array if port is None else array.view(arrays.numpy_dtype(port.dtype))

    def reset_state(self) -> None:
        """Every state back to zero."""
        self._program.reset_state()

    @property
    def counters(self) -> dict[str, Any]:
        """What the program holds, and what its last run took: seconds, bytes, launches."""
        return self._program.counters()

    def cancel(self) -> None:
        """Asks the run under way, on another thread, to stop. Later runs stop too, until ``uncancel``."""
        self._program.cancel()

    def uncancel(self) -> None:
        self._program.uncancel()

    def profile(self, counters: bool = False) -> Profile:
        """Records the runs from here on, until it is closed or the next one begins: ``print(profile)``."""
        if self._profile is not None:
            self._profile.close()
        self._profile = Profile(self._program.profiler(counters))
        return self._profile

    def __repr__(self) -> str:
        return f"<quern.Program {self.inputs} -> {self.outputs}>"

