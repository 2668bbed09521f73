// Graphs as bytes, for programs: what text says and nothing else, equal graphs the same bytes, floats by their bits,
// constants where they can be used in place. docs/graph-files.md describes every byte.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "ir/graph.h"

namespace quern::ir {

// The second has names of outputs, the third a quantisation map, too: the first that says all of a graph is written.
inline constexpr uint32_t kBinaryVersion = 3;

// Whether bytes that begin so are meant to be such a graph.
bool IsBinary(std::span<const uint8_t> bytes);

// The bytes of a graph; Decode gives an equal one.
std::string Encode(const Graph& graph);
// Bytes from outside: every count is checked against what is left, nodes go through the checking Graph::Add, and the
// graph verifies. Errors: what was being read, and at which byte; another version, by number; a wrong hash.
StatusOr<Graph> Decode(std::span<const uint8_t> bytes);

// What tells graphs apart, on every machine and in every run: names of leaves, symbols and their ranges, ops,
// attributes, data, types, bodies, and schemes of quantisation by the number of their value. Labels, passes and the
// graph's own name have no part in it.
Hash128 Fingerprint(const Graph& graph);

}  // namespace quern::ir
