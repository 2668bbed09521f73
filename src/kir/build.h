// Makes KIR nodes from C++, checked as they are made. Families (src/codegen) write kernels with these.
//
//   namespace kb = quern::kir::build;
//   using namespace quern::kir::build::operators;
//   ExprRef r = kb::Ref("r"), c = kb::Ref("c");
//   kb::Vec("c", kb::Int(0), kb::Int(2048), {kb::Store("y", {r, c}, kb::At("x", DType::kF32, {r, c}) * 0.5)})
//     vec c in 0..2048 {
//       y[r, c] = x[r, c] * 0.5
//     }
//
// The Make functions are exact: the node that is asked for. Call and the operators also simplify integer arithmetic
// (i + 0, 2 * 3, (i + 1) + 2), so that generated indices read well; floats are left as they are.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kir/kir.h"

namespace quern::kir {

inline constexpr int kMaxAccs = 16;  // accumulators of a reduction: more spill on every machine

// Why `op` does not apply to operands of these dtypes, or the dtype of the result.
StatusOr<DType> ResultType(Op op, std::span<const DType> operands);

// Exact makers. Precondition: the operands fit (ResultType); anything else is an internal error.
// A literal holds the value that its dtype holds: floats are rounded to it, integers must lie in its range.
ExprRef MakeReal(double value, DType dtype);
ExprRef MakeInteger(int64_t value, DType dtype);
// `contract` is kept on float +, - and * only: elsewhere it has no meaning.
ExprRef MakeApply(Op op, std::vector<ExprRef> args, bool contract = false);
// The value of an integer literal; nothing for any other expression, and for null.
std::optional<int64_t> KnownInteger(const ExprRef& expr);
// The same of a literal of floats.
std::optional<double> KnownReal(const ExprRef& expr);
// Whether `value` is in the range of the integer dtype (u64: as the bits of int64_t, so always).
bool IntegerFits(DType dtype, int64_t value);

// The declaration `name = ceil(numerator / divisor)`; its range follows from those of `before`.
SymbolDecl DerivedSymbol(std::string name, Extent numerator, int64_t divisor, const std::vector<SymbolDecl>& before);

namespace build {

// Expressions
ExprRef Num(double value, DType dtype = DType::kF32);
ExprRef Int(int64_t value, DType dtype = DType::kI64);
ExprRef Bool(bool value);
ExprRef Ref(std::string name, DType dtype = DType::kI64);
ExprRef At(std::string buffer, DType dtype, Index index, ExprRef otherwise = nullptr);
ExprRef DecodeAt(std::string buffer, Index index);
ExprRef Call(Op op, std::vector<ExprRef> args);
ExprRef Select(ExprRef condition, ExprRef yes, ExprRef no);
ExprRef Min(ExprRef a, ExprRef b);
ExprRef Max(ExprRef a, ExprRef b);
// What a reduction starts from.
ExprRef IdentityOf(ReduceOp op, DType dtype);
// `value` itself when it has that dtype already.
ExprRef CastTo(DType dtype, ExprRef value);
ExprRef BitsTo(DType dtype, ExprRef value);
// The same tree with a*b+c allowed to become one fused multiply-add everywhere in it but in `inputs`, which stay as
// they are: what an op is given, or has in other places, too, is not to be there in two roundings.
ExprRef Contract(const ExprRef& value, std::span<const ExprRef> inputs = {});
// `value` as the term of a sum: where it is a product itself, the addition may be fused with that. What it is made of
// stays as it is, so that a value has the same bits in the sum and elsewhere.
ExprRef Term(const ExprRef& value);
ExprRef ReduceVec(ReduceOp op, int accs, std::string index, ExprRef low, ExprRef high, ExprRef body, Lets lets = {});
ExprRef ReduceFor(ReduceOp op, std::string index, ExprRef low, ExprRef high, ExprRef body, Lets lets = {});
ExprRef SumVec(int accs, std::string index, ExprRef low, ExprRef high, ExprRef body);
// A polynomial in symbols as an expression.
ExprRef FromExtent(const Extent& extent);

// Slices
Slice Whole(std::string buffer, int rank);
Slice SliceOf(std::string buffer, std::vector<SliceDim> dims);
inline SliceDim Point(ExprRef at) { return {std::move(at), nullptr}; }
inline SliceDim Range(ExprRef start, ExprRef extent) { return {std::move(start), std::move(extent)}; }
inline SliceDim All() { return {}; }

// Statements
StmtRef For(std::string index, ExprRef low, ExprRef high, Block body, int64_t step = 1);
StmtRef Unroll(std::string index, ExprRef low, ExprRef high, Block body, int64_t step = 1);
StmtRef Vec(std::string index, ExprRef low, ExprRef high, Block body, VecTail tail = VecTail::kMask);
StmtRef If(ExprRef condition, Block then_body, Block else_body = {});
StmtRef Let(std::string name, ExprRef value);
StmtRef Var(std::string name, ExprRef value);
StmtRef Assign(std::string name, ExprRef value);
StmtRef Store(std::string buffer, Index index, ExprRef value);
StmtRef Alloc(std::string name, BufferType type, Space space = Space::kScratch);
StmtRef Tile(std::string name, std::vector<int64_t> dims, double init = 0, DType dtype = DType::kF32);
StmtRef CallTile(std::string op, std::vector<std::string> tiles, std::vector<Slice> operands,
                 std::vector<std::pair<std::string, ExprRef>> attributes = {});
StmtRef Map(std::vector<std::string> indices, std::vector<std::string> tiles, std::vector<ExprRef> extents, Block body);
StmtRef Pack(Slice dst, Slice src);
StmtRef Prefetch(Slice slice);
StmtRef Thread(ThreadLevel level, std::string index, int64_t count, Block body);
StmtRef Barrier();
StmtRef Copy(Slice dst, Slice src);
StmtRef Pipeline(std::string index, ExprRef low, ExprRef high, int64_t step, int stages, Block fetch, Block use);
StmtRef Shuffle(std::string name, ShuffleKind kind, ExprRef value, ExprRef lane);
StmtRef WithOrigin(const StmtRef& stmt, int origin);

// Arithmetic in C++'s own notation. A number takes the dtype of the other operand.
namespace operators {
ExprRef operator+(const ExprRef& a, const ExprRef& b);
ExprRef operator-(const ExprRef& a, const ExprRef& b);
ExprRef operator*(const ExprRef& a, const ExprRef& b);
ExprRef operator/(const ExprRef& a, const ExprRef& b);
ExprRef operator%(const ExprRef& a, const ExprRef& b);
ExprRef operator-(const ExprRef& a);
ExprRef operator+(const ExprRef& a, double b);
ExprRef operator-(const ExprRef& a, double b);
ExprRef operator*(const ExprRef& a, double b);
ExprRef operator/(const ExprRef& a, double b);
ExprRef operator%(const ExprRef& a, double b);
ExprRef operator+(double a, const ExprRef& b);
ExprRef operator-(double a, const ExprRef& b);
ExprRef operator*(double a, const ExprRef& b);
ExprRef operator/(double a, const ExprRef& b);
}  // namespace operators
}  // namespace build
}  // namespace quern::kir
