#include "import/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostHeader = 100 << 20;  // of the format

struct Code {
  DType dtype;
  const char* name;
};
constexpr Code kCodes[] = {
    {DType::kF32, "F32"}, {DType::kF16, "F16"}, {DType::kBF16, "BF16"}, {DType::kF64, "F64"},   {DType::kC64, "C64"},
    {DType::kI8, "I8"},   {DType::kI16, "I16"}, {DType::kI32, "I32"},   {DType::kI64, "I64"},   {DType::kU8, "U8"},
    {DType::kU16, "U16"}, {DType::kU32, "U32"}, {DType::kU64, "U64"},   {DType::kBool, "BOOL"},
};

Status Bad(const std::string& tensor, const char* what) {
  return absl::InvalidArgumentError(absl::StrFormat("tensor %s: %s", tensor, what));
}

StatusOr<SafetensorsEntry> ReadTensor(const std::string& name, const Json& entry, std::span<const uint8_t> data) {
  const auto dtype = entry.find("dtype"), shape = entry.find("shape"), offsets = entry.find("data_offsets");
  if (dtype == entry.end() || !dtype->is_string() || shape == entry.end() || !shape->is_array() ||
      offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return Bad(name, "dtype, shape and data_offsets expected");
  }
  SafetensorsEntry tensor;
  tensor.name = name;
  tensor.type_name = dtype->get_ref<const std::string&>();
  for (const Code& code : kCodes) {
    if (tensor.type_name == code.name) tensor.dtype = code.dtype;
  }
  const uint64_t begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > data.size()) return Bad(name, "it lies outside of the file");
  for (const Json& size : *shape) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX) return Bad(name, "a size is no number");
    tensor.shape.push_back(size.get<int64_t>());
  }
  if (tensor.dtype && BytesOf(*tensor.dtype, tensor.shape) != end - begin)
    return Bad(name, "its data does not have the bytes of the shape");
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// The header; an error where it names a tensor twice, of which a parser would keep one.
StatusOr<Json> ReadHeader(const char* text, uint64_t length) {
  std::set<std::string> names;
  std::string twice;
  const auto look = [&](int depth, Json::parse_event_t event, Json& key) {
    if (depth == 1 && event == Json::parse_event_t::key && !names.insert(key.get<std::string>()).second)
      twice = key.get<std::string>();
    return true;
  };
  Json header = Json::parse(text, text + length, look, /*allow_exceptions=*/false);
  if (!header.is_object()) return absl::InvalidArgumentError("byte 8: the header is no object of JSON");
  if (!twice.empty()) return Bad(twice, "it is there twice");
  return header;
}

}  // namespace

StatusOr<std::vector<SafetensorsEntry>> ReadSafetensors(std::span<const uint8_t> file) {
  uint64_t length = 0;
  if (file.size() < sizeof length) return absl::InvalidArgumentError("byte 0: no .safetensors file");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMostHeader || length > file.size() - sizeof length)
    return absl::InvalidArgumentError("byte 0: the header is longer than the file, or than any");
  QUERN_ASSIGN(const Json header, ReadHeader(reinterpret_cast<const char*>(file.data()) + sizeof length, length));
  const std::span<const uint8_t> data = file.subspan(sizeof length + length);
  std::vector<SafetensorsEntry> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (!entry.is_object()) return Bad(name, "dtype, shape and data_offsets expected");
    QUERN_ASSIGN(SafetensorsEntry tensor, ReadTensor(name, entry, data));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

StatusOr<FileTensors> ParseSafetensors(std::span<const uint8_t> file) {
  QUERN_ASSIGN(const std::vector<SafetensorsEntry> entries, ReadSafetensors(file));
  FileTensors tensors;
  for (const SafetensorsEntry& entry : entries) {
    if (!entry.dtype)
      return absl::UnimplementedError(absl::StrFormat("tensor %s is of dtype %s", entry.name, entry.type_name));
    tensors.emplace(entry.name, FileTensor{*entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}});
  }
  return tensors;
}

std::string PrintSafetensors(const FileTensors& tensors) {
  Json header = Json::object();
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = "";
    for (const Code& code : kCodes) {
      if (code.dtype == tensor.dtype) dtype = code.name;
    }
    header[name] = {{"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((sizeof(uint64_t) + text.size()) % 64 != 0) text += ' ';
  const uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += text;
  for (const auto& [name, tensor] : tensors)
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

}  // namespace quern
