// How a GGUF file has the values of its metadata. What is read is not trusted.
#pragma once

#include "base/byte_reader.h"
#include "import/metadata.h"

namespace quern {

// Errors name `what` or `key`, and say where.
StatusOr<std::string_view> ReadGgufString(ByteReader& reader, std::string_view what, uint64_t limit = UINT64_MAX);
StatusOr<GgufType> ReadGgufType(ByteReader& reader, std::string_view key);
// Of an array, whose elements are walked.
StatusOr<GgufValue> ReadGgufValue(ByteReader& reader, GgufType type, std::string_view key);

}  // namespace quern
