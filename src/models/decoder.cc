#include "models/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/attention.h"

namespace quern::models {
namespace {

constexpr int64_t kDefaultContext = 4096;

// Names of a layer's tensors as profiles have them, where they differ.
constexpr struct {
  const char *tensor, *label;
} kLabels[] = {
    {"attn_norm", "attention_norm"},
    {"attn_q", "attention/q"},
    {"attn_k", "attention/k"},
    {"attn_v", "attention/v"},
    {"attn_qkv", "attention/qkv"},
    {"attn_output", "attention/o"},
    {"attn_q_norm", "attention/q_norm"},
    {"attn_k_norm", "attention/k_norm"},
    {"ffn_gate", "ffn/gate"},
    {"ffn_up", "ffn/up"},
    {"ffn_down", "ffn/down"},
};

}  // namespace

Decoder::Decoder(std::shared_ptr<const ModelFile> file, std::string architecture, const ModelOptions& options)
    : file_(*file),
      numbers_(*file, architecture),
      graph_(spec_.module),
      tensors_(file_, spec_, graph_),
      adapters_(file_, spec_, graph_),
      room_(options.sequences) {
  spec_.file = std::move(file);
  spec_.architecture = architecture;
  spec_.module.name = architecture;
  spec_.kv_dtype = options.kv_dtype;
  adapters_.Read(options.adapters);
  if (!ir::AttentionShape::Computes(options.kv_dtype)) {
    numbers_.Fail(absl::InvalidArgumentError(
        absl::StrFormat("a cache of %s is not supported: %s", Name(options.kv_dtype), ir::AttentionShape::kComputed)));
  }
  if (file_.Has("general.name")) {
    const StatusOr<std::string_view> name = file_.String("general.name");
    if (name.ok()) spec_.name = *name;
    numbers_.Fail(name.status());
  }
  spec_.width = numbers_.Int("embedding_length", 1, kMostWidth);
  spec_.layers = numbers_.Int("block_count", 1, kMostLayers);
  spec_.trained_context = numbers_.Int("context_length", 1, kMostContext);
  if (options.context < 0 || options.context > kMostContext) {
    numbers_.Fail(
        absl::InvalidArgumentError(absl::StrFormat("a context of %d is not in 1..%d", options.context, kMostContext)));
  }
  spec_.context = options.context > 0 ? options.context : std::min(spec_.trained_context, kDefaultContext);
  spec_.module.symbols = {{kSequenceSymbol, {1, std::min(kMaxSequence, spec_.context)}},
                          {kPastSymbol, {0, spec_.context - 1}},
                          {kLogitsSymbol, {1, std::min(kMaxSequence, spec_.context)}}};
  if (many()) {
    spec_.module.symbols = {{kSequenceSymbol, {1, kMaxSequence}},
                            {kSequencesSymbol, {1, room_.most}},
                            {kLogitsSymbol, {1, std::min(kMaxSequence, room_.most)}}};
  }
}

std::string Decoder::Label(const std::string& name) {
  int64_t layer = 0;
  int end = 0;
  if (std::sscanf(name.c_str(), "blk.%ld.%n", &layer, &end) != 1 || end == 0) return name;
  std::string_view part = std::string_view(name).substr(end);
  for (const auto& [tensor, label] : kLabels) {
    if (part == tensor) part = label;
  }
  return absl::StrFormat("layers.%d/%s", layer, part);
}

std::vector<Layer> Decoder::layers() const {
  std::vector<Layer> layers(spec_.layers);
  for (int64_t i = 0; i < spec_.layers; ++i) layers[i].index = i;
  return layers;
}

Heads Decoder::ReadHeads() {
  Heads heads;
  heads.heads = numbers_.Int("attention.head_count", 1, kMostHeads);
  heads.kv_heads = numbers_.IntOr("attention.head_count_kv", 1, kMostHeads, heads.heads);
  if (heads.heads % heads.kv_heads != 0) {
    numbers_.Fail("attention.head_count_kv",
                  absl::StrFormat("%d does not divide the %d heads", heads.kv_heads, heads.heads));
  }
  if (!numbers_.Has("attention.key_length") && width() % heads.heads != 0) {
    numbers_.Fail("attention.head_count",
                  absl::StrFormat("%d does not divide the embedding length %d", heads.heads, width()));
  }
  heads.head_dim = numbers_.IntOr("attention.key_length", 1, kMostHeadDim, std::max<int64_t>(1, width() / heads.heads));
  const int64_t value_length = numbers_.IntOr("attention.value_length", 1, kMostHeadDim, heads.head_dim);
  if (value_length != heads.head_dim) {
    numbers_.Fail("attention.value_length",
                  absl::StrFormat("%d differs from the key length %d", value_length, heads.head_dim));
  }
  return heads;
}

Rotation Decoder::ReadRotation(const Heads& heads, PairStyle style, double base, const char* name) {
  const ModelTensor* query = file_.FindTensor("blk.0.attn_q.weight");
  if (query != nullptr && query->half_split_heads > 0) style = PairStyle::kHalves;
  RotaryRule rule = ReadRotaryRule(numbers_, heads.head_dim, spec_.trained_context);
  if (base != 0) {
    RotaryRule unscaled;
    unscaled.n_rot = rule.n_rot;
    unscaled.base = base;
    rule = std::move(unscaled);
  }
  if (!numbers_.status().ok() || !graph_.status().ok()) return {};
  const bool longer = rule.trained > 0 && spec_.context > rule.trained;
  for (const char* factors : {"rope_freqs.weight", longer ? "rope_factors_long.weight" : "rope_factors_short.weight",
                              longer ? "rope_factors_short.weight" : "rope_factors_long.weight"}) {
    StatusOr<std::vector<float>> found = tensors_.Factors(factors, rule.n_rot / 2);
    if (!found.ok()) return graph_.Fail(found.status()), Rotation{};
    if (base == 0 && rule.factors.empty()) rule.factors = *std::move(found);
  }
  StatusOr<RotaryTables> tables = MakeRotaryTables(rule, spec_.context);
  if (!tables.ok()) return graph_.Fail(tables.status()), Rotation{};
  const ir::TensorType type{DType::kF32, {Extent(spec_.context), Extent(rule.n_rot / 2)}};
  const Value cosine = tensors_.Computed(absl::StrFormat("%s.cos", name), type, std::move(tables->cosine)),
              sine = tensors_.Computed(absl::StrFormat("%s.sin", name), type, std::move(tables->sine));
  if (many()) return {cosine, sine, rule.n_rot, style};
  return {OfPositions(cosine), OfPositions(sine), rule.n_rot, style};
}

LocalLayers Decoder::ReadLocalLayers(int64_t period, int64_t window) {
  LocalLayers layers;
  layers.window = numbers_.IntOr("attention.sliding_window", 0, kMostContext, window);
  const std::string key = numbers_.Key("attention.sliding_window_pattern");
  const auto value = file_.metadata().find(key);
  if (value != file_.metadata().end() && std::holds_alternative<GgufArray>(value->second)) {
    const StatusOr<std::vector<int64_t>> local = file_.Ints(key);
    if (!local.ok()) return numbers_.Fail(local.status()), LocalLayers{};
    if (static_cast<int64_t>(local->size()) != spec_.layers) {
      numbers_.Fail("attention.sliding_window_pattern",
                    absl::StrFormat("%d entries for %d layers", local->size(), spec_.layers));
      return {};
    }
    layers.local.assign(local->begin(), local->end());
    return layers;
  }
  period = numbers_.IntOr("attention.sliding_window_pattern", 1, kMostLayers, period);
  for (int64_t i = 0; i < spec_.layers; ++i) layers.local.push_back((i + 1) % period != 0);
  return layers;
}

ExpertRule Decoder::ReadExperts() {
  ExpertRule rule;
  rule.experts = numbers_.IntOr("expert_count", 0, kMostHeads, 0);
  if (rule.experts == 0) return rule;
  rule.used = numbers_.Int("expert_used_count", 1, rule.experts);
  rule.hidden = numbers_.IntOr("expert_feed_forward_length", 1, kMostWidth, 0);
  if (rule.hidden == 0) rule.hidden = hidden();
  const double scale = numbers_.FloatOr("expert_weights_scale", 0, 1e6, 0);
  if (scale != 0) rule.scale = scale;
  return rule;
}

void Decoder::BeEncoder() {
  spec_.encoder = true;
  spec_.module.symbols = {{kSequenceSymbol, {1, spec_.context}}};
  // Of llama.cpp's numbers: none, mean, the first token's, the last one's.
  constexpr Pooling kPooling[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};
  spec_.pooling = kPooling[numbers_.IntOr("pooling_type", 0, 3, 1)];
}

void Decoder::BeRecurrent() {
  recurrent_ = true;
  if (many()) spec_.module.symbols[kSequencesSymbol] = {1, std::min(kMaxSequence, room_.most)};
}

Value Decoder::Embed() {
  if (!numbers_.status().ok()) return graph_.Fail(numbers_.status()), Value{};
  const ModelTensor* table = file_.FindTensor("token_embd.weight");
  if (table == nullptr || table->dims.size() != 2)
    return graph_.Fail(absl::InvalidArgumentError("the tensor token_embd.weight is missing or not of rank 2")), Value{};
  spec_.vocabulary = table->dims[0];
  const int64_t declared = numbers_.IntOr("vocab_size", 1, INT32_MAX, spec_.vocabulary);
  if (declared != spec_.vocabulary || spec_.vocabulary < 1 || spec_.vocabulary > INT32_MAX) {
    numbers_.Fail("vocab_size", absl::StrFormat("%d, but token_embd.weight has %d rows", declared, spec_.vocabulary));
    return graph_.Fail(numbers_.status()), Value{};
  }
  ids_ = graph_.Input(kIdsInput, {DType::kI32, {rows()}});
  if (many()) {
    const Extent sequences = Extent::Symbol(kSequencesSymbol);
    auto input = [&](const char* name, std::vector<Extent> dims) {
      return graph_.Input(name, {DType::kI32, std::move(dims)});
    };
    positions_ = input(kPositionsInput, {rows()});
    index_ = input(kIndexInput, {rows()});
    starts_ = input(kStartsInput, {sequences + 1});
    lengths_ = input(kLengthsInput, {sequences});
    blocks_ = input(kBlocksInput, {sequences, Extent((spec_.context + room_.block - 1) / room_.block)});
    rows_ = input(kRowsInput, {Extent::Symbol(kLogitsSymbol)});
    if (recurrent_) {
      before_ = input(kStatesInput, {sequences});
      after_ = input(kNextStatesInput, {sequences});
    }
  }
  table_ = tensors_.Weight("token_embd.weight", {spec_.vocabulary, spec_.width});
  if (!graph_.status().ok()) return {};
  if (graph_.type(table_).dtype == DType::kF32) spec_.kv_dtype = DType::kF32;
  const Value rows =
      graph_.Cast(DType::kF32, graph_.Mir("Gather", {table_, ids_}, {{"axis", int64_t{0}}}, "embedding"));
  return adapters_.Rows(rows, ids_, "token_embd.weight", "embedding");
}

Value Decoder::TableRow(const std::string& name, int64_t index) {
  const ModelTensor* table = file_.FindTensor(name + ".weight");
  const int64_t rows = table == nullptr || table->dims.empty() ? 1 : table->dims[0];
  const Value all = tensors_.Vector(name + ".weight", {rows, spec_.width});
  return graph_.Reshape(graph_.Narrow(all, 0, Extent(index), Extent(1)), {Extent(spec_.width)});
}

Value Decoder::PositionRows(const std::string& name) {
  const ModelTensor* table = file_.FindTensor(name + ".weight");
  const int64_t rows = table == nullptr || table->dims.empty() ? 1 : table->dims[0];
  // Of a table that is missing Vector says so.
  if (table != nullptr && rows < spec_.context) {
    numbers_.Fail(absl::InvalidArgumentError(absl::StrFormat(
        "the tensor %s.weight has rows for %d positions, a context of %d wants more", name, rows, spec_.context)));
  }
  return OfPositions(tensors_.Vector(name + ".weight", {rows, spec_.width}));
}

Value Decoder::OfPositions(Value table) {
  return many() ? graph_.Gather(table, positions_) : graph_.Narrow(table, 0, past(), rows());
}

Value Decoder::Last(Value x) {
  if (many()) return graph_.Gather(x, rows_);
  const Extent logits = Extent::Symbol(kLogitsSymbol);
  return graph_.Narrow(x, 0, rows() - logits, logits);
}

Value Decoder::RmsNorm(Value x, const std::string& name) {
  if (!graph_.status().ok()) return {};
  const Value gamma = tensors_.Vector(name + ".weight", {graph_.type(x).dims.back().constant()});
  return graph_.Block("RmsNorm", {x, gamma}, {{"eps", numbers_.Float("attention.layer_norm_rms_epsilon", 0, 1)}},
                      Label(name));
}

Value Decoder::LayerNorm(Value x, const std::string& name) {
  if (!graph_.status().ok()) return {};
  const int64_t width = graph_.type(x).dims.back().constant();
  std::vector<Value> operands = {x, tensors_.Vector(name + ".weight", {width})};
  if (tensors_.Has(name + ".bias")) operands.push_back(tensors_.Vector(name + ".bias", {width}));
  return graph_.Mir("LayerNorm", std::move(operands), {{"eps", numbers_.Float("attention.layer_norm_epsilon", 0, 1)}},
                    Label(name));
}

Value Decoder::NormHeads(const char* norm, Value x, const std::string& name, const Heads& heads) {
  if (!graph_.status().ok()) return {};
  const int64_t width = graph_.type(x).dims.back().constant(), count = width / heads.head_dim;
  const ModelTensor* tensor = file_.FindTensor(name + ".weight");
  const bool own = tensor != nullptr && tensor->dims.size() == 2;
  const bool rms = std::string_view(norm) == "RmsNorm";
  const double eps = numbers_.Float(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 0, 1);
  const std::string label = Label(name);
  Value gamma = own ? tensors_.Vector(name + ".weight", {count, heads.head_dim})
                    : tensors_.Vector(name + ".weight", {heads.head_dim});
  x = graph_.Mir("Reshape", {x}, {{"shape", std::vector<Extent>{rows(), Extent(count), Extent(heads.head_dim)}}},
                 label);
  if (own) {
    // Weights of each head come behind the norm.
    const Value one = graph_.Expand(graph_.Scalar(1), {Extent(heads.head_dim)});
    x = graph_.Mul(graph_.Mir(norm, {x, one}, {{"eps", eps}}, label), gamma);
  } else {
    x = graph_.Mir(norm, {x, gamma}, {{"eps", eps}}, label);
  }
  return graph_.Mir("Reshape", {x}, {{"shape", std::vector<Extent>{rows(), Extent(width)}}}, label);
}

Value Decoder::RmsNormHeads(Value x, const std::string& name, const Heads& heads) {
  return NormHeads("RmsNorm", x, name, heads);
}
Value Decoder::LayerNormHeads(Value x, const std::string& name, const Heads& heads) {
  return NormHeads("LayerNorm", x, name, heads);
}

Value Decoder::Linear(Value x, const std::string& name, int64_t out) {
  if (!graph_.status().ok()) return {};
  const int64_t in = graph_.type(x).dims.back().constant();
  const Value weight = tensors_.Weight(name + ".weight", {out, in});
  const Value bias = tensors_.Has(name + ".bias") ? tensors_.Vector(name + ".bias", {out}) : Value{};
  const std::string label = Label(name);
  const Value y = graph_.Linear(x, weight, {.act = "", .bias = bias, .weight_layout = "nk", .label = label});
  return adapters_.Product(y, x, name + ".weight", label);
}

Value Decoder::RowProduct(Value x, const std::string& name) {
  if (!graph_.status().ok()) return {};
  const Value row = tensors_.Vector(name + ".weight", {graph_.type(x).dims.back().constant()});
  return graph_.Reduce("sum", graph_.Mul(x, row), {1}, true);
}

Value Decoder::Columns(Value x, int64_t from, int64_t count) {
  return graph_.Narrow(x, 1, Extent(from), Extent(count));
}

Value Decoder::Add(Value a, Value part) {
  if (!graph_.status().ok()) return {};
  return graph_.Mir("Add", {a, part}, {}, spec_.module.nodes()[part.node].label);
}

Value Decoder::Scale(Value x, double factor) {
  if (factor == 1) return x;
  return graph_.Mul(x, graph_.Scalar(static_cast<float>(factor)));
}

Value Decoder::Softcap(Value x, double cap) {
  if (cap == 0) return x;
  return Scale(graph_.Tanh(Scale(x, 1 / cap)), cap);
}

Value Decoder::Logits(Value x) {
  if (tensors_.Has("output.weight")) return Linear(x, "output", spec_.vocabulary);
  const Value y = graph_.Linear(x, table_, {.act = "", .bias = {}, .weight_layout = "nk", .label = "output"});
  return adapters_.Product(y, x, "token_embd.weight", "output");
}

StatusOr<ModelSpec> Decoder::Finish(Value logits) {
  QUERN_RETURN_IF_ERROR(numbers_.status());
  QUERN_RETURN_IF_ERROR(graph_.status());
  spec_.module.outputs = {logits};
  spec_.module.outputs.insert(spec_.module.outputs.end(), states_.begin(), states_.end());
  QUERN_RETURN_IF_ERROR(tensors_.CheckNothingLeft());
  QUERN_RETURN_IF_ERROR(adapters_.CheckNothingLeft());
  return std::move(spec_);
}

}  // namespace quern::models
