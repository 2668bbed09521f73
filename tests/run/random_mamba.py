"""A Mamba of random weights with the vocabulary of another model: for tests of text."""
import os
import random
import struct

from gguf_file import FORMATS, Gguf

WIDTH, INNER, STATE, KERNEL, RANK, LAYERS = 24, 48, 6, 4, 3, 2


def text(value):
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def stored(kind, value):
    if kind == 8:
        return text(value)
    if kind == 9:
        each, values = value
        return struct.pack("<IQ", each, len(values)) + b"".join(stored(each, v) for v in values)
    return struct.pack(FORMATS[kind], value)


def tensors(vocabulary):
    """Names, extents (outermost first), scales and offsets."""
    yield "token_embd.weight", (vocabulary, WIDTH), 1, 0
    yield "output_norm.weight", (WIDTH,), 0.25, 1
    yield "output.weight", (vocabulary, WIDTH), 0.7, 0
    for layer in range(LAYERS):
        for name, dims, scale, offset in [
                ("attn_norm.weight", (WIDTH,), 0.25, 1), ("ssm_in.weight", (2 * INNER, WIDTH), 0.35, 0),
                ("ssm_conv1d.weight", (INNER, KERNEL), 0.6, 0), ("ssm_conv1d.bias", (INNER,), 0.3, 0),
                ("ssm_x.weight", (RANK + 2 * STATE, INNER), 0.25, 0), ("ssm_dt.weight", (INNER, RANK), 1, 0),
                ("ssm_dt.bias", (INNER,), 0.5, 0), ("ssm_a", (INNER, STATE), 0.5, -0.75), ("ssm_d", (INNER,), 1, 0),
                ("ssm_out.weight", (WIDTH, INNER), 0.25, 0)]:
            yield f"blk.{layer}.{name}", dims, scale, offset


def random_mamba(vocabulary_of, folder, name="mamba.gguf", seed=20261128):
    """Writes the model; the path."""
    draw = random.Random(seed)
    keys = {f"mamba.{key}": (4, value) for key, value in [
        ("context_length", 512), ("embedding_length", WIDTH), ("block_count", LAYERS), ("ssm.conv_kernel", KERNEL),
        ("ssm.inner_size", INNER), ("ssm.state_size", STATE), ("ssm.time_step_rank", RANK)]}
    keys["mamba.attention.layer_norm_rms_epsilon"] = (6, 1e-5)
    keys["general.architecture"] = (8, "mamba")
    other = Gguf(vocabulary_of)
    keys.update({key: value for key, value in other.metadata.items() if key.startswith("tokenizer.")})
    head, data, count = b"", b"", 0
    for tensor, dims, scale, offset in tensors(len(other.metadata["tokenizer.ggml.tokens"][1][1])):
        elements = 1
        for dim in dims:
            elements *= dim
        head += text(tensor) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims), 0, len(data))
        data += struct.pack(f"<{elements}f", *(offset + scale * draw.uniform(-1, 1) for _ in range(elements)))
        data += bytes(-len(data) % 32)
        count += 1
    start = b"GGUF" + struct.pack("<IQQ", 3, count, len(keys))
    start += b"".join(text(key) + struct.pack("<I", kind) + stored(kind, value) for key, (kind, value) in keys.items())
    start += head
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(start + bytes(-len(start) % 32) + data)
    return path
