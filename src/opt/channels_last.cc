// Convolutions that work on each other's images keep them with channels last, [N, s.., C]: rows of windows are then
// runs of memory, weights are panels that were packed once, and what follows a convolution, a bias by channel and the
// image of a residual, is element by element over rows of its product. A convolution by itself stays as it is, for
// turning its image costs more than that saves: unless it is of bytes, its weights are more than the image, or what
// channels first cost is: windows that are gathered element by element, and places that fill no panels of columns.
//
//   %2 = Conv(%0, %1)      =>   %2 = Transpose(%0) {perm = [0, 2, 3, 1]}       once for each image that comes in
//   %3 = Relu(%2)               %3 = Conv(%2, %1) {channels_last = true}
//   %5 = Conv(%3, %4)           %4 = Relu(%3)
//   ..                          ..
//                               %9 = Transpose(%8) {perm = [0, 3, 1, 2]}       once for each that goes out
//
// Images are what convolutions, pools, joins and reductions (OpDef::channels_last) and elementwise ops read and give to
// each other: sets of such ops that meet are turned together, where they have a few convolutions.

#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "ir/product.h"
#include "ir/spelled_out.h"
#include "ir/window.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

constexpr int kTogether = 3;    // convolutions that make it worth while
constexpr int64_t kLong = 256;  // elements of the windows of one or two, which panels of weights are worth while for
// Multiplications and additions that take as long as an element of a window that is gathered, one whose neighbours lie
// apart, and an element of an image that is turned; fitted on Zen 4.
constexpr double kGathered = 4, kGatheredApart = 6, kTurned = 18;
constexpr int64_t kFewColumns = 8;  // at most: a product of so few needs no panels of them

// What the convolutions of a group have.
struct Convolutions {
  int count = 0;
  int64_t weights = 0;                // elements
  std::optional<int64_t> images = 0;  // that go in and come out; none where sizes are symbols
  double saved = 0;                   // multiplications and additions that take as long as what channels first cost
  bool long_windows = true;
  int of_bytes = 0;  // whose images take little time to turn, but for those of groups

  bool WorthTurning() const {
    return count >= kTogether || of_bytes > 0 ||
           (long_windows && images && (weights >= *images || saved > kTurned * static_cast<double>(*images)));
  }
};

class Layout {
 public:
  Layout(const ir::Graph& graph, const LayoutOptions& options)
      : graph_(graph),
        options_(options),
        once_(OncePerBinding(graph)),
        attributes_(graph.nodes().size()),
        takes_part_(graph.nodes().size()),
        group_(graph.nodes().size()),
        rewriter_(graph, "channels_last", [&](const ir::Graph& body) { return ChannelsLast(body, options, nullptr); }) {
    std::iota(group_.begin(), group_.end(), 0);
    for (size_t n = 0; n < takes_part_.size(); ++n) takes_part_[n] = TakesPart(static_cast<int>(n));
    for (size_t n = 0; n < takes_part_.size(); ++n) {
      if (takes_part_[n]) JoinImages(static_cast<int>(n));
    }
  }

  StatusOr<ir::Graph> Run(FusionReport* report) {
    std::map<int, Convolutions> convolutions;  // by group
    int all = 0;
    for (int n = 0; n < rewriter_.size(); ++n) {
      if (!ir::IsConvolution(graph_.node(n))) continue;
      ++all;
      if (takes_part_[n]) Count(n, convolutions[Group(n)]);
    }
    int turned = 0;
    for (int n = 0; n < rewriter_.size(); ++n) {
      const auto found = takes_part_[n] ? convolutions.find(Group(n)) : convolutions.end();
      const bool enough = found != convolutions.end() && (options_.always || found->second.WorthTurning());
      if (!enough && !(options_.always && takes_part_[n] && attributes_[n])) {
        QUERN_RETURN_IF_ERROR(Keep(n));
        continue;
      }
      QUERN_RETURN_IF_ERROR(Turn(n));
      turned += ir::IsConvolution(graph_.node(n)) ? 1 : 0;
    }
    for (const Value& output : graph_.outputs) QUERN_RETURN_IF_ERROR(First(output).status());
    if (report != nullptr && all > 0) {
      report->layouts.push_back(
          absl::StrFormat("%d of %d convolutions with channels last, %d images turned", turned, all, transposes_));
    }
    return rewriter_.Finish();
  }

 private:
  const ir::TensorType& Type(Value value) const { return graph_.type(value); }
  static bool IsImage(const ir::TensorType& type) { return type.rank() >= 3 && type.rank() <= 5; }

  // Whether the node has a form with channels last.
  bool TakesPart(int n) {
    const ir::Node& node = graph_.node(n);
    if (node.inputs.empty() || node.results.size() != 1 || once_[n]) return false;
    const ir::TensorType& x = Type(node.inputs[0]);
    if (node.op->channels_last != nullptr) {
      if (!IsImage(x) || (!ir::IsShortFloat(x.dtype) && !ir::IsByte(x.dtype))) return false;
      if (ir::IsConvolution(node) && !once_[node.inputs[1].node]) return false;
      std::vector<ir::TensorType> operands;
      for (const Value& input : node.inputs) operands.push_back(Type(input));
      attributes_[n] = node.op->channels_last(node, operands);
      return attributes_[n].has_value();
    }
    return node.op->kind == ir::OpKind::kElementwise && IsImage(node.results[0]);
  }

  void Count(int n, Convolutions& all) const {
    const ir::Node& node = graph_.node(n);
    const ir::TensorType& weights = Type(node.inputs[1]);
    ++all.count;
    all.of_bytes += ir::IsByte(weights.dtype) && node.attributes.Int("groups") == 1 ? 1 : 0;
    if (weights.elements().is_constant()) all.weights += weights.elements().constant();
    all.long_windows &= weights.elements().is_constant() && weights.dims[0].is_constant() &&
                        weights.elements().constant() >= kLong * weights.dims[0].constant();
    const Extent images = Type(node.inputs[0]).elements() + node.results[0].elements();
    all.images = all.images && images.is_constant() ? std::optional(*all.images + images.constant()) : std::nullopt;
    all.saved += CostOfChannelsFirst(node, weights);
  }

  // What a Conv takes longer with channels first, in multiplications and additions.
  static double CostOfChannelsFirst(const ir::Node& node, const ir::TensorType& weights) {
    const ir::TensorType& result = node.results[0];
    const bool lines = node.op == ir::FindConvolution() && weights.rank() > 3 && node.attributes.Int("groups") == 1;
    if (!lines || !weights.elements().is_constant() || !result.elements().is_constant()) return 0;
    if (weights.elements() == Extent(0) || result.elements() == Extent(0)) return 0;
    const int64_t channels = weights.dims[0].constant(), images = result.dims[0].constant(),
                  places = result.elements().constant() / channels / images;
    const auto computed = [](int64_t columns) {
      const int64_t panels = CeilDiv(columns, ir::kPanelColumns);
      return static_cast<double>(columns <= kFewColumns ? columns : panels * ir::kPanelColumns);
    };
    const double first = static_cast<double>(channels) * computed(places),
                 last = computed(channels) * static_cast<double>(places);
    const ir::Window of = ir::WindowOf(node.attributes, weights);
    const double gathered = of.IsTrivial() ? 0 : of.strides.back() == 1 ? kGathered : kGatheredApart;
    return static_cast<double>(images * (weights.elements().constant() / channels)) *
           (first - last + gathered * static_cast<double>(places));
  }

  // The operands that are images as the result is, or what it is made of.
  std::vector<Value> Images(int n) const {
    const ir::Node& node = graph_.node(n);
    if (attributes_[n]) {
      const bool all = node.op->operands[0].variadic;
      return {node.inputs.begin(), all ? node.inputs.end() : node.inputs.begin() + 1};
    }
    std::vector<Value> images;
    for (const Value& input : node.inputs) {
      if (Type(input).rank() == node.results[0].rank()) images.push_back(input);
    }
    return images;
  }

  void JoinImages(int n) {
    for (const Value& image : Images(n)) {
      const bool made = takes_part_[image.node] && GivesImage(image.node);
      if (made) group_[Group(image.node)] = Group(n);
    }
  }

  // Whether the result has the dimensions of operand 0, not what is left of them.
  bool GivesImage(int n) const {
    const ir::Node& node = graph_.node(n);
    return !attributes_[n] || node.results[0].rank() == Type(node.inputs[0]).rank();
  }

  int Group(int n) {
    while (group_[n] != n) n = group_[n] = group_[group_[n]];
    return n;
  }

  Status Keep(int n) {
    for (const Value& input : graph_.node(n).inputs) QUERN_RETURN_IF_ERROR(First(input).status());
    QUERN_RETURN_IF_ERROR(rewriter_.Copy(n));
    for (int r = 0; r < static_cast<int>(graph_.node(n).results.size()); ++r) first_[{n, r}] = rewriter_.Now({n, r});
    return absl::OkStatus();
  }

  Status Turn(int n) {
    const ir::Node& node = graph_.node(n);
    const std::vector<Value> images = Images(n);
    std::vector<Value> inputs;
    for (const Value& input : node.inputs) {
      const bool image = !attributes_[n] || std::find(images.begin(), images.end(), input) != images.end();
      QUERN_ASSIGN(const Value operand, image ? Operand(n, input) : First(input));
      inputs.push_back(operand);
    }
    QUERN_ASSIGN(const Value made, rewriter_.Add(n, node.op->name, std::move(inputs),
                                                 attributes_[n] ? *attributes_[n] : node.attributes));
    if (GivesImage(n)) {
      last_[{n, 0}] = made;
    } else {
      first_[{n, 0}] = made;
      rewriter_.Replace({n, 0}, made);
    }
    return absl::OkStatus();
  }

  // An operand of node n as it is broadcast to an image with channels last.
  StatusOr<Value> Operand(int n, Value old) {
    const auto rank = static_cast<size_t>(attributes_[n] ? Type(old).rank() : graph_.node(n).results[0].rank());
    const std::vector<Extent>& dims = Type(old).dims;
    if (dims.size() == rank) return Last(n, old);
    if (dims.empty()) return First(old);
    QUERN_ASSIGN(const Value first, First(old));
    std::vector<Extent> all(rank - dims.size(), Extent(1));
    all.insert(all.end(), dims.begin(), dims.end());
    const ir::MakeNode make = rewriter_.Maker(n);
    QUERN_ASSIGN(const Value wide, ir::MakeReshaped(make, first, all));
    return Turned(n, wide, all);
  }

  // `value` with its channels last; a Reshape where nothing else moves.
  StatusOr<Value> Turned(int n, Value value, const std::vector<Extent>& dims) {
    const ir::MakeNode make = rewriter_.Maker(n);
    const std::vector<int64_t> perm = ir::LastFromFirst(dims.size());
    const bool still = dims[1] == Extent(1) ||
                       std::all_of(dims.begin() + 2, dims.end(), [](const Extent& d) { return d == Extent(1); });
    if (!still) {
      ++transposes_;
      return ir::MakePermuted(make, value, perm);
    }
    std::vector<Extent> turned;
    for (const int64_t d : perm) turned.push_back(dims[d]);
    return ir::MakeReshaped(make, value, turned);
  }

  StatusOr<Value> Last(int n, Value old) {
    if (const auto found = last_.find(old); found != last_.end()) return found->second;
    QUERN_ASSIGN(const Value first, First(old));
    QUERN_ASSIGN(const Value last, Turned(n, first, Type(old).dims));
    last_[old] = last;
    return last;
  }

  // The value as it was; the rewriter knows it from here on.
  StatusOr<Value> First(Value old) {
    if (const auto found = first_.find(old); found != first_.end()) return found->second;
    const Value last = last_.at(old);
    QUERN_ASSIGN(const Value first,
                 ir::MakePermuted(rewriter_.Maker(old.node), last, ir::FirstFromLast(Type(old).dims.size())));
    ++transposes_;
    first_[old] = first;
    rewriter_.Replace(old, first);
    return first;
  }

  const ir::Graph& graph_;
  const LayoutOptions& options_;
  const std::vector<bool> once_;
  std::vector<std::optional<ir::Attributes>> attributes_;  // of OpDef::channels_last, by node
  std::vector<bool> takes_part_;
  std::vector<int> group_;               // by node: another of its group, or itself
  std::map<Value, Value> first_, last_;  // old values as they are now
  int transposes_ = 0;
  Rewriter rewriter_;
};

}  // namespace

StatusOr<ir::Graph> ChannelsLast(const ir::Graph& graph, const LayoutOptions& options, FusionReport* report) {
  return Layout(graph, options).Run(report);
}

}  // namespace quern::opt
