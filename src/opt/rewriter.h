// Rewriter: what every pass does in the same way. It walks nothing itself: a pass goes over the nodes of the old graph
// in order and says for each what takes its place.
//
//   Rewriter rewriter(graph, "double_adds", DoubleAdds);
//   for (int n = 0; n < rewriter.size(); ++n) {
//     if (...) {
//       QUERN_ASSIGN(const ir::Value y, rewriter.Add(n, "Mul", {...}));
//       rewriter.Replace({n, 0}, y);
//     } else {
//       QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
//     }
//   }
//   return rewriter.Finish();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/identity.h"

namespace quern::opt {

// What a pass does to the bodies of nodes that it copies, those of Regions apart.
using BodyPass = std::function<StatusOr<ir::Graph>(const ir::Graph& body)>;

class Rewriter {
 public:
  // `from` must outlive the rewriter. `bodies`: the pass itself; null leaves them as they are.
  Rewriter(const ir::Graph& from, std::string pass, BodyPass bodies);

  const ir::Graph& from() const { return from_; }
  int size() const { return static_cast<int>(from_.nodes().size()); }
  ir::Graph to;  // the graph being made

  // The new value of an old one. Precondition: it was copied or replaced.
  ir::Value Now(ir::Value old) const;
  std::vector<ir::Value> Now(const std::vector<ir::Value>& old) const;
  void Replace(ir::Value old, ir::Value now);

  // Node n over the new operands, with its own attributes and origin.
  Status Copy(int n);
  // The same with other attributes and bodies, and for leaves with another type.
  Status CopyAs(int n, ir::Attributes attributes, const ir::TensorType& leaf_type,
                std::vector<std::shared_ptr<const ir::Graph>> bodies);
  // A new node at the place of old node n: its label, the name of this pass. Operands are new values.
  StatusOr<ir::Value> Add(int n, std::string_view op, std::vector<ir::Value> inputs, ir::Attributes attributes = {});
  // Add at the place of old node n, for those that know no Rewriter. Valid as long as this is.
  ir::MakeNode Maker(int n);
  // The origin of such a node.
  int OriginOf(int n);

  // Outputs, donations and constraints carried over.
  StatusOr<ir::Graph> Finish();

 private:
  // The origin of old node n, as a row of `to`.
  int KeptOrigin(int n);
  // Old node n is what was made, result by result.
  Status Made(int n, const StatusOr<ir::Value>& made);

  const ir::Graph& from_;
  std::string pass_;
  BodyPass bodies_;
  std::vector<std::vector<ir::Value>> now_;  // by old node and result
  std::vector<int> kept_origins_;            // by old origin: the same row in `to`, or -2
};

}  // namespace quern::opt
