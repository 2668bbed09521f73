#include "session_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "prompt.h"

namespace {

// The mark, the digest of what follows it, the digits that tell models apart, how many tokens and bytes of conversation
// there are, these, and keys and values as Session::Save has them. Numbers are little-endian.
constexpr std::string_view kMark = "QUERNSE1";
constexpr size_t kDigits = 32;

template <typename T>
void Put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

quern::Result<void> Written(const quern::Status& status) {
  return status.ok() ? quern::Result<void>() : quern::Result<void>::Failed(Invalid(std::string(status.message())));
}

}  // namespace

quern::Result<SessionFile> LoadSession(const std::string& path, const std::string& model, quern::Session& session) {
  using Loaded = quern::Result<SessionFile>;
  const auto refuse = [&](const std::string& why) { return Loaded::Failed(Invalid(path + ": " + why)); };
  if (const quern::Result<void> may = Written(quern::CheckOutput(path, {&model, 1})); !may.ok())
    return Loaded::Failed(may.details());
  if (quern::Result<std::vector<uint8_t>> empty = session.Save(); !empty.ok()) return Loaded::Failed(empty.details());
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return SessionFile{};
  const quern::StatusOr<quern::MappedFile> file = quern::MappedFile::Open(path);
  if (!file.ok()) return Loaded::Failed(Invalid(std::string(file.status().message())));
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  size_t at = 0;
  const auto take = [&](size_t count) {
    const std::string_view part = bytes.substr(at, count);
    at += part.size();
    return part;
  };
  if (take(kMark.size()) != kMark) return refuse("it is no session of quern's");
  const std::string_view own = take(kDigits);
  if (own.size() != kDigits || own != quern::HashBytes(bytes.substr(at)).ToHex())
    return refuse("the session is damaged: its bytes are not those that were written");
  if (take(kDigits) != session.fingerprint())
    return refuse("the session is one of another model, or of other adapters; name another file");
  int64_t counts[2] = {};
  if (bytes.size() - at < sizeof(counts)) return refuse("the session is damaged: it is too short");
  std::memcpy(counts, take(sizeof(counts)).data(), sizeof(counts));
  const auto left = static_cast<int64_t>(bytes.size() - at);
  if (counts[0] < 0 || counts[1] < 0 || counts[0] > left / 4 || counts[1] > left - counts[0] * 4)
    return refuse("the session is damaged: it is too short");
  SessionFile loaded;
  loaded.tokens.resize(static_cast<size_t>(counts[0]));
  const std::string_view ids = take(loaded.tokens.size() * sizeof(int32_t));
  if (!ids.empty()) std::memcpy(loaded.tokens.data(), ids.data(), ids.size());
  loaded.conversation = take(static_cast<size_t>(counts[1]));
  const std::string_view rest = bytes.substr(at);
  const quern::Result<void> ok = session.Load({reinterpret_cast<const uint8_t*>(rest.data()), rest.size()});
  if (!ok.ok()) return refuse(ok.error());
  const bool right = session.position() == counts[0] && std::ranges::all_of(loaded.tokens, [&](int32_t id) {
                       return id >= 0 && id < session.vocabulary();
                     });
  if (!right) {
    session.Reset();
    return refuse("the session is damaged: its tokens are not those of its keys and values");
  }
  return loaded;
}

quern::Result<void> SaveSession(const std::string& path, const std::string& model, quern::Session& session,
                                const SessionFile& file) {
  if (quern::Result<void> back = session.Rewind(static_cast<int64_t>(file.tokens.size())); !back.ok()) return back;
  quern::Result<std::vector<uint8_t>> rows = session.Save();
  if (!rows.ok()) return quern::Result<void>::Failed(rows.details());
  std::string body = session.fingerprint();
  Put(body, static_cast<int64_t>(file.tokens.size()));
  Put(body, static_cast<int64_t>(file.conversation.size()));
  body.append(reinterpret_cast<const char*>(file.tokens.data()), file.tokens.size() * sizeof(int32_t));
  body += file.conversation;
  body.append(reinterpret_cast<const char*>(rows->data()), rows->size());
  const std::string bytes = std::string(kMark) + quern::HashBytes(body).ToHex() + body;
  return Written(quern::WriteFile(path, bytes, {&model, 1}));
}
