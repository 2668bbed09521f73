#include "models/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace quern::models {
namespace {

// The pair that turns `turns` times within the trained length, as a real number.
double PairOfTurns(const RotaryRule& rule, double turns) {
  return static_cast<double>(rule.n_rot) *
         std::log(static_cast<double>(rule.trained) / (turns * 2 * std::numbers::pi)) / (2 * std::log(rule.base));
}

// How much of the unscaled frequency pair i keeps under yarn: 1 for pairs that turn often, 0 for those that do not.
std::vector<double> SharesUnscaled(const RotaryRule& rule) {
  const double last = static_cast<double>(rule.n_rot) - 1;
  const double low = std::max(0.0, std::floor(PairOfTurns(rule, rule.beta_fast))),
               high = std::min(last, std::ceil(PairOfTurns(rule, rule.beta_slow)));
  std::vector<double> shares(rule.n_rot / 2);
  for (size_t i = 0; i < shares.size(); ++i)
    shares[i] = 1 - std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
  return shares;
}

// The growth of attention's logits that yarn makes up for, of a context `factor` times as long.
double YarnMagnitude(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1; }

}  // namespace

RotaryRule ReadRotaryRule(Hyperparameters& numbers, int64_t head_dim, int64_t trained_context) {
  RotaryRule rule;
  rule.n_rot = numbers.IntOr("rope.dimension_count", 2, kMostHeadDim, head_dim);
  if (rule.n_rot % 2 != 0 || rule.n_rot > head_dim) {
    numbers.Fail("rope.dimension_count",
                 absl::StrFormat("%d is not even and at most the head dimension %d", rule.n_rot, head_dim));
  }
  rule.base = numbers.FloatOr("rope.freq_base", 1, 1e12, 10000);
  rule.trained = numbers.IntOr("rope.scaling.original_context_length", 1, kMostContext, trained_context);
  rule.magnitude = numbers.FloatOr("rope.scaling.attn_factor", 0, 1e6, 1);
  // Files older than the type's key scale linearly.
  const std::string_view scaling = numbers.StringOr("rope.scaling.type", "linear");
  if (scaling != "none" && scaling != "linear" && scaling != "yarn" && scaling != "longrope") {
    numbers.FailUnsupported("rope.scaling.type",
                            absl::StrFormat("\"%s\" is none of none, linear, yarn, longrope", scaling));
  }
  if (scaling == "none") return rule;
  const char* key = numbers.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = numbers.FloatOr(key, 0, 1e6, 1);
  if (factor != 0) rule.factor = factor;  // 0 stands for none
  if (scaling != "yarn") return rule;
  rule.yarn = true;
  rule.beta_fast = numbers.FloatOr("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32);
  rule.beta_slow = numbers.FloatOr("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1);
  const double log_weight = numbers.FloatOr("rope.scaling.yarn_log_multiplier", 0, 1e3, 0);
  // With a weight of its own the file has the scale of attention's logits corrected elsewhere: all of it where
  // attention is latent.
  if (log_weight != 0 && numbers.Has("attention.kv_lora_rank")) return rule;
  rule.magnitude *= log_weight == 0 ? YarnMagnitude(rule.factor, 1)
                                    : YarnMagnitude(rule.factor, 1) / YarnMagnitude(rule.factor, log_weight);
  return rule;
}

StatusOr<RotaryTables> MakeRotaryTables(const RotaryRule& rule, int64_t positions) {
  const int64_t half = rule.n_rot / 2;
  const std::vector<double> unscaled = rule.yarn ? SharesUnscaled(rule) : std::vector<double>(half, 0);
  std::vector<double> frequency(half);
  for (int64_t i = 0; i < half; ++i) {
    frequency[i] = std::pow(rule.base, -2.0 * static_cast<double>(i) / static_cast<double>(rule.n_rot));
    if (!rule.factors.empty()) frequency[i] /= rule.factors[i];
    frequency[i] *= unscaled[i] + (1 - unscaled[i]) / rule.factor;
  }
  RotaryTables tables;
  QUERN_ASSIGN(tables.cosine, Memory::Allocate(positions * half * static_cast<int64_t>(sizeof(float))));
  QUERN_ASSIGN(tables.sine, Memory::Allocate(tables.cosine.size()));
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequency[i];
      const float c = static_cast<float>(rule.magnitude * std::cos(angle)),
                  s = static_cast<float>(rule.magnitude * std::sin(angle));
      std::memcpy(tables.cosine.data() + (p * half + i) * sizeof(float), &c, sizeof(c));
      std::memcpy(tables.sine.data() + (p * half + i) * sizeof(float), &s, sizeof(s));
    }
  }
  return tables;
}

}  // namespace quern::models
