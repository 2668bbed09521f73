"""Writes a GGUF v3 file: typed metadata, then tensors in F32, F16 or Q8_0.

Layout: magic, version, counts, key-value pairs, one info record a tensor (name, dimensions innermost first, type,
offset), padding to 32 bytes, tensor data, each tensor at a multiple of 32.

Example:
  writer = GgufWriter()
  writer.add("general.architecture", "llama")
  writer.add("llama.block_count", 2)                       # int: uint32, float: float32, bool, str
  writer.add("tokenizer.ggml.scores", [0.0, -1.0])         # lists: strings, int32 or float32
  writer.add_tensor("output_norm.weight", array, "F32")    # array of shape [rows, row length] or [length]
  writer.write("model.gguf")
"""

import struct

import numpy as np

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # metadata value types
TENSOR_TYPES = {"F32": 0, "F16": 1, "Q8_0": 8}
Q8_0_BLOCK = 32


def quantise_q8_0(rows):
    """Blocks of 32: one half-precision scale d = max|x| / 127, then 32 signed bytes round(x / d).

    As ggml does: the bytes use the scale before it is rounded to half, and halves round away from zero.
    """
    blocks = rows.astype(np.float32).reshape(-1, Q8_0_BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
    scaled = blocks * inverse
    values = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.int8), values], axis=1).tobytes()


def encode_tensor(array, kind):
    if kind == "F32":
        return array.astype("<f4").tobytes()
    if kind == "F16":
        return array.astype("<f2").tobytes()
    if kind == "Q8_0":
        if array.shape[-1] % Q8_0_BLOCK:
            raise ValueError(f"Q8_0 needs rows of a multiple of {Q8_0_BLOCK}, got {array.shape}")
        return quantise_q8_0(array)
    raise ValueError(f"unknown tensor type {kind}")


def encode_string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def encode_scalar(value):
    """The (type, bytes) of one value; bool before int, because a bool is an int in Python."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<B", value)
    if isinstance(value, int):
        return (INT32, struct.pack("<i", value)) if value < 0 else (UINT32, struct.pack("<I", value))
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    return STRING, encode_string(value)


def encode_value(value):
    if not isinstance(value, list):
        kind, data = encode_scalar(value)
        return struct.pack("<I", kind) + data
    if isinstance(value[0], int):
        kind, items = INT32, [struct.pack("<i", item) for item in value]
    else:
        kind = encode_scalar(value[0])[0]
        items = [encode_scalar(item)[1] for item in value]
    return struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(items)


def padding(length):
    return b"\0" * (-length % ALIGNMENT)


class GgufWriter:
    def __init__(self):
        self.metadata = []
        self.tensors = []

    def add(self, key, value):
        self.metadata.append(encode_string(key) + encode_value(value))

    def add_tensor(self, name, array, kind):
        self.tensors.append((name, array.shape, kind, encode_tensor(array, kind)))

    def write(self, path):
        header = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata)), *self.metadata]
        offset = 0
        for name, shape, kind, data in self.tensors:
            dimensions = struct.pack(f"<{len(shape)}Q", *reversed(shape))
            header.append(encode_string(name) + struct.pack("<I", len(shape)) + dimensions +
                          struct.pack("<IQ", TENSOR_TYPES[kind], offset))
            offset += len(data) + len(padding(len(data)))
        head = b"".join(header)
        with open(path, "wb") as file:
            file.write(head + padding(len(head)))
            for _, _, _, data in self.tensors:
                file.write(data + padding(len(data)))
