"""Where the time of runs goes, by kernel and by block of the graph (docs/profiling.md)."""

from __future__ import annotations

import json
import os
from typing import Any, Optional, Union

from . import _quern
from .errors import QuernError


class Profile:
    """The runs of a program or session since ``profile()``. In a notebook it shows itself as a page."""

    def __init__(self, profiler: _quern.Profiler) -> None:
        self._profiler: Optional[_quern.Profiler] = profiler

    def _open(self) -> _quern.Profiler:
        if self._profiler is None:
            raise QuernError("this profile is closed: another one records the runs", "invalid")
        return self._profiler

    def phase(self, name: str, warm_up: bool = False) -> None:
        """What the runs from here on are called; ``warm_up``: left out of the figures."""
        self._open().phase(name, warm_up)

    def clear(self) -> None:
        """Forgets the runs so far."""
        self._open().clear()

    def table(self, top: int = 0) -> str:
        """Tables for people, with at most ``top`` kernels in each (0: all)."""
        return self._open().table(top)

    def json(self) -> Any:
        """Everything that was recorded."""
        return json.loads(self._open().json())

    def trace(self, path: Union[str, os.PathLike, None] = None) -> str:
        """For Perfetto or chrome://tracing; also written to ``path``."""
        return _written(self._open().trace(), path)

    def html(self, path: Union[str, os.PathLike, None] = None) -> str:
        """A page with each kernel from block to assembly, for which kernels are compiled again."""
        return _written(self._open().html(), path)

    def close(self) -> None:
        """Ends the recording."""
        self._profiler = None

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from html import escape
        return f'<iframe srcdoc="{escape(self.html(), quote=True)}" width="100%" height="600"></iframe>'


def _written(text: str, path) -> str:
    if path is not None:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    return text
