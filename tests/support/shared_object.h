// Sources compiled to one shared object each and loaded: what tests of emitters call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "quern/abi.h"

namespace quern {

// Runs a compiler on a source, for what it says: `compiler` are the words before the file. Errors carry its output.
Status CompilesWith(const std::string& source, const std::vector<std::string>& compiler, const std::string& extension);

class SharedObjects {
 public:
  // `compiler`: the words before "-o OUTPUT INPUT", `after` those behind; all sources at once. `extension`: ".c".
  // Temporary files are removed. Errors carry the compiler's output.
  static StatusOr<SharedObjects> Compile(const std::vector<std::string>& sources,
                                         const std::vector<std::string>& compiler, const std::string& extension,
                                         const std::vector<std::string>& after = {});
  SharedObjects(SharedObjects&&) = default;
  SharedObjects& operator=(SharedObjects&&) = default;
  // Null when `source` defines no such symbol.
  void* Find(size_t source, const std::string& symbol) const;
  quern_kernel* FindKernel(size_t source, const std::string& symbol) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  SharedObjects() = default;
  std::vector<std::unique_ptr<void, Close>> handles_;
};

}  // namespace quern
