#include "compiler/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/environment.h"
#include "base/hash.h"
#include "codegen/cpu/target.h"
#include "codegen/matmul_plan.h"
#include "compiler/checking.h"
#include "compiler/device_run.h"
#include "compiler/device_targets.h"
#include "compiler/runtime_options.h"
#include "compiler/variants.h"
#include "text/folder_vocabulary.h"

namespace quern::compiler {

Status NoAdapters(const Options& options) {
  if (options.lora.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("adapter %s: adapters are for language models, not for graphs", options.lora[0].path));
}

StatusOr<OpenedModel> OpenModel(const std::string& path, const Options& options, const models::SequenceRoom& room) {
  QUERN_ASSIGN(std::shared_ptr<const ModelFile> shared, OpenModelFile(path));
  models::ModelOptions model_options;
  model_options.context = options.context;
  model_options.kv_dtype = options.exact ? DType::kF32 : DType::kF16;
  model_options.sequences = room;
  for (const LoraAdapter& adapter : options.lora) {
    QUERN_ASSIGN(std::shared_ptr<const ModelFile> file, OpenModelFile(adapter.path));
    model_options.adapters.push_back({std::move(file), adapter.path, adapter.scale});
  }
  StatusOr<models::ModelSpec> spec = models::ReadModel(shared, model_options);
  if (!spec.ok())
    return Status(spec.status().code(), absl::StrFormat("%s: %s", path, std::string(spec.status().message())));
  return OpenedModel{std::move(shared), *std::move(spec)};
}

StatusOr<std::shared_ptr<const text::Tokenizer>> TokenizerOf(const std::shared_ptr<const ModelFile>& file,
                                                             int64_t rows) {
  QUERN_ASSIGN(std::shared_ptr<const Metadata> vocabulary, text::VocabularyOf(file));
  QUERN_ASSIGN(auto made, text::Tokenizer::FromMetadata(std::move(vocabulary)));
  // Embeddings may be padded; ids without a row cannot be run.
  if (made->vocabulary().size() > rows) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the tokenizer has %d tokens, the model logits for %d", made->vocabulary().size(), rows));
  }
  return std::shared_ptr<const text::Tokenizer>(std::move(made));
}

std::string FingerprintOf(const models::ModelSpec& spec) {
  std::string text;
  const auto add = [&](const ModelFile& file) {
    for (const auto& [key, value] : file.metadata()) absl::StrAppend(&text, key, "=", ToString(value), "\n");
    for (const ModelTensor& tensor : file.tensors()) {
      // The bytes at both ends and in the middle: no page of a file that a step would not read as well.
      const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
      constexpr size_t kSample = 64;
      const size_t last = bytes.size() - std::min(bytes.size(), kSample);
      absl::StrAppend(&text, tensor.name, " ", tensor.type_name, "[", absl::StrJoin(tensor.dims, ","), "] ");
      for (const size_t at : {size_t{0}, last / 2, last}) text += bytes.substr(at, kSample);
    }
  };
  add(*spec.file);
  for (const models::AdapterFile& adapter : spec.adapters) {
    absl::StrAppend(&text, "\nadapter ", absl::StrFormat("%a", adapter.scale), "\n");
    add(*adapter.file);
  }
  return HashBytes(text).ToHex();
}

KeptRows RowsOf(const models::ModelSpec& spec, const Port& state, std::span<const uint8_t> bytes) {
  return {static_cast<int64_t>(bytes.size()) / state.type.dims[0].constant(),
          std::find(spec.carried.begin(), spec.carried.end(), state.name) != spec.carried.end()};
}

Status BindParams(Runnable& runnable, const models::ModelSpec& spec) {
  for (const Port& port : runnable.signature().params) {
    const auto found = std::find_if(spec.params.begin(), spec.params.end(),
                                    [&](const models::ParamData& p) { return p.name == port.name; });
    if (found == spec.params.end()) return absl::InternalError(absl::StrFormat("parameter %s has no data", port.name));
    QUERN_RETURN_IF_ERROR(runnable.BindParam(port.name, found->bytes));
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<RunningModel>> RunModel(OpenedModel opened, const Options& options,
                                                 const std::vector<SymbolRanges>& guards) {
  if (OnDevice(options)) return absl::UnimplementedError("this runs on the cpu, not on a device");
  QUERN_ASSIGN(const PipelineOptions pipeline, PipelineOptionsOf(options));
  // The module has its final address before what is made of it refers to it.
  auto running = std::make_unique<RunningModel>();
  running->opened = std::move(opened);
  QUERN_ASSIGN(running->made, MakeExecutable(running->opened.spec.module, guards, options, pipeline));
  QUERN_RETURN_IF_ERROR(BindParams(*running->made.executable, running->opened.spec));
  return running;
}

StatusOr<PipelineOptions> PipelineOptionsOf(const Options& options) {
  PipelineOptions pipeline;
  pipeline.exact = options.exact;
  pipeline.facts.invariant = options.invariant;
  QUERN_ASSIGN(pipeline.kernels,
               opt::ParseKernelPolicy(options.kernels.empty() ? Environment("QUERN_KERNELS") : options.kernels));
  if (const codegen::DeviceTarget* device = FindDeviceCpu(options.cpu)) {
    pipeline.facts.blocks = device->facts;
    if (options.exact) pipeline.facts.blocks->half_products = false;
    return pipeline;
  }
  QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget(options.cpu));
  pipeline.facts.integer_rows = target->integer_rows;
  pipeline.facts.word_rows = target->word_rows;
  pipeline.facts.few_by_panels = target->few_by_panels;
  pipeline.facts.bf16_pairs = target->bf16_pairs;
  pipeline.facts.bf16_tiles = target->bf16_tiles;
  pipeline.facts.any_signs = target->any_signs;
  pipeline.facts.lanes = target->lanes;
  pipeline.facts.vector_registers = target->registers;
  return pipeline;
}

std::vector<SymbolRanges> StepGuards(bool invariant) {
  const auto guard = [](int64_t low, int64_t high, int64_t logits_low, int64_t logits_high) {
    return SymbolRanges{{models::kSequenceSymbol, {low, high}}, {models::kLogitsSymbol, {logits_low, logits_high}}};
  };
  const int64_t most = models::kMaxSequence, few = codegen::kFewRows, more = codegen::kMostFewRows;
  if (invariant) return {guard(1, 1, 1, 1), guard(2, few, 1, few), guard(few + 1, most, 1, most)};
  return {
      guard(1, 1, 1, 1),     guard(2, few, 1, 1),           guard(few + 1, more, 1, 1),    guard(more + 1, most, 1, 1),
      guard(2, few, 2, few), guard(few + 1, more, 2, more), guard(more + 1, most, 2, most)};
}

int64_t ChunkOf(int64_t ids, int64_t left, bool invariant) {
  const int64_t most = models::kMaxSequence, few = codegen::kFewRows;
  if (left <= most) return left;
  const int64_t rest = left - most;
  return invariant && ids > few && rest <= few ? most - (few + 1 - rest) : most;
}

std::vector<SymbolRanges> StepGuardsOf(const ir::Graph& graph, bool invariant) {
  std::vector<SymbolRanges> guards;
  for (const SymbolRanges& guard : StepGuards(invariant)) {
    const bool empty = std::any_of(guard.begin(), guard.end(), [&](const auto& entry) {
      const auto own = graph.symbols.find(entry.first);
      return own != graph.symbols.end() &&
             std::max(entry.second.low, own->second.low) > std::min(entry.second.high, own->second.high);
    });
    if (!empty) guards.push_back(guard);
  }
  return guards;
}

}  // namespace quern::compiler
