// The passes over MIR: each a function from a graph to a new graph, in a file of its own. A pass leaves its argument
// alone, keeps inputs, outputs, donations and constraints, and marks the nodes it makes with its name (Origin::pass).
// They know of no quantisation map: InsertQdq (opt/insert_qdq.h) is the first, and leaves none.
#pragma once

#include <span>

#include "base/status.h"
#include "family/family.h"
#include "ir/graph.h"
#include "opt/fusion_report.h"

namespace quern::opt {

// Values of c64 become f32 [.., 2], and ops over them what their files make of those.
StatusOr<ir::Graph> ComplexAsPairs(const ir::Graph& graph);

// Composite ops replaced by their expansion, until none is left; of c64 too, which become pairs on the way.
StatusOr<ir::Graph> ExpandComposites(const ir::Graph& graph);

// Identities that hold bit for bit (for floats with NaN and signed zeros too): reshapes of reshapes, transposes undone,
// casts to the same dtype, x * 1, parts of a Concat read back.
StatusOr<ir::Graph> Simplify(const ir::Graph& graph);

// Nodes of constant operands replaced by their value, where that is small. Params are not constants.
StatusOr<ir::Graph> FoldConstants(const ir::Graph& graph);

// Equal nodes over equal operands become one.
StatusOr<ir::Graph> Cse(const ir::Graph& graph);

// Nodes that no output needs are dropped; Inputs stay, they are the signature.
StatusOr<ir::Graph> Dce(const ir::Graph& graph);

// QuantizeLinear and DequantizeLinear moved across views, and across what commutes with their rounding, so that they
// meet products, and each other: bytes that are made floats and the same bytes again stay. Bit for bit.
StatusOr<ir::Graph> PropagateQdq(const ir::Graph& graph);

// Products of what DequantizeLinear makes of bytes are sums of integers.
StatusOr<ir::Graph> IntegerProducts(const ir::Graph& graph);

// Functions of a byte that are a byte again, with an exp or its like in between, are tables. Of primitives.
StatusOr<ir::Graph> ByteTables(const ir::Graph& graph);

struct LayoutOptions {
  bool always = false;  // one convolution or pool by itself too: to compare with
};
// Images of convolutions that work on each other's have their channels last, and the report says how many. Before
// ExpandComposites.
StatusOr<ir::Graph> ChannelsLast(const ir::Graph& graph, const LayoutOptions& options = {},
                                 FusionReport* report = nullptr);

struct QuantiseOptions {
  bool exact = false;    // keep f32 activations beside block formats
  bool as_bf16 = false;  // the target multiplies f32 by halves faster as sums of bf16
};
// f32 activations that meet a block-format weight are quantised to the int8 format of its dot product, once per value;
// products by halves may be taken `as_bf16`.
StatusOr<ir::Graph> QuantiseActivations(const ir::Graph& graph, const QuantiseOptions& options = {});

// Rows that each pick their matrix are sorted by it where they are many, and quantised as `options` say beside a block
// format. After the sizes of rows are known.
StatusOr<ir::Graph> MakePickedProducts(const ir::Graph& graph, const QuantiseOptions& options = {});

struct HoistOptions {
  bool panels = true;  // the target multiplies by panels in memory
  bool pairs = false;  // and by such of pairs of bf16
};
// Weights are transposed, or put in panels, once per binding, so that products read them as they lie; what many rows
// are multiplied by is put in panels in each run.
StatusOr<ir::Graph> HoistWeights(const ir::Graph& graph, const HoistOptions& options = {});

struct RecogniseOptions {
  bool always = false;  // where the ops as they are would be faster too: to compare with
};
// Products around a softmax that are an attention become an Attention, and the report says so, or what one lacks.
StatusOr<ir::Graph> RecogniseAttention(const ir::Graph& graph, const RecogniseOptions& options = {},
                                       FusionReport* report = nullptr);

// Products whose sums have few terms become arithmetic of columns and rows.
StatusOr<ir::Graph> ShortSums(const ir::Graph& graph);

// What is made of bytes by scales and zero points is made by each elementwise reader.
StatusOr<ir::Graph> RepeatDequantised(const ir::Graph& graph);

// Symbols replaced by numbers in types, attributes, constraints and region bodies. Errors: a value outside the symbol's
// range, a constraint that can no longer hold.
StatusOr<ir::Graph> SubstituteSymbols(const ir::Graph& graph, const Binding& values);

// The ranges of symbols made narrower, in bodies too. Error: a range that is not inside the old one.
StatusOr<ir::Graph> NarrowRanges(const ir::Graph& graph, const SymbolRanges& ranges);

// Symbols that recorded equalities tie become one. Error: kSizeConflict where no sizes fit.
StatusOr<ir::Graph> UnifySizes(const ir::Graph& graph);

// Ok where sizes in `ranges`, which give each symbol of the graph, may meet all that the graph and the bodies in it
// require; else kSizeConflict.
Status CheckSizes(const ir::Graph& graph, const SymbolRanges& ranges);

// Marks what the bodies of loops and branches write in place, as donations of the bodies; and keeps states as they are
// until the end of a run that may fail.
StatusOr<ir::Graph> DonateCarries(const ir::Graph& graph);

struct FuseOptions {
  std::span<const family::Family> families;  // those of code generation, in the order of their worth
  family::TargetFacts facts = {};
  bool fuse = true;  // false: every op becomes a region of its own, to compare with
};
// Every node that is no leaf goes into a Region, but for views, which cost nothing. See fuse_regions.cc.
StatusOr<ir::Graph> FuseRegions(const ir::Graph& graph, const FuseOptions& options, FusionReport* report = nullptr);

// For each node, whether its value depends on Params and Constants alone (and on no symbol): computed once per binding.
std::vector<bool> OncePerBinding(const ir::Graph& graph);

}  // namespace quern::opt
