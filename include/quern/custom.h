// Ops of your own: a C function that graphs call, with what the compiler has to know of it.
//
//   quern::Result<void> known = quern::RegisterCustomOp({
//       .name = "halve", .kernel = halve,                                  // a quern_kernel: quern/call.h
//       .infer = [](const std::vector<std::string>& types, std::string_view) {
//         return quern::Result<std::vector<std::string>>({types[0]});
//       }});
//   const quern::Value y = g.Op("Custom", {x}, {{"name", "halve"}});
//
// It is a launch of the plan as a kernel of Quern's is: on the same threads, in profiles, held to `reference` by
// Options::check. Ahead of time the object leaves `symbol` undefined: the program that links it has the function.
// Devices refuse it (ErrorCode::kUnsupported).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/abi.h"
#include "quern/result.h"

namespace quern {

// A tensor of the reference, row-major.
struct CustomTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<double> elements;   // of floats, and bools (0 and 1)
  std::vector<int64_t> integers;  // of integer dtypes, u64 as its bits
};

struct CustomOp {
  std::string name;                // the attribute `name` of Custom; letters, digits, '_', '.' and '/'
  int64_t version = 1;             // the attribute `version`: another meaning is another version
  quern_kernel* kernel = nullptr;  // pure: the same results for the same operands and attributes
  std::string symbol = {};         // its name for a linker, a C identifier; empty: `name`, where that is one
  int64_t parts = 1;               // into how many its work is split, 1 to 4096; 1: it runs on one thread
  int64_t alignment = 16;          // of operands and results: a power of two, 1 to 64
  // The types of the results ("f32[BATCH, 80]") from those of the operands and the attribute `attrs`. Its error is that
  // of the graph.
  std::function<Result<std::vector<std::string>>(const std::vector<std::string>& operands, std::string_view attrs)>
      infer;
  // The meaning in double: fills the elements of the results, which have dtype and shape. Null: nothing can hold the
  // function to it.
  std::function<Result<void>(const std::vector<CustomTensor>& operands, std::string_view attrs,
                             std::vector<CustomTensor>& results)>
      reference = {};
  double rtol = 1e-6, atol = 0;  // how far the function may be from that, relative to the value and absolute
};

// Makes the op known to this process, for good. From any thread. Errors: kDuplicateName, for a name that is taken;
// kInvalid, for what is not as said above.
Result<void> RegisterCustomOp(CustomOp op);

}  // namespace quern
