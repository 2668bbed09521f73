// Attention spelled out in ops: what is one and what only looks like one. Every graph that is recognised means the same
// to the double interpreter afterwards, NaN for NaN.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/interpret.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::opt {
namespace {

struct Outcome {
  ir::Graph before, after;
  std::string report;
  std::string attention;  // the one node, as text, from its name on; "" for none
  int transposes = 0, matmuls = 0;
};

Outcome Recognised(const std::string& text, bool always = true) {
  Outcome outcome;
  StatusOr<ir::Graph> graph = ir::Parse(text);
  for (const auto pass : {ExpandComposites, Simplify, FoldConstants, UnifySizes}) {
    if (graph.ok()) graph = pass(*graph);
  }
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  if (!graph.ok()) return outcome;
  outcome.before = *std::move(graph);
  FusionReport report;
  StatusOr<ir::Graph> after = RecogniseAttention(outcome.before, {.always = always}, &report);
  if (after.ok()) after = Dce(*after);
  EXPECT_TRUE(after.ok()) << after.status() << "\n" << text;
  if (!after.ok()) return outcome;
  const Status verified = ir::Verify(*after);
  EXPECT_TRUE(verified.ok()) << verified;
  outcome.after = *std::move(after);
  outcome.report = report.ToString();
  const std::string printed = ir::Print(outcome.after);
  if (const size_t at = printed.find("Attention("); at != std::string::npos)
    outcome.attention = printed.substr(at, printed.find(" :", at) - at);
  for (const ir::Node& node : outcome.after.nodes()) {
    outcome.transposes += std::string_view(node.op->name) == "Transpose";
    outcome.matmuls += std::string_view(node.op->name) == "MatMul";
  }
  return outcome;
}

// The two graphs mean the same for these sizes; -inf is put where `hide` says so of an input's elements.
void ExpectSame(const Outcome& outcome, const Binding& binding = {}, const char* hide_input = "",
                bool (*hide)(int64_t at) = nullptr) {
  ir::Feeds feeds = testing::RandomFeeds(outcome.before, binding, 7);
  if (hide != nullptr) {
    ir::RefTensor& tensor = feeds.find(hide_input)->second;
    for (size_t at = 0; at < tensor.data.size(); ++at) {
      if (hide(static_cast<int64_t>(at))) tensor.data[at] = -INFINITY;
    }
  }
  const auto before = ir::Interpret(outcome.before, binding, feeds),
             after = ir::Interpret(outcome.after, binding, feeds);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(before->size(), after->size());
  for (size_t o = 0; o < before->size(); ++o) {
    const ir::RefTensor &a = (*before)[o], &b = (*after)[o];
    ASSERT_EQ(a.dims, b.dims);
    for (size_t at = 0; at < a.data.size(); ++at) {
      if (std::isnan(a.data[at]) && std::isnan(b.data[at])) continue;
      ASSERT_NEAR(a.data[at], b.data[at], 1e-9) << "output " << o << " element " << at;
    }
  }
}

void ExpectLeft(const std::string& text, const std::string& reason) {
  const Outcome outcome = Recognised(text);
  EXPECT_EQ(outcome.attention, "") << text;
  if (reason.empty())
    EXPECT_EQ(outcome.report, "") << text;
  else
    EXPECT_NE(outcome.report.find("not recognised: attention at MatMul %"), std::string::npos) << text;
  EXPECT_NE(outcome.report.find(reason), std::string::npos) << outcome.report << text;
}

constexpr const char* kScale = "Constant() hex 0000803e : f32[]";  // 0.25

// The text with its nodes numbered in the order of their lines.
std::string Numbered(const std::string& text) {
  std::map<std::string, std::string> names;
  std::string numbered;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '%') {
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      numbered += names.emplace(text.substr(at, end - at), absl::StrCat("%", names.size())).first->second;
    } else {
      numbered += text[at];
    }
    at = end;
  }
  return numbered;
}

// Batches of 2, 3 heads, 5 queries, 7 keys, 11 elements. $scores: lines from %4, the product, to %9, what is weighed;
// %3 is the operand "m".
std::string Text(const std::string& mask, const std::string& scores, const std::string& rest = "",
                 const std::string& out = "") {
  return Numbered(
      absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, 5, 11]
  %1 = Input() {name = "k"} : f32[2, 3, 7, 11]
  %2 = Input() {name = "v"} : f32[2, 3, 7, 11]
  %3 = Input() {name = "m"} : $mask
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[2, 3, 5, 7]
  %5 = $scale
$scores  %20 = Softmax(%9) {axis = -1} : f32[2, 3, 5, 7]
  %21 = MatMul(%20, %2) : f32[2, 3, 5, 11]
$rest  return %21$out
}
)",
                          {{"$mask", mask}, {"$scale", kScale}, {"$scores", scores}, {"$rest", rest}, {"$out", out}}));
}

// The same without a mask.
constexpr const char* kNoMask = "f32[1]";

TEST(RecogniseAttention, Scales) {
  const struct {
    const char* lines;
    const char* scale;
  } cases[] = {{"  %9 = Mul(%4, %5) : f32[2, 3, 5, 7]\n", "scale = 0.25"},
               {"  %9 = Mul(%5, %4) : f32[2, 3, 5, 7]\n", "scale = 0.25"},
               {"  %9 = Div(%4, %5) : f32[2, 3, 5, 7]\n", "scale = 4.0"},
               {"  %6 = Div(%4, %5) : f32[2, 3, 5, 7]\n  %9 = Mul(%6, %5) : f32[2, 3, 5, 7]\n", "scale = 1.0"},
               {"  %6 = Constant() hex 000080bf000080bf000080bf : f32[1, 3, 1, 1]\n"
                "  %9 = Mul(%4, %6) : f32[2, 3, 5, 7]\n",
                "scale = -1.0"}};
  for (const auto& [lines, scale] : cases) {
    const Outcome outcome = Recognised(Text(kNoMask, lines));
    EXPECT_NE(outcome.attention.find(scale), std::string::npos) << outcome.attention << outcome.report;
    EXPECT_NE(outcome.attention.find("heads = 3, kv_heads = 3, layout = \"bhsd\", mask = \"none\""), std::string::npos);
    EXPECT_NE(outcome.report.find(": 3 heads of 11, none\n"), std::string::npos) << outcome.report;
    EXPECT_EQ(outcome.report.find("recognised: attention at MatMul %"), 0) << outcome.report;
    EXPECT_EQ(outcome.matmuls, 0);
    ExpectSame(outcome);
  }
}

TEST(RecogniseAttention, ScalesOfOperands) {
  const Outcome outcome = Recognised(absl::StrCat(R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, 5, 11]
  %1 = Input() {name = "k"} : f32[2, 3, 7, 11]
  %2 = Input() {name = "v"} : f32[2, 3, 7, 11]
  %3 = )",
                                                  kScale, R"( 
  %4 = Mul(%0, %3) : f32[2, 3, 5, 11]
  %5 = Div(%1, %3) : f32[2, 3, 7, 11]
  %6 = Mul(%5, %3) : f32[2, 3, 7, 11]
  %7 = Mul(%2, %3) : f32[2, 3, 7, 11]
  %8 = MatMul(%4, %6) {transpose_b = true} : f32[2, 3, 5, 7]
  %9 = Softmax(%8) : f32[2, 3, 5, 7]
  %10 = MatMul(%9, %7) : f32[2, 3, 5, 11]
  return %10
})"));
  EXPECT_NE(outcome.attention.find("scale = 0.25"), std::string::npos) << outcome.attention;
  ExpectSame(outcome);  // the factor of v stays where it is
}

TEST(RecogniseAttention, Caps) {
  const Outcome outcome = Recognised(Text(kNoMask, R"(  %6 = Mul(%4, %5) : f32[2, 3, 5, 7]
  %7 = Tanh(%6) : f32[2, 3, 5, 7]
  %9 = Div(%7, %5) : f32[2, 3, 5, 7]
)"));
  EXPECT_NE(outcome.attention.find("scale = 1.0"), std::string::npos) << outcome.attention;
  EXPECT_NE(outcome.attention.find("softcap = 4.0"), std::string::npos) << outcome.attention;
  ExpectSame(outcome);
}

TEST(RecogniseAttention, AddedMasks) {
  for (const char* const mask : {"f32[2, 1, 1, 7]", "f32[1, 1, 5, 7]", "f32[5, 7]", "f32[7]", "f32[2, 3, 5, 7]",
                                 "f32[3, 5, 1]", "f32[1, 3, 1, 7]", "f32[]"}) {
    for (const char* const sum : {"Add(%6, %3)", "Add(%3, %6)"}) {
      const Outcome outcome = Recognised(
          Text(mask, absl::StrCat("  %6 = Mul(%4, %5) : f32[2, 3, 5, 7]\n  %9 = ", sum, " : f32[2, 3, 5, 7]\n")));
      EXPECT_NE(outcome.attention.find("mask = \"bias\""), std::string::npos) << mask << outcome.report;
      ExpectSame(outcome);
      // Rows that see some of the keys, and rows that see none: the softmax of nothing is NaN.
      ExpectSame(outcome, {}, "m", [](int64_t at) { return at % 3 == 1; });
      ExpectSame(outcome, {}, "m", [](int64_t) { return true; });
    }
  }
}

TEST(RecogniseAttention, Choices) {
  // -inf, and what nothing else reaches.
  for (const char* const fill : {"000080ff", "ffff7fff"}) {
    for (const char* const mask : {"bool[2, 1, 1, 7]", "bool[5, 7]", "bool[2, 3, 5, 7]", "bool[2, 1, 5, 1]"}) {
      for (const char* const choice : {"Where(%3, %6, %7)", "Where(%3, %7, %6)"}) {
        const Outcome outcome =
            Recognised(Text(mask, absl::StrCat("  %6 = Mul(%4, %5) : f32[2, 3, 5, 7]\n  %7 = Constant() hex ", fill,
                                               " : f32[]\n  %9 = ", choice, " : f32[2, 3, 5, 7]\n")));
        EXPECT_NE(outcome.attention.find("mask = \"bias\""), std::string::npos) << mask << outcome.report;
        ExpectSame(outcome);
        ir::Feeds feeds = testing::RandomFeeds(outcome.before, {}, 7);
        for (const double all : {0.0, 1.0}) {  // rows that see nothing
          for (double& value : feeds.find("m")->second.data) value = all;
          const auto before = ir::Interpret(outcome.before, {}, feeds), after = ir::Interpret(outcome.after, {}, feeds);
          ASSERT_TRUE(before.ok() && after.ok());
          for (size_t at = 0; at < (*before)[0].data.size(); ++at) {
            const double a = (*before)[0].data[at], b = (*after)[0].data[at];
            ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || std::fabs(a - b) < 1e-9) << a << " " << b;
          }
        }
      }
    }
  }
}

// A condition of [Sq, Sk] as a Constant, or what is added.
std::string Causal(int64_t rows, int64_t keys, int64_t shift, bool added, const std::string& fill) {
  std::string data;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const bool seen = j <= i + keys - rows + shift;
      absl::StrAppend(&data, std::string(!added ? (seen ? "01" : "00") : seen ? "00000000" : fill.c_str()));
    }
  }
  const std::string extents = absl::StrCat("[2, 3, ", rows, ", ", keys, "]");
  return absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, $q, 11]
  %1 = Input() {name = "k"} : f32[2, 3, $k, 11]
  %2 = Input() {name = "v"} : f32[2, 3, $k, 11]
  %3 = Constant() hex $data : $mask
  %4 = MatMul(%0, %1) {transpose_b = true} : f32$all
  %5 = Constant() hex $fill : f32[]
  %6 = $op : f32$all
  %7 = Softmax(%6) : f32$all
  %8 = MatMul(%7, %2) : f32[2, 3, $q, 11]
  return %8
})",
                             {{"$q", absl::StrCat(rows)},
                              {"$k", absl::StrCat(keys)},
                              {"$data", data},
                              {"$fill", fill},
                              {"$all", extents},
                              {"$mask", absl::StrCat(added ? "f32[" : "bool[1, 1, ", rows, ", ", keys, "]")},
                              {"$op", added ? "Add(%4, %3)" : "Where(%3, %4, %5)"}});
}

TEST(RecogniseAttention, CausalWhereItIsProved) {
  const struct {
    int64_t rows, keys, shift;
    const char* fill;
    const char* mask;
    const char* empty;
  } cases[] = {{7, 7, 0, "000080ff", "causal", "zeros"}, {5, 7, 0, "000080ff", "causal", "zeros"},
               {7, 5, 0, "000080ff", "causal", "nan"},   {5, 7, 0, "ffff7fff", "causal", "zeros"},
               {7, 5, 0, "ffff7fff", "bias", "nan"},     {7, 7, 1, "000080ff", "bias", "nan"},
               {7, 7, -1, "000080ff", "bias", "nan"}};
  for (const auto& [rows, keys, shift, fill, mask, empty] : cases) {
    for (const bool added : {false, true}) {
      const Outcome outcome = Recognised(Causal(rows, keys, shift, added, fill));
      EXPECT_NE(outcome.attention.find(absl::StrCat("mask = \"", mask, "\"")), std::string::npos)
          << outcome.attention << rows << " " << keys << " " << shift << fill;
      EXPECT_NE(outcome.attention.find(absl::StrCat("empty_rows = \"", empty, "\"")), std::string::npos)
          << outcome.attention << rows << " " << keys << " " << shift << fill;
      ExpectSame(outcome);
    }
  }
  // What is added where a key is hidden can be seen.
  EXPECT_NE(Recognised(Causal(7, 7, 0, true, "00401cc6")).attention.find("mask = \"bias\""), std::string::npos);
}

// [B, S, heads * D], divided into heads, turned, and turned back.
TEST(RecogniseAttention, HeadsOfRows) {
  const std::string text = R"(graph g sym S in 1..64, T in 1..64 {
  %0 = Input() {name = "q"} : f32[2, S, 33]
  %1 = Input() {name = "k"} : f32[2, T, 33]
  %2 = Input() {name = "v"} : f32[2, T, 33]
  %3 = Reshape(%0) {shape = <2, S, 3, 11>} : f32[2, S, 3, 11]
  %4 = Transpose(%3) {perm = [0, 2, 1, 3]} : f32[2, 3, S, 11]
  %5 = Reshape(%1) {shape = <2, T, 3, 11>} : f32[2, T, 3, 11]
  %6 = Transpose(%5) {perm = [0, 2, 1, 3]} : f32[2, 3, T, 11]
  %7 = Transpose(%6) {perm = [0, 1, 3, 2]} : f32[2, 3, 11, T]
  %8 = Reshape(%2) {shape = <2, T, 3, 11>} : f32[2, T, 3, 11]
  %9 = Transpose(%8) {perm = [0, 2, 1, 3]} : f32[2, 3, T, 11]
  %10 = MatMul(%4, %7) : f32[2, 3, S, T]
  %11 = Softmax(%10) : f32[2, 3, S, T]
  %12 = MatMul(%11, %9) : f32[2, 3, S, 11]
  %13 = Transpose(%12) {perm = [0, 2, 1, 3]} : f32[2, S, 3, 11]
  %14 = Reshape(%13) {shape = <2, S, 33>} : f32[2, S, 33]
  return %14
})";
  const Outcome outcome = Recognised(text);
  EXPECT_NE(outcome.attention.find("layout = \"bshd\""), std::string::npos) << outcome.attention << outcome.report;
  EXPECT_EQ(outcome.transposes, 0);
  ExpectSame(outcome, {{"S", 5}, {"T", 7}});
  ExpectSame(outcome, {{"S", 1}, {"T", 1}});
  // Batches and heads as one dimension, as products of three have them.
  const Outcome joined = Recognised(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "q"} : f32[2, S, 33]
  %1 = Input() {name = "k"} : f32[2, S, 33]
  %2 = Input() {name = "v"} : f32[2, S, 33]
  %3 = Input() {name = "m"} : f32[2, 1, 1, S]
  %4 = Reshape(%0) {shape = <2, S, 3, 11>} : f32[2, S, 3, 11]
  %5 = Transpose(%4) {perm = [0, 2, 1, 3]} : f32[2, 3, S, 11]
  %6 = Reshape(%5) {shape = <6, S, 11>} : f32[6, S, 11]
  %7 = Reshape(%1) {shape = <2, S, 3, 11>} : f32[2, S, 3, 11]
  %8 = Transpose(%7) {perm = [0, 2, 3, 1]} : f32[2, 3, 11, S]
  %9 = Reshape(%8) {shape = <6, 11, S>} : f32[6, 11, S]
  %10 = Reshape(%2) {shape = <2, S, 3, 11>} : f32[2, S, 3, 11]
  %11 = Transpose(%10) {perm = [0, 2, 1, 3]} : f32[2, 3, S, 11]
  %12 = Reshape(%11) {shape = <6, S, 11>} : f32[6, S, 11]
  %13 = MatMul(%6, %9) : f32[6, S, S]
  %14 = Reshape(%13) {shape = <2, 3, S, S>} : f32[2, 3, S, S]
  %15 = Add(%14, %3) : f32[2, 3, S, S]
  %16 = Reshape(%15) {shape = <6, S, S>} : f32[6, S, S]
  %17 = Softmax(%16) : f32[6, S, S]
  %18 = MatMul(%17, %12) : f32[6, S, 11]
  %19 = Reshape(%18) {shape = <2, 3, S, 11>} : f32[2, 3, S, 11]
  %20 = Transpose(%19) {perm = [0, 2, 1, 3]} : f32[2, S, 3, 11]
  return %20
})");
  EXPECT_NE(joined.attention.find("layout = \"bshd\""), std::string::npos) << joined.attention << joined.report;
  EXPECT_EQ(joined.transposes, 0);
  ExpectSame(joined, {{"S", 5}});
}

TEST(RecogniseAttention, FewerDimensions) {
  const Outcome one = Recognised(R"(graph g {
  %0 = Input() {name = "q"} : f32[5, 11]
  %1 = Input() {name = "k"} : f32[11, 7]
  %2 = Input() {name = "v"} : f32[7, 11]
  %3 = MatMul(%0, %1) : f32[5, 7]
  %4 = Softmax(%3) : f32[5, 7]
  %5 = MatMul(%4, %2) : f32[5, 11]
  return %5
})");
  EXPECT_NE(one.attention.find("heads = 1"), std::string::npos) << one.report;
  ExpectSame(one);
  const Outcome batches = Recognised(R"(graph g sym B in 1..9 {
  %0 = Input() {name = "q"} : f32[B, 5, 11]
  %1 = Input() {name = "k"} : f32[B, 7, 11]
  %2 = Input() {name = "v"} : f32[B, 11, 7]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[B, 5, 7]
  %4 = Softmax(%3) : f32[B, 5, 7]
  %5 = MatMul(%4, %2) {transpose_b = true} : f32[B, 5, 11]
  return %5
})");
  EXPECT_NE(batches.attention.find("heads = 1"), std::string::npos) << batches.report;
  ExpectSame(batches, {{"B", 3}});
}

TEST(RecogniseAttention, SharedKeys) {
  // Copies for a group of heads; kv head n of query heads 2 n and 2 n + 1.
  const std::string copies = R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 6, 5, 11]
  %1 = Input() {name = "k"} : f32[2, 3, 7, 11]
  %2 = Input() {name = "v"} : f32[2, 7, 3, 11]
  %3 = Reshape(%1) {shape = <2, 3, 1, 7, 11>} : f32[2, 3, 1, 7, 11]
  %4 = Expand(%3) {shape = <2, 3, 2, 7, 11>} : f32[2, 3, 2, 7, 11]
  %5 = Reshape(%4) {shape = <2, 6, 7, 11>} : f32[2, 6, 7, 11]
  %6 = Reshape(%2) {shape = <2, 7, 3, 1, 11>} : f32[2, 7, 3, 1, 11]
  %7 = Expand(%6) {shape = <2, 7, 3, 2, 11>} : f32[2, 7, 3, 2, 11]
  %8 = Reshape(%7) {shape = <2, 7, 6, 11>} : f32[2, 7, 6, 11]
  %9 = Transpose(%8) {perm = [0, 2, 1, 3]} : f32[2, 6, 7, 11]
  %10 = MatMul(%0, %5) {transpose_b = true} : f32[2, 6, 5, 7]
  %11 = Softmax(%10) : f32[2, 6, 5, 7]
  %12 = MatMul(%11, %9) : f32[2, 6, 5, 11]
  return %12
})";
  const Outcome grouped = Recognised(copies);
  EXPECT_NE(grouped.attention.find("heads = 6, kv_heads = 3"), std::string::npos) << grouped.report;
  ExpectSame(grouped);
  // The other order, head n of kv head n % 3, is no group.
  const Outcome interleaved = Recognised(absl::StrReplaceAll(copies, {{"2, 3, 1, 7, 11", "2, 1, 3, 7, 11"},
                                                                      {"2, 3, 2, 7, 11", "2, 2, 3, 7, 11"},
                                                                      {"2, 7, 3, 1, 11", "2, 7, 1, 3, 11"},
                                                                      {"2, 7, 3, 2, 11", "2, 7, 2, 3, 11"}}));
  EXPECT_NE(interleaved.attention.find("heads = 6, kv_heads = 6"), std::string::npos) << interleaved.report;
  ExpectSame(interleaved);
  // By broadcasts: one for all heads, and one for each of two.
  const std::string broadcast = R"(graph g {
  %0 = Input() {name = "q"} : f32[2, $q, 5, 11]
  %1 = Input() {name = "k"} : f32[$k, 7, 11]
  %2 = Input() {name = "v"} : f32[$v, 7, 11]
  %3 = Input() {name = "m"} : f32[2, $m, 1, 7]
  %4 = MatMul(%0, %1) {transpose_b = true} : f32[2, $q, 5, 7]
  %5 = Add(%4, %3) : f32[2, $q, 5, 7]
  %6 = Softmax(%5) : f32[2, $q, 5, 7]
  %7 = MatMul(%6, %2) : f32[2, $q, 5, 11]
  return %7
})";
  const auto shared = [&](const char* q, const char* k, const char* v, const char* m) {
    return Recognised(absl::StrReplaceAll(broadcast, {{"$q", q}, {"$k", k}, {"$v", v}, {"$m", m}}));
  };
  const Outcome all = shared("3", "2, 1", "2, 1", "3");
  EXPECT_NE(all.attention.find("heads = 3, kv_heads = 1"), std::string::npos) << all.report;
  ExpectSame(all);
  const Outcome pairs = shared("3, 2", "2, 3, 1", "2, 3, 1", "1, 1");
  EXPECT_NE(pairs.attention.find("heads = 6, kv_heads = 3"), std::string::npos) << pairs.report;
  ExpectSame(pairs);
  const Outcome batches = shared("3", "1, 1", "1", "1");  // no batch: heads of one sequence
  EXPECT_EQ(batches.attention, "") << batches.attention;
  EXPECT_NE(batches.report.find("not known apart"), std::string::npos) << batches.report;
  EXPECT_NE(shared("3", "2, 1", "2, 3", "1").report.find("not shared alike"), std::string::npos);
  EXPECT_NE(shared("3", "1, 3", "1, 3", "1").report.find("not recognised"), std::string::npos);
  const Outcome sequences = shared("3, 2", "2, 3, 1", "2, 3, 1", "3, 1");  // of 2 times 3 batches
  EXPECT_NE(sequences.attention.find("heads = 2, kv_heads = 1"), std::string::npos) << sequences.report;
  ExpectSame(sequences);
  EXPECT_NE(shared("3, 2", "2, 3, 1", "2, 3, 1", "1, 2").report.find("not known apart"), std::string::npos);
}

TEST(RecogniseAttention, LeavesWhatIsRead) {
  const char* const scaled = "  %9 = Mul(%4, %5) : f32[2, 3, 5, 7]\n";
  ExpectLeft(Text(kNoMask, scaled, "", ", %4"), "is read elsewhere too");
  ExpectLeft(Text(kNoMask, scaled, "", ", %9"), "is read elsewhere too");
  ExpectLeft(Text(kNoMask, scaled, "", ", %20"), "is read elsewhere too");
  ExpectLeft(Text(kNoMask, scaled, "  %22 = Relu(%4) : f32[2, 3, 5, 7]\n", ", %22"), "MatMul %4 is read elsewhere too");
  ExpectLeft(Text(kNoMask, scaled, "  %22 = MatMul(%20, %2) : f32[2, 3, 5, 11]\n  %23 = Neg(%22) : f32[2, 3, 5, 11]\n",
                  ", %23"),
             "is read elsewhere too");
}

TEST(RecogniseAttention, LeavesOtherScores) {
  const auto with = [](const std::string& lines, const std::string& mask = kNoMask) { return Text(mask, lines); };
  // Scales by head, and unknown ones.
  ExpectLeft(with("  %6 = Constant() hex 0000803f0000803f0000003f : f32[3, 1, 1]\n"
                  "  %9 = Mul(%4, %6) : f32[2, 3, 5, 7]\n"),
             "");
  ExpectLeft(with("  %9 = Mul(%4, %3) : f32[2, 3, 5, 7]\n", "f32[1]"), "");
  ExpectLeft(with("  %9 = Div(%5, %4) : f32[2, 3, 5, 7]\n"), "");
  ExpectLeft(with("  %6 = Constant() hex 00000000 : f32[]\n  %9 = Mul(%4, %6) : f32[2, 3, 5, 7]\n"), "its scale is 0");
  ExpectLeft(with("  %6 = Constant() hex 00000000 : f32[]\n  %9 = Div(%4, %6) : f32[2, 3, 5, 7]\n"),
             "its scale is inf");
  ExpectLeft(with("  %9 = Exp(%4) : f32[2, 3, 5, 7]\n"), "");
  // A mask that is scaled, two of them, numbers that can be seen, and a cap below 0.
  const std::string early = "  %6 = Add(%4, %3) : f32[2, 3, 5, 7]\n  %9 = Mul(%6, %5) : f32[2, 3, 5, 7]\n";
  ExpectLeft(with(early, "f32[5, 7]"), "is not the one mask behind all factors");
  ExpectLeft(with("  %6 = Add(%4, %3) : f32[2, 3, 5, 7]\n  %9 = Add(%6, %3) : f32[2, 3, 5, 7]\n", "f32[5, 7]"),
             "is not the one mask behind all factors");
  ExpectLeft(with("  %6 = Constant() hex 00401cc6 : f32[]\n  %9 = Where(%3, %4, %6) : f32[2, 3, 5, 7]\n", "bool[5, 7]"),
             "may put -10000, which can be seen");
  ExpectLeft(with("  %6 = Neg(%4) : f32[2, 3, 5, 7]\n  %9 = Where(%3, %4, %6) : f32[2, 3, 5, 7]\n", "bool[5, 7]"),
             "may put numbers, which can be seen");
  ExpectLeft(with("  %6 = Constant() hex 000080bf : f32[]\n  %7 = Tanh(%4) : f32[2, 3, 5, 7]\n"
                  "  %9 = Mul(%7, %6) : f32[2, 3, 5, 7]\n"),
             "its cap is -1");
}

TEST(RecogniseAttention, LeavesOtherShapes) {
  const std::string text = R"(graph g $s{
  %0 = Input() {name = "q"} : $t[2, 3, 5, 11]
  %1 = Input() {name = "k"} : $t[2, 3, $k, 11]
  %2 = Input() {name = "v"} : $t[2, 3, $k, $d]
  %3 = Input() {name = "m"} : $t[$m]
  %4 = MatMul(%0, %1) {transpose_b = true} : $t[2, 3, 5, $k]
  %5 = Add(%4, %3) : $t[$b, 3, 5, $k]
  %6 = Softmax(%5) {axis = $a} : $t[$b, 3, 5, $k]
  %7 = MatMul(%6, %2) : $t[$b, 3, 5, $d]
  return %7
})";
  std::map<std::string, std::string> usual = {{"$s", ""},  {"$t", "f32"}, {"$k", "7"}, {"$d", "11"},
                                              {"$m", "7"}, {"$b", "2"},   {"$a", "3"}};
  const auto with = [&](std::map<std::string, std::string> other) {
    other.insert(usual.begin(), usual.end());
    return absl::StrReplaceAll(text, other);
  };
  EXPECT_NE(Recognised(with({})).attention, "");
  ExpectLeft(with({{"$a", "2"}}), "its softmax is along axis 2 of 4");
  ExpectLeft(with({{"$a", "1"}}), "its softmax is along axis 1 of 4");
  ExpectLeft(with({{"$d", "13"}}), "its keys are of 11 elements, its values of 13");
  ExpectLeft(with({{"$t", "f16"}}), "stored as f16");
  ExpectLeft(with({{"$t", "bf16"}}), "stored as bf16");
  ExpectLeft(with({{"$t", "f64"}}), "stored as f64");
  // A sequence of no keys has no mask, and a softmax of nothing.
  ExpectLeft(with({{"$s", "sym K in 0..9 "}, {"$k", "K"}, {"$m", "2, 1, 1, K"}}), "there may be no key");
  const Outcome some = Recognised(with({{"$s", "sym K in 1..9 "}, {"$k", "K"}, {"$m", "2, 1, 1, K"}}));
  EXPECT_NE(some.attention, "") << some.report;
  ExpectSame(some, {{"K", 7}});
  // A mask that makes more of the scores than there were.
  ExpectLeft(absl::StrReplaceAll(text, {{"[2, 3, 5, 11]", "[1, 3, 5, 11]"},
                                        {"[2, 3, $k, 11]", "[1, 3, 7, 11]"},
                                        {"[2, 3, $k, $d]", "[1, 3, 7, 11]"},
                                        {"[2, 3, 5, $k]", "[1, 3, 5, 7]"},
                                        {"$s", ""},
                                        {"$t", "f32"},
                                        {"$m", "2, 1, 1, 7"},
                                        {"$b", "2"},
                                        {"$k", "7"},
                                        {"$d", "11"},
                                        {"$a", "3"}}),
             "gives the scores other extents");
}

// Halves for keys and values are weights of f32 scores, whether they are made floats first or not.
TEST(RecogniseAttention, KeysOfHalves) {
  const std::string text = R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, 5, 11]
  %1 = Input() {name = "k"} : $t[2, 3, 7, 11]
  %2 = Input() {name = "v"} : $u[2, 3, 7, 11]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[2, 3, 5, 7]
  %4 = Softmax(%3) : f32[2, 3, 5, 7]
  %5 = MatMul(%4, %2) : f32[2, 3, 5, 11]
  return %5
})";
  for (const char* k : {"f32", "f16", "bf16"}) {
    for (const char* v : {"f32", "f16", "bf16"}) {
      const Outcome halves = Recognised(absl::StrReplaceAll(text, {{"$t", k}, {"$u", v}}));
      EXPECT_NE(halves.attention, "") << halves.report;
      ExpectSame(halves);
    }
  }
  const Outcome widened = Recognised(R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, 5, 11]
  %1 = Input() {name = "k"} : f16[2, 7, 3, 11]
  %2 = Input() {name = "v"} : bf16[2, 7, 3, 11]
  %3 = Cast(%1) {to = f32} : f32[2, 7, 3, 11]
  %4 = Cast(%2) {to = f32} : f32[2, 7, 3, 11]
  %5 = Transpose(%3) {perm = [0, 2, 3, 1]} : f32[2, 3, 11, 7]
  %6 = Transpose(%4) {perm = [0, 2, 1, 3]} : f32[2, 3, 7, 11]
  %7 = MatMul(%0, %5) : f32[2, 3, 5, 7]
  %8 = Softmax(%7) : f32[2, 3, 5, 7]
  %9 = MatMul(%8, %6) : f32[2, 3, 5, 11]
  return %9
})");
  EXPECT_EQ(widened.attention.find("Attention(%"), 0u) << widened.report;
  EXPECT_EQ(ir::Print(widened.after).find("Cast"), std::string::npos) << ir::Print(widened.after);
  ExpectSame(widened);
}

// Keys and values of an Attention are read as they are stored, unless they were rounded since.
TEST(RecogniseAttention, StoredHalves) {
  const std::string text = R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 5, 32]
  %1 = Input() {name = "k"} : f16[2, 7, 32]
  %2 = Input() {name = "v"} : $v[2, 7, 32]
  %3 = Cast(%1) {to = $t} : $t[2, 7, 32]
  %4 = Cast(%2) {to = f32} : f32[2, 7, 32]
  %5 = Attention(%0, %3, %4) {head_dim = 16, heads = 2, kv_heads = 2} : f32[2, 5, 32]
  return %5
})";
  const auto casts = [&](const char* v, const char* to) {
    const StatusOr<ir::Graph> graph = ir::Parse(absl::StrReplaceAll(text, {{"$v", v}, {"$t", to}}));
    EXPECT_TRUE(graph.ok()) << graph.status();
    const StatusOr<ir::Graph> simple = Dce(*Simplify(*graph));
    EXPECT_TRUE(simple.ok()) << simple.status();
    int count = 0;
    for (const ir::Node& node : simple->nodes()) count += ir::IsCast(node);
    return count;
  };
  EXPECT_EQ(casts("f16", "f32"), 0);
  EXPECT_EQ(casts("bf16", "f32"), 0);
  EXPECT_EQ(casts("bf16", "bf16"), 1);
  EXPECT_EQ(casts("f64", "f32"), 1);
}

// An Attention whose result is turned to rows works on rows; one that something else reads too does not.
TEST(RecogniseAttention, ResultsInRows) {
  const std::string text = R"(graph g {
  %0 = Input() {name = "q"} : f32[2, 3, 5, 11]
  %1 = Input() {name = "k"} : f32[2, 3, 7, 11]
  %2 = Input() {name = "v"} : f32[2, 3, 7, 11]
  %3 = Attention(%0, %1, %2) {head_dim = 11, heads = 3, kv_heads = 3, layout = "bhsd"} : f32[2, 3, 5, 11]
  %4 = Transpose(%3) {perm = [$p]} : $t
  return $r
})";
  const Outcome rows =
      Recognised(absl::StrReplaceAll(text, {{"$p", "0, 2, 1, 3"}, {"$t", "f32[2, 5, 3, 11]"}, {"$r", "%4"}}));
  EXPECT_NE(rows.attention.find("layout = \"bshd\""), std::string::npos) << rows.attention;
  EXPECT_EQ(rows.transposes, 3);
  ExpectSame(rows);
  for (const auto& [perm, type, results] :
       {std::tuple("0, 2, 1, 3", "f32[2, 5, 3, 11]", "%3, %4"), {"0, 1, 3, 2", "f32[2, 3, 11, 5]", "%4"}}) {
    const Outcome left = Recognised(absl::StrReplaceAll(text, {{"$p", perm}, {"$t", type}, {"$r", results}}));
    EXPECT_NE(left.attention.find("layout = \"bhsd\""), std::string::npos) << left.attention;
    EXPECT_EQ(left.transposes, 1);
  }
}

// What is no attention is not reported as one.
TEST(RecogniseAttention, SaysNothingOfOtherGraphs) {
  ExpectLeft(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 7]
  %1 = Input() {name = "w"} : f32[7, 11]
  %2 = Softmax(%0) : f32[5, 7]
  %3 = MatMul(%2, %1) : f32[5, 11]
  return %3
})",
             "");
}

// What the ops as they are do faster.
TEST(RecogniseAttention, LeavesWhatIsFasterAsItIs) {
  const std::string text = R"(graph g $s{
  %0 = Input() {name = "q"} : f32[1, 12, $r, $d]
  %1 = Input() {name = "k"} : f32[1, 12, $k, $d]
  %2 = Input() {name = "v"} : f32[1, 12, $k, $d]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[1, 12, $r, $k]
  %4 = Softmax(%3) : f32[1, 12, $r, $k]
  %5 = MatMul(%4, %2) : f32[1, 12, $r, $d]
  return %5
})";
  const auto with = [&](const char* symbols, const char* rows, const char* keys, const char* width) {
    return Recognised(absl::StrReplaceAll(text, {{"$s", symbols}, {"$r", rows}, {"$k", keys}, {"$d", width}}),
                      /*always=*/false);
  };
  EXPECT_NE(with("", "512", "512", "64").attention, "");
  EXPECT_NE(with("", "9", "192", "128").attention, "");
  EXPECT_NE(with("sym S in 9..4096 ", "S", "S", "64").attention, "");
  const auto left = [&](const char* symbols, const char* rows, const char* keys, const char* width) {
    const Outcome outcome = with(symbols, rows, keys, width);
    EXPECT_EQ(outcome.attention, "");
    EXPECT_NE(outcome.report.find("are faster as they are"), std::string::npos) << outcome.report;
  };
  left("", "128", "191", "64");
  left("", "8", "999983", "64");
  left("sym S in 2..8 ", "S", "999983", "64");
  left("sym S in 9..256 ", "S", "S", "64");
  left("", "512", "512", "72");
  left("", "512", "512", "48");
  left("", "512", "512", "144");
}

// In the bodies of loops and branches too.
TEST(RecogniseAttention, InBodies) {
  const Outcome outcome = Recognised(R"(graph g {
  %0 = Input() {name = "c"} : bool[]
  %1 = Input() {name = "q"} : f32[5, 11]
  %2 = If(%0, %1) : f32[5, 11] then graph then {
    %0 = Input() {name = "x"} : f32[5, 11]
    %1 = MatMul(%0, %0) {transpose_b = true} : f32[5, 5]
    %2 = Softmax(%1) : f32[5, 5]
    %3 = MatMul(%2, %0) : f32[5, 11]
    return %3
  } else graph else {
    %0 = Input() {name = "x"} : f32[5, 11]
    %1 = Neg(%0) : f32[5, 11]
    return %1
  }
  return %2
})");
  EXPECT_NE(outcome.attention.find("heads = 1"), std::string::npos) << outcome.report;
  ExpectSame(outcome);
}

}  // namespace
}  // namespace quern::opt
