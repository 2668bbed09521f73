"""Compiled graphs: run on arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from . import _quern, arrays
from .errors import QuernError
from .profile import Profile


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


class Port:
    """An input, output, parameter or state of a program: ``name``, ``type``, ``dtype``, ``shape``."""

    __slots__ = ("name", "type", "dtype", "shape")

    def __init__(self, name: str, type: str) -> None:
        self.name, self.type = name, type
        self.dtype, self.shape = arrays.split_type(type)

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
        place. ``sizes``: of symbols that follow from no input. An output of which only data decide how large it is has
        that size; memory that is given for it is for the most that there may be, of which it is the beginning.

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
        for (name, result), shape in zip(results.items(), self._program.last_shapes()):
            if tuple(shape) != tuple(result.shape):
                results[name] = result.reshape(-1)[:math.prod(shape)].reshape(shape)
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

