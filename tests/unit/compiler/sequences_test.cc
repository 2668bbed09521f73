// Many sequences in one step, compiled: a cache that is written by index, and attention over it, against the plain op
// over each sequence alone and the double interpreter; whatever the operands hold; on any number of threads.
#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/half.h"
#include "quern/graph.h"

namespace quern {
namespace {

constexpr int64_t kHeads = 8, kKvHeads = 2, kHeadDim = 32, kSlots = 40;
constexpr int64_t kQueryRow = kHeads * kHeadDim, kKeyRow = kKvHeads * kHeadDim;
constexpr uint32_t kSeed = 77;

struct Sequence {
  int64_t past = 0, rows = 0;
};

// What one step over some sequences is made of.
struct Step {
  std::vector<int32_t> q_start = {0}, kv_len = {}, blocks = {}, index = {};
  std::vector<float> q = {}, k = {}, v = {};  // rows of the step
  int64_t rows() const { return static_cast<int64_t>(index.size()); }
};

Program Compiled(Graph& graph, int threads, const char* cpu, const char* check) {
  Result<Program> program = graph.Compile({.cpu = cpu, .threads = threads, .check = check, .check_folder = ""});
  EXPECT_TRUE(program.ok()) << program.error();
  return std::move(*program);
}

std::vector<Attribute> AttentionOf(const char* mask, const char* sequences) {
  return {{"heads", kHeads}, {"kv_heads", kKvHeads},  {"head_dim", kHeadDim},
          {"mask", mask},    {"window", int64_t{70}}, {"sequences", sequences}};
}

class Cache {
 public:
  Cache(int64_t slot, int64_t slots_each, int64_t most_rows, const char* mask, int threads, const char* cpu = "native",
        const char* check = "")
      : slot_(slot), slots_each_(slots_each), k_(kSlots * slot * kKeyRow, FloatToHalf(NAN)), v_(k_) {
    Graph graph;
    graph.Symbol("R", most_rows > 8 ? 9 : 1, most_rows);
    graph.Symbol("B", 1, 16);
    const std::string rows = absl::StrCat("[", kSlots * slot, ", ", kKeyRow, "]");
    const Value q = graph.Input("q", absl::StrCat("f32[1, R, ", kQueryRow, "]")),
                index = graph.Input("index", "i32[R]"), q_start = graph.Input("q_start", "i32[B + 1]"),
                kv_len = graph.Input("kv_len", "i32[B]"),
                blocks = graph.Input("blocks", absl::StrCat("i32[B, ", slots_each, "]"));
    std::vector<Value> operands = {q};
    for (const char* name : {"k", "v"}) {
      const Value state = graph.Input(absl::StrCat(name, "_cache"), "f16" + rows);
      const Value step = graph.Op("Cast", {graph.Input(name, absl::StrCat("f32[R, ", kKeyRow, "]"))}, {{"to", "f16"}});
      const Value written = graph.Op("Update", {state, step, index}, {{"axis", int64_t{0}}});
      graph.Output(absl::StrCat(name, "_out"), written);
      operands.push_back(graph.Op(
          "Reshape", {written},
          {{"shape", std::vector<std::string>{absl::StrCat(kSlots), absl::StrCat(slot), absl::StrCat(kKeyRow)}}}));
    }
    operands.insert(operands.end(), {q_start, kv_len, blocks});
    graph.Output("y", graph.Op("Attention", operands, AttentionOf(mask, "ragged_paged")));
    program_.emplace(Compiled(graph, threads, cpu, check));
  }

  std::vector<float> Run(const Step& step) {
    const int64_t batch = static_cast<int64_t>(step.kv_len.size());
    std::vector<float> y(step.rows() * kQueryRow, -7);
    std::vector<uint16_t> k(k_.size()), v(v_.size());
    const std::vector<int64_t> rows = {kSlots * slot_, kKeyRow};
    const Result<void> ran = program_->Run(
        {In("q", step.q, {1, step.rows(), kQueryRow}), In("index", step.index, {step.rows()}),
         In("q_start", step.q_start, {batch + 1}), In("kv_len", step.kv_len, {batch}),
         In("blocks", step.blocks, {batch, slots_each_}), In("k_cache", k_, rows),
         In("k", step.k, {step.rows(), kKeyRow}), In("v_cache", v_, rows), In("v", step.v, {step.rows(), kKeyRow})},
        {Out("k_out", k, rows), Out("v_out", v, rows), Out("y", y, {1, step.rows(), kQueryRow})});
    EXPECT_TRUE(ran.ok()) << ran.error();
    k_ = std::move(k), v_ = std::move(v);
    return y;
  }

 private:
  const int64_t slot_, slots_each_;
  std::vector<uint16_t> k_, v_;
  std::optional<Program> program_;
};

// The plain op over the keys of one sequence.
std::vector<float> Alone(int64_t rows, int64_t keys, const char* mask, const float* q, const std::vector<uint16_t>& k,
                         const std::vector<uint16_t>& v) {
  Graph graph;
  const Value operands[] = {graph.Input("q", absl::StrCat("f32[1, ", rows, ", ", kQueryRow, "]")),
                            graph.Input("k", absl::StrCat("f16[1, ", keys, ", ", kKeyRow, "]")),
                            graph.Input("v", absl::StrCat("f16[1, ", keys, ", ", kKeyRow, "]"))};
  graph.Output("y", graph.Op("Attention", {operands[0], operands[1], operands[2]}, AttentionOf(mask, "none")));
  Program program = Compiled(graph, 1, "native", "");
  const std::vector<float> queries(q, q + rows * kQueryRow);
  std::vector<float> y(queries.size());
  const Result<void> ran = program.Run(
      {In("q", queries, {1, rows, kQueryRow}), In("k", k, {1, keys, kKeyRow}), In("v", v, {1, keys, kKeyRow})},
      {Out("y", y, {1, rows, kQueryRow})});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return y;
}

// Sequences with what they hold so far, and a table of slots in no order.
class Batch {
 public:
  Batch(size_t sequences, int64_t slot, int64_t slots_each) : slot_(slot), slots_each_(slots_each), keys_(sequences) {
    for (size_t n = 0; n < sequences * slots_each; ++n) blocks_.push_back(static_cast<int32_t>((n * 17 + 5) % kSlots));
  }

  Step Next(const std::vector<int64_t>& rows) {
    Step step;
    step.blocks = blocks_;
    std::uniform_real_distribution<float> real(-1, 1);
    for (size_t s = 0; s < keys_.size(); ++s) {
      for (int64_t r = 0; r < rows[s]; ++r) {
        const int64_t at = keys_[s].length++;
        step.index.push_back(static_cast<int32_t>(blocks_[s * slots_each_ + at / slot_] * slot_ + at % slot_));
        for (int64_t c = 0; c < kQueryRow; ++c) step.q.push_back(real(random_));
        for (int64_t c = 0; c < kKeyRow; ++c) {
          step.k.push_back(real(random_)), step.v.push_back(real(random_));
          keys_[s].k.push_back(FloatToHalf(step.k.back())), keys_[s].v.push_back(FloatToHalf(step.v.back()));
        }
      }
      step.q_start.push_back(static_cast<int32_t>(step.index.size()));
      step.kv_len.push_back(static_cast<int32_t>(keys_[s].length));
    }
    return step;
  }

  void ExpectAlone(const Step& step, const std::vector<float>& y, const char* mask) const {
    for (size_t s = 0; s < keys_.size(); ++s) {
      const int64_t rows = step.q_start[s + 1] - step.q_start[s];
      if (rows == 0) continue;
      const int64_t first = step.q_start[s] * kQueryRow;
      const std::vector<float> want = Alone(rows, keys_[s].length, mask, &step.q[first], keys_[s].k, keys_[s].v);
      double worst = 0;
      for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::fabs(want[i] - double{y[first + i]}));
      EXPECT_LE(worst, 2e-5) << "sequence " << s << " of " << keys_[s].length << " keys, " << rows << " rows";
    }
  }

 private:
  struct Keys {
    int64_t length = 0;
    std::vector<uint16_t> k, v;
  };
  const int64_t slot_, slots_each_;
  std::vector<Keys> keys_;
  std::vector<int32_t> blocks_;
  std::mt19937 random_{kSeed};
};

// Chunks of prompts beside single tokens, by steps of many rows and of few.
TEST(Sequences, EqualThePlainOpOnEachAlone) {
  for (const char* mask : {"causal", "sliding"}) {
    for (const auto& [slot, slots_each] : {std::pair<int64_t, int64_t>(16, 10), {64, 4}, {48, 5}}) {
      SCOPED_TRACE(absl::StrCat(mask, ", slots of ", slot));
      Batch batch(4, slot, slots_each);
      Cache cache(slot, slots_each, 256, mask, 2);
      for (const std::vector<int64_t>& rows : {std::vector<int64_t>{131, 7, 0, 1}, {1, 67, 31, 0}, {13, 1, 1, 61}}) {
        const Step step = batch.Next(rows);
        batch.ExpectAlone(step, cache.Run(step), mask);
      }
    }
    Batch batch(3, 16, 13);
    Cache cache(16, 13, 8, mask, 2);
    for (int i = 0; i < 23; ++i) {
      const Step step = batch.Next({i % 2 == 0 ? 3 : 1, 1, i % 4 == 3 ? 0 : 4});
      const std::vector<float> y = cache.Run(step);
      if (i % 5 == 2) batch.ExpectAlone(step, y, mask);
    }
  }
}

TEST(Sequences, TheDoubleInterpreterAgrees) {
  for (const int64_t most : {8, 64}) {
    Batch batch(3, 16, 6);
    Cache cache(16, 6, most, "causal", 1, "native", "ref");  // a run that differs fails
    for (int i = 0; i < 3; ++i) cache.Run(batch.Next({most == 8 ? 2 : 23, 0, 5}));
  }
}

// The bits are those of one thread, and of any other place in the cache.
TEST(Sequences, ThreadsAndSlotsChangeNoBit) {
  for (const int64_t most : {8, 256}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 4}) {
      Batch batch(4, 16, 10);
      Cache cache(16, 10, most, "causal", threads);
      for (int i = 0; i < 3; ++i) {
        const std::vector<float> y =
            cache.Run(batch.Next(most == 8 ? std::vector<int64_t>{1, 2, 0, 5} : std::vector<int64_t>{1, 40, 0, 5}));
        if (threads == 1)
          results.push_back(y);
        else
          EXPECT_EQ(std::memcmp(y.data(), results[i].data(), y.size() * sizeof(float)), 0) << threads << " threads";
      }
    }
  }
}

// What no sequence has is not read, what it has no room for is not written, and the rest is as ever.
TEST(Sequences, OperandsThatMeanNothing) {
  std::mt19937 random(kSeed);
  const auto any = [&](int64_t near) {
    const int32_t edges[] = {INT32_MIN, INT32_MAX, -1, INT32_MIN + 1, static_cast<int32_t>(near)};
    return random() % 3 == 0
               ? edges[random() % std::size(edges)]
               : static_cast<int32_t>(random() % static_cast<uint64_t>(2 * near)) - static_cast<int32_t>(near / 4);
  };
  for (const int64_t most : {8, 64}) {
    for (const char* cpu : {"native", "x86-64-v2"}) {
      Cache cache(16, 6, most, "causal", 2, cpu);
      Cache checked(16, 6, most, "causal", 1, cpu, "ref");
      for (int round = 0; round < 8; ++round) {
        Step step = Batch(3, 16, 6).Next({most == 8 ? 1 : 30, 2, 4});
        for (int32_t& value : step.q_start) value = any(step.rows());
        for (int32_t& value : step.kv_len) value = any(96);
        for (int32_t& value : step.blocks) value = any(kSlots);
        for (int32_t& value : step.index) value = any(kSlots * 16);
        cache.Run(step);
        checked.Run(step);
      }
    }
  }
}

}  // namespace
}  // namespace quern
