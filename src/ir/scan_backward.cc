#include "ir/scan_backward.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/divide.h"
#include "ir/composite.h"
#include "ir/control.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

enum : int { kBody, kVjp };

bool IsFloatType(const TensorType& type) { return IsFloat(type.dtype); }

// Which operands and results of the body are what.
struct Parts {
  Parts(const Graph& body, const Attributes& attributes)
      : carries(attributes.Int("carries")),
        xs(attributes.Int("xs")),
        operands(body.Inputs().size()),
        results(body.outputs.size()) {}
  size_t carries, xs;
  size_t operands, results;  // of the Scan
  bool is_x(size_t operand) const { return operand >= carries && operand < carries + xs; }
};

}  // namespace

std::vector<AttrDef> ScanBackwardAttributes() {
  return {{.name = "length", .kind = AttrKind::kExtents, .doc = "one extent: how many steps"},
          {.name = "carries", .kind = AttrKind::kInt, .default_value = AttrValue(int64_t{0}), .doc = "as of the Scan"},
          {.name = "xs", .kind = AttrKind::kInt, .default_value = AttrValue(int64_t{0}), .doc = "as of the Scan"},
          {.name = "reverse", .kind = AttrKind::kBool, .default_value = AttrValue(false), .doc = "as of the Scan"},
          {.name = "checkpoints",
           .kind = AttrKind::kInt,
           .default_value = AttrValue(int64_t{0}),
           .doc = "of how many steps the carries are kept; 0: of all"}};
}

StatusOr<std::vector<TensorType>> InferScanBackward(const InferContext& context, bool xs) {
  const Graph& body = *context.bodies[kBody];
  const size_t count = body.Inputs().size();
  if (context.operands.size() < count) {
    return context.Error(DiagnosticCode::kInputCount, "operands of the Scan", absl::StrCat(count),
                         absl::StrCat(context.operands.size()));
  }
  const std::span<const TensorType> operands = context.operands.first(count);
  const OpDef& scan = *FindOp("Scan");
  QUERN_ASSIGN(const std::vector<TensorType> results,
               scan.infer({context.op, operands, context.attributes, context.symbols, context.constraints,
                           context.bodies.first(1)}));
  const int64_t checkpoints = context.attributes.Int("checkpoints");
  const Extent& length = context.attributes.Extents("length")[0];
  if (checkpoints < 0 || (checkpoints > 0 && !length.is_constant()))
    return context.AttributeError("checkpoints", checkpoints < 0 ? "0 or more" : "0 beside a length of symbols");
  std::vector<TensorType> given;
  std::copy_if(results.begin(), results.end(), std::back_inserter(given), IsFloatType);
  if (context.operands.size() != count + given.size()) {
    return context.Error(DiagnosticCode::kShapeMismatch, "number of gradients of results", absl::StrCat(given.size()),
                         absl::StrCat(context.operands.size() - count));
  }
  for (size_t g = 0; g < given.size(); ++g) {
    const TensorType& type = context.operands[count + g];
    if (type.dtype != given[g].dtype || !context.Equal(type.dims, given[g].dims))
      return OtherType(context.op, absl::StrCat("gradient ", g), type, given[g]);
  }
  // The vjp is over rows.
  std::vector<TensorType> inputs, wanted;
  for (const int n : body.Inputs()) inputs.push_back(body.node(n).results[0]);
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(wanted), IsFloatType);
  const std::vector<TensorType> outputs = OutputTypes(body);
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  std::copy_if(outputs.begin(), outputs.end(), std::back_inserter(inputs), IsFloatType);
  const Graph& vjp = *context.bodies[kVjp];
  QUERN_RETURN_IF_ERROR(CheckBodyInputs(context.op, context.op.bodies[kVjp], vjp, inputs));
  const std::vector<TensorType> made = OutputTypes(vjp);
  if (made.size() != wanted.size()) {
    return context.Error(DiagnosticCode::kShapeMismatch, "vjp's number of outputs", absl::StrCat(wanted.size()),
                         absl::StrCat(made.size()));
  }
  for (size_t r = 0; r < made.size(); ++r) {
    if (made[r] != wanted[r]) return OtherType(context.op, absl::StrFormat("output %u of vjp", r), made[r], wanted[r]);
  }
  const Parts parts(body, context.attributes);
  std::vector<TensorType> gradients;
  for (size_t i = 0; i < count; ++i) {
    if (IsFloat(operands[i].dtype) && (!xs || parts.is_x(i))) gradients.push_back(operands[i]);
  }
  if (gradients.empty())
    return context.Error(DiagnosticCode::kShapeMismatch, xs ? "xs" : "operands", "some that are floats", "none");
  return gradients;
}

Status ReferenceScanBackward(RefContext& context, bool xs) {
  const Attributes& attributes = context.node.attributes;
  const Parts parts(context.node.body(kBody), attributes);
  const int64_t length = SizesOf(attributes.Extents("length"), context.binding)[0];
  const auto row_of = [](const RefTensor& all, int64_t t) {
    RefTensor row{all.dtype, {all.dims.begin() + 1, all.dims.end()}, {}};
    row.Allocate();
    const int64_t elements = row.elements();
    for (int64_t e = 0; e < elements; ++e) row.Take(e, all, t * elements + e);
    return row;
  };
  const auto row_at = [&](int64_t step) { return attributes.Bool("reverse") ? length - 1 - step : step; };
  // Forwards: what each step was given and made.
  std::vector<std::vector<RefTensor>> given(length), made(length);
  std::vector<RefTensor> now;
  for (size_t c = 0; c < parts.carries; ++c) now.push_back(*context.operands[c]);
  for (int64_t step = 0; step < length; ++step) {
    given[step] = now;
    for (size_t i = parts.carries; i < parts.operands; ++i)
      given[step].push_back(parts.is_x(i) ? row_of(*context.operands[i], row_at(step)) : *context.operands[i]);
    std::vector<const RefTensor*> pointers;
    for (const RefTensor& value : given[step]) pointers.push_back(&value);
    QUERN_ASSIGN(made[step], context.run(kBody, pointers));
    now.assign(made[step].begin(), made[step].begin() + static_cast<int64_t>(parts.carries));
  }
  // Backwards: `back` is the gradient of each operand of the Scan, as far as it has one.
  std::vector<RefTensor> back;
  std::vector<size_t> floats;
  size_t gradient = parts.operands;
  for (size_t i = 0; i < parts.operands; ++i) {
    RefTensor& zero = back.emplace_back(RefTensor{context.operands[i]->dtype, context.operands[i]->dims, {}});
    zero.Allocate();
    if (IsFloat(zero.dtype)) floats.push_back(i);
  }
  for (size_t c = 0; c < parts.carries; ++c) {
    if (IsFloat(back[c].dtype)) back[c] = *context.operands[gradient++];
  }
  for (int64_t step = length - 1; step >= 0; --step) {
    const int64_t t = row_at(step);
    std::vector<RefTensor> values = given[step];
    values.insert(values.end(), made[step].begin(), made[step].end());
    size_t next = gradient;
    for (size_t r = 0; r < parts.results; ++r) {
      if (!IsFloat(made[step][r].dtype)) continue;
      values.push_back(r < parts.carries ? back[r] : row_of(*context.operands[next++], t));
    }
    std::vector<const RefTensor*> pointers;
    for (const RefTensor& value : values) pointers.push_back(&value);
    QUERN_ASSIGN(std::vector<RefTensor> moved, context.run(kVjp, pointers));
    for (size_t f = 0; f < floats.size(); ++f) {
      RefTensor& whole = back[floats[f]];
      const int64_t elements = moved[f].elements();
      if (floats[f] < parts.carries) {
        whole = std::move(moved[f]);
      } else if (parts.is_x(floats[f])) {
        for (int64_t e = 0; e < elements; ++e) whole.Take(t * elements + e, moved[f], e);
      } else {
        for (int64_t e = 0; e < elements; ++e) whole.data[e] += moved[f].data[e];
      }
    }
  }
  size_t result = 0;
  for (const size_t f : floats) {
    if (xs && !parts.is_x(f)) continue;
    for (double& value : back[f].data) value = RoundTo(back[f].dtype, value);
    context.results[result++] = std::move(back[f]);
  }
  return absl::OkStatus();
}

namespace {

using Values = std::vector<Value>;

Values Joined(std::initializer_list<std::span<const Value>> parts) {
  Values all;
  for (const std::span<const Value> part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The nodes that take the place of one.
class Sweep {
 public:
  Sweep(Graph& graph, const Node& node, std::span<const Value> inputs, int origin)
      : graph_(graph),
        node_(node),
        origin_(origin),
        e_(graph, origin),
        parts_(node.body(kBody), node.attributes),
        backwards_(node.attributes.Bool("reverse")),
        carries_(inputs.begin(), inputs.begin() + static_cast<int64_t>(parts_.carries)),
        captures_(inputs.begin() + static_cast<int64_t>(parts_.carries + parts_.xs),
                  inputs.begin() + static_cast<int64_t>(parts_.operands)),
        xs_(inputs.begin() + static_cast<int64_t>(parts_.carries),
            inputs.begin() + static_cast<int64_t>(parts_.carries + parts_.xs)) {
    const auto given = inputs.subspan(parts_.operands);
    const size_t of_carries = Floats(carries_).size();
    back_.assign(given.begin(), given.begin() + static_cast<int64_t>(of_carries));
    dys_.assign(given.begin() + static_cast<int64_t>(of_carries), given.end());
    // Sums over steps of halves are f32.
    for (const Value capture : Floats(captures_)) {
      const DType dtype = graph.type(capture).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
      sums_.push_back(e_.Add("Expand", {e_.Scalar(0, dtype)}, {{"shape", graph.type(capture).dims}}));
    }
  }

  StatusOr<Values> Run(bool only_xs) {
    const Extent length = node_.attributes.Extents("length")[0];
    const int64_t checkpoints = node_.attributes.Int("checkpoints");
    std::vector<std::pair<Extent, Extent>> segments;  // rows from, and how many, in the order of steps
    if (checkpoints == 0 || length.constant() == 0) {
      segments.emplace_back(0, length);
    } else {
      const int64_t steps = CeilDiv(length.constant(), checkpoints);
      for (int64_t at = 0; at < length.constant(); at += steps) {
        const int64_t count = std::min(steps, length.constant() - at);
        segments.emplace_back(backwards_ ? length.constant() - at - count : at, count);
      }
    }
    std::vector<Values> starts = {carries_};
    for (size_t s = 0; s + 1 < segments.size(); ++s) {
      QUERN_ASSIGN(Values after, Forwards(segments[s], starts.back(), /*keep=*/false));
      starts.push_back(std::move(after));
    }
    std::vector<Values> dxs;  // of segments, the last one first
    for (size_t s = segments.size(); s > 0; --s) {
      QUERN_ASSIGN(const Values before, Forwards(segments[s - 1], starts[s - 1], /*keep=*/true));
      QUERN_ASSIGN(dxs.emplace_back(), Backwards(segments[s - 1], before));
    }
    if (!backwards_) std::reverse(dxs.begin(), dxs.end());
    Values of_xs;
    for (size_t x = 0; x < dxs[0].size(); ++x) {
      Values rows;
      for (const Values& segment : dxs) rows.push_back(segment[x]);
      of_xs.push_back(rows.size() == 1 ? rows[0] : e_.Add("Concat", rows, {{"axis", int64_t{0}}}));
    }
    if (only_xs) return e_.Finish(of_xs);
    Values of_captures;
    for (size_t c = 0; c < sums_.size(); ++c)
      of_captures.push_back(e_.Stored(sums_[c], graph_.type(Floats(captures_)[c]).dtype));
    return e_.Finish(Joined({back_, of_xs, of_captures}));
  }

 private:
  using Segment = std::pair<Extent, Extent>;

  Values Floats(const Values& values) const {
    Values floats;
    std::copy_if(values.begin(), values.end(), std::back_inserter(floats),
                 [&](Value value) { return IsFloat(graph_.type(value).dtype); });
    return floats;
  }
  Values Rows(const Values& values, const Segment& segment) {
    if (segment.second == node_.attributes.Extents("length")[0]) return values;
    Values rows;
    for (const Value value : values) {
      rows.push_back(e_.Add("Narrow", {value},
                            {{"axis", int64_t{0}},
                             {"start", std::vector<Extent>{segment.first}},
                             {"length", std::vector<Extent>{segment.second}}}));
    }
    return rows;
  }

  // A Scan over rows of the segment, whose body is what `make` adds.
  template <typename Make>
  StatusOr<Values> AddScan(const Segment& segment, bool reverse, const Values& carries, const Values& xs,
                           const Make& make) {
    QUERN_RETURN_IF_ERROR(e_.Finish({}).status());
    const auto body = std::make_shared<Graph>();
    body->name = "body";
    body->symbols = graph_.symbols;
    const Values operands = Joined({carries, xs, captures_});
    Values inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      TensorType type = graph_.type(operands[i]);
      if (i >= carries.size() && i < carries.size() + xs.size()) type.dims.erase(type.dims.begin());
      QUERN_ASSIGN(inputs.emplace_back(), body->AddInput(absl::StrCat("x", i), std::move(type)));
    }
    QUERN_ASSIGN(body->outputs, make(*body, inputs));
    const size_t results = body->outputs.size();
    QUERN_ASSIGN(const Value made, graph_.Add("Scan", operands,
                                              {{"length", std::vector<Extent>{segment.second}},
                                               {"carries", static_cast<int64_t>(carries.size())},
                                               {"xs", static_cast<int64_t>(xs.size())},
                                               {"reverse", reverse}},
                                              origin_, {body}));
    Values all;
    for (size_t r = 0; r < results; ++r) all.push_back({made.node, static_cast<int>(r)});
    return all;
  }

  // The carries after the segment, or, kept, those before each of its steps.
  StatusOr<Values> Forwards(const Segment& segment, const Values& start, bool keep) {
    const size_t carries = parts_.carries;
    if (carries == 0) return Values();
    QUERN_ASSIGN(Values made, AddScan(segment, backwards_, start, Rows(xs_, segment),
                                      [&](Graph& body, const Values& inputs) -> StatusOr<Values> {
                                        QUERN_ASSIGN(Values outputs, AddBody(body, node_.body(kBody), inputs, -1));
                                        outputs.resize(carries);
                                        if (keep)
                                          outputs.insert(outputs.end(), inputs.begin(), inputs.begin() + carries);
                                        return outputs;
                                      }));
    if (keep) return Values(made.begin() + static_cast<int64_t>(carries), made.end());
    return made;
  }

  // Goes through the segment from its last step to its first; the gradients of its rows of the xs.
  StatusOr<Values> Backwards(const Segment& segment, const Values& before) {
    const size_t back = back_.size(), sums = sums_.size(), of_xs = Floats(xs_).size();
    const Values carries = Joined({back_, sums_}), xs = Joined({before, Rows(xs_, segment), Rows(dys_, segment)});
    QUERN_ASSIGN(const Values made,
                 AddScan(segment, !backwards_, carries, xs, [&](Graph& body, const Values& inputs) -> StatusOr<Values> {
                   const std::span<const Value> all = inputs;
                   const auto dcarries = all.first(back), added = all.subspan(back, sums);
                   const auto given = all.subspan(back + sums, parts_.carries + parts_.xs);
                   const auto dys = all.subspan(back + sums + given.size(), dys_.size());
                   const Values operands = Joined({given, all.last(captures_.size())});
                   QUERN_ASSIGN(const Values outputs, AddBody(body, node_.body(kBody), operands, -1));
                   QUERN_ASSIGN(Values moved,
                                AddBody(body, node_.body(kVjp), Joined({operands, outputs, dcarries, dys}), -1));
                   Expansion e(body, -1);
                   Values next(moved.begin(), moved.begin() + static_cast<int64_t>(back));
                   for (size_t c = 0; c < sums; ++c) {
                     const Value term = moved[back + of_xs + c];
                     next.push_back(e.Add("Add", {added[c], e.Stored(term, body.type(added[c]).dtype)}));
                   }
                   next.insert(next.end(), moved.begin() + static_cast<int64_t>(back),
                               moved.begin() + static_cast<int64_t>(back + of_xs));
                   return e.Finish(std::move(next));
                 }));
    back_.assign(made.begin(), made.begin() + static_cast<int64_t>(back));
    sums_.assign(made.begin() + static_cast<int64_t>(back), made.begin() + static_cast<int64_t>(back + sums));
    return Values(made.begin() + static_cast<int64_t>(back + sums), made.end());
  }

  Graph& graph_;
  const Node& node_;
  const int origin_;
  Expansion e_;
  const Parts parts_;
  const bool backwards_;
  const Values carries_, captures_, xs_;
  Values back_, sums_, dys_;  // gradients of the carries, of the captures so far, and of what was stacked
};

}  // namespace

StatusOr<std::vector<Value>> ExpandScanBackward(Graph& graph, const Node& node, std::span<const Value> inputs,
                                                int origin, bool xs) {
  return Sweep(graph, node, inputs, origin).Run(xs);
}

}  // namespace quern::ir
