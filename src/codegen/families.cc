#include "codegen/families.h"

#include "codegen/region.h"

namespace quern::codegen {
namespace {

constexpr family::Family kFamilies[] = {
    {.name = "matmul",
     .doc = "products of the same rows, with what is computed from them element by element",
     .growth = {.siblings = true, .readers = true, .sources = true},
     .match = MatchMatmul,
     .lower = LowerMatmul},
    {.name = "attention",
     .doc = "softmax(q k^T) v by online softmax, with what is computed from it element by element",
     .growth = {.readers = true, .sources = true},
     .match = MatchAttention,
     .lower = LowerAttention},
    {.name = "lines",
     .doc = "reductions over lines of a tensor, and what is computed from a line and them",
     .growth = {.neighbours = true},
     .match = MatchLines,
     .lower = LowerLines},
    {.name = "update",
     .doc = "elements written over a part of a tensor",
     .growth = {.sources = true},
     .match = MatchUpdate,
     .lower = LowerUpdate},
    {.name = "sort", .doc = "the elements of lines in order", .growth = {}, .match = MatchSort, .lower = LowerSort},
    {.name = "delta_rule",
     .doc = "states that each token of a sequence reads and corrects",
     .growth = {.sources = true},
     .match = MatchDeltaRule,
     .lower = LowerDeltaRule},
    {.name = "selective_scan",
     .doc = "states of channels that each token of a sequence decays and adds to",
     .growth = {.sources = true},
     .match = MatchSelectiveScan,
     .lower = LowerSelectiveScan},
    {.name = "triangular_solve",
     .doc = "systems of triangular matrices, row after row",
     .growth = {.sources = true},
     .match = MatchTriangularSolve,
     .lower = LowerTriangularSolve},
    {.name = "call", .doc = "one C function of the caller's", .growth = {}, .match = MatchCall, .lower = LowerCall},
    {.name = "map",
     .doc = "every element of the result from elements of the operands",
     .growth = {.sources = true},
     .match = MatchMap,
     .lower = LowerMap},
};

}  // namespace

std::span<const family::Family> Families() { return kFamilies; }

}  // namespace quern::codegen
