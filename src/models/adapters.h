// LoRA adapters: GGUF files of pairs of small matrices, each beside a weight of the model they were trained for.
// Where the model has y = W x, with an adapter it has y = W x + s B (A x), s = scale * alpha / rank. W stays as
// it is, of whatever format; A and B are Params of their own.
//
// A file has general.type "adapter", adapter.type "lora", adapter.lora.alpha (0 or absent: s is the scale alone), the
// model's general.architecture, and for each weight NAME the tensors NAME.lora_a, [rank, in], and NAME.lora_b,
// [out, rank]; of experts [experts, rank, in] and [experts, out, rank]; of token_embd.weight [vocabulary, rank] and
// [width, rank]. Everything in it is checked.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hir/builder.h"
#include "models/model_spec.h"

namespace quern::models {

using hir::Value;

// The adapters of one model. Errors are kept in the builder's status: what is built after the first is nothing. Not
// thread-safe; model, spec and builder outlive it.
class Adapters {
 public:
  Adapters(const ModelFile& model, ModelSpec& spec, hir::Builder& builder)
      : model_(model), spec_(spec), builder_(builder) {}

  // To be said first: which there are. Errors: of a file that is no adapter for this architecture, of a tensor beside
  // the pairs, of a pair without its other half, of one for a weight that the model lacks.
  void Read(std::span<const AdapterFile> files);

  // y, the product of x [.., in] with the weight [out, in], and what adapters add to it.
  Value Product(Value y, Value x, const std::string& weight, const std::string& label);
  // The same of a weight [groups, out, in], row i by the matrix which[i].
  Value GroupedProduct(Value y, Value x, Value which, const std::string& weight, const std::string& label);
  // The rows `ids` of an embedding [vocabulary, width], and what adapters add to them.
  Value Rows(Value y, Value ids, const std::string& table, const std::string& label);

  // What has not been asked for would be left out: refused.
  Status CheckNothingLeft() const;

 private:
  struct Pair {
    const ModelTensor *a = nullptr, *b = nullptr;
  };
  struct Adapter {
    std::string name;  // of its file, for errors
    double scale = 1, alpha = 0;
    std::map<std::string, Pair, std::less<>> pairs;  // by the weight's name
  };
  StatusOr<Adapter> ReadFile(const AdapterFile& file) const;
  bool Changes(std::string_view weight) const;
  // Whether any changes the weight, which has its one use here.
  bool Reach(const std::string& weight);
  // For each adapter that has a pair for the weight: y becomes what `add` makes of y and the pair's Params, the factor.
  template <typename F>
  Value AddEach(Value y, const std::string& weight, std::vector<int64_t> a, std::vector<int64_t> b, const F& add);

  const ModelFile& model_;
  ModelSpec& spec_;
  hir::Builder& builder_;
  std::vector<Adapter> adapters_;
  std::set<std::string, std::less<>> used_;  // weights that have been asked for
};

}  // namespace quern::models
