#include "models/llama_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quern::models {
namespace {

// Far above any model there is, and low enough that no product below overflows.
constexpr int64_t kMostWidth = 1 << 20, kMostLayers = 1024, kMostHeads = 4096, kMostHeadDim = 1024,
                  kMostContext = 1 << 24;
constexpr int64_t kDefaultContext = 4096;

Status ReadRope(const Metadata& metadata, LlamaConfig& config) {
  QUERN_ASSIGN(config.n_rot, metadata.IntOr("rope.dimension_count", 2, kMostHeadDim, config.head_dim));
  if (config.n_rot % 2 != 0 || config.n_rot > config.head_dim) {
    return metadata.Error("rope.dimension_count", absl::StrFormat("%d is not even and at most the head dimension %d",
                                                                  config.n_rot, config.head_dim));
  }
  QUERN_ASSIGN(config.rope_base, metadata.FloatOr("rope.freq_base", 1, 1e12, 10000));
  config.rope_factor = 1;
  std::string_view scaling = "none";
  if (metadata.Has("rope.scaling.type")) {
    QUERN_ASSIGN(scaling, metadata.file().String(metadata.Key("rope.scaling.type")));
  } else if (metadata.Has("rope.scaling.factor") || metadata.Has("rope.scale_linear")) {
    scaling = "linear";  // files older than the type key
  }
  if (scaling == "none") return absl::OkStatus();
  if (scaling != "linear") {
    return absl::UnimplementedError(
        absl::StrFormat("%s: \"%s\" is not supported", metadata.Key("rope.scaling.type"), std::string(scaling)));
  }
  const char* key = metadata.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  QUERN_ASSIGN(const double factor, metadata.FloatOr(key, 0, 1e6, 1));
  config.rope_factor = factor == 0 ? 1 : factor;  // 0 stands for none
  return absl::OkStatus();
}

}  // namespace

StatusOr<LlamaConfig> ReadLlamaConfig(const GgufFile& file, const ModelOptions& options) {
  const Metadata metadata(file, "llama");
  LlamaConfig config{};
  QUERN_ASSIGN(config.width, metadata.Int("embedding_length", 1, kMostWidth));
  QUERN_ASSIGN(config.layers, metadata.Int("block_count", 1, kMostLayers));
  QUERN_ASSIGN(config.hidden, metadata.Int("feed_forward_length", 1, kMostWidth));
  QUERN_ASSIGN(config.heads, metadata.Int("attention.head_count", 1, kMostHeads));
  QUERN_ASSIGN(config.kv_heads, metadata.IntOr("attention.head_count_kv", 1, kMostHeads, config.heads));
  if (config.heads % config.kv_heads != 0) {
    return metadata.Error("attention.head_count_kv",
                          absl::StrFormat("%d does not divide the %d heads", config.kv_heads, config.heads));
  }
  if (metadata.Has("attention.key_length")) {
    QUERN_ASSIGN(config.head_dim, metadata.Int("attention.key_length", 1, kMostHeadDim));
  } else if (config.width % config.heads != 0) {
    return metadata.Error("attention.head_count",
                          absl::StrFormat("%d does not divide the embedding length %d", config.heads, config.width));
  } else {
    config.head_dim = config.width / config.heads;
  }
  QUERN_ASSIGN(const int64_t value_length, metadata.IntOr("attention.value_length", 1, kMostHeadDim, config.head_dim));
  if (value_length != config.head_dim) {
    return metadata.Error("attention.value_length",
                          absl::StrFormat("%d differs from the key length %d", value_length, config.head_dim));
  }
  QUERN_ASSIGN(config.eps, metadata.Float("attention.layer_norm_rms_epsilon", 0, 1));
  QUERN_ASSIGN(const int64_t experts, metadata.IntOr("expert_count", 0, kMostHeads, 0));
  if (experts > 0)
    return absl::UnimplementedError(
        absl::StrFormat("%s: mixtures of experts are not supported", metadata.Key("expert_count")));
  QUERN_RETURN_IF_ERROR(ReadRope(metadata, config));

  QUERN_ASSIGN(const int64_t trained, metadata.Int("context_length", 1, kMostContext));
  if (options.context < 0 || options.context > kMostContext) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a context of %d is not in 1..%d", options.context, kMostContext));
  }
  config.context = options.context > 0 ? options.context : std::min(trained, kDefaultContext);
  return config;
}

StatusOr<RopeTables> MakeRopeTables(const LlamaConfig& config, const std::vector<float>& factors, int64_t positions) {
  const int64_t half = config.n_rot / 2;
  std::vector<double> frequency(half);
  for (int64_t i = 0; i < half; ++i) {
    frequency[i] = std::pow(config.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(config.n_rot)) /
                   config.rope_factor;
    if (!factors.empty()) frequency[i] /= factors[i];
  }
  RopeTables tables;
  QUERN_ASSIGN(tables.cosine, Memory::Allocate(positions * half * static_cast<int64_t>(sizeof(float))));
  QUERN_ASSIGN(tables.sine, Memory::Allocate(tables.cosine.size()));
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequency[i];
      const float c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
      std::memcpy(tables.cosine.data() + (p * half + i) * sizeof(float), &c, sizeof(c));
      std::memcpy(tables.sine.data() + (p * half + i) * sizeof(float), &s, sizeof(s));
    }
  }
  return tables;
}

}  // namespace quern::models
