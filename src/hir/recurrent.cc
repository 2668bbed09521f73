#include "hir/recurrent.h"

#include <string_view>

namespace quern::hir {
namespace {

enum : int { kX, kW, kR, kB, kWs, kStates };

// Gates of a cell of the block: as many as its r has rows for.
struct Sizes {
  Extent batch, length, inputs, directions, layers, hidden, rows;
};

int StatesOf(const BlockDef& block) { return static_cast<int>(block.operands.size()) - kStates; }

Sizes SizesOf(const TensorType& x, const TensorType& r, const Attributes& attributes) {
  return {x.dims[0],
          x.dims[1],
          x.dims[2],
          Extent(attributes.Bool("bidirectional") ? 2 : 1),
          Extent(attributes.Int("layers")),
          Extent(attributes.Int("hidden")),
          r.dims[2]};
}

template <int kGates>
StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  if (c.attributes.Int("hidden") < 1) return c.AttributeError("hidden", "1 or more");
  if (c.attributes.Int("layers") < 1) return c.AttributeError("layers", "1 or more");
  const TensorType &x = c.operand(kX), &r = c.operand(kR);
  if (x.rank() != 3) return c.ShapeError(kX, "[B, S, I]");
  if (r.rank() != 4) return c.ShapeError(kR, "[layers, D, gates H, H]");
  const Sizes s = SizesOf(x, r, c.attributes);
  const Extent rows = Extent(kGates) * s.hidden;
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kR, {s.layers, s.directions, rows, s.hidden}));
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kW, {s.directions, rows, s.inputs}));
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kB, {s.layers, s.directions, Extent(2) * rows}));
  QUERN_RETURN_IF_ERROR(c.ExpectDims(kWs, {s.layers - Extent(1), s.directions, rows, s.directions * s.hidden}));
  const bool one = s.layers == Extent(1);
  if (!one && !c.has(kWs))
    return c.Error(DiagnosticCode::kUnknownOperand, "ws", "the weights of the layers behind the first", "absent");
  std::vector<TensorType> results = {{x.dtype, {s.batch, s.length, s.directions * s.hidden}}};
  for (int i = 0; i < StatesOf(c.block); ++i) {
    results.push_back({x.dtype, {s.layers * s.directions, s.batch, s.hidden}});
    QUERN_RETURN_IF_ERROR(c.ExpectDims(kStates + i, results.back().dims));
  }
  for (int i = 0; i < static_cast<int>(c.operands.size()); ++i) QUERN_RETURN_IF_ERROR(c.ExpectDType(i, x.dtype));
  return results;
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const Sizes s = SizesOf(c.type(c.inputs[kX]), c.type(c.inputs[kR]), c.attributes());
  const int states = StatesOf(*c.node.block);
  const DType dtype = c.type(c.inputs[kX]).dtype;
  // `count` slices along the first dimension from `start` on; one is a slice without it.
  const auto part = [&](ir::Value all, const Extent& start, const Extent& count, bool keep) {
    std::vector<Extent> dims = c.type(all).dims;
    if (!c.ok()) return ir::Value{};
    dims[0] = count;
    if (!keep) dims.erase(dims.begin());
    return c.Reshape(
        c.Add("Narrow", {all},
              {{"axis", int64_t{0}}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{count}}}),
        std::move(dims));
  };
  const auto turned = [&](ir::Value x) { return c.Add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}}); };
  ir::Value y = turned(c.inputs[kX]);
  std::vector<std::vector<ir::Value>> last(states);
  for (int64_t l = 0; l < s.layers.constant(); ++l) {
    const Extent layer(l), one(1);
    std::vector<ir::Value> operands = {y, l == 0 ? c.inputs[kW] : part(c.inputs[kWs], Extent(l - 1), one, false),
                                       part(c.inputs[kR], layer, one, false)};
    bool carried = false;
    for (int i = 0; i < states; ++i) carried = carried || c.has(kStates + i);
    if (c.has(kB))
      operands.push_back(part(c.inputs[kB], layer, one, false));
    else if (carried)
      operands.push_back(c.Zeros({dtype, {s.directions, Extent(2) * s.rows}}));
    for (int i = 0; carried && i < states; ++i) {
      operands.push_back(c.has(kStates + i) ? part(c.inputs[kStates + i], layer * s.directions, s.directions, true)
                                            : c.Zeros({dtype, {s.directions, s.batch, s.hidden}}));
    }
    const bool both = s.directions == Extent(2);
    const std::vector<ir::Value> made =
        c.Results(c.node.block->name, operands, {{"direction", std::string(both ? "bidirectional" : "forward")}});
    const ir::Value rows = c.Add("Transpose", {made[0]}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    y = c.Reshape(rows, {s.length, s.batch, s.directions * s.hidden});
    for (int i = 0; i < states; ++i) last[i].push_back(made[1 + i]);
  }
  std::vector<ir::Value> results = {turned(y)};
  for (const std::vector<ir::Value>& state : last)
    results.push_back(state.size() == 1 ? state[0] : c.Add("Concat", state, {{"axis", int64_t{0}}}));
  return c.Finish(std::move(results));
}

}  // namespace

const BlockDef* RecurrentBlock(const char* op, const char* doc, const char* label, const char* carry_label, int gates,
                               int states) {
  BlockDef block = {.name = op,
                    .doc = doc,
                    .label = label,
                    .carry_label = carry_label,
                    .operands = {{.name = "x", .shape = "[B, S, I]"},
                                 {.name = "w", .shape = "[D, gates H, I]"},
                                 {.name = "r", .shape = "[layers, D, gates H, H]"},
                                 {.name = "b", .optional = true, .shape = "[layers, D, 2 gates H]"},
                                 {.name = "ws", .optional = true, .shape = "[layers - 1, D, gates H, D H]"},
                                 {.name = "h", .optional = true, .shape = "[layers D, B, H]"}},
                    .attributes = {{.name = "hidden", .kind = ir::AttrKind::kInt, .doc = "H"},
                                   {.name = "layers", .kind = ir::AttrKind::kInt, .default_value = int64_t{1}},
                                   {.name = "bidirectional",
                                    .kind = ir::AttrKind::kBool,
                                    .default_value = false,
                                    .doc = "D is 2, else 1"}},
                    .infer = gates == 4 ? Infer<4> : Infer<3>,
                    .lower = Lower};
  if (states > 1) block.operands.push_back({.name = "c", .optional = true, .shape = "[layers D, B, H]"});
  return Make(std::move(block));
}

}  // namespace quern::hir
