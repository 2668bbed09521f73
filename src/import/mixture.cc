#include "import/mixture.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace quern {
namespace {

using enum DType;
using enum Layers;

constexpr Mixture kMixtures[] = {
    {.name = "F32", .file_type = 0, .dtype = kF32},
    {.name = "F16", .file_type = 1, .dtype = kF16},
    {.name = "BF16", .file_type = 32, .dtype = kBF16},
    {.name = "Q8_0", .file_type = 7, .dtype = kQ8_0},
    {.name = "Q4_0", .file_type = 2, .dtype = kQ4_0, .guided_down = {{{kFirst8th, kQ4_1}}}},
    {.name = "Q4_1", .file_type = 3, .dtype = kQ4_1},
    {.name = "Q5_0", .file_type = 8, .dtype = kQ5_0, .guided_down = {{{kFirst8th, kQ5_1}}}},
    {.name = "Q5_1", .file_type = 9, .dtype = kQ5_1},
    {.name = "Q2_K",
     .file_type = 10,
     .dtype = kQ2_K,
     .values = {{{kAll, kQ3_K}}},
     .shared = {{{kAll, kQ4_K}}},
     .output = {{{kAll, kQ3_K}}},
     .down = {{{kAll, kQ3_K}}},
     .falcon_down = {{{kAll, kQ3_K}}},
     .eight_experts = true},
    {.name = "Q2_K_S",
     .file_type = 21,
     .dtype = kQ2_K,
     .shared = {{{kAll, kQ4_K}}},
     .down = {{{kFirst8th, kQ4_K}}},
     .falcon_down = {{{kFirst8th, kQ4_K}}},
     .needs_importance = true},
    {.name = "Q3_K_S", .file_type = 11, .dtype = kQ3_K, .eight_experts = true},
    {.name = "Q3_K_M",
     .file_type = 12,
     .dtype = kQ3_K,
     .values = {{{kFirst2, kQ5_K}, {kAll, kQ4_K}}},
     .output = {{{kAll, kQ4_K}}},
     .down = {{{kFirst16th, kQ5_K}, {kAll, kQ4_K}}},
     .falcon_down = {{{kFirst16th, kQ5_K}, {kManyBits, kQ4_K}}},
     .eight_experts = true},
    {.name = "Q3_K_L",
     .file_type = 13,
     .dtype = kQ3_K,
     .values = {{{kAll, kQ5_K}}},
     .output = {{{kAll, kQ5_K}}},
     .down = {{{kAll, kQ5_K}}},
     .falcon_output = {{{kAll, kQ4_K}}},
     .falcon_down = {{{kAll, kQ4_K}}}},
    {.name = "Q4_K_S",
     .file_type = 14,
     .dtype = kQ4_K,
     .values = {{{kFirst4, kQ5_K}}},
     .down = {{{kFirst8th, kQ5_K}}},
     .eight_experts = true},
    {.name = "Q4_K_M",
     .file_type = 15,
     .dtype = kQ4_K,
     .values = {{{kManyBits, kQ6_K}}},
     .down = {{{kManyBits, kQ6_K}}},
     .falcon_down = {{{kFirst16th, kQ6_K}, {kManyBits, kQ5_K}}},
     .eight_experts = true},
    {.name = "Q5_K_S", .file_type = 16, .dtype = kQ5_K},
    {.name = "Q5_K_M",
     .file_type = 17,
     .dtype = kQ5_K,
     .values = {{{kManyBits, kQ6_K}}},
     .down = {{{kManyBits, kQ6_K}}},
     .falcon_down = {{{kManyBits, kQ6_K}}}},
    {.name = "Q6_K", .file_type = 18, .dtype = kQ6_K},
    {.name = "IQ4_NL",
     .file_type = 25,
     .dtype = kIQ4_NL,
     .shared = {{{kAll, kQ5_K}}},
     .plain_down = {{{kFirst8th, kQ5_K}}},
     .eight_experts = true},
    {.name = "IQ4_XS",
     .file_type = 30,
     .dtype = kIQ4_XS,
     .shared = {{{kAll, kQ5_K}}},
     .plain_down = {{{kFirst8th, kQ5_K}}},
     .eight_experts = true},
    {.name = "TQ1_0", .file_type = 36, .dtype = kTQ1_0},
    {.name = "TQ2_0", .file_type = 37, .dtype = kTQ2_0},
    {.name = "MXFP4_MOE", .file_type = 38, .dtype = kMXFP4},
};

// What a format gives way to where rows are no multiple of its blocks.
constexpr std::pair<DType, DType> kFallbacks[] = {{kIQ4_XS, kIQ4_NL}, {kQ2_K, kQ4_0}, {kQ3_K, kQ4_0}, {kTQ1_0, kQ4_0},
                                                  {kTQ2_0, kQ4_0},    {kQ4_K, kQ5_0}, {kQ5_K, kQ5_1}, {kQ6_K, kQ8_0}};

// Parts of names of what is small, or read one by one: it stays as it is.
constexpr std::string_view kKept[] = {
    "_norm.weight",         "ffn_gate_inp.weight", "altup",          "laurel",
    "per_layer_model_proj", "ssm_conv1d",          "shortconv.conv", "attn_rel_b.weight",
    "time_mix_first.",      "time_mix_w",          "time_mix_v0.",   "time_mix_v1.",
    "time_mix_v2.",         "time_mix_a",          "time_mix_g",     "time_mix_decay_w",
    "time_mix_lerp_fused",  "position_embd",       "token_types"};

bool IsQuantised(const ModelTensor& tensor) {
  const std::string& name = tensor.name;
  // Extents of 1 that come first are none.
  const auto first = std::find_if(tensor.dims.begin(), tensor.dims.end(), [](int64_t dim) { return dim > 1; });
  if (tensor.dims.end() - first < 2 || !name.ends_with("weight") || !tensor.dtype) return false;
  if (!IsFloat(*tensor.dtype) && !IsBlock(*tensor.dtype)) return false;
  return std::none_of(std::begin(kKept), std::end(kKept),
                      [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

bool IsEmbedding(std::string_view name) { return name == "token_embd.weight" || name == "per_layer_token_embd.weight"; }

int64_t LayerOf(const std::string& name) { return name.starts_with("blk.") ? std::atoll(name.c_str() + 4) : -1; }

bool Takes(Layers layers, int64_t layer, int64_t count) {
  switch (layers) {
    case kNone: return false;
    case kAll: return true;
    case kManyBits: return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
    case kFirst2: return layer < 2;
    case kFirst4: return layer < 4;
    case kFirst8th: return layer < count / 8;
    case kFirst16th: return layer < count / 16;
  }
  return false;
}

class Chooser {
 public:
  Chooser(const Mixture& mixture, const ModelFile& file, bool guided)
      : mixture_(mixture),
        either_down_(guided ? mixture.guided_down : mixture.plain_down),
        architecture_(file.String("general.architecture").value_or("")),
        layers_(Number(file, "block_count")),
        experts_(Number(file, "expert_count")) {
    const int64_t heads = Number(file, "attention.head_count"), values = Number(file, "attention.head_count_kv");
    heads_a_value_ = values > 0 ? heads / values : 1;
    large_ = layers_ == 80 && ((architecture_ == "llama" && heads_a_value_ > 1) || architecture_ == "qwen2");
    tied_ = file.FindTensor("output.weight") == nullptr;
    for (const ModelTensor& tensor : file.tensors()) values_ += IsValue(tensor.name);
  }

  // Of tensors in the order of layers and, in a layer, of names.
  DType Of(const ModelTensor& tensor) {
    const std::string& name = tensor.name;
    const DType own = mixture_.dtype;
    const bool falcon = architecture_ == "falcon", moe = own == kMXFP4;
    if (name == "output.weight" || (tied_ && IsEmbedding(name))) {
      if (moe || falcon || tensor.dims.back() % Row(own).block_elements != 0) return kQ8_0;
      return own == kQ8_0 ? own : kQ6_K;
    }
    if (moe) return tensor.dims.size() > 2 && tensor.dims[0] > 1 ? own : kQ8_0;
    if (IsEmbedding(name)) return own == kTQ1_0 || own == kTQ2_0 ? kQ4_K : own;
    if (IsValue(name)) {
      const int64_t layer = value_++;
      DType chosen = Chosen(mixture_.values, layer, values_);
      if (heads_a_value_ >= 4 && mixture_.shared[0].layers != kNone) chosen = Chosen(mixture_.shared, layer, values_);
      if (large_ && (chosen == kQ3_K || chosen == kQ4_K)) chosen = kQ5_K;
      return experts_ == 8 ? kQ8_0 : chosen;
    }
    if (Has(name, "attn_k.weight")) return experts_ == 8 ? kQ8_0 : own;
    if (Has(name, "attn_q.weight")) return own;
    if (Has(name, "attn_output.weight")) {
      if (falcon) return Chosen(mixture_.falcon_output, 0, 1);
      if (experts_ == 8) return mixture_.eight_experts ? kQ5_K : own;
      return Chosen(mixture_.output, 0, 1);
    }
    if (Has(name, "ffn_down")) {
      const int64_t layer = experts_ > 1 ? LayerOf(name) : down_;
      ++down_;
      if (either_down_[0].layers != kNone) return Chosen(either_down_, layer, layers_);
      return Chosen(falcon ? mixture_.falcon_down : mixture_.down, layer, layers_);
    }
    return own;
  }

 private:
  static bool Has(const std::string& name, std::string_view part) { return name.find(part) != std::string::npos; }
  static bool IsValue(const std::string& name) {
    return Has(name, "attn_qkv.weight") || Has(name, "attn_kv_b.weight") || Has(name, "attn_v.weight");
  }
  int64_t Number(const ModelFile& file, const char* key) const {
    const std::string whole = absl::StrFormat("%s.%s", architecture_, key);
    if (const StatusOr<int64_t> one = file.Int(whole); one.ok()) return *one;
    const StatusOr<std::vector<int64_t>> many = file.Ints(whole);  // one a layer
    return many.ok() && !many->empty() ? (*many)[0] : 0;
  }
  DType Chosen(const Choices& choices, int64_t layer, int64_t count) const {
    for (const Choice& choice : choices) {
      if (Takes(choice.layers, layer, count)) return choice.dtype;
    }
    return mixture_.dtype;
  }

  const Mixture& mixture_;
  const Choices& either_down_;
  const std::string architecture_;
  const int64_t layers_, experts_;
  int64_t heads_a_value_ = 1;
  bool large_ = false, tied_ = false;
  int64_t values_ = 0, value_ = 0, down_ = 0;
};

}  // namespace

std::vector<std::string> MixtureNames() {
  std::vector<std::string> names;
  for (const Mixture& mixture : kMixtures) names.emplace_back(mixture.name);
  return names;
}

std::string_view NameOfFileType(uint64_t file_type) {
  for (const Mixture& mixture : kMixtures) {
    if (mixture.file_type == file_type) return mixture.name;
  }
  return "";
}

StatusOr<const Mixture*> FindMixture(std::string_view asked) {
  const std::string name(asked), medium = name + "_M";
  for (const Mixture& mixture : kMixtures) {
    if (absl::EqualsIgnoreCase(name, mixture.name) || absl::EqualsIgnoreCase(medium, mixture.name)) return &mixture;
  }
  return absl::InvalidArgumentError(absl::StrFormat("there is no type \"%s\" to quantise to: there are %s", name,
                                                    absl::StrJoin(MixtureNames(), ", ")));
}

std::vector<Quantised> FormatsOf(const Mixture& mixture, const ModelFile& file, bool pure, bool guided) {
  const std::vector<ModelTensor>& tensors = file.tensors();
  std::vector<size_t> order(tensors.size());
  for (size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(LayerOf(tensors[a].name), tensors[a].name) < std::pair(LayerOf(tensors[b].name), tensors[b].name);
  });
  Chooser chooser(mixture, file, guided);
  std::vector<Quantised> formats(tensors.size());
  for (const size_t t : order) {
    const ModelTensor& tensor = tensors[t];
    Quantised& made = formats[t];
    if (!IsQuantised(tensor)) {
      made = {.dtype = tensor.dtype.value_or(kF32), .kept = true};
      continue;
    }
    made.dtype = pure || !IsBlock(mixture.dtype) ? mixture.dtype : chooser.Of(tensor);
    const int64_t row = tensor.dims.back();
    const auto fits = [&] { return row % Row(made.dtype).block_elements == 0; };
    if (fits()) {
      made.needs_importance = mixture.needs_importance && made.dtype == mixture.dtype && !IsEmbedding(tensor.name) &&
                              tensor.name != "output.weight";
      continue;
    }
    made.fell_back = true;
    for (const auto& [from, to] : kFallbacks) {
      if (made.dtype == from) {
        made.dtype = to;
        break;
      }
    }
    if (!fits()) made.dtype = kF16;
  }
  return formats;
}

}  // namespace quern
