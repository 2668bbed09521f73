#include "import/hugging_face/config.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::hugging_face {
namespace {

enum class Kind { kInt, kNumber, kBool };

// A key of config.json and where it goes, behind the architecture's name. Of several names for one the first that is
// there counts.
struct Key {
  const char *theirs, *ours;
  Kind kind;
  std::string_view architectures = {};  // divided by blanks; empty: all
};
constexpr Key kKeys[] = {
    {"max_position_embeddings", "context_length", Kind::kInt},
    {"hidden_size", "embedding_length", Kind::kInt},
    {"num_hidden_layers", "block_count", Kind::kInt},
    {"intermediate_size", "feed_forward_length", Kind::kInt},
    {"num_attention_heads", "attention.head_count", Kind::kInt},
    {"num_key_value_heads", "attention.head_count_kv", Kind::kInt},
    {"head_dim", "attention.key_length", Kind::kInt},
    {"head_dim", "attention.value_length", Kind::kInt},
    {"vocab_size", "vocab_size", Kind::kInt},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", Kind::kNumber},
    {"layer_norm_eps", "attention.layer_norm_epsilon", Kind::kNumber},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", Kind::kNumber},
    {"norm_epsilon", "attention.layer_norm_epsilon", Kind::kNumber},
    {"num_local_experts", "expert_count", Kind::kInt},
    {"num_experts", "expert_count", Kind::kInt},
    {"num_experts_per_tok", "expert_used_count", Kind::kInt},
    {"moe_intermediate_size", "expert_feed_forward_length", Kind::kInt},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", Kind::kInt},
    {"attn_logit_softcapping", "attn_logit_softcapping", Kind::kNumber, "gemma2"},
    {"final_logit_softcapping", "final_logit_softcapping", Kind::kNumber, "gemma2 gemma3"},
    {"embedding_multiplier", "embedding_scale", Kind::kNumber, "granite"},
    {"residual_multiplier", "residual_scale", Kind::kNumber, "granite"},
    {"attention_multiplier", "attention.scale", Kind::kNumber, "granite"},
    {"logits_scaling", "logit_scale", Kind::kNumber, "granite"},
};

// Values that change the function, of which an architecture computes one.
struct Fixed {
  const char *key, *value;  // as JSON
  std::string_view architectures = {};
};
constexpr Fixed kFixed[] = {
    {"norm_topk_prob", "true", "qwen3moe"},
    {"norm_topk_prob", "false", "qwen2moe"},
    {"decoder_sparse_step", "1", "qwen2moe qwen3moe"},
    {"mlp_only_layers", "[]", "qwen2moe qwen3moe"},
    {"use_sliding_window", "false", "qwen2moe qwen3moe"},
    {"no_rope_layer_interval", "4", "smollm3"},
    {"use_sliding_window", "false", "smollm3"},
    {"qk_layernorm", "false", "phi2"},
    {"use_bidirectional_attention", "false", "gemma3"},
    {"position_embedding_type", "\"absolute\"", "bert"},
    {"is_decoder", "false", "bert"},
    {"attn_logit_softcapping", "null", "gemma3"},
};

bool Listed(std::string_view names, std::string_view name) {
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(' ', at), names.size());
    if (names.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

class Reader {
 public:
  Reader(const Json& text, const Family& family, Metadata& metadata)
      : text_(text), family_(family), metadata_(metadata) {}

  Status ReadKeys() {
    for (const Key& key : kKeys) {
      if (Find(text_, key.theirs) == nullptr || metadata_.Has(Ours(key.ours))) continue;
      if (!key.architectures.empty() && !Listed(key.architectures, family_.architecture)) continue;
      switch (key.kind) {
        case Kind::kInt: {
          QUERN_ASSIGN(const std::optional<int64_t> value, FindInt(text_, key.theirs));
          metadata_.PutInt(Ours(key.ours), *value);
          break;
        }
        case Kind::kNumber: {
          QUERN_ASSIGN(const std::optional<double> value, FindNumber(text_, key.theirs));
          metadata_.Put(Ours(key.ours), *value);
          break;
        }
        case Kind::kBool: {
          QUERN_ASSIGN(const std::optional<bool> value, FindBool(text_, key.theirs));
          metadata_.Put(Ours(key.ours), *value);
          break;
        }
      }
    }
    return absl::OkStatus();
  }

  Status CheckFixed() const {
    for (const Fixed& fixed : kFixed) {
      const Json* value = Find(text_, fixed.key);
      if (value == nullptr || !Listed(fixed.architectures, family_.architecture)) continue;
      if (*value != Json::parse(fixed.value)) {
        return absl::UnimplementedError(absl::StrFormat("%s is %s, which the architecture %s does not compute; %s is",
                                                        fixed.key, Shown(*value), family_.architecture, fixed.value));
      }
    }
    for (const char* key : {"hidden_activation", "hidden_act", "activation_function"}) {
      QUERN_ASSIGN(const std::optional<std::string> name, FindText(text_, key));
      if (!name) continue;
      if (Listed(family_.activations, *name)) break;
      return absl::UnimplementedError(absl::StrFormat("%s is %s, which the architecture %s does not compute", key,
                                                      Shown(Json(*name)), family_.architecture));
    }
    return absl::OkStatus();
  }

  // Which layers see a window of the last tokens, and how many these are.
  Status ReadWindows() {
    QUERN_ASSIGN(const std::optional<int64_t> window, FindInt(text_, "sliding_window"));
    QUERN_ASSIGN(const std::optional<bool> used, FindBool(text_, "use_sliding_window"));
    QUERN_ASSIGN(const std::optional<int64_t> layers, FindInt(text_, "num_hidden_layers"));
    constexpr int64_t kMostLayers = 1 << 16;
    if (!layers || *layers < 1 || *layers > kMostLayers) return absl::OkStatus();  // an error of the architecture's own
    std::vector<bool> local(static_cast<size_t>(*layers), false);
    if (const Json* types = Find(text_, "layer_types"); types != nullptr) {
      QUERN_RETURN_IF_ERROR(ReadTypes(*types, local));
    } else if (window && used.value_or(true)) {
      QUERN_ASSIGN(const std::optional<int64_t> pattern, FindInt(text_, "sliding_window_pattern"));
      QUERN_ASSIGN(const std::optional<int64_t> whole, FindInt(text_, "max_window_layers"));
      const int64_t period = pattern.value_or(family_.window_period);
      for (int64_t i = 0; i < *layers; ++i)
        local[static_cast<size_t>(i)] = period > 0 ? (i + 1) % period != 0 : i >= whole.value_or(0);
    }
    const bool any = window && used.value_or(true) && std::find(local.begin(), local.end(), true) != local.end();
    if (any && (family_.traits & kWindows) == 0) {
      return absl::UnimplementedError(
          absl::StrFormat("sliding_window: layers of the architecture %s see all tokens", family_.architecture));
    }
    if (any || family_.window_period > 0) metadata_.PutInt(Ours("attention.sliding_window"), any ? *window : 0);
    if (any) metadata_.PutBools(Ours("attention.sliding_window_pattern"), local);
    return absl::OkStatus();
  }

  // Gemma's queries are scaled by a number of their own: said where it is not that of the head.
  Status ReadQueryScale() {
    QUERN_ASSIGN(const std::optional<double> scalar, FindNumber(text_, "query_pre_attn_scalar"));
    if (!scalar) return absl::OkStatus();
    if (!(*scalar > 0)) return absl::InvalidArgumentError("query_pre_attn_scalar is not above 0");
    metadata_.Put(Ours("attention.scale"), 1 / std::sqrt(*scalar));
    return absl::OkStatus();
  }

  // SmolLM3: which layers turn is a rule of the architecture.
  Status CheckTurningLayers() const {
    const Json* turning = Find(text_, "no_rope_layers");
    if (turning == nullptr || !turning->is_array()) return absl::OkStatus();
    for (size_t i = 0; i < turning->size(); ++i) {
      if ((*turning)[i] != Json((i + 1) % 4 != 0 ? 1 : 0))
        return absl::UnimplementedError("no_rope_layers: every fourth layer and no other is one, expected");
    }
    return absl::OkStatus();
  }

  StatusOr<int64_t> HeadDim() const {
    QUERN_ASSIGN(const std::optional<int64_t> given, FindInt(text_, "head_dim"));
    QUERN_ASSIGN(const std::optional<int64_t> width, FindInt(text_, "hidden_size"));
    QUERN_ASSIGN(const std::optional<int64_t> heads, FindInt(text_, "num_attention_heads"));
    return given.value_or(width.value_or(0) / std::max<int64_t>(1, heads.value_or(1)));
  }

 private:
  std::string Ours(std::string_view name) const { return absl::StrCat(family_.architecture, ".", std::string(name)); }

  Status ReadTypes(const Json& types, std::vector<bool>& local) const {
    if (!types.is_array() || types.size() != local.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("layer_types is %s, a list of %u expected", Shown(types), local.size()));
    }
    for (size_t i = 0; i < local.size(); ++i) {
      if (types[i] != "full_attention" && types[i] != "sliding_attention")
        return absl::UnimplementedError(absl::StrFormat("layer_types: %s is not supported", Shown(types[i])));
      local[i] = types[i] == "sliding_attention";
    }
    return absl::OkStatus();
  }

  const Json& text_;
  const Family& family_;
  Metadata& metadata_;
};

}  // namespace

StatusOr<Configured> ReadConfig(const Json& config, Metadata& metadata) {
  // A model of images and text has the text's numbers in a part of their own.
  const Json* part = Find(config, "text_config");
  const Json& text = part != nullptr && part->is_object() ? *part : config;
  QUERN_ASSIGN(const std::optional<std::string> type, FindText(text, "model_type"));
  Configured configured;
  configured.family = type ? FindFamily(*type) : nullptr;
  if (configured.family == nullptr) {
    const std::string known = absl::StrJoin(Families(), ", ", [](std::string* out, const Family& family) {
      absl::StrAppend(out, std::string(family.model_type));
    });
    return absl::UnimplementedError(
        absl::StrFormat("model_type %s is not supported; these are: %s", type ? Shown(Json(*type)) : "(none)", known));
  }
  if (const Json* quantised = Find(config, "quantization_config"); quantised != nullptr) {
    return absl::UnimplementedError(absl::StrFormat(
        "quantization_config: weights quantised by %s are not supported; F32, F16 and BF16 are",
        Find(*quantised, "quant_method") == nullptr ? "an unnamed method" : Shown(*Find(*quantised, "quant_method"))));
  }
  const Family& family = *configured.family;
  metadata.PutText("general.architecture", family.architecture);
  Reader reader(text, family, metadata);
  QUERN_RETURN_IF_ERROR(reader.ReadKeys());
  QUERN_RETURN_IF_ERROR(reader.CheckFixed());
  QUERN_RETURN_IF_ERROR(reader.ReadWindows());
  if (family.architecture == std::string_view("gemma2") || family.architecture == std::string_view("gemma3"))
    QUERN_RETURN_IF_ERROR(reader.ReadQueryScale());
  if (family.architecture == std::string_view("smollm3")) QUERN_RETURN_IF_ERROR(reader.CheckTurningLayers());
  if ((family.traits & kEncoder) != 0) {
    QUERN_ASSIGN(const std::optional<std::string> act, FindText(text, "hidden_act"));
    if (act) metadata.PutText(absl::StrCat(family.architecture, ".hidden_act"), *act);
  } else {
    QUERN_ASSIGN(const int64_t head_dim, reader.HeadDim());
    QUERN_RETURN_IF_ERROR(ReadRope(text, head_dim, metadata, configured));
  }
  QUERN_ASSIGN(std::optional<bool> tied, FindBool(text, "tie_word_embeddings"));
  if (!tied && &text != &config) {
    QUERN_ASSIGN(tied, FindBool(config, "tie_word_embeddings"));
  }
  configured.tied = tied && *tied;
  configured.untied = tied && !*tied;
  return configured;
}

}  // namespace quern::hugging_face
