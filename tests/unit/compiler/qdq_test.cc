// Calibration, quantisation maps and pairs in the public interface: ranges are those of the values, JSON is read back,
// and programs over bytes are near those of floats.
#include "quern/qdq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "absl/strings/str_format.h"

#include "quern/dispatch.h"
#include "quern/precision.h"

namespace quern {
namespace {

std::vector<float> Wave(size_t count, float step, float size) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = size * std::sin(step * static_cast<float>(i) + 1);
  return values;
}

// Blocks and ops of odd sizes, B rows at a time.
struct Net {
  std::vector<float> w1 = Wave(13 * 33, 0.7f, 0.4f), w2 = Wave(33 * 7, 1.3f, 0.6f), b = Wave(33, 2.1f, 0.2f);
  Graph g{"net"};

  explicit Net(bool bound = true) {
    g.Symbol("B");
    const Value x = g.Input("x", "f32[B, 13]");
    const auto param = [&](const char* name, const char* type, const std::vector<float>& values) {
      return bound ? g.Param(name, type, values) : g.Param(name, type);
    };
    const Value up = g.Op("MatMul", {x, param("w1", "f32[13, 33]", w1)}, {}, "up");
    const Value act = g.Op("Relu", {g.Op("Add", {up, param("b", "f32[33]", b)}, {}, "sum")}, {}, "act");
    g.Output("y", g.Op("MatMul", {act, param("w2", "f32[33, 7]", w2)}, {}, "down"));
  }
};

std::vector<float> ValuesOf(Program& program, const std::vector<float>& x, int64_t rows) {
  std::vector<float> y(static_cast<size_t>(rows) * 7);
  const Result<void> ran = program.Run({In("x", x, {rows, 13})}, {Out("y", y, {rows, 7})});
  EXPECT_TRUE(ran.ok()) << ran.error();
  return y;
}

TEST(Calibrate, RangesAreThoseOfTheValuesAndWiden) {
  Net net;
  Result<Calibrator> calibrator = Calibrator::Make(net.g, {.cache = "off"});
  ASSERT_TRUE(calibrator.ok()) << calibrator.error();
  float low = 0, high = -INFINITY, least_x = INFINITY;
  for (const auto& [rows, size] : std::vector<std::pair<int64_t, float>>{{1, 0.5f}, {5, 3.f}, {3, 0.1f}}) {
    const std::vector<float> x = Wave(static_cast<size_t>(rows) * 13, 0.37f, size);
    const Result<void> ran = calibrator->Run({In("x", x, {rows, 13})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < 33; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < 13; ++k) sum += static_cast<double>(x[r * 13 + k]) * net.w1[k * 33 + n];
        low = std::min(low, static_cast<float>(sum)), high = std::max(high, static_cast<float>(sum));
      }
    }
    least_x = std::min(least_x, *std::min_element(x.begin(), x.end()));
  }
  const ValueRanges& ranges = calibrator->ranges();
  EXPECT_EQ(ranges.size(), 5u) << RangesJson(ranges);  // x, up, sum, act, down: parameters are no runs' matter
  EXPECT_NEAR(ranges.at("up").low, low, 1e-5);
  EXPECT_NEAR(ranges.at("up").high, high, 1e-5);
  EXPECT_EQ(ranges.at("act").low, 0);
  EXPECT_EQ(ranges.at("x").low, least_x);
}

TEST(Calibrate, WhatIsNotFiniteHasNoRange) {
  Graph g("logs");
  const Value x = g.Input("x", "f32[4]");
  g.Output("y", g.Op("Exp", {g.Op("Log", {x}, {}, "log")}, {}, "exp"));
  // Minus infinity, and NaN.
  for (const float first : {0.f, -1.f}) {
    SCOPED_TRACE(first);
    Result<Calibrator> calibrator = Calibrator::Make(g, {.cache = "off"});
    ASSERT_TRUE(calibrator.ok()) << calibrator.error();
    for (const float least : {first, 1.f}) {
      const std::vector<float> x = {1, 2, least, 4};
      ASSERT_TRUE(calibrator->Run({In("x", x, {4})}).ok());
    }
    EXPECT_TRUE(std::isinf(calibrator->ranges().at("log").low));  // of the first run, whatever the second has
    EXPECT_TRUE(std::isinf(calibrator->ranges().at("log").high));
    if (first == 0) EXPECT_EQ(calibrator->ranges().at("exp").high, 4);
    EXPECT_NE(RangesJson(calibrator->ranges()).find("\"log\": null"), std::string::npos);
  }
}

TEST(Calibrate, StateIsCarried) {
  Graph g("sums");
  const Value x = g.Input("x", "f32[3]"), s = g.Input("s", "f32[3]");
  const Value sum = g.Op("Add", {x, s}, {}, "sum");
  g.Carry("s", sum);
  g.Output("y", g.Op("Neg", {sum}, {}, "neg"));
  Result<Calibrator> calibrator = Calibrator::Make(g, {.cache = "off"});
  ASSERT_TRUE(calibrator.ok()) << calibrator.error();
  const std::vector<float> one = {1, 2, 3};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(calibrator->Run({In("x", one, {3})}).ok());
  EXPECT_EQ(calibrator->ranges().at("sum").high, 12);
  EXPECT_EQ(calibrator->ranges().at("s").high, 9);
}

TEST(Qdq, ProgramsOverBytesAreNearThoseOfFloats) {
  Net net;
  Result<Calibrator> calibrator = Calibrator::Make(net.g, {.cache = "off"});
  ASSERT_TRUE(calibrator.ok());
  for (const int64_t rows : {1, 3, 9, 300}) {
    const std::vector<float> x = Wave(static_cast<size_t>(rows) * 13, 0.37f, 2);
    ASSERT_TRUE(calibrator->Run({In("x", x, {rows, 13})}).ok());
  }
  Result<Program> floats = net.g.Compile({.cache = "off"});
  ASSERT_TRUE(floats.ok());
  for (const QdqOptions& options : std::vector<QdqOptions>{
           {}, {.activations = "i8"}, {.symmetric = true}, {.per_channel = false}, {.keep = {"up"}}}) {
    const Result<QuantisationMap> map = MakeQuantisationMap(net.g, calibrator->ranges(), options);
    ASSERT_TRUE(map.ok()) << map.error();
    EXPECT_EQ(map->size(), options.keep.empty() ? 4u : 2u);
    // Weights that have bytes already, and those that are bound to the program.
    Net unbound(false);
    for (const bool bound : {true, false}) {
      const Result<Graph> bytes = InsertQdq(bound ? net.g : unbound.g, *map);
      ASSERT_TRUE(bytes.ok()) << bytes.error();
      Result<Program> program = bytes->Compile({.cache = "off"});
      ASSERT_TRUE(program.ok()) << program.error();
      if (!bound) {
        ASSERT_TRUE(program->Bind("w1", net.w1).ok());
        ASSERT_TRUE(program->Bind("w2", net.w2).ok());
        ASSERT_TRUE(program->Bind("b", net.b).ok());
      }
      EXPECT_EQ(program->params().size(), bound ? options.keep.empty() ? 1u : 2u : 3u);
      for (const int64_t rows : {1, 3, 9, 300}) {
        const std::vector<float> x = Wave(static_cast<size_t>(rows) * 13, 0.37f, 2);
        const std::vector<float> want = ValuesOf(*floats, x, rows), got = ValuesOf(*program, x, rows);
        double off = 0, size = 0;
        for (size_t i = 0; i < want.size(); ++i) {
          off = std::max(off, std::fabs(static_cast<double>(want[i]) - got[i]));
          size = std::max(size, std::fabs(static_cast<double>(want[i])));
        }
        EXPECT_LT(off, 0.08 * size) << rows;
        EXPECT_GT(off, 0) << rows;
      }
    }
  }
}

TEST(Qdq, IsPartOfTextBytesAndFingerprint) {
  Net net;
  QuantisationMap map = {{"x", {.range = ValueRange{-2, 2}}}, {"w1", {.dtype = "i8", .symmetric = true, .axis = 1}}};
  const Result<Graph> bytes = InsertQdq(net.g, map);
  ASSERT_TRUE(bytes.ok()) << bytes.error();
  const Result<Graph> text = Graph::Parse(bytes->Text());
  ASSERT_TRUE(text.ok()) << text.error();
  const Result<std::string> binary = bytes->Binary();
  const Result<Graph> decoded = Graph::FromBinary(std::as_bytes(std::span(*binary)));
  ASSERT_TRUE(decoded.ok()) << decoded.error();
  EXPECT_EQ(*bytes->Fingerprint(), *text->Fingerprint());
  EXPECT_EQ(*bytes->Fingerprint(), *decoded->Fingerprint());
  map["x"].range->high = 2.5;
  EXPECT_NE(*bytes->Fingerprint(), *InsertQdq(net.g, map)->Fingerprint());
}

TEST(Qdq, AMapOfTheGraphIsCompiledAsItsPairs) {
  Net bound, unbound(false);
  const Result<QuantisationMap> map = MakeQuantisationMap(bound.g, {{"x", {-2, 2}}, {"act", {0, 1.5}}});
  ASSERT_TRUE(map.ok()) << map.error();
  ASSERT_EQ(map->size(), 4u);
  for (const bool is_bound : {true, false}) {
    const Graph& graph = is_bound ? bound.g : unbound.g;
    const Result<Graph> mapped = WithQuantisation(graph, *map), pairs = InsertQdq(graph, *map);
    ASSERT_TRUE(mapped.ok() && pairs.ok()) << mapped.error() << pairs.error();
    const Result<Graph> read = Graph::Parse(mapped->Text());
    ASSERT_TRUE(read.ok()) << read.error();
    for (const int threads : {1, 2}) {
      Result<Program> floats = graph.Compile({.threads = threads, .cache = "off"});
      Result<Program> of_map = mapped->Compile({.threads = threads, .cache = "off"});
      Result<Program> of_pairs = pairs->Compile({.threads = threads, .cache = "off"});
      Result<Program> of_text = read->Compile({.threads = threads, .cache = "off"});
      for (Result<Program>* const program : {&floats, &of_map, &of_pairs, &of_text}) {
        ASSERT_TRUE(program->ok()) << program->error();
        if (is_bound && program != &of_text) continue;
        ASSERT_TRUE((*program)->Bind("w1", bound.w1).ok());
        ASSERT_TRUE((*program)->Bind("w2", bound.w2).ok());
        ASSERT_TRUE((*program)->Bind("b", bound.b).ok());
      }
      for (const int64_t rows : {1, 3, 9, 300}) {
        const std::vector<float> x = Wave(static_cast<size_t>(rows) * 13, 0.37f, 2);
        const std::vector<float> want = ValuesOf(*of_pairs, x, rows);
        EXPECT_EQ(ValuesOf(*of_map, x, rows), want) << is_bound << ", " << threads << " threads, " << rows;
        EXPECT_EQ(ValuesOf(*of_text, x, rows), want) << is_bound << ", " << threads << " threads, " << rows;
        EXPECT_NE(ValuesOf(*floats, x, rows), want);
      }
    }
  }
}

TEST(Qdq, AMapIsPartOfTextBytesAndFingerprint) {
  Net net;
  QuantisationMap map = {{"x", {.range = ValueRange{-2, 0.1}}}, {"w1", {.dtype = "i8", .symmetric = true, .axis = 1}}};
  const Result<Graph> mapped = WithQuantisation(net.g, map);
  ASSERT_TRUE(mapped.ok()) << mapped.error();
  const Result<Graph> text = Graph::Parse(mapped->Text());
  const Result<std::string> binary = mapped->Binary();
  const Result<Graph> decoded = Graph::FromBinary(std::as_bytes(std::span(*binary)));
  for (const Result<Graph>* const read : {&mapped, &text, &decoded}) {
    ASSERT_TRUE(read->ok()) << read->error();
    EXPECT_EQ(QuantisationMapJson(*QuantisationOf(**read)), QuantisationMapJson(map));
    EXPECT_EQ(*(*read)->Fingerprint(), *mapped->Fingerprint());
  }
  EXPECT_TRUE(QuantisationOf(net.g)->empty());
  EXPECT_NE(*net.g.LowerForAutodiff()->Fingerprint(), *mapped->Fingerprint());
  map["x"].range->high = 0.2;
  const Result<Graph> other = WithQuantisation(*mapped, map);  // in the place of the first
  ASSERT_TRUE(other.ok()) << other.error();
  EXPECT_NE(*other->Fingerprint(), *mapped->Fingerprint());
  EXPECT_EQ(QuantisationOf(*other)->at("x").range->high, 0.2);
  EXPECT_EQ(*InsertQdq(*mapped, map)->Fingerprint(), *InsertQdq(net.g, map)->Fingerprint());
}

// What looks at a graph of floats, at one of pairs, or at none that has a map.
TEST(Qdq, WhatElseIsMadeOfAMappedGraph) {
  Net net;
  const QuantisationMap map = *MakeQuantisationMap(net.g, {{"x", {-0.25, 0.25}}, {"act", {0, 0.5}}});
  const Result<Graph> mapped = WithQuantisation(net.g, map), pairs = InsertQdq(net.g, map);
  ASSERT_TRUE(mapped.ok() && pairs.ok()) << mapped.error() << pairs.error();
  const std::vector<float> x = Wave(3 * 13, 0.37f, 2);
  std::string ranges;
  for (const Graph* graph : std::initializer_list<const Graph*>{&net.g, &*mapped}) {
    Result<Calibrator> calibrator = Calibrator::Make(*graph, {.cache = "off"});
    ASSERT_TRUE(calibrator.ok()) << calibrator.error();
    ASSERT_TRUE(calibrator->Run({In("x", x, {3, 13})}).ok());
    if (!ranges.empty()) EXPECT_EQ(RangesJson(calibrator->ranges()), ranges);
    ranges = RangesJson(calibrator->ranges());
  }
  const Result<DispatchReport> report = Dispatch(*mapped);
  ASSERT_TRUE(report.ok()) << report.error();
  const auto up =
      std::find_if(report->nodes.begin(), report->nodes.end(), [](const auto& n) { return n.label == "up"; });
  ASSERT_NE(up, report->nodes.end());
  EXPECT_NE(up->state, DispatchState::kNative) << report->Text();
  const Result<Graph> mixed = MixedPrecision(*mapped);
  ASSERT_TRUE(mixed.ok()) << mixed.error();
  EXPECT_TRUE(QuantisationOf(*mixed)->empty());
  EXPECT_NE(mixed->Text().find("QuantizeLinear"), std::string::npos);
  Graph outer("outer");
  outer.Symbol("B");
  outer.Inline(*mapped, {outer.Input("z", "f32[B, 13]")});
  EXPECT_EQ(outer.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(outer.status().error().find("a quantisation map"), std::string::npos) << outer.status().error();
}

TEST(Qdq, JsonIsReadBack) {
  const double inf = std::numeric_limits<double>::infinity();
  const ValueRanges ranges = {{"x", {-1.5, 0.1}}, {"a \"b\"#2", {0, 3e30}}, {"mask", {-inf, inf}}};
  const Result<ValueRanges> again = ParseRanges(RangesJson(ranges));
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(RangesJson(*again), RangesJson(ranges));
  EXPECT_EQ(again->at("x").high, 0.1);
  EXPECT_EQ(again->at("mask").low, -inf);
  const QuantisationMap map = {{"x", {.dtype = "u8", .range = ValueRange{-1, 2}}},
                               {"w", {.dtype = "i8", .symmetric = true, .axis = 1}}};
  const Result<QuantisationMap> read = ParseQuantisationMap(QuantisationMapJson(map));
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(QuantisationMapJson(*read), QuantisationMapJson(map));
  EXPECT_EQ(read->at("w").axis, 1);
}

TEST(Qdq, SaysWhatIsWrongWithJson) {
  for (const auto& [text, what] : std::vector<std::pair<const char*, const char*>>{{"", "ranges"},
                                                                                   {"[1]", "ranges"},
                                                                                   {"{\"x\": [1]}", "x: "},
                                                                                   {"{\"x\": [2, 1]}", "x: "},
                                                                                   {"{\"x\": [\"a\", 1]}", "x: "},
                                                                                   {"{\"x\": 3}", "x: "},
                                                                                   {"{\"x\": [1, 2]", "ranges"}}) {
    const Result<ValueRanges> ranges = ParseRanges(text);
    ASSERT_FALSE(ranges.ok()) << text;
    EXPECT_TRUE(ranges.error().starts_with(what)) << ranges.error();
  }
  for (const auto& [text, what] :
       std::vector<std::pair<const char*, const char*>>{{"3", "map"},
                                                        {"{\"x\": 3}", "x: {"},
                                                        {"{\"x\": {\"dtype\": \"i4\"}}", "x: dtype"},
                                                        {"{\"x\": {\"axis\": -1}}", "x: axis"},
                                                        {"{\"x\": {\"range\": null}}", "x: range"},
                                                        {"{\"x\": {\"symmetric\": 1}}", "x: symmetric"},
                                                        {"{\"x\": {\"scale\": 1}}", "x: dtype, symmetric"}}) {
    const Result<QuantisationMap> map = ParseQuantisationMap(text);
    ASSERT_FALSE(map.ok()) << text;
    EXPECT_TRUE(map.error().starts_with(what)) << map.error();
  }
}

TEST(Qdq, RefusesWhatTheGraphHasNot) {
  Net net;
  EXPECT_EQ(MakeQuantisationMap(net.g, {{"ub", {0, 1}}}).code(), ErrorCode::kUnknownName);
  EXPECT_EQ(MakeQuantisationMap(net.g, {{"ub", {0, 1}}}).details().suggestion, "up");
  EXPECT_EQ(MakeQuantisationMap(net.g, {{"up", {1, 0}}}).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(MakeQuantisationMap(net.g, {}, {.activations = "f16"}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(MakeQuantisationMap(net.g, {}, {.ops = {"Product"}}).code(), ErrorCode::kUnknownOp);
  const ValueScheme symmetric{.dtype = "i8", .symmetric = true};
  for (const auto& make : {InsertQdq, WithQuantisation}) {
    EXPECT_EQ(make(net.g, {{"act", {}}}).code(), ErrorCode::kBadAttribute);
    EXPECT_EQ(make(net.g, {{"act", symmetric}}).code(), ErrorCode::kBadAttribute);
    EXPECT_EQ(make(net.g, {{"w3", symmetric}}).code(), ErrorCode::kUnknownName);
    EXPECT_EQ(make(net.g, {{"w3", symmetric}}).details().suggestion, "w1");
    EXPECT_EQ(make(net.g, {{"w1", {.dtype = "i4"}}}).code(), ErrorCode::kInvalid);
  }
}

// The bytes that a division in f32 gives, whatever kernels put in its place: at quotients halfway between two numbers
// and just beside, at both ends, of infinities, NaN and what underflows; and the floats that stand for them.
TEST(Quantised, BytesAreThoseOfADivision) {
  for (const float scale : {0.1f, 0.0039215689f, 1.f, 3.f, 0.99999994f, 7.1e-9f, 1.3e19f, -0.25f, 1e-30f}) {
    std::vector<float> x = {0.f,     -0.f,      INFINITY, -INFINITY,      NAN,         1e-42f,
                            -1e-42f, 3.402e38f, -3.4e38f, scale * 1e-20f, scale * 1e9f};
    for (int n = -300; n <= 300; ++n) {
      for (const float part : {0.f, 0.5f}) {
        const float at = scale * (static_cast<float>(n) + part);
        x.insert(x.end(), {at, std::nextafter(at, INFINITY), std::nextafter(at, -INFINITY)});
      }
    }
    const auto count = static_cast<int64_t>(x.size());
    for (const auto& [zero, low, high] :
         {std::tuple(0, 0, 255), {131, 0, 255}, {255, 0, 255}, {-128, -128, 127}, {0, -128, 127}, {5, -128, 127}}) {
      const bool is_signed = low < 0;
      Graph g("bytes");
      const Value in = g.Input("x", absl::StrFormat("f32[%d]", count));
      const auto byte = static_cast<uint8_t>(zero);
      const Value s = g.Constant("f32[]", std::as_bytes(std::span(&scale, 1)));
      const Value z = g.Constant(is_signed ? "i8[]" : "u8[]", std::as_bytes(std::span(&byte, 1)));
      const Value q = g.Op("QuantizeLinear", {in, s, z});
      g.Output("q", g.Op("Cast", {q}, {{"to", "i32"}}));
      g.Output("d", g.Op("DequantizeLinear", {q, s, z}));
      Result<Program> program = g.Compile({.cache = "off"});
      ASSERT_TRUE(program.ok()) << program.error();
      std::vector<int32_t> bytes(x.size());
      std::vector<float> back(x.size());
      const Result<void> ran = program->Run({In("x", x, {count})}, {Out("q", bytes, {count}), Out("d", back, {count})});
      ASSERT_TRUE(ran.ok()) << ran.error();
      for (size_t i = 0; i < x.size(); ++i) {
        const float rounded = std::nearbyint(x[i] / scale);
        const float moved = (std::isnan(rounded) ? 0.f : rounded) + static_cast<float>(zero);
        const int expected = static_cast<int>(std::clamp(moved, static_cast<float>(low), static_cast<float>(high)));
        ASSERT_EQ(bytes[i], expected) << x[i] << " / " << scale << " + " << zero;
        ASSERT_EQ(back[i], static_cast<float>(expected - zero) * scale) << x[i] << " / " << scale << " + " << zero;
      }
    }
  }
}

// Every byte, of either sign, through x sigmoid(x) to a byte again: looked up in a table.
TEST(Quantised, FunctionsOfEveryByte) {
  constexpr int64_t kRows = 7, kColumns = 259;  // every byte, many times
  constexpr float kScale = 0.0625f, kTo = 0.03125f;
  for (const bool is_signed : {false, true}) {
    const int zero = is_signed ? -5 : 131, to = is_signed ? -100 : 9, low = is_signed ? -128 : 0;
    std::vector<uint8_t> x(kRows * kColumns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 37);
    Graph g("table");
    const std::string type = is_signed ? "i8" : "u8";
    const Value in = g.Input("x", absl::StrFormat("%s[%d, %d]", type, kRows, kColumns));
    const auto byte = [&](int value) {
      const auto bits = static_cast<uint8_t>(value);
      return g.Constant(type + "[]", std::as_bytes(std::span(&bits, 1)));
    };
    const auto number = [&](const float& value) { return g.Constant("f32[]", std::as_bytes(std::span(&value, 1))); };
    const Value silu = g.Op("Silu", {g.Op("DequantizeLinear", {in, number(kScale), byte(zero)})});
    const Value y = g.Op("QuantizeLinear", {silu, number(kTo), byte(to)});
    g.Output("y", g.Op("Cast", {y}, {{"to", "i32"}}));
    Result<Program> program = g.Compile({.cache = "off"});
    ASSERT_TRUE(program.ok()) << program.error();
    std::vector<int32_t> bytes(x.size());
    const std::span<const int8_t> with_sign(reinterpret_cast<const int8_t*>(x.data()), x.size());
    const ConstTensor given = is_signed ? In("x", with_sign, {kRows, kColumns}) : In("x", x, {kRows, kColumns});
    const Result<void> ran = program->Run({given}, {Out("y", bytes, {kRows, kColumns})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    for (size_t i = 0; i < x.size(); ++i) {
      const int code = is_signed ? static_cast<int8_t>(x[i]) : x[i];
      const double real = (code - zero) * kScale, value = real / (1 + std::exp(-real)) / kTo;
      if (std::fabs(std::fabs(value - std::floor(value)) - 0.5) < 1e-4) continue;  // a tie within rounding
      EXPECT_EQ(bytes[i], std::clamp(static_cast<int>(std::nearbyint(value)) + to, low, low + 255)) << code;
    }
  }
}

// Bytes that stand for other floats to those who read them than to those who made them.
TEST(Quantised, FloatsOfBytesWithAnotherZero) {
  Graph g("bytes");
  const Value x = g.Input("x", "f32[37]");
  const float scale = 0.5f;
  const auto byte = [&](const char* type, uint8_t zero) {
    return g.Constant(type, std::as_bytes(std::span(&zero, 1)));
  };
  const Value s = g.Constant("f32[]", std::as_bytes(std::span(&scale, 1)));
  const Value q = g.Op("QuantizeLinear", {x, s, byte("u8[]", 3)});
  g.Output("y", g.Op("DequantizeLinear", {q, s, byte("u8[]", 10)}));
  Result<Program> program = g.Compile({.cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> values = Wave(37, 0.7f, 20.f);
  std::vector<float> y(37);
  ASSERT_TRUE(program->Run({In("x", values, {37})}, {Out("y", y, {37})}).ok());
  for (size_t i = 0; i < y.size(); ++i) {
    const float moved = std::clamp(std::nearbyint(values[i] / scale) + 3.f, 0.f, 255.f);
    EXPECT_EQ(y[i], (moved - 10.f) * scale) << values[i];
  }
}

}  // namespace
}  // namespace quern
