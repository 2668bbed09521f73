#include "check/reduce.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "check/edit_graph.h"
#include "check/region_graph.h"
#include "check/value.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

using ir::Value;

class Reducer {
 public:
  Reducer(Reproduction start, const std::function<bool(const Reproduction&)>& fails, const ReduceOptions& options)
      : best_(std::move(start)), fails_(fails), options_(options) {}

  Reproduction Run() {
    InlineAll();
    for (bool smaller = true; smaller && attempts_ < options_.attempts;) {
      smaller = DropOutputs();
      smaller |= KeepOneNode();
      smaller |= LowerOutputs();
      smaller |= CutAbove();
      smaller |= Bypass();
      smaller |= HalveSizes();
      smaller |= SimplifyValues();
    }
    return std::move(best_);
  }

 private:
  const ir::Graph& graph() const { return best_.graph; }
  int size() const { return static_cast<int>(graph().nodes().size()); }
  std::string NameOf(int n) const { return absl::StrCat("%", n, " ", graph().node(n).op->name); }

  // Takes the candidate in the place of the best when it fails too.
  bool Try(StatusOr<Reproduction> candidate, const std::string& what) {
    if (!candidate.ok() || attempts_ >= options_.attempts || !Check(*candidate).ok()) return false;
    ++attempts_;
    if (!fails_(*candidate)) return false;
    best_ = *std::move(candidate);
    evaluated_ = false;
    int leaves = 0;
    size_t bytes = 0;
    for (const ir::Node& node : graph().nodes()) leaves += ir::IsLeaf(node);
    for (const auto& [name, value] : best_.bytes) bytes += value.size();
    if (options_.log)
      options_.log(absl::StrCat(size() - leaves, " nodes, ", leaves, " leaves, ", bytes, " bytes: ", what));
    return true;
  }
  bool TryCut(const Cut& cut, const std::string& what) { return Try(ApplyCut(best_, cut, Values()), what); }

  // What the interpreter has for the best; null where it has nothing.
  const Evaluation* Values() {
    if (!evaluated_) {
      evaluated_ = true;
      values_ = absl::UnknownError("");
      StatusOr<ir::Feeds> feeds = FeedsOf(graph(), best_.sizes, best_.bytes);
      const bool regions = std::any_of(graph().nodes().begin(), graph().nodes().end(),
                                       [](const ir::Node& node) { return ir::IsRegion(node); });
      if (feeds.ok() && !regions) {
        feeds_ = *std::move(feeds);
        values_ = Evaluate(graph(), best_.sizes, feeds_);
      }
    }
    return values_.ok() ? &*values_ : nullptr;
  }

  void InlineAll() {
    Reproduction candidate = best_;
    StatusOr<ir::Graph> inlined = InlineRegions(best_.graph);
    if (!inlined.ok() || inlined->nodes().size() == best_.graph.nodes().size()) return;
    candidate.graph = *std::move(inlined);
    Try(std::move(candidate), "regions opened");
  }

  bool DropOutputs() {
    const std::vector<Value> outputs = graph().outputs;
    if (outputs.size() < 2) return false;
    for (const Value& output : outputs) {
      if (TryCut({{output}, {}, {}}, absl::StrCat("only output ", NameOf(output.node)))) return true;
    }
    bool smaller = false;
    for (size_t o = graph().outputs.size(); o-- > 0 && graph().outputs.size() > 1;) {
      std::vector<Value> rest = graph().outputs;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(o));
      smaller |= TryCut({rest, {}, {}}, absl::StrCat("without output ", o));
    }
    return smaller;
  }

  int Ops() const {
    return static_cast<int>(std::count_if(graph().nodes().begin(), graph().nodes().end(),
                                          [](const ir::Node& node) { return !ir::IsLeaf(node); }));
  }

  // Operands that are computed become Inputs.
  std::set<Value> Computed(const std::vector<Value>& values) const {
    std::set<Value> computed;
    for (const Value& value : values) {
      if (!ir::IsLeaf(graph().node(value.node))) computed.insert(value);
    }
    return computed;
  }

  bool KeepOneNode() {
    if (Ops() < 2) return false;
    for (int n = size(); n-- > 0;) {
      const ir::Node& node = graph().node(n);
      if (ir::IsLeaf(node)) continue;
      Cut cut;
      for (int r = 0; r < static_cast<int>(node.results.size()); ++r) cut.outputs.push_back({n, r});
      cut.fed = Computed(node.inputs);
      if (TryCut(cut, absl::StrCat(NameOf(n), " alone"))) return true;
    }
    return false;
  }

  // An output becomes what it was computed from.
  bool LowerOutputs() {
    bool smaller = false;
    for (bool lowered = true; lowered;) {
      lowered = false;
      for (size_t o = 0; o < graph().outputs.size() && !lowered; ++o) {
        const int n = graph().outputs[o].node;
        std::vector<Value> outputs;
        for (const Value& output : graph().outputs) {
          if (output.node != n) outputs.push_back(output);
        }
        for (const Value& input : Computed(graph().node(n).inputs)) {
          if (std::find(outputs.begin(), outputs.end(), input) == outputs.end()) outputs.push_back(input);
        }
        lowered = !outputs.empty() && !ir::IsLeaf(graph().node(n)) &&
                  TryCut({outputs, {}, {}}, absl::StrCat("without ", NameOf(n)));
      }
      smaller |= lowered;
    }
    return smaller;
  }

  bool CutAbove() {
    bool smaller = false;
    for (int n = size() - 1; n >= 0; --n) {
      if (n >= size() || ir::IsLeaf(graph().node(n))) continue;
      const bool output = std::any_of(graph().outputs.begin(), graph().outputs.end(),
                                      [&](const Value& value) { return value.node == n; });
      if (output) continue;
      Cut cut{graph().outputs, {}, {}};
      for (int r = 0; r < static_cast<int>(graph().node(n).results.size()); ++r) cut.fed.insert({n, r});
      if (!TryCut(cut, absl::StrCat(NameOf(n), " becomes an input"))) continue;
      smaller = true;
      n = size();
    }
    return smaller;
  }

  bool Bypass() {
    bool smaller = false;
    for (int n = size() - 1; n >= 0; --n) {
      if (n >= size() || ir::IsLeaf(graph().node(n)) || graph().node(n).results.size() != 1) continue;
      const std::vector<Value> inputs = graph().node(n).inputs;
      for (const Value& input : inputs) {
        if (graph().type(input) != graph().type({n, 0})) continue;
        if (!TryCut({graph().outputs, {{{n, 0}, input}}, {}}, absl::StrCat("around ", NameOf(n)))) continue;
        smaller = true;
        n = size();
        break;
      }
    }
    return smaller;
  }

  // Halves, then takes one off: most sizes go to the smallest that still fails in a few steps.
  template <typename Shrunk>
  bool Smaller(int64_t size, int64_t least, const std::string& what, const Shrunk& shrunk) {
    for (const int64_t smaller : {least, size / 2, size - 1}) {
      if (smaller >= least && smaller < size && Try(shrunk(smaller), absl::StrCat(what, size, " becomes ", smaller)))
        return true;
    }
    return false;
  }

  bool HalveSizes() {
    bool any = false;
    for (bool changed = true; changed && attempts_ < options_.attempts;) {
      changed = false;
      const Binding sizes = best_.sizes;
      for (const auto& [symbol, size] : sizes) {
        const int64_t least = std::max<int64_t>(1, graph().symbols.at(symbol).low);
        changed |= Smaller(size, least, absl::StrCat(symbol, " "),
                           [&, s = symbol](int64_t smaller) { return Shrink(best_, s, smaller); });
      }
      std::set<int64_t> constants;
      for (const ir::Node& node : graph().nodes()) {
        if (!ir::IsLeaf(node)) continue;
        for (const Extent& dim : node.results[0].dims) {
          if (dim.is_constant() && dim.constant() > 1) constants.insert(dim.constant());
        }
      }
      for (const int64_t size : constants) {
        changed |= Smaller(size, 1, "", [&](int64_t smaller) { return Shrink(best_, size, smaller); });
      }
      for (int n = 0; n < size() && !changed; ++n) {
        if (!ir::IsLeaf(graph().node(n))) continue;
        for (int d = 0; d < graph().node(n).results[0].rank(); ++d) {
          const Extent dim = graph().node(n).results[0].dims[d];
          if (!dim.is_constant() || dim.constant() < 2) continue;
          changed |= Smaller(dim.constant(), 1, absl::StrCat(NameOf(n), " "),
                             [&](int64_t smaller) { return Shrink(best_, dim.constant(), smaller, n, d); });
        }
      }
      any |= changed;
    }
    return any;
  }

  bool SimplifyValues() {
    bool any = false;
    for (int n = 0; n < size(); ++n) {
      const ir::Node& node = graph().node(n);
      if (!ir::IsLeaf(node) || ir::IsConstant(node)) continue;
      const std::string name = node.attributes.String("name");
      const DType dtype = node.results[0].dtype;
      const std::vector<uint8_t>& now = best_.bytes.at(name);
      Reproduction zeros = best_;
      zeros.bytes[name].assign(now.size(), 0);
      if (zeros.bytes[name] == now) continue;
      if (Try(zeros, absl::StrCat(name, " is zeros"))) {
        any = true;
        continue;
      }
      if (IsBlock(dtype)) continue;
      Reproduction ones = best_;
      const StatusOr<std::vector<uint8_t>> bytes =
          Encode({dtype, {}, std::vector<double>(now.size() / ScalarBytes(dtype), 1)});
      if (!bytes.ok() || *bytes == now) continue;
      ones.bytes[name] = *bytes;
      any |= Try(ones, absl::StrCat(name, " is ones"));
    }
    return any;
  }

  Reproduction best_;
  const std::function<bool(const Reproduction&)>& fails_;
  const ReduceOptions& options_;
  int attempts_ = 0;
  bool evaluated_ = false;
  ir::Feeds feeds_;
  StatusOr<Evaluation> values_ = absl::UnknownError("");
};

}  // namespace

Reproduction Reduce(Reproduction start, const std::function<bool(const Reproduction&)>& fails,
                    const ReduceOptions& options) {
  return Reducer(std::move(start), fails, options).Run();
}

}  // namespace quern::check
