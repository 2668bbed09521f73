// Rope: rotary position embedding of the first n_rot elements of each head.
//
//   x [.., S, heads * head_dim] (packed) or [.., S, heads, head_dim]; cos, sin [S, w] with w >= n_rot / 2
//   with positions i32[S]: cos, sin [positions, w], and row s takes row positions[s] of them, or the nearest there is
//   o_a = x_a c - x_b s,  o_b = x_b c + x_a s;  style gptj pairs (2i, 2i+1), neox pairs (i, i + n_rot/2)

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;
using kir::Op;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const int64_t head_dim = context.attributes.Int("head_dim"), n_rot = context.attributes.Int("n_rot");
  const bool packed = context.attributes.Bool("packed");
  if (head_dim < 2) return context.AttributeError("head_dim", "2 or more");
  if (n_rot < 2 || n_rot % 2 != 0 || n_rot > head_dim)
    return context.AttributeError("n_rot", absl::StrFormat("even and at most %d", head_dim));
  const int least = packed ? 2 : 3;
  if (x.rank() < least || !x.dims.back().is_constant() || x.dims.back().constant() % head_dim != 0 ||
      (!packed && x.dims.back().constant() != head_dim)) {
    return context.ShapeError(0, absl::StrCat("[.., S, heads", packed ? " * " : ", ", head_dim, "]"));
  }
  Extent positions = x.dims[x.rank() - least];
  if (context.operands.size() > 3) {
    const TensorType &given = context.operands[3], &table = context.operands[1];
    if (given.dtype != DType::kI32) return context.DTypeError(3, "i32");
    if (!context.Equal(given.dims, std::vector<Extent>{positions})) return context.ShapeError(3, ToString({positions}));
    if (table.rank() < 2 || !context.AtLeast(table.dims[table.rank() - 2], 1))
      return context.ShapeError(1, "[1 position or more, w]");
    positions = table.dims[table.rank() - 2];
  }
  for (int i = 1; i <= 2; ++i) {
    const TensorType& table = context.operands[i];
    const bool width_fits = table.rank() >= 2 && table.dims.back().is_constant() &&
                            (table.dims.back() == Extent(n_rot / 2) || table.dims.back() == Extent(head_dim / 2) ||
                             table.dims.back() == Extent(n_rot) || table.dims.back() == Extent(head_dim));
    const bool leading_fits =
        width_fits && context.Equal(positions, table.dims[table.rank() - 2]) &&
        (table.rank() == 2 || (table.rank() == 3 && (table.dims[0] == Extent(1) ||
                                                     (x.rank() > least && context.Equal(x.dims[0], table.dims[0])))));
    if (!leading_fits) {
      return context.ShapeError(
          i, absl::StrFormat("[%s, w] or [1 or B, %s, w] with w %d, %d, %d or %d", positions.ToString(),
                             positions.ToString(), n_rot / 2, n_rot, head_dim / 2, head_dim));
    }
  }
  return std::vector<TensorType>{x};
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const Attributes& attributes = context.node().attributes;
  const double head_dim = static_cast<double>(attributes.Int("head_dim"));
  const int64_t n_rot = attributes.Int("n_rot"), half = n_rot / 2;
  const kir::Index& index = context.index();
  const int rank = static_cast<int>(index.size());
  const kir::ExprRef& c = index[rank - 1];
  kir::ExprRef position = index[rank - (attributes.Bool("packed") ? 2 : 3)];
  if (context.node().inputs.size() > 3) {
    const std::vector<Extent>& table = context.operand_type(1).dims;
    const kir::ExprRef given = kb::CastTo(DType::kI64, context.Operand(3, {position}));
    position = kb::Max(kb::Int(0), kb::Min(given, kb::FromExtent(table[table.size() - 2]) - 1.0));
  }
  const kir::ExprRef e =
      attributes.Bool("packed") && context.result_type().dims.back() != Extent(attributes.Int("head_dim"))
          ? c % head_dim
          : c;
  const bool partial = n_rot < attributes.Int("head_dim");

  kir::ExprRef pair, partner, first;  // first: whether this is element a of its pair
  if (attributes.String("style") == "gptj") {
    const kir::ExprRef odd = e % 2.0;
    pair = e / 2.0;
    first = kb::Call(Op::kEq, {odd, kb::Int(0)});
    // Pairs do not straddle the row when heads are even, and a sum of remainders shows it.
    if (attributes.Int("head_dim") % 2 == 0) {
      partner = c - c % 2.0 + (c + 1.0) % 2.0;
    } else {
      const kir::ExprRef last = kb::FromExtent(context.result_type().dims.back()) - 1.0;
      partner = kb::Max(kb::Int(0), kb::Min(c + 1.0 - odd * 2.0, last));
    }
  } else {
    first = kb::Call(Op::kLt, {e, kb::Int(half)});
    // Remainders are in bounds whatever e is; of a selected e - half that would have to be proved.
    pair = e % static_cast<double>(half);
    partner = (e + static_cast<double>(half)) % static_cast<double>(n_rot);
    if (e != c) partner = c / head_dim * head_dim + partner;
  }
  // Elements beyond n_rot read a harmless place and are then passed through.
  if (partial) {
    if (attributes.String("style") == "gptj") pair = kb::Min(pair, kb::Int(half - 1));
    partner = kb::Select(kb::Call(Op::kLt, {e, kb::Int(n_rot)}), partner, c);
  }
  auto table = [&](int operand) {
    const TensorType& type = context.operand_type(operand);
    kir::Index at;
    if (type.rank() == 3) at.push_back(type.dims[0] == Extent(1) ? kb::Int(0) : index[0]);
    at.push_back(position);
    at.push_back(pair);
    return Widened(context.Operand(operand, std::move(at)));
  };
  kir::Index other = index;
  other[rank - 1] = partner;
  const kir::ExprRef x = context.Operand(0, index), y = Widened(context.Operand(0, std::move(other)));
  const kir::ExprRef sine = table(2);
  const kir::ExprRef rotated = kb::CastTo(x->dtype, Widened(x) * table(1) + y * kb::Select(first, -sine, sine));
  return partial ? kb::Select(kb::Call(Op::kLt, {e, kb::Int(n_rot)}), rotated, x) : rotated;
}

// The results, or their magnitude: the sizes of the two products.
Status Evaluate(RefContext& context, bool magnitude) {
  const Attributes& attributes = context.node.attributes;
  const int64_t head_dim = attributes.Int("head_dim"), n_rot = attributes.Int("n_rot"), half = n_rot / 2;
  const bool packed = attributes.Bool("packed"), gptj = attributes.String("style") == "gptj";
  const RefTensor &x = *context.operands[0], &cosine = *context.operands[1], &sine = *context.operands[2];
  RefTensor& y = context.results[0];
  const size_t rank = y.dims.size();
  const int64_t row = y.dims.back();
  std::vector<int64_t> index(rank);
  for (size_t i = 0; i < y.data.size(); ++i, NextIndex(y.dims, index)) {
    const int64_t e = static_cast<int64_t>(i) % row % head_dim;
    y.data[i] = magnitude ? std::fabs(x.data[i]) : x.data[i];
    if (e >= n_rot) continue;
    const int64_t pair = gptj ? e / 2 : e % half;
    const bool first = gptj ? e % 2 == 0 : e < half;
    const int64_t distance = gptj ? 1 : half;
    int64_t position = index[rank - (packed ? 2 : 3)];
    if (context.operands.size() > 3) {
      const int64_t last = cosine.dims[cosine.dims.size() - 2] - 1;
      position = std::clamp<int64_t>(static_cast<int64_t>(context.operands[3]->Integer(position)), 0, last);
    }
    const int64_t at[3] = {index[0], position, pair};
    const std::span<const int64_t> place = cosine.dims.size() == 3 ? std::span(at) : std::span(at).subspan(1);
    const double c = cosine.At(place), s = sine.At(place);
    const double turned = x.data[i] * c, other = first ? -x.data[i + distance] * s : x.data[i - distance] * s;
    y.data[i] = magnitude ? std::fabs(turned) + std::fabs(other) : RoundTo(y.dtype, turned + other);
  }
  return absl::OkStatus();
}

Status Reference(RefContext& context) { return Evaluate(context, /*magnitude=*/false); }
Status Magnitude(RefContext& context) { return Evaluate(context, /*magnitude=*/true); }

// Pairs of neighbours, or a head's two halves. Odd heads start where pairs of columns do not.
int64_t RowSpan(const Node& node) {
  const int64_t head_dim = node.attributes.Int("head_dim");
  if (!node.attributes.Bool("packed")) return 0;
  if (node.attributes.String("style") == "neox") return head_dim;
  return head_dim % 2 == 0 ? 2 : 0;
}

}  // namespace

const OpDef& Op_rope() {
  static const OpDef* const op = Make({
      .name = "Rope",
      .doc = "rotary position embedding of the first n_rot elements of each head",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x",
                    .kind = OperandKind::kFloat,
                    .shape = "[.., S, heads * head_dim], not packed [.., S, heads, head_dim]"},
                   {.name = "cos",
                    .kind = OperandKind::kFloat,
                    .shape = "[S, w] or [1 or B, S, w]; w: half or all of n_rot or head_dim"},
                   {.name = "sin", .kind = OperandKind::kFloat, .shape = "as cos"},
                   {.name = "positions",
                    .shape = "i32[S]: rows of cos and sin, which have any number",
                    .optional = true,
                    .own_dtype = true}},
      .attributes = {{.name = "head_dim", .kind = AttrKind::kInt},
                     {.name = "n_rot", .kind = AttrKind::kInt},
                     {.name = "style",
                      .kind = AttrKind::kString,
                      .default_value = std::string("neox"),
                      .choices = {"gptj", "neox"}},
                     {.name = "packed",
                      .kind = AttrKind::kBool,
                      .default_value = true,
                      .doc = "heads and head_dim are one dimension"}},
      .infer = Infer,
      .map = Map,
      .reads = 2,
      .row_span = RowSpan,
      .reference = Reference,
      .rtol = 1e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[5, 16]", "f32[5, 4]", "f32[5, 4]"}, {{"head_dim", int64_t{8}}, {"n_rot", int64_t{8}}}}},
  });
  return *op;
}

}  // namespace quern::ir
