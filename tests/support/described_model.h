// A small model described in text, with what llama.cpp computes for it: tests/golden/architectures, whose recorder
// (record_architectures.py) says what the lines are and makes the weights by the same rule.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace quern::support {

struct DescribedModel {
  std::string architecture;
  std::vector<uint8_t> file;  // a GGUF file without a tokenizer
  int64_t context = 0;
  std::vector<int32_t> ids;
  std::vector<float> rows;   // of logits, or of embeddings, for each id
  std::vector<float> exact;  // where weights are packed: the same of what these decode to, in f32
  // Of an adapter (tests/golden/adapters, record_adapters.py): the path of the model's description, and its scale.
  std::string base;
  double scale = 1;
};

// Error: a line that says nothing.
StatusOr<DescribedModel> ParseDescribedModel(const std::string& text);
// Error: also a file that cannot be read.
StatusOr<DescribedModel> ReadDescribedModel(const std::string& path);
// Elements of a tensor by the rule: offset + scale * u, u by its name and their number.
std::vector<float> DescribedWeights(const std::string& name, uint64_t count, double scale, double offset);
StatusOr<std::string> ReadText(const std::string& path);
// The paths of all models, sorted; of all adapters.
std::vector<std::string> DescribedModels();
std::vector<std::string> DescribedAdapters();

}  // namespace quern::support
