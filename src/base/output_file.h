// Files that are written whole or not at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quern {

struct OutputFile {
  std::string path;
  std::string_view bytes;
};

// Writes each file under another name beside its own; when all lie on the disk they get their names, in the order
// given. Before that nothing that was there is touched. What is no regular file (/dev/stdout, a pipe) is written to as
// it is. Errors: InvalidArgument where a path is one of `keep`, by whatever name or link: the inputs of whoever writes.
// Unavailable with the path and the reason.
Status WriteFiles(std::span<const OutputFile> files, std::span<const std::string> keep = {});

// A file that is written in parts, by the same rules: under another name, which goes when Finish is not reached.
// Move-only.
class OutputStream {
 public:
  // Errors: those of WriteFiles.
  static StatusOr<OutputStream> Create(const std::string& path, std::span<const std::string> keep = {});
  OutputStream(OutputStream&& other) noexcept;
  OutputStream& operator=(OutputStream&&) = delete;
  ~OutputStream();

  Status Write(std::string_view bytes);
  // After the last part: the file has its name.
  Status Finish();

 private:
  friend Status WriteFiles(std::span<const OutputFile> files, std::span<const std::string> keep);
  OutputStream() = default;
  Status Close();

  int descriptor_ = -1;
  std::string asked_, path_, temporary_;  // as given; what a link leads to; empty where it is written to in place
};

// The first of those errors that can be told before there is anything to write; "" is no file.
Status CheckOutput(const std::string& path, std::span<const std::string> keep);

inline Status WriteFile(const std::string& path, std::string_view bytes, std::span<const std::string> keep = {}) {
  const OutputFile file{path, bytes};
  return WriteFiles({&file, 1}, keep);
}

}  // namespace quern
