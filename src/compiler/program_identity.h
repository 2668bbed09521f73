// What tells programs apart, and the variants of one, on every machine and in every run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/status.h"
#include "ir/graph.h"
#include "quern/quern.h"

namespace quern::compiler {

// "S in 2..8, T in 1..1"; empty for no guard.
std::string TextOfGuard(const SymbolRanges& guard);

// Of the graph and of the options that change plans.
std::string IdentityOf(const ir::Graph& graph, const Options& options);
// Of the variant of a program with that identity.
uint64_t VariantKey(const std::string& identity, const SymbolRanges& guard);
// Of all that machine code depends on: also the guards, the level with its features ("native" is the one that this
// machine has), and who compiles.
StatusOr<Hash128> ProgramFingerprint(const ir::Graph& graph, std::span<const SymbolRanges> guards, Options options);

}  // namespace quern::compiler
