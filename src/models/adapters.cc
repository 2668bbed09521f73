#include "models/adapters.h"

#include <cmath>

namespace quern::models {
namespace {

Status Wrong(std::string_view adapter, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrFormat("adapter %s: %s", adapter, what));
}

// Its text, or "nothing".
std::string TextOf(const ModelFile& file, std::string_view key) {
  constexpr size_t kMost = 64;  // of one that a file made up
  const auto text = file.String(key);
  return text.ok() ? absl::StrFormat("\"%s\"", text->substr(0, kMost)) : "nothing";
}

std::string TypeOf(const ModelTensor& tensor, std::span<const int64_t> dims) {
  std::string text = tensor.type_name + "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += dims[i] < 0 ? "rank" : std::to_string(dims[i]);
  }
  return text + "]";
}

}  // namespace

StatusOr<Adapters::Adapter> Adapters::ReadFile(const AdapterFile& given) const {
  const ModelFile& file = *given.file;
  Adapter adapter{given.name, given.scale, 0, {}};
  if (!std::isfinite(adapter.scale)) return Wrong(adapter.name, "its scale is no finite number");
  for (const auto& [key, wanted] : {std::pair<const char*, std::string_view>{"general.type", "adapter"},
                                    {"adapter.type", "lora"},
                                    {"general.architecture", spec_.architecture}}) {
    const auto text = file.String(key);
    if (!text.ok() || *text != wanted)
      return Wrong(adapter.name, absl::StrFormat("%s is %s, \"%s\" expected", key, TextOf(file, key), wanted));
  }
  if (file.Has("adapter.alora.invocation_tokens")) {
    return absl::UnimplementedError(absl::StrFormat(
        "adapter %s: adapter.alora.invocation_tokens: it begins at certain tokens, which is not supported",
        adapter.name));
  }
  if (constexpr const char* kAlpha = "adapter.lora.alpha"; file.Has(kAlpha)) {
    const auto alpha = file.Float(kAlpha);
    if (!alpha.ok()) return Wrong(adapter.name, std::string(alpha.status().message()));
    if (!std::isfinite(*alpha)) return Wrong(adapter.name, "adapter.lora.alpha is no finite number");
    adapter.alpha = *alpha;
  }
  for (const ModelTensor& tensor : file.tensors()) {
    constexpr std::string_view kA = ".lora_a", kB = ".lora_b";
    const bool a = tensor.name.ends_with(kA);
    if (!a && !tensor.name.ends_with(kB)) {
      return absl::UnimplementedError(
          absl::StrFormat("adapter %s: the tensor %s is neither NAME.lora_a nor NAME.lora_b: it has no place",
                          adapter.name, tensor.name));
    }
    if (!tensor.dtype || (!IsFloat(*tensor.dtype) && !IsBlock(*tensor.dtype)) || *tensor.dtype == DType::kF64) {
      return absl::UnimplementedError(absl::StrFormat("adapter %s: the tensor %s is of type %s, which is not supported",
                                                      adapter.name, tensor.name, tensor.type_name));
    }
    Pair& pair = adapter.pairs[tensor.name.substr(0, tensor.name.size() - kA.size())];
    (a ? pair.a : pair.b) = &tensor;
  }
  if (adapter.pairs.empty()) return Wrong(adapter.name, "it has no tensors");
  for (const auto& [weight, pair] : adapter.pairs) {
    if (pair.a == nullptr || pair.b == nullptr) {
      return Wrong(adapter.name,
                   absl::StrFormat("the tensor %s.lora_%s is missing", weight, pair.a == nullptr ? "a" : "b"));
    }
    const ModelTensor* base = model_.FindTensor(weight);
    if (base == nullptr) {
      return Wrong(adapter.name,
                   absl::StrFormat("the model has no tensor %s; is the adapter for another one?", weight));
    }
    if (base->half_split_heads > 0) {
      return absl::UnimplementedError(absl::StrFormat(
          "adapter %s: the rows of %s are in another order in this folder than in the GGUF file that the adapter is "
          "for: not supported",
          adapter.name, weight));
    }
  }
  return adapter;
}

void Adapters::Read(std::span<const AdapterFile> files) {
  for (const AdapterFile& file : files) {
    StatusOr<Adapter> adapter = ReadFile(file);
    if (!adapter.ok()) return builder_.Fail(adapter.status());
    adapters_.push_back(*std::move(adapter));
    spec_.adapters.push_back(file);
  }
}

bool Adapters::Changes(std::string_view weight) const {
  for (const Adapter& adapter : adapters_) {
    if (adapter.pairs.contains(weight)) return true;
  }
  return false;
}

bool Adapters::Reach(const std::string& weight) {
  const bool first = used_.insert(weight).second;
  for (const Adapter& adapter : adapters_) {
    if (first || !adapter.pairs.contains(weight)) continue;
    builder_.Fail(absl::UnimplementedError(absl::StrFormat(
        "adapter %s: %s has more than one use in this model, which is not supported", adapter.name, weight)));
  }
  return Changes(weight) && builder_.status().ok();
}

template <typename F>
Value Adapters::AddEach(Value y, const std::string& weight, std::vector<int64_t> a, std::vector<int64_t> b,
                        const F& add) {
  for (size_t i = 0; i < adapters_.size() && builder_.status().ok(); ++i) {
    const Adapter& adapter = adapters_[i];
    const auto found = adapter.pairs.find(weight);
    if (found == adapter.pairs.end()) continue;
    const auto& [left, right] = found->second;
    const int64_t rank = right->dims.empty() ? 0 : right->dims.back();
    Value params[2];
    for (const bool is_b : {false, true}) {
      const ModelTensor& tensor = is_b ? *right : *left;
      std::vector<int64_t> wanted = is_b ? b : a;
      const std::string expected = TypeOf(tensor, wanted);
      for (int64_t& dim : wanted) dim = dim < 0 ? rank : dim;
      if (tensor.dims != wanted || rank < 1) {
        builder_.Fail(Wrong(adapter.name, absl::StrFormat("the tensor %s is %s, %s expected, where rank is %d",
                                                          tensor.name, TypeOf(tensor, tensor.dims), expected, rank)));
        return {};
      }
      ir::TensorType type{*tensor.dtype, {wanted.begin(), wanted.end()}};
      const std::string name = i == 0 ? tensor.name : absl::StrFormat("%s.%d", tensor.name, i);
      params[is_b] = builder_.Param(name, type);
      spec_.params.push_back({name, std::move(type), tensor.bytes});
    }
    const auto scale = static_cast<float>(adapter.scale);
    const float factor =
        adapter.alpha == 0 ? scale : scale * static_cast<float>(adapter.alpha) / static_cast<float>(rank);
    if (!std::isfinite(factor)) {
      builder_.Fail(Wrong(adapter.name, absl::StrFormat("scale * alpha / rank = %g * %g / %d is too large",
                                                        adapter.scale, adapter.alpha, rank)));
      return {};
    }
    y = add(y, params[0], params[1], factor);
  }
  return y;
}

Value Adapters::Product(Value y, Value x, const std::string& weight, const std::string& label) {
  if (!Reach(weight)) return y;
  const int64_t in = builder_.type(x).dims.back().constant(), out = builder_.type(y).dims.back().constant();
  return AddEach(y, weight, {-1, in}, {out, -1}, [&](Value sum, Value a, Value b, float factor) {
    const auto product = [&](Value operand, Value matrix, const char* part) {
      return builder_.Linear(operand, matrix, {.act = "", .bias = {}, .weight_layout = "nk", .label = label + part});
    };
    // Few numbers are scaled: those between the two.
    const Value few = builder_.Mir("Mul", {product(x, a, "_lora_a"), builder_.Scalar(factor)}, {}, label + "_lora_a");
    return builder_.Mir("Add", {sum, product(few, b, "_lora_b")}, {}, label);
  });
}

Value Adapters::GroupedProduct(Value y, Value x, Value which, const std::string& weight, const std::string& label) {
  if (!Reach(weight)) return y;
  const int64_t in = builder_.type(x).dims.back().constant(), out = builder_.type(y).dims.back().constant(),
                groups = model_.FindTensor(weight)->dims[0];
  return AddEach(y, weight, {groups, -1, in}, {groups, out, -1}, [&](Value sum, Value a, Value b, float factor) {
    const auto product = [&](Value operand, Value matrices, const char* part) {
      return builder_.Mir("GroupedMatMul", {operand, matrices, which}, {{"transpose_b", true}}, label + part);
    };
    const Value few = builder_.Mir("Mul", {product(x, a, "_lora_a"), builder_.Scalar(factor)}, {}, label + "_lora_a");
    return builder_.Mir("Add", {sum, product(few, b, "_lora_b")}, {}, label);
  });
}

Value Adapters::Rows(Value y, Value ids, const std::string& table, const std::string& label) {
  if (!Reach(table)) return y;
  return AddEach(y, table, {spec_.vocabulary, -1}, {spec_.width, -1}, [&](Value sum, Value a, Value b, float factor) {
    const Value rows =
        builder_.Cast(DType::kF32, builder_.Mir("Gather", {a, ids}, {{"axis", int64_t{0}}}, label + "_lora_a"));
    const Value few = builder_.Mir("Mul", {rows, builder_.Scalar(factor)}, {}, label + "_lora_a");
    const Value added =
        builder_.Linear(few, b, {.act = "", .bias = {}, .weight_layout = "nk", .label = label + "_lora_b"});
    return builder_.Mir("Add", {sum, added}, {}, label);
  });
}

Status Adapters::CheckNothingLeft() const {
  for (const Adapter& adapter : adapters_) {
    for (const auto& [weight, pair] : adapter.pairs) {
      if (used_.contains(weight)) continue;
      return absl::UnimplementedError(
          absl::StrFormat("adapter %s: %s is no weight of a product, or of one that adapters do not reach, in the "
                          "architecture %s",
                          adapter.name, weight, spec_.architecture));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::models
