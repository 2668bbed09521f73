"""Models in other formats: quantising them, and what they lose by it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional

from . import _quern
from .models import Path
from .program import options_of


class Divergence(NamedTuple):
    """How far what a model foretells is from what its base does (docs/models.md)."""

    base_perplexity: float
    mean: float  # of Kullback and Leibler, natural
    error: float
    largest: float
    same_top: float  # share of the tokens where the likeliest one is the same


class Perplexity(NamedTuple):
    """How well a model foretells a text (docs/models.md)."""

    perplexity: float
    error: float
    nll: float
    tokens: int
    chunks: int
    chunk_size: int
    divergence: Optional[Divergence]


def quantise(path: Path, out: Path, type: str = "Q4_K_M", pure: bool = False, requantise: bool = False,
             importance: Optional[Path] = None, threads: int = 0) -> dict[str, tuple[str, str]]:
    """Writes the model with its weights in another format, as GGUF: what each tensor was and is, by name.

    ``type``: one of ``quantise_types()``. ``pure``: that format for all. ``requantise``: of blocks, too.
    ``importance``: a matrix of ``quern imatrix``. Errors: invalid, resource.
    """
    return _quern.quantise(os.fspath(path), os.fspath(out), type, pure, requantise,
                           "" if importance is None else os.fspath(importance), threads)


def quantise_types() -> list[str]:
    """What ``type`` may be."""
    return _quern.quantise_types()


def perplexity(path: Path, text: str, base: Optional[Path] = None, chunks: int = 0, special: bool = False,
               **options: Any) -> Perplexity:
    """How well the model at ``path`` foretells a text, in chunks of ``context`` tokens (512), at most so many.

    ``base``: another model of the same tokens, the one that this was quantised from, to say how far the two are apart.
    ``special``: control tokens in the text are those. Other options are those of Session. Errors: invalid, unsupported.
    """
    found = _quern.perplexity(os.fspath(path), text, "" if base is None else os.fspath(base), chunks, special,
                              options_of(options))
    return Perplexity(*found[:-1], None if found[-1] is None else Divergence(*found[-1]))
