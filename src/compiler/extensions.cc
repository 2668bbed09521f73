#include "compiler/extensions.h"

#include <map>
#include <mutex>

#include "base/diagnostic.h"
#include "compiler/graph_state.h"
#include "compiler/public_error.h"
#include "hir/block.h"

namespace quern {
namespace {

// An extension may ask for others, and for itself with less to do, but not without end.
constexpr int kMostNested = 64;

struct Registry {
  std::mutex mutex;
  std::map<std::string, Extension, std::less<>> extensions;
};
Registry& Known() {
  static auto* const registry = new Registry();
  return *registry;
}

}  // namespace

namespace compiler {

const Extension* FindExtension(std::string_view name) {
  Registry& known = Known();
  const std::lock_guard lock(known.mutex);
  const auto found = known.extensions.find(name);
  return found == known.extensions.end() ? nullptr : &found->second;
}

}  // namespace compiler

Result<void> RegisterExtension(std::string name, Extension extension) {
  if (name.empty() || extension == nullptr)
    return compiler::ToResult(absl::InvalidArgumentError("an extension has a name and a function"));
  Registry& known = Known();
  const std::lock_guard lock(known.mutex);
  if (hir::FindBlock(name) != nullptr || known.extensions.contains(name)) {
    return compiler::ToResult(ToStatus({DiagnosticCode::kDuplicateName, "RegisterExtension", name, "", "", ""}));
  }
  known.extensions.emplace(std::move(name), std::move(extension));
  return {};
}

Result<std::vector<Value>> Graph::Extend(std::string_view block, const std::vector<Value>& inputs,
                                         const std::vector<Attribute>& attributes, std::string_view label) {
  using Failure = Result<std::vector<Value>>;
  State& s = *state_;
  if (!s.ok()) return Failure::Failed(s.error);
  const Extension* const extension = compiler::FindExtension(block);
  Error error;
  std::vector<Value> results;
  // What the module does not undo by itself.
  const size_t guards = s.guards.size();
  const auto params = s.params;
  const auto append = [&]() -> Status {
    if (extension == nullptr) {
      results = Blocks(block, inputs, attributes, label);
      const size_t count = s.ok() ? s.module.nodes().back().results.size() : 0;
      results.resize(count);
    } else {
      Result<std::vector<Value>> made = (*extension)(*this, inputs, attributes);
      if (made.ok())
        results = *std::move(made);
      else if (s.ok())
        s.error = made.details();
      for (size_t r = 0; r < results.size() && s.ok(); ++r) {
        if (s.Has(results[r])) continue;
        s.Check(ToStatus({DiagnosticCode::kUnknownOperand, std::string(block), absl::StrCat("result ", r), "",
                          absl::StrFormat("%%%d.%d", results[r].node, results[r].result), ""}));
      }
    }
    if (s.ok()) return absl::OkStatus();
    error = s.error;
    return absl::InvalidArgumentError(error.message);
  };
  if (s.extensions >= kMostNested) {
    s.Check(absl::InvalidArgumentError(
        absl::StrFormat("%s: extensions ask for each other %d deep", std::string(block), kMostNested)));
    error = s.error;
  } else if (extension == nullptr) {
    append().IgnoreError();  // a block that fails leaves nothing behind
  } else {
    ++s.extensions;
    s.module.Named(label.empty() ? block : label, append).IgnoreError();
    --s.extensions;
  }
  if (error.code == ErrorCode::kNone) return results;
  s.error = {};
  s.guards.resize(guards);
  s.params = params;
  if (error.where.empty()) error.where = label.empty() ? block : label;
  return Failure::Failed(error);
}

}  // namespace quern
