#include "kir/cost.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "kir/cost_traffic.h"
#include "kir/cost_value.h"
#include "kir/parts.h"
#include "kir/symbols.h"
#include "kir/tile_op.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// Float operations of each operator, in the order of Op.
constexpr int8_t kFlops[] = {
    0, 0, 0, 1, 1, 1, 1,                       // neg abs not floor ceil trunc round
    1, 1, 1, 1, 1,                             // exp exp2 expm1 log log2
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1,              // log1p sin cos tan atan tanh erf sqrt rsqrt sigmoid
    1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1,  // add sub mul div mod min max and or xor shl shr pow atan2
    0, 0, 0, 0,                                // eq ne lt le
    0, 2,                                      // select fma
};
static_assert(std::size(kFlops) == kOpCount);

// Trips of loops that are looked at one by one; beyond, loops are taken by their ends.
constexpr int64_t kMostTrips = int64_t{1} << 18;

// The names that sizes and control depend on: bounds, conditions, starts and extents of slices, and what those are made
// of.
class ControlNames {
 public:
  explicit ControlNames(const Kernel& kernel) {
    for (const GridDim& dim : kernel.grid) Use(dim.low), Use(dim.high);
    Visit(kernel.body);
    std::set<size_t> followed;
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t i = lets_.size(); i-- > 0;) {  // most depend on those before them
        const auto [name, value] = lets_[i];
        if (!names_.contains(name) || !followed.insert(i).second) continue;
        Use(value);
        grown = true;
      }
    }
  }
  bool contains(std::string_view name) const { return names_.contains(name); }

 private:
  void Use(const ExprRef& expr) { Look(expr, true); }

  // `control`: its names count; else only what reductions inside it run over.
  void Look(const ExprRef& expr, bool control) {
    ForEachExpr(expr, [&](const ExprRef& node) {
      if (const auto* name = std::get_if<NameRef>(&node->node); name != nullptr && control) names_.insert(name->name);
      const auto* reduce = std::get_if<Reduce>(&node->node);
      if (reduce == nullptr) return;
      if (!control) Use(reduce->low), Use(reduce->high);
      lets_.insert(lets_.end(), reduce->lets.begin(), reduce->lets.end());
    });
  }

  void Visit(const Slice& slice) {
    for (const SliceDim& dim : slice.dims) {
      if (dim.extent != nullptr) Use(dim.start), Use(dim.extent);
    }
  }

  void Visit(const Block& block) {
    for (const StmtRef& stmt : block) {
      const auto named = [&](const auto& n) { lets_.emplace_back(n.name, n.value), Look(n.value, false); };
      std::visit(Overloaded{
                     [&](const Loop& n) { Use(n.low), Use(n.high); },
                     [&](const If& n) { Use(n.condition); },
                     [&](const Let& n) { named(n); },
                     [&](const Var& n) { named(n); },
                     [&](const Assign& n) { named(n); },
                     [&](const Store& n) { Look(n.value, false); },
                     [](const Alloc&) {},
                     [](const Tile&) {},
                     [&](const TileCall& n) {
                       for (const Slice& s : n.operands) Visit(s);
                     },
                     [&](const Map& n) {
                       for (const ExprRef& e : n.extents) Use(e);
                     },
                     [&](const Pack& n) { Visit(n.dst), Visit(n.src); },
                     [](const Prefetch&) {},
                     [](const Barrier&) {},
                     [&](const Copy& n) { Visit(n.dst), Visit(n.src); },
                     [&](const Pipeline& n) { Use(n.low), Use(n.high); },
                     [&](const Shuffle& n) { Look(n.value, false); },
                 },
                 stmt->node);
      for (const Block* body : Bodies(*stmt)) Visit(*body);
    }
  }

  std::set<std::string, std::less<>> names_;
  std::vector<std::pair<std::string, ExprRef>> lets_;
};

class Walker {
 public:
  Walker(const Kernel& kernel, const Binding& binding) : kernel_(kernel), control_(kernel) {
    for (const auto& [name, value] : binding) values_[name] = CostValue::Exact(value);
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const Param& param = kernel.params[p];
      Buffer& buffer = buffers_[param.name];
      buffer = {static_cast<int>(p), Dims(param.type)};
    }
    cost_.params.resize(kernel.params.size());
    cost_.origins.resize(kernel.origins.size());
  }

  StatusOr<KernelCost> Run() {
    Grid(0, 1);
    QUERN_RETURN_IF_ERROR(status_);
    for (size_t p = 0; p < kernel_.params.size(); ++p) {
      const Param& param = kernel_.params[p];
      const std::vector<int64_t>& dims = buffers_[param.name].dims;
      cost_.params[p].read = traffic_.Bytes({static_cast<int>(p), false}, param.type, dims);
      cost_.params[p].written = traffic_.Bytes({static_cast<int>(p), true}, param.type, dims);
    }
    return std::move(cost_);
  }

 private:
  struct Buffer {
    int param = -1;  // or -1: scratch or a tile
    std::vector<int64_t> dims;
  };
  std::vector<int64_t> Dims(const BufferType& type) {
    std::vector<int64_t> dims;
    Binding binding;
    for (const auto& [name, value] : values_) {
      if (value.constant()) binding[name] = value.value;
    }
    for (const Extent& dim : type.dims) {
      const StatusOr<int64_t> size = dim.Evaluate(binding);
      if (!size.ok() && status_.ok()) status_ = size.status();
      dims.push_back(size.ok() ? *size : 0);
    }
    return dims;
  }

  // Runs body(weight) for the trips of a loop: each of them, or the first for all and the last for its place alone.
  template <typename Body>
  void Loops(std::string_view index, const CostValue& low, const CostValue& high, int64_t step, double weight,
             const Body& body) {
    const int64_t first = low.known ? low.value : low.low, end = high.known ? high.value : high.high;
    const bool sure = low.known && high.known;
    if (first <= -kFarIndex || end >= kFarIndex) return Unknown(index, weight, body);
    if (!sure) cost_.estimate = true;
    const int64_t trips = end > first ? (end - first + step - 1) / step : 0;
    if (trips == 0) return;
    const size_t depth = frames_.size();
    QUERN_CHECK(depth < 64);
    Frame frame{trips, 0, control_.contains(index), (uint64_t{1} << depth) | low.loops | high.loops};
    if (frame.each && trips_ + trips > kMostTrips) frame.each = false, cost_.estimate = true;
    frames_.push_back(frame);
    CostValue& value = values_[std::string(index)];
    const auto run = [&](int64_t trip, double trip_weight) {
      ++trips_;
      frames_[depth].trip = trip;
      const int64_t at = first + trip * step;
      value = {sure, sure, at, at, at, sure ? low.step : 1, frame.loops};
      if (!frame.each && trips > 1) {
        value.low = first, value.high = first + (trips - 1) * step;
        value.step = std::gcd(value.step, step);
      }
      body(trip_weight);
    };
    if (frame.each) {
      for (int64_t trip = 0; trip < trips; ++trip) run(trip, weight);
    } else {
      run(0, weight * static_cast<double>(trips));
      if (trips > 1) run(trips - 1, 0);
    }
    frames_.resize(depth);
  }

  // A loop whose bounds are data: one trip, anywhere.
  template <typename Body>
  void Unknown(std::string_view index, double weight, const Body& body) {
    cost_.estimate = true;
    values_[std::string(index)] = {};
    body(weight);
  }

  void Grid(size_t dim, double weight) {
    if (dim == kernel_.grid.size()) return Walk(kernel_.body, weight);
    const GridDim& g = kernel_.grid[dim];
    const CostValue low = Eval(g.low, 0), high = Eval(g.high, 0);
    Loops(g.index, low, high, g.step, weight, [&](double w) { Grid(dim + 1, w); });
  }

  void Walk(const Block& block, double weight) {
    const int outer = origin_;
    for (const StmtRef& stmt : block) {
      origin_ = stmt->origin >= 0 ? stmt->origin : outer;  // what has none of its own belongs to what is around it
      std::visit(Overloaded{
                     [&](const Loop& n) {
                       const CostValue low = Eval(n.low, weight), high = Eval(n.high, weight);
                       Loops(n.index, low, high, n.step, weight, [&](double w) { Walk(n.body, w); });
                     },
                     [&](const If& n) {
                       const CostValue condition = Eval(n.condition, weight);
                       if (!condition.known) cost_.estimate = true;
                       if (!condition.known || condition.value != 0) Walk(n.then_body, weight);
                       if (!condition.known || condition.value == 0) Walk(n.else_body, weight);
                     },
                     [&](const Let& n) { values_[n.name] = Eval(n.value, weight); },
                     [&](const Var& n) { Eval(n.value, weight), values_[n.name] = {}; },
                     [&](const Assign& n) { Eval(n.value, weight); },
                     [&](const Store& n) {
                       Eval(n.value, weight);
                       Access(stmt.get(), n.buffer, EvalIndex(n.index, weight), true);
                     },
                     [&](const Alloc& n) { buffers_[n.name] = {-1, Dims(n.type)}; },
                     [&](const Tile& n) { buffers_[n.name] = {-1, Dims(n.type)}; },
                     [&](const TileCall& n) { Call(n, weight); },
                     [&](const Map& n) { WalkMap(n, 0, weight); },
                     [&](const Pack& n) {
                       Cover(&n.src, n.src, false);
                       Cover(&n.dst, n.dst, true);
                     },
                     [](const Prefetch&) {},
                     [](const Barrier&) {},
                     [&](const Copy& n) {
                       Cover(&n.src, n.src, false);
                       Cover(&n.dst, n.dst, true);
                     },
                     [&](const Pipeline& n) {
                       const CostValue low = Eval(n.low, weight), high = Eval(n.high, weight);
                       Loops(n.index, low, high, n.step, weight, [&](double w) { Walk(n.fetch, w), Walk(n.use, w); });
                     },
                     [&](const Shuffle& n) { Eval(n.value, weight), values_[n.name] = {}; },
                 },
                 stmt->node);
    }
    origin_ = outer;
  }

  void Count(double flops, double bf16_ops = 0, double int8_ops = 0) {
    cost_.flops += flops;
    cost_.bf16_ops += bf16_ops;
    cost_.int8_ops += int8_ops;
    if (origin_ >= 0 && origin_ < static_cast<int>(cost_.origins.size()))
      cost_.origins[origin_] += flops + bf16_ops + int8_ops;
  }

  void WalkMap(const Map& map, size_t index, double weight) {
    if (index == map.indices.size()) return Walk(map.body, weight);
    const CostValue extent = Eval(map.extents[index], 0);
    Loops(map.indices[index], CostValue::Exact(0), extent, 1, weight, [&](double w) { WalkMap(map, index + 1, w); });
  }

  // The live sizes of a tile op: what its slices hold inside their buffers, else what its tiles hold.
  void Call(const TileCall& call, double weight) {
    const TileOp* op = FindTileOp(call.op);
    if (op == nullptr || op->work == nullptr) {
      status_ = absl::InvalidArgumentError(absl::StrFormat("tile op %s has no cost", call.op));
      return;
    }
    std::map<std::string_view, int64_t> sizes;
    const auto at_most = [&](std::string_view name, int64_t size) {
      const auto [it, added] = sizes.emplace(name, size);
      if (!added) it->second = std::min(it->second, size);
    };
    for (size_t o = 0; o < call.operands.size() && o < op->operands.size(); ++o) {
      const std::vector<int64_t> live = Cover(&call.operands[o], call.operands[o], false);
      const std::vector<const char*>& dims = op->operands[o].dims;
      // The last dimensions of the slice are the operand's; points before them are not in `live`.
      for (size_t d = 0; d < std::min(dims.size(), live.size()); ++d) {
        const std::string_view name = dims[dims.size() - 1 - d];
        if (!name.empty()) at_most(name, live[live.size() - 1 - d]);
      }
    }
    for (size_t t = 0; t < call.tiles.size() && t < op->tiles.size(); ++t) {
      const std::vector<int64_t>& dims = buffers_[call.tiles[t]].dims;
      for (size_t d = 0; d < std::min(dims.size(), op->tiles[t].dims.size()); ++d)
        at_most(op->tiles[t].dims[d], dims[d]);
    }
    std::vector<int64_t> ordered;
    for (const char* size : op->sizes) ordered.push_back(sizes.contains(size) ? sizes[size] : 1);
    const TileWork work = op->work(ordered);
    Count(weight * work.flops, weight * work.bf16_ops, weight * work.int8_ops);
  }

  // Notes an access to a slice; the sizes of its ranges, clipped to the buffer.
  std::vector<int64_t> Cover(const void* site, const Slice& slice, bool write) {
    const Buffer& buffer = buffers_[slice.buffer];
    std::vector<Span> spans;
    std::vector<int64_t> live;
    for (size_t d = 0; d < buffer.dims.size(); ++d) {
      const SliceDim dim = d < slice.dims.size() ? slice.dims[d] : SliceDim{};
      if (dim.start == nullptr) {
        spans.push_back({CostValue::Exact(0), buffer.dims[d]});
        live.push_back(buffer.dims[d]);
        continue;
      }
      const CostValue start = Eval(dim.start, 0);
      if (dim.extent == nullptr) {
        spans.push_back({start, 1});
        continue;
      }
      const CostValue extent = Eval(dim.extent, 0);
      int64_t size = extent.known ? extent.value : std::min(extent.high, buffer.dims[d]);
      if (start.known) size = std::min(start.value + size, buffer.dims[d]) - std::max<int64_t>(start.value, 0);
      size = std::max<int64_t>(size, 0);
      if (!extent.known || !start.known) cost_.estimate = true;
      spans.push_back({start, size});
      live.push_back(size);
    }
    Access(site, slice.buffer, spans, write);
    return live;
  }

  std::vector<Span> EvalIndex(const Index& index, double weight) {
    std::vector<Span> spans;
    for (const ExprRef& i : index) spans.push_back({Eval(i, weight), 1});
    return spans;
  }

  void Access(const void* node, const std::string& name, const std::vector<Span>& spans, bool write) {
    const auto found = buffers_.find(name);
    if (found == buffers_.end() || found->second.param < 0) return;
    const Buffer& buffer = found->second;
    if (traffic_.Note(node, {buffer.param, write}, spans, buffer.dims, frames_)) cost_.estimate = true;
  }

  // Counts the operations of an expression, notes its loads, and gives its value where it is an index.
  CostValue Eval(const ExprRef& expr, double weight) {
    return std::visit(
        Overloaded{
            [&](const Const& n) { return IsFloat(expr->dtype) ? CostValue{} : CostValue::Exact(n.integer); },
            [&](const NameRef& n) {
              const auto found = values_.find(n.name);
              return found == values_.end() ? CostValue{} : found->second;
            },
            [&](const Load& n) {
              if (n.otherwise != nullptr) Eval(n.otherwise, weight);
              return LoadFrom(expr.get(), n.buffer, EvalIndex(n.index, weight));
            },
            [&](const Apply& n) {
              CostValue args[3];
              for (size_t a = 0; a < n.args.size(); ++a) args[a] = Eval(n.args[a], weight);
              const DType dtype = n.args.back()->dtype;
              if (IsFloat(dtype)) {
                Count(weight * kFlops[static_cast<int>(n.op)]);
                CostValue result;
                for (size_t a = 0; a < n.args.size(); ++a) result.loops |= args[a].loops;
                return result;
              }
              return ApplyToValues(n.op, dtype, std::span(args, n.args.size()));
            },
            [&](const Cast& n) {
              CostValue value = Eval(n.value, weight);
              if (!IsFloat(expr->dtype) && !IsFloat(n.value->dtype)) return value;
              return Data(value.loops);
            },
            [&](const Bits& n) { return Data(Eval(n.value, weight).loops); },
            [&](const Reduce& n) {
              const CostValue low = Eval(n.low, weight), high = Eval(n.high, weight);
              uint64_t loops = 0;
              const double combine = IsFloat(expr->dtype) ? 1 : 0;
              Loops(n.index, low, high, 1, weight, [&](double w) {
                for (const auto& [name, value] : n.lets) values_[name] = Eval(value, w);
                loops |= Eval(n.body, w).loops;
                Count(w * combine);
              });
              return Data(loops & ((uint64_t{1} << frames_.size()) - 1));
            },
            [&](const Decode& n) { return LoadFrom(expr.get(), n.buffer, EvalIndex(n.index, weight)); },
        },
        expr->node);
  }

  static CostValue Data(uint64_t loops) {
    CostValue value;
    value.loops = loops;
    return value;
  }

  CostValue LoadFrom(const void* node, const std::string& buffer, const std::vector<Span>& spans) {
    Access(node, buffer, spans, false);
    uint64_t loops = 0;
    for (const Span& span : spans) loops |= span.start.loops;
    return Data(loops);
  }

  const Kernel& kernel_;
  const ControlNames control_;
  std::map<std::string, CostValue, std::less<>> values_;
  std::map<std::string, Buffer, std::less<>> buffers_;
  Traffic traffic_;
  std::vector<Frame> frames_;
  int64_t trips_ = 0;
  int origin_ = -1;  // of the statement at hand
  KernelCost cost_;
  Status status_;
};

}  // namespace

int64_t KernelCost::read() const {
  int64_t bytes = 0;
  for (const Traffic& traffic : params) bytes += traffic.read;
  return bytes;
}

int64_t KernelCost::written() const {
  int64_t bytes = 0;
  for (const Traffic& traffic : params) bytes += traffic.written;
  return bytes;
}

StatusOr<KernelCost> CostOf(const Kernel& kernel, const Binding& binding) {
  Binding own;  // a plan has symbols that this kernel does not
  for (const SymbolDecl& symbol : kernel.symbols) {
    const auto value = binding.find(symbol.name);
    if (!symbol.derived && value != binding.end()) own[symbol.name] = value->second;
  }
  QUERN_ASSIGN(const Binding bound, BindSymbols(kernel, own));
  return Walker(kernel, bound).Run();
}

}  // namespace quern::kir
