// How positions turn, of config.json: rope_theta and rope_scaling, or rope_parameters, which has both, and of models
// with local layers one for each kind of layer. models/rotary.h says what the forms are.

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "import/hugging_face/config.h"

namespace quern::hugging_face {
namespace {

constexpr int64_t kMostPairs = 1 << 16;

struct Rope {
  const Json& text;
  const Json& rule;  // rope_scaling or rope_parameters
  std::string prefix;
  int64_t n_rot;
  double base;
  double trained;  // positions, before they are scaled
  Metadata& metadata;
  Configured& configured;

  void Put(const char* key, double value) const { metadata.Put(absl::StrCat(prefix, ".rope.", key), value); }
  void PutType(const char* type) const { metadata.PutText(absl::StrCat(prefix, ".rope.scaling.type"), type); }
  StatusOr<double> Above0(const char* key) const {
    QUERN_ASSIGN(const std::optional<double> value, FindNumber(rule, key));
    if (!value || !(*value > 0))
      return absl::InvalidArgumentError(absl::StrFormat("rope_scaling: %s above 0 expected", key));
    return *value;
  }
};

Status ReadLinear(const Rope& rope) {
  QUERN_ASSIGN(const double factor, rope.Above0("factor"));
  rope.PutType("linear");
  rope.Put("scaling.factor", factor);
  return absl::OkStatus();
}

// Angles are those of training as long as a text is no longer than there.
Status ReadDynamic(const Rope&) { return absl::OkStatus(); }

Status ReadYarn(const Rope& rope) {
  QUERN_ASSIGN(const double factor, rope.Above0("factor"));
  QUERN_ASSIGN(const std::optional<bool> truncate, FindBool(rope.rule, "truncate"));
  if (truncate && !*truncate) return absl::UnimplementedError("rope_scaling: truncate false is not supported");
  rope.PutType("yarn");
  rope.Put("scaling.factor", factor);
  rope.metadata.PutInt(absl::StrCat(rope.prefix, ".rope.scaling.original_context_length"),
                       static_cast<int64_t>(rope.trained));
  for (const auto& [theirs, ours] :
       {std::pair("beta_fast", "scaling.yarn_beta_fast"), std::pair("beta_slow", "scaling.yarn_beta_slow")}) {
    QUERN_ASSIGN(const std::optional<double> value, FindNumber(rope.rule, theirs));
    if (value) rope.Put(ours, *value);
  }
  // The file's factor of attention is beside the usual one, 0.1 ln(factor) + 1.
  QUERN_ASSIGN(const std::optional<double> attention, FindNumber(rope.rule, "attention_factor"));
  QUERN_ASSIGN(const std::optional<double> scale, FindNumber(rope.rule, "mscale"));
  QUERN_ASSIGN(const std::optional<double> scale_all, FindNumber(rope.rule, "mscale_all_dim"));
  const auto grown = [&](double weight) { return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1; };
  if (attention)
    rope.Put("scaling.attn_factor", *attention / grown(1));
  else if (scale && scale_all && *scale != 0 && *scale_all != 0)
    rope.Put("scaling.attn_factor", grown(*scale) / grown(*scale_all) / grown(1));
  return absl::OkStatus();
}

Status ReadLlama3(const Rope& rope) {
  QUERN_ASSIGN(const double factor, rope.Above0("factor"));
  QUERN_ASSIGN(const double low, rope.Above0("low_freq_factor"));
  QUERN_ASSIGN(const double high, rope.Above0("high_freq_factor"));
  if (!(high > low)) return absl::InvalidArgumentError("rope_scaling: high_freq_factor is not above low_freq_factor");
  // Pairs that turn less than `low` times within the trained length are slower by the factor, those that turn more
  // than `high` times are not, and between them it is mixed (Llama 3.1).
  for (int64_t i = 0; i < rope.n_rot / 2; ++i) {
    const double angle = std::pow(rope.base, -2.0 * static_cast<double>(i) / static_cast<double>(rope.n_rot));
    const double turns = rope.trained * angle / (2 * std::numbers::pi);
    const double share = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    rope.configured.rope_freqs.push_back(static_cast<float>(1 / ((1 - share) / factor + share)));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<float>> ReadFactors(const Rope& rope, const char* key) {
  const Json* list = Find(rope.rule, key);
  std::vector<float> factors;
  if (list == nullptr || !list->is_array() || static_cast<int64_t>(list->size()) != rope.n_rot / 2) {
    return absl::InvalidArgumentError(absl::StrFormat("rope_scaling: %s of %d numbers expected", key, rope.n_rot / 2));
  }
  for (const Json& factor : *list) {
    if (!factor.is_number())
      return absl::InvalidArgumentError(absl::StrFormat("rope_scaling: %s of numbers expected", key));
    factors.push_back(factor.get<float>());
  }
  return factors;
}

Status ReadLongrope(const Rope& rope) {
  QUERN_ASSIGN(rope.configured.rope_long, ReadFactors(rope, "long_factor"));
  QUERN_ASSIGN(rope.configured.rope_short, ReadFactors(rope, "short_factor"));
  rope.PutType("longrope");
  rope.metadata.PutInt(absl::StrCat(rope.prefix, ".rope.scaling.original_context_length"),
                       static_cast<int64_t>(rope.trained));
  QUERN_ASSIGN(const std::optional<double> longest, FindNumber(rope.text, "max_position_embeddings"));
  QUERN_ASSIGN(const std::optional<double> attention, FindNumber(rope.rule, "attention_factor"));
  QUERN_ASSIGN(const std::optional<double> given, FindNumber(rope.rule, "factor"));
  const double factor = given.value_or(longest.value_or(rope.trained) / rope.trained);
  const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(rope.trained));
  rope.Put("scaling.attn_factor", attention.value_or(usual));
  return absl::OkStatus();
}

constexpr struct {
  std::string_view name;
  Status (*read)(const Rope& rope);
} kForms[] = {{"linear", ReadLinear}, {"dynamic", ReadDynamic},   {"yarn", ReadYarn},
              {"llama3", ReadLlama3}, {"longrope", ReadLongrope}, {"su", ReadLongrope}};

Status ReadForm(const Rope& rope) {
  QUERN_ASSIGN(std::optional<std::string> type, FindText(rope.rule, "rope_type"));
  if (!type) {
    QUERN_ASSIGN(type, FindText(rope.rule, "type"));
  }
  if (!type || *type == "default") return absl::OkStatus();
  for (const auto& form : kForms) {
    if (form.name == *type) return form.read(rope);
  }
  return absl::UnimplementedError(absl::StrFormat(
      "rope_scaling: the type %s is none of default, linear, dynamic, yarn, llama3, longrope", Shown(Json(*type))));
}

// The base of a rule, which may be beside it.
StatusOr<std::optional<double>> ReadBase(const Json& text, const Json& rule, const char* beside) {
  QUERN_ASSIGN(const std::optional<double> within, FindNumber(rule, "rope_theta"));
  if (within) return within;
  return FindNumber(text, beside);
}

}  // namespace

Status ReadRope(const Json& text, int64_t head_dim, Metadata& metadata, Configured& configured) {
  static const Json* const none = new Json(Json::object());
  const Json* rule = Find(text, "rope_parameters");
  if (rule == nullptr) rule = Find(text, "rope_scaling");
  if (rule == nullptr) rule = none;
  const std::string prefix = configured.family->architecture;
  // One rule for layers that see all and one for the others, which is not scaled.
  const Json* local = Find(*rule, "sliding_attention");
  if (const Json* whole = Find(*rule, "full_attention"); whole != nullptr) rule = whole;
  QUERN_ASSIGN(const std::optional<double> local_base,
               ReadBase(text, local == nullptr ? *none : *local, "rope_local_base_freq"));
  if (local_base) metadata.Put(absl::StrCat(prefix, ".rope.freq_base_swa"), *local_base);
  if (local != nullptr && Find(*local, "rope_type") != nullptr && *Find(*local, "rope_type") != "default")
    return absl::UnimplementedError("rope_parameters: positions of sliding_attention are scaled");

  QUERN_ASSIGN(const std::optional<double> base, ReadBase(text, *rule, "rope_theta"));
  if (base) metadata.Put(absl::StrCat(prefix, ".rope.freq_base"), *base);
  QUERN_ASSIGN(std::optional<double> part, FindNumber(*rule, "partial_rotary_factor"));
  if (!part) {
    QUERN_ASSIGN(part, FindNumber(text, "partial_rotary_factor"));
  }
  int64_t n_rot = head_dim;
  if (part && *part >= 0 && *part <= 1) n_rot = static_cast<int64_t>(static_cast<double>(head_dim) * *part);
  if (n_rot < 0 || n_rot > 2 * kMostPairs) return absl::InvalidArgumentError("head_dim is out of range");
  if (part) metadata.PutInt(absl::StrCat(prefix, ".rope.dimension_count"), n_rot);

  std::optional<double> trained;
  for (const Json* place : {rule, &text}) {
    if (trained) continue;
    QUERN_ASSIGN(trained, FindNumber(*place, "original_max_position_embeddings"));
  }
  if (!trained) {
    QUERN_ASSIGN(trained, FindNumber(text, "max_position_embeddings"));
  }
  constexpr double kMostPositions = 1e9;
  if (trained && !(*trained >= 1 && *trained <= kMostPositions))
    return absl::InvalidArgumentError("original_max_position_embeddings is out of range");
  return ReadForm({text, *rule, prefix, n_rot, base.value_or(10000), trained.value_or(1), metadata, configured});
}

}  // namespace quern::hugging_face
