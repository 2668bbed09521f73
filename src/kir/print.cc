// Prints kernels as canonical text: one statement a line, two blanks of indentation, parentheses only where needed.
//
// A literal is written without its dtype where the parser gives it that dtype anyway. `typed` below says so: the place
// (an index, a store, the other operand) fixes the dtype. Elsewhere an f32 or i64 literal is plain and others have a
// suffix. `contract` is the flag that the parser gives to + - * here; nodes that differ are wrapped in contract() or
// exact().
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kir/canonical.h"
#include "kir/kir.h"
#include "kir/lexer.h"

namespace quern::kir {
namespace {

constexpr int kAtom = 100;  // binds tighter than every operator

template <typename Number>
std::string Shortest(Number value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

std::string RealText(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = Shortest(value);
  if (dtype == DType::kF32) {
    // Shorter, unless reading it as a double and rounding would give another float.
    const std::string shorter = Shortest(static_cast<float>(value));
    double read = 0;
    std::from_chars(shorter.data(), shorter.data() + shorter.size(), read);
    if (static_cast<float>(read) == static_cast<float>(value)) text = shorter;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool IsComparison(Op op) { return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe; }
size_t FirstOperand(Op op) { return op == Op::kSelect ? 1 : 0; }

// Made of literals alone, so that its dtype comes from outside.
bool IsFlexible(const ExprRef& expr) {
  if (std::holds_alternative<Const>(expr->node)) return expr->dtype != DType::kBool;
  const Apply* apply = std::get_if<Apply>(&expr->node);
  if (apply == nullptr || IsComparison(apply->op)) return false;
  for (size_t i = FirstOperand(apply->op); i < apply->args.size(); ++i) {
    if (!IsFlexible(apply->args[i])) return false;
  }
  return true;
}

class ExprPrinter {
 public:
  std::string Text(const ExprRef& expr, bool typed, bool contract = false, int min_precedence = 0) const {
    return std::visit([&](const auto& node) { return Of(node, *expr, typed, contract, min_precedence); }, expr->node);
  }

  std::string Indices(const Index& index, bool contract) const {
    std::string text = "[";
    for (size_t i = 0; i < index.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", Text(index[i], true, contract));
    return text + "]";
  }

  std::string Range(const ExprRef& low, const ExprRef& high, bool contract = false) const {
    auto simple = [](const ExprRef& expr) {
      return std::holds_alternative<Const>(expr->node) || std::holds_alternative<NameRef>(expr->node);
    };
    const char* dots = simple(low) && simple(high) ? ".." : " .. ";
    return absl::StrCat(Text(low, true, contract), dots, Text(high, true, contract));
  }

 private:
  static std::string Parenthesised(std::string text, bool needed) {
    return needed ? absl::StrCat("(", text, ")") : text;
  }

  std::string Of(const Const& literal, const Expr& expr, bool typed, bool, int) const {
    if (expr.dtype == DType::kBool) return literal.integer != 0 ? "true" : "false";
    const bool real = IsFloat(expr.dtype);
    std::string text = real                        ? RealText(literal.real, expr.dtype)
                       : expr.dtype == DType::kU64 ? absl::StrCat(static_cast<uint64_t>(literal.integer))
                                                   : absl::StrCat(literal.integer);
    if (!typed && expr.dtype != (real ? DType::kF32 : DType::kI64)) text += std::string(Name(expr.dtype));
    return text;
  }

  std::string Of(const NameRef& name, const Expr&, bool, bool, int) const { return name.name; }

  std::string Of(const Load& load, const Expr&, bool, bool contract, int min_precedence) const {
    std::string text = load.buffer + Indices(load.index, contract);
    if (load.otherwise == nullptr) return text;
    absl::StrAppend(&text, " else ", Text(load.otherwise, true, contract, kAtom));
    return Parenthesised(std::move(text), min_precedence > 0);
  }

  std::string Of(const Apply& apply, const Expr& expr, bool typed, bool contract, int min_precedence) const {
    const bool may_fuse = IsFloat(expr.dtype) && (apply.op == Op::kAdd || apply.op == Op::kSub || apply.op == Op::kMul);
    if (may_fuse && apply.contract != contract) {
      return absl::StrCat(apply.contract ? "contract(" : "exact(", Of(apply, expr, typed, apply.contract, 0), ")");
    }
    const OpRow& row = Row(apply.op);
    // One operand with a dtype of its own gives it to the literals beside it.
    bool typed_operands = typed && !IsComparison(apply.op);
    for (size_t i = FirstOperand(apply.op); i < apply.args.size(); ++i) {
      typed_operands = typed_operands || !IsFlexible(apply.args[i]);
    }
    switch (row.syntax) {
      case OpSyntax::kPrefix: {
        const ExprRef& operand = apply.args[0];
        const Apply* inner = std::get_if<Apply>(&operand->node);
        const bool apart = std::holds_alternative<Const>(operand->node) ||
                           (inner != nullptr && Row(inner->op).syntax == OpSyntax::kPrefix);
        return row.name + Parenthesised(Text(operand, typed_operands, contract, apart ? 0 : kAtom), apart);
      }
      case OpSyntax::kInfix: {
        const int precedence = row.precedence;
        std::string text = absl::StrCat(Text(apply.args[0], typed_operands, contract, precedence), " ", row.name, " ",
                                        Text(apply.args[1], typed_operands, contract, precedence + 1));
        return Parenthesised(std::move(text), precedence < min_precedence);
      }
      case OpSyntax::kCall: {
        std::string text = absl::StrCat(row.name, "(");
        for (size_t i = 0; i < apply.args.size(); ++i) {
          const bool given = i >= FirstOperand(apply.op) && typed_operands;
          absl::StrAppend(&text, i > 0 ? ", " : "", Text(apply.args[i], given, contract));
        }
        return text + ")";
      }
    }
    return "";
  }

  std::string Of(const Cast& cast, const Expr& expr, bool, bool contract, int) const {
    return absl::StrCat("cast<", std::string(Name(expr.dtype)), ">(", Text(cast.value, false, contract), ")");
  }
  std::string Of(const Bits& bits, const Expr& expr, bool, bool contract, int) const {
    return absl::StrCat("bits<", std::string(Name(expr.dtype)), ">(", Text(bits.value, false, contract), ")");
  }

  std::string Of(const Reduce& reduce, const Expr&, bool, bool contract, int) const {
    std::string text(Name(reduce.op));
    if (reduce.accs != 1) absl::StrAppend(&text, " accs ", reduce.accs);
    absl::StrAppend(&text, reduce.vec ? " vec " : " for ", reduce.index, " in ",
                    Range(reduce.low, reduce.high, contract), " { ");
    for (const auto& [name, value] : reduce.lets)
      absl::StrAppend(&text, "let ", name, " = ", Text(value, false, contract), "; ");
    return absl::StrCat(text, Text(reduce.body, false, contract), " }");
  }

  std::string Of(const Decode& decode, const Expr&, bool, bool contract, int) const {
    std::string text = "decode(" + decode.buffer;
    for (const ExprRef& at : decode.index) absl::StrAppend(&text, ", ", Text(at, true, contract));
    return text + ")";
  }
};

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, bool origins, std::map<const Stmt*, int>* lines = nullptr)
      : kernel_(kernel), origins_(origins), lines_(lines) {}

  std::string Run() {
    absl::StrAppend(&out_, "kernel ", kernel_.name, " (\n");
    for (const Param& param : kernel_.params) PrintParam(param);
    out_ += ")";
    for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
      absl::StrAppend(&out_, i == 0 ? " sym " : ", ", SymbolText(kernel_.symbols[i]));
    }
    out_ += " {\n  grid ";
    for (size_t i = 0; i < kernel_.grid.size(); ++i) {
      const GridDim& dim = kernel_.grid[i];
      absl::StrAppend(&out_, i > 0 ? ", " : "", dim.index, " in ", exprs_.Range(dim.low, dim.high), StepText(dim.step));
    }
    out_ += kernel_.sequential ? " seq {\n" : " {\n";
    indent_ = 4;
    PrintBlock(kernel_.body);
    out_ += "  }\n}\n";
    return std::move(out_);
  }

 private:
  static std::string StepText(int64_t step) { return step == 1 ? "" : absl::StrCat(" by ", step); }

  void PrintParam(const Param& param) {
    absl::StrAppend(&out_, "  ", param.name, " : ", Print(param.type));
    out_ += param.mode == Mode::kIn ? " in" : param.mode == Mode::kOut ? " out" : " inout";
    if (param.align != 64) absl::StrAppend(&out_, " align ", param.align);
    if (!param.inplace.empty()) absl::StrAppend(&out_, " inplace ", param.inplace);
    out_ += "\n";
  }

  static std::string SymbolText(const SymbolDecl& symbol) {
    if (symbol.derived) {
      return absl::StrCat(symbol.name, " = ceil(", symbol.derived->first.ToString(), " / ", symbol.derived->second,
                          ")");
    }
    if (symbol.range == SymbolRange{}) return symbol.name;
    std::string text = absl::StrCat(symbol.name, " in ", symbol.range.low, "..");
    if (symbol.range.high != INT64_MAX) absl::StrAppend(&text, symbol.range.high);
    return text;
  }

  std::string OriginText(int origin) const {
    if (!origins_ || origin < 0 || origin >= static_cast<int>(kernel_.origins.size())) return "";
    return absl::StrCat("   @[", EscapeOrigin(kernel_.origins[origin]), "]");
  }

  std::string Value(const ExprRef& expr, bool typed) const { return exprs_.Text(expr, typed); }

  std::string SliceText(const Slice& slice) const {
    bool whole = true;
    std::string text = slice.buffer + "[";
    for (size_t i = 0; i < slice.dims.size(); ++i) {
      const SliceDim& dim = slice.dims[i];
      whole = whole && dim.start == nullptr;
      if (i > 0) text += ", ";
      if (dim.start == nullptr) {
        text += ":";
      } else {
        text += Value(dim.start, true);
        if (dim.extent != nullptr) absl::StrAppend(&text, " : +", Value(dim.extent, true));
      }
    }
    return whole ? slice.buffer : text + "]";
  }

  void PrintBlock(const Block& block) {
    for (const StmtRef& stmt : block) {
      if (lines_ != nullptr) lines_->emplace(stmt.get(), 1 + std::count(out_.begin(), out_.end(), '\n'));
      std::visit([&](const auto& node) { PrintNode(node, OriginText(stmt->origin)); }, stmt->node);
    }
  }

  template <typename... Parts>
  void Line(const Parts&... parts) {
    out_.append(indent_, ' ');
    absl::StrAppend(&out_, parts..., "\n");
  }

  void Nested(const Block& block) {
    indent_ += 2;
    PrintBlock(block);
    indent_ -= 2;
  }

  static const char* KindText(LoopKind kind) {
    switch (kind) {
      case LoopKind::kFor: return "for";
      case LoopKind::kUnroll: return "unroll";
      case LoopKind::kVec: return "vec";
      case LoopKind::kThread: return "thread";
    }
    return "";
  }
  void PrintNode(const Loop& loop, const std::string& origin) {
    std::string tail = loop.tail == VecTail::kMask ? "" : loop.tail == VecTail::kPeel ? " tail peel" : " tail pad";
    if (loop.kind == LoopKind::kThread) tail = absl::StrCat(" @ ", Row(loop.level).name);
    Line(KindText(loop.kind), " ", loop.index, " in ", exprs_.Range(loop.low, loop.high), StepText(loop.step), tail,
         " {", origin);
    Nested(loop.body);
    Line("}");
  }
  void PrintNode(const If& branch, const std::string& origin) {
    Line("if ", Value(branch.condition, false), " {", origin);
    Nested(branch.then_body);
    if (!branch.else_body.empty()) {
      Line("} else {");
      Nested(branch.else_body);
    }
    Line("}");
  }
  void PrintNode(const Let& let, const std::string& origin) {
    Line("let ", let.name, " = ", Value(let.value, false), origin);
  }
  void PrintNode(const Var& var, const std::string& origin) {
    Line("var ", var.name, " : ", std::string(Name(var.value->dtype)), " = ", Value(var.value, true), origin);
  }
  void PrintNode(const Assign& assign, const std::string& origin) {
    Line(assign.name, " := ", Value(assign.value, true), origin);
  }
  void PrintNode(const Store& store, const std::string& origin) {
    Line(store.buffer, exprs_.Indices(store.index, false), " = ", Value(store.value, true), origin);
  }
  void PrintNode(const Alloc& alloc, const std::string& origin) {
    Line("alloc ", alloc.name, " : ", Print(alloc.type), alloc.space == Space::kShared ? " shared" : " scratch",
         origin);
  }
  void PrintNode(const Tile& tile, const std::string& origin) {
    Line("tile ", tile.name, " : ", Print(tile.type), " = ", Value(tile.init, true), origin);
  }
  void PrintNode(const TileCall& call, const std::string& origin) {
    std::string text = call.op;
    for (size_t i = 0; i < call.tiles.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : " ", call.tiles[i]);
    text += " +=";
    for (size_t i = 0; i < call.operands.size(); ++i) {
      absl::StrAppend(&text, i > 0 ? ", " : " ", SliceText(call.operands[i]));
    }
    for (size_t i = 0; i < call.attributes.size(); ++i) {
      absl::StrAppend(&text, i > 0 ? ", " : " ", call.attributes[i].first, " ", Value(call.attributes[i].second, true));
    }
    Line(text, origin);
  }
  void PrintNode(const Map& map, const std::string& origin) {
    std::string text = "map (";
    for (size_t i = 0; i < map.indices.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", map.indices[i]);
    text += ") in ";
    for (size_t i = 0; i < map.tiles.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", map.tiles[i]);
    Line(text, " ", exprs_.Indices(map.extents, false), " {", origin);
    Nested(map.body);
    Line("}");
  }
  void PrintNode(const Pack& pack, const std::string& origin) {
    Line("pack ", SliceText(pack.dst), " = ", SliceText(pack.src), origin);
  }
  void PrintNode(const Prefetch& prefetch, const std::string& origin) {
    Line("prefetch ", SliceText(prefetch.slice), origin);
  }
  void PrintNode(const Barrier&, const std::string& origin) { Line("barrier", origin); }
  void PrintNode(const Copy& copy, const std::string& origin) {
    Line("copy ", SliceText(copy.dst), " = ", SliceText(copy.src), origin);
  }
  void PrintNode(const Pipeline& pipeline, const std::string& origin) {
    Line("pipeline ", pipeline.index, " in ", exprs_.Range(pipeline.low, pipeline.high), StepText(pipeline.step),
         " stages ", pipeline.stages, " {", origin);
    indent_ += 2;
    Line("fetch {");
    Nested(pipeline.fetch);
    Line("}");
    Line("use {");
    Nested(pipeline.use);
    Line("}");
    indent_ -= 2;
    Line("}");
  }
  void PrintNode(const Shuffle& shuffle, const std::string& origin) {
    const char* kind = shuffle.kind == ShuffleKind::kXor    ? "shuffle_xor"
                       : shuffle.kind == ShuffleKind::kDown ? "shuffle_down"
                                                            : "shuffle";
    Line("let ", shuffle.name, " = ", kind, "(", Value(shuffle.value, false), ", ", Value(shuffle.lane, true), ")",
         origin);
  }

  const Kernel& kernel_;
  const bool origins_;
  std::map<const Stmt*, int>* const lines_;
  const ExprPrinter exprs_{};
  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::string Print(const Kernel& kernel, const PrintOptions& options) {
  if (options.normalise_names) return KernelPrinter(NormaliseNames(kernel), false).Run();
  return KernelPrinter(kernel, options.origins, options.lines).Run();
}

std::string Print(const ExprRef& expr) { return ExprPrinter().Text(expr, false); }

std::string Print(const BufferType& type) {
  std::string text(Name(type.dtype));
  for (size_t i = 0; i < type.dims.size(); ++i) absl::StrAppend(&text, i == 0 ? "[" : ", ", type.dims[i].ToString());
  if (!type.dims.empty()) text += "]";
  if (type.layout != Layout::kRow) absl::StrAppend(&text, " @", Row(type.layout).name);
  return text;
}

}  // namespace quern::kir
