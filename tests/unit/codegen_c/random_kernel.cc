#include "unit/codegen_c/random_kernel.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kir/build.h"

namespace quern::kir {
namespace {

namespace kb = build;
using namespace build::operators;

constexpr int64_t kColumns = 11;
constexpr DType kScalars[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                              DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                              DType::kU32, DType::kU64, DType::kBool};
constexpr DType kBlocks[] = {DType::kQ4_0,  DType::kQ8_0,  DType::kQ4_K,    DType::kQ5_K,  DType::kQ6_K,
                             DType::kQ8_K,  DType::kQ5_1,  DType::kIQ4_XS,  DType::kQ2_K,  DType::kQ3_K,
                             DType::kMXFP4, DType::kTQ1_0, DType::kIQ2_XXS, DType::kIQ3_S, DType::kIQ1_M};

class Generator {
 public:
  Generator(uint64_t seed, const RandomKernelOptions& options) : random_(seed), options_(options) {
    kernel_.name = absl::StrCat("random_", seed);
  }

  Kernel Run() {
    kernel_.symbols.push_back({"M", {1, 64}, {}});
    const Extent rows = Extent::Symbol("M");
    for (DType dtype : kScalars) AddParam("x", dtype, {rows, kColumns}, Layout::kRow, Mode::kIn);
    for (DType dtype : kBlocks) AddParam("w", dtype, {rows, 256}, Layout::kBlocks, Mode::kIn);
    // Grids of one to three dimensions; the last row of chunks may be short.
    const ExprRef m = kb::Ref("M");
    const int64_t step = Below(2) == 0 ? 1 : 3;
    kernel_.grid.push_back({"r0", kb::Int(0), m, step});
    if (Below(2) == 0) kernel_.grid.push_back({"g1", kb::Int(1), kb::Int(8), 3});
    if (Below(3) == 0) kernel_.grid.push_back({"g2", kb::Int(-1), kb::Int(1), 1});
    Block body;
    row_ = kb::Ref("r");
    for (size_t d = 1; d < kernel_.grid.size(); ++d) Remember(kernel_.grid[d].index, DType::kI64);
    Statements(body, options_.statements);
    if (step == 1) {
      body.insert(body.begin(), kb::Let("r", kb::Ref("r0")));
      kernel_.body = body;
    } else {
      kernel_.body = {kb::For("r", kb::Ref("r0"), kb::Call(Op::kMin, {m, kb::Ref("r0") + kb::Int(step)}), body)};
    }
    return std::move(kernel_);
  }

 private:
  uint64_t Below(uint64_t n) { return (random_() >> 32) % n; }
  template <typename T, size_t n>
  T Pick(const T (&list)[n]) {
    return list[Below(n)];
  }
  DType AnyScalar() { return options_.smooth ? DType::kF32 : Pick(kScalars); }
  std::string Fresh(const char* stem) { return absl::StrCat(stem, ++names_); }
  void Remember(std::string name, DType dtype) { known_.emplace_back(std::move(name), dtype); }
  void Forget(size_t mark) {
    known_.resize(mark);
    std::erase_if(made_, [&](const Made& made) { return made.known > mark; });
  }

  void AddParam(const char* stem, DType dtype, std::vector<Extent> dims, Layout layout, Mode mode) {
    Param param;
    param.name = absl::StrCat(stem, "_", Row(dtype).name);
    param.type = {dtype, std::move(dims), layout};
    param.mode = mode;
    kernel_.params.push_back(std::move(param));
  }

  // An output [grid dimensions.., M, kColumns], so that chunks never share an element; its index up to the row.
  std::string AddOutput(DType dtype, Index& index) {
    Param param;
    param.name = Fresh("y");
    param.mode = Below(4) == 0 ? Mode::kInOut : Mode::kOut;
    param.type.dtype = dtype;
    for (size_t d = 1; d < kernel_.grid.size(); ++d) {
      param.type.dims.push_back(9);  // of g + 1
      index.push_back(kb::Ref(kernel_.grid[d].index) + kb::Int(1));
    }
    param.type.dims.push_back(Extent::Symbol("M"));
    param.type.dims.push_back(kColumns);
    index.push_back(row_);
    kernel_.params.push_back(param);
    return kernel_.params.back().name;
  }

  // Expressions. `column_` is an index in 0..kColumns.

  ExprRef Constant(DType dtype) {
    if (dtype == DType::kBool) return kb::Bool(Below(2) == 0);
    if (IsFloat(dtype)) {
      static constexpr double kReals[] = {0, 1, -1, 0.5, 2, -0.1, 1e-5, 3.25, -2.75, 0.3333333333333333};
      static constexpr double kOdd[] = {INFINITY, -INFINITY, 1e30, -0.0, 65504, 1e-42};
      return kb::Num(!options_.smooth && Below(6) == 0 ? Pick(kOdd) : Pick(kReals), dtype);
    }
    const int bits = 8 * ScalarBytes(dtype);
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (IsUnsigned(dtype) ? bits : bits - 1)) - 1;
    const int64_t low = IsUnsigned(dtype) ? 0 : -high - 1;
    const int64_t values[] = {0, 1, 2, 3, 5, 7, low, high, IsUnsigned(dtype) ? 9 : -1, IsUnsigned(dtype) ? 31 : -3};
    return kb::Int(Pick(values), dtype);
  }

  ExprRef LoadOf(DType dtype) {
    const std::string buffer = absl::StrCat("x_", Row(dtype).name);
    if (Below(4) != 0) return kb::At(buffer, dtype, {row_, column_});
    // Around the element, possibly outside: else gives the value.
    const ExprRef down = kb::Int(static_cast<int64_t>(Below(5)) - 2),
                  right = kb::Int(static_cast<int64_t>(Below(9)) - 4);
    return kb::At(buffer, dtype, {row_ + down, Below(2) == 0 ? column_ + right : column_ * kb::Int(2)},
                  Constant(dtype));
  }

  ExprRef Leaf(DType dtype) {
    for (int tries = 0; tries < 4 && !known_.empty(); ++tries) {
      const auto& [name, known] = known_[Below(known_.size())];
      if (known == dtype) return kb::Ref(name, dtype);
    }
    if (dtype == DType::kF32 && Below(4) == 0) {
      const DType format = Pick(kBlocks);
      return kb::DecodeAt(absl::StrCat("w_", Row(format).name), {row_, column_ * kb::Int(23)});
    }
    if (dtype == DType::kI64 && Below(3) == 0) return Below(2) == 0 ? row_ : column_;
    return Below(5) == 0 ? Constant(dtype) : LoadOf(dtype);
  }

  bool Applies(Op op, DType dtype) const {
    static constexpr Op kSmooth[] = {Op::kNeg, Op::kAbs,  Op::kAdd,  Op::kSub, Op::kMul,     Op::kMin,
                                     Op::kMax, Op::kAtan, Op::kTanh, Op::kErf, Op::kSigmoid, Op::kFma};
    if (options_.smooth) return std::find(std::begin(kSmooth), std::end(kSmooth), op) != std::end(kSmooth);
    return Takes(Row(op).domain, dtype);
  }

  static bool IsComparison(Op op) { return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe; }

  ExprRef Reduction(DType dtype, int depth) {
    if (dtype == DType::kBool) return Leaf(dtype);
    static constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin};
    ReduceOp op = Pick(kOps);
    if (options_.smooth && op == ReduceOp::kProd) op = ReduceOp::kSum;
    const std::string index = Fresh("k");
    const ExprRef outer = column_;
    column_ = kb::Ref(index);
    const ExprRef low = Below(2) == 0 ? kb::Int(static_cast<int64_t>(Below(3))) : outer;
    const size_t mark = known_.size();
    Lets lets;
    for (uint64_t n = Below(3); n > 0; --n) {
      const DType other = Below(2) == 0 ? dtype : AnyScalar();
      lets.emplace_back(Fresh("v"), Expr(other, depth - 1));
      Remember(lets.back().first, other);
    }
    const ExprRef body = Expr(dtype, depth - 1);
    Forget(mark);
    column_ = outer;
    const ExprRef high = kb::Int(kColumns - static_cast<int64_t>(Below(2)));
    const int accs = 1 + static_cast<int>(Below(4));
    if (Below(4) == 0) return kb::ReduceFor(op, index, low, high, body, std::move(lets));
    return kb::ReduceVec(op, accs, index, low, high, body, std::move(lets));
  }

  // Now and then an expression that was made before.
  ExprRef Expr(DType dtype, int depth) {
    if (depth <= 0) return Leaf(dtype);
    if (!made_.empty() && Below(4) == 0) {
      const Made& made = made_[Below(made_.size())];
      if (made.expr->dtype == dtype && made.depth <= depth && made.column == column_) return made.expr;
    }
    ExprRef expr = NewExpr(dtype, depth);
    made_.push_back({expr, column_, depth, known_.size()});
    return expr;
  }

  ExprRef NewExpr(DType dtype, int depth) {
    switch (Below(10)) {
      case 0: return Leaf(dtype);
      case 1: return options_.smooth ? Leaf(dtype) : kb::CastTo(dtype, Expr(AnyScalar(), depth - 1));
      case 2: return Bits(dtype);
      case 3: return depth >= 2 ? Reduction(dtype, depth - 1) : Leaf(dtype);
      default: break;
    }
    if (dtype == DType::kBool && Below(2) == 0) {
      static constexpr Op kOps[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe};
      Op op = Pick(kOps);
      const DType operands = AnyScalar();
      if (operands == DType::kBool && op != Op::kNe) op = Op::kEq;
      return kb::Call(op, {Expr(operands, depth - 1), Expr(operands, depth - 1)});
    }
    for (int tries = 0; tries < 64; ++tries) {
      const Op op = static_cast<Op>(Below(kOpCount));
      if (!Applies(op, dtype) || IsComparison(op)) continue;
      if (op == Op::kSelect) {
        return kb::Select(options_.smooth ? LoadOf(DType::kBool) : Expr(DType::kBool, depth - 1),
                          Expr(dtype, depth - 1), Expr(dtype, depth - 1));
      }
      std::vector<ExprRef> args;
      for (int i = 0; i < Row(op).arity; ++i) args.push_back(Expr(dtype, depth - 1));
      return kb::Call(op, std::move(args));
    }
    return Leaf(dtype);
  }

  // Of values that are no NaN: its bits are the machine's.
  ExprRef Bits(DType dtype) {
    if (options_.smooth || dtype == DType::kBool) return Leaf(dtype);
    for (int tries = 0; tries < 8; ++tries) {
      const DType from = Pick(kScalars);
      if (from != DType::kBool && ScalarBytes(from) == ScalarBytes(dtype)) return kb::BitsTo(dtype, LoadOf(from));
    }
    return Leaf(dtype);
  }

  // Statements. All names made inside a block end with it.

  void Statements(Block& block, int count) {
    const size_t mark = known_.size();
    for (int i = 0; i < count; ++i) Statement(block, count / 3);
    Forget(mark);
  }

  void Statement(Block& block, int inner) {
    const ExprRef outer = column_;
    if (column_ == nullptr) column_ = kb::Int(static_cast<int64_t>(Below(kColumns)));
    const DType dtype = AnyScalar();
    switch (Below(7)) {
      case 0: {
        const std::string name = Fresh("v");
        block.push_back(kb::Let(name, Expr(dtype, options_.depth)));
        Remember(name, dtype);
        break;
      }
      case 1: Running(block, dtype); break;
      case 2: {
        Block yes, no;
        const ExprRef condition = options_.smooth ? LoadOf(DType::kBool) : Expr(DType::kBool, options_.depth - 1);
        if (inner > 0) Statements(yes, inner), Statements(no, Below(2) == 0 ? inner : 0);
        if (!yes.empty()) block.push_back(kb::If(condition, yes, no));
        break;
      }
      case 3: TileMap(block); break;
      case 4: Scratch(block, dtype); break;
      default: StoreLoop(block, dtype); break;
    }
    column_ = outer;
  }

  void StoreLoop(Block& block, DType dtype) {
    Index index;
    const std::string output = AddOutput(dtype, index);
    const std::string c = Fresh("c");
    const ExprRef outer = column_;
    column_ = kb::Ref(c);
    index.push_back(column_);
    const size_t mark = known_.size();
    Block body;
    if (Below(2) == 0) {
      const std::string name = Fresh("v");
      const DType other = AnyScalar();
      body.push_back(kb::Let(name, Expr(other, options_.depth - 1)));
      Remember(name, other);
    }
    body.push_back(kb::Store(output, index, Expr(dtype, options_.depth)));
    Forget(mark);
    column_ = outer;
    const ExprRef low = kb::Int(0), high = kb::Int(kColumns);
    switch (Below(4)) {
      case 0: block.push_back(kb::For(c, low, high, body)); break;
      case 1: block.push_back(kb::Unroll(c, low, high, body)); break;
      default: block.push_back(kb::Vec(c, low, high, body)); break;
    }
  }

  // A var that a loop updates, stored at the end.
  void Running(Block& block, DType dtype) {
    const std::string name = Fresh("t"), c = Fresh("c");
    block.push_back(kb::Var(name, Expr(dtype, 1)));
    Remember(name, dtype);
    const ExprRef outer = column_;
    column_ = kb::Ref(c);
    ExprRef next = Expr(dtype, options_.depth - 1);
    if (options_.smooth) next = kb::Call(Op::kTanh, {next});  // what grows overflows in float sooner than in double
    Block body = {kb::Assign(name, std::move(next))};
    column_ = outer;
    block.push_back(kb::For(c, kb::Int(static_cast<int64_t>(Below(3))), kb::Int(kColumns), body,
                            1 + static_cast<int64_t>(Below(3))));
    Index index;
    const std::string output = AddOutput(dtype, index);
    index.push_back(kb::Int(3));
    block.push_back(kb::Store(output, index, kb::Ref(name, dtype)));
  }

  // An alloc filled and read back in reverse.
  void Scratch(Block& block, DType dtype) {
    const std::string name = Fresh("s"), c = Fresh("c"), back = Fresh("c");
    block.push_back(kb::Alloc(name, {dtype, {kColumns}, Layout::kRow}));
    const ExprRef outer = column_;
    column_ = kb::Ref(c);
    block.push_back(
        kb::Vec(c, kb::Int(0), kb::Int(kColumns), {kb::Store(name, {column_}, Expr(dtype, options_.depth))}));
    column_ = outer;
    Index index;
    const std::string output = AddOutput(dtype, index);
    index.push_back(kb::Ref(back));
    block.push_back(kb::Vec(back, kb::Int(0), kb::Int(kColumns),
                            {kb::Store(output, index, kb::At(name, dtype, {kb::Int(kColumns - 1) - kb::Ref(back)}))}));
  }

  // A tile mapped over its live part: element names, elements elsewhere, indices.
  void TileMap(Block& block) {
    const std::string tile = Fresh("a"), i = Fresh("i"), j = Fresh("j");
    Index index;
    const std::string output = AddOutput(DType::kF32, index);
    block.push_back(kb::Tile(tile, {3, kColumns}, 0.75));
    const int64_t live = 1 + static_cast<int64_t>(Below(3));
    const ExprRef outer = column_;
    column_ = kb::Ref(j);
    Block first = {kb::Store(tile, {kb::Ref(i), kb::Ref(j)},
                             Expr(DType::kF32, 2) + kb::Ref(tile, DType::kF32) * kb::CastTo(DType::kF32, kb::Ref(i)))};
    block.push_back(kb::Map({i, j}, {tile}, {kb::Int(live), kb::Int(kColumns)}, first));
    index.push_back(kb::Ref(j));
    Block second = {kb::Store(output, index,
                              kb::Ref(tile, DType::kF32) - kb::At(tile, DType::kF32, {kb::Int(live - 1), kb::Int(2)}))};
    block.push_back(kb::Map({i, j}, {tile}, {kb::Int(1), kb::Int(kColumns)}, second));
    column_ = outer;
  }

  std::mt19937_64 random_;
  const RandomKernelOptions options_;
  Kernel kernel_;
  ExprRef row_, column_;
  std::vector<std::pair<std::string, DType>> known_;  // scalars in scope
  struct Made {
    ExprRef expr, column;
    int depth;
    size_t known;
  };
  std::vector<Made> made_;  // of names that are all in scope
  int names_ = 0;
};

}  // namespace

Kernel ChainKernel(int length) {
  const ExprRef r = kb::Ref("r"), c = kb::Ref("c");
  const BufferType rows = {DType::kF32, {Extent::Symbol("M"), kColumns}, Layout::kRow};
  ExprRef value = kb::At("x", DType::kF32, {r, c});
  for (int i = 0; i < length; ++i) value = value * value * 0.5 + value * 0.25;
  Kernel kernel;
  kernel.name = "chain";
  kernel.params.resize(3);
  kernel.params[0].name = "x", kernel.params[1].name = "y", kernel.params[2].name = "s";
  for (Param& param : kernel.params) param.type = rows;
  kernel.params[2].type.dims.pop_back();
  kernel.params[1].mode = kernel.params[2].mode = Mode::kOut;
  kernel.symbols.push_back({"M", {1, 64}, {}});
  kernel.grid.push_back({"r", kb::Int(0), kb::Ref("M")});
  kernel.body = {kb::Vec("c", kb::Int(0), kb::Int(kColumns), {kb::Store("y", {r, c}, value)}),
                 kb::Store("s", {r}, kb::SumVec(4, "c", kb::Int(0), kb::Int(kColumns), value))};
  return kernel;
}

Kernel RandomKernel(uint64_t seed, const RandomKernelOptions& options) { return Generator(seed, options).Run(); }

}  // namespace quern::kir
