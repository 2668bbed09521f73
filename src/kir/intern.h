// Equal expressions become one: trees that are equal node for node get one number, however they were made.
//
//   Interner nodes;
//   nodes.Number(x * (i + 1)) == nodes.Number(x * (i + 1))     // two trees made apart
//
// Names count as written: what they stand for is the business of who asks. Each node is looked at once, so a graph that
// shares its nodes by pointer takes time in its nodes, not in those of the tree that it stands for.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kir/kir.h"

namespace quern::kir {

class Interner {
 public:
  // From 0 in the order in which they are first seen; -1 for null. Operands have lower numbers than what they are
  // operands of.
  int Number(const ExprRef& expr);
  // The node of a number; its operands are nodes of other numbers.
  const ExprRef& node(int number) const { return nodes_[number]; }
  // The numbers of the node's operands, in the order of Parts; -1 for one that is absent.
  const std::vector<int>& operands(int number) const { return operands_[number]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  // All that makes a statement but its bodies and where it comes from; expressions by their numbers.
  std::string Bytes(const Stmt& stmt);

 private:
  std::unordered_map<const Expr*, int> known_;
  std::unordered_map<std::string, int> numbers_;  // by all that makes a node, operands by their number
  std::vector<ExprRef> nodes_;
  std::vector<std::vector<int>> operands_;
  std::vector<ExprRef> seen_;  // a pointer in known_ stays that of one node
};

}  // namespace quern::kir
