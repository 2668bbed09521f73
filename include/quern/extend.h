// Blocks of your own: functions that append to a graph, under a name that graphs use like that of a block.
//
//   quern::RegisterExtension("Residual", [](quern::Graph& g, const std::vector<quern::Value>& in,
//                                           const std::vector<quern::Attribute>& attributes) {
//     return quern::Result<std::vector<quern::Value>>({g.Op("Add", {in[0], in[1]})});
//   });
//   const quern::Value y = g.Block("Residual", {x, h});      // an Add labelled "Residual/%7"
//
// What an extension appends is ordinary: it prints, is saved, fuses and is compiled ahead of time like the rest, and
// nothing of it is needed once it has run. A function of C that a kernel is made of is quern/custom.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/result.h"

namespace quern {

// Appends to `graph`, which it neither moves nor compiles, and returns the results. An error of it, or one of the graph
// on the way, is that of whoever asked for the extension; the graph is then as it was before.
using Extension = std::function<Result<std::vector<Value>>(Graph& graph, const std::vector<Value>& inputs,
                                                           const std::vector<Attribute>& attributes)>;

// Makes the extension known to this process, for good. From any thread; the function may be called from several.
// Errors: kDuplicateName, for the name of a block or of another extension; kInvalid, for an empty one or no function.
Result<void> RegisterExtension(std::string name, Extension extension);

}  // namespace quern
