#include "support/model_weights.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "codegen/matmul_plan.h"
#include "compiler/model.h"
#include "hir/block.h"
#include "support/environment.h"

namespace quern {

StatusOr<hir::Module> WithWeights(const hir::Module& module, DType format) {
  hir::Module made;
  made.name = module.name;
  made.policy = module.policy;
  made.symbols = module.symbols;
  std::vector<std::vector<hir::Value>> results;
  for (const hir::Node& node : module.nodes()) {
    std::vector<hir::Value> inputs;
    for (const hir::Value& input : node.inputs)
      inputs.push_back(input.absent() ? input : results[input.node][input.result]);
    const std::string block = node.block->name;
    if (block == "Param") {
      ir::TensorType type = node.results[0];
      if (type.rank() == 2 && type.dtype == DType::kF16) type.dtype = format;
      QUERN_ASSIGN(const hir::Value param, made.AddParam(node.attributes.String("name"), std::move(type)));
      results.push_back({param});
    } else if (block == "Input") {
      QUERN_ASSIGN(const hir::Value input, made.AddInput(node.attributes.String("name"), node.results[0]));
      results.push_back({input});
    } else if (block == "Constant") {
      QUERN_ASSIGN(const hir::Value constant, made.AddConstant(node.results[0], *node.data, node.label));
      results.push_back({constant});
    } else if (block == "Mir") {
      QUERN_ASSIGN(std::vector<hir::Value> added,
                   made.AddMir(node.op->name, std::move(inputs), node.attributes, node.label));
      results.push_back(std::move(added));
    } else {
      QUERN_ASSIGN(std::vector<hir::Value> added, made.Add(block, std::move(inputs), node.attributes, node.label));
      results.push_back(std::move(added));
    }
  }
  for (const hir::Value& output : module.outputs) made.outputs.push_back(results[output.node][output.result]);
  made.donations = module.donations;
  return made;
}

StatusOr<Binding> SizesFor(const lir::Plan& plan, uint64_t seed) {
  constexpr int64_t kMostAboveLow = 17;
  std::mt19937_64 random(seed);
  for (int tries = 0; tries < 1000; ++tries) {
    Binding binding;
    for (const auto& [symbol, range] : plan.ranges) {
      binding[symbol] =
          range.low + static_cast<int64_t>(random() % (std::min(range.high - range.low, kMostAboveLow) + 1));
    }
    bool allowed = true;
    for (const lir::Requirement& requirement : plan.requirements) {
      QUERN_ASSIGN(const int64_t value, requirement.value.Evaluate(binding));
      allowed = allowed && (requirement.exact ? value == 0 : value >= 0);
    }
    if (allowed) return binding;
  }
  return absl::InternalError(absl::StrCat("no sizes found for ", plan.name));
}

namespace {

bool ChecksAll(DType format) { return !IsBlock(format) || testing::FromEnvironment("QUERN_LONG_TESTS", 0) > 0; }

}  // namespace

bool ChecksSteps(DType format, const SymbolRanges& guard) {
  if (ChecksAll(format)) return true;
  std::vector<SymbolRanges> alike;
  const auto rows = [](const SymbolRanges& steps) {
    const int64_t least = steps.at(models::kSequenceSymbol).low;
    return least > codegen::kMostFewRows ? 2 : least > codegen::kFewRows ? 1 : 0;
  };
  for (const SymbolRanges& each : compiler::StepGuards(/*invariant=*/false)) {
    if (rows(each) == rows(guard)) alike.push_back(each);
  }
  return alike[static_cast<size_t>(format) % alike.size()] == guard;
}

bool ChecksWay(DType format, size_t way, size_t count) {
  return ChecksAll(format) || static_cast<size_t>(format) % count == way;
}

}  // namespace quern
