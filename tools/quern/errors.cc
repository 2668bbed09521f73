#include "errors.h"

#include <cstdio>

#include "interrupt.h"

namespace {

// The sentence of a finding, and its details below it.
int FailCheck(const std::string& error) {
  size_t end = error.find('\n');
  Fail(error.substr(0, end));
  while (end != std::string::npos) {
    const size_t start = end + 1;
    end = error.find('\n', start);
    std::string line;
    for (const char c : error.substr(start, end - start))
      line += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  return 1;
}

}  // namespace

int Fail(const std::string& error) {
  std::string line;
  for (const char c : error) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n')
      line += "; ";
    else if (byte < 32 || byte == 127)
      line += '?';
    else
      line += c;
  }
  std::fprintf(stderr, "quern: %s\n", line.c_str());
  return 1;
}

int Fail(const quern::Error& error) {
  if (error.code == quern::ErrorCode::kCancelled) return Fail(error.message), kInterrupted;
  return error.code == quern::ErrorCode::kCheck ? FailCheck(error.message) : Fail(error.message);
}

int Finish() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return Fail("cannot write to standard output");
  return 0;
}
