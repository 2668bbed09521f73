#include "support/onnx_case.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "check/value.h"
#include "onnx/import.h"
#include "quern/onnx.h"

namespace quern::testing {
namespace {

OnnxOutcome Refused(std::string reason) { return {OnnxOutcome::Kind::kRefused, std::move(reason)}; }
OnnxOutcome Wrong(std::string reason) { return {OnnxOutcome::Kind::kWrong, std::move(reason)}; }

StatusOr<onnx::Data> ReadTensor(const std::string& path) {
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  std::string name;
  return onnx::ParseTensor(file.bytes(), &name);
}

struct Bytes {
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

// Where `got` is not `want`; empty where it is nowhere.
std::string Compare(DType dtype, const Bytes& got, const onnx::Data& want, double atol, double rtol, double& worst) {
  if (got.dims != want.dims)
    return absl::StrFormat("sizes are %s, not %s", check::Text(got.dims), check::Text(want.dims));
  const StatusOr<ir::RefTensor> a = ir::RefTensorFromBytes(dtype, got.dims, got.bytes);
  const StatusOr<ir::RefTensor> b = ir::RefTensorFromBytes(want.dtype, want.dims, want.bytes);
  if (!a.ok() || !b.ok()) return "bytes that are no tensor";
  if (IsInteger(dtype)) {
    for (int64_t i = 0; i < a->elements(); ++i) {
      if (a->integers[i] != b->integers[i])
        return absl::StrFormat("element %d is %d, not %d", i, a->integers[i], b->integers[i]);
    }
    return "";
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    atol = std::max(atol, 1e-3);
    rtol = std::max(rtol, dtype == DType::kBF16 ? 1e-2 : 1e-3);
  }
  for (size_t i = 0; i < a->data.size(); ++i) {
    const double x = a->data[i], y = b->data[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::fabs(x - y);
    if (!(difference <= atol + rtol * std::fabs(y))) return absl::StrFormat("element %u is %.9g, not %.9g", i, x, y);
    worst = std::max(worst, difference);
  }
  return "";
}

OnnxOutcome RunCase(const std::string& folder, const std::string& data_set, double atol, double rtol, int threads,
                    bool fix_sizes) {
  const std::string model_path = folder + "/model.onnx", data = absl::StrCat(folder, "/", data_set, "/");
  const StatusOr<std::shared_ptr<const onnx::ModelFile>> file = onnx::ModelFile::Open(model_path);
  if (!file.ok()) return Refused(std::string(file.status().message()));
  const onnx::format::Graph& graph = (*file)->model().graph();
  const auto dense = [](const onnx::format::ValueInfo& info) {
    return info.type().has_tensor_type() && onnx::TypeName(info.type().tensor_type().elem_type()) != "STRING";
  };
  std::map<std::string, onnx::Data> inputs;
  OnnxOptions options;
  options.fix_sizes = fix_sizes;
  int number = 0;
  for (const onnx::format::ValueInfo& info : graph.input()) {
    const bool has_default = std::any_of(graph.initializer().begin(), graph.initializer().end(),
                                         [&](const auto& tensor) { return tensor.name() == info.name(); });
    if (has_default && !std::filesystem::exists(absl::StrFormat("%sinput_%d.pb", data, number))) continue;
    const std::string path = absl::StrFormat("%sinput_%d.pb", data, number++);
    if (!dense(info))
      return {OnnxOutcome::Kind::kNotDense, absl::StrCat("its input ", info.name(), " is no dense tensor of numbers")};
    StatusOr<onnx::Data> tensor = ReadTensor(path);
    if (!tensor.ok()) return Refused(std::string(tensor.status().message()));
    if (has_default) continue;
    options.values.push_back(absl::StrCat(info.name(), "=", path));
    inputs.emplace(info.name(), *std::move(tensor));
  }
  for (const onnx::format::ValueInfo& info : graph.output()) {
    if (!dense(info))
      return {OnnxOutcome::Kind::kNotDense, absl::StrCat("its output ", info.name(), " is no dense tensor of numbers")};
  }
  Result<OnnxModel> model = OnnxModel::Open(model_path, options);
  if (!model.ok()) return Refused(model.error());
  Result<Program> program = model->graph().Compile({.threads = threads});
  if (!program.ok()) return Refused(program.error());
  std::vector<ConstTensor> arguments;
  for (const TensorInfo& input : program->inputs()) {
    onnx::Data& tensor = inputs.find(input.name)->second;
    // A number may be given as a tensor of one element, as ONNX Runtime takes it.
    if (input.type.ends_with("[]") && tensor.dims == std::vector<int64_t>{1}) tensor.dims.clear();
    arguments.push_back({input.name, tensor.bytes.data(), tensor.bytes.size(), nullptr, tensor.dims});
    const StatusOr<ir::TensorType> type = ir::TensorType::Parse(input.type);
    const bool as_bits = type.ok() && type->dtype == DType::kBF16 && tensor.dtype == DType::kU16;
    if (!type.ok() || type->dims.size() != tensor.dims.size() || (type->dtype != tensor.dtype && !as_bits))
      return Wrong(absl::StrCat("the input ", input.name, " is ", input.type));
  }
  const Result<std::vector<std::vector<int64_t>>> shapes = program->OutputShapes(arguments);
  if (!shapes.ok()) return Refused(shapes.error());
  std::map<std::string, Bytes> outputs;
  std::map<std::string, DType> dtypes;
  std::vector<MutableTensor> results;
  for (const TensorInfo& output : program->outputs()) {
    const StatusOr<ir::TensorType> type = ir::TensorType::Parse(output.type);
    Bytes& made = outputs[output.name];
    made.dims = (*shapes)[results.size()];
    made.bytes.resize(RowBytes(type->dtype, ir::RefTensor{type->dtype, made.dims, {}}.elements()));
    dtypes[output.name] = type->dtype;
    results.push_back({output.name, made.bytes.data(), made.bytes.size(), nullptr, made.dims});
  }
  const Result<void> ran = program->Run(arguments, results);
  if (!ran.ok()) return Refused(ran.error());
  const Result<std::vector<std::vector<int64_t>>> found = program->LastShapes();
  if (!found.ok()) return Refused(found.error());
  for (size_t o = 0; o < found->size(); ++o) {
    Bytes& made = outputs[program->outputs()[o].name];
    made.dims = (*found)[o];
    const DType dtype = dtypes[program->outputs()[o].name];
    made.bytes.resize(RowBytes(dtype, ir::RefTensor{dtype, made.dims, {}}.elements()));
  }
  OnnxOutcome outcome;
  outcome.fixed = !model->fixed_inputs().empty();
  for (size_t o = 0; o < model->outputs().size(); ++o) {
    const std::string& name = model->outputs()[o];
    StatusOr<onnx::Data> want = ReadTensor(absl::StrFormat("%soutput_%d.pb", data, o));
    if (!want.ok()) return Refused(std::string(want.status().message()));
    // NumPy has no bf16: the data has its bits.
    if (want->dtype == DType::kU16 && dtypes[name] == DType::kBF16) want->dtype = DType::kBF16;
    if (want->dtype != dtypes[name]) {
      return Wrong(absl::StrFormat("output %s is %s, not %s", name, std::string(Name(dtypes[name])),
                                   std::string(Name(want->dtype))));
    }
    const std::string differs = Compare(want->dtype, outputs[name], *want, atol, rtol, outcome.difference);
    if (!differs.empty()) return Wrong(absl::StrFormat("output %s: %s", name, differs));
  }
  return outcome;
}

}  // namespace

OnnxOutcome RunOnnxCase(const std::string& folder, const std::string& data_set, double atol, double rtol, int threads) {
  OnnxOutcome outcome = RunCase(folder, data_set, atol, rtol, threads, false);
  if (outcome.kind != OnnxOutcome::Kind::kRefused) return outcome;
  OnnxOutcome again = RunCase(folder, data_set, atol, rtol, threads, true);
  if (again.kind == OnnxOutcome::Kind::kRefused) return outcome;
  again.sizes = outcome.reason;
  return again;
}

}  // namespace quern::testing
