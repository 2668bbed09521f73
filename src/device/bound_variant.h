// A variant of a program under values of its symbols: every size a number, every launch a call. Internal to the
// executor.
//
// All of a program's sizes are checked whenever they change, in arithmetic that cannot wrap: an argument that reaches
// past its buffer, or a buffer past its memory, is an error before anything is launched, whoever wrote the program.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/program.h"
#include "device/step_sizes.h"
#include "runtime/bound_steps.h"
#include "runtime/requirements.h"
#include "runtime/symbol_program.h"

namespace quern::device {

class BoundVariant {
 public:
  // `program` outlives it. `functions`: by kernel of the program.
  static StatusOr<BoundVariant> Create(const Program& program, int variant, std::span<const std::string> names,
                                       std::span<const uint64_t> functions);

  const Variant& variant() const { return *variant_; }

  // Follows new values of the symbols. Errors: a requirement that they break; sizes that lie.
  Status Bind(std::span<const int64_t> values);
  // After Bind. Of a buffer that no launch has: 0.
  bool used(int buffer) const { return used_[buffer]; }
  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t bytes(int buffer) const { return sizes_[buffer]; }
  int64_t offset(int buffer) const { return offsets_[buffer]; }

  // The pointers of all launches, from the addresses of the buffers.
  void Place(std::span<const Address> bases);
  // What a loop's buffer stands for from here on.
  void Rebase(int buffer, Address base);
  // Those with chunks, in order. Their tables stay where they are until the next Bind.
  std::span<const LaunchCall> once() const { return once_.calls; }
  std::span<const LaunchCall> launches() const { return launches_.calls; }
  // Those of launches [first, end) of the variant.
  std::span<const LaunchCall> launches(int first, int end) const {
    return launches().subspan(launches_.before[first], launches_.before[end] - launches_.before[first]);
  }
  // Which of them run, and when.
  const BoundSteps& steps() const { return steps_; }

 private:
  struct Table {
    const std::vector<lir::Launch>* launches = nullptr;
    std::vector<Polynomial> offsets;  // by argument of all launches
    std::vector<int64_t> moved;       // their values
    std::vector<Address> pointers;    // likewise
    std::vector<LaunchCall> calls;
    std::vector<size_t> before;  // calls before each launch, and of all
  };
  struct Symbol {
    int position = -1;     // in the table of values, or -1:
    Polynomial numerator;  // derived, over the kernel's own table
    int64_t divisor = 1;
  };
  struct Dimension {
    Polynomial low, high;  // over the kernel's own table
    int64_t step;
  };
  struct KernelTable {
    bool used = false;
    std::vector<Symbol> symbols;
    std::vector<Dimension> grid;
    std::vector<Polynomial> params;  // bytes, over the kernel's own table
    std::vector<int64_t> values, bytes;
    int64_t chunks = 0;
  };
  Status Compile(int kernel);
  Status Compile(Table& table, const std::vector<lir::Launch>& launches);
  Status Evaluate(int kernel, std::span<const int64_t> values);
  Status Follow(Table& table, const char* list, std::span<const int64_t> values);
  Status NoSize(const std::string& what) const;

  const Program* program_ = nullptr;
  const Variant* variant_ = nullptr;
  std::vector<std::string> names_;
  std::vector<uint64_t> functions_;
  std::vector<KernelTable> kernels_;  // by kernel of the program
  std::vector<Polynomial> buffer_bytes_, buffer_offsets_;
  Polynomial arena_;
  Requirements requirements_;
  std::vector<bool> used_;                // by buffer: some launch has it
  std::vector<int64_t> sizes_, offsets_;  // likewise
  int64_t arena_bytes_ = 0;
  Table once_, launches_;
  BoundSteps steps_;
  StepSizes step_sizes_;
  std::map<int, std::vector<size_t>> slots_;  // by loop's buffer: the pointers of launches that lie in it
};

}  // namespace quern::device
