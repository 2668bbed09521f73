// Plans of earlier starts, beside the objects of their kernels in the cache. What a graph, its guards and the options
// become is looked up under a hash of all that it follows from; a start that finds it runs no pass, lowers no region
// and verifies no kernel.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cache/object_store.h"
#include "ir/graph.h"
#include "jit/engine.h"
#include "lir/sealed.h"
#include "quern/quern.h"
#include "runtime/executable.h"

namespace quern::compiler {

class KeptPlans {
 public:
  // `lowered`: the graph before any pass. `store` may be null: nothing is found or kept. Nor is it with checks, which
  // look at graphs. Null then. Plans that call C functions are not kept (lir::Seal).
  static std::shared_ptr<const KeptPlans> Of(const ir::Graph& lowered, std::span<const SymbolRanges> guards,
                                             const Options& options, const jit::Engine& engine,
                                             std::shared_ptr<const cache::ObjectStore> store);

  // What was kept of the program as a whole.
  std::optional<lir::SealedProgram> FindProgram() const;
  void KeepProgram(const lir::SealedProgram& program) const;
  // Finds and keeps plans of variants. Keeps `plans` alive. Of null: an empty one.
  static PlanKeeper KeeperOf(const std::shared_ptr<const KeptPlans>& plans);

 private:
  KeptPlans(cache::CompileKey key, std::shared_ptr<const cache::ObjectStore> store)
      : key_(std::move(key)), store_(std::move(store)) {}
  // The key of one part of what is kept.
  cache::CompileKey KeyOf(std::string_view part) const;
  // Its bytes; nothing where there are none.
  std::optional<std::string> Find(std::string_view part) const;
  void Keep(std::string_view part, std::string bytes) const;

  const cache::CompileKey key_;
  const std::shared_ptr<const cache::ObjectStore> store_;
};

}  // namespace quern::compiler
