// Plans between starts of programs. A sealed plan says all that running it takes, but kernels have heads alone: their
// machine code is found by the names of objects that were kept beside it. Nothing is fused, lowered, verified or
// compiled to run it.
//
//   std::string bytes = lir::Seal(plan, sealed);              // when a plan has been compiled
//   QUERN_ASSIGN(lir::Plan plan, lir::Unseal(bytes));         // in a later process: plan.sealed is set
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "lir/once.h"
#include "lir/plan.h"
#include "lir/signature.h"

namespace quern::lir {

// What remains of a kernel's body.
struct SealedKernel {
  std::string symbol;  // of its function
  Hash128 text;        // of its canonical text: equal kernels, equal hashes
  Hash128 object;      // of what its object was made from: cache::HashOf of its key
  int64_t scratch_bytes = 0;
};

struct Sealed {
  std::vector<SealedKernel> kernels;  // by kernel of the plan
  std::map<int, OnceValue> once;      // what KeptOnce said while there were bodies
};

// The plan as bytes, with a hash of them at the end; `sealed` is of its kernels. Plans that call functions of the
// caller's own have no such form: their address is another one in each process.
StatusOr<std::string> Seal(const Plan& plan, const Sealed& sealed);

// Errors: bytes that Seal has not written, or that changed since. They are as trusted as the machine code that lies
// beside them: what they say is not verified again.
StatusOr<Plan> Unseal(std::span<const uint8_t> bytes);

// What is known of a program before any of its variants is planned.
struct SealedProgram {
  Signature signature;
  std::vector<SymbolRanges> guards;  // of its variants
};
std::string Seal(const SealedProgram& program);
StatusOr<SealedProgram> UnsealProgram(std::span<const uint8_t> bytes);

}  // namespace quern::lir
