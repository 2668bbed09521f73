// Every kernel of whole models, through the C emitter and the system's C compiler, held to the KIR interpreter.
//
// Models are planned as a session plans them: for each guard over the length of a step, with int8 and with f32
// activations, with the row blocks of each CPU level. Of what the plans hold, each distinct kernel runs once on random
// memory, at sizes that the plan allows. The bundled model takes part once for each format of weights, so nothing
// depends on files: of block formats with some of the steps and levels each.
//
// QUERN_KERNEL_SEED=n draws other memory and sizes; QUERN_LONG_TESTS=1 checks every format with all steps and levels.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/target.h"
#include "compiler/model.h"
#include "kir/tile_op.h"
#include "support/attention_text.h"
#include "support/block_formats.h"
#include "support/c_kernel.h"
#include "support/environment.h"
#include "support/model_weights.h"

namespace quern {
namespace {

constexpr size_t kBatch = 32;  // kernels a C file

// Distinct kernels, and what to run them on.
class Kernels {
 public:
  // All kernels that a session of this model may run; of one with weights of a block format some (ChecksSteps).
  Status AddModel(const hir::Module& module, DType format = DType::kF32) {
    std::set<std::tuple<int, int, bool, bool, bool>> levels;
    for (const cpu::Target& target : cpu::Targets())
      levels.emplace(target.integer_rows, target.word_rows, target.bf16_pairs, target.bf16_tiles, target.any_signs);
    for (const bool exact : {false, true}) {
      size_t way = 0;
      for (const auto& [rows, word_rows, pairs, tiles, signs] : levels) {
        if (!ChecksWay(format, way++, levels.size())) continue;
        compiler::PipelineOptions options;
        options.verify_steps = true;
        options.exact = exact;
        options.facts.integer_rows = rows;
        options.facts.word_rows = word_rows;
        options.facts.bf16_pairs = pairs;
        options.facts.bf16_tiles = tiles;
        options.facts.any_signs = signs;
        QUERN_ASSIGN(const ir::Graph graph, compiler::PrepareGraph(module, options));
        for (const SymbolRanges& guard : compiler::StepGuards(/*invariant=*/false)) {
          if (!ChecksSteps(format, guard)) continue;
          QUERN_ASSIGN(const compiler::PlannedVariant planned, compiler::PlanVariant(graph, guard, options));
          QUERN_RETURN_IF_ERROR(AddPlan(planned.plan));
        }
      }
    }
    return absl::OkStatus();
  }

  Status Check() const {
    for (size_t at = 0; at < cases_.size(); at += kBatch) {
      const std::span<const CKernelCase> batch(cases_.data() + at, std::min(kBatch, cases_.size() - at));
      QUERN_RETURN_IF_ERROR(CheckKernelsThroughC(batch));
    }
    return absl::OkStatus();
  }

  size_t distinct() const { return cases_.size(); }
  size_t planned() const { return planned_; }
  // Names of the tile ops that occur.
  const std::set<std::string>& tiles() const { return tiles_; }

 private:
  Status AddPlan(const lir::Plan& plan) {
    for (const kir::Kernel& kernel : plan.kernels) {
      ++planned_;
      const std::string text = kir::Print(kernel, {.origins = false, .normalise_names = true});
      if (!seen_.insert(text).second) continue;
      CKernelCase test{.kernel = kernel,
                       .seed = testing::FromEnvironment("QUERN_KERNEL_SEED", 1) * 100003 + cases_.size(),
                       .max_chunks = 2};
      QUERN_ASSIGN(test.binding, SizesFor(plan, test.seed));
      for (const kir::TileOp* op : kir::TileOps()) {
        if (text.find(absl::StrCat(" ", op->name, " ")) != std::string::npos) tiles_.insert(op->name);
      }
      cases_.push_back(std::move(test));
    }
    return absl::OkStatus();
  }

  std::vector<CKernelCase> cases_;
  std::set<std::string> seen_, tiles_;
  size_t planned_ = 0;
};

TEST(ModelKernels, OfTheBundledModelMeanTheSameInC) {
  const auto model = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto precise = compiler::OpenModel(QUERN_SOURCE_DIR "/models/addition.gguf", {.exact = true});
  ASSERT_TRUE(precise.ok()) << precise.status();
  Kernels kernels;
  std::vector<DType> formats = AllFormats();
  formats.insert(formats.end(), {DType::kF16, DType::kBF16, DType::kF32});
  for (const DType format : formats) {
    for (const hir::Module* module : {&model->spec.module, &precise->spec.module}) {
      const auto weighed = WithWeights(*module, format);
      ASSERT_TRUE(weighed.ok()) << weighed.status();
      const Status added = kernels.AddModel(*weighed, format);
      ASSERT_TRUE(added.ok()) << Row(format).name << ": " << added;
    }
  }
  // Products that no model has: of bf16 by bf16, few rows and many, of bytes, with a sign on both sides and on one, of
  // f64, and of two panels of f32.
  const auto graph = ir::Parse(R"(graph pairs {
  %0 = Input() {name = "x"} : bf16[1, 33]
  %1 = Input() {name = "y"} : bf16[21, 33]
  %2 = Param() {name = "w"} : bf16[40, 33]
  %3 = MatMul(%0, %2) {transpose_b = true} : bf16[1, 40]
  %4 = MatMul(%1, %2) {transpose_b = true} : bf16[21, 40]
  %5 = Input() {name = "i"} : i8[21, 33]
  %6 = Input() {name = "u"} : u8[21, 33]
  %7 = Param() {name = "v"} : i8[40, 33]
  %8 = Param() {name = "t"} : i8[33, 40]
  %9 = MatMul(%5, %7) {transpose_b = true} : i32[21, 40]
  %10 = MatMul(%6, %7) {transpose_b = true} : i32[21, 40]
  %11 = MatMul(%5, %8) {transpose_b = false} : i32[21, 40]
  %12 = Input() {name = "d"} : f64[21, 33]
  %13 = Param() {name = "e"} : f64[33, 40]
  %14 = MatMul(%12, %13) {transpose_b = false} : f64[21, 40]
  %15 = Input() {name = "f"} : f32[21, 5]
  %16 = Param() {name = "g"} : f32[2048, 5]
  %17 = MatMul(%15, %16) {transpose_b = true} : f32[21, 2048]
  %18 = Input() {name = "j"} : f32[1, 5, 13, 17]
  %19 = Param() {name = "l"} : f32[9, 17, 3, 3]
  %20 = Conv(%18, %19) {channels_last = true} : f32[1, 3, 11, 9]
  %21 = Param() {name = "m"} : f32[64, 17, 3, 3]
  %22 = Input() {name = "n"} : f32[1, 5, 13, 17]
  %23 = Conv(%22, %21) {channels_last = true} : f32[1, 3, 11, 64]
  return %3, %4, %9, %10, %11, %14, %17, %20, %23
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto pairs = hir::WrapGraph(*graph);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  const Status added = kernels.AddModel(*pairs);
  ASSERT_TRUE(added.ok()) << added;
  // Attention of every float dtype that a tile op takes, each.
  for (const char* q : {"f32", "bf16"}) {
    for (const char* k : testing::kFloats) {
      for (const char* v : testing::kFloats) {
        const auto attention = ir::Parse(testing::AttentionText{.dtypes = {q, k, v}, .head_dim = 16}.ToString());
        ASSERT_TRUE(attention.ok()) << attention.status();
        const auto module = hir::WrapGraph(*attention);
        ASSERT_TRUE(module.ok()) << module.status();
        const Status attends = kernels.AddModel(*module);
        ASSERT_TRUE(attends.ok()) << attends;
      }
    }
  }
  const Status same = kernels.Check();
  EXPECT_TRUE(same.ok()) << same.message();
  // Whoever adds a tile op shows it at work in a model.
  for (const kir::TileOp* op : kir::TileOps()) {
    if (op->symbol == nullptr) continue;  // of warps
    EXPECT_TRUE(kernels.tiles().contains(op->name)) << op->name << " is in no kernel";
  }
  std::printf("%d distinct kernels of %d planned, with %d tile ops\n", static_cast<int>(kernels.distinct()),
              static_cast<int>(kernels.planned()), static_cast<int>(kernels.tiles().size()));
}

TEST(ModelKernels, OfRealModelsMeanTheSameInC) {
  Kernels kernels;
  std::string names;
  for (const char* const name : {"stories260K-F32", "stories260K-Q8_0", "stories260K-Q4_0",
                                 "stories260K-wide256-Q4_K_M", "stories260K-wide256-Q5_K_M"}) {
    const std::string path = absl::StrCat(QUERN_MODELS_DIR, "/gguf/", name, ".gguf");
    if (!std::filesystem::exists(path)) continue;
    const auto model = compiler::OpenModel(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    const Status added = kernels.AddModel(model->spec.module);
    ASSERT_TRUE(added.ok()) << name << ": " << added;
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  if (names.empty()) GTEST_SKIP() << "no models in " << QUERN_MODELS_DIR;
  const Status same = kernels.Check();
  EXPECT_TRUE(same.ok()) << same.message();
  std::printf("%d distinct kernels of %d planned for %s\n", static_cast<int>(kernels.distinct()),
              static_cast<int>(kernels.planned()), names.c_str());
}

}  // namespace
}  // namespace quern
