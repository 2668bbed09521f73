#include "prompt.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

constexpr size_t kMost = size_t{1} << 30;

quern::Result<std::string> ReadAll(std::FILE* in, const std::string& name) {
  std::string text;
  char part[65536];
  while (true) {
    const size_t count = std::fread(part, 1, sizeof(part), in);
    text.append(part, count);
    if (text.size() > kMost) return quern::Result<std::string>::Failed(Invalid(name + " has more than 1 GiB"));
    if (count == sizeof(part)) continue;
    if (std::ferror(in) != 0)
      return quern::Result<std::string>::Failed(Invalid("cannot read " + name + ": " + std::strerror(errno)));
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
}

}  // namespace

quern::Error Invalid(std::string message) {
  quern::Error error;
  error.code = quern::ErrorCode::kInvalid;
  error.message = std::move(message);
  return error;
}

quern::Result<std::string> PromptOf(const PromptSource& source) {
  if (source.given) return source.text;
  if (!source.file.empty() && source.file != "-") {
    std::FILE* const in = std::fopen(source.file.c_str(), "rb");
    if (in == nullptr)
      return quern::Result<std::string>::Failed(Invalid("cannot open " + source.file + ": " + std::strerror(errno)));
    quern::Result<std::string> text = ReadAll(in, source.file);
    std::fclose(in);
    return text;
  }
  if (source.file.empty() && isatty(STDIN_FILENO) != 0)
    return quern::Result<std::string>::Failed(
        Invalid("no text was given: --prompt TEXT, --file FILE, or standard input"));
  return ReadAll(stdin, "standard input");
}
