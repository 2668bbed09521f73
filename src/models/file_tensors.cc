#include "models/file_tensors.h"

#include <cstring>

namespace quern::models {
namespace {

StatusOr<Value> AddParam(ModelSpec& spec, const std::string& name, ir::TensorType type,
                         std::span<const uint8_t> bytes) {
  QUERN_ASSIGN(const Value value, spec.module.AddParam(name, type));
  spec.params.push_back({name, std::move(type), bytes});
  return value;
}

}  // namespace

Value FileTensors::Take(StatusOr<Value> value) {
  if (value.ok()) return *value;
  builder_.Fail(value.status());
  return {};
}

StatusOr<Value> FileTensors::Find(const std::string& name, std::vector<int64_t> dims) {
  const ModelTensor* tensor = file_.FindTensor(name);
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
  if (const auto used = used_.find(name); used != used_.end()) return used->second;
  QUERN_ASSIGN(const Value value, AddParam(spec_, name, std::move(type), tensor->bytes));
  used_.emplace(name, value);
  return value;
}

Value FileTensors::Weight(const std::string& name, std::vector<int64_t> dims) {
  return builder_.status().ok() ? Take(Find(name, std::move(dims))) : Value{};
}

Value FileTensors::Vector(const std::string& name, std::vector<int64_t> dims) {
  const Value value = Weight(name, std::move(dims));
  if (!builder_.status().ok()) return {};
  if (IsBlock(builder_.type(value).dtype))
    return Take(absl::UnimplementedError(absl::StrFormat("the tensor %s is quantised", name)));
  return builder_.Cast(DType::kF32, value);
}

StatusOr<std::vector<float>> FileTensors::Factors(const std::string& name, int64_t count) {
  std::vector<float> factors;
  const ModelTensor* tensor = file_.FindTensor(name);
  if (tensor == nullptr) return factors;
  if (tensor->dtype != DType::kF32 || tensor->dims != std::vector<int64_t>{count})
    return absl::InvalidArgumentError(absl::StrFormat("the tensor %s is not f32[%d]", name, count));
  factors.resize(count);
  std::memcpy(factors.data(), tensor->bytes.data(), factors.size() * sizeof(float));
  for (const float factor : factors) {
    if (!(factor > 0))
      return absl::InvalidArgumentError(absl::StrFormat("the tensor %s has a factor that is not above 0", name));
  }
  used_.emplace(name, Value{});
  return factors;
}

Value FileTensors::Computed(const std::string& name, ir::TensorType type, Memory memory) {
  if (!builder_.status().ok()) return {};
  spec_.computed.push_back(std::make_shared<const Memory>(std::move(memory)));
  return Take(AddParam(spec_, name, std::move(type), spec_.computed.back()->bytes()));
}

Status FileTensors::CheckNothingLeft() const {
  for (const ModelTensor& tensor : file_.tensors()) {
    if (!used_.contains(tensor.name)) {
      return absl::UnimplementedError(
          absl::StrFormat("the tensor %s has no place in the architecture %s", tensor.name, spec_.architecture));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::models
