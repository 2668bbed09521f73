// A profiler of a program: what it counts of a graph whose figures are known, and that it leaves the program as it was.
#include "quern/profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace quern {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRows = 7, kIn = 48, kOut = 80;

struct Linear {
  std::vector<float> weights = std::vector<float>(kIn * kOut, 0.5f), x = std::vector<float>(kRows * kIn, 1.0f),
                     y = std::vector<float>(kRows * kOut);
  std::optional<Program> program;

  Linear() {
    // The machine's peaks are kept with the tests' own files, not with the user's.
    setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
    Graph g("ffn");
    g.Symbol("BATCH", 1, 64);
    const Value input = g.Input("x", "f32[BATCH, 48]");
    const Value w = g.Param("w", "f32[48, 80]", weights);
    g.Output("y", g.Block("Linear", {input, w}, {}, "proj"));
    Options options;
    options.threads = 2;
    options.cache = "off";
    Result<Program> compiled = g.Compile(options);
    EXPECT_TRUE(compiled.ok()) << compiled.error();
    if (compiled.ok()) program = std::move(*compiled);
  }
  bool Run() { return program->Run({In("x", x, {kRows, kIn})}, {Out("y", y, {kRows, kOut})}).ok(); }
};

Json Parse(Profiler& profiler) {
  Result<std::string> text = profiler.Json();
  EXPECT_TRUE(text.ok()) << text.error();
  return text.ok() ? Json::parse(*text) : Json();
}

TEST(Profiler, CountsTheRunsOfAProgram) {
  Linear linear;
  ASSERT_TRUE(linear.Run());
  const std::vector<float> before = linear.y;
  {
    Result<Profiler> profiler = Profiler::Attach(*linear.program);
    ASSERT_TRUE(profiler.ok()) << profiler.error();
    profiler->Phase("warm-up", true);
    ASSERT_TRUE(linear.Run());
    profiler->Phase("steady");
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(linear.Run());
    const Json json = Parse(*profiler);
    ASSERT_EQ(json["sections"].size(), 1u);
    const Json& section = json["sections"][0];
    EXPECT_EQ(section["phase"], "steady");
    EXPECT_EQ(section["steps"], 5);
    EXPECT_EQ(section["symbols"]["BATCH"], kRows);
    EXPECT_GE(section["total"]["flops"].get<double>(), 5.0 * 2 * kRows * kIn * kOut);
    EXPECT_LT(section["total"]["flops"].get<double>(), 5.0 * 2.5 * kRows * kIn * kOut);
    EXPECT_GE(section["total"]["read_bytes"].get<int64_t>(), 5 * 4 * (kIn * kOut + kRows * kIn));
    EXPECT_GE(section["total"]["written_bytes"].get<int64_t>(), 5 * 4 * kRows * kOut);
    EXPECT_EQ(section["blocks"][0]["name"], "proj");
    Result<std::string> table = profiler->Table(), trace = profiler->Trace();
    ASSERT_TRUE(table.ok() && trace.ok());
    EXPECT_NE(table->find("steady"), std::string::npos);
    EXPECT_TRUE(Json::parse(*trace).contains("traceEvents"));
    profiler->Clear();
    ASSERT_TRUE(linear.Run());
    EXPECT_EQ(Parse(*profiler)["sections"][0]["steps"], 1);
  }
  ASSERT_TRUE(linear.Run());
  EXPECT_EQ(linear.y, before);
}

TEST(Profiler, TheRoofIsThatOfOneRun) {
  Linear linear;
  Result<Profiler> profiler = Profiler::Attach(*linear.program);
  ASSERT_TRUE(profiler.ok()) << profiler.error();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(linear.Run());
  Result<Roofline> roof = profiler->Roof();
  ASSERT_TRUE(roof.ok()) << roof.error();
  const Json section = Parse(*profiler)["sections"][0];
  EXPECT_EQ(roof->launches, static_cast<int>(section["launches"].size()));
  EXPECT_EQ(roof->threads, 2);
  EXPECT_GE(roof->operations, 2.0 * kRows * kIn * kOut);
  EXPECT_LT(roof->operations, 2.5 * kRows * kIn * kOut);
  EXPECT_GE(roof->bytes, 4.0 * (kIn * kOut + kRows * kIn + kRows * kOut));
  double floor_ns = 0;
  for (const Json& kernel : section["kernels"])
    floor_ns += kernel["roof_ns"].get<double>() * kernel["launches"].get<double>();
  EXPECT_GT(roof->floor_ns, 0);
  EXPECT_NEAR(roof->floor_ns, floor_ns, 1e-6 * floor_ns);
  EXPECT_GT(roof->memory_gbps, 0);
  EXPECT_GT(roof->f32_gflops, 0);
}

TEST(Profiler, HasSpansOfTheCallers) {
  Linear linear;
  Result<Profiler> profiler = Profiler::Attach(*linear.program);
  ASSERT_TRUE(profiler.ok()) << profiler.error();
  profiler->Phase("warm-up", true);
  { const CallerSpan left_out = profiler->Span("work"); }
  profiler->Phase("steady");
  const Tick begin = Tick::Now();
  for (int i = 0; i < 2; ++i) {
    const CallerSpan work = profiler->Span("work");
    const CallerSpan inner = profiler->Span("inner");
    ASSERT_TRUE(linear.Run());
  }
  profiler->AddSpan("all", begin, Tick::Now());
  const Json json = Parse(*profiler);
  const Json& spans = json["spans"];
  ASSERT_EQ(spans.size(), 3u) << spans;
  EXPECT_EQ(spans[0]["name"], "all");
  EXPECT_EQ(spans[1]["name"], "work");
  EXPECT_EQ(spans[1]["count"], 2);
  EXPECT_EQ(spans[2]["name"], "inner");
  EXPECT_EQ(spans[2]["phase"], "steady");
  EXPECT_GE(spans[0]["wall_ns"], spans[1]["wall_ns"]);
  EXPECT_GE(spans[1]["wall_ns"], spans[2]["wall_ns"]);
  EXPECT_GE(spans[2]["least_ns"], json["sections"][0]["total"]["least_ns"]);
  EXPECT_NE(profiler->Table()->find("the caller's own"), std::string::npos);
  // A track for each depth; the warm-up is there, too.
  std::map<std::string, int> tracks, times;
  const Json trace = Json::parse(*profiler->Trace());
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "span") continue;
    ++times[event["name"]];
    tracks[event["name"]] = event["tid"];
  }
  EXPECT_EQ(times, (std::map<std::string, int>{{"all", 1}, {"inner", 2}, {"work", 3}}));
  EXPECT_EQ(tracks, (std::map<std::string, int>{{"all", 0}, {"inner", 2}, {"work", 1}}));
  profiler->Clear();
  EXPECT_TRUE(Parse(*profiler)["spans"].empty());
}

TEST(Profiler, OfNothingHasNoSections) {
  Linear linear;
  Result<Profiler> profiler = Profiler::Attach(*linear.program);
  ASSERT_TRUE(profiler.ok()) << profiler.error();
  EXPECT_EQ(profiler->Roof().details().code, ErrorCode::kMissing);
  EXPECT_EQ(Parse(*profiler)["sections"].size(), 0u);
  EXPECT_TRUE(profiler->Table().ok());
}

TEST(Profiler, MovesWithItsRecords) {
  Linear linear;
  Result<Profiler> first = Profiler::Attach(*linear.program);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(linear.Run());
  Profiler second = std::move(*first);
  ASSERT_TRUE(linear.Run());
  EXPECT_EQ(Parse(second)["sections"][0]["steps"], 2);
}

}  // namespace
}  // namespace quern
