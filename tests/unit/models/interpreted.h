// A language model lowered and run by the graph interpreter, with its caches carried from step to step.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "hir/module.h"
#include "ir/interpret.h"
#include "models/model_spec.h"

namespace quern::models {

// A model lowered and interpreted: caches are carried from step to step.
class Interpreted {
 public:
  static Interpreted Make(const ModelSpec& spec, hir::FusionPolicy policy) {
    Interpreted model;
    hir::Module module = spec.module;
    module.policy = policy;
    auto graph = hir::Lower(module);
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return model;
    model.graph_ = *std::move(graph);
    for (const ParamData& param : spec.params) {
      std::vector<int64_t> dims;
      for (const Extent& dim : param.type.dims) dims.push_back(dim.constant());
      auto tensor = ir::RefTensorFromBytes(param.type.dtype, dims, param.bytes);
      EXPECT_TRUE(tensor.ok()) << param.name << tensor.status();
      model.feeds_[param.name] = *std::move(tensor);
    }
    for (const ir::Donation& donation : model.graph_.donations) {
      const ir::TensorType& type = model.graph_.type(model.graph_.outputs[donation.output]);
      ir::RefTensor cache{type.dtype, {}, {}};
      for (const Extent& dim : type.dims) cache.dims.push_back(dim.constant());
      cache.Allocate();
      model.feeds_[donation.input] = std::move(cache);
    }
    return model;
  }

  // Logits of the last `logits` of `ids`.
  std::vector<double> Step(const std::vector<int32_t>& ids, int64_t logits) {
    const int64_t n = static_cast<int64_t>(ids.size());
    feeds_["ids"] = {DType::kI32, {n}, {}, std::vector<int64_t>(ids.begin(), ids.end())};
    Binding symbols = {{"SEQ", n}, {"PAST_SEQ", past_}, {"LOGITS", logits}};
    std::erase_if(symbols, [&](const auto& symbol) { return !graph_.symbols.contains(symbol.first); });
    auto outputs = ir::Interpret(graph_, symbols, feeds_);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return {};
    past_ += n;
    for (const ir::Donation& donation : graph_.donations) feeds_[donation.input] = (*outputs)[donation.output];
    return (*outputs)[0].data;
  }

 private:
  ir::Graph graph_;
  ir::Feeds feeds_;
  int64_t past_ = 0;
};

}  // namespace quern::models
