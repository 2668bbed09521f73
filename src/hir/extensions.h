// Extensions: blocks that are not in the table. An extension is a name and a function that appends nodes to a module;
// what it appends is ordinary HIR, so it prints, lowers and fuses like the rest.
//
//   Extensions extensions;
//   extensions.Register("Residual", [](Module& m, std::span<const Value> in, const Attributes&) {
//     return m.AddMir("Add", {in[0], in[1]});
//   });
//   extensions.Append(module, "Residual", {x, y});   // nodes labelled "Residual/%2"
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hir/module.h"

namespace quern::hir {

class Extensions {
 public:
  using Function = std::function<StatusOr<std::vector<Value>>(Module&, std::span<const Value>, const Attributes&)>;

  // An error when a block or an extension has that name already.
  Status Register(std::string name, Function function);
  // Calls the extension called `name` inside the sub-block `label` (default: its name).
  StatusOr<std::vector<Value>> Append(Module& module, std::string_view name, std::vector<Value> inputs,
                                      const Attributes& attributes = {}, std::string_view label = "") const;

 private:
  std::map<std::string, Function, std::less<>> functions_;
};

}  // namespace quern::hir
