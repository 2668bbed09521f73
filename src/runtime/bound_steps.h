// The steps of a plan under values of its symbols: which launches run, in which order, and what the loops' buffers
// stand for meanwhile. Where launches run and where memory lies is the host's: the threads of this machine, or a
// device.
//
//   QUERN_ASSIGN(const BoundSteps steps, BoundSteps::Compile(plan.bodies, names));
//   QUERN_RETURN_IF_ERROR(steps.Run(values, host));
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lir/plan.h"
#include "runtime/requirements.h"
#include "runtime/symbol_program.h"

namespace quern {

// Addresses are the host's own: pointers, or a device's.
class StepHost {
 public:
  virtual ~StepHost() = default;
  // Runs launches [first, end) of the plan, or has them run later, but in order.
  virtual Status Launch(int first, int end) = 0;
  // Where a buffer lies now, and where it lies from here on; the latter for buffers of Home::kLoop.
  virtual uint64_t Base(int buffer) const = 0;
  virtual void Rebase(int buffer, uint64_t base) = 0;
  // The byte there, once everything launched so far has run.
  virtual StatusOr<uint8_t> Read(uint64_t address) = 0;
  // The i64 there, likewise, and what follows it: the symbol at this position among the names has that value from here
  // on, as the values that Run was given have. Plans of hosts that have neither have no Count.
  virtual StatusOr<int64_t> ReadCount(uint64_t address);
  virtual void Bind(int symbol, int64_t value);
  // Asked before each step, and each trip of a loop. Error: the run is to end (Cancelled, below).
  virtual Status Poll() = 0;
};

// Of a run that was asked to stop.
inline Status Cancelled() { return absl::CancelledError("the run was cancelled"); }

class BoundSteps {
 public:
  // `names`: the table of symbols.
  static StatusOr<BoundSteps> Compile(std::span<const lir::Body> bodies, std::span<const std::string> names);

  // Whether the plan is launches alone: Run would launch all of them at once.
  bool straight() const { return straight_; }
  // `values`: of the symbols; a host that can bind one changes them there. Errors: those of the host, Cancelled among
  // them; kOutOfRange where a loop needs more trips than it may make, or a count is none; kSizeConflict, for a count
  // that sizes do not go with.
  Status Run(std::span<const int64_t> values, StepHost& host) const;

 private:
  struct Place {
    int buffer = -1;
    Polynomial offset;
  };
  struct Carry {
    Place initial;
    int current, next;
    std::array<int, 2> places;
  };
  struct Row {
    int buffer;
    Place whole;
    Polynomial stride;
  };
  struct If {
    Place predicate;
    int then, otherwise;
  };
  struct While {
    Place predicate;
    int cond, body;
    std::vector<Carry> carries;
    int64_t max;
    std::string label;
  };
  struct Scan {
    int body;
    Polynomial length;
    bool reverse;
    std::vector<Carry> carries;
    std::vector<Row> rows;
  };
  struct Count {
    Place count;
    int symbol;
    std::string name;
    SymbolRange range;
    Requirements requirements;
    std::string label;
  };
  using Step = std::variant<lir::Run, If, While, Scan, Count>;
  class Runner;

  std::vector<std::vector<Step>> bodies_;
  bool straight_ = false;
};

}  // namespace quern
