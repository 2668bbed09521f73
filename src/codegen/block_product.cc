// A matrix product for blocks of threads: a block makes a square of c from slices of a and b in shared memory.
//
//   f16, bf16: 4 warps, each a quarter of the square, by the matrix op of a warp
//   f32:       256 threads, each 4 x 4 elements in registers
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/symbols.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// What a plain product is made of.
struct Product {
  kir::GridDim i, j;
  kir::ExprRef depth;                  // the end of k
  std::string a, b;
  DType dtype = DType::kF32;           // of a and b
  const kir::Reduce* sum = nullptr;
  const kir::Store* store = nullptr;
  int origin = -1;
};

bool IsName(const kir::ExprRef& expr, const std::string& name) {
  const auto* ref = std::get_if<kir::NameRef>(&expr->node);
  return ref != nullptr && ref->name == name;
}
bool IsZero(const kir::ExprRef& expr) {
  const auto* constant = std::get_if<kir::Const>(&expr->node);
  return constant != nullptr && constant->integer == 0 && constant->real == 0;
}

// a[row, k], under a cast where it is not f32: the buffer and its dtype.
bool IsElement(const kir::ExprRef& expr, const std::string& row, const std::string& k, std::string& buffer, DType& dtype) {
  const auto* cast = std::get_if<kir::Cast>(&expr->node);
  const kir::ExprRef& inner = cast == nullptr ? expr : cast->value;
  const auto* load = std::get_if<kir::Load>(&inner->node);
  if (expr->dtype != DType::kF32 || load == nullptr || load->otherwise != nullptr || load->index.size() != 2) return false;
  if (!IsName(load->index[0], row) || !IsName(load->index[1], k)) return false;
  buffer = load->buffer;
  dtype = inner->dtype;
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The only reduction of an expression; `others` counts further ones and what a tile's element cannot stand among.
void FindSum(const kir::ExprRef& expr, const kir::Reduce*& sum, int& others) {
  if (expr == nullptr) return;
  if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) {
    if (sum != nullptr) ++others;
    sum = reduce;
  } else if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) {
    for (const kir::ExprRef& arg : apply->args) FindSum(arg, sum, others);
  } else if (const auto* cast = std::get_if<kir::Cast>(&expr->node)) {
    FindSum(cast->value, sum, others);
  } else if (const auto* bits = std::get_if<kir::Bits>(&expr->node)) {
    FindSum(bits->value, sum, others);
  } else if (const auto* load = std::get_if<kir::Load>(&expr->node)) {
    for (const kir::ExprRef& at : load->index) FindSum(at, sum, others);
  }
}

bool Recognise(const kir::Kernel& kernel, Product& product) {
  if (kernel.grid.size() != 2 || kernel.body.size() != 1) return false;
  product.i = kernel.grid[0], product.j = kernel.grid[1];
  if (product.i.step != 1 || product.j.step != 1 || !IsZero(product.i.low) || !IsZero(product.j.low)) return false;
  product.store = std::get_if<kir::Store>(&kernel.body[0]->node);
  product.origin = kernel.body[0]->origin;
  if (product.store == nullptr) return false;
  int others = 0;
  FindSum(product.store->value, product.sum, others);
  if (product.sum == nullptr || others > 0 || product.sum->op != kir::ReduceOp::kSum || !IsZero(product.sum->low)) return false;
  product.depth = product.sum->high;
  const auto* mul = std::get_if<kir::Apply>(&product.sum->body->node);
  if (mul == nullptr || mul->op != kir::Op::kMul) return false;
  DType other = DType::kF32;
  const std::string& k = product.sum->index;
  return IsElement(mul->args[0], product.i.index, k, product.a, product.dtype) &&
         IsElement(mul->args[1], product.j.index, k, product.b, other) && other == product.dtype;
}

// `value` with the sum replaced by the tile's element.
kir::ExprRef WithElement(const kir::ExprRef& value, const kir::Reduce* sum) {
  if (value == nullptr) return nullptr;
  if (std::get_if<kir::Reduce>(&value->node) == sum) return kb::Ref("acc", DType::kF32);
  kir::Expr copy = *value;
  if (auto* apply = std::get_if<kir::Apply>(&copy.node)) {
    for (kir::ExprRef& arg : apply->args) arg = WithElement(arg, sum);
  } else if (auto* cast = std::get_if<kir::Cast>(&copy.node)) {
    cast->value = WithElement(cast->value, sum);
  } else if (auto* bits = std::get_if<kir::Bits>(&copy.node)) {
    bits->value = WithElement(bits->value, sum);
  }
  return std::make_shared<const kir::Expr>(std::move(copy));
}

class ProductSchedule {
 public:
  ProductSchedule(const kir::Kernel& plain, const Product& product, const BlockFacts& facts)
      : kernel_(plain), product_(product), facts_(facts) {}

  kir::Kernel Run() {
    const bool halves = product_.dtype != DType::kF32;
    side_ = 64;
    depth_ = halves ? 32 : 16;
    // Rows of shared memory are padded, so that the elements of a column lie in different banks.
    const int64_t padded = halves ? depth_ + 8 : depth_ + 1;
    const kir::BufferType type{product_.dtype, {Extent(side_), Extent(padded)}, kir::Layout::kRow};
    const int64_t bytes = 2 * side_ * padded * ScalarBytes(product_.dtype);
    stages_ = static_cast<int>(std::clamp<int64_t>(facts_.shared_bytes / bytes, 1, facts_.stages));
    kernel_.grid = {{"bm", kb::Int(0), product_.i.high, side_}, {"bn", kb::Int(0), product_.j.high, side_}};
    kernel_.body = {kb::Alloc("sa", type, kir::Space::kShared), kb::Alloc("sb", type, kir::Space::kShared),
                    halves ? Warps() : Threads()};
    kernel_.sequential = false;
    return std::move(kernel_);
  }

 private:
  kir::Slice Part(const char* name, const kir::ExprRef& row, int64_t rows) const {
    return kb::SliceOf(name, {kb::Range(row, kb::Int(rows)), kb::Range(kb::Int(0), kb::Int(depth_))});
  }

  kir::StmtRef Steps(kir::Block use) const {
    auto fetched = [&](const char* to, const std::string& from, const char* start) {
      return kb::Copy(Part(to, kb::Int(0), side_),
                      kb::SliceOf(from, {kb::Range(kb::Ref(start), kb::Int(side_)), kb::Range(kb::Ref("k0"), kb::Int(depth_))}));
    };
    return kb::WithOrigin(kb::Pipeline("k0", kb::Int(0), product_.depth, depth_, stages_,
                                       {fetched("sa", product_.a, "bm"), fetched("sb", product_.b, "bn")}, std::move(use)),
                          product_.origin);
  }

  // The tile to c: row and column of its first element in the square, and its side.
  kir::StmtRef Finish(const kir::ExprRef& row, const kir::ExprRef& column, int64_t side) const {
    auto live = [&](const kir::ExprRef& end, const char* start, const kir::ExprRef& first) {
      return kb::Call(kir::Op::kMin, {kb::Int(side), end - kb::Ref(start) - first});
    };
    kir::Block body = {kb::Let(product_.i.index, kb::Ref("bm") + row + kb::Ref("ti")),
                       kb::Let(product_.j.index, kb::Ref("bn") + column + kb::Ref("tj")),
                       kb::Store(product_.store->buffer, product_.store->index, WithElement(product_.store->value, product_.sum))};
    return kb::WithOrigin(kb::Map({"ti", "tj"}, {"acc"}, {live(product_.i.high, "bm", row), live(product_.j.high, "bn", column)},
                                  std::move(body)),
                          product_.origin);
  }

  kir::StmtRef Warps() const {
    const int64_t side = side_ / 2;
    const kir::ExprRef row = (kb::Ref("w") / 2.0) * static_cast<double>(side), column = (kb::Ref("w") % 2.0) * static_cast<double>(side);
    const char* op = product_.dtype == DType::kF16 ? "mma_f16" : "mma_bf16";
    return kb::Thread(kir::ThreadLevel::kWarp, "w", 4,
                      {kb::Tile("acc", {side, side}),
                       Steps({kb::CallTile(op, {"acc"}, {Part("sa", row, side), Part("sb", column, side)})}),
                       Finish(row, column, side)});
  }

  kir::StmtRef Threads() const {
    constexpr int64_t kSide = 4;
    const kir::ExprRef row = (kb::Ref("t") / 16.0) * 4.0, column = (kb::Ref("t") % 16.0) * 4.0, k = kb::Ref("k");
    const kir::ExprRef step = kb::At("sa", DType::kF32, {row + kb::Ref("ti"), k}) * kb::At("sb", DType::kF32, {column + kb::Ref("tj"), k});
    const kir::StmtRef add = kb::Store("acc", {kb::Ref("ti"), kb::Ref("tj")}, kb::Contract(kb::Ref("acc", DType::kF32) + step));
    const kir::StmtRef all = kb::Map({"ti", "tj"}, {"acc"}, {kb::Int(kSide), kb::Int(kSide)}, {add});
    return kb::Thread(kir::ThreadLevel::kBlock, "t", (side_ / kSide) * (side_ / kSide),
                      {kb::Tile("acc", {kSide, kSide}), Steps({kb::For("k", kb::Int(0), kb::Int(depth_), {all})}),
                       Finish(row, column, kSide)});
  }

  kir::Kernel kernel_;
  const Product& product_;
  const BlockFacts& facts_;
  int64_t side_ = 0, depth_ = 0;
  int stages_ = 1;
};

}  // namespace

StatusOr<kir::Kernel> ScheduleProduct(const kir::Kernel& plain, const BlockFacts& facts) {
  Product product;
  if (!Recognise(plain, product) || (product.dtype != DType::kF32 && !facts.half_products)) {
    return absl::UnimplementedError(absl::StrFormat("kernel %s is no plain matrix product", plain.name));
  }
  kir::Kernel scheduled = ProductSchedule(plain, product, facts).Run();
  QUERN_RETURN_IF_ERROR(kir::Verify(scheduled));
  return scheduled;
}

}  // namespace quern::codegen
