// jitdump: what `perf inject --jit` needs to show generated code as source lines and annotated assembly. The format is
// that of tools/perf/Documentation/jitdump-specification.txt in the Linux sources; records are written here since
// LLVM's own plugin leaves the header's flags uninitialised, and perf refuses the file.
//
//   perf record -k mono quern run MODEL --debug-kernels FOLDER ...
//   perf inject --jit -i perf.data -o perf.jit.data && perf annotate -i perf.jit.data
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quern::jit {

// An address of the code and the line of the source that it belongs to.
struct CodeLine {
  uint64_t address;
  uint32_t line;
};

// Thread-safe.
class JitDump {
 public:
  // FOLDER/jit-PID.dump. Errors: the file cannot be made.
  static StatusOr<std::unique_ptr<JitDump>> Create(const std::string& folder);
  ~JitDump();
  // Code of one function, where it lies now. `source`: the file that the lines are of.
  void Add(std::string_view symbol, uint64_t address, uint64_t bytes, const std::string& source,
           const std::vector<CodeLine>& lines);

 private:
  JitDump(int file, void* marker) : file_(file), marker_(marker) {}
  void Write(const std::string& record);

  const int file_;
  void* const marker_;  // a page of the file, mapped executable: how perf learns of the file
  std::mutex mutex_;
  uint64_t next_ = 0;  // number of the next function
};

}  // namespace quern::jit
