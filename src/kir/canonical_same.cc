// Structural equality of expressions, statements and kernels.
#include <algorithm>
#include <bit>

#include "kir/canonical.h"

namespace quern::kir {
namespace {

bool Same(const SliceDim& a, const SliceDim& b) { return kir::Same(a.start, b.start) && kir::Same(a.extent, b.extent); }
bool Same(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                                            [](const SliceDim& x, const SliceDim& y) { return Same(x, y); });
}
bool SameExprs(const std::vector<ExprRef>& a, const std::vector<ExprRef>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ExprRef& x, const ExprRef& y) { return kir::Same(x, y); });
}
bool SameSlices(const std::vector<Slice>& a, const std::vector<Slice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Slice& x, const Slice& y) { return Same(x, y); });
}
// Lets of a reduction, attributes of a tile op.
bool SameNamed(const Lets& a, const Lets& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && kir::Same(x.second, y.second); });
}

struct SameNode {
  // Different alternatives of the variant.
  template <typename A, typename B>
  bool operator()(const A&, const B&) const {
    return false;
  }

  bool operator()(const Const& a, const Const& b) const {
    return std::bit_cast<uint64_t>(a.real) == std::bit_cast<uint64_t>(b.real) && a.integer == b.integer;
  }
  bool operator()(const NameRef& a, const NameRef& b) const { return a.name == b.name; }
  bool operator()(const Load& a, const Load& b) const {
    return a.buffer == b.buffer && SameExprs(a.index, b.index) && Same(a.otherwise, b.otherwise);
  }
  bool operator()(const Apply& a, const Apply& b) const {
    return a.op == b.op && a.contract == b.contract && SameExprs(a.args, b.args);
  }
  bool operator()(const Cast& a, const Cast& b) const { return Same(a.value, b.value); }
  bool operator()(const Bits& a, const Bits& b) const { return Same(a.value, b.value); }
  bool operator()(const Reduce& a, const Reduce& b) const {
    return a.op == b.op && a.vec == b.vec && a.accs == b.accs && a.index == b.index && Same(a.low, b.low) &&
           Same(a.high, b.high) && SameNamed(a.lets, b.lets) && Same(a.body, b.body);
  }
  bool operator()(const Decode& a, const Decode& b) const {
    return a.buffer == b.buffer && SameExprs(a.index, b.index);
  }

  bool operator()(const Loop& a, const Loop& b) const {
    return a.kind == b.kind && a.index == b.index && a.step == b.step && a.tail == b.tail && a.level == b.level &&
           Same(a.low, b.low) && Same(a.high, b.high) && SameBlock(a.body, b.body);
  }
  bool operator()(const If& a, const If& b) const {
    return Same(a.condition, b.condition) && SameBlock(a.then_body, b.then_body) && SameBlock(a.else_body, b.else_body);
  }
  bool operator()(const Let& a, const Let& b) const { return a.name == b.name && Same(a.value, b.value); }
  bool operator()(const Var& a, const Var& b) const { return a.name == b.name && Same(a.value, b.value); }
  bool operator()(const Assign& a, const Assign& b) const { return a.name == b.name && Same(a.value, b.value); }
  bool operator()(const Store& a, const Store& b) const {
    return a.buffer == b.buffer && SameExprs(a.index, b.index) && Same(a.value, b.value);
  }
  bool operator()(const Alloc& a, const Alloc& b) const {
    return a.name == b.name && a.type == b.type && a.space == b.space;
  }
  bool operator()(const Tile& a, const Tile& b) const {
    return a.name == b.name && a.type == b.type && Same(a.init, b.init);
  }
  bool operator()(const TileCall& a, const TileCall& b) const {
    return a.op == b.op && a.tiles == b.tiles && SameSlices(a.operands, b.operands) &&
           SameNamed(a.attributes, b.attributes);
  }
  bool operator()(const Map& a, const Map& b) const {
    return a.indices == b.indices && a.tiles == b.tiles && SameExprs(a.extents, b.extents) && SameBlock(a.body, b.body);
  }
  bool operator()(const Pack& a, const Pack& b) const { return SameSlice(a.dst, b.dst) && SameSlice(a.src, b.src); }
  bool operator()(const Prefetch& a, const Prefetch& b) const { return SameSlice(a.slice, b.slice); }
  bool operator()(const Barrier&, const Barrier&) const { return true; }
  bool operator()(const Copy& a, const Copy& b) const { return SameSlice(a.dst, b.dst) && SameSlice(a.src, b.src); }
  bool operator()(const Pipeline& a, const Pipeline& b) const {
    return a.index == b.index && a.step == b.step && a.stages == b.stages && Same(a.low, b.low) &&
           Same(a.high, b.high) && SameBlock(a.fetch, b.fetch) && SameBlock(a.use, b.use);
  }
  bool operator()(const Shuffle& a, const Shuffle& b) const {
    return a.name == b.name && a.kind == b.kind && Same(a.value, b.value) && Same(a.lane, b.lane);
  }

  static bool Same(const ExprRef& a, const ExprRef& b) { return kir::Same(a, b); }
  static bool SameSlice(const Slice& a, const Slice& b) { return SameSlices({a}, {b}); }

  bool SameBlock(const Block& a, const Block& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [this](const StmtRef& x, const StmtRef& y) {
      return SameOrigin(x->origin, y->origin) && std::visit(*this, x->node, y->node);
    });
  }
  bool SameOrigin(int a, int b) const {
    auto text = [](const std::vector<std::string>* table, int row) {
      return table != nullptr && row >= 0 && row < static_cast<int>(table->size()) ? (*table)[row] : std::string();
    };
    return origins_a == nullptr ? a == b : text(origins_a, a) == text(origins_b, b);
  }

  const std::vector<std::string>* origins_a = nullptr;
  const std::vector<std::string>* origins_b = nullptr;
};

}  // namespace

bool Same(const ExprRef& a, const ExprRef& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  return a->dtype == b->dtype && std::visit(SameNode(), a->node, b->node);
}

bool Same(const Block& a, const Block& b) { return SameNode().SameBlock(a, b); }

bool Same(const Kernel& a, const Kernel& b) {
  auto same_param = [](const Param& x, const Param& y) {
    return x.name == y.name && x.type == y.type && x.mode == y.mode && x.align == y.align && x.inplace == y.inplace;
  };
  auto same_symbol = [](const SymbolDecl& x, const SymbolDecl& y) {
    return x.name == y.name && x.derived == y.derived && (x.derived || x.range == y.range);
  };
  auto same_dim = [](const GridDim& x, const GridDim& y) {
    return x.index == y.index && Same(x.low, y.low) && Same(x.high, y.high) && x.step == y.step;
  };
  return a.name == b.name && a.sequential == b.sequential &&
         std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same_param) &&
         std::equal(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(), same_symbol) &&
         std::equal(a.grid.begin(), a.grid.end(), b.grid.begin(), b.grid.end(), same_dim) &&
         SameNode{&a.origins, &b.origins}.SameBlock(a.body, b.body);
}

}  // namespace quern::kir
