// A plain matrix product found in a kernel, and scheduled by squares.
#include "absl/strings/str_cat.h"
#include "codegen/block_product.h"
#include "codegen/block_schedule.h"
#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// What a plain product is made of.
struct Product {
  kir::GridDim i, j;
  kir::ExprRef depth;  // the end of k
  std::string a, b;
  DType dtype = DType::kF32;  // of a and b
  const kir::Reduce* sum = nullptr;
  const kir::Store* store = nullptr;
  int origin = -1;
};

bool IsZero(const kir::ExprRef& expr) {
  const auto* constant = std::get_if<kir::Const>(&expr->node);
  return constant != nullptr && constant->integer == 0 && constant->real == 0;
}

// a[row, k], under a cast where it is not f32: the buffer and its dtype.
bool IsElement(const kir::ExprRef& expr, const std::string& row, const std::string& k, std::string& buffer,
               DType& dtype) {
  const auto* cast = std::get_if<kir::Cast>(&expr->node);
  const kir::ExprRef& inner = cast == nullptr ? expr : cast->value;
  const auto* load = std::get_if<kir::Load>(&inner->node);
  if (expr->dtype != DType::kF32 || load == nullptr || load->otherwise != nullptr || load->index.size() != 2)
    return false;
  if (!kir::IsName(load->index[0], row) || !kir::IsName(load->index[1], k)) return false;
  buffer = load->buffer;
  dtype = inner->dtype;
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The only reduction of an expression, or null.
const kir::Reduce* OnlySum(const kir::ExprRef& expr) {
  std::vector<const kir::Reduce*> found;
  kir::ForEachExpr(expr, [&](const kir::ExprRef& node) {
    if (const auto* reduce = std::get_if<kir::Reduce>(&node->node)) found.push_back(reduce);
  });
  return found.size() == 1 && found[0]->op == kir::ReduceOp::kSum ? found[0] : nullptr;
}

bool Recognise(const kir::Kernel& kernel, Product& product) {
  if (kernel.grid.size() != 2 || kernel.body.size() != 1) return false;
  product.i = kernel.grid[0], product.j = kernel.grid[1];
  if (product.i.step != 1 || product.j.step != 1 || !IsZero(product.i.low) || !IsZero(product.j.low)) return false;
  product.store = std::get_if<kir::Store>(&kernel.body[0]->node);
  product.origin = kernel.body[0]->origin;
  if (product.store == nullptr) return false;
  product.sum = OnlySum(product.store->value);
  if (product.sum == nullptr || !IsZero(product.sum->low) || !product.sum->lets.empty()) return false;
  product.depth = product.sum->high;
  const auto* mul = std::get_if<kir::Apply>(&product.sum->body->node);
  if (mul == nullptr || mul->op != kir::Op::kMul) return false;
  DType other = DType::kF32;
  const std::string& k = product.sum->index;
  return IsElement(mul->args[0], product.i.index, k, product.a, product.dtype) &&
         IsElement(mul->args[1], product.j.index, k, product.b, other) && other == product.dtype;
}

kir::Kernel Scheduled(kir::Kernel kernel, const Product& product, const family::BlockFacts& facts) {
  auto large = [&](const kir::GridDim& dim) {
    const auto* extent = std::get_if<kir::Const>(&dim.high->node);
    return extent != nullptr && extent->integer >= facts.large_product;
  };
  const int64_t side = product.dtype != DType::kF32 && large(product.i) && large(product.j) ? 2 * SquareProduct::kRows
                                                                                            : SquareProduct::kRows;
  const SquareProduct square(product.dtype, side, side, 1, facts);
  auto part = [](const std::string& buffer, const char* start) {
    return [buffer, start](int64_t rows, const kir::ExprRef& k, int64_t depth) {
      return kb::SliceOf(buffer, {kb::Range(kb::Ref(start), kb::Int(rows)), kb::Range(k, kb::Int(depth))});
    };
  };
  auto finish = [&](const kir::ExprRef& row, const kir::ExprRef& column, int64_t rows, int64_t columns) -> kir::Block {
    auto live = [](const kir::ExprRef& end, const char* start, const kir::ExprRef& first, int64_t side) {
      return kb::Min(kb::Int(side), end - kb::Ref(start) - first);
    };
    const kir::ExprRef value = kir::Rewrite(product.store->value, [&](const kir::ExprRef& node) -> kir::ExprRef {
      return std::get_if<kir::Reduce>(&node->node) == product.sum ? kb::Ref("acc", DType::kF32) : nullptr;
    });
    kir::Block body = {kb::Let(product.i.index, kb::Ref("bm") + row + kb::Ref("ti")),
                       kb::Let(product.j.index, kb::Ref("bn") + column + kb::Ref("tj")),
                       kb::Store(product.store->buffer, product.store->index, value)};
    return {kb::WithOrigin(
        kb::Map({"ti", "tj"}, {"acc"},
                {live(product.i.high, "bm", row, rows), live(product.j.high, "bn", column, columns)}, std::move(body)),
        product.origin)};
  };
  kir::Block body = square.Allocs();
  body.push_back(
      square.Threads({"acc"}, part(product.a, "bm"), {part(product.b, "bn")}, product.depth, product.origin, finish));
  kernel.grid = {{"bm", kb::Int(0), product.i.high, side}, {"bn", kb::Int(0), product.j.high, side}};
  kernel.body = std::move(body);
  kernel.sequential = false;
  return kernel;
}

}  // namespace

StatusOr<kir::Kernel> ScheduleProduct(const kir::Kernel& plain, const family::BlockFacts& facts) {
  Product product;
  if (!Recognise(plain, product) || (product.dtype != DType::kF32 && !facts.half_products)) {
    return absl::UnimplementedError(absl::StrFormat("kernel %s is no plain matrix product", plain.name));
  }
  kir::Kernel scheduled = Scheduled(plain, product, facts);
  QUERN_RETURN_IF_ERROR(kir::Verify(scheduled));
  return scheduled;
}

}  // namespace quern::codegen
