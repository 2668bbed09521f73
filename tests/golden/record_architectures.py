"""Records what llama.cpp computes for a small model of each architecture: tests/golden/architectures/NAME.txt.

A file describes a model (metadata, tensors) and has the logits of its ids. Weights are made from the description, here
and in tests/unit/models/described_model.h, by the same rule:

  element i of tensor NAME = offset + scale * u,  u = (hash(NAME, i) >> 52) / 2048 - 1

where hash is splitmix64 of (FNV-1a of NAME) + i: numbers of 12 bits, exact in f32. A tensor of blocks has the bytes
hash >> 56, i being that of a byte, but for d, a half in the first two bytes (of iq1_m the upper nibbles of the last
four words): that is `scale`. A model with tensors whose codes are looked up in grids has two sets of logits: `row` of
the packed weights and `exact` of what ggml decodes these to.

Needs numpy and libllama; npm's node-llama-cpp has both its binaries and, as a git bundle, its headers:

  npm install node-llama-cpp --ignore-scripts
  git clone node_modules/node-llama-cpp/llama/gitRelease.bundle llama.cpp
  cc -O2 -I llama.cpp/include -I llama.cpp/ggml/include -o llama_logits llama_logits.c LIBS/libllama*.so \
      LIBS/libggml*.so -Wl,-rpath,LIBS
  LLAMA_BINS=LIBS python3 record_architectures.py ./llama_logits [NAME..]
"""

import ctypes
import itertools
import os
import struct
import subprocess
import sys
import tempfile

import numpy

WIDTH, VOCABULARY, CONTEXT = 24, 61, 64
IDS = [1, 17, 60, 4, 33, 33, 8, 51, 29, 3, 46, 12, 20]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "architectures")
# GGUF's numbers, of blocks their elements and bytes too.
PLAIN = {"f32": 0, "f16": 1}
BLOCKS = {"q8_0": (8, 32, 34), "iq2_xxs": (16, 256, 66), "iq2_xs": (17, 256, 74), "iq2_s": (22, 256, 82),
          "iq3_xxs": (18, 256, 98), "iq3_s": (21, 256, 110), "iq1_s": (19, 256, 50), "iq1_m": (29, 256, 56)}
MASK = (1 << 64) - 1


def hashes(name, count):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & MASK
    z = (numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(seed)) + numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def blocks(name, dtype, count, scale):
    _, elements, size = BLOCKS[dtype]
    made = (hashes(name, count // elements * size) >> numpy.uint64(56)).astype(numpy.uint8).reshape(-1, size)
    half = numpy.array([scale], "<f2").view(numpy.uint8)
    if dtype != "iq1_m":
        made[:, :2] = half
        return made
    for part in range(4):
        made[:, 49 + 2 * part] &= 15
        made[:, 49 + 2 * part] |= (half[part // 2] >> part % 2 * 4 & 15) << 4
    return made


def decode(dtype, packed, count):
    ggml = ctypes.CDLL(os.path.join(os.environ["LLAMA_BINS"], "libggml-base.so"))
    values = numpy.zeros(count, "<f4")
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    getattr(ggml, "dequantize_row_" + dtype)(pointer(packed), pointer(values), ctypes.c_int64(count))
    return values


class Model:
    """A description: lines of metadata and of tensors, in the order of the file."""

    def __init__(self, name, architecture, layers=3, width=WIDTH, vocabulary=VOCABULARY):
        self.name, self.architecture, self.layers, self.width = name, architecture, layers, width
        self.vocabulary, self.context, self.embeddings = vocabulary, CONTEXT, False
        self.metadata, self.tensors, self.ids = [], [], IDS
        self.string("general.architecture", architecture)
        self.uint("context_length", 128)
        self.uint("embedding_length", width)
        self.uint("block_count", layers)

    def key(self, name):
        return name if name.startswith("general.") else f"{self.architecture}.{name}"

    def uint(self, key, value):
        self.metadata.append(("uint", self.key(key), value))

    def float(self, key, value):
        self.metadata.append(("float", self.key(key), value))

    def bool(self, key, value):
        self.metadata.append(("bool", self.key(key), int(value)))

    def string(self, key, value):
        self.metadata.append(("string", self.key(key), value))

    def tensor(self, name, *dims, scale=None, offset=0.0, dtype="f32"):
        # Products keep the size of what goes in: the root of 3 over the row's length.
        if scale is None:
            scale = float(numpy.float32((3.0 / dims[-1]) ** 0.5))
        self.tensors.append((name, dtype, dims, scale, offset))

    def norm(self, name, width=None, bias=False):
        self.tensor(name + ".weight", *([width or self.width] if not isinstance(width, tuple) else width), scale=0.25,
                    offset=1.0)
        if bias:
            self.tensor(name + ".bias", width or self.width, scale=0.2)

    def linear(self, name, out, inner, bias=False, scale=None, dtype="f32"):
        self.tensor(name + ".weight", out, inner, scale=scale, dtype=dtype)
        if bias:
            self.tensor(name + ".bias", out, scale=0.3)

    def text(self):
        lines = [f"{kind} {key} {value}" for kind, key, value in self.metadata]
        for name, dtype, dims, scale, offset in self.tensors:
            lines.append(f"tensor {name} {dtype} {scale!r} {offset!r} {' '.join(map(str, dims))}")
        lines.append(f"context {self.context}")
        lines.append("ids " + " ".join(map(str, self.ids)))
        return "\n".join(lines) + "\n"

    def packed(self):
        return any(dtype.startswith("iq") for _, dtype, *_ in self.tensors)

    def write(self, path, decoded=False):
        def text(value):
            return struct.pack("<Q", len(value)) + value.encode()

        metadata = list(self.metadata) + [("string", "tokenizer.ggml.model", "none")]
        metadata.append(("uint", f"{self.architecture}.vocab_size", self.vocabulary))
        out = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(metadata))
        codes = {"uint": ("<I", 4), "float": ("<f", 6), "bool": ("<?", 7)}
        for kind, key, value in metadata:
            out += text(key)
            if kind == "string":
                out += struct.pack("<I", 8) + text(value)
            else:
                form, code = codes[kind]
                out += struct.pack("<I", code) + struct.pack(form, value)
        data = b""
        for name, dtype, dims, scale, offset in self.tensors:
            out += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims[::-1])
            number = PLAIN[dtype] if dtype in PLAIN else 0 if decoded else BLOCKS[dtype][0]
            out += struct.pack("<IQ", number, len(data))
            count = int(numpy.prod(dims))
            if dtype not in PLAIN:
                values = blocks(name, dtype, count, scale)
                if decoded:
                    values = decode(dtype, values, count)
            else:
                u = (hashes(name, count) >> numpy.uint64(52)).astype(numpy.float64) / 2048 - 1
                values = (offset + scale * u).astype("<f4").astype("<f2" if dtype == "f16" else "<f4")
            data += values.tobytes()
            data += b"\0" * (-len(data) % 32)
        out += b"\0" * (-len(out) % 32)
        with open(path, "wb") as f:
            f.write(out + data)


def heads(m, count=4, kv=2, head_dim=8, n_rot=None, eps="rms"):
    m.uint("attention.head_count", count)
    m.uint("attention.head_count_kv", kv)
    m.uint("attention.key_length", head_dim)
    m.uint("attention.value_length", head_dim)
    if n_rot is not None:
        m.uint("rope.dimension_count", n_rot)
    m.float("attention.layer_norm_rms_epsilon" if eps == "rms" else "attention.layer_norm_epsilon", 1e-5)
    return count * head_dim, kv * head_dim, head_dim


def ends(m, norm_bias=False, output=True, output_bias=False):
    m.tensor("token_embd.weight", m.vocabulary, m.width, scale=1.0)
    m.norm("output_norm", bias=norm_bias)
    if output:
        m.linear("output", m.vocabulary, m.width, bias=output_bias, scale=0.7)


def attention(m, layer, q, kv, bias=False, out_bias=False, fused=False):
    if fused:
        m.linear(f"blk.{layer}.attn_qkv", q + 2 * kv, m.width, bias=bias)
    else:
        for name, width in (("q", q), ("k", kv), ("v", kv)):
            m.linear(f"blk.{layer}.attn_{name}", width, m.width, bias=bias)
    m.linear(f"blk.{layer}.attn_output", m.width, q, bias=out_bias)


def gated(m, layer, hidden, suffix=""):
    m.linear(f"blk.{layer}.ffn_gate{suffix}", hidden, m.width)
    m.linear(f"blk.{layer}.ffn_up{suffix}", hidden, m.width)
    m.linear(f"blk.{layer}.ffn_down{suffix}", m.width, hidden)


def plain(m, layer, hidden, bias=True):
    m.linear(f"blk.{layer}.ffn_up", hidden, m.width, bias=bias)
    m.linear(f"blk.{layer}.ffn_down", m.width, hidden, bias=bias)


def experts(m, layer, count, hidden):
    m.linear(f"blk.{layer}.ffn_gate_inp", count, m.width)
    for name, out, inner in (("gate", hidden, m.width), ("up", hidden, m.width), ("down", m.width, hidden)):
        m.tensor(f"blk.{layer}.ffn_{name}_exps.weight", count, out, inner)


def llama_like(name, architecture, hidden=40, qkv_bias=False, head_norms=False, output=True, layers=3, **more):
    m = Model(name, architecture, layers)
    q, kv, head_dim = heads(m, **more)
    m.uint("feed_forward_length", hidden)
    ends(m, output=output)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        attention(m, layer, q, kv, bias=qkv_bias)
        if head_norms:
            m.norm(f"blk.{layer}.attn_q_norm", head_dim)
            m.norm(f"blk.{layer}.attn_k_norm", head_dim)
        m.norm(f"blk.{layer}.ffn_norm")
        gated(m, layer, hidden)
    return m


def moe_like(name, architecture, head_norms=False, qkv_bias=False, shared=0, head_dim=8):
    m = Model(name, architecture)
    q, kv, head_dim = heads(m, head_dim=head_dim)
    m.uint("feed_forward_length", 40)
    m.uint("expert_count", 5)
    m.uint("expert_used_count", 3)
    if architecture != "llama":
        m.uint("expert_feed_forward_length", 20)
    if shared:
        m.uint("expert_shared_feed_forward_length", shared)
    ends(m)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        attention(m, layer, q, kv, bias=qkv_bias)
        if head_norms:
            m.norm(f"blk.{layer}.attn_q_norm", head_dim)
            m.norm(f"blk.{layer}.attn_k_norm", head_dim)
        m.norm(f"blk.{layer}.ffn_norm")
        experts(m, layer, 5, 40 if architecture == "llama" else 20)
        if shared:
            m.tensor(f"blk.{layer}.ffn_gate_inp_shexp.weight", m.width, scale=0.5)
            gated(m, layer, shared, "_shexp")
    return m


def gemma_like(name, architecture, head_norms=False, post_norms=False, window=0, layers=3):
    m = Model(name, architecture, layers)
    q, kv, head_dim = heads(m)
    m.uint("feed_forward_length", 40)
    if window:
        m.uint("attention.sliding_window", window)
    ends(m, output=False)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        attention(m, layer, q, kv)
        if head_norms:
            m.norm(f"blk.{layer}.attn_q_norm", head_dim)
            m.norm(f"blk.{layer}.attn_k_norm", head_dim)
        if post_norms:
            m.norm(f"blk.{layer}.post_attention_norm")
        m.norm(f"blk.{layer}.ffn_norm")
        gated(m, layer, 40)
        if post_norms:
            m.norm(f"blk.{layer}.post_ffw_norm")
    return m


def layer_norm_like(name, architecture, count=4, kv=2, head_dim=6, n_rot=None, fused=False, bias=True,
                    attention_bias=None, second_norm="ffn_norm", norm_bias=True, output=True, output_bias=False,
                    gate=False):
    m = Model(name, architecture)
    q, kv, head_dim = heads(m, count, kv, head_dim, n_rot, eps="layer")
    hidden = 40
    m.uint("feed_forward_length", hidden)
    ends(m, norm_bias=norm_bias, output=output, output_bias=output_bias)
    attention_bias = bias if attention_bias is None else attention_bias
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm", bias=norm_bias)
        attention(m, layer, q, kv, bias=attention_bias, out_bias=bias, fused=fused)
        if second_norm:
            m.norm(f"blk.{layer}.{second_norm}", bias=norm_bias)
        if gate:
            gated(m, layer, hidden)
        else:
            plain(m, layer, hidden, bias=bias)
    return m


def models():
    yield llama_like("llama", "llama")
    yield llama_like("llama-tied", "llama", output=False, kv=4)
    m = llama_like("llama-linear", "llama")
    m.string("rope.scaling.type", "linear")
    m.float("rope.scaling.factor", 3.0)
    yield m
    m = llama_like("llama-yarn", "llama", head_dim=16)
    m.string("rope.scaling.type", "yarn")
    m.float("rope.scaling.factor", 4.0)
    m.uint("rope.scaling.original_context_length", 32)
    m.float("rope.freq_base", 500.0)
    yield m
    m = llama_like("llama3", "llama")
    m.float("rope.freq_base", 500000.0)
    m.tensor("rope_freqs.weight", 4, scale=0.5, offset=2.0)
    yield m
    yield moe_like("llama-moe", "llama")
    yield llama_like("qwen2", "qwen2", qkv_bias=True, head_dim=6)
    yield moe_like("qwen2moe", "qwen2moe", qkv_bias=True, shared=28, head_dim=6)
    yield llama_like("qwen3", "qwen3", head_norms=True)
    yield moe_like("qwen3moe", "qwen3moe", head_norms=True)
    yield gemma_like("gemma", "gemma")
    m = gemma_like("gemma2", "gemma2", post_norms=True, window=5)
    m.float("attn_logit_softcapping", 3.0)
    m.float("final_logit_softcapping", 6.0)
    yield m
    m = gemma_like("gemma3", "gemma3", post_norms=True, head_norms=True, window=5, layers=7)
    m.float("rope.freq_base", 1000000.0)
    m.string("rope.scaling.type", "linear")
    m.float("rope.scaling.factor", 8.0)
    yield m
    yield gemma_like("gemma3-global", "gemma3", post_norms=True, head_norms=True)
    yield layer_norm_like("phi2", "phi2", kv=4, n_rot=4, second_norm=None, output_bias=True)
    m = Model("phi3", "phi3")
    m.context = 96
    q, kv, head_dim = heads(m, head_dim=6)
    m.uint("feed_forward_length", 40)
    m.uint("rope.dimension_count", 6)
    m.uint("rope.scaling.original_context_length", 64)
    m.float("rope.scaling.attn_factor", 1.19)
    ends(m)
    m.tensor("rope_factors_long.weight", 3, scale=1.0, offset=3.0)
    m.tensor("rope_factors_short.weight", 3, scale=0.2, offset=1.2)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        attention(m, layer, q, kv, fused=True)
        m.norm(f"blk.{layer}.ffn_norm")
        m.linear(f"blk.{layer}.ffn_up", 80, m.width)
        m.linear(f"blk.{layer}.ffn_down", m.width, 40)
    yield m
    m = layer_norm_like("gpt2", "gpt2", kv=4, fused=True, output=False)
    m.tensor("position_embd.weight", 128, m.width, scale=0.6)
    yield m
    for parallel in (True, False):
        m = layer_norm_like("gptneox" if parallel else "gptneox-serial", "gptneox", kv=4, n_rot=4, fused=True)
        m.bool("use_parallel_residual", parallel)
        yield m
    yield layer_norm_like("starcoder2", "starcoder2")
    yield layer_norm_like("stablelm", "stablelm", n_rot=4, bias=False, attention_bias=True, gate=True)
    m = layer_norm_like("stablelm-parallel", "stablelm", n_rot=4, bias=False, second_norm=None, gate=True)
    for layer in range(m.layers):
        m.tensor(f"blk.{layer}.attn_q_norm.weight", 4, 6, scale=0.25, offset=1.0)
        m.tensor(f"blk.{layer}.attn_k_norm.weight", 2, 6, scale=0.25, offset=1.0)
    yield m
    m = Model("olmo2", "olmo2", 5)
    q, kv, head_dim = heads(m, head_dim=6)
    m.uint("feed_forward_length", 40)
    m.uint("attention.sliding_window", 4)
    m.string("rope.scaling.type", "yarn")
    m.float("rope.scaling.factor", 4.0)
    m.uint("rope.scaling.original_context_length", 32)
    m.float("rope.freq_base", 500.0)
    ends(m)
    for layer in range(m.layers):
        attention(m, layer, q, kv)
        m.norm(f"blk.{layer}.attn_q_norm", q)
        m.norm(f"blk.{layer}.attn_k_norm", kv)
        m.norm(f"blk.{layer}.post_attention_norm")
        gated(m, layer, 40)
        m.norm(f"blk.{layer}.post_ffw_norm")
    yield m
    yield layer_norm_like("falcon", "falcon", kv=1, fused=True, bias=False, second_norm=None)
    yield layer_norm_like("falcon40", "falcon", fused=True, bias=False, second_norm="attn_norm_2")
    yield llama_like("smollm3", "smollm3", layers=5)
    m = llama_like("granite", "granite")
    m.float("embedding_scale", 2.5)
    m.float("residual_scale", 0.4)
    m.float("attention.scale", 0.3)
    m.float("logit_scale", 3.0)
    yield m


def grid_model():
    """llama with weights of every format whose codes are looked up in a grid, in turn."""
    formats = [("iq2_xxs", 2.0**-10), ("iq2_xs", 2.0**-10), ("iq2_s", 2.0**-10), ("iq3_xxs", 2.0**-11),
               ("iq3_s", 2.0**-11), ("iq1_s", 2.0**-7), ("iq1_m", 2.0**-7)]
    m = Model("llama-grids", "llama", 2, 256)
    q, kv, _ = heads(m, head_dim=64)
    m.uint("feed_forward_length", 512)
    ends(m)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        attention(m, layer, q, kv)
        m.norm(f"blk.{layer}.ffn_norm")
        gated(m, layer, 512)
    for at, (name, _, dims, scale, offset) in enumerate(m.tensors):
        if len(dims) == 2:
            dtype, d = formats[3 * at % 7]
            m.tensors[at] = (name, dtype, dims, 16 * d if name.startswith("token") else d, offset)
    yield m


def latent_models():
    # Files without q_lora_rank are those of 27 layers to llama.cpp.
    for name, layers, query_rank, yarn in (("deepseek2", 3, 10, False), ("deepseek2-yarn", 3, 10, True),
                                           ("deepseek2-lite", 27, 0, True)):
        m = Model(name, "deepseek2", layers)
        count, rank, rotated, plain, value, hidden = 3, 14, 4, 6, 5, 20
        m.uint("attention.head_count", count)
        m.uint("attention.head_count_kv", 1)
        m.uint("attention.key_length", rank + rotated)
        m.uint("attention.value_length", rank)
        m.uint("attention.key_length_mla", plain + rotated)
        m.uint("attention.value_length_mla", value)
        m.uint("attention.kv_lora_rank", rank)
        m.uint("rope.dimension_count", rotated)
        m.float("attention.layer_norm_rms_epsilon", 1e-5)
        m.uint("feed_forward_length", 40)
        m.uint("leading_dense_block_count", 1)
        m.uint("expert_count", 5)
        m.uint("expert_used_count", 3)
        m.uint("expert_shared_count", 2)
        m.uint("expert_feed_forward_length", hidden)
        m.float("expert_weights_scale", 1.5)
        if query_rank:
            m.uint("attention.q_lora_rank", query_rank)
        if yarn:
            m.string("rope.scaling.type", "yarn")
            m.float("rope.scaling.factor", 4.0)
            m.uint("rope.scaling.original_context_length", 32)
            m.float("rope.scaling.yarn_log_multiplier", 0.0707)
            m.float("rope.freq_base", 500.0)
        ends(m)
        for layer in range(m.layers):
            m.norm(f"blk.{layer}.attn_norm")
            if query_rank:
                m.linear(f"blk.{layer}.attn_q_a", query_rank, m.width)
                m.norm(f"blk.{layer}.attn_q_a_norm", query_rank)
            m.linear(f"blk.{layer}.attn_q_b" if query_rank else f"blk.{layer}.attn_q", count * (plain + rotated),
                     query_rank or m.width)
            m.linear(f"blk.{layer}.attn_kv_a_mqa", rank + rotated, m.width)
            m.norm(f"blk.{layer}.attn_kv_a_norm", rank)
            m.tensor(f"blk.{layer}.attn_k_b.weight", count, rank, plain)
            m.tensor(f"blk.{layer}.attn_v_b.weight", count, value, rank)
            m.linear(f"blk.{layer}.attn_output", m.width, count * value)
            m.norm(f"blk.{layer}.ffn_norm")
            if layer == 0:
                gated(m, layer, 40)
            else:
                experts(m, layer, 5, hidden)
                gated(m, layer, 2 * hidden, "_shexp")
        yield m


def recurrent_models():
    m = Model("mamba", "mamba")
    inner, state, kernel, rank = 48, 6, 4, 3
    for key, value in (("conv_kernel", kernel), ("inner_size", inner), ("state_size", state), ("time_step_rank", rank)):
        m.uint("ssm." + key, value)
    m.float("attention.layer_norm_rms_epsilon", 1e-5)
    m.uint("feed_forward_length", 0)
    m.uint("attention.head_count", 0)
    ends(m, output=False)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        m.linear(f"blk.{layer}.ssm_in", 2 * inner, m.width)
        m.tensor(f"blk.{layer}.ssm_conv1d.weight", inner, kernel, scale=0.6)
        m.tensor(f"blk.{layer}.ssm_conv1d.bias", inner, scale=0.3)
        m.linear(f"blk.{layer}.ssm_x", rank + 2 * state, inner)
        m.linear(f"blk.{layer}.ssm_dt", inner, rank, bias=True)
        m.tensor(f"blk.{layer}.ssm_a", inner, state, scale=0.5, offset=-0.75)
        m.tensor(f"blk.{layer}.ssm_d", inner, scale=1.0)
        m.linear(f"blk.{layer}.ssm_out", m.width, inner)
    yield m
    for groups in (1, 2):
        m = Model("mamba2" if groups == 1 else "mamba2-groups", "mamba2")
        inner, heads_ = 48, 6
        mixed = inner + 2 * groups * state
        for key, value in (("conv_kernel", kernel), ("inner_size", inner), ("state_size", state),
                           ("time_step_rank", heads_), ("group_count", groups)):
            m.uint("ssm." + key, value)
        m.float("attention.layer_norm_rms_epsilon", 1e-5)
        m.uint("feed_forward_length", 0)
        m.uint("attention.head_count", 0)
        ends(m)
        for layer in range(m.layers):
            m.norm(f"blk.{layer}.attn_norm")
            m.linear(f"blk.{layer}.ssm_in", inner + mixed + heads_, m.width)
            m.tensor(f"blk.{layer}.ssm_conv1d.weight", mixed, kernel, scale=0.6)
            m.tensor(f"blk.{layer}.ssm_conv1d.bias", mixed, scale=0.3)
            m.tensor(f"blk.{layer}.ssm_dt.bias", heads_, scale=0.5)
            m.tensor(f"blk.{layer}.ssm_a", heads_, 1, scale=0.5, offset=-0.75)
            m.tensor(f"blk.{layer}.ssm_d", heads_, 1, scale=1.0)
            m.tensor(f"blk.{layer}.ssm_norm.weight", groups, inner // groups, scale=0.25, offset=1.0)
            m.linear(f"blk.{layer}.ssm_out", m.width, inner)
        yield m
    m = Model("qwen3next", "qwen3next", 4)
    q, kv, head_dim = heads(m)
    size, key_heads, value_heads = 6, 2, 4
    key, value = size * key_heads, size * value_heads
    for name, number in (("conv_kernel", kernel), ("inner_size", value), ("state_size", size),
                         ("time_step_rank", value_heads), ("group_count", key_heads)):
        m.uint("ssm." + name, number)
    m.uint("feed_forward_length", 40)
    m.uint("expert_count", 5)
    m.uint("expert_used_count", 3)
    m.uint("expert_feed_forward_length", 20)
    m.uint("expert_shared_feed_forward_length", 28)
    m.uint("rope.dimension_count", 4)
    ends(m)
    for layer in range(m.layers):
        m.norm(f"blk.{layer}.attn_norm")
        if layer % 4 == 3:
            m.linear(f"blk.{layer}.attn_q", 2 * q, m.width)
            m.linear(f"blk.{layer}.attn_k", kv, m.width)
            m.linear(f"blk.{layer}.attn_v", kv, m.width)
            m.linear(f"blk.{layer}.attn_output", m.width, q)
            m.norm(f"blk.{layer}.attn_q_norm", head_dim)
            m.norm(f"blk.{layer}.attn_k_norm", head_dim)
        else:
            m.linear(f"blk.{layer}.attn_qkv", 2 * key + value, m.width)
            m.linear(f"blk.{layer}.attn_gate", value, m.width)
            m.tensor(f"blk.{layer}.ssm_conv1d.weight", 2 * key + value, kernel, scale=0.6)
            m.tensor(f"blk.{layer}.ssm_dt.bias", value_heads, scale=0.5)
            m.tensor(f"blk.{layer}.ssm_a", value_heads, scale=0.5, offset=-0.75)
            m.linear(f"blk.{layer}.ssm_ba", 2 * value_heads, m.width)
            m.norm(f"blk.{layer}.ssm_norm", size)
            m.linear(f"blk.{layer}.ssm_out", m.width, value)
        m.norm(f"blk.{layer}.post_attention_norm")
        experts(m, layer, 5, 20)
        m.tensor(f"blk.{layer}.ffn_gate_inp_shexp.weight", m.width, scale=0.5)
        gated(m, layer, 28, "_shexp")
    yield m


def encoder_models():
    for name in ("bert", "nomic-bert"):
        m = Model(name, name)
        m.embeddings = True
        q, kv, _ = heads(m, kv=4, head_dim=6, eps="layer")
        m.uint("feed_forward_length", 40)
        m.bool("attention.causal", False)
        m.uint("pooling_type", 1)
        m.metadata.append(("uint", "tokenizer.ggml.token_type_count", 2))
        m.tensor("token_embd.weight", m.vocabulary, m.width, scale=1.0)
        m.tensor("token_types.weight", 2, m.width, scale=0.5)
        m.norm("token_embd_norm", bias=True)
        if name == "bert":
            m.tensor("position_embd.weight", 128, m.width, scale=0.6)
        else:
            m.float("rope.freq_base", 1000.0)
        for layer in range(m.layers):
            attention(m, layer, q, kv, bias=name == "bert", out_bias=name == "bert", fused=name != "bert")
            m.norm(f"blk.{layer}.attn_output_norm", bias=True)
            if name == "bert":
                plain(m, layer, 40)
            else:
                gated(m, layer, 40)
            m.norm(f"blk.{layer}.layer_output_norm", bias=True)
        yield m


def described():
    return itertools.chain(models(), grid_model(), latent_models(), recurrent_models(), encoder_models())


def rows_of(logits, m, adapter=None, scale=1.0, decoded=False):
    """What llama.cpp computes for a model, with an adapter, or with blocks decoded; None where it does not."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "model.gguf"), os.path.join(folder, "out.f32")
        m.write(path, decoded)
        env = dict(os.environ, LLAMA_CONTEXT=str(m.context))
        if adapter is not None:
            env.update(LLAMA_LORA=os.path.join(folder, "adapter.gguf"), LLAMA_LORA_SCALE=repr(scale))
            adapter.write(env["LLAMA_LORA"])
        flags = ["-e"] if m.embeddings else []
        ran = subprocess.run([logits, *flags, path, out, *map(str, m.ids)], check=False, stdout=subprocess.DEVNULL,
                             env=env)
        if ran.returncode:
            print(m.name, "was not recorded:", ran.returncode)
            return None
        return numpy.fromfile(out, "<f4").reshape(len(m.ids), -1)


def write_rows(f, rows, word="row"):
    for row in rows:
        f.write(word + " " + " ".join(f"{value:.7g}" for value in row) + "\n")


def main():
    logits, names = sys.argv[1], sys.argv[2:]
    for m in described():
        if names and m.name not in names:
            continue
        sets = {}
        for word in ("row", "exact") if m.packed() else ("row",):
            rows = rows_of(logits, m, decoded=word == "exact")
            if rows is None:
                break
            sets[word] = rows
        else:
            with open(os.path.join(FOLDER, m.name + ".txt"), "w", encoding="utf-8") as f:
                f.write(m.text())
                for word, rows in sets.items():
                    write_rows(f, rows, word)
            print(m.name, *((word, rows.shape, float(numpy.abs(rows).max())) for word, rows in sets.items()))
            if len(sets) == 2:
                print("  furthest apart:", float(numpy.abs(sets["row"] - sets["exact"]).max()))


if __name__ == "__main__":
    main()
