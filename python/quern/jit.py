"""Python functions of arrays as programs: traced once for each set of shapes, compiled, and run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Optional

import numpy as np

from . import arrays
from .graph import Graph
from .program import Program
from .value import Value


def _flatten(value: Any, name: str, leaves: list[tuple[str, Any]]) -> Any:
    """The arrays in nested tuples, lists and dicts, and what is left without them, as a key of a cache."""
    if arrays.is_array(value) or isinstance(value, (np.generic, Value)):
        leaves.append((name, value))
        return _Leaf(len(leaves) - 1)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(_flatten(v, f"{name}.{i}", leaves) for i, v in enumerate(value))
    if isinstance(value, dict):
        return "dict", tuple((k, _flatten(v, f"{name}.{k}", leaves)) for k, v in value.items())
    return "static", type(value), value


class _Leaf(int):
    pass


def _unflatten(tree: Any, leaves: list[Any]) -> Any:
    if isinstance(tree, _Leaf):
        return leaves[tree]
    if tree[0] == "static":
        return tree[2]
    if tree[0] == "dict":
        return {k: _unflatten(v, leaves) for k, v in tree[1]}
    made = [_unflatten(v, leaves) for v in tree[1]]
    return tuple(made) if tree[0] == "tuple" else made


class Traced:
    """What ``jit`` made of a function. Call it with arrays; ``program`` is what runs then."""

    def __init__(self, function: Callable, dynamic: Optional[Mapping[str, Mapping[int, str]]],
                 ranges: Optional[Mapping[str, tuple[int, int]]], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = inspect.signature(function)
        self._dynamic = dict(dynamic or {})
        self._ranges = dict(ranges or {})
        self._options = dict(options)
        self._programs: dict[Any, tuple[Program, Any, Graph]] = {}

    def _type(self, name: str, array: arrays.Array) -> str:
        axes = {d + len(array.shape) if d < 0 else d: s for d, s in self._dynamic.get(name, {}).items()}
        return f"{array.dtype}[{', '.join(str(axes.get(d, n)) for d, n in enumerate(array.shape))}]"

    def _trace(self, tree: Any, names: list[str], types: tuple[str, ...]) -> tuple[Program, Any, Graph]:
        graph = Graph(self._function.__name__.strip("<>") or "jit")
        symbols = sorted({s for axes in self._dynamic.values() for s in axes.values()})
        used = " ".join(types)
        for symbol in symbols:
            if symbol in used:
                graph.symbol(symbol, *self._ranges.get(symbol, (1, 1 << 20)))
        values = [graph.input(name, type_) for name, type_ in zip(names, types)]
        args, kwargs = _unflatten(tree, values)
        result = self._function(*args, **kwargs)
        outputs: list[tuple[str, Any]] = []
        result_tree = _flatten(result, "out", outputs)
        if not outputs:
            raise TypeError(f"{self._function.__name__} gives no value of the graph, but {result!r}")
        for name, value in outputs:
            if not isinstance(value, Value):
                raise TypeError(f"{self._function.__name__} gives an array that no input has a part in: {name}")
            graph.output(name, value)
        return graph.compile(**self._options), result_tree, graph

    def _prepare(self, args: tuple, kwargs: dict) -> tuple[Program, Any, Graph, dict[str, Any]]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        names: list[str] = []
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{name}.{i}" for i in range(len(bound.arguments[name]))]
            elif parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
                names.append(name)
        leaves: list[tuple[str, Any]] = []
        tree = ("tuple", (("tuple", tuple(_flatten(v, n, leaves) for n, v in zip(names, bound.args))),
                          ("dict", tuple((n, _flatten(v, n, leaves)) for n, v in bound.kwargs.items()))))
        types = tuple(self._type(name, arrays.take(value)) for name, value in leaves)
        found = self._programs.get((tree, types))
        if found is None:
            found = self._programs[tree, types] = self._trace(tree, [name for name, _ in leaves], types)
        return (*found, dict(leaves))

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program for arguments like these, compiled where there is none yet."""
        return self._prepare(args, kwargs)[0]

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that the function is for arguments like these."""
        return self._prepare(args, kwargs)[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, Value) for value in (*args, *kwargs.values())):
            return self._function(*args, **kwargs)  # inside of what is being traced
        program, tree, _, inputs = self._prepare(args, kwargs)
        return _unflatten(tree, list(program.run(inputs).values()))


def jit(function: Optional[Callable] = None, *, dynamic: Optional[Mapping[str, Mapping[int, str]]] = None,
        ranges: Optional[Mapping[str, tuple[int, int]]] = None, **options: Any) -> Any:
    """Compiles a function of arrays: traced at the first call with arguments of a new dtype or shape.

    Arrays, alone or in tuples, lists and dicts, are inputs; other arguments are part of what is compiled, and must be
    hashable. Arrays that the function closes over are weights, which must stay as they are. The function runs on
    ``quern.Value``: operators, their methods, and the functions of ``quern``.

    Args:
        dynamic: dimensions that each call may choose: ``{"x": {0: "BATCH"}}``; one program serves all.
        ranges: what sizes they may have: ``{"BATCH": (1, 64)}``; from 1 on where nothing is said.
        options: those of ``Graph.compile``.

    >>> @quern.jit
    ... def ffn(x):
    ...     return quern.silu(x @ up) @ down
    """
    if function is None:
        return functools.partial(jit, dynamic=dynamic, ranges=ranges, **options)
    return Traced(function, dynamic, ranges, options)
