// A file for the length of a test.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>

namespace quern::support {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const uint8_t> bytes)
      : path_((std::filesystem::temp_directory_path() / "quern-test-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    FILE* out = fdopen(file, "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace quern::support
