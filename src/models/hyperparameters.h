// Hyper-parameters of a model file, checked: every value is typed and in range. The first that is not is kept as
// status(), which names the key; what is read after it are harmless values, so that an architecture reads without
// looking.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "import/model_file.h"

namespace quern::models {

// Far above any model there is, and low enough that no product of them overflows.
inline constexpr int64_t kMostWidth = 1 << 20, kMostLayers = 1024, kMostHeads = 4096, kMostHeadDim = 1024,
                         kMostContext = 1 << 24;

// Not thread-safe. The file outlives it.
class Hyperparameters {
 public:
  // Keys are `architecture`.NAME.
  Hyperparameters(const ModelFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture)) {}

  const Status& status() const { return status_; }
  std::string Key(std::string_view name) const { return absl::StrFormat("%s.%s", prefix_, name); }
  bool Has(std::string_view name) const { return file_.Has(Key(name)); }
  // Keeps the first error.
  void Fail(Status error) {
    if (status_.ok()) status_ = std::move(error);
  }
  void Fail(std::string_view name, std::string_view text) {
    Fail(absl::InvalidArgumentError(absl::StrFormat("%s: %s", Key(name), text)));
  }
  void FailUnsupported(std::string_view name, std::string_view text) {
    Fail(absl::UnimplementedError(absl::StrFormat("%s: %s", Key(name), text)));
  }

  // The integer, which must lie in [low, high]; low after an error.
  int64_t Int(std::string_view name, int64_t low, int64_t high) {
    const StatusOr<int64_t> value = file_.Int(Key(name));
    if (!value.ok()) return Fail(value.status()), low;
    if (*value >= low && *value <= high) return *value;
    return Fail(name, absl::StrFormat("%d is not in %d..%d", *value, low, high)), low;
  }
  int64_t IntOr(std::string_view name, int64_t low, int64_t high, int64_t otherwise) {
    return Has(name) ? Int(name, low, high) : otherwise;
  }
  // The number, which must be finite and lie in [low, high]; low after an error.
  double Float(std::string_view name, double low, double high) {
    const StatusOr<double> value = file_.Float(Key(name));
    if (!value.ok()) return Fail(value.status()), low;
    if (*value >= low && *value <= high) return *value;
    return Fail(name, absl::StrFormat("%g is not in %g..%g", *value, low, high)), low;
  }
  double FloatOr(std::string_view name, double low, double high, double otherwise) {
    return Has(name) ? Float(name, low, high) : otherwise;
  }
  bool BoolOr(std::string_view name, bool otherwise) {
    if (!Has(name)) return otherwise;
    const StatusOr<bool> value = file_.Bool(Key(name));
    if (!value.ok()) return Fail(value.status()), otherwise;
    return *value;
  }
  // In the file's memory.
  std::string_view StringOr(std::string_view name, std::string_view otherwise) {
    if (!Has(name)) return otherwise;
    const StatusOr<std::string_view> value = file_.String(Key(name));
    if (!value.ok()) return Fail(value.status()), otherwise;
    return *value;
  }

 private:
  const ModelFile& file_;
  std::string prefix_;
  Status status_;
};

}  // namespace quern::models
