"""Arrays of numpy, and of everything that has DLPack, as Quern takes them: dense memory and the name of a dtype."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

import numpy as np

from . import _quern
from .errors import QuernError

# Quern's name of each dtype of numpy, and back. The bits of bf16 are u16 where ml_dtypes is not there.
_NAMES = {np.dtype(d): n for d, n in (
    (np.float16, "f16"), (np.float32, "f32"), (np.float64, "f64"), (np.bool_, "bool"), (np.int8, "i8"),
    (np.uint8, "u8"), (np.int16, "i16"), (np.int32, "i32"), (np.uint32, "u32"), (np.int64, "i64"),
    (np.uint64, "u64"), (np.complex64, "c64"))}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


class Array(NamedTuple):
    """Dense, row-major memory. ``data`` is a view of what was given, or a copy where its strides asked for one."""
    data: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def type(self) -> str:
        """``"f32[3, 48]"``."""
        return f"{self.dtype}[{', '.join(map(str, self.data.shape))}]"


def take(value: Any) -> Array:
    """``value`` as memory: a numpy array, a scalar, nested lists, or what has ``__dlpack__`` (torch, jax)."""
    if isinstance(value, np.ndarray) and value.flags.c_contiguous and value.flags.aligned:
        known = _NAMES.get(value.dtype) if value.dtype.isnative else None
        if known is not None:  # nearly all: a call of a small program is no longer than this
            return Array(value, known)
    if isinstance(value, (np.ndarray, np.generic)):
        array, name = np.asarray(value), None
        if array.dtype.name == "bfloat16":
            array, name = array.view(np.uint16), "bf16"
    elif hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        if callable(getattr(value, "resolve_conj", None)):
            value = value.resolve_conj().resolve_neg()
        array, name = _quern.view(value)
    else:
        array, name = np.asarray(value), None
    name = name or _NAMES.get(array.dtype.newbyteorder("="))
    if name is None:
        raise QuernError(f"there is no dtype for arrays of {array.dtype}", "dtype_mismatch", got=str(array.dtype))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return Array(np.require(array, requirements=["C", "A"]).reshape(array.shape), name)


def take_output(value: Any, name: str) -> Array:
    """``value`` as memory that a run writes in place. Errors: invalid, what is read-only, or not dense."""
    dtype = None
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        try:
            array, dtype = _quern.writable_view(value)
        except (BufferError, RuntimeError) as error:
            raise QuernError(f"output {name} has no memory to write to: {error}", "invalid", operand=name) from None
    else:
        raise QuernError(f"output {name} is a {type(value).__name__}, not an array", "invalid", operand=name)
    if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned and array.dtype.isnative):
        raise QuernError(f"output {name} is written in place: its memory must be writable and dense, row by row",
                         "invalid", operand=name)
    return take(array) if dtype is None else Array(array, dtype)


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__dlpack__") and hasattr(value, "shape"))


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of numpy for one of Quern; of ``bf16`` that of ml_dtypes, which must be installed."""
    if name == "bf16":
        try:
            import ml_dtypes
        except ImportError:
            raise QuernError("numpy has no bf16: install ml_dtypes, or cast to f32", "unsupported") from None
        return np.dtype(ml_dtypes.bfloat16)
    if name not in _DTYPES:
        raise QuernError(f"numpy has no dtype for {name}", "unsupported")
    return _DTYPES[name]


def dtype_name(dtype: Any) -> str:
    """Quern's name of a dtype: of its own name, of numpy's, or of torch's."""
    if isinstance(dtype, str) and dtype in _DTYPES or dtype == "bf16":
        return dtype
    if type(dtype).__module__ == "torch":
        dtype = str(dtype).rpartition(".")[2]
    if str(dtype).rpartition(".")[2] == "bfloat16":
        return "bf16"
    try:
        return _NAMES[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise QuernError(f"there is no dtype {dtype}", "dtype_mismatch", got=str(dtype)) from None


def new(dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """An array for an output, and the view of its memory that a run writes to."""
    array = np.empty(shape, numpy_dtype(dtype))
    return array, array.view(np.uint16) if dtype == "bf16" else array


def split_type(type_: str) -> tuple[str, tuple[Union[int, str], ...]]:
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
