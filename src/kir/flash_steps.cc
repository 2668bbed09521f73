#include "kir/flash_steps.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace quern::kir {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

constexpr const char* kMeaning = R"(
    for i in 0..r {
      for j in 0..t {
        if (cast<i64>(lo[i]) <= j) & (j < cast<i64>(hi[i])) & (bias[i, j] != -inf) {
          let scaled = scale * (sum for c in 0..d { cast<f32>(q[i, c]) * cast<f32>(k[j, c]) })
          let capped = select(softcap == 0, scaled, softcap * tanh(scaled / softcap))
          let score = capped + bias[i, j]
          let top = max(m[i], score)
          let shrink = select(top == -inf, 1, exp(m[i] - top))
          let weight = select(top == -inf, 0, exp(score - top))
          l[i] = l[i] * shrink + weight
          for c in 0..d {
            o[i, c] = o[i, c] * shrink + weight * cast<f32>(v[j, c])
          }
          m[i] = top
        }
      }
    }
  )";

// A key and a query: two products of d, of which the first may be one of bf16, and scale, maximum, difference,
// exponential and sum of its score.
template <bool kPairs>
TileWork Work(std::span<const int64_t> sizes) {
  const double pairs = static_cast<double>(sizes[0]) * static_cast<double>(sizes[2]),
               product = 2 * pairs * static_cast<double>(sizes[1]), rest = product + 5 * pairs;
  return kPairs ? TileWork{.flops = rest, .bf16_ops = product} : TileWork{.flops = product + rest};
}

const TileOp* FlashStep(DType q, DType k, DType v) {
  // Tables point to their names for as long as the process.
  const char* const symbol = strdup(absl::StrCat("qk_", FlashStepName(q, k, v)).c_str());
  return new TileOp{
      .name = symbol + 3,
      .doc = "online-softmax attention step over some keys and values",
      .tiles = {{"o", DType::kF32, {"r", "d"}}, {"m", DType::kF32, {"r"}}, {"l", DType::kF32, {"r"}}},
      .operands = {{"q", q, {"r", "d"}},
                   {"k", k, {"t", "d"}},
                   {"v", v, {"t", "d"}},
                   {"lo", DType::kI32, {"r"}},
                   {"hi", DType::kI32, {"r"}},
                   {"bias", DType::kF32, {"r", "t"}, Layout::kRow, true}},
      .sizes = {"r", "d", "t"},
      .attributes = {{"scale", DType::kF32, 1}, {"softcap", DType::kF32, 0}, {"many", DType::kI64, 0}},
      .meaning = kMeaning,
      .rtol = 1e-5,
      .symbol = symbol,
      .workspace_bytes = [](std::span<const int64_t> sizes) -> int64_t {
        return 512 * sizes[1] + 32768;  // 128 keys transposed, [d][128] f32, and scores [64][128]
      },
      .work = q == DType::kF32 ? Work<false> : Work<true>,
  };
}

}  // namespace

DType FlashQueries(DType q, DType k) { return q == DType::kBF16 && k == DType::kBF16 ? DType::kBF16 : DType::kF32; }

std::string FlashStepName(DType q, DType k, DType v) {
  return absl::StrCat("flash_step_", std::string(Name(k)), q == DType::kF32 ? "" : "_pairs",
                      v == k ? "" : absl::StrCat("_", std::string(Name(v))));
}

std::vector<const TileOp*> FlashSteps() {
  std::vector<const TileOp*> ops;
  for (const DType k : kDTypes) {
    for (const DType v : kDTypes) {
      ops.push_back(FlashStep(DType::kF32, k, v));
      if (const DType q = FlashQueries(k, k); q != DType::kF32) ops.push_back(FlashStep(q, k, v));
    }
  }
  return ops;
}

}  // namespace quern::kir
