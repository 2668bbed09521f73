"""Records what llama.cpp computes for a small model of each architecture with a LoRA adapter: tests/golden/adapters.

A file describes an adapter, as those of record_architectures.py do a model, and has besides the name of the model
(base), the factor (scale) and the rows. Weights and ranks of adapters differ from tensor to tensor.

  LLAMA_BINS=LIBS python3 record_adapters.py ./llama_logits [NAME..]
"""

import os
import sys

import numpy

import record_architectures as golden

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapters")
RANKS = (3, 5, 1, 7)
# Weights that llama.cpp multiplies by without looking for an adapter, and tables.
LEFT = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "ssm_dt", "ssm_x", "ffn_gate_inp_shexp", "attn_k_b", "attn_v_b",
        "position_embd", "token_types", "rope_f", "norm")
# The same in this architecture alone.
LEFT_OF_DEEPSEEK2 = ("attn_q", "attn_kv", "output")
# Those that change the rows of the table, which this one must not have as its output.
TABLES = ("llama", "qwen2")


class Adapter(golden.Model):
    def __init__(self, base, alpha):
        super().__init__(base.name, base.architecture)
        self.metadata = [("string", "general.architecture", base.architecture), ("string", "general.type", "adapter"),
                         ("string", "adapter.type", "lora")]
        if alpha:
            self.metadata.append(("float", "adapter.lora.alpha", alpha))

    def pair(self, name, dims, rank, dtype):
        scale = float(numpy.float32((3.0 / dims[-1]) ** 0.5))
        a, b = (*dims[:-2], rank, dims[-1]), (*dims[:-1], rank)
        if name == "token_embd.weight":
            a, b, scale = (dims[0], rank), (dims[1], rank), 1.0
        self.tensor(name + ".lora_a", *a, scale=scale, dtype=dtype)
        self.tensor(name + ".lora_b", *b, scale=0.5, dtype=dtype)


def adapter_of(base, alpha, dtype):
    adapter = Adapter(base, alpha)
    for name, _, dims, _, _ in base.tensors:
        part = name.removesuffix(".weight").split(".")[-1]
        if base.architecture == "deepseek2" and part.startswith(LEFT_OF_DEEPSEEK2):
            continue
        if len(dims) < 2 or part.startswith(LEFT) or part.endswith("norm"):
            continue
        if part == "token_embd" and base.name not in TABLES:
            continue
        adapter.pair(name, dims, RANKS[len(adapter.tensors) // 2 % len(RANKS)], dtype)
    return adapter


def main():
    logits, names = sys.argv[1], sys.argv[2:]
    seen = set()
    os.makedirs(FOLDER, exist_ok=True)
    for number, m in enumerate(golden.described()):
        if m.architecture in seen or (names and m.name not in names):
            continue
        seen.add(m.architecture)
        # One in three has no alpha: the factor is the scale alone.
        adapter, scale = adapter_of(m, (0, 7.0, 2.5)[number % 3], ("f32", "f16")[number % 2]), 0.5
        rows, plain = golden.rows_of(logits, m, adapter, scale), golden.rows_of(logits, m)
        if rows is None:
            continue
        with open(os.path.join(FOLDER, m.name + ".txt"), "w", encoding="utf-8") as f:
            lines = [line for line in adapter.text().splitlines() if not line.startswith(("context", "ids"))]
            f.write("\n".join([*lines, f"base {m.name}", f"scale {scale!r}"]) + "\n")
            golden.write_rows(f, rows)
        print(m.name, rows.shape, float(numpy.abs(rows).max()), "changed by", float(numpy.abs(rows - plain).max()))


if __name__ == "__main__":
    main()
