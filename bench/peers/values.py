"""What the leaves of a graph in text form hold while it is timed."""

import math

import numpy as np

DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def noise(count, seed, scale):
    """Numbers in -scale..scale: a mix of the index."""
    x = (np.arange(count, dtype=np.uint64) * 2654435761 + seed * 40503) & 0xffffffff
    x ^= x >> 15
    x = (x * 2246822519) & 0xffffffff
    x ^= x >> 13
    return ((x >> 8).astype(np.float32) * np.float32(2.0 ** -23) - np.float32(1)) * np.float32(scale)


def leaf(type_, seed, param):
    """What a leaf holds: weights so small that a deep graph neither grows nor fades."""
    shape, count = type_.shape, math.prod(type_.shape)
    scale = 1.0
    if param and len(shape) == 2:
        scale = math.sqrt(1 / shape[0])
    elif param and len(shape) > 2:
        scale = math.sqrt(6 * shape[0] / count)
    drawn = noise(count, seed, scale).reshape(shape)
    return drawn if type_.dtype == "bf16" else drawn.astype(DTYPES[type_.dtype])


def bf16_bits(array):
    """numpy has no bf16; rounded to nearest, as bits."""
    bits = array.view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def literal(node):
    """The array of a Constant."""
    return np.frombuffer(node.literal, DTYPES[node.results[0].dtype]).reshape(node.results[0].shape)
