// NonMaxSuppression: of boxes with scores by class, those that no better box of the class covers. Of each image and
// class the best box is taken, every box whose overlap with it (intersection over union) is more than `iou_threshold`
// goes, and so on `most` times; equal scores: the smaller index first. Boxes take part whose score is more than
// `score_threshold`. `selected` has rows of image, class and box, in that order, the best first; a box is y1 x1 y2 x2,
// any two corners that lie across, or with `center` its middle, width and height.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/backward.h"
#include "ir/kept.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &boxes = context.operands[0], &scores = context.operands[1];
  if (boxes.rank() != 3 || !context.Equal(boxes.dims[2], Extent(4))) return context.ShapeError(0, "[images, boxes, 4]");
  if (scores.rank() != 3 || !context.Equal(scores.dims[0], boxes.dims[0]) ||
      !context.Equal(scores.dims[2], boxes.dims[1]))
    return context.ShapeError(1, "[images, classes, boxes]");
  if (!context.AtLeast(boxes.dims[1], 1)) return context.ShapeError(0, "1 box or more");
  const int64_t most = context.attributes.Int("most");
  if (most < 0) return context.AttributeError("most", "0 or more");
  return std::vector<TensorType>{{DType::kI64, {scores.dims[0] * scores.dims[1] * Extent(most), Extent(3)}},
                                 CountType()};
}

// The edges of boxes [images, boxes, 4] by axis: low and high, each [images, 1, boxes].
struct Edges {
  Value low[2], high[2];
};

Edges EdgesOf(Expansion& e, Value boxes, bool center) {
  const std::vector<Extent> dims = e.type(boxes).dims;
  const auto column = [&](int64_t c) {
    const Value one = e.Add(
        "Narrow", {boxes},
        {{"axis", int64_t{2}}, {"start", std::vector<Extent>{Extent(c)}}, {"length", std::vector<Extent>{Extent(1)}}});
    return Term(e, e.Sized(one, {dims[0], Extent(1), dims[1]}));
  };
  Edges edges;
  for (int axis = 0; axis < 2; ++axis) {
    const Term a = column(axis), b = column(axis + 2);
    // A middle and a size, x before y; or two corners.
    edges.low[axis] = center ? (a - b * 0.5).value : a.Join("Min", b).value;
    edges.high[axis] = center ? (a + b * 0.5).value : a.Join("Max", b).value;
  }
  return edges;
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[1]).dims;
  const Extent &images = dims[0], &classes = dims[1], &count = dims[2];
  const int64_t most = node.attributes.Int("most");
  if (most == 0) {
    const Value none = e.Add("Expand", {IntegerOf(e, 0)}, {{"shape", node.results[0].dims}});
    return e.Finish({none, IntegerOf(e, 0)});
  }
  const Edges edges = EdgesOf(e, inputs[0], node.attributes.Bool("center"));
  const Term scores(e, inputs[1]);
  const Term over = scores.Join("Gt", scores.Like(node.attributes.Float("score_threshold")));
  const Term nothing = scores.Like(-kInfinity);
  const Value live = Term::Choose(over, scores, nothing).value;
  // One box of each class, all images at once; which it is, and whether there is one.
  const double threshold = node.attributes.Float("iou_threshold");
  const auto step = [&](Expansion& body, std::span<const Value> in) -> std::vector<Value> {
    const Term left(body, in[0]);
    const Term best(body, body.Add("ArgMax", {in[0]}, {{"axis", int64_t{2}}, {"keep_dim", true}}));
    const Term top = Term(body, body.Reduced("max", in[0], {2}));
    const Term found = top.Join("Gt", top.Like(-kInfinity));
    Term inside = left.Like(1), own = inside, other = inside;
    for (int axis = 0; axis < 2; ++axis) {
      const auto of_best = [&](Value all) {
        const Value wide = body.Add("Expand", {all}, {{"shape", dims}});
        return Term(body, body.Add("GatherElements", {wide, best.value}, {{"axis", int64_t{2}}}));
      };
      const Term low(body, in[1 + axis]), high(body, in[3 + axis]);
      const Term best_low = of_best(low.value), best_high = of_best(high.value);
      const Term overlap = high.Join("Min", best_high) - low.Join("Max", best_low);
      inside = inside * overlap.Join("Max", overlap.Like(0));
      own = own * (best_high - best_low);
      other = other * (high - low);
    }
    const Term all = own + other - inside;
    const Term covered = inside.Join("Gt", all * threshold);
    const Term numbers(body, body.Sized(body.Iota({count}), {Extent(1), Extent(1), count}));
    const Term gone = covered.Join("BitOr", numbers.Join("Eq", best));
    const Value after = Term::Choose(gone, left.Like(-kInfinity), left).value;
    return {after, body.Sized(best.value, {images, classes}), body.Sized(found.value, {images, classes})};
  };
  const std::vector<Value> made =
      e.Scan(Extent(most), {live}, {}, step, {edges.low[0], edges.low[1], edges.high[0], edges.high[1]});
  if (!e.ok()) return e.Finish({});
  // Steps come last: [images, classes, most].
  const Extent all = images * classes * Extent(most);
  const auto listed = [&](Value value) {
    return e.Sized(Term(e, value).Transposed({1, 2, 0}).value, {all, Extent(1)});
  };
  const auto number = [&](int64_t axis) {
    const Value numbers =
        e.Add("Iota", {},
              {{"shape", std::vector<Extent>{images, classes, Extent(most)}}, {"axis", axis}, {"dtype", DType::kI64}});
    return e.Sized(numbers, {all, Extent(1)});
  };
  const Value rows = e.Add("Concat", {number(0), number(1), listed(made[1])}, {{"axis", int64_t{1}}});
  const Kept kept = PlacesOfKept(e, e.Sized(listed(made[2]), {all}));
  return e.Finish({AtPlaces(e, rows, kept), kept.count});
}

Status Reference(RefContext& context) {
  const RefTensor &boxes = *context.operands[0], &scores = *context.operands[1];
  RefTensor& selected = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const bool center = attributes.Bool("center");
  const auto edge = [&](int64_t image, int64_t box, int axis, bool high) {
    const double a = boxes.At(std::vector<int64_t>{image, box, axis}),
                 b = boxes.At(std::vector<int64_t>{image, box, axis + 2});
    if (center) return high ? a + b / 2 : a - b / 2;
    return high ? std::max(a, b) : std::min(a, b);
  };
  const auto area = [&](int64_t image, int64_t a, int64_t b) {
    double product = 1;
    for (int axis = 0; axis < 2; ++axis) {
      const double size = std::min(edge(image, a, axis, true), edge(image, b, axis, true)) -
                          std::max(edge(image, a, axis, false), edge(image, b, axis, false));
      product *= std::max(0.0, size);
    }
    return product;
  };
  int64_t count = 0;
  for (int64_t image = 0; image < scores.dims[0]; ++image) {
    for (int64_t cls = 0; cls < scores.dims[1]; ++cls) {
      const auto score = [&](int64_t box) { return scores.At(std::vector<int64_t>{image, cls, box}); };
      std::vector<int64_t> order;
      for (int64_t box = 0; box < scores.dims[2]; ++box) {
        if (score(box) > attributes.Float("score_threshold")) order.push_back(box);
      }
      std::sort(order.begin(), order.end(),
                [&](int64_t a, int64_t b) { return score(a) > score(b) || (score(a) == score(b) && a < b); });
      std::vector<int64_t> taken;
      for (const int64_t box : order) {
        if (static_cast<int64_t>(taken.size()) == attributes.Int("most")) break;
        const bool covered = std::any_of(taken.begin(), taken.end(), [&](int64_t better) {
          const double inside = area(image, box, better);
          return inside >
                 attributes.Float("iou_threshold") * (area(image, box, box) + area(image, better, better) - inside);
        });
        if (covered) continue;
        taken.push_back(box);
        const int64_t row[] = {image, cls, box};
        for (int64_t c = 0; c < 3; ++c) selected.SetInteger(count * 3 + c, row[c]);
        ++count;
      }
    }
  }
  context.results[1].SetInteger(0, count);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_non_max_suppression() {
  static const OpDef* const op = Make({
      .name = "NonMaxSuppression",
      .doc = "the boxes of each image and class that no better one covers: image, class, box; and how many",
      .kind = OpKind::kComposite,
      .operands = {{.name = "boxes", .kind = OperandKind::kFloat, .shape = "[images, boxes, 4]"},
                   {.name = "scores", .kind = OperandKind::kFloat, .shape = "[images, classes, boxes]"}},
      .attributes = {{.name = "most", .kind = AttrKind::kInt, .doc = "boxes of an image and class"},
                     {.name = "iou_threshold", .kind = AttrKind::kFloat, .default_value = 0.0},
                     {.name = "score_threshold", .kind = AttrKind::kFloat, .default_value = -1e30},
                     {.name = "center", .kind = AttrKind::kBool, .default_value = false}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 0,
      .onnx = "NonMaxSuppression",
      .examples = {{{"f32[2, 17, 4]", "f32[2, 3, 17]"}, {{"most", int64_t{5}}, {"iou_threshold", 0.5}}},
                   {{"f32[1, S, 4]", "f32[1, 2, S]"}, {{"most", int64_t{3}}, {"center", true}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
