#include "compiler/saved_rows.h"

#include <cstring>

#include "absl/strings/str_format.h"

namespace quern::compiler {
namespace {

constexpr char kMagic[8] = {'Q', 'U', 'E', 'R', 'N', 'K', 'V', '1'};
constexpr size_t kHeader = sizeof(kMagic) + 2 * sizeof(int64_t);

}  // namespace

std::vector<uint8_t> WriteRows(std::span<const KeptRows> rows, int64_t length,
                               const std::function<void(size_t state, uint8_t* to)>& copy) {
  size_t size = kHeader;
  for (const KeptRows& row : rows) size += sizeof(row.bytes) + row.all(length);
  std::vector<uint8_t> bytes(size);
  uint8_t* at = bytes.data();
  const auto put = [&](const void* data, size_t count) {
    std::memcpy(at, data, count);
    at += count;
  };
  const int64_t counts[] = {static_cast<int64_t>(rows.size()), length};
  put(kMagic, sizeof(kMagic));
  put(counts, sizeof(counts));
  for (size_t s = 0; s < rows.size(); ++s) {
    put(&rows[s].bytes, sizeof(rows[s].bytes));
    copy(s, at);
    at += rows[s].all(length);
  }
  return bytes;
}

StatusOr<SavedRows> ReadRows(std::span<const uint8_t> bytes, std::span<const KeptRows> rows, int64_t context) {
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return absl::InvalidArgumentError("these are no keys and values, or states, of a sequence");
  int64_t counts[2];
  std::memcpy(counts, bytes.data() + sizeof(kMagic), sizeof(counts));
  SavedRows saved;
  saved.length = counts[1];
  if (counts[0] != static_cast<int64_t>(rows.size()) || saved.length < 0 || saved.length > context) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d tokens in %d states do not fit a model of %d and a context of %d", saved.length, counts[0],
                        rows.size(), context));
  }
  size_t expected = kHeader;
  for (const KeptRows& row : rows) expected += sizeof(row.bytes) + row.all(saved.length);
  if (bytes.size() != expected)
    return absl::InvalidArgumentError(absl::StrFormat("%d bytes, not %d", bytes.size(), expected));
  const uint8_t* at = bytes.data() + kHeader;
  for (const KeptRows& wanted : rows) {
    int64_t row = 0;
    std::memcpy(&row, at, sizeof(row));
    if (row != wanted.bytes)
      return absl::InvalidArgumentError(absl::StrFormat("rows of %d bytes, not %d", row, wanted.bytes));
    saved.states.push_back(at + sizeof(row));
    at += sizeof(row) + wanted.all(saved.length);
  }
  return saved;
}

}  // namespace quern::compiler
