#include "import/gguf_writer.h"

#include <cstring>

namespace quern {
namespace {

template <typename T>
void Append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void AppendText(std::string& out, std::string_view text) {
  Append<uint64_t>(out, text.size());
  out += text;
}

// An integer in as many bytes as its type has, little-endian.
void AppendInteger(std::string& out, GgufType type, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, BytesOfGgufType(type));
}

void AppendValue(std::string& out, GgufType type, const GgufValue& value) {
  Append(out, static_cast<uint32_t>(type));
  struct Visitor {
    std::string& out;
    GgufType type;
    void operator()(uint64_t v) const { AppendInteger(out, type, v); }
    void operator()(int64_t v) const { AppendInteger(out, type, static_cast<uint64_t>(v)); }
    void operator()(double v) const {
      if (type == GgufType::kF32)
        Append(out, static_cast<float>(v));
      else
        Append(out, v);
    }
    void operator()(bool v) const { Append<uint8_t>(out, v ? 1 : 0); }
    void operator()(std::string_view v) const { AppendText(out, v); }
    void operator()(const GgufArray& v) const {
      Append(out, static_cast<uint32_t>(v.type));
      Append<uint64_t>(out, v.count);
      out.append(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
    }
  };
  std::visit(Visitor{out, type}, value);
}

}  // namespace

uint64_t GgufAlignment(const Metadata& metadata) {
  const StatusOr<int64_t> alignment = metadata.Int("general.alignment");
  return alignment.ok() && *alignment > 0 ? static_cast<uint64_t>(*alignment) : 32;
}

std::string GgufPadding(const Metadata& metadata, uint64_t bytes) {
  const uint64_t alignment = GgufAlignment(metadata);
  return std::string((alignment - bytes % alignment) % alignment, '\0');
}

std::string GgufHeader(const Metadata& metadata, std::span<const GgufTensor> tensors) {
  std::string out = "GGUF";
  Append<uint32_t>(out, 3);
  Append<uint64_t>(out, tensors.size());
  Append<uint64_t>(out, metadata.metadata().size());
  for (const auto& [key, value] : metadata.metadata()) {
    AppendText(out, key);
    AppendValue(out, metadata.TypeOf(key), value);
  }
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    AppendText(out, tensor.name);
    Append(out, static_cast<uint32_t>(tensor.dims.size()));
    for (size_t d = tensor.dims.size(); d-- > 0;) Append(out, static_cast<uint64_t>(tensor.dims[d]));
    Append(out, tensor.type);
    Append(out, offset);
    offset += tensor.bytes + GgufPadding(metadata, tensor.bytes).size();
  }
  return out + GgufPadding(metadata, out.size());
}

}  // namespace quern
