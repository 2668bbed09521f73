// The quantisation map of a graph: text and bytes give it back bit for bit, a fingerprint, equality and a diff are of
// what it says of values, and no map is one that the values are not of.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_replace.h"
#include "ir/binary.h"
#include "ir/diff.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/value_names.h"

namespace quern::ir {
namespace {

constexpr const char* kMapped = R"(graph mapped sym B in 1.. {
  %0 = Input() {name = "x"} : f32[B, 7]
  %1 = Param() {name = "w"} : f32[7, 5]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[B, 5]  @"a/up"
  %3 = Exp(%2) : f32[B, 5]
  %4 = MatMul(%3, %2) {transpose_b = true} : f32[B, B]  @"a/scores"
  return %4
  quantise "%3" {dtype = i8, high = 3e+38, low = -1.5, symmetric = true}
  quantise "a/up" {dtype = i8, high = 0.1, low = -0.30000000000000004, symmetric = false}
  quantise "w" {axis = 1, dtype = i8, symmetric = true}
  quantise "x" {dtype = u8, high = 4.94065646e-324, low = -0.0, symmetric = false}
}
)";

Graph Parsed(std::string_view text) {
  StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::string Changed(const std::string& from, const std::string& to) {
  EXPECT_NE(std::string(kMapped).find(from), std::string::npos) << from;
  return absl::StrReplaceAll(kMapped, {{from, to}});
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Hashed(std::string file) {
  const Hash128 hash = HashBytes(std::string_view(file).substr(0, file.size() - 16));
  std::memcpy(file.data() + file.size() - 16, &hash.high, 8);
  std::memcpy(file.data() + file.size() - 8, &hash.low, 8);
  return file;
}

uint64_t Bits(double number) { return std::bit_cast<uint64_t>(number); }

TEST(Quantisation, TextAndBytesGiveItBack) {
  const Graph graph = Parsed(kMapped);
  EXPECT_EQ(Print(graph), kMapped);
  const StatusOr<Graph> again = Decode(Bytes(Encode(graph)));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), kMapped);
  EXPECT_EQ(Encode(*again), Encode(graph));
  for (const Graph& read : {graph, *again}) {
    ASSERT_EQ(read.quantisation.size(), 4u);
    const Scheme &x = read.quantisation.at("x"), &up = read.quantisation.at("a/up");
    EXPECT_EQ(x.dtype, DType::kU8);
    EXPECT_EQ(Bits(x.range->low), Bits(-0.0));
    EXPECT_EQ(Bits(x.range->high), 1u);
    EXPECT_EQ(Bits(up.range->low), Bits(-0.30000000000000004));
    EXPECT_EQ(Bits(up.range->high), Bits(0.1));
    EXPECT_TRUE(read.quantisation.at("w") == (Scheme{DType::kI8, true, 1, {}}));
  }
}

// One that is written by hand: in any order, and without what has a default.
TEST(Quantisation, TextByHand) {
  const Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3]
  %1 = Exp(%0) : f32[2, 3]  @"e"
  return %1
  quantise "x" {low = 0.0, high = 1.0, dtype = u8}
  # the exponential
  quantise "e" {low = 1.0, high = 3.0, dtype = i8}
})");
  EXPECT_TRUE(graph.quantisation.at("x") == (Scheme{DType::kU8, false, {}, ValueRange{0, 1}}));
  EXPECT_TRUE(graph.quantisation.at("e") == (Scheme{DType::kI8, false, {}, ValueRange{1, 3}}));
}

TEST(Quantisation, VersionsOfFiles) {
  Graph graph = Parsed(kMapped);
  const std::string with = Encode(graph);
  EXPECT_EQ(with[8], 3);
  const Graph named = Parsed(Changed("return %4", "return %4 as \"y\""));
  EXPECT_EQ(Encode(named)[8], 3);
  EXPECT_EQ(OutputName(Decode(Bytes(Encode(named)))->output_names, 0), "y");
  graph.quantisation.clear();
  EXPECT_EQ(Encode(graph)[8], 1);
  // What is behind the graph of an earlier version is no map.
  for (const char earlier : {1, 2}) {
    std::string version = with;
    version[8] = earlier;
    EXPECT_FALSE(Decode(Bytes(Hashed(version))).ok());
  }
  std::string none = Encode(graph);
  none[8] = 3;
  EXPECT_FALSE(Decode(Bytes(Hashed(none))).ok());
}

TEST(Quantisation, FingerprintAndEqualityAreOfTheValues) {
  const Graph graph = Parsed(kMapped);
  const auto differs = [&](const std::string& from, const std::string& to) {
    const Graph other = Parsed(Changed(from, to));
    EXPECT_EQ(SameGraph(graph, other), Fingerprint(graph) == Fingerprint(other)) << from;
    return Fingerprint(graph) != Fingerprint(other);
  };
  EXPECT_TRUE(differs("-0.30000000000000004", "-0.3"));
  EXPECT_TRUE(differs("dtype = u8", "dtype = i8"));
  EXPECT_TRUE(differs("axis = 1", "axis = 0"));
  EXPECT_TRUE(differs("axis = 1, ", ""));
  EXPECT_TRUE(differs("-1.5, symmetric = true", "-1.5, symmetric = false"));
  EXPECT_TRUE(differs("  quantise \"w\" {axis = 1, dtype = i8, symmetric = true}\n", ""));
  EXPECT_TRUE(differs("quantise \"a/up\"", "quantise \"a/scores\""));
  // A label says no more than which value it is.
  EXPECT_FALSE(differs("a/", "b/"));
}

TEST(Quantisation, Diff) {
  const auto diff = [](const std::string& text) { return ir::Diff(Parsed(kMapped), Parsed(text)); };
  EXPECT_EQ(diff(kMapped), "");
  EXPECT_EQ(diff(Changed("a/", "b/")), "");
  EXPECT_EQ(diff(Changed("axis = 1", "axis = 0")),
            "- quantise \"w\" {axis = 1, dtype = i8, symmetric = true}\n"
            "+ quantise \"w\" {axis = 0, dtype = i8, symmetric = true}\n");
  EXPECT_EQ(diff(Changed("  quantise \"w\" {axis = 1, dtype = i8, symmetric = true}\n", "")),
            "- quantise \"w\" {axis = 1, dtype = i8, symmetric = true}\n");
}

TEST(Quantisation, SaysWhatIsWrong) {
  const auto error = [](const std::string& from, const std::string& to) {
    const StatusOr<Graph> graph = Parse(Changed(from, to));
    EXPECT_FALSE(graph.ok()) << to;
    EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
    return std::string(graph.status().message());
  };
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(error("quantise \"a/up\"", "quantise \"a/uq\""), "did you mean a/up?");
  has(error("quantise \"a/up\"", "quantise \"a/uq\""), "value a/uq");
  has(error("quantise \"a/up\"", "quantise \"a/uq\""), "line 12: ");
  has(error("axis = 1", "axis = 2"), "the scheme of w: the attribute axis");
  has(error("axis = 1", "axis = -1"), "the scheme of w: the attribute axis");
  has(error("dtype = u8", "dtype = f16"), "the scheme of x: the attribute dtype");
  has(error("high = 0.1", "high = -0.5"), "the scheme of a/up: the attribute range");
  has(error("high = 3e+38", "high = inf"), "the scheme of %3: the attribute range");
  has(error("high = 3e+38", "high = 4e+38"), "the scheme of %3: the attribute range");
  has(error("low = -1.5", "low = nan"), "the scheme of %3: the attribute range");
  has(error("low = -1.5, ", ""), "the scheme of %3: the attribute low");
  has(error("low = -1.5, ", ""), "line 8: ");
  has(error("low = -1.5", "lo = -1.5"), "did you mean low?");
  has(error("low = -1.5", "low = 1"), "the scheme of %3: the attribute low");
  has(error("dtype = u8, ", ""), "the scheme of x: the attribute dtype");
  has(error("axis = 1, dtype = i8, symmetric = true", "dtype = i8"), "the scheme of w: the attribute symmetric");
  has(error("quantise \"%3\"", "quantise \"x\""), "expected one scheme of x before here");
}

TEST(Quantisation, BytesThatAreNone) {
  const auto error = [](Graph graph) { return std::string(Decode(Bytes(Encode(graph))).status().message()); };
  Graph graph = Parsed(kMapped);
  graph.quantisation["v"] = graph.quantisation.at("w");
  EXPECT_NE(error(graph).find("value v"), std::string::npos) << error(graph);
  graph = Parsed(kMapped);
  graph.quantisation["w"].axis = 7;
  EXPECT_NE(error(graph).find("the scheme of w: the attribute axis"), std::string::npos) << error(graph);
}

// Whatever a byte is changed to: an error, or a graph that is written as another one.
TEST(Quantisation, TakesNoOtherBytes) {
  const std::string good = Encode(Parsed(kMapped));
  for (size_t at = 12; at + 16 < good.size(); ++at) {
    for (const int change : {1, 2, 0x40, 0xff}) {
      std::string file = good;
      file[at] = static_cast<char>(file[at] ^ change);
      const StatusOr<Graph> graph = Decode(Bytes(Hashed(file)));
      EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
      if (!graph.ok()) continue;
      const StatusOr<Graph> again = Decode(Bytes(Encode(*graph)));
      ASSERT_TRUE(again.ok()) << at << ": " << again.status();
      ASSERT_EQ(Print(*graph), Print(*again)) << at;
    }
  }
}

TEST(Quantisation, BodiesHaveNone) {
  const std::string branch = R"({
    %0 = Input() {name = "a"} : f32[2, 2]
    return %0)";
  const std::string text = absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "p"} : bool[]
  %1 = Input() {name = "x"} : f32[2, 2]
  %2 = If(%0, %1) : f32[2, 2] then graph then BRANCH
    quantise "a" {dtype = u8, high = 1.0, low = 0.0}
  } else graph else BRANCH
  }
  return %2
})",
                                               {{"BRANCH", branch}});
  EXPECT_EQ(Parse(text).status().message(), "6:14: expected \"}\"");
  Graph graph = Parsed(absl::StrReplaceAll(text, {{"quantise \"a\" {dtype = u8, high = 1.0, low = 0.0}", ""}}));
  Graph body = graph.node(2).body(0);
  body.quantisation["a"] = {DType::kU8, false, {}, ValueRange{0, 1}};
  const auto mapped = std::make_shared<const Graph>(body);
  const StatusOr<Value> made = graph.Add("If", graph.node(2).inputs, {}, -1, {mapped, mapped});
  EXPECT_NE(made.status().message().find("the quantisation map of then"), std::string::npos) << made.status();
}

TEST(Quantisation, ByValue) {
  const Graph graph = Parsed(kMapped);
  const std::map<Value, Scheme> schemes = SchemesOf(graph);
  ASSERT_EQ(schemes.size(), 4u);
  EXPECT_TRUE(schemes.at({0, 0}) == graph.quantisation.at("x"));
  EXPECT_TRUE(schemes.at({2, 0}) == graph.quantisation.at("a/up"));
  EXPECT_TRUE(MapOf(graph, schemes) == graph.quantisation);
}

}  // namespace
}  // namespace quern::ir
