// Attention and Update over sequences of different lengths, as kernels on the KIR interpreter, which checks every
// access.
#include <array>
#include <climits>

#include "absl/strings/str_join.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 6, kSlots = 11;

struct Case {
  std::string mask = "none", sequences = "none", layout = "packed";
  int64_t rows = 0, most_rows = 256, slot = 16, slots_each = 5;
  std::vector<int32_t> q_start = {}, kv_len = {}, blocks = {};
};

std::string Text(const Case& c) {
  const bool ragged = c.sequences.starts_with("ragged"), paged = c.sequences.ends_with("paged");
  auto dims = [&](const std::string& batch, const std::string& length, int64_t heads) {
    if (c.layout == "packed") return absl::StrCat("[", batch, ", ", length, ", ", heads * kHeadDim, "]");
    if (c.layout == "bshd") return absl::StrCat("[", batch, ", ", length, ", ", heads, ", ", kHeadDim, "]");
    return absl::StrCat("[", batch, ", ", heads, ", ", length, ", ", kHeadDim, "]");
  };
  const int64_t room = c.slot * c.slots_each;
  const std::string q = "f32" + dims(ragged ? "1" : "B", "R", kHeads),
                    k = "f16" + (paged ? dims(absl::StrCat(kSlots), absl::StrCat(c.slot), kKvHeads)
                                       : dims("B", absl::StrCat(room), kKvHeads));
  std::vector<std::pair<std::string, std::string>> inputs = {{"q", q}, {"k", k}, {"v", k}};
  if (c.mask == "custom") inputs.emplace_back("mask", absl::StrCat("f32[B, ", room, "]"));
  if (c.mask == "bias") inputs.emplace_back("mask", absl::StrCat("f32[1, ", kHeads, ", R, ", room, "]"));
  if (ragged) inputs.emplace_back("q_start", "i32[B + 1]");
  inputs.emplace_back("kv_len", "i32[B]");
  if (paged) inputs.emplace_back("blocks", absl::StrCat("i32[B, ", c.slots_each, "]"));
  std::string text =
      absl::StrCat("graph g sym R in ", c.most_rows <= 8 ? "1" : "9", "..", c.most_rows, ", B in 1..16 {\n");
  std::vector<std::string> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(&text, "  %", i, " = Input() {name = \"", inputs[i].first, "\"} : ", inputs[i].second, "\n");
    operands.push_back(absl::StrCat("%", i));
  }
  return absl::StrCat(text, "  %", inputs.size(), " = Attention(", absl::StrJoin(operands, ", "),
                      ") {head_dim = ", kHeadDim, ", heads = ", kHeads, ", kv_heads = ", kKvHeads, ", layout = \"",
                      c.layout, "\", mask = \"", c.mask, "\", sequences = \"", c.sequences, "\", window = 7} : ", q,
                      "\n  return %", inputs.size(), "\n}");
}

void Check(const Case& c) {
  SCOPED_TRACE(absl::StrCat(c.mask, " ", c.sequences, " ", c.layout, ", slots of ", c.slot, ", ", c.rows, " rows"));
  Integers integers = {{"kv_len", c.kv_len}};
  if (c.sequences.starts_with("ragged")) integers["q_start"] = c.q_start;
  if (c.sequences.ends_with("paged")) integers["blocks"] = c.blocks;
  CheckFused(Text(c), {{"R", c.rows}, {"B", static_cast<int64_t>(c.kv_len.size())}}, 1e-4, kCpu | kBlocks, integers);
}

constexpr const char* kMasks[] = {"none", "causal", "sliding", "custom", "bias"};

// Lengths of primes, a sequence without keys, one without rows, one that is full; slots out of order and shared.
TEST(Sequences, RowsOfManyInOneStep) {
  for (const char* mask : kMasks) {
    for (const char* sequences : {"ragged", "ragged_paged"}) {
      Case c{.mask = mask, .sequences = sequences, .rows = 37};
      c.q_start = {0, 5, 5, 6, 23, 24, 37};
      c.kv_len = {5, 17, 0, 61, 80, 13};
      for (int32_t n = 0; n < 30; ++n) c.blocks.push_back((n * 7 + 3) % static_cast<int32_t>(kSlots));
      Check(c);
      c.most_rows = 8, c.rows = 7;
      c.q_start = {0, 1, 1, 2, 4, 5, 7};
      Check(c);
    }
  }
}

// A batch of sequences with as many rows each.
TEST(Sequences, LengthsOfABatch) {
  for (const char* mask : kMasks) {
    for (const char* sequences : {"lengths", "paged"}) {
      Case c{.mask = mask, .sequences = sequences, .rows = 3, .most_rows = 8};
      c.kv_len = {3, 80, 0, 67};
      for (int32_t n = 0; n < 20; ++n) c.blocks.push_back(10 - n % 10);
      if (std::string_view(mask) == "bias") c.kv_len.resize(1), c.blocks.resize(5);
      Check(c);
      c.rows = 33, c.most_rows = 256;
      Check(c);
    }
  }
}

// Slots that tiles of 64 keys do not divide, and that do not divide them.
TEST(Sequences, SlotsOfAnySize) {
  for (const int64_t slot : {1, 5, 64, 100}) {
    for (const bool many : {false, true}) {
      for (const char* mask : {"causal", "sliding"}) {
        Case c{.mask = mask, .sequences = "ragged_paged", .rows = many ? 19 : 4, .most_rows = many ? 256 : 8};
        c.slot = slot, c.slots_each = 200 / slot < 11 ? 200 / slot + 1 : 11;
        c.q_start = many ? std::vector<int32_t>{0, 1, 19} : std::vector<int32_t>{0, 1, 4};
        c.kv_len = {static_cast<int32_t>(slot * c.slots_each - 1), static_cast<int32_t>(slot * c.slots_each)};
        for (int64_t n = 0; n < 2 * c.slots_each; ++n) c.blocks.push_back(static_cast<int32_t>((n * 5 + 2) % kSlots));
        Check(c);
      }
    }
  }
}

TEST(Sequences, EveryLayout) {
  for (const char* layout : {"bshd", "bhsd"}) {
    for (const int64_t most : {8, 256}) {
      Case c{.mask = "causal",
             .sequences = "ragged_paged",
             .layout = layout,
             .rows = most == 8 ? 6 : 12,
             .most_rows = most};
      c.q_start = {0, 2, 5, static_cast<int32_t>(c.rows)};
      c.kv_len = {41, 3, 79};
      for (int32_t n = 0; n < 15; ++n) c.blocks.push_back((n * 3 + 1) % static_cast<int32_t>(kSlots));
      Check(c);
    }
  }
}

// Whatever stands there: nothing outside of a buffer is touched, and the result is what the op says.
TEST(Sequences, OperandsThatMeanNothing) {
  std::mt19937 random(kSeed);
  const auto any = [&](int32_t near) -> int32_t {
    switch (random() % 5) {
      case 0: return static_cast<int32_t>(random());
      case 1: return std::array{INT32_MIN, INT32_MAX, -1, INT32_MIN + 1}[random() % 4];
      default: return static_cast<int32_t>(random() % (2 * near)) - near / 4;
    }
  };
  for (int round = 0; round < 12; ++round) {
    for (const char* sequences : {"lengths", "ragged", "paged", "ragged_paged"}) {
      SCOPED_TRACE(absl::StrCat("round ", round, " of seed ", kSeed));
      const int64_t most = round % 2 == 0 ? 8 : 256;
      Case c{.mask = kMasks[random() % 3],
             .sequences = sequences,
             .rows = most == 8 ? static_cast<int64_t>(random() % 8 + 1) : static_cast<int64_t>(random() % 40 + 9),
             .most_rows = most};
      const size_t batch = random() % 4 + 1;
      for (size_t b = 0; b < batch; ++b) c.kv_len.push_back(any(80));
      for (size_t b = 0; b <= batch; ++b) c.q_start.push_back(any(static_cast<int32_t>(c.rows)));
      for (size_t n = 0; n < 5 * batch; ++n) c.blocks.push_back(any(static_cast<int32_t>(kSlots)));
      Check(c);
    }
  }
}

// Rows of no sequence: before the first, and past the last.
TEST(Sequences, RowsOfNone) {
  for (const int64_t most : {8, 256}) {
    Case c{.mask = "causal", .sequences = "ragged", .rows = most == 8 ? 8 : 40, .most_rows = most};
    c.q_start = {2, 3, 6}, c.kv_len = {9, 33};
    Check(c);
  }
}

// ---- Update

std::string UpdateText(const std::string& dims, const std::string& rows, int64_t axis, bool donated) {
  const std::string state = "f16[" + dims + "]", update = "f32[" + rows + "]", half = "f16[" + rows + "]";
  return absl::StrCat("graph g sym R in 1..64 {\n  %0 = Input() {name = \"state\"} : ", state,
                      "\n  %1 = Input() {name = \"x\"} : ", update, "\n  %2 = Input() {name = \"index\"} : i32[R]\n",
                      "  %3 = Cast(%1) {to = f16} : ", half, "\n  %4 = Update(%0, %3, %2) {axis = ", axis,
                      "} : ", state, "\n  return %4\n", donated ? "  donate \"state\" -> 0\n" : "", "}");
}

// In order: the last of those with one index stays; those that the tensor does not have are dropped.
TEST(Sequences, UpdateByIndex) {
  const std::vector<int32_t> index = {12, -1, 3, 3, 13, 0, INT32_MAX, INT32_MIN, 12, 7, 3};
  const std::tuple<std::string, std::string, int64_t> shapes[] = {{"13, 2, 5", "R, 2, 5", 0},
                                                                  {"13, 37", "R, 37", 0},
                                                                  {"13", "R", 0},
                                                                  {"3, 13, 4", "3, R, 4", 1},
                                                                  {"5, 13", "5, R", 1}};
  for (const auto& [dims, rows, axis] : shapes) {
    for (const bool donated : {true, false}) {
      SCOPED_TRACE(absl::StrCat(dims, " axis ", axis, donated ? " in place" : ""));
      CheckFused(UpdateText(dims, rows, axis, donated), {{"R", static_cast<int64_t>(index.size())}}, 1e-3,
                 kCpu | kBlocks, {{"index", index}});
    }
  }
}

// ---- Rope

TEST(Sequences, RopeByPosition) {
  for (const std::string style : {"gptj", "neox"}) {
    CheckFused(
        "graph g sym R in 1..64, T in 1..99 {\n  %0 = Input() {name = \"x\"} : f32[R, 24]\n"
        "  %1 = Input() {name = \"c\"} : f32[T, 4]\n  %2 = Input() {name = \"s\"} : f32[T, 4]\n"
        "  %3 = Input() {name = \"p\"} : i32[R]\n  %4 = Rope(%0, %1, %2, %3) {head_dim = 8, n_rot = 8, style = \"" +
            style + "\"} : f32[R, 24]\n  return %4\n}",
        {{"R", 7}, {"T", 13}}, 2e-5, kAll, {{"p", {0, 12, 5, -1, 13, INT32_MAX, INT32_MIN}}});
  }
}

}  // namespace
}  // namespace quern::codegen
