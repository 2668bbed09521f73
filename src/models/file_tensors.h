// The tensors of a file as the Params of a module, each checked for its extents and its format.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "hir/builder.h"
#include "models/model_spec.h"

namespace quern::models {

using hir::Value;

// Errors are kept in the builder's status: what is built after the first is nothing. Not thread-safe; file, spec and
// builder outlive it.
class FileTensors {
 public:
  FileTensors(const ModelFile& file, ModelSpec& spec, hir::Builder& builder)
      : file_(file), spec_(spec), builder_(builder) {}

  bool Has(std::string_view name) const { return file_.FindTensor(name) != nullptr; }
  // The tensor `name`, whose extents, outermost first, are `dims`; of any format that products take.
  Value Weight(const std::string& name, std::vector<int64_t> dims);
  // The same in f32, of a float format: norms, biases, states.
  Value Vector(const std::string& name, std::vector<int64_t> dims);
  // The elements of an f32 tensor of one dimension, all above 0; empty where there is no such tensor.
  StatusOr<std::vector<float>> Factors(const std::string& name, int64_t count);
  // A Param whose bytes were computed.
  Value Computed(const std::string& name, ir::TensorType type, Memory memory);

  // A tensor that the graph has no place for (a bias, an adapter) would change the model's function: refused.
  Status CheckNothingLeft() const;

 private:
  StatusOr<Value> Find(const std::string& name, std::vector<int64_t> dims);
  Value Take(StatusOr<Value> value);

  const ModelFile& file_;
  ModelSpec& spec_;
  hir::Builder& builder_;
  std::map<std::string, Value> used_;
};

}  // namespace quern::models
