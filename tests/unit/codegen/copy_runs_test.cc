// Copies written out as loops of threads: the same memory as by the copies themselves, by the interpreter, on aligned
// and ragged rows, clipped sources, conversions and block formats. A copy of one thread is no KIR of its own, so here
// its elements become stores.
#include "codegen/copy_runs.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kir/build.h"
#include "kir/interpret.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr uint32_t kSeed = 7211;

struct Case {
  const char* name;
  std::string text;
  int64_t run;  // elements of the longest
};

// x, of rows of `columns`, to shared memory of [8, `room`] from row i and column j on, and what is there to y.
std::string Through(const std::string& from, const std::string& columns, const std::string& room,
                    const std::string& slice, const std::string& to = "f32", const std::string& before = "") {
  const std::string layout = from == "q8_0" ? " @blocks" : "";
  return "kernel k (x : " + from + "[M, " + columns + "]" + layout + " in\n y : " + to + "[M, 3, 8, " + room +
         "] out\n) sym M in 1..100 {\n" + "grid i in 0..M, j in 0..3 { alloc s : " + to + "[8, " + room +
         "] shared\n " + before + " copy " + slice + "\n barrier\n" + "thread t in 0..64 @ block { for e in t..8 * " +
         room + " by 64 { y[i, j, e / " + room + ", e % " + room + "] = s[e / " + room + ", e % " + room + "] } } } }";
}

std::vector<Case> Cases() {
  return {
      {"aligned", Through("f32", "48", "16", "s[:, :] = x[i:+8, 16 * j:+16]"), 4},
      {"padded",
       Through("f32", "48", "20",
               "s[:, 0:+16] = x[i:+8, 16 * j:+16] thread t in 0..64 @ block { "
               "for e in t..32 by 64 { s[e / 4, 16 + e % 4] = 0.0 } }"),
       4},
      {"odd rows", Through("f32", "37", "12", "s[:, :] = x[i:+8, 12 * j:+12]"), 1},
      {"clipped columns", Through("f32", "40", "16", "s[:, :] = x[i:+8, 16 * j:+16]"), 4},
      {"shorter", Through("f32", "64", "16", "s[0:+8, 0:+16] = x[i:+5, 16 * j:+12]"), 4},
      {"clipped in a run's middle", Through("f32", "48", "16", "s[:, :] = x[i:+8, 16 * j + 4:+16]"), 4},
      {"a name that stood for something else",
       Through("f32", "48", "16", "s[:, :] = x[i:+8, 16 * j + max(0, min(q, 4)):+16]", "f32",
               "for q in 0..16 by 16 { barrier } var q : i64 = 2"),
       1},
      {"odd lengths",
       Through("f32", "48", "16",
               "s[:, 0:+10] = x[i:+8, 16 * j:+10] thread t in 0..64 @ block { "
               "for e in t..48 by 64 { s[e / 6, 10 + e % 6] = 0.0 } }"),
       2},
      {"more than are unrolled", Through("f32", "2100", "700", "s[:, :] = x[i:+8, 700 * j:+700]"), 4},
      {"halves", Through("f16", "48", "16", "s[:, :] = x[i:+8, 16 * j:+16]", "f16"), 8},
      {"converted", Through("f16", "48", "16", "s[:, :] = x[i:+8, 16 * j:+16]"), 4},
      {"decoded", Through("q8_0", "96", "32", "s[:, :] = x[i:+8, 32 * j:+32]"), 8},
      {"decoded inside a run", Through("q8_0", "128", "32", "s[:, :] = x[i:+8, 32 * j + 4:+32]"), 1},
      {"one row",
       Through("f32", "48", "16",
               "s[j, :] = x[i, 16 * j:+16] barrier thread t in 0..64 @ block { "
               "for e in t..128 by 64 { if e / 16 != j { s[e / 16, e % 16] = 0.0 } } }"),
       4},
      {"a column",
       Through("f32", "48", "16",
               "s[:, j] = x[i:+8, j] barrier thread t in 0..64 @ block { "
               "for e in t..128 by 64 { if e % 16 != j { s[e / 16, e % 16] = 0.0 } } }"),
       1},
  };
}

// Each copy of a thread as stores of its elements, and the longest run seen.
kir::Block AsStores(const kir::Block& block, bool in_thread, const kir::Kernel& kernel, int64_t& longest) {
  kir::Block made;
  for (const kir::StmtRef& stmt : block) {
    kir::Stmt copy = *stmt;
    if (auto* loop = std::get_if<kir::Loop>(&copy.node)) {
      loop->body = AsStores(loop->body, in_thread || loop->kind == kir::LoopKind::kThread, kernel, longest);
    } else if (auto* branch = std::get_if<kir::If>(&copy.node)) {
      branch->then_body = AsStores(branch->then_body, in_thread, kernel, longest);
    } else if (const auto* node = std::get_if<kir::Copy>(&copy.node)) {
      EXPECT_TRUE(in_thread);
      const CopiedRun run = RunOf(*node);
      longest = std::max(longest, run.length);
      const DType from = kernel.params[0].type.dtype, to = kernel.params[1].type.dtype;
      for (int64_t u = 0; u < run.length; ++u) {
        kir::Index dst, src;
        for (const kir::SliceDim& dim : node->dst.dims)
          dst.push_back(dim.extent == nullptr ? dim.start : dim.start + kb::Int(u));
        for (const kir::SliceDim& dim : node->src.dims)
          src.push_back(dim.extent == nullptr ? dim.start : dim.start + kb::Int(u));
        const kir::ExprRef element = IsBlock(from) ? kb::DecodeAt("x", src) : kb::At("x", from, src);
        const kir::StmtRef one = kb::Store("s", dst, kb::CastTo(to, element));
        made.push_back(run.inside == nullptr ? one : kb::If(run.inside, {one}, {kb::Store("s", dst, kb::Num(0, to))}));
      }
      continue;
    }
    made.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
  }
  return made;
}

TEST(CopyRuns, MeanWhatTheCopiesDo) {
  SCOPED_TRACE(absl::StrFormat("seed %d", kSeed));
  std::mt19937 random(kSeed);
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.name);
    const StatusOr<kir::Kernel> kernel = kir::ParseKernel(test.text);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << test.text;
    ASSERT_EQ(kir::Verify(*kernel), absl::OkStatus());
    kir::Kernel written = WriteOutCopies(*kernel, 64, 16);
    EXPECT_FALSE(kir::Any(written.body, [](const kir::Stmt& stmt) {
      const auto* copy = std::get_if<kir::Copy>(&stmt.node);
      return copy != nullptr && copy->dst.dims.empty();
    }));
    int64_t longest = 0;
    written.body = AsStores(written.body, false, *kernel, longest);
    EXPECT_EQ(longest, test.run);
    for (int64_t rows : {1, 7, 8, 19}) {
      SCOPED_TRACE(rows);
      const Binding binding = {{"M", rows}};
      std::vector<std::vector<uint8_t>> memory[2];
      for (const kir::Param& param : kernel->params) {
        std::vector<uint8_t> data(
            *kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(binding));
        for (uint8_t& byte : data) byte = static_cast<uint8_t>(random() % 60);  // no NaN of any format
        memory[0].push_back(data);
        memory[1].push_back(std::move(data));
      }
      for (int which = 0; which < 2; ++which) {
        std::vector<kir::BufferBytes> buffers(memory[which].begin(), memory[which].end());
        ASSERT_EQ(kir::Interpret(which == 0 ? *kernel : written, binding, buffers), absl::OkStatus())
            << kir::Print(written);
      }
      EXPECT_EQ(memory[0][1], memory[1][1]) << kir::Print(written);
    }
  }
}

}  // namespace
}  // namespace quern::codegen
