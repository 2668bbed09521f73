#include "kir/canonical.h"

#include <map>
#include <string>
#include <utility>

namespace quern::kir {
namespace {

class Renamer {
 public:
  Kernel Run(Kernel kernel) {
    kernel.name = "k";
    kernel.origins.clear();
    for (SymbolDecl& symbol : kernel.symbols) Declare(symbol.name, 's');
    for (SymbolDecl& symbol : kernel.symbols) {
      if (symbol.derived) symbol.derived->first = Of(symbol.derived->first);
    }
    for (Param& param : kernel.params) Declare(param.name, 'b');
    for (Param& param : kernel.params) {
      param.type = Of(param.type);
      if (!param.inplace.empty()) param.inplace = Of(param.inplace);
    }
    for (GridDim& dim : kernel.grid) {
      dim.low = Of(dim.low);
      dim.high = Of(dim.high);
    }
    for (GridDim& dim : kernel.grid) Declare(dim.index, 'i');
    kernel.body = Of(kernel.body);
    return kernel;
  }

 private:
  // Replaces `name` by the next one of its role, from here to the end of the scope.
  void Declare(std::string& name, char role) {
    std::string next = role + std::to_string(counts_[role]++);
    names_[name] = next;
    name = std::move(next);
  }

  std::string Of(const std::string& name) const {
    const auto it = names_.find(name);
    return it == names_.end() ? name : it->second;
  }

  Extent Of(const Extent& extent) const {
    Extent renamed;
    for (const Extent::Term& term : extent.terms()) {
      Extent product(term.coefficient);
      for (const std::string& symbol : term.symbols) product = product * Extent::Symbol(Of(symbol));
      renamed = renamed + product;
    }
    return renamed;
  }

  BufferType Of(BufferType type) const {
    for (Extent& dim : type.dims) dim = Of(dim);
    return type;
  }

  Index Of(Index index) {
    for (ExprRef& at : index) at = Of(at);
    return index;
  }

  Slice Of(Slice slice) {
    slice.buffer = Of(slice.buffer);
    for (SliceDim& dim : slice.dims) {
      dim.start = Of(dim.start);
      dim.extent = Of(dim.extent);
    }
    return slice;
  }

  ExprRef Of(const ExprRef& expr) {
    if (expr == nullptr || std::holds_alternative<Const>(expr->node)) return expr;
    Expr copy = *expr;
    std::visit([this](auto& node) { Rename(node); }, copy.node);
    return std::make_shared<const Expr>(std::move(copy));
  }

  Block Of(const Block& block) {
    const auto outer = names_;
    Block renamed;
    for (const StmtRef& stmt : block) {
      Stmt copy = *stmt;
      copy.origin = -1;
      std::visit([this](auto& node) { Rename(node); }, copy.node);
      renamed.push_back(std::make_shared<const Stmt>(std::move(copy)));
    }
    names_ = outer;
    return renamed;
  }

  void Rename(Const&) {}
  void Rename(NameRef& name) { name.name = Of(name.name); }
  void Rename(Load& load) {
    load.buffer = Of(load.buffer);
    load.index = Of(std::move(load.index));
    load.otherwise = Of(load.otherwise);
  }
  void Rename(Apply& apply) {
    for (ExprRef& arg : apply.args) arg = Of(arg);
  }
  void Rename(Cast& cast) { cast.value = Of(cast.value); }
  void Rename(Bits& bits) { bits.value = Of(bits.value); }
  void Rename(Reduce& reduce) {
    reduce.low = Of(reduce.low);
    reduce.high = Of(reduce.high);
    const auto outer = names_;
    Declare(reduce.index, 'i');
    for (auto& [name, value] : reduce.lets) {
      value = Of(value);
      Declare(name, 'v');
    }
    reduce.body = Of(reduce.body);
    names_ = outer;
  }
  void Rename(Decode& decode) {
    decode.buffer = Of(decode.buffer);
    decode.index = Of(std::move(decode.index));
  }

  void Rename(Loop& loop) {
    loop.low = Of(loop.low);
    loop.high = Of(loop.high);
    const auto outer = names_;
    Declare(loop.index, 'i');
    loop.body = Of(loop.body);
    names_ = outer;
  }
  void Rename(If& branch) {
    branch.condition = Of(branch.condition);
    branch.then_body = Of(branch.then_body);
    branch.else_body = Of(branch.else_body);
  }
  void Rename(Let& let) {
    let.value = Of(let.value);
    Declare(let.name, 'v');
  }
  void Rename(Var& var) {
    var.value = Of(var.value);
    Declare(var.name, 'v');
  }
  void Rename(Assign& assign) {
    assign.name = Of(assign.name);
    assign.value = Of(assign.value);
  }
  void Rename(Store& store) {
    store.buffer = Of(store.buffer);
    store.index = Of(std::move(store.index));
    store.value = Of(store.value);
  }
  void Rename(Alloc& alloc) {
    alloc.type = Of(std::move(alloc.type));
    Declare(alloc.name, 'b');
  }
  void Rename(Tile& tile) {
    tile.init = Of(tile.init);
    Declare(tile.name, 't');
  }
  void Rename(TileCall& call) {
    for (std::string& tile : call.tiles) tile = Of(tile);
    for (Slice& slice : call.operands) slice = Of(std::move(slice));
    for (auto& attribute : call.attributes) attribute.second = Of(attribute.second);
  }
  void Rename(Map& map) {
    for (std::string& tile : map.tiles) tile = Of(tile);
    for (ExprRef& extent : map.extents) extent = Of(extent);
    const auto outer = names_;
    for (std::string& index : map.indices) Declare(index, 'i');
    map.body = Of(map.body);
    names_ = outer;
  }
  void Rename(Pack& pack) {
    pack.dst = Of(std::move(pack.dst));
    pack.src = Of(std::move(pack.src));
  }
  void Rename(Prefetch& prefetch) { prefetch.slice = Of(std::move(prefetch.slice)); }
  void Rename(Barrier&) {}
  void Rename(Copy& copy) {
    copy.dst = Of(std::move(copy.dst));
    copy.src = Of(std::move(copy.src));
  }
  void Rename(Pipeline& pipeline) {
    pipeline.low = Of(pipeline.low);
    pipeline.high = Of(pipeline.high);
    const auto outer = names_;
    Declare(pipeline.index, 'i');
    pipeline.fetch = Of(pipeline.fetch);
    pipeline.use = Of(pipeline.use);
    names_ = outer;
  }
  void Rename(Shuffle& shuffle) {
    shuffle.value = Of(shuffle.value);
    shuffle.lane = Of(shuffle.lane);
    Declare(shuffle.name, 'v');
  }

  std::map<std::string, std::string> names_;
  std::map<char, int> counts_;
};

}  // namespace

Kernel NormaliseNames(const Kernel& kernel) { return Renamer().Run(kernel); }

}  // namespace quern::kir
