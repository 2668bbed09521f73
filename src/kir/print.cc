// Prints kernels as canonical text: one statement a line, two blanks of indentation.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kir/canonical.h"
#include "kir/describe.h"
#include "kir/kir.h"
#include "kir/lexer.h"
#include "kir/parts.h"
#include "kir/print_expr.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

std::string StepText(int64_t step) { return step == 1 ? "" : absl::StrCat(" by ", step); }

std::string SliceText(const Slice& slice) {
  bool whole = true;
  std::string text = slice.buffer + "[";
  for (size_t i = 0; i < slice.dims.size(); ++i) {
    const SliceDim& dim = slice.dims[i];
    whole = whole && dim.start == nullptr;
    if (i > 0) text += ", ";
    if (dim.start == nullptr) {
      text += ":";
    } else {
      text += ExprText(dim.start, true);
      if (dim.extent != nullptr) absl::StrAppend(&text, " : +", ExprText(dim.extent, true));
    }
  }
  return whole ? slice.buffer : text + "]";
}

const char* KindText(LoopKind kind) {
  switch (kind) {
    case LoopKind::kFor: return "for";
    case LoopKind::kUnroll: return "unroll";
    case LoopKind::kVec: return "vec";
    case LoopKind::kThread: return "thread";
  }
  return "";
}
const char* TailText(VecTail tail) {
  switch (tail) {
    case VecTail::kMask: return "";
    case VecTail::kPeel: return " tail peel";
    case VecTail::kPad: return " tail pad";
  }
  return "";
}
const char* KindText(ShuffleKind kind) {
  switch (kind) {
    case ShuffleKind::kXor: return "shuffle_xor";
    case ShuffleKind::kDown: return "shuffle_down";
    case ShuffleKind::kAt: return "shuffle";
  }
  return "";
}

// A statement without its blocks.

std::string Head(const Loop& loop) {
  return absl::StrCat(KindText(loop.kind), " ", loop.index, " in ", RangeText(loop.low, loop.high), StepText(loop.step),
                      loop.kind == LoopKind::kThread ? absl::StrCat(" @ ", Row(loop.level).name) : TailText(loop.tail));
}
std::string Head(const If& branch) { return absl::StrCat("if ", ExprText(branch.condition, false)); }
std::string Head(const Let& let) { return absl::StrCat("let ", let.name, " = ", ExprText(let.value, false)); }
std::string Head(const Var& var) {
  return absl::StrCat("var ", var.name, " : ", std::string(Name(var.value->dtype)), " = ", ExprText(var.value, true));
}
std::string Head(const Assign& assign) { return absl::StrCat(assign.name, " := ", ExprText(assign.value, true)); }
std::string Head(const Store& store) {
  return absl::StrCat(store.buffer, IndexText(store.index), " = ", ExprText(store.value, true));
}
std::string Head(const Alloc& alloc) {
  return absl::StrCat("alloc ", alloc.name, " : ", Print(alloc.type),
                      alloc.space == Space::kShared ? " shared" : " scratch");
}
std::string Head(const Tile& tile) {
  return absl::StrCat("tile ", tile.name, " : ", Print(tile.type), " = ", ExprText(tile.init, true));
}
std::string Head(const TileCall& call) {
  const auto slice = [](std::string* out, const Slice& operand) { out->append(SliceText(operand)); };
  const auto attribute = [](std::string* out, const auto& named) {
    absl::StrAppend(out, named.first, " ", ExprText(named.second, true));
  };
  return absl::StrCat(call.op, call.tiles.empty() ? "" : " ", absl::StrJoin(call.tiles, ", "),
                      " +=", call.operands.empty() ? "" : " ", absl::StrJoin(call.operands, ", ", slice),
                      call.attributes.empty() ? "" : " ", absl::StrJoin(call.attributes, ", ", attribute));
}
std::string Head(const Map& map) {
  return absl::StrCat("map (", absl::StrJoin(map.indices, ", "), ") in ", absl::StrJoin(map.tiles, ", "), " ",
                      IndexText(map.extents));
}
std::string Head(const Pack& pack) { return absl::StrCat("pack ", SliceText(pack.dst), " = ", SliceText(pack.src)); }
std::string Head(const Prefetch& prefetch) { return absl::StrCat("prefetch ", SliceText(prefetch.slice)); }
std::string Head(const Barrier&) { return "barrier"; }
std::string Head(const Copy& copy) { return absl::StrCat("copy ", SliceText(copy.dst), " = ", SliceText(copy.src)); }
std::string Head(const Pipeline& pipeline) {
  return absl::StrCat("pipeline ", pipeline.index, " in ", RangeText(pipeline.low, pipeline.high),
                      StepText(pipeline.step), " stages ", pipeline.stages);
}
std::string Head(const Shuffle& shuffle) {
  return absl::StrCat("let ", shuffle.name, " = ", KindText(shuffle.kind), "(", ExprText(shuffle.value, false), ", ",
                      ExprText(shuffle.lane, true), ")");
}

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
    for (size_t i = 0; i < kernel_.facts.size(); ++i) {
      absl::StrAppend(&out_, i == 0 ? " where " : ", ", kernel_.facts[i].ToString(), " >= 0");
    }
    out_ += " {\n  grid ";
    for (size_t i = 0; i < kernel_.grid.size(); ++i) {
      const GridDim& dim = kernel_.grid[i];
      absl::StrAppend(&out_, i > 0 ? ", " : "", dim.index, " in ", RangeText(dim.low, dim.high), StepText(dim.step));
    }
    out_ += kernel_.sequential ? " seq {\n" : " {\n";
    indent_ = 4;
    line_ = 1 + static_cast<int>(std::count(out_.begin(), out_.end(), '\n'));
    PrintBlock(kernel_.body);
    out_ += "  }\n}\n";
    return std::move(out_);
  }

 private:
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

  template <typename... Text>
  void Line(const Text&... text) {
    out_.append(indent_, ' ');
    absl::StrAppend(&out_, text..., "\n");
    ++line_;
  }

  void Nested(const Block& block) {
    indent_ += 2;
    PrintBlock(block);
    indent_ -= 2;
  }

  void PrintBlock(const Block& block) {
    for (const StmtRef& stmt : block) {
      if (lines_ != nullptr) lines_->emplace(stmt.get(), line_);
      const std::string head = std::visit([](const auto& node) { return Head(node); }, stmt->node);
      const std::vector<const Block*> bodies = Bodies(*stmt);
      Line(head, bodies.empty() ? "" : " {", OriginText(stmt->origin));
      if (bodies.empty()) continue;
      if (std::holds_alternative<Pipeline>(stmt->node)) {
        indent_ += 2;
        PrintNamed("fetch", *bodies[0]);
        PrintNamed("use", *bodies[1]);
        indent_ -= 2;
      } else {
        Nested(*bodies[0]);
        if (bodies.size() > 1 && !bodies[1]->empty()) {
          Line("} else {");
          Nested(*bodies[1]);
        }
      }
      Line("}");
    }
  }
  void PrintNamed(const char* name, const Block& block) {
    Line(name, " {");
    Nested(block);
    Line("}");
  }

  const Kernel& kernel_;
  const bool origins_;
  std::map<const Stmt*, int>* const lines_;
  std::string out_;
  int indent_ = 0, line_ = 1;
};

}  // namespace

std::string Print(const Kernel& kernel, const PrintOptions& options) {
  if (options.normalise_names) return KernelPrinter(NormaliseNames(kernel), false).Run();
  return KernelPrinter(kernel, options.origins, options.lines).Run();
}

std::string Print(const BufferType& type) {
  std::string text(Name(type.dtype));
  for (size_t i = 0; i < type.dims.size(); ++i) absl::StrAppend(&text, i == 0 ? "[" : ", ", type.dims[i].ToString());
  if (!type.dims.empty()) text += "]";
  if (type.layout != Layout::kRow) absl::StrAppend(&text, " @", Row(type.layout).name);
  return text;
}

// Diagnostics name loops by their range alone, and memory by its type.
std::string Describe(const Stmt& stmt) {
  const auto range = [](const char* kind, const auto& node) {
    return absl::StrCat(kind, " ", node.index, " in ", Print(node.low), "..", Print(node.high), StepText(node.step));
  };
  return std::visit(Overloaded{
                        [&](const Loop& loop) { return range(KindText(loop.kind), loop); },
                        [&](const Pipeline& pipeline) { return range("pipeline", pipeline); },
                        [](const Alloc& alloc) { return absl::StrCat("alloc ", alloc.name, " : ", Print(alloc.type)); },
                        [](const Shuffle& shuffle) {
                          return absl::StrCat("let ", shuffle.name, " = shuffle of ", Print(shuffle.value));
                        },
                        [](const auto& node) { return Head(node); },
                    },
                    stmt.node);
}

std::string Describe(const Slice& slice) { return SliceText(slice); }

std::string Describe(const GridDim& dim) {
  return absl::StrCat("grid ", dim.index, " in ", Print(dim.low), "..", Print(dim.high), StepText(dim.step));
}

}  // namespace quern::kir
