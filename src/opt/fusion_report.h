// What fusion did and what it left, for `quern dump` and for the question why two ops did not become one kernel.
#pragma once

#include <string>
#include <vector>

namespace quern::opt {

struct FusionReport {
  struct Region {
    int node = -1;  // in the fused graph, or in one of its bodies
    std::string family;
    std::string label;             // of its first node
    std::vector<std::string> ops;  // in the order of the body
    int inputs = 0, outputs = 0;
  };
  struct Missed {
    std::string producer, consumer;  // "MatMul %5": nodes of the graph before fusion
    std::string reason;
  };
  std::vector<Region> regions;
  std::vector<Missed> missed;

  // One line a region, one line a missed opportunity:
  //   region %7 matmul layers.0/ffn: MatMul MatMul Silu Mul Quantize, 3 inputs, 1 output
  //   missed: Exp %9 not fused with MatMul %5: the results differ in extents
  std::string ToString() const;
};

}  // namespace quern::opt
