"""Records what transformers computes for a small folder of each family: tests/golden/hugging_face/NAME.txt.

A file describes a folder (config.json, tensors) and has the logits of its ids, or the rows of an encoder. Weights are
made from the description by the rule of record_architectures.py.

Needs numpy, torch and transformers:

  python3 record_hugging_face.py [NAME..]
"""

import json
import math
import os
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

from record_architectures import IDS, hashes

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hugging_face")
SIZES = dict(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def described(name, shape, norms_from_one):
    """Scale and offset of a tensor's elements."""
    if "norm" in name.lower() and name.endswith(".weight"):
        return 0.25, 0.0 if norms_from_one else 1.0
    if len(shape) == 1:
        return 0.1, 0.0
    if "embed" in name:
        return 1.0, 0.0
    return math.sqrt(3 / shape[-1]), 0.0


def folders():
    def causal(name, model_type, old=None, **options):
        # `old`: keys of config.json as transformers 4 wrote them, in place of rope_parameters.
        sizes = {**SIZES, "head_dim": 8, **options}
        return name, model_type, {key: value for key, value in sizes.items() if value is not None}, old

    yield causal("llama", "llama", tie_word_embeddings=False, rms_norm_eps=1e-5)
    yield causal("llama-biases", "llama", attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=None)
    yield causal("llama-old", "llama", {"rope_theta": 5000.0, "rope_scaling": None},
                 rope_parameters={"rope_type": "default", "rope_theta": 5000.0}, tie_word_embeddings=True)
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 32}
    yield causal("llama3", "llama", rope_parameters={"rope_theta": 500.0, **llama3}, tie_word_embeddings=True)
    yield causal("llama3-old", "llama", {"rope_theta": 500.0, "rope_scaling": llama3},
                 rope_parameters={"rope_theta": 500.0, **llama3}, tie_word_embeddings=True)
    yield causal("llama-linear", "llama", {"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 4.0}},
                 rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}, tie_word_embeddings=True)
    yield causal("llama-dynamic", "llama", tie_word_embeddings=True,
                 rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0})
    yield causal("llama-yarn", "llama", tie_word_embeddings=True,
                 rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                  "original_max_position_embeddings": 32, "beta_fast": 16.0})
    yield causal("llama-yarn-factor", "llama", tie_word_embeddings=True,
                 rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "attention_factor": 1.25,
                                  "original_max_position_embeddings": 32})
    yield causal("mistral", "mistral", sliding_window=5, tie_word_embeddings=False)
    yield causal("mixtral", "mixtral", num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False)
    yield causal("qwen2", "qwen2", head_dim=None, tie_word_embeddings=True)
    yield causal("qwen2_moe", "qwen2_moe", head_dim=None, num_experts=4, num_experts_per_tok=2,
                 moe_intermediate_size=12, shared_expert_intermediate_size=20, tie_word_embeddings=False)
    yield causal("qwen3", "qwen3", tie_word_embeddings=False)
    yield causal("qwen3_moe", "qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
                 norm_topk_prob=True, tie_word_embeddings=False)
    yield causal("gemma", "gemma")
    yield causal("gemma2", "gemma2", sliding_window=5, num_hidden_layers=4, query_pre_attn_scalar=16,
                 attn_logit_softcapping=20.0, final_logit_softcapping=15.0)
    gemma3 = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
              "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    yield causal("gemma3", "gemma3_text", sliding_window=5, num_hidden_layers=7, query_pre_attn_scalar=10,
                 rope_parameters=gemma3)
    yield causal("gemma3-old", "gemma3_text",
                 {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "layer_types": None, "sliding_window_pattern": 6,
                  "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
                 sliding_window=5, num_hidden_layers=7, query_pre_attn_scalar=8, rope_parameters=gemma3)
    yield causal("phi3", "phi3", head_dim=None, sliding_window=6, tie_word_embeddings=False)
    yield causal("phi3-longrope", "phi3", head_dim=None, hidden_size=32, original_max_position_embeddings=64,
                 tie_word_embeddings=False,
                 rope_parameters={"rope_type": "longrope", "rope_theta": 1e4, "long_factor": [1.0, 2.0, 4.0, 8.0],
                                  "short_factor": [1.0, 1.1, 1.25, 1.5], "original_max_position_embeddings": 64})
    yield causal("phi", "phi", head_dim=None, hidden_size=32, hidden_act="gelu_new", tie_word_embeddings=False,
                 num_key_value_heads=4, partial_rotary_factor=0.5)
    yield causal("olmo2", "olmo2", head_dim=None, tie_word_embeddings=False)
    yield causal("olmo3", "olmo3", head_dim=None, sliding_window=5, num_hidden_layers=4, tie_word_embeddings=False)
    yield causal("granite", "granite", head_dim=None, embedding_multiplier=3.0, residual_multiplier=0.5,
                 attention_multiplier=0.3, logits_scaling=2.0, tie_word_embeddings=True)
    yield causal("smollm3", "smollm3", head_dim=None, num_hidden_layers=5, tie_word_embeddings=True)
    yield causal("starcoder2", "starcoder2", head_dim=None, use_bias=True, sliding_window=6, tie_word_embeddings=True)
    yield causal("stablelm", "stablelm", head_dim=None, hidden_size=32, partial_rotary_factor=0.5, use_qkv_bias=True,
                 tie_word_embeddings=False)
    yield causal("bert", "bert", head_dim=None, num_key_value_heads=None, type_vocab_size=2)


def record(name, model_type, options, old):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **options)
    kind = transformers.AutoModel if model_type == "bert" else transformers.AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as folder:
        kind.from_config(config).save_pretrained(folder)
        weights = os.path.join(folder, "model.safetensors")
        lines, tensors = [], {}
        for tensor, value in sorted(load_file(weights).items()):
            if value.dtype != numpy.float32:
                continue
            scale, offset = described(tensor, value.shape, model_type.startswith("gemma"))
            u = (hashes(tensor, value.size) >> numpy.uint64(52)).astype(numpy.float64) / 2048 - 1
            tensors[tensor] = (offset + scale * u).astype(numpy.float32).reshape(value.shape)
            lines.append(f"tensor {tensor} f32 {scale!r} {offset!r} {' '.join(map(str, value.shape))}")
        save_file(tensors, weights, metadata={"format": "pt"})
        model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        with torch.no_grad():
            result = model(torch.tensor([IDS]))
        rows = (result.last_hidden_state if model_type == "bert" else result.logits)[0].numpy()
        with open(os.path.join(folder, "config.json")) as file:
            written = json.load(file)
    if old is not None:
        written.pop("rope_parameters", None)
        for key, value in old.items():
            written[key] = value
        written = {key: value for key, value in written.items() if key == "rope_scaling" or value is not None}
    written.pop("transformers_version", None)
    with open(os.path.join(FOLDER, name + ".txt"), "w") as file:
        print("config", json.dumps(written, sort_keys=True), file=file)
        print("context 64", *lines, sep="\n", file=file)
        print("ids", *IDS, file=file)
        for row in rows:
            print("row", *(f"{value:.6g}" for value in row), file=file)
    print(name, rows.shape, float(numpy.abs(rows).max()))


if __name__ == "__main__":
    for folder in folders():
        if len(sys.argv) == 1 or folder[0] in sys.argv[1:]:
            record(*folder)
