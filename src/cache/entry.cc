#include "cache/entry.h"

#include <cstring>

#include "base/byte_writer.h"

namespace quern::cache {
namespace {

constexpr std::string_view kMagic = "QUERNOBJ";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = 8 + 4 + 8 + 16 + 16;  // up to the strings

// Takes values off the front of `rest`; false where there is too little.
template <typename T>
bool Take(std::string_view& rest, T& value) {
  if (rest.size() < sizeof(value)) return false;
  std::memcpy(&value, rest.data(), sizeof(value));
  rest.remove_prefix(sizeof(value));
  return true;
}

bool Take(std::string_view& rest, Hash128& hash) { return Take(rest, hash.high) && Take(rest, hash.low); }

bool Take(std::string_view& rest, std::string& text) {
  uint64_t length = 0;
  if (!Take(rest, length) || length > rest.size()) return false;
  text.assign(rest.substr(0, length));
  rest.remove_prefix(length);
  return true;
}

void PutHash(std::string& out, const Hash128& hash) {
  PutBytes(out, hash.high);
  PutBytes(out, hash.low);
}

Status Damaged(const char* what) { return absl::DataLossError(what); }

}  // namespace

std::string Encode(const Entry& entry) {
  std::vector<std::string_view> strings;
  for (const KeyField& field : KeyFields()) strings.push_back(entry.key.*field.value);
  strings.push_back(entry.object);
  strings.insert(strings.end(), entry.origins.begin(), entry.origins.end());
  std::string body;
  PutBytes(body, static_cast<uint32_t>(strings.size()));
  for (const std::string_view text : strings) {
    PutBytes(body, static_cast<uint64_t>(text.size()));
    body += text;
  }
  std::string bytes(kMagic);
  PutBytes(bytes, kVersion);
  PutBytes(bytes, static_cast<uint64_t>(kHeader + body.size()));
  PutHash(bytes, HashOf(entry.key));
  PutHash(bytes, HashBytes(body));
  return bytes + body;
}

StatusOr<Entry> Decode(std::string_view bytes) {
  const size_t size = bytes.size();
  std::string_view rest = bytes;
  if (!rest.starts_with(kMagic)) return Damaged("it is no cached object");
  rest.remove_prefix(kMagic.size());
  uint32_t version = 0, count = 0;
  uint64_t length = 0;
  Hash128 key_hash, checksum;
  if (!Take(rest, version)) return Damaged("it is cut off");
  if (version != kVersion) return Damaged("its format is of another version");
  if (!Take(rest, length) || !Take(rest, key_hash) || !Take(rest, checksum) || length != size)
    return Damaged("its length is wrong");
  if (HashBytes(rest) != checksum) return Damaged("its checksum is wrong");
  // What follows has been written by Encode, or by somebody who can make checksums: still no byte outside is read.
  Entry entry;
  bool whole = Take(rest, count);
  uint32_t taken = 0;
  auto take = [&](std::string& text) {
    whole = whole && taken < count && Take(rest, text);
    ++taken;
  };
  for (const KeyField& field : KeyFields()) take(entry.key.*field.value);
  take(entry.object);
  while (whole && taken < count) take(entry.origins.emplace_back());
  if (!whole || !rest.empty()) return Damaged("its parts do not add up");
  if (HashOf(entry.key) != key_hash) return Damaged("its key has another hash");
  return entry;
}

}  // namespace quern::cache
