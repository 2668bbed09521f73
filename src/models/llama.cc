#include "models/llama.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "hir/builder.h"
#include "ir/attention.h"
#include "models/llama_config.h"

namespace quern::models {
namespace {

using hir::Value;

class LlamaReader {
 public:
  LlamaReader(std::shared_ptr<const GgufFile> file, const ModelOptions& options)
      : file_(*file), builder_(spec_.module) {
    spec_.file = std::move(file);
    spec_.kv_dtype = options.kv_dtype;
  }

  StatusOr<ModelSpec> Read(const ModelOptions& options) {
    if (!ir::AttentionShape::Computes(options.kv_dtype)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "a cache of %s is not supported: %s", std::string(Name(options.kv_dtype)), ir::AttentionShape::kComputed));
    }
    QUERN_ASSIGN(config_, ReadLlamaConfig(file_, options));
    QUERN_RETURN_IF_ERROR(ReadVocabulary());
    spec_.architecture = "llama";
    if (file_.Has("general.name")) {
      QUERN_ASSIGN(const std::string_view name, file_.String("general.name"));
      spec_.name = std::string(name);
    }
    spec_.context = config_.context;
    spec_.layers = config_.layers;
    spec_.width = config_.width;
    spec_.vocabulary = config_.vocabulary;
    spec_.module.name = "llama";
    spec_.module.symbols = {{kSequenceSymbol, {1, std::min(kMaxSequence, config_.context)}},
                            {kPastSymbol, {0, config_.context - 1}},
                            {kLogitsSymbol, {1, std::min(kMaxSequence, config_.context)}}};
    QUERN_RETURN_IF_ERROR(BuildGraph());
    QUERN_RETURN_IF_ERROR(CheckNothingLeft());
    return std::move(spec_);
  }

 private:
  Status ReadVocabulary() {
    const GgufTensor* table = file_.FindTensor("token_embd.weight");
    if (table == nullptr || table->dims.size() != 2)
      return absl::InvalidArgumentError("the tensor token_embd.weight is missing or not of rank 2");
    config_.vocabulary = table->dims[0];
    QUERN_ASSIGN(const int64_t declared,
                 Metadata(file_, "llama").IntOr("vocab_size", 1, INT32_MAX, config_.vocabulary));
    if (declared != config_.vocabulary || config_.vocabulary < 1 || config_.vocabulary > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrFormat("llama.vocab_size: %d, but token_embd.weight has %d rows", declared, config_.vocabulary));
    }
    return absl::OkStatus();
  }

  // The tensor called `name` of exactly these extents, as a Param.
  StatusOr<Value> Weight(const std::string& name, std::vector<int64_t> dims) {
    const GgufTensor* tensor = file_.FindTensor(name);
    if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrFormat("the tensor %s is missing", name));
    if (!tensor->dtype || (!IsFloat(*tensor->dtype) && !IsBlock(*tensor->dtype)) || *tensor->dtype == DType::kF64) {
      return absl::UnimplementedError(
          absl::StrFormat("the tensor %s is of type %s, which is not supported", name, tensor->type_name));
    }
    ir::TensorType type{*tensor->dtype, {}}, wanted{*tensor->dtype, {}};
    for (const int64_t dim : tensor->dims) type.dims.push_back(Extent(dim));
    for (const int64_t dim : dims) wanted.dims.push_back(Extent(dim));
    if (type != wanted) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the tensor %s is %s, %s expected", name, type.ToString(), wanted.ToString()));
    }
    used_.insert(name);
    return AddParam(name, std::move(type), tensor->bytes);
  }
  // A norm's weight, in f32.
  StatusOr<Value> NormWeight(const std::string& name) {
    QUERN_ASSIGN(const Value weight, Weight(name, {config_.width}));
    if (IsBlock(builder_.type(weight).dtype))
      return absl::UnimplementedError(absl::StrFormat("the tensor %s is quantised", name));
    return builder_.Cast(DType::kF32, weight);
  }
  StatusOr<Value> AddParam(const std::string& name, ir::TensorType type, std::span<const uint8_t> bytes) {
    QUERN_ASSIGN(const Value value, spec_.module.AddParam(name, type));
    spec_.params.push_back({name, std::move(type), bytes});
    return value;
  }
  StatusOr<Value> AddComputed(const std::string& name, ir::TensorType type, Memory memory) {
    spec_.computed.push_back(std::make_shared<const Memory>(std::move(memory)));
    return AddParam(name, std::move(type), spec_.computed.back()->bytes());
  }

  StatusOr<std::vector<float>> RopeFactors() {
    std::vector<float> factors;
    const GgufTensor* tensor = file_.FindTensor("rope_freqs.weight");
    if (tensor == nullptr) return factors;
    if (tensor->dtype != DType::kF32 || tensor->dims != std::vector<int64_t>{config_.n_rot / 2}) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the tensor rope_freqs.weight is not f32[%d]", config_.n_rot / 2));
    }
    factors.resize(config_.n_rot / 2);
    std::memcpy(factors.data(), tensor->bytes.data(), factors.size() * sizeof(float));
    for (const float factor : factors) {
      if (!(factor > 0))
        return absl::InvalidArgumentError("the tensor rope_freqs.weight has a factor that is not above 0");
    }
    used_.insert("rope_freqs.weight");
    return factors;
  }

  Status BuildGraph() {
    const Extent sequence = Extent::Symbol(kSequenceSymbol), past = Extent::Symbol(kPastSymbol),
                 logits = Extent::Symbol(kLogitsSymbol);
    const Value ids = builder_.Input(kIdsInput, {DType::kI32, {sequence}});
    QUERN_ASSIGN(const Value table, Weight("token_embd.weight", {config_.vocabulary, config_.width}));
    if (builder_.type(table).dtype == DType::kF32) spec_.kv_dtype = DType::kF32;

    QUERN_ASSIGN(const std::vector<float> factors, RopeFactors());
    QUERN_ASSIGN(RopeTables tables, MakeRopeTables(config_, factors, config_.context));
    const ir::TensorType table_type{DType::kF32, {Extent(config_.context), Extent(config_.n_rot / 2)}};
    QUERN_ASSIGN(const Value all_cos, AddComputed("rope.cos", table_type, std::move(tables.cosine)));
    QUERN_ASSIGN(const Value all_sin, AddComputed("rope.sin", table_type, std::move(tables.sine)));

    Value x = builder_.Mir("Gather", {table, ids}, {{"axis", int64_t{0}}}, "embedding");
    x = builder_.Cast(DType::kF32, x);
    const Value cos = builder_.Narrow(all_cos, 0, past, sequence), sin = builder_.Narrow(all_sin, 0, past, sequence);
    std::vector<Value> caches;
    for (int64_t layer = 0; layer < config_.layers; ++layer)
      QUERN_RETURN_IF_ERROR(AddLayer(layer, cos, sin, x, caches));

    const Value last = builder_.Narrow(x, 0, sequence - logits, logits);
    QUERN_ASSIGN(const Value gamma, NormWeight("output_norm.weight"));
    const Value norm = builder_.Block("RmsNorm", {last, gamma}, {{"eps", config_.eps}}, "output_norm");
    Value output = table;  // tied
    if (file_.FindTensor("output.weight") != nullptr) {
      QUERN_ASSIGN(output, Weight("output.weight", {config_.vocabulary, config_.width}));
    }
    spec_.module.outputs = {
        builder_.Linear(norm, output, {.act = "", .bias = {}, .weight_layout = "nk", .label = "output"})};
    spec_.module.outputs.insert(spec_.module.outputs.end(), caches.begin(), caches.end());
    return builder_.status();
  }

  Status AddLayer(int64_t layer, Value cos, Value sin, Value& x, std::vector<Value>& caches) {
    const std::string prefix = absl::StrCat("blk.", layer, "."), label = absl::StrCat("layers.", layer);
    const int64_t width = config_.width, query = config_.heads * config_.head_dim,
                  key = config_.kv_heads * config_.head_dim;
    QUERN_ASSIGN(const Value ln1, NormWeight(prefix + "attn_norm.weight"));
    QUERN_ASSIGN(const Value q, Weight(prefix + "attn_q.weight", {query, width}));
    QUERN_ASSIGN(const Value k, Weight(prefix + "attn_k.weight", {key, width}));
    QUERN_ASSIGN(const Value v, Weight(prefix + "attn_v.weight", {key, width}));
    QUERN_ASSIGN(const Value o, Weight(prefix + "attn_output.weight", {width, query}));
    QUERN_ASSIGN(const Value ln2, NormWeight(prefix + "ffn_norm.weight"));
    QUERN_ASSIGN(const Value gate, Weight(prefix + "ffn_gate.weight", {config_.hidden, width}));
    QUERN_ASSIGN(const Value up, Weight(prefix + "ffn_up.weight", {config_.hidden, width}));
    QUERN_ASSIGN(const Value down, Weight(prefix + "ffn_down.weight", {width, config_.hidden}));
    const ir::TensorType cache{spec_.kv_dtype,
                               {Extent(config_.context), Extent(config_.kv_heads), Extent(config_.head_dim)}};
    const Value k_cache = builder_.Input(label + ".k_cache", cache),
                v_cache = builder_.Input(label + ".v_cache", cache);

    const std::vector<Value> results = builder_.Results(
        "LlamaDecoderBlock", {x, ln1, {}, q, k, v, o, ln2, {}, gate, up, down, cos, sin, {}, k_cache, v_cache},
        {{"heads", config_.heads},
         {"kv_heads", config_.kv_heads},
         {"head_dim", config_.head_dim},
         {"n_rot", config_.n_rot},
         {"eps", config_.eps},
         {"mask", std::string("causal")},
         {"rope_style", std::string("gptj")},
         {"weight_layout", std::string("nk")}},
        label);
    x = results[0];
    for (const int which : {1, 2}) {
      caches.push_back(results[which]);
      spec_.module.donations.push_back(
          {static_cast<int>(caches.size()), label + (which == 1 ? ".k_cache" : ".v_cache")});
    }
    return builder_.status();
  }

  // A tensor that the graph has no place for (a bias, an adapter) would change the model's function: refused.
  Status CheckNothingLeft() const {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (!used_.contains(tensor.name)) {
        return absl::UnimplementedError(
            absl::StrFormat("the tensor %s has no place in the architecture llama", tensor.name));
      }
    }
    return absl::OkStatus();
  }

  const GgufFile& file_;
  ModelSpec spec_;
  hir::Builder builder_;
  LlamaConfig config_{};
  std::set<std::string> used_;
};

}  // namespace

StatusOr<ModelSpec> LlamaFromGguf(std::shared_ptr<const GgufFile> file, const ModelOptions& options) {
  LlamaReader reader(std::move(file), options);
  return reader.Read(options);
}

}  // namespace quern::models
