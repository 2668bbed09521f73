// Whether what the steps of a variant hand around lies in its memory, for values of the symbols: what BoundVariant
// checks beside its launches. In arithmetic that cannot wrap. Internal to the executor.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/program.h"
#include "runtime/symbol_program.h"

namespace quern::device {

class StepSizes {
 public:
  // `variant` outlives it.
  static StatusOr<StepSizes> Create(const Variant& variant, std::span<const std::string> names);

  // Buffers that steps use themselves.
  const std::set<int>& buffers() const { return buffers_; }
  // `sizes` and `offsets`: bytes of each buffer, and where it starts in memory that is aligned to kMemoryAlign. Errors
  // start with `where`.
  Status Check(const std::string& where, std::span<const int64_t> values, std::span<const int64_t> sizes,
               std::span<const int64_t> offsets) const;

 private:
  // A part of a buffer that has to lie inside: `count` pieces of `bytes`, each `stride` after the one before. What is
  // aligned to `align` there is what `moving`, a loop's buffer, stands for.
  struct Part {
    int buffer = -1;
    Polynomial offset, count, stride;
    int moving = -1;    // -1: one byte is read
    std::string label;  // of the step
  };
  Status Add(const lir::Argument& at, int moving, const std::string& label, const Extent& count, const Extent& stride);
  Status Add(const std::vector<lir::Carry>& carries, const std::string& label);

  const Variant* variant_ = nullptr;
  std::vector<std::string> names_;
  std::set<int> buffers_;
  std::vector<Part> parts_;
};

}  // namespace quern::device
