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
    std::string remark;  // family::RegionPlan::Remark
  };
  struct Missed {
    std::string producer, consumer;  // "MatMul %5": nodes of the graph before fusion
    std::string reason;
  };
  // An op found spelled out in others, or nearly so.
  struct Recognised {
    std::string op;    // what it is
    std::string node;  // "MatMul %8": the last of them, in the graph before
    bool done = false;
    std::string remark;  // what it became, or why it did not
  };
  std::vector<std::string> layouts;  // of images: how many ops have their channels last
  std::vector<Recognised> recognised;
  std::vector<Region> regions;
  std::vector<Missed> missed;

  // One line for a layout, what was recognised, a region, a missed opportunity:
  //   layout: 53 of 53 convolutions with channels last, 2 images turned
  //   recognised: attention at MatMul %8: 12 heads of 64, none
  //   not recognised: attention at MatMul %9: Mul %5 is read elsewhere too
  //   region %7 matmul layers.0/ffn: MatMul MatMul Silu Mul Quantize, 3 inputs, 1 output
  //   region %8 matmul: MatMul, 2 inputs, 1 output; plain loops: f64 x f64
  //   missed: Exp %9 not fused with MatMul %5: the results differ in extents
  std::string ToString() const;
};

}  // namespace quern::opt
