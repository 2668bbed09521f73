// Graphs as bytes: what is written is read back, equal graphs are equal bytes, and no other bytes are a graph.
#include "ir/binary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "absl/strings/str_replace.h"
#include "ir/op.h"
#include "support/random_graph.h"

namespace quern::ir {
namespace {

constexpr uint32_t kSeed = 11;

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Graph Parsed(std::string_view text) {
  StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// The file with a hash that is right again, after something in it was changed.
std::string Hashed(std::string file) {
  const Hash128 hash = HashBytes(std::string_view(file).substr(0, file.size() - 16));
  std::memcpy(file.data() + file.size() - 16, &hash.high, 8);
  std::memcpy(file.data() + file.size() - 8, &hash.low, 8);
  return file;
}

constexpr const char* kAll = R"(graph all sym PAST in 0..64, SEQ in 1..64 {
  %0 = Input() {name = "x"} : f32[SEQ, 6]
  %1 = Param() {name = "w"} : q4_K[8, 256]
  %2 = Constant() hex 0000803f000000c0 : f32[2]  @"layers.0/scale" by "lower"
  %3 = Input() {name = "cache"} : f32[64, 6]
  %4 = Update(%3, %0) {axis = 0, start = <PAST>} : f32[64, 6]
  %5 = Slice(%0) {axis = 1, start = 0, step = 4, stop = 6} : f32[SEQ, 2]
  %6 = Mul(%5, %2) : f32[SEQ, 2]  @"layers.0"
  %7 = Input() {name = "p"} : bool[]
  %8 = If(%7, %6) : f32[SEQ, 2] then graph then sym SEQ in 1..64 {
    %0 = Input() {name = "a"} : f32[SEQ, 2]
    %1 = LeakyRelu(%0) {alpha = 0.10000000000000001} : f32[SEQ, 2]
    return %1
  } else graph else sym SEQ in 1..64 {
    %0 = Input() {name = "a"} : f32[SEQ, 2]
    %1 = Neg(%0) : f32[SEQ, 2]
    return %1
  }
  require 64 >= PAST + SEQ
  return %8 as "y", %4
  donate "cache" -> 1
})";

TEST(Binary, IsReadBack) {
  const Graph graph = Parsed(kAll);
  const std::string bytes = Encode(graph);
  const StatusOr<Graph> again = Decode(Bytes(bytes));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameGraph(graph, *again));
  EXPECT_EQ(Print(graph), Print(*again));
  EXPECT_EQ(bytes, Encode(*again));
}

// Without names of outputs a file is of the first version, which earlier readers take.
TEST(Binary, NamesOfOutputs) {
  std::string text(kAll);
  const Graph named = Parsed(text), numbered = Parsed(absl::StrReplaceAll(text, {{" as \"y\"", ""}}));
  const std::string with = Encode(named), without = Encode(numbered);
  EXPECT_EQ(with[8], 2);
  EXPECT_EQ(without[8], 1);
  EXPECT_EQ(OutputName(Decode(Bytes(with))->output_names, 0), "y");
  EXPECT_EQ(OutputName(Decode(Bytes(without))->output_names, 0), "0");
  EXPECT_FALSE(SameGraph(named, numbered));
  EXPECT_TRUE(SameGraph(numbered, *Decode(Bytes(without))));
  // A number as a name is no name: equal graphs are equal bytes.
  EXPECT_EQ(Encode(Parsed(absl::StrReplaceAll(text, {{"as \"y\"", "as \"0\""}}))), without);
  std::string version = with;
  version[8] = 1;
  EXPECT_FALSE(Decode(Bytes(Hashed(version))).ok());
}

TEST(Binary, OfRandomGraphs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Graph graph = testing::MakeRandomGraph(seed, {.nodes = 20, .most_elements = 600}).graph;
    const std::string bytes = Encode(graph);
    const StatusOr<Graph> again = Decode(Bytes(bytes));
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status() << "\n" << Print(graph);
    ASSERT_EQ(Print(graph), Print(*again)) << "seed " << seed;
    ASSERT_EQ(bytes, Encode(*again)) << "seed " << seed;
  }
}

TEST(Binary, ConstantsLieAtMultiplesOf64) {
  const Graph graph = Parsed(
      "graph g {\n  %0 = Constant() hex 01000000 : i32[1]\n  %1 = Constant() hex 02000000 : i32[1]\n"
      "  %2 = Add(%0, %1) : i32[1]\n  return %2\n}");
  const std::string bytes = Encode(graph);
  for (const char value : {'\1', '\2'}) {
    const size_t at = bytes.find(std::string({value, 0, 0, 0}), bytes.size() - 16 - 68);
    EXPECT_EQ(at % 64, 0u);
  }
}

TEST(Binary, FingerprintsAreOfMeaning) {
  const auto with = [](const std::string& from, const std::string& to) {
    return Fingerprint(Parsed(absl::StrReplaceAll(kAll, {{from, to}})));
  };
  const Hash128 own = Fingerprint(Parsed(kAll));
  EXPECT_EQ(with("layers.0", "layers.1"), own);
  EXPECT_EQ(with("graph all", "graph none"), own);
  EXPECT_NE(with("0.10000000000000001", "0.10000000000000002"), own);
  EXPECT_NE(with("000000c0", "000001c0"), own);
  EXPECT_NE(with("SEQ in 1..64", "SEQ in 1..63"), own);
  EXPECT_NE(with("name = \"w\"", "name = \"v\""), own);
  EXPECT_NE(with("Neg", "Abs"), own);
  EXPECT_NE(with("as \"y\"", "as \"z\""), own);
  // The same in every run, on every machine.
  EXPECT_EQ(Fingerprint(Parsed("graph g {\n  %0 = Input() {name = \"x\"} : f32[2]\n  return %0\n}")).ToHex(),
            "e344d5a5c177f2c29910714f8b4c570a");
}

TEST(Binary, SaysWhatIsWrong) {
  const std::string good = Encode(Parsed(kAll));
  const auto error = [](const std::string& file) { return std::string(Decode(Bytes(file)).status().message()); };
  EXPECT_EQ(error(""), "byte 0: no graph in binary form");
  EXPECT_EQ(error("graph g {"), "byte 0: no graph in binary form");
  EXPECT_EQ(error(good.substr(0, 50)), "byte 32: the file ends inside the header");
  std::string version = good;
  version[8] = 9;
  EXPECT_EQ(error(version), "byte 8: version 9 is not known, 1 to 3 are");
  std::string damaged = good;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_NE(error(damaged).find("the file was damaged"), std::string::npos);
  EXPECT_NE(error(good.substr(0, good.size() - 64)), "");
  EXPECT_NE(error(good + "x"), "");
}

// Whatever a byte is changed to, with a right hash: an error, or a graph that is written as these bytes.
TEST(Binary, TakesNoOtherBytes) {
  const std::string good = Encode(Parsed(kAll));
  std::mt19937 random(kSeed);
  int read = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string file = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < changes; ++c) file[random() % (file.size() - 16)] = static_cast<char>(random());
    const StatusOr<Graph> graph = Decode(Bytes(Hashed(file)));
    EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
    if (!graph.ok()) continue;
    ++read;
    const StatusOr<Graph> again = Decode(Bytes(Encode(*graph)));
    ASSERT_TRUE(again.ok()) << "seed " << kSeed << ", trial " << trial << ": " << again.status();
    ASSERT_EQ(Print(*graph), Print(*again)) << "seed " << kSeed << ", trial " << trial;
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace quern::ir
