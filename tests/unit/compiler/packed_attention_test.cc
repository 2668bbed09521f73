// Attention over parts of one product, q, k and v side by side in its rows: no launch copies a part before it, and the
// result is that of the double interpreter. Few rows and many, heads in any order, Attention itself and spelled out.
#include "absl/strings/str_replace.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

// The names of the kernels that run, in order.
std::vector<std::string> Launched(const lir::Plan& plan) {
  std::vector<std::string> names;
  for (const lir::Launch& launch : plan.launches) names.push_back(plan.kernels[launch.kernel].name);
  return names;
}

// Every run launches these kernels, and they are right.
void ExpectLaunches(const std::string& text, const std::vector<std::string>& kernels,
                    const std::vector<Binding>& bindings = {{}}, const SymbolRanges& guard = {}) {
  SCOPED_TRACE(text);
  const StatusOr<Planned> planned = Plan(text, guard);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(Launched(planned->compiled.plan), kernels) << lir::Print(planned->compiled.plan);
  ExpectRight(text, bindings);
}

std::string Replaced(const char* text, std::map<std::string, std::string> words) {
  words.emplace("$sym", "");
  return absl::StrReplaceAll(text, words);
}

// What attention over so many rows launches: few are cut into runs of keys, which are merged.
std::vector<std::string> WithAttention(std::vector<std::string> before, bool few) {
  before.push_back("attention");
  if (few) before.push_back("attention_finish");
  return before;
}

// [rows, (H + 2 KV) D] by Slices.
constexpr const char* kParts = R"(graph g $sym{
  %0 = Input() {name = "x"} : f32[2, $S, 40]
  %1 = Param() {name = "w"} : f32[128, 40]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[2, $S, 128]
  %3 = Slice(%2) {axis = 2, start = 0, stop = 64} : f32[2, $S, 64]
  %4 = Slice(%2) {axis = 2, start = 64, stop = 96} : f32[2, $S, 32]
  %5 = Slice(%2) {axis = 2, start = 96} : f32[2, $S, 32]
  %6 = Attention(%3, %4, %5) {head_dim = 16, heads = 4, kv_heads = 2, mask = "$M"} : f32[2, $S, 64]
  return %6
})";

TEST(PackedAttention, PartsOfRows) {
  for (const char* mask : {"none", "causal"}) {
    for (const char* rows : {"5", "70"})
      ExpectLaunches(Replaced(kParts, {{"$S", rows}, {"$M", mask}}), WithAttention({"matmul"}, rows[0] == '5'));
    ExpectLaunches(Replaced(kParts, {{"$S", "S"}, {"$M", mask}, {"$sym", "sym S in 1..512 "}}), {"matmul", "attention"},
                   {{{"S", 1}}, {{"S", 9}}, {{"S", 131}}});
  }
}

// As exporters write it: [B, S, 3, H, D] turned to [3, B, H, S, D].
TEST(PackedAttention, ThreeTurned) {
  for (const char* rows : {"3", "67"}) {
    const std::string text = Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, $S, 40]
  %1 = Param() {name = "w"} : f32[192, 40]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[2, $S, 192]
  %3 = Reshape(%2) {shape = <2, $S, 3, 4, 16>} : f32[2, $S, 3, 4, 16]
  %4 = Transpose(%3) {perm = [2, 0, 3, 1, 4]} : f32[3, 2, 4, $S, 16]
  %5 = Slice(%4) {axis = 0, start = 0, stop = 1} : f32[1, 2, 4, $S, 16]
  %6 = Slice(%4) {axis = 0, start = 1, stop = 2} : f32[1, 2, 4, $S, 16]
  %7 = Slice(%4) {axis = 0, start = 2, stop = 3} : f32[1, 2, 4, $S, 16]
  %8 = Reshape(%5) {shape = <2, 4, $S, 16>} : f32[2, 4, $S, 16]
  %9 = Reshape(%6) {shape = <2, 4, $S, 16>} : f32[2, 4, $S, 16]
  %10 = Reshape(%7) {shape = <2, 4, $S, 16>} : f32[2, 4, $S, 16]
  %11 = Attention(%8, %9, %10) {head_dim = 16, heads = 4, kv_heads = 4, layout = "bhsd"} : f32[2, 4, $S, 16]
  return %11
})",
                                      {{"$S", rows}});
    ExpectLaunches(text, WithAttention({"matmul"}, rows[0] == '3'));
  }
}

// Heads one by one, each with its query, key and value: [B, S, H, 3, D].
TEST(PackedAttention, HeadByHead) {
  for (const char* rows : {"1", "8", "67"}) {
    const std::string text = Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $S, 40]
  %1 = Param() {name = "w"} : f32[192, 40]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[1, $S, 192]
  %3 = Reshape(%2) {shape = <1, $S, 4, 48>} : f32[1, $S, 4, 48]
  %4 = Slice(%3) {axis = 3, start = 0, stop = 16} : f32[1, $S, 4, 16]
  %5 = Slice(%3) {axis = 3, start = 16, stop = 32} : f32[1, $S, 4, 16]
  %6 = Slice(%3) {axis = 3, start = 32} : f32[1, $S, 4, 16]
  %7 = Attention(%4, %5, %6) {head_dim = 16, heads = 4, kv_heads = 4, layout = "bshd"} : f32[1, $S, 4, 16]
  return %7
})",
                                      {{"$S", rows}});
    ExpectLaunches(text, WithAttention({"matmul"}, std::string_view(rows).size() == 1));
  }
}

// Spelled out in ops, with a bias of the product that is added in its kernel.
TEST(PackedAttention, SpelledOut) {
  ExpectLaunches(Replaced(R"(graph g sym S in 192..2048 {
  %0 = Input() {name = "x"} : f32[2, S, 40]
  %1 = Param() {name = "w"} : f32[384, 40]
  %2 = Param() {name = "b"} : f32[384]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[2, S, 384]
  %4 = Add(%3, %2) : f32[2, S, 384]
  %5 = Slice(%4) {axis = 2, start = 0, stop = 128} : f32[2, S, 128]
  %6 = Slice(%4) {axis = 2, start = 128, stop = 256} : f32[2, S, 128]
  %7 = Slice(%4) {axis = 2, start = 256} : f32[2, S, 128]
  %8 = Reshape(%5) {shape = <2, S, 2, 64>} : f32[2, S, 2, 64]
  %9 = Reshape(%6) {shape = <2, S, 2, 64>} : f32[2, S, 2, 64]
  %10 = Reshape(%7) {shape = <2, S, 2, 64>} : f32[2, S, 2, 64]
  %11 = Transpose(%8) {perm = [0, 2, 1, 3]} : f32[2, 2, S, 64]
  %12 = Transpose(%9) {perm = [0, 2, 3, 1]} : f32[2, 2, 64, S]
  %13 = Transpose(%10) {perm = [0, 2, 1, 3]} : f32[2, 2, S, 64]
  %14 = Constant() hex 0000003e : f32[]
  %15 = MatMul(%11, %12) : f32[2, 2, S, S]
  %16 = Mul(%15, %14) : f32[2, 2, S, S]
  %17 = Softmax(%16) : f32[2, 2, S, S]
  %18 = MatMul(%17, %13) : f32[2, 2, S, 64]
  %19 = Transpose(%18) {perm = [0, 2, 1, 3]} : f32[2, S, 2, 64]
  %20 = Reshape(%19) {shape = <2, S, 128>} : f32[2, S, 128]
  return %20
})",
                          {}),
                 {"matmul", "attention"}, {{{"S", 192}}, {{"S", 200}}});
}

// Rotations of q and k write what they compute; nothing copies the values.
TEST(PackedAttention, RotatedQueriesAndKeys) {
  const auto text = [](const char* rows) {
    return Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[$S, 40]
  %1 = Param() {name = "w"} : f32[128, 40]
  %2 = Input() {name = "cos"} : f32[$S, 8]
  %3 = Input() {name = "sin"} : f32[$S, 8]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[$S, 128]
  %5 = Slice(%4) {axis = 1, start = 0, stop = 64} : f32[$S, 64]
  %6 = Slice(%4) {axis = 1, start = 64, stop = 96} : f32[$S, 32]
  %7 = Slice(%4) {axis = 1, start = 96} : f32[$S, 32]
  %8 = Rope(%5, %2, %3) {head_dim = 16, n_rot = 16, packed = true, style = "neox"} : f32[$S, 64]
  %9 = Rope(%6, %2, %3) {head_dim = 16, n_rot = 16, packed = true, style = "neox"} : f32[$S, 32]
  %10 = Reshape(%8) {shape = <1, $S, 64>} : f32[1, $S, 64]
  %11 = Reshape(%9) {shape = <1, $S, 32>} : f32[1, $S, 32]
  %12 = Reshape(%7) {shape = <1, $S, 32>} : f32[1, $S, 32]
  %13 = Attention(%10, %11, %12) {head_dim = 16, heads = 4, kv_heads = 2, mask = "causal"} : f32[1, $S, 64]
  return %13
})",
                    {{"$S", rows}});
  };
  ExpectLaunches(text("4"), WithAttention({"matmul", "map", "map"}, true));
  ExpectLaunches(text("70"), WithAttention({"matmul", "map", "map"}, false));
}

// Where there is no one step from head to head, or no place for the offset, a part is copied, and right.
TEST(PackedAttention, WhatHasNoPlaceIsCopied) {
  for (const char* rows : {"3", "40"}) {
    // Two heads of q, then one of k and one of v, twice: [B, S, 2, 4, D].
    ExpectRight(Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $S, 2, 4, 16]
  %1 = Slice(%0) {axis = 3, start = 0, stop = 2} : f32[1, $S, 2, 2, 16]
  %2 = Slice(%0) {axis = 3, start = 2, stop = 3} : f32[1, $S, 2, 1, 16]
  %3 = Slice(%0) {axis = 3, start = 3} : f32[1, $S, 2, 1, 16]
  %4 = Reshape(%1) {shape = <1, $S, 64>} : f32[1, $S, 64]
  %5 = Reshape(%2) {shape = <1, $S, 32>} : f32[1, $S, 32]
  %6 = Reshape(%3) {shape = <1, $S, 32>} : f32[1, $S, 32]
  %7 = Attention(%4, %5, %6) {head_dim = 16, heads = 4, kv_heads = 2} : f32[1, $S, 64]
  return %7
})",
                         {{"$S", rows}}),
                {{}});
    // Rows of 100, which is no number of heads; keys that end before their buffer; every second column.
    ExpectRight(Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $S, 100]
  %1 = Input() {name = "y"} : f32[1, 80, 32]
  %2 = Input() {name = "z"} : f32[1, 79, 64]
  %3 = Input() {name = "mask"} : f32[$S, 79]
  %4 = Slice(%0) {axis = 2, start = 3, stop = 35} : f32[1, $S, 32]
  %5 = Slice(%1) {axis = 1, start = 0, stop = 79} : f32[1, 79, 32]
  %6 = Slice(%2) {axis = 2, start = 0, step = 2} : f32[1, 79, 32]
  %7 = Attention(%4, %5, %6, %3) {head_dim = 16, heads = 2, kv_heads = 2, mask = "bias"} : f32[1, $S, 32]
  return %7
})",
                         {{"$S", rows}}),
                {{}});
    // Queries of neighbouring heads and keys of heads that are apart, in the same rows.
    ExpectRight(Replaced(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $S, 128]
  %1 = Slice(%0) {axis = 2, start = 0, stop = 64} : f32[1, $S, 64]
  %2 = Reshape(%1) {shape = <1, $S, 4, 16>} : f32[1, $S, 4, 16]
  %3 = Reshape(%0) {shape = <1, $S, 2, 64>} : f32[1, $S, 2, 64]
  %4 = Slice(%3) {axis = 3, start = 16, stop = 32} : f32[1, $S, 2, 16]
  %5 = Slice(%3) {axis = 3, start = 48} : f32[1, $S, 2, 16]
  %6 = Attention(%2, %4, %5) {head_dim = 16, heads = 4, kv_heads = 2, layout = "bshd"} : f32[1, $S, 4, 16]
  return %6
})",
                         {{"$S", rows}}),
                {{}});
  }
}

// A result that is turned to rows is written so.
TEST(PackedAttention, ResultsInRows) {
  for (const char* rows : {"3", "67"}) {
    const std::string text = Replaced(R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 4, $S, 16]
  %1 = Input() {name = "k"} : f16[2, 2, 75, 16]
  %2 = Input() {name = "v"} : bf16[2, 2, 75, 16]
  %3 = Attention(%0, %1, %2) {head_dim = 16, heads = 4, kv_heads = 2, layout = "bhsd"} : f32[2, 4, $S, 16]
  %4 = Transpose(%3) {perm = [0, 2, 1, 3]} : f32[2, $S, 4, 16]
  return %4
})",
                                      {{"$S", rows}});
    ExpectLaunches(text, WithAttention({}, rows[0] == '3'));
  }
}

}  // namespace
}  // namespace quern
