// What a run asks of its caller, wherever it runs: a value in its range for every symbol, memory of the right sizes;
// and which variant takes the run.
//
//   QUERN_ASSIGN(RunSizes sizes, RunSizes::Create(signature, guards));
//   QUERN_ASSIGN(const int variant, sizes.Choose({{"SEQ", 5}}));      // sizes.values() has the symbols' values
//   QUERN_RETURN_IF_ERROR(sizes.CheckMemory(inputs, outputs));
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "runtime/runnable.h"
#include "runtime/symbol_program.h"

namespace quern {

// "LOGITS == 1, SEQ in 2..8", or "all sizes": for people.
std::string GuardText(const SymbolRanges& guard);

// Errors are Diagnostics, as runnable.h lists them.
class RunSizes {
 public:
  // Guards are tried in order; symbols that a guard does not name may have any value in the signature's range.
  static StatusOr<RunSizes> Create(Signature signature, std::span<const SymbolRanges> guards);

  const Signature& signature() const { return signature_; }
  // The symbols, sorted, those that runs find among them: what tables of values are in the order of.
  const std::vector<std::string>& names() const { return names_; }

  // The first guard that holds.
  StatusOr<int> Choose(const Binding& symbols);
  // Of the last Choose; 0 where the run is to find one.
  const std::vector<int64_t>& values() const { return values_; }
  // For these values.
  Status CheckMemory(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs);

  // Position among signature().inputs.
  StatusOr<int> InputIndex(std::string_view name) const;
  // The parameter of this name, which `bytes` are to be the memory of.
  StatusOr<const Port*> CheckParam(std::string_view name, int64_t bytes) const;
  StatusOr<const Port*> FindState(std::string_view name) const;

  Status Fail(DiagnosticCode code, std::string operand, std::string expected, std::string got) const;

 private:
  Status CheckLength(const char* kind, const Port& port, const void* data, int64_t bytes, int64_t expected) const;

  Signature signature_;
  std::vector<std::string> names_;
  std::vector<SymbolRange> ranges_;
  std::vector<bool> counted_symbols_;             // those that runs find
  std::vector<std::vector<SymbolRange>> guards_;  // by guard and symbol
  std::vector<Polynomial> input_sizes_, output_sizes_;
  std::vector<int64_t> values_;
  std::vector<int64_t> sized_;  // values that the byte counts below are for
  bool counted_ = false;
  std::vector<int64_t> input_bytes_, output_bytes_;
};

// Holds `flag` for the length of a call, or says that another call does.
class Exclusive {
 public:
  explicit Exclusive(std::atomic_flag& flag) : flag_(flag), held_(!flag.test_and_set(std::memory_order_acquire)) {}
  ~Exclusive() {
    if (held_) flag_.clear(std::memory_order_release);
  }
  Exclusive(const Exclusive&) = delete;
  bool held() const { return held_; }

 private:
  std::atomic_flag& flag_;
  const bool held_;
};

}  // namespace quern
