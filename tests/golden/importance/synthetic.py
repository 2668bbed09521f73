"""A model file of many layers and an importance matrix of it, both small and the same on any machine: record.py has
llama.cpp quantise the one by the other, ctest `quantise` has quern do it.

Weights have two rows each, so that nothing but their names and the number of layers decides which format they get; a
model that runs it is none.
"""
import random
import struct

LAYERS, WIDTH = 16, 256
LAYER = ("attn_k", "attn_output", "attn_q", "attn_v", "ffn_down", "ffn_gate", "ffn_up")
# Q2_K_S needs an importance of every weight: of the older file, which has all.
TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
         "Q5_K_S", "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "F16")


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def write(path, metadata, tensors):
    """Metadata: (key, type, packed value); tensors: (name, extents, innermost first, floats)."""
    head, body = b"", b""
    for key, kind, value in metadata:
        head += text(key) + struct.pack("<I", kind) + value
    for name, dims, floats in tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims) + struct.pack("<IQ", 0, len(body))
        data = struct.pack(f"<{len(floats)}f", *floats)
        body += data + bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + head
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + body)


def names():
    return [f"blk.{layer}.{part}.weight" for layer in range(LAYERS) for part in LAYER]


def write_model(path):
    draw = random.Random(20261)
    number = lambda value: (4, struct.pack("<I", value))
    metadata = [("general.architecture", 8, text("llama"))]
    for key, value in (("block_count", LAYERS), ("context_length", 64), ("embedding_length", WIDTH),
                       ("feed_forward_length", WIDTH), ("attention.head_count", 8), ("attention.head_count_kv", 2)):
        metadata.append((f"llama.{key}", *number(value)))
    metadata.append(("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)))
    # Sums of four draws, near enough to what weights are.
    weights = lambda: [sum(draw.random() for _ in range(4)) - 2 for _ in range(2 * WIDTH)]
    tensors = [(name, (WIDTH, 2), weights()) for name in ("token_embd.weight", "output.weight", *names())]
    # Experts: three matrices, each with an importance of its own.
    experts = [x for _ in range(3) for x in weights()]
    tensors.append(("blk.3.ffn_up_exps.weight", (WIDTH, 2, 3), experts))
    write(path, metadata, tensors)


def write_importance(path):
    draw = random.Random(20262)
    tensors = []
    for place, name in enumerate(names()):
        if place % 10 == 7:
            continue  # a weight that the text did not reach
        # Some columns count a thousand times as much as others, and some not at all.
        sums = [0.0 if draw.random() < 0.05 else 10.0 ** draw.uniform(-1, 2) for _ in range(WIDTH)]
        tensors += [(name + ".in_sum2", (WIDTH,), sums), (name + ".counts", (1,), [37.0])]
    sums = [10.0 ** draw.uniform(-1, 2) for _ in range(3 * WIDTH)]
    tensors += [("blk.3.ffn_up_exps.weight.in_sum2", (WIDTH, 3), sums),
                ("blk.3.ffn_up_exps.weight.counts", (1, 3), [11.0, 0.0, 26.0])]
    metadata = [("general.type", 8, text("imatrix")),
                ("imatrix.datasets", 9, struct.pack("<IQ", 8, 1) + text("some text")),
                ("imatrix.chunk_count", 4, struct.pack("<I", 1)), ("imatrix.chunk_size", 4, struct.pack("<I", 37))]
    write(path, metadata, tensors)


def write_importance_dat(path):
    """The older form, of a number of calls in the place of tokens."""
    draw = random.Random(20263)
    data = b""
    count = 0
    for name in names() + ["blk.3.ffn_up_exps.weight"]:
        count += 1
        sums = [10.0 ** draw.uniform(-1, 2) for _ in range(WIDTH * (3 if "exps" in name else 1))]
        data += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 5, len(sums))
        data += struct.pack(f"<{len(sums)}f", *sums)
    data = struct.pack("<i", count) + data + struct.pack("<ii", 5, 9) + b"some text"
    with open(path, "wb") as file:
        file.write(data)
