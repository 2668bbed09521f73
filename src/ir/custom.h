// Ops of the caller's own, as nodes called Custom name them. The table belongs to the process: rows are added, and
// stay.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "quern/abi.h"

namespace quern::ir {

struct CustomDef {
  std::string name;
  int64_t version = 1;
  quern_kernel* kernel = nullptr;
  Status (*load)() = nullptr;  // before the first call of `kernel`: what it needs of the system. Null: nothing
  std::string symbol;          // of the C function, for a linker
  int64_t parts = 1;
  int64_t alignment = 1;  // of operands and results
  std::function<StatusOr<std::vector<TensorType>>(std::span<const TensorType> operands, std::string_view attrs)> infer;
  std::function<Status(RefContext& context)> reference;  // null: there is none
  double rtol = 1e-6, atol = 0;
};

// Errors: a name that is taken.
Status RegisterCustom(CustomDef def);

// What a node called Custom names, for good. Errors: kUnknownOp; kBadAttribute, for another version.
StatusOr<const CustomDef*> CustomOf(const Attributes& attributes);

}  // namespace quern::ir
