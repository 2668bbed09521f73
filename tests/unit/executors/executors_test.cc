// One model, five executors: the double interpreter of graphs, the JIT for this machine's processor, the schedules for
// blocks of threads of the PTX target on the emulated device, the PTX of the latest machine on an interpreter of PTX,
// and the Metal text on the shim. All decode the same text, token by token
// after a prompt of several rows, each feeding itself what it chose; their logits are held to the interpreter's.
//
// Models of ../shared/models are skipped, saying so, where they are absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/target.h"
#include "codegen/metal/emit_metal.h"
#include "codegen/ptx/emit_ptx.h"
#include "compiler/model.h"
#include "device/emulated/emulated_device.h"
#include "support/ptx_device.h"
#include "support/shim_device.h"
#include "text/tokenizer.h"
#include "unit/device/device_run.h"

namespace quern {
namespace {

using Logits = std::vector<float>;
// The logits of the last of `ids`, which follow `past` others.
using Step = std::function<StatusOr<Logits>(const std::vector<int32_t>& ids, int64_t past)>;

Binding SymbolsOf(size_t rows, int64_t past) {
  return {
      {models::kSequenceSymbol, static_cast<int64_t>(rows)}, {models::kPastSymbol, past}, {models::kLogitsSymbol, 1}};
}

struct Model {
  compiler::OpenedModel opened;
  ir::Graph graph;  // f32 activations beside any weights
};

StatusOr<Model> Open(const std::string& path) {
  QUERN_ASSIGN(compiler::OpenedModel opened, compiler::OpenModel(path, {.context = 64}));
  compiler::PipelineOptions options;
  options.exact = true;
  QUERN_ASSIGN(ir::Graph graph, compiler::PrepareGraph(opened.spec.module, options));
  return Model{std::move(opened), std::move(graph)};
}

Step Interpreted(const Model& model) {
  auto feeds = std::make_shared<ir::Feeds>();
  const Signature signature = SignatureOf(model.graph);
  for (const Port& port : signature.params) {
    const auto param = std::find_if(model.opened.spec.params.begin(), model.opened.spec.params.end(),
                                    [&](const auto& p) { return p.name == port.name; });
    std::vector<int64_t> dims;
    for (const Extent& dim : port.type.dims) dims.push_back(dim.constant());
    (*feeds)[port.name] = ir::RefTensorFromBytes(port.type.dtype, dims, param->bytes).value();
  }
  for (const Port& port : signature.states) {
    std::vector<int64_t> dims;
    for (const Extent& dim : port.type.dims) dims.push_back(dim.constant());
    ir::RefTensor& state = (*feeds)[port.name] = ir::RefTensor{port.type.dtype, dims, {}};
    state.Allocate();
  }
  return [&model, feeds, signature](const std::vector<int32_t>& ids, int64_t past) -> StatusOr<Logits> {
    std::vector<int64_t> dims(signature.inputs[0].type.dims.size(), 1);
    dims.back() = static_cast<int64_t>(ids.size());
    (*feeds)[signature.inputs[0].name] =
        ir::RefTensor{DType::kI32, dims, {}, std::vector<int64_t>(ids.begin(), ids.end())};
    QUERN_ASSIGN(const std::vector<ir::RefTensor> results,
                 ir::Interpret(model.graph, SymbolsOf(ids.size(), past), *feeds));
    for (const ir::Donation& donation : model.graph.donations) (*feeds)[donation.input] = results[donation.output];
    const std::vector<double>& logits = results[signature.outputs[0].output].data;
    return Logits(logits.begin(), logits.end());
  };
}

Step Running(std::shared_ptr<Runnable> runnable, int64_t vocabulary) {
  return [runnable, vocabulary](const std::vector<int32_t>& ids, int64_t past) -> StatusOr<Logits> {
    Logits logits(static_cast<size_t>(vocabulary));
    const ConstBytes in{ids.data(), static_cast<int64_t>(ids.size() * sizeof(int32_t))};
    const MutableBytes out{logits.data(), vocabulary * static_cast<int64_t>(sizeof(float))};
    QUERN_RETURN_IF_ERROR(runnable->Run({&in, 1}, {&out, 1}, SymbolsOf(ids.size(), past)));
    return logits;
  };
}

StatusOr<Step> Bound(std::shared_ptr<Runnable> runnable, const Model& model) {
  for (const Port& port : runnable->signature().params) {
    const auto param = std::find_if(model.opened.spec.params.begin(), model.opened.spec.params.end(),
                                    [&](const auto& p) { return p.name == port.name; });
    QUERN_RETURN_IF_ERROR(runnable->BindParam(port.name, param->bytes));
  }
  return Running(std::move(runnable), model.opened.spec.vocabulary);
}

StatusOr<Step> Jitted(const Model& model) {
  QUERN_ASSIGN(const cpu::Target* native, cpu::ResolveTarget("native"));
  QUERN_ASSIGN(const testing::LevelRunner level, testing::LevelRunner::Create(*native));
  QUERN_ASSIGN(compiler::PipelineOptions options, compiler::PipelineOptionsOf({.cpu = native->name, .exact = true}));
  std::vector<Variant> variants;
  for (const SymbolRanges& guard : compiler::StepGuardsOf(model.graph, /*invariant=*/false)) {
    variants.push_back({guard, [&model, guard, options]() -> StatusOr<lir::Plan> {
                          QUERN_ASSIGN(compiler::PlannedVariant planned,
                                       compiler::PlanVariant(model.graph, guard, options));
                          return std::move(planned.plan);
                        }});
  }
  QUERN_ASSIGN(std::unique_ptr<Executable> executable,
               Executable::Create(SignatureOf(model.graph), std::move(variants),
                                  {.cache = level.cache, .pool = std::make_shared<ThreadPool>(1), .log = {}}));
  return Bound(std::move(executable), model);
}

// Planned for blocks by the facts of `target`; `text`: with what it emits.
StatusOr<Step> OnDevice(const Model& model, std::shared_ptr<device::Device> device, const codegen::DeviceTarget& target,
                        bool text) {
  compiler::PipelineOptions options;
  options.facts.blocks = target.facts;
  std::vector<device::PlannedVariant> plans;
  for (const SymbolRanges& guard : compiler::StepGuardsOf(model.graph, /*invariant=*/false)) {
    QUERN_ASSIGN(compiler::PlannedVariant planned, compiler::PlanVariant(model.graph, guard, options));
    plans.push_back({guard, std::move(planned.plan)});
  }
  const Signature signature = SignatureOf(model.graph);
  QUERN_ASSIGN(const auto program, testing::MakeLoadable(signature, plans, text ? &target : nullptr));
  QUERN_ASSIGN(std::unique_ptr<device::Executor> executor,
               device::Executor::Create(std::move(device), signature, device::VariantsOf(program)));
  return Bound(std::move(executor), model);
}

struct Written {
  std::vector<int32_t> ids;
  std::vector<Logits> logits;  // that each id was chosen from
  std::string text;
};

void Write(const text::Tokenizer& tokenizer, const Step& step, const std::vector<int32_t>& prompt, int count,
           Written& written) {
  std::vector<int32_t> next = prompt;
  int64_t past = 0;
  for (int i = 0; i < count; ++i) {
    StatusOr<Logits> logits = step(next, past);
    ASSERT_TRUE(logits.ok()) << logits.status();
    past += static_cast<int64_t>(next.size());
    const auto best = static_cast<int32_t>(std::max_element(logits->begin(), logits->end()) - logits->begin());
    written.ids.push_back(best);
    written.logits.push_back(*std::move(logits));
    if (tokenizer.vocabulary().IsEnd(best)) break;
    written.text += tokenizer.Piece(best);
    next = {best};
  }
}

double Difference(const Written& a, const Written& b) {
  double most = 0;
  for (size_t i = 0; i < std::min(a.logits.size(), b.logits.size()); ++i) {
    for (size_t v = 0; v < a.logits[i].size(); ++v)
      most = std::max(most, std::fabs(static_cast<double>(a.logits[i][v]) - b.logits[i][v]));
  }
  return most;
}

struct Task {
  const char* path;
  const char* prompt;
  int tokens;
  // Of logits on devices: a prompt of more than eight rows beside weights that are not f32 is multiplied in halves.
  double tolerance;
};

void PrintTo(const Task& task, std::ostream* out) { *out << task.path; }

class Executors : public ::testing::TestWithParam<Task> {};

TEST_P(Executors, WriteTheSameText) {
  const Task& task = GetParam();
  const std::string path = absl::StrCat(QUERN_SOURCE_DIR, "/", task.path);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const StatusOr<Model> model = Open(path);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto tokenizer = text::Tokenizer::FromMetadata(model->opened.file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<int32_t> prompt = (*tokenizer)->Encode(task.prompt);
  struct Row {
    const char* name;
    StatusOr<Step> step;
    double tolerance;
  };
  std::vector<Row> rows;
  rows.push_back({"interpreter", Interpreted(*model), 0});
  rows.push_back({"JIT", Jitted(*model), 1e-3});
  rows.push_back({"emulated PTX schedule", OnDevice(*model, device::emulated::MakeDevice(2), ptx::Targets()[0], false),
                  task.tolerance});
  const codegen::DeviceTarget& groups = ptx::Targets().back();
  rows.push_back({"PTX text, run", OnDevice(*model, ptx::MakeDevice(), groups, true), task.tolerance});
  rows.push_back(
      {"Metal text on the shim", OnDevice(*model, MakeShimDevice(), metal::Targets()[0], true), task.tolerance});
  Written reference;
  for (Row& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_TRUE(row.step.ok()) << row.step.status();
    Written written;
    ASSERT_NO_FATAL_FAILURE(Write(**tokenizer, *row.step, prompt, task.tokens, written));
    const bool first = reference.ids.empty();
    if (first) reference = written;
    const double difference = Difference(reference, written);
    std::printf("%-24s \"%s%s\"  logits within %.2g\n", row.name, task.prompt, written.text.c_str(), difference);
    EXPECT_EQ(written.ids, reference.ids);
    EXPECT_LE(difference, row.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Executors,
    ::testing::Values(Task{"models/addition.gguf", "27+58=", 3, 1e-3},
                      Task{"../shared/models/gguf/stories260K-wide256-F32.gguf",
                           "Once upon a time there was a little girl who had a big red ball.", 8, 1e-3},
                      Task{"../shared/models/gguf/stories260K-wide256-Q4_K_M.gguf",
                           "Once upon a time there was a little girl who had a big red ball.", 8, 5e-2},
                      Task{"../shared/models/gguf/stories260K-wide256-IQ4_NL.gguf", "Once upon a time", 2, 5e-2}));

}  // namespace
}  // namespace quern
