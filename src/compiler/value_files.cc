#include "compiler/value_files.h"

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "import/npy.h"
#include "import/npz.h"
#include "import/safetensors.h"
#include "onnx/model_file.h"

namespace quern::compiler {
namespace {

StatusOr<FileTensor> ParseTensorMessage(std::span<const uint8_t> bytes) {
  std::string name;
  QUERN_ASSIGN(const onnx::Data data, onnx::ParseTensor(bytes, &name));
  return FileTensor{data.dtype, data.dims, {data.bytes.begin(), data.bytes.end()}};
}

}  // namespace

StatusOr<FileTensors> ReadValueFile(const std::string& given) {
  const auto named = [](const std::string& path, const Status& status) {
    return status.ok() ? status : WithMessage(status, absl::StrCat(path, ": ", status.message()));
  };
  const bool many = given.ends_with(".npz");
  if (many || given.ends_with(".safetensors")) {
    QUERN_ASSIGN(const MappedFile file, MappedFile::Open(given));
    StatusOr<FileTensors> tensors = many ? ParseNpz(file.bytes()) : ParseSafetensors(file.bytes());
    if (!tensors.ok()) return named(given, tensors.status());
    return tensors;
  }
  const size_t equals = given.find('=');
  const bool npy = given.ends_with(".npy");
  if (equals == std::string::npos || (!npy && !given.ends_with(".pb")))
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not NAME=FILE.npy, FILE.npz or FILE.safetensors", given));
  const std::string path = given.substr(equals + 1);
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  StatusOr<FileTensor> tensor = npy ? ParseNpy(file.bytes()) : ParseTensorMessage(file.bytes());
  if (!tensor.ok()) return named(path, tensor.status());
  return FileTensors{{given.substr(0, equals), *std::move(tensor)}};
}

Status WriteValueFile(const std::string& given, const std::vector<std::pair<std::string, FileTensor>>& tensors,
                      const std::string& where) {
  if (given.ends_with(".safetensors"))
    return WriteFile(given, PrintSafetensors(FileTensors(tensors.begin(), tensors.end())));
  if (given.ends_with(".npz")) {
    QUERN_ASSIGN(const std::string bytes, PrintNpz(FileTensors(tensors.begin(), tensors.end())));
    return WriteFile(given, bytes);
  }
  const size_t equals = given.find('=');
  if (equals == std::string::npos || !given.ends_with(".npy"))
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not NAME=FILE.npy, FILE.npz or FILE.safetensors", given));
  std::vector<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    names.emplace_back(name);
    if (name != given.substr(0, equals)) continue;
    QUERN_ASSIGN(const std::string bytes, PrintNpy(tensor));
    return WriteFile(given.substr(equals + 1), bytes);
  }
  return UnknownName("output", given.substr(0, equals), names, where);
}

}  // namespace quern::compiler
