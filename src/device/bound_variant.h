// A variant of a program under values of its symbols: every size a number, every launch a call. Internal to the
// executor.
//
// All of a program's sizes are checked whenever they change, in arithmetic that cannot wrap: an argument that reaches
// past its buffer, or a buffer past its memory, is an error before anything is launched, whoever wrote the program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/program.h"
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
  // Those with chunks, in order. Their tables stay where they are until the next Bind.
  std::span<const LaunchCall> once() const { return once_.calls; }
  std::span<const LaunchCall> launches() const { return launches_.calls; }

 private:
  struct Table {
    const std::vector<lir::Launch>* launches = nullptr;
    std::vector<Polynomial> offsets;  // by argument of all launches
    std::vector<int64_t> moved;       // their values
    std::vector<Address> pointers;    // likewise
    std::vector<LaunchCall> calls;
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
};

}  // namespace quern::device
