// Rows do not see each other: within a form of an attention, or, with Options::invariant, of a product, few rows (1 to
// 8) or many, the bits of a row are its own, whatever rows stand beside it, where, and how many, on any number of
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/dtype.h"
#include "ir/op.h"
#include "kir/random_buffer.h"
#include "quern/graph.h"

namespace quern {
namespace {

constexpr int64_t kMostRows = 256;
constexpr uint32_t kSeed = 19;

std::vector<float> RandomRows(int64_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> real(-1, 1);
  std::vector<float> values(elements);
  for (float& value : values) value = real(random);
  return values;
}

// Takes rows of x, of which `rows` says which, gives as many of y.
using Run = std::function<std::vector<float>(const std::vector<int64_t>& rows, const std::vector<float>& x)>;

std::vector<float> Pick(const std::vector<float>& all, int64_t width, const std::vector<int64_t>& rows) {
  std::vector<float> picked;
  for (const int64_t row : rows) picked.insert(picked.end(), &all[row * width], &all[row * width] + width);
  return picked;
}

// Runs rows of `x` in sets of both forms; every row that is in several sets of one form has the same bits in each.
void ExpectOwnBits(const Run& run, const std::vector<float>& x, int64_t width, const char* what) {
  std::vector<std::vector<int64_t>> few, many;
  for (int64_t row = 0; row < 8; ++row) few.push_back({row});
  few.insert(few.end(), {{1, 0},
                         {1, 2},
                         {2, 3, 4, 5},
                         {4, 2, 7},
                         {3, 1, 5, 0},
                         {7, 6, 5, 4, 3},
                         {0, 2, 4, 6, 1, 3},
                         {6, 1, 2, 3, 5, 7, 0},
                         {0, 1, 2, 3, 4, 5, 6, 7}});
  std::vector<int64_t> all(kMostRows);
  std::iota(all.begin(), all.end(), 0);
  std::mt19937 random(kSeed);
  std::vector<int64_t> shuffled = all;
  for (const int64_t count : {256, 9, 10, 11, 12, 13, 33, 47, 64, 100, 255}) {
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    many.emplace_back(shuffled.begin(), shuffled.begin() + count);
  }
  many.push_back(all);
  for (const auto* form : {&few, &many}) {
    std::map<int64_t, std::pair<std::vector<float>, size_t>> seen;  // with the size of the set
    for (const std::vector<int64_t>& rows : *form) {
      const std::vector<float> y = run(rows, Pick(x, width, rows));
      const int64_t wide = static_cast<int64_t>(y.size() / rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<float> bits(&y[i * wide], &y[i * wide] + wide);
        const auto [known, fresh] = seen.try_emplace(rows[i], bits, rows.size());
        if (fresh) continue;
        ASSERT_EQ(std::memcmp(known->second.first.data(), bits.data(), wide * sizeof(float)), 0)
            << what << ": row " << rows[i] << " in " << rows.size() << " rows is not what it is in "
            << known->second.second;
      }
    }
  }
}

// Products with what usually follows them: an activation, a sum with rows of another operand, another product, for
// which they may be quantised.
void Product(const char* format, bool exact, const char* cpu, int threads) {
  constexpr int64_t kDepth = 512, kColumns = 272;
  SCOPED_TRACE(absl::StrCat(format, exact ? " exact" : "", " ", cpu, " ", threads, " threads"));
  std::mt19937_64 random(kSeed);
  Graph graph;
  graph.Symbol("M", 1, kMostRows);
  const DType dtype = *DTypeFromName(format);
  std::map<std::string, std::vector<uint8_t>> weights;
  auto weight = [&](const char* name, int64_t n, int64_t k) {
    const kir::BufferType type = {
        dtype, {Extent(n), Extent(k)}, IsBlock(dtype) ? kir::Layout::kBlocks : kir::Layout::kRow};
    std::vector<uint8_t>& bytes = weights[name];
    bytes = *kir::RandomBuffer(type, {}, random);
    return graph.Param(name, absl::StrCat(format, "[", n, ", ", k, "]"), std::as_bytes(std::span(bytes)));
  };
  const Value x = graph.Input("x", absl::StrCat("f32[M, ", kDepth, "]"));
  const std::vector<Attribute> rows = {{"transpose_b", true}};
  const Value gate = graph.Op("MatMul", {x, weight("gate", kDepth, kDepth)}, rows);
  const Value up = graph.Op("MatMul", {x, weight("up", kDepth, kDepth)}, rows);
  const Value inner = graph.Op("Mul", {graph.Op("Tanh", {gate}), graph.Op("Sigmoid", {up})});
  const Value down = graph.Op("MatMul", {inner, weight("down", kDepth, kDepth)}, rows);
  const std::vector<float> gamma = RandomRows(kDepth, kSeed + 1);
  const Value sum = graph.Op("RmsNorm", {graph.Op("Add", {down, x}), graph.Param("gamma", "f32[512]", gamma)});
  graph.Output("y", graph.Op("MatMul", {sum, weight("last", kColumns, kDepth)}, rows));
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = threads, .exact = exact, .invariant = true});
  ASSERT_TRUE(program.ok()) << program.error();
  ExpectOwnBits(
      [&](const std::vector<int64_t>& which, const std::vector<float>& in) {
        const int64_t m = static_cast<int64_t>(which.size());
        std::vector<float> y(m * kColumns);
        const Result<void> ran = program->Run({In("x", in, {m, kDepth})}, {Out("y", y, {m, kColumns})});
        EXPECT_TRUE(ran.ok()) << ran.error();
        return y;
      },
      RandomRows(kMostRows * kDepth, kSeed), kDepth, format);
}

// Rows of attention: queries at positions of one text, in a cache that is there twice, or more of it in one sequence.
class Attention {
 public:
  Attention(const char* mask, const char* dtype, int64_t head_dim, int64_t slot)
      : mask_(mask), dtype_(dtype), head_dim_(head_dim), slot_(slot), each_(kKeys / slot) {
    key_ = RandomRows(kKeys * kKvHeads * head_dim_, 5), value_ = RandomRows(kKeys * kKvHeads * head_dim_, 6);
    for (std::vector<float>* half : {&key_, &value_}) half->insert(half->end(), half->begin(), half->end());
  }

  void Check(const char* cpu, int threads) {
    SCOPED_TRACE(absl::StrCat(mask_, " ", dtype_, " heads of ", head_dim_, ", slots of ", slot_, ", ", cpu));
    Program few = Compiled(1, 8, cpu, threads), many = Compiled(9, kMostRows, cpu, threads);
    for (const bool together : {false, true}) {
      ExpectOwnBits(
          [&](const std::vector<int64_t>& rows, const std::vector<float>& in) {
            return Rows(rows.size() <= 8 ? few : many, rows, in, together);
          },
          RandomRows(kMostRows * kHeads * head_dim_, kSeed), kHeads * head_dim_,
          together ? "parts of a text" : "each a text");
    }
  }

 private:
  static constexpr int64_t kKeys = 320, kPast = 40, kHeads = 6, kKvHeads = 2;

  Program Compiled(int64_t least, int64_t most, const char* cpu, int threads) const {
    Graph graph;
    graph.Symbol("R", least, most);
    graph.Symbol("B", 1, most);
    const std::string cache = absl::StrCat("f32[", 2 * each_, ", ", slot_, ", ", kKvHeads * head_dim_, "]");
    const Value q = graph.Input("q", absl::StrCat("f32[1, R, ", kHeads * head_dim_, "]")), k = graph.Input("k", cache),
                v = graph.Input("v", cache), q_start = graph.Input("q_start", "i32[B + 1]"),
                kv_len = graph.Input("kv_len", "i32[B]"),
                blocks = graph.Input("blocks", absl::StrCat("i32[B, ", each_, "]"));
    const auto as = [&](const Value& x) { return graph.Op("Cast", {x}, {{"to", dtype_}}); };
    graph.Output("y", graph.Op("Attention", {q, as(k), as(v), q_start, kv_len, blocks},
                               {{"heads", kHeads},
                                {"kv_heads", kKvHeads},
                                {"head_dim", head_dim_},
                                {"mask", mask_},
                                {"window", int64_t{70}},
                                {"sequences", "ragged_paged"}}));
    Result<Program> program = graph.Compile({.cpu = cpu, .threads = threads});
    EXPECT_TRUE(program.ok()) << program.error();
    return std::move(*program);
  }

  std::vector<float> Rows(Program& program, const std::vector<int64_t>& rows, const std::vector<float>& in,
                          bool together) const {
    const int64_t m = static_cast<int64_t>(rows.size()), width = kHeads * head_dim_;
    std::vector<int32_t> starts = {0}, lengths, slots;
    for (int64_t i = 0; i < m; ++i) {
      if (together && i + 1 < m && rows[i + 1] == rows[i] + 1) continue;
      starts.push_back(static_cast<int32_t>(i + 1));
      lengths.push_back(static_cast<int32_t>(kPast + rows[i] + 1));
      for (int64_t n = 0; n < each_; ++n)
        slots.push_back(static_cast<int32_t>(n + (lengths.size() % 2 == 0 ? each_ : 0)));
    }
    const int64_t batch = static_cast<int64_t>(lengths.size());
    const std::vector<int64_t> cache = {2 * each_, slot_, kKvHeads * head_dim_};
    std::vector<float> y(m * width);
    const Result<void> ran = program.Run(
        {In("q", in, {1, m, width}), In("k", key_, cache), In("v", value_, cache), In("q_start", starts, {batch + 1}),
         In("kv_len", lengths, {batch}), In("blocks", slots, {batch, each_})},
        {Out("y", y, {1, m, width})});
    EXPECT_TRUE(ran.ok()) << ran.error();
    return y;
  }

  const char *const mask_, *const dtype_;
  const int64_t head_dim_, slot_, each_;
  std::vector<float> key_, value_;
};

TEST(RowBits, AttentionOverSequences) {
  for (const char* mask : {"causal", "sliding"}) {
    Attention(mask, "f16", 32, 16).Check("native", 2);
    Attention(mask, "f16", 32, 160).Check("native", 1);
    Attention(mask, "f32", 20, 160).Check("native", 1);
    Attention(mask, "f16", 20, 16).Check("x86-64-v3", 1);
    Attention(mask, "f32", 32, 160).Check("x86-64-v2", 2);
  }
}

TEST(RowBits, ProductsOfEveryFormat) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    if (!ir::Accepts(ir::OperandKind::kWeight, dtype) || dtype == DType::kQ8_K || dtype == DType::kF64) continue;
    const std::string format(Name(dtype));
    for (const bool exact : {false, true}) {
      if (!IsBlock(dtype) && exact) continue;
      Product(format.c_str(), exact, "native", 1);
      Product(format.c_str(), exact, "x86-64-v2", 2);
      Product(format.c_str(), exact, "x86-64-v3", 1);
    }
  }
}

}  // namespace
}  // namespace quern
