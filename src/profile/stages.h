// The text of one kernel at each stage on its way to machine code, and which lines belong together.
//
// HIR and MIR lines name the ops they stand for; KIR lines the op they were made from; LLVM IR and assembly the KIR
// line. Two lines of any stages are linked when following these leads from one to the other.
#pragma once

#include <string>
#include <vector>

namespace quern::profile {

// A text whose lines stand for ops: by line, rows of Kernel::origins.
struct OpLines {
  std::string text;
  std::vector<std::vector<int>> ops;
};

// A text whose lines come from lines of the printed KIR: by line, from 1; 0: none.
struct KirLines {
  std::string text;
  std::vector<int> lines;
};

struct Stages {
  OpLines hir, mir;
  std::vector<int> kir_ops;  // by line of Kernel::text, a row of Kernel::origins, or -1
  KirLines llvm, assembly;
  KirLines tiles;  // the same with the tiles' own code in the place of calls; empty where it calls none
};

}  // namespace quern::profile
