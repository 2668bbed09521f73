"""Graphs: built by operators on values, compiled to programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _quern, arrays
from .program import Program, options_of
from .value import Value, apply

_LARGE = 256  # elements of an array that is an operand: from here on a parameter, which is not copied


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
