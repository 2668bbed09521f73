#include "import/hugging_face/family.h"

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quern::hugging_face {
namespace {

// Most are written like Llama.
constexpr TensorName kCommon[] = {
    {"token_embd", "embed_tokens"},
    {"output_norm", "norm"},
    {"output", "lm_head"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr TensorName kNormsBehind[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr TensorName kFusedGate[] = {{"ffn_up", "mlp.gate_up_proj"}};
constexpr TensorName kStarcoder2[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
constexpr TensorName kPhi[] = {
    {"attn_output", "self_attn.dense"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
    {"output_norm", "final_layernorm"},
};
constexpr TensorName kMixtral[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
    {"ffn_down_exps", "block_sparse_moe.experts.w2"},
    {"ffn_up_exps", "block_sparse_moe.experts.w3"},
};
constexpr TensorName kExperts[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
};
constexpr TensorName kBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
};

constexpr std::string_view kSilu = "silu swish", kTanhGelu = "gelu_pytorch_tanh gelu_new gelu_fast";
// Gemma's first configurations say gelu and mean the approximation.
constexpr std::string_view kGemmaGelu = "gelu_pytorch_tanh gelu_new gelu_fast gelu";

constexpr Family kFamilies[] = {
    {"llama", "llama", kSilu, kPairsApart},
    {"mistral", "llama", kSilu, kPairsApart | kWindows},
    {"mixtral", "llama", kSilu, kPairsApart | kWindows, kMixtral},
    {"qwen2", "qwen2", kSilu},
    {"qwen2_moe", "qwen2moe", kSilu, 0, kExperts},
    {"qwen3", "qwen3", kSilu},
    {"qwen3_moe", "qwen3moe", kSilu, 0, kExperts},
    {"gemma", "gemma", kGemmaGelu, kNormsFromOne},
    {"gemma2", "gemma2", kTanhGelu, kNormsFromOne | kWindows, kNormsBehind, 2},
    {"gemma3_text", "gemma3", kTanhGelu, kNormsFromOne | kWindows, kNormsBehind, 6},
    {"gemma3", "gemma3", kTanhGelu, kNormsFromOne | kWindows, kNormsBehind, 6},
    {"phi3", "phi3", kSilu, kWindows, kFusedGate},
    {"phi", "phi2", kTanhGelu, 0, kPhi},
    {"olmo2", "olmo2", kSilu, 0, kNormsBehind},
    {"olmo3", "olmo2", kSilu, kWindows, kNormsBehind, 4},
    {"granite", "granite", kSilu, kPairsApart},
    {"smollm3", "smollm3", kSilu, kPairsApart},
    {"starcoder2", "starcoder2", kTanhGelu, kWindows, kStarcoder2},
    {"stablelm", "stablelm", kSilu},
    {"bert", "bert", kGemmaGelu, kEncoder, kBert},
};

// What stands before the names of a model's own tensors, where it is the text part of another or has a head.
constexpr std::string_view kPrefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model.", "bert.", ""};
// Before the number of a layer.
constexpr std::string_view kLayers[] = {"layers.", "encoder.layer."};
// Beginnings and ends of what the function has not: parts for images, heads for training, tables that are computed.
constexpr std::string_view kNotOurs[] = {"vision_tower.", "vision_model.", "multi_modal_projector.",
                                         "visual.",       "pooler.",       "cls."};
constexpr std::string_view kNotOursEnds[] = {"rotary_emb.inv_freq", "embeddings.position_ids"};

bool Cut(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

// The number that `text` begins with and a point.
std::optional<int64_t> CutNumber(std::string_view& text) {
  const size_t point = text.find('.');
  int64_t number = 0;
  if (point == 0 || point == std::string_view::npos || point > 6 || text[0] < '0' || text[0] > '9' ||
      !absl::SimpleAtoi(absl::string_view(text.data(), point), &number))
    return std::nullopt;
  text.remove_prefix(point + 1);
  return number;
}

}  // namespace

std::span<const Family> Families() { return kFamilies; }

const Family* FindFamily(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::string GgufName(const Family& family, std::string_view name, int64_t& expert) {
  expert = -1;
  std::string_view rest = name;
  for (const std::string_view prefix : kPrefixes) {
    if (Cut(rest, prefix)) break;
  }
  for (const std::string_view other : kNotOurs) {
    if (rest.starts_with(other)) return "";
  }
  for (const std::string_view end : kNotOursEnds) {
    if (rest.ends_with(end)) return "";
  }
  std::string layer;
  for (const std::string_view layers : kLayers) {
    if (!Cut(rest, layers)) continue;
    const std::optional<int64_t> number = CutNumber(rest);
    if (!number) return std::string(name);
    layer = absl::StrCat("blk.", *number, ".");
    break;
  }
  const size_t point = rest.rfind('.');
  const std::string_view end = point == std::string_view::npos ? "" : rest.substr(point);
  if (end != ".weight" && end != ".bias") return std::string(name);
  std::string part(rest.substr(0, point));
  if (const size_t at = part.find(".experts."); at != std::string::npos) {
    std::string_view after = std::string_view(part).substr(at + 9);
    const std::optional<int64_t> number = CutNumber(after);
    if (!number) return std::string(name);
    expert = *number;
    part = absl::StrCat(part.substr(0, at + 9), std::string(after));
  }
  for (const std::span<const TensorName> table : {family.tensors, std::span<const TensorName>(kCommon)}) {
    for (const TensorName& row : table) {
      if (row.theirs == part) return absl::StrCat(layer, std::string(row.ours), std::string(end));
    }
  }
  return std::string(name);
}

}  // namespace quern::hugging_face
