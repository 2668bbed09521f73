#include "kir/rewrite.h"

#include "kir/parts.h"

namespace quern::kir {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const Replace& replace) : replace_(replace) {}

  void Visit(ExprRef& expr) { expr = Rewrite(expr, replace_); }
  void Visit(std::vector<ExprRef>& exprs) {
    for (ExprRef& each : exprs) Visit(each);
  }
  void Visit(Block& block) { block = Rewrite(block, replace_); }
  void Visit(Slice& slice) {
    for (SliceDim& dim : slice.dims) {
      Visit(dim.start);
      Visit(dim.extent);
    }
  }

  void operator()(Const&) {}
  void operator()(NameRef&) {}
  void operator()(Load& node) { Visit(node.index), Visit(node.otherwise); }
  void operator()(Apply& node) { Visit(node.args); }
  void operator()(Cast& node) { Visit(node.value); }
  void operator()(Bits& node) { Visit(node.value); }
  void operator()(Reduce& node) {
    Visit(node.low), Visit(node.high);
    for (auto& [name, value] : node.lets) Visit(value);
    Visit(node.body);
  }
  void operator()(Decode& node) { Visit(node.index); }

  void operator()(Loop& node) { Visit(node.low), Visit(node.high), Visit(node.body); }
  void operator()(If& node) { Visit(node.condition), Visit(node.then_body), Visit(node.else_body); }
  void operator()(Let& node) { Visit(node.value); }
  void operator()(Var& node) { Visit(node.value); }
  void operator()(Assign& node) { Visit(node.value); }
  void operator()(Store& node) { Visit(node.index), Visit(node.value); }
  void operator()(Alloc&) {}
  void operator()(Tile& node) { Visit(node.init); }
  void operator()(TileCall& node) {
    for (Slice& slice : node.operands) Visit(slice);
    for (auto& [name, value] : node.attributes) Visit(value);
  }
  void operator()(Map& node) { Visit(node.extents), Visit(node.body); }
  void operator()(Pack& node) { Visit(node.dst), Visit(node.src); }
  void operator()(Prefetch& node) { Visit(node.slice); }
  void operator()(Barrier&) {}
  void operator()(Copy& node) { Visit(node.dst), Visit(node.src); }
  void operator()(Pipeline& node) { Visit(node.low), Visit(node.high), Visit(node.fetch), Visit(node.use); }
  void operator()(Shuffle& node) { Visit(node.value), Visit(node.lane); }

 private:
  const Replace& replace_;
};

}  // namespace

ExprRef WithOperands(const Expr& expr, std::span<const ExprRef> operands) {
  struct Filler : NoParts {
    const ExprRef* next;
    void Expr(ExprRef& operand) { operand = *next++; }
  } filler{.next = operands.data()};
  kir::Expr copy = expr;
  Parts(copy, filler);
  return std::make_shared<const kir::Expr>(std::move(copy));
}

ExprRef Rewrite(const ExprRef& expr, const Replace& replace) {
  if (expr == nullptr) return nullptr;
  if (ExprRef given = replace(expr)) return given;
  Expr copy = *expr;
  std::visit(Rewriter(replace), copy.node);
  return std::make_shared<const Expr>(std::move(copy));
}

StmtRef Rewrite(const StmtRef& stmt, const Replace& replace) {
  Stmt copy = *stmt;
  std::visit(Rewriter(replace), copy.node);
  return std::make_shared<const Stmt>(std::move(copy));
}

Block Rewrite(const Block& block, const Replace& replace) {
  Block result;
  for (const StmtRef& stmt : block) result.push_back(Rewrite(stmt, replace));
  return result;
}

}  // namespace quern::kir
