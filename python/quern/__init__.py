"""Quern: model graphs, ground into native kernels.

>>> import numpy as np, quern
>>> @quern.jit
... def f(x, w):
...     return quern.silu(x @ w)
>>> y = f(np.ones((3, 48), "f32"), np.ones((48, 80), "f32"))

Every op is a function of this module (``quern.ops``), every block one of ``quern.blocks``; docs/python.md is the guide.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from . import _quern, blocks, ops
from .errors import QuernError
from .formats import Divergence, Perplexity, perplexity, quantise, quantise_types
from .graph import Graph
from .jit import Traced, jit
from .models import (ChatTemplate, Embedder, OnnxModel, Sampler, Session, Tokenizer, grammar_of_json_schema, inspect,
                     load_graph, open)
from .ops import *  # noqa: F401,F403
from .profile import Profile
from .program import Port, Program
from .sequences import Sequences
from .value import Value, apply

try:
    __version__ = version("quern")
except PackageNotFoundError:  # run from where it was built
    __version__ = "0"

error_codes: list[str] = _quern.error_codes

__all__ = ["ChatTemplate", "Divergence", "Embedder", "Graph", "OnnxModel", "Perplexity", "Port", "Profile", "Program",
           "QuernError", "Sampler", "Sequences", "Session", "Tokenizer", "Traced", "Value", "apply", "blocks",
           "error_codes", "grammar_of_json_schema", "inspect", "jit", "load_graph", "open", "ops", "perplexity",
           "quantise", "quantise_types", *ops.__all__]
