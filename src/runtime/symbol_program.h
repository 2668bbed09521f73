// Sizes and indices compiled against a table of symbol values, so that following a symbol that changes every step costs
// nanoseconds and no look-ups by name.
//
//   const std::vector<std::string> names = {"PAST_SEQ", "SEQ"};
//   QUERN_ASSIGN(const Polynomial bytes, Polynomial::Compile(extent, names));   // 256*PAST_SEQ + 64
//   bytes.Evaluate(values);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"

namespace quern {

// An Extent. Arithmetic wraps: callers bound the symbols by ranges first.
class Polynomial {
 public:
  // Errors: a symbol that is not in `names`.
  static StatusOr<Polynomial> Compile(const Extent& extent, std::span<const std::string> names);
  int64_t Evaluate(std::span<const int64_t> values) const;
  // The same, or nullopt where the sum or a part of it leaves 64 bits.
  std::optional<int64_t> EvaluateChecked(std::span<const int64_t> values) const;
  bool is_constant() const { return terms_.empty(); }

 private:
  struct Term {
    int64_t coefficient;
    struct Divided {
      std::vector<Polynomial> numerator;  // one
      int64_t divisor;
    };
    std::vector<int> symbols;  // positions in the table
    std::vector<Divided> quotients;
  };
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

// An integer KIR expression of symbols, such as a bound of a grid.
class IndexProgram {
 public:
  // Errors: names or nodes that are no expression of `names`, or too deep a tree.
  static StatusOr<IndexProgram> Compile(const kir::ExprRef& expr, std::span<const std::string> names);
  int64_t Evaluate(std::span<const int64_t> values) const;

 private:
  enum class Kind : uint8_t { kConstant, kSymbol, kSelect, kApply };
  struct Step {
    Kind kind;
    int64_t value = 0;  // the literal, or a position in the table
    kir::Op op = {};
    DType dtype = DType::kI64;
    int args = 0;
  };
  Status Emit(const kir::ExprRef& expr, std::span<const std::string> names, int depth);
  std::vector<Step> steps_;  // in postfix order
};

// What a launch of one kernel needs to know of the symbols.
class KernelSizes {
 public:
  // `names`: the table of the plan.
  static StatusOr<KernelSizes> Compile(const kir::Kernel& kernel, std::span<const std::string> names);
  // Fills `table`, one value a symbol of the kernel in its order, derived ones included; returns the grid's chunks.
  int64_t Evaluate(std::span<const int64_t> values, std::span<int64_t> table) const;
  size_t symbols() const { return symbols_.size(); }

 private:
  struct Symbol {
    int position = -1;     // in the plan's table, or -1:
    Polynomial numerator;  // derived, over the kernel's own table
    int64_t divisor = 1;
  };
  struct Dimension {
    IndexProgram low, high;
    int64_t step;
  };
  std::vector<Symbol> symbols_;
  std::vector<Dimension> grid_;
};

}  // namespace quern
