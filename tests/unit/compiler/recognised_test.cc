// Attention spelled out in ops, compiled as the Attention that it is recognised as, and held to the double interpreter
// of the graph as it was written: masks of every broadcast, shared keys, heads of rows, few queries and many.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "opt/passes.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

void ExpectRecognised(const std::string& text, const std::vector<Binding>& bindings, double hidden = 0) {
  SCOPED_TRACE(text);
  StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  StatusOr<ir::Graph> recognised = *graph;
  for (const auto pass : {opt::ExpandComposites, opt::Simplify, opt::FoldConstants, opt::UnifySizes}) {
    if (recognised.ok()) recognised = pass(*recognised);
  }
  opt::FusionReport report;
  if (recognised.ok()) recognised = opt::RecogniseAttention(*recognised, {.always = true}, &report);
  ASSERT_TRUE(recognised.ok()) << recognised.status();
  ASSERT_EQ(report.ToString().find("recognised: attention"), 0) << report.ToString();
  StatusOr<compiler::PipelineOptions> options = compiler::PipelineOptionsOf({});
  ASSERT_TRUE(options.ok()) << options.status();
  options->verify_steps = true;
  const StatusOr<CompiledGraph> compiled = PlanGraph(*recognised, {}, *options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const StatusOr<const cpu::Target*> target = cpu::ResolveTarget("native");
  ASSERT_TRUE(target.ok()) << target.status();
  const StatusOr<LevelRunner> level = LevelRunner::Create(**target);
  ASSERT_TRUE(level.ok()) << level.status();
  for (const Binding& binding : bindings) {
    BytesByName bytes = RandomBytes(*graph, binding, 1);
    ir::Feeds feeds = RandomFeeds(*graph, binding, 1);
    if (hidden != 0) {  // the mask: some rows see a part of the keys, some none
      ir::RefTensor& mask = feeds.find("m")->second;
      for (size_t at = 0; at < mask.data.size(); ++at) {
        if (at % 3 == 1 || (at / static_cast<size_t>(mask.dims.back())) % 5 == 4) mask.data[at] = hidden;
      }
      bytes.find("m")->second = ir::BytesOf(mask);
    }
    const auto outputs = RunGraph(*compiled, *level, 2, binding, bytes);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    StatusOr<check::GraphOracle> oracle = check::GraphOracle::Create(*graph, binding, feeds, 1);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    const ir::RefTensor& expected = oracle->expected()[0];
    const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, (*outputs)[0]);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(oracle->WorstText(0, *got), "");
  }
}

// Of $B batches, $H heads, $S rows of $D and $T keys; $M: the mask's type, and how it is put.
std::string Attention(const std::map<std::string, std::string>& given, const std::string& symbols = "") {
  std::map<std::string, std::string> words = {{"$B", "2"},        {"$H", "3"},           {"$S", "13"},
                                              {"$T", "71"},       {"$D", "16"},          {"$M", "f32[2, 1, 1, 71]"},
                                              {"$F", "000080ff"}, {"$P", "Add(%5, %6)"}, {"$K", "f32"}};
  for (const auto& [word, value] : given) words[word] = value;
  words["$sym"] = symbols;
  return absl::StrReplaceAll(R"(graph g $sym{
  %0 = Input() {name = "q"} : f32[$B, $H, $S, $D]
  %1 = Input() {name = "k"} : $K[$B, $H, $T, $D]
  %2 = Input() {name = "v"} : $K[$B, $H, $T, $D]
  %3 = Constant() hex 0000803e : f32[]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[$B, $H, $S, $T]
  %5 = Mul(%4, %3) : f32[$B, $H, $S, $T]
  %6 = Input() {name = "m"} : $M
  %7 = Constant() hex $F : f32[]
  %8 = $P : f32[$B, $H, $S, $T]
  %9 = Softmax(%8) : f32[$B, $H, $S, $T]
  %10 = MatMul(%9, %2) : f32[$B, $H, $S, $D]
  return %10
})",
                             words);
}

TEST(Recognised, Masks) {
  for (const char* const rows : {"2", "67"}) {
    for (const char* const mask : {"[2, 1, 1, 71]", "[1, 1, $S, 71]", "[2, 3, $S, 71]", "[3, 1, 71]"}) {
      const std::string type = absl::StrReplaceAll(mask, {{"$S", rows}});
      ExpectRecognised(Attention({{"$S", rows}, {"$M", "f32" + type}}), {{}});
      ExpectRecognised(Attention({{"$S", rows}, {"$M", "f32" + type}}), {{}}, -INFINITY);
      ExpectRecognised(Attention({{"$S", rows}, {"$M", "f32" + type}}), {{}}, -3e38);
      for (const char* const fill : {"000080ff", "ffff7fff"}) {
        for (const char* const choice : {"Where(%6, %5, %7)", "Where(%6, %7, %5)"}) {
          ExpectRecognised(Attention({{"$S", rows}, {"$M", "bool" + type}, {"$F", fill}, {"$P", choice}}), {{}});
        }
      }
    }
  }
}

TEST(Recognised, Sizes) {
  const std::vector<Binding> sizes = {{{"S", 1}, {"T", 1}},    {{"S", 5}, {"T", 67}},   {{"S", 9}, {"T", 64}},
                                      {{"S", 64}, {"T", 131}}, {{"S", 33}, {"T", 513}}, {{"S", 8}, {"T", 3}}};
  for (const char* const width : {"64", "13"}) {
    for (const char* const keys : {"f32", "f16"}) {
      ExpectRecognised(Attention({{"$S", "S"}, {"$T", "T"}, {"$D", width}, {"$K", keys}, {"$M", "f32[2, 1, 1, T]"}},
                                 "sym S in 1..4096, T in 1..4096 "),
                       sizes);
    }
  }
}

TEST(Recognised, HeadsOfRowsAndSharedKeys) {
  ExpectRecognised(R"(graph g sym S in 1..512 {
  %0 = Input() {name = "q"} : f32[2, S, 66]
  %1 = Input() {name = "k"} : f32[2, S, 33]
  %2 = Input() {name = "v"} : f32[2, S, 33]
  %3 = Reshape(%0) {shape = <2, S, 6, 11>} : f32[2, S, 6, 11]
  %4 = Transpose(%3) {perm = [0, 2, 1, 3]} : f32[2, 6, S, 11]
  %5 = Reshape(%1) {shape = <2, S, 3, 1, 11>} : f32[2, S, 3, 1, 11]
  %6 = Expand(%5) {shape = <2, S, 3, 2, 11>} : f32[2, S, 3, 2, 11]
  %7 = Reshape(%6) {shape = <2, S, 6, 11>} : f32[2, S, 6, 11]
  %8 = Transpose(%7) {perm = [0, 2, 3, 1]} : f32[2, 6, 11, S]
  %9 = Reshape(%2) {shape = <2, S, 3, 1, 11>} : f32[2, S, 3, 1, 11]
  %10 = Expand(%9) {shape = <2, S, 3, 2, 11>} : f32[2, S, 3, 2, 11]
  %11 = Reshape(%10) {shape = <2, S, 6, 11>} : f32[2, S, 6, 11]
  %12 = Transpose(%11) {perm = [0, 2, 1, 3]} : f32[2, 6, S, 11]
  %13 = MatMul(%4, %8) : f32[2, 6, S, S]
  %14 = Softmax(%13) : f32[2, 6, S, S]
  %15 = MatMul(%14, %12) : f32[2, 6, S, 11]
  %16 = Transpose(%15) {perm = [0, 2, 1, 3]} : f32[2, S, 6, 11]
  %17 = Reshape(%16) {shape = <2, S, 66>} : f32[2, S, 66]
  return %17
})",
                   {{{"S", 1}}, {{"S", 7}}, {{"S", 67}}, {{"S", 131}}});
}

}  // namespace
}  // namespace quern
