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

// The first of those errors, before there is anything to write.
Status CheckOutput(const std::string& path, std::span<const std::string> keep);

inline Status WriteFile(const std::string& path, std::string_view bytes, std::span<const std::string> keep = {}) {
  const OutputFile file{path, bytes};
  return WriteFiles({&file, 1}, keep);
}

}  // namespace quern
