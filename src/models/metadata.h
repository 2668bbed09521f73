// Checked reading of hyper-parameters: every value is typed, in range, and errors name the key.
#pragma once

#include <string>
#include <string_view>

#include "import/gguf.h"

namespace quern::models {

class Metadata {
 public:
  Metadata(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  const GgufFile& file() const { return file_; }
  std::string Key(std::string_view name) const { return prefix_ + std::string(name); }
  bool Has(std::string_view name) const { return file_.Has(Key(name)); }
  Status Error(std::string_view name, std::string text) const {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", Key(name), text));
  }

  // The integer, which must lie in [low, high].
  StatusOr<int64_t> Int(std::string_view name, int64_t low, int64_t high) const {
    QUERN_ASSIGN(const int64_t value, file_.Int(Key(name)));
    if (value < low || value > high) return Error(name, absl::StrFormat("%d is not in %d..%d", value, low, high));
    return value;
  }
  StatusOr<int64_t> IntOr(std::string_view name, int64_t low, int64_t high, int64_t otherwise) const {
    if (!Has(name)) return otherwise;
    return Int(name, low, high);
  }
  // The number, which must be finite and lie in [low, high].
  StatusOr<double> Float(std::string_view name, double low, double high) const {
    QUERN_ASSIGN(const double value, file_.Float(Key(name)));
    if (!(value >= low && value <= high)) return Error(name, absl::StrFormat("%g is not in %g..%g", value, low, high));
    return value;
  }
  StatusOr<double> FloatOr(std::string_view name, double low, double high, double otherwise) const {
    if (!Has(name)) return otherwise;
    return Float(name, low, high);
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace quern::models
