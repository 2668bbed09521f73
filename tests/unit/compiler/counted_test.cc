// Sizes that each run finds (Counted): what is computed behind them. counted_errors_test.cc has what they may not be,
// counted_api_test.cc how a caller learns them.

#include "ir/binary.h"
#include "unit/compiler/expect_right.h"

namespace quern::testing {
namespace {

// A graph on values of its Inputs, fused and not, on one thread and three, beside the double interpreter. `runs`: of
// one executable, one after the other, each with its sizes and some bytes that are not drawn.
struct CountedRun {
  Binding binding;
  BytesByName given;
};

void ExpectCounted(std::string_view text, const std::vector<CountedRun>& runs) {
  SCOPED_TRACE(text);
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(ir::SameGraph(*graph, *again));
  const std::string encoded = ir::Encode(*graph);
  const StatusOr<ir::Graph> decoded =
      ir::Decode(std::span(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(ir::SameGraph(*graph, *decoded));
  const StatusOr<const cpu::Target*> target = cpu::ResolveTarget("native");
  ASSERT_TRUE(target.ok());
  const StatusOr<LevelRunner> level = LevelRunner::Create(**target);
  ASSERT_TRUE(level.ok());
  for (const bool fuse : {true, false}) {
    StatusOr<compiler::PipelineOptions> pipeline = compiler::PipelineOptionsOf({});
    ASSERT_TRUE(pipeline.ok());
    pipeline->fuse = fuse;
    pipeline->verify_steps = true;
    const StatusOr<CompiledGraph> compiled = PlanGraph(*graph, {}, *pipeline);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const int threads : {1, 3}) {
      ExecutableOptions options;
      options.cache = level->cache;
      options.pool = std::make_shared<ThreadPool>(threads);
      Variant variant{{}, [&]() -> StatusOr<lir::Plan> { return compiled->plan; }};
      const auto executable =
          Executable::Create(SignatureOf(compiled->prepared), {std::move(variant)}, std::move(options));
      ASSERT_TRUE(executable.ok()) << executable.status();
      for (size_t run = 0; run < runs.size(); ++run) {
        BytesByName bytes = RandomBytes(*graph, runs[run].binding, 1);
        for (const auto& [name, given] : runs[run].given) bytes[name] = given;
        ir::Feeds feeds = RandomFeeds(*graph, runs[run].binding, 1);
        for (auto& [name, feed] : feeds)
          feed = *ir::RefTensorFromBytes(feed.dtype, feed.dims, bytes.find(name)->second);
        StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(*graph, runs[run].binding, feeds, 1);
        ASSERT_TRUE(oracle.ok()) << oracle.status();
        const StatusOr<std::vector<ir::RefTensor>> meant = ir::Interpret(*graph, runs[run].binding, feeds);
        ASSERT_TRUE(meant.ok()) << meant.status();
        const auto outputs = RunOnce(**executable, compiled->prepared, runs[run].binding, bytes);
        ASSERT_TRUE(outputs.ok()) << outputs.status() << lir::Print(compiled->plan);
        for (size_t o = 0; o < outputs->size(); ++o) {
          const ir::RefTensor& expected = oracle->expected()[o];
          EXPECT_EQ((*meant)[o].dims, expected.dims);
          const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*outputs)[o]);
          ASSERT_TRUE(got.ok()) << "run " << run << ", output " << o << ": " << got.status();
          EXPECT_EQ(oracle->WorstText(static_cast<int>(o), *got), "")
              << "run " << run << (fuse ? ", fused" : ", not fused") << ir::Print(compiled->prepared)
              << lir::Print(compiled->plan);
        }
      }
    }
  }
}

// Bools of which the first `count` of a run of `step` hold.
std::vector<uint8_t> Chosen(int64_t size, int64_t count) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < count; ++i) bytes[i * 7 % size] = 1;  // sizes have no factor 7
  return bytes;
}

constexpr int64_t kSizes[] = {1, 2, 8, 17, 37};

// Runs of a symbol S with no element chosen, one, some and all, larger and smaller by turns.
std::vector<CountedRun> RunsOf(const std::string& condition) {
  std::vector<CountedRun> runs;
  for (const int64_t size : kSizes) {
    for (const int64_t count : {int64_t{0}, size, int64_t{1}, size / 2})
      runs.push_back({{{"S", size}}, {{condition, Chosen(size, count)}}});
  }
  return runs;
}

TEST(Counted, WhatIsBehindItHasTheSizeThatIsFound) {
  ExpectCounted(R"(graph g sym N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S, 5], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N, 5]
  %4 = Exp(%3) : f32[N, 5]
  %5 = Reduce(%4) {axes = [0], keep_dim = true, op = "sum"} : f32[1, 5]
  %6 = Sub(%4, %5) : f32[N, 5]
  %7 = Input() {name = "w"} : f32[5, 11]
  %8 = MatMul(%6, %7) : f32[N, 11]
  %9 = Transpose(%8) {perm = [1, 0]} : f32[11, N]
  %10 = MatMul(%9, %6) : f32[11, 5]
  %11 = Reduce(%9) {axes = [1], keep_dim = false, op = "sum"} : f32[11]
  %12 = Size() {extent = <N>} : i64[]
  return %3, %6, %8, %10, %11, %12, %2.0
})",
                RunsOf("c"));
}

TEST(Counted, TensorsOfOneCountGoTogether) {
  ExpectCounted(R"(graph g sym N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "y"} : f32[3, S]
  %2 = Input() {name = "c"} : bool[S]
  %3:2 = Compress(%0, %2) {axis = 0} : f32[S, 3], i64[]
  %4:2 = Compress(%1, %2) {axis = 1} : f32[3, S], i64[]
  %5 = Counted(%3.0, %3.1) {axis = 0, size = <N>} : f32[N, 3]
  %6 = Counted(%4.0, %3.1) {axis = 1, size = <N>} : f32[3, N]
  %7 = Transpose(%6) {perm = [1, 0]} : f32[N, 3]
  %8 = Add(%5, %7) : f32[N, 3]
  %9 = MatMul(%6, %8) : f32[3, 3]
  %10 = Concat(%5, %7) {axis = 0} : f32[2*N, 3]
  %11 = Softmax(%6) {axis = 1} : f32[3, N]
  return %8, %9, %10, %11
})",
                RunsOf("c"));
}

TEST(Counted, SeveralSizesEachAfterTheOther) {
  std::vector<CountedRun> runs;
  for (const int64_t size : kSizes) {
    for (const int64_t first : {size, int64_t{0}, size / 2 + 1}) {
      for (const int64_t second : {int64_t{0}, size, size / 3}) {
        runs.push_back({{{"S", size}, {"T", size}}, {{"c", Chosen(size, first)}, {"d", Chosen(size, second)}}});
      }
    }
  }
  ExpectCounted(R"(graph g sym K in 0.., M in 0.., N in 0.., S in 1.., T in 1.. {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "c"} : bool[S]
  %2 = Input() {name = "y"} : f32[T, 3]
  %3 = Input() {name = "d"} : bool[T]
  %4:2 = Compress(%0, %1) {axis = 0} : f32[S, 3], i64[]
  %5:2 = Compress(%2, %3) {axis = 0} : f32[T, 3], i64[]
  %6 = Counted(%4.0, %4.1) {axis = 0, size = <M>} : f32[M, 3]
  %7 = Counted(%5.0, %5.1) {axis = 0, size = <N>} : f32[N, 3]
  %8 = MatMul(%6, %7) {transpose_b = true} : f32[M, N]
  %9 = Reduce(%8) {axes = [1], keep_dim = true, op = "sum"} : f32[M, 1]
  %10 = Add(%8, %9) : f32[M, N]
  %11 = Concat(%6, %7) {axis = 0} : f32[M + N, 3]
  %12:2 = NonZero(%6) : i64[2, 3*M], i64[]
  %13 = Counted(%12.0, %12.1) {axis = 1, size = <K>} : i64[2, K]
  %14 = Neg(%13) : i64[2, K]
  return %8, %9, %10, %11, %14
})",
                runs);
}

// What names a size without reading what was found with it waits for it all the same, whatever it could run with.
TEST(Counted, SizesAreKnownBeforeTheyAreNamed) {
  ExpectCounted(R"(graph g sym N in 0..37, S in 1..37 {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "c"} : bool[S]
  %2 = Neg(%0) : f32[S]
  %3:2 = Compress(%0, %1) {axis = 0} : f32[S], i64[]
  %4 = Counted(%3.0, %3.1) {axis = 0, size = <N>} : f32[N]
  %5 = Iota() {shape = <N, 2>, axis = 0, dtype = i64} : i64[N, 2]
  %6 = Size() {extent = <N>} : i64[]
  %7 = Cast(%6) {to = f32} : f32[]
  %8 = Mul(%2, %7) : f32[S]
  %9 = Slice(%8) {axis = [0], start = <N>, stop = <S>, step = [1]} : f32[S - N]
  return %2, %5, %6, %8, %9
})",
                RunsOf("c"));
}

TEST(Counted, AFoundSizeMayHaveToBeAnother) {
  constexpr std::string_view kText = R"(graph g sym N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N]
  %4 = Add(%3, %0) : f32[S]
  return %4
}
)";
  std::vector<CountedRun> all;
  for (const int64_t size : kSizes) all.push_back({{{"S", size}}, {{"c", Chosen(size, size)}}});
  StatusOr<ir::Graph> graph = ir::Parse(kText);
  if (!graph.ok()) {
    std::string other(kText);
    other.replace(other.find("Add(%3, %0) : f32[S]"), 20, "Add(%3, %0) : f32[N]");
    ExpectCounted(other, all);
    return;
  }
  ExpectCounted(kText, all);
}

TEST(Counted, LoopsAndBranchesTakeWhatWasCounted) {
  ExpectCounted(R"(graph g sym N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S, 3], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N, 3]
  %4 = Input() {name = "h"} : f32[3]
  %5:2 = Scan(%4, %3) {carries = 1, xs = 1, length = <N>} : f32[3], f32[N, 3]
    body graph body sym N in 0.. {
      %0 = Input() {name = "h"} : f32[3]
      %1 = Input() {name = "x"} : f32[3]
      %2 = Add(%0, %1) : f32[3]
      %3 = Tanh(%2) : f32[3]
      return %3, %2
    }
  %6 = Input() {name = "p"} : bool[]
  %7 = If(%6, %3) : f32[N, 3]
    then graph then sym N in 0.. {
      %0 = Input() {name = "x"} : f32[N, 3]
      %1 = Exp(%0) : f32[N, 3]
      return %1
    }
    else graph else sym N in 0.. {
      %0 = Input() {name = "x"} : f32[N, 3]
      %1 = Neg(%0) : f32[N, 3]
      return %1
    }
  return %5.0, %5.1, %7
})",
                RunsOf("c"));
}

// The size is found all the same, and no run is given it.
TEST(Counted, WhatNothingReadsIsFound) {
  ExpectCounted(R"(graph g sym M in 0.., N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N]
  %4 = Scan(%0, %1) {xs = 2, length = <S>} : f32[S]
    body graph body sym M in 0.., N in 0.., S in 1.. {
      %0 = Input() {name = "x"} : f32[]
      %1 = Input() {name = "c"} : bool[]
      %2 = Reshape(%1) {shape = <1>} : bool[1]
      %3:2 = NonZero(%2) : i64[1, 1], i64[]
      %4 = Counted(%3.0, %3.1) {axis = 1, size = <M>} : i64[1, M]
      %5 = Exp(%0) : f32[]
      return %5
    }
  return %4
})",
                RunsOf("c"));
}

// Through the binary form too; the body of a function is the graph's own once it stands there.
TEST(Counted, BranchesAndFunctionsFindSizes) {
  ExpectCounted(R"(graph g sym M in 0.., N in 0.., S in 1.. {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "c"} : bool[S]
  %2 = Input() {name = "p"} : bool[]
  %3 = If(%2, %0, %1) : f32[]
    then graph then sym M in 0.., N in 0.., S in 1.. {
      %0 = Input() {name = "x"} : f32[S]
      %1 = Input() {name = "c"} : bool[S]
      %2:2 = Compress(%0, %1) {axis = 0} : f32[S], i64[]
      %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N]
      %4 = Softmax(%3) {axis = 0} : f32[N]
      %5 = Mul(%4, %3) : f32[N]
      %6 = Reduce(%5) {axes = [0], keep_dim = false, op = "sum"} : f32[]
      return %6
    }
    else graph else sym M in 0.., N in 0.., S in 1.. {
      %0 = Input() {name = "x"} : f32[S]
      %1 = Input() {name = "c"} : bool[S]
      %2 = Reduce(%0) {axes = [0], keep_dim = false, op = "max"} : f32[]
      return %2
    }
  %4 = CustomFn(%0, %1, %3) : f32[S]
    body graph body sym M in 0.., N in 0.., S in 1.. {
      %0 = Input() {name = "x"} : f32[S]
      %1 = Input() {name = "c"} : bool[S]
      %2 = Input() {name = "y"} : f32[]
      %3:2 = NonZero(%1) : i64[1, S], i64[]
      %4 = Counted(%3.0, %3.1) {axis = 1, size = <M>} : i64[1, M]
      %5 = Transpose(%4) {perm = [1, 0]} : i64[M, 1]
      %6 = GatherND(%0, %5) : f32[M]
      %7 = Sub(%6, %2) : f32[M]
      %8 = ScatterND(%0, %5, %7) {reduction = "none"} : f32[S]
      return %8
    }
  return %3, %4
})",
                RunsOf("c"));
}

}  // namespace
}  // namespace quern::testing
