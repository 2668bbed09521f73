// RegionBody: the nodes of a region as a graph of its own, written from its results backwards, so that equal regions
// read equal however their graphs were made. Private to fuse_regions.cc.
#pragma once

#include <map>
#include <vector>

#include "family/region_view.h"

namespace quern::opt {

class RegionBody {
 public:
  explicit RegionBody(const family::RegionView& view) : view_(view) { body.name = "body"; }

  // The value in the body. Copies the nodes that it needs, producers first and operands from left to right; what is
  // not of the region becomes an Input.
  StatusOr<ir::Value> Write(ir::Value value);

  ir::Graph body;
  std::vector<ir::Value> inputs;  // values of the outer graph

 private:
  Status WriteNode(ir::Value value);
  void Declare(const std::vector<Extent>& extents);
  int Origin(const ir::Node& node);

  const family::RegionView& view_;
  std::map<ir::Value, ir::Value> now_;
};

}  // namespace quern::opt
