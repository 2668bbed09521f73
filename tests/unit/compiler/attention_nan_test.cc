// What attention makes of NaN and infinity: one that a row sees makes the row NaN (or is handled as IEEE says), one
// that it does not see leaves every bit as it was, and a row that sees nothing is zeros. For few query rows and many,
// every mask, whole and odd heads, both dtypes of keys, on this machine's own level and the least one, and in the
// oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/half.h"
#include "quern/graph.h"

namespace quern {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kKeys = 70, kWindow = 9;

struct Shape {
  int64_t queries, head_dim;
  const char* mask;
  bool halves;
};

class Attention {
 public:
  Attention(const Shape& shape, const char* cpu, const char* check) : shape_(shape) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> real(-1, 1);
    auto fill = [&](std::vector<float>& values, int64_t count) {
      values.resize(count);
      for (float& value : values) value = real(random);
    };
    fill(q, shape.queries * kHeads * shape.head_dim);
    fill(k, kKeys * kKvHeads * shape.head_dim);
    fill(v, k.size());
    fill(bias, kHeads * shape.queries * kKeys);
    custom.assign(kKeys, 1);
    for (const int64_t hidden : {0, 17, 64, 69}) custom[hidden] = 0;
    const std::string dtype = shape.halves ? "f16" : "f32";
    auto type = [&](int64_t length, int64_t heads) {
      return absl::StrCat("[1, ", length, ", ", heads * shape.head_dim, "]");
    };
    Graph graph;
    std::vector<Value> operands = {graph.Input("q", "f32" + type(shape.queries, kHeads)),
                                   graph.Input("k", dtype + type(kKeys, kKvHeads)),
                                   graph.Input("v", dtype + type(kKeys, kKvHeads))};
    if (Is("custom")) operands.push_back(graph.Input("mask", absl::StrCat("f32[1, ", kKeys, "]")));
    if (Is("bias"))
      operands.push_back(graph.Input("mask", absl::StrCat("f32[1, ", kHeads, ", ", shape.queries, ", ", kKeys, "]")));
    graph.Output("y", graph.Op("Attention", operands,
                               {{"heads", kHeads},
                                {"kv_heads", kKvHeads},
                                {"head_dim", shape.head_dim},
                                {"mask", shape.mask},
                                {"window", kWindow}}));
    Result<Program> program = graph.Compile({.cpu = cpu, .threads = 1, .check = check, .check_folder = ""});
    EXPECT_TRUE(program.ok()) << program.error();
    if (program.ok()) program_.emplace(std::move(*program));
  }

  bool Is(std::string_view mask) const { return mask == shape_.mask; }
  // Whether query i may see key j.
  bool Sees(int64_t i, int64_t j) const {
    const int64_t at = i + kKeys - shape_.queries;
    if (Is("causal")) return j <= at;
    if (Is("sliding")) return j <= at && j >= at - kWindow;
    if (Is("custom")) return custom[j] != 0;
    return true;
  }

  std::vector<float> Run() {
    std::vector<float> y(q.size(), -7);
    const int64_t rows = kKvHeads * shape_.head_dim;
    std::vector<uint16_t> half_k, half_v;
    for (const float value : k) half_k.push_back(FloatToHalf(value));
    for (const float value : v) half_v.push_back(FloatToHalf(value));
    std::vector<ConstTensor> inputs = {In("q", q, {1, shape_.queries, kHeads * shape_.head_dim})};
    if (shape_.halves) {
      inputs.push_back(In("k", half_k, {1, kKeys, rows}));
      inputs.push_back(In("v", half_v, {1, kKeys, rows}));
    } else {
      inputs.push_back(In("k", k, {1, kKeys, rows}));
      inputs.push_back(In("v", v, {1, kKeys, rows}));
    }
    if (Is("custom")) inputs.push_back(In("mask", custom, {1, kKeys}));
    if (Is("bias")) inputs.push_back(In("mask", bias, {1, kHeads, shape_.queries, kKeys}));
    if (!program_) return y;
    const Result<void> ran = program_->Run(inputs, {Out("y", y, {1, shape_.queries, kHeads * shape_.head_dim})});
    EXPECT_TRUE(ran.ok()) << ran.error();
    return y;
  }

  // Every element: NaN where `nan` says so, else the bits of `clean`. nan(query, head, column).
  template <typename Nan>
  void Expect(const std::vector<float>& clean, const char* what, const Nan& nan) {
    const std::vector<float> y = Run();
    int64_t wrong = 0;
    for (int64_t e = 0; e < static_cast<int64_t>(y.size()); ++e) {
      const int64_t c = e % shape_.head_dim, h = e / shape_.head_dim % kHeads, i = e / shape_.head_dim / kHeads;
      const bool right = nan(i, h, c) ? std::isnan(y[e]) : std::memcmp(&y[e], &clean[e], sizeof(float)) == 0;
      if (!right && wrong++ == 0)
        ADD_FAILURE() << what << ": query " << i << " head " << h << " column " << c << " is " << y[e]
                      << ", without it " << clean[e];
    }
    EXPECT_EQ(wrong, 0) << what;
  }

  float& Key(int64_t j, int64_t kv, int64_t c) { return k[(j * kKvHeads + kv) * shape_.head_dim + c]; }
  float& ValueAt(int64_t j, int64_t kv, int64_t c) { return v[(j * kKvHeads + kv) * shape_.head_dim + c]; }

  std::vector<float> q, k, v, bias, custom;

 private:
  const Shape shape_;
  std::optional<Program> program_;
};

void Poison(const Shape& shape, const char* cpu, const char* check) {
  SCOPED_TRACE(absl::StrCat(shape.queries, " queries, heads of ", shape.head_dim, ", mask ", shape.mask,
                            shape.halves ? ", f16" : "", ", ", cpu));
  Attention a(shape, cpu, check);
  const Attention before = Attention(shape, cpu, check);
  const std::vector<float> clean = a.Run();
  for (const float value : clean) ASSERT_TRUE(std::isfinite(value));
  const auto restore = [&] { a.q = before.q, a.k = before.k, a.v = before.v, a.bias = before.bias; };
  const int64_t group = kHeads / kKvHeads, last = shape.queries - 1;

  a.q[(last * kHeads + 1) * shape.head_dim + shape.head_dim / 2] = NAN;
  a.Expect(clean, "q", [&](int64_t i, int64_t h, int64_t) { return i == last && h == 1; });
  restore();
  // A key and a value in the middle and at both ends of a tile of 64.
  for (const int64_t j : {int64_t{0}, int64_t{17}, int64_t{63}, int64_t{64}, kKeys - 3, kKeys - 1}) {
    const auto seen = [&](int64_t i, int64_t h) { return h / group == 1 && a.Sees(i, j); };
    a.Key(j, 1, 3) = NAN;
    a.Expect(clean, "k", [&](int64_t i, int64_t h, int64_t) { return seen(i, h); });
    restore();
    a.ValueAt(j, 1, shape.head_dim - 1) = NAN;
    a.Expect(clean, "v", [&](int64_t i, int64_t h, int64_t c) { return seen(i, h) && c == shape.head_dim - 1; });
    restore();
    // An infinite value is infinite where it is seen, and nowhere else.
    a.ValueAt(j, 1, 2) = -INFINITY;
    const std::vector<float> y = a.Run();
    for (int64_t e = 0; e < static_cast<int64_t>(y.size()); ++e) {
      const int64_t c = e % shape.head_dim, h = e / shape.head_dim % kHeads, i = e / shape.head_dim / kHeads;
      if (seen(i, h) && c == 2)
        EXPECT_EQ(y[e], -INFINITY) << "query " << i << " head " << h;
      else
        EXPECT_EQ(std::memcmp(&y[e], &clean[e], sizeof(float)), 0) << "query " << i << " head " << h << " column " << c;
    }
    restore();
    // An infinite key has a score of one infinity or the other; +inf is a NaN, -inf weighs nothing.
    a.Key(j, 1, 3) = INFINITY;
    a.Run();
    restore();
  }
  if (a.Is("bias")) {
    const auto at = [&](int64_t h, int64_t i, int64_t j) -> float& {
      return a.bias[(h * shape.queries + i) * kKeys + j];
    };
    at(2, last, 5) = NAN;
    a.Expect(clean, "bias", [&](int64_t i, int64_t h, int64_t) { return i == last && h == 2; });
    restore();
    // What a bias of -inf hides does not matter.
    for (int64_t i = 0; i < shape.queries; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) at(h, i, 9) = -INFINITY;
    }
    const std::vector<float> without = a.Run();
    for (const float poison : {NAN, INFINITY}) {
      for (int64_t c = 0; c < shape.head_dim; ++c) a.Key(9, 1, c) = a.ValueAt(9, 1, c) = poison;
      a.Expect(without, "hidden by a bias", [](int64_t, int64_t, int64_t) { return false; });
    }
    std::fill(a.bias.begin(), a.bias.end(), -INFINITY);
    std::fill(a.v.begin(), a.v.end(), NAN);
    a.Expect(std::vector<float>(clean.size(), 0), "all hidden by a bias",
             [](int64_t, int64_t, int64_t) { return false; });
  }
  if (a.Is("custom")) {
    std::fill(a.custom.begin(), a.custom.end(), 0);
    std::fill(a.k.begin(), a.k.end(), NAN);
    std::fill(a.v.begin(), a.v.end(), NAN);
    a.Expect(std::vector<float>(clean.size(), 0), "all hidden", [](int64_t, int64_t, int64_t) { return false; });
  }
}

constexpr const char* kMasks[] = {"none", "causal", "sliding", "custom", "bias"};

TEST(AttentionNan, FewQueriesAndMany) {
  for (const char* mask : kMasks) {
    for (const int64_t queries : {1, 2, 8, 9, 40}) Poison({queries, 32, mask, false}, "native", "");
    Poison({3, 20, mask, true}, "native", "");
    Poison({13, 20, mask, true}, "native", "");
  }
}

TEST(AttentionNan, TheLeastLevel) {
  for (const char* mask : kMasks) {
    for (const int64_t queries : {1, 5, 19}) Poison({queries, 20, mask, queries == 5}, "x86-64-v2", "");
  }
}

TEST(AttentionNan, TheOracleSaysTheSame) {
  for (const char* mask : kMasks) {
    for (const int64_t queries : {1, 12}) Poison({queries, 8, mask, false}, "native", "ref");
  }
}

}  // namespace
}  // namespace quern
