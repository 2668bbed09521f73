#include "import/npy.h"

#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace quern {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Code {
  DType dtype;
  const char* name;  // behind the order of bytes
};
constexpr Code kCodes[] = {
    {DType::kF32, "f4"}, {DType::kF16, "f2"},  {DType::kF64, "f8"}, {DType::kI8, "i1"},  {DType::kI16, "i2"},
    {DType::kI32, "i4"}, {DType::kI64, "i8"},  {DType::kU8, "u1"},  {DType::kU16, "u2"}, {DType::kU32, "u4"},
    {DType::kU64, "u8"}, {DType::kBool, "b1"}, {DType::kC64, "c8"},
};

Status Bad(size_t byte, const char* what) {
  return absl::InvalidArgumentError(absl::StrFormat("byte %u: %s", byte, what));
}

// What stands behind "'KEY':" in the header, a literal of Python.
std::string_view Entry(std::string_view header, std::string_view key) {
  const size_t at = header.find(absl::StrCat("'", std::string(key), "':"));
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

// "(3, 48)", "(3,)", "()".
StatusOr<std::vector<int64_t>> ParseShape(std::string_view text, size_t byte) {
  std::vector<int64_t> shape;
  if (!text.starts_with('(')) return Bad(byte, "the header has no shape");
  text.remove_prefix(1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.starts_with(')')) return shape;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return Bad(byte, "the header's shape is none");
    shape.push_back(size);
    text.remove_prefix(end - text.data());
    if (text.starts_with(',')) text.remove_prefix(1);
  }
}

}  // namespace

StatusOr<FileTensor> ParseNpy(std::span<const uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 12) return Bad(0, "no .npy file");
  const bool wide = file[6] >= 2;
  if (file[6] < 1 || file[6] > 3) return Bad(6, "a version that is not known");
  const size_t begin = wide ? 12 : 10;
  const size_t length =
      file[8] | file[9] << 8 | (wide ? static_cast<size_t>(file[10]) << 16 | static_cast<size_t>(file[11]) << 24 : 0);
  if (length > file.size() - begin) return Bad(8, "the header is cut short");
  const std::string_view header = text.substr(begin, length);
  std::string_view descr = Entry(header, "descr");
  if (descr.size() < 5 || descr[0] != '\'' || descr[4] != '\'') return Bad(begin, "the header has no dtype");
  descr = descr.substr(1, 3);
  FileTensor tensor;
  bool known = false;
  for (const Code& code : kCodes) {
    if (descr.substr(1) != code.name) continue;
    tensor.dtype = code.dtype;
    known = descr[0] == '<' || descr[0] == '|' || (descr[0] == '=' && ScalarBytes(code.dtype) == 1);
  }
  if (!known) return absl::UnimplementedError(absl::StrFormat("an array of dtype %s", std::string(descr)));
  if (!Entry(header, "fortran_order").starts_with("False"))
    return absl::UnimplementedError("an array in Fortran order");
  QUERN_ASSIGN(tensor.shape, ParseShape(Entry(header, "shape"), begin));
  const std::span<const uint8_t> data = file.subspan(begin + length);
  if (BytesOf(tensor.dtype, tensor.shape) != data.size())
    return Bad(begin + length, "the data does not have the bytes of the shape");
  tensor.bytes.assign(data.begin(), data.end());
  return tensor;
}

StatusOr<std::string> NpyHeader(DType dtype, std::span<const int64_t> shape) {
  const char* name = nullptr;
  for (const Code& code : kCodes) {
    if (code.dtype == dtype) name = code.name;
  }
  if (name == nullptr) return absl::UnimplementedError(absl::StrFormat("an .npy file of %s", std::string(Name(dtype))));
  std::string sizes;
  for (const int64_t size : shape) absl::StrAppend(&sizes, size, ",");
  std::string header = absl::StrCat("{'descr': '", ScalarBytes(dtype) == 1 ? "|" : "<", name,
                                    "', 'fortran_order': False, 'shape': (", sizes, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = absl::StrCat(std::string(kMagic), std::string("\1\0", 2));
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header;
}

StatusOr<std::string> PrintNpy(const FileTensor& tensor) {
  QUERN_ASSIGN(std::string file, NpyHeader(tensor.dtype, tensor.shape));
  file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

}  // namespace quern
