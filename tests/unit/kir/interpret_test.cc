// The interpreter against plain C++ in double for the worked kernels, and statement by statement on small ones.
#include "kir/interpret.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "kernel_files.h"
#include "kir/decode.h"
#include "kir/layout.h"
#include "kir/quantise.h"

namespace quern::kir {
namespace {

constexpr uint32_t kSeed = 7919;

template <typename T>
BufferBytes BytesOf(std::vector<T>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> Normal(std::mt19937& random, size_t count, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Random q4_K rows: any bytes are valid but for the two f16 scales, which stay small.
std::vector<uint8_t> RandomQ4K(std::mt19937& random, int64_t rows, int64_t k) {
  std::vector<uint8_t> bytes(rows * RowBytes(DType::kQ4_K, k));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t block = 0; block < bytes.size(); block += 144) {
    const uint16_t d = FloatToHalf(1e-3f * static_cast<float>(1 + random() % 7));
    const uint16_t dmin = FloatToHalf(1e-3f * static_cast<float>(random() % 9));
    std::memcpy(&bytes[block], &d, 2);
    std::memcpy(&bytes[block + 2], &dmin, 2);
  }
  return bytes;
}

std::vector<uint8_t> PlanarQ8K(const std::vector<float>& x, int64_t k) {
  const int64_t rows = static_cast<int64_t>(x.size()) / k, row_bytes = LayoutRowBytes(Layout::kPlanar, DType::kQ8_K, k);
  std::vector<uint8_t> planar(rows * row_bytes);
  for (int64_t r = 0; r < rows; ++r) QuantiseToPlanar(DType::kQ8_K, &x[r * k], k, &planar[r * row_bytes], k, 0);
  return planar;
}

// A q8_K row decodes to the values it was made from, to half a quant.
void ExpectQuantised(const uint8_t* row, int64_t row_k, int64_t start, const std::vector<double>& expected) {
  for (size_t block = 0; block < expected.size(); block += 256) {
    double largest = 0;
    for (size_t j = block; j < block + 256; ++j) largest = std::max(largest, std::fabs(expected[j]));
    for (size_t j = block; j < block + 256; ++j) {
      ASSERT_NEAR(DecodePlanar(DType::kQ8_K, row, row_k, start + static_cast<int64_t>(j)), expected[j],
                  largest / 127 * 0.5001)
          << j;
    }
  }
}

TEST(InterpretWorkedTest, RmsNormQuantised) {
  std::mt19937 random(kSeed);
  constexpr int64_t kRows = 3, kColumns = 2048;
  std::vector<float> h = Normal(random, kRows * kColumns, 2), g = Normal(random, kColumns);
  const int64_t row_bytes = LayoutRowBytes(Layout::kPlanar, DType::kQ8_K, kColumns);
  std::vector<uint8_t> xq(kRows * row_bytes);
  const Kernel kernel = KernelFile("rms_norm_q8");
  const BufferBytes buffers[] = {BytesOf(h), BytesOf(g), BytesOf(xq)};
  ASSERT_EQ(Interpret(kernel, {{"M", kRows}}, buffers), absl::OkStatus());
  for (int64_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < kColumns; ++c) squares += std::pow(h[r * kColumns + c], 2.0);
    const double scale = 1 / std::sqrt(squares / kColumns + 1e-5);
    std::vector<double> expected(kColumns);
    for (int64_t c = 0; c < kColumns; ++c) expected[c] = h[r * kColumns + c] * scale * g[c];
    ExpectQuantised(&xq[r * row_bytes], kColumns, 0, expected);
  }
}

TEST(InterpretWorkedTest, DownResidual) {
  std::mt19937 random(kSeed);
  constexpr int64_t kRows = 2048, kColumns = 5632, kFirst = 5, kLast = 7;
  std::vector<uint8_t> w = RandomQ4K(random, kRows, kColumns), x = PlanarQ8K(Normal(random, kColumns), kColumns);
  const std::vector<float> before = Normal(random, kRows);
  std::vector<float> h = before;
  auto interpreter = Interpreter::Create(KernelFile("down_residual"), {});
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  EXPECT_EQ(interpreter->chunks(), 64);
  const BufferBytes buffers[] = {BytesOf(w), BytesOf(x), BytesOf(h)};
  ASSERT_EQ(interpreter->Run(buffers, kFirst, kLast), absl::OkStatus());
  for (int64_t n = 0; n < kRows; ++n) {
    double dot = 0, magnitude = 0;
    const bool ran = n >= 32 * kFirst && n < 32 * kLast;
    for (int64_t j = 0; ran && j < kColumns; ++j) {
      const double term =
          static_cast<double>(DecodeElement(DType::kQ4_K, &w[n * RowBytes(DType::kQ4_K, kColumns)], j)) *
          DecodePlanar(DType::kQ8_K, x.data(), kColumns, j);
      dot += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(h[n], before[n] + dot, 1e-7 * (magnitude + std::fabs(before[n]))) << n;
  }
}

TEST(InterpretWorkedTest, GateUpSilu) {
  std::mt19937 random(kSeed);
  constexpr int64_t kRows = 11, kColumns = 2048, kHidden = 5632, kChunk = 3;  // 11 rows: a full tile of 10 and one
  const int64_t w_row = RowBytes(DType::kQ4_K, kColumns);
  std::vector<uint8_t> wg = RandomQ4K(random, kHidden, kColumns), wu = RandomQ4K(random, kHidden, kColumns);
  std::vector<uint8_t> x = PlanarQ8K(Normal(random, kRows * kColumns, 0.02f), kColumns);
  const int64_t out_row = LayoutRowBytes(Layout::kPlanar, DType::kQ8_K, kHidden);
  std::vector<uint8_t> out(kRows * out_row);
  auto interpreter = Interpreter::Create(KernelFile("gate_up_silu"), {{"M", kRows}});
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const BufferBytes buffers[] = {BytesOf(wg), BytesOf(wu), BytesOf(x), BytesOf(out)};
  ASSERT_EQ(interpreter->Run(buffers, kChunk, kChunk + 1), absl::OkStatus());

  std::vector<float> gate(256 * kColumns), up(256 * kColumns), in(kRows * kColumns);
  for (int64_t f = 0; f < 256; ++f) {
    DecodeRow(DType::kQ4_K, &wg[(kChunk * 256 + f) * w_row], kColumns, &gate[f * kColumns]);
    DecodeRow(DType::kQ4_K, &wu[(kChunk * 256 + f) * w_row], kColumns, &up[f * kColumns]);
  }
  const int64_t x_row = LayoutRowBytes(Layout::kPlanar, DType::kQ8_K, kColumns);
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t j = 0; j < kColumns; ++j)
      in[m * kColumns + j] = DecodePlanar(DType::kQ8_K, &x[m * x_row], kColumns, j);
  }
  for (int64_t m = 0; m < kRows; ++m) {
    std::vector<double> expected(256);
    for (int64_t f = 0; f < 256; ++f) {
      double g = 0, u = 0;
      for (int64_t j = 0; j < kColumns; ++j) {
        g += static_cast<double>(in[m * kColumns + j]) * gate[f * kColumns + j];
        u += static_cast<double>(in[m * kColumns + j]) * up[f * kColumns + j];
      }
      expected[f] = g / (1 + std::exp(-g)) * u;
    }
    ExpectQuantised(&out[m * out_row], kHidden, kChunk * 256, expected);
  }
}

TEST(InterpretWorkedTest, AttnDecode) {
  std::mt19937 random(kSeed);
  constexpr int64_t kHeads = 8, kKvHeads = 4, kDim = 256, kContext = 8192, kKeys = 701, kParts = 2;
  std::vector<float> q = Normal(random, kHeads * kDim);
  auto halves = [&] {
    std::vector<uint16_t> values(kContext * kKvHeads * kDim, FloatToHalf(std::numeric_limits<float>::quiet_NaN()));
    const std::vector<float> normal = Normal(random, kKeys * kKvHeads * kDim);
    for (size_t i = 0; i < normal.size(); ++i) values[i] = FloatToHalf(normal[i]);  // rows past n must not matter
    return values;
  };
  std::vector<uint16_t> kc = halves(), vc = halves();
  std::vector<float> part(kHeads * kParts * 258);
  const BufferBytes buffers[] = {BytesOf(q), BytesOf(kc), BytesOf(vc), BytesOf(part)};
  ASSERT_EQ(Interpret(KernelFile("attn_decode"), {{"n", kKeys}, {"P", kContext}}, buffers), absl::OkStatus());
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t s = 0; s < kParts; ++s) {
      const int64_t first = s * 512, last = std::min(kKeys, first + 512), kv = head / 2;
      std::vector<double> scores;
      double top = -std::numeric_limits<double>::infinity();
      for (int64_t t = first; t < last; ++t) {
        double dot = 0;
        for (int64_t c = 0; c < kDim; ++c)
          dot += static_cast<double>(q[head * kDim + c]) * HalfToFloat(kc[(t * kKvHeads + kv) * kDim + c]);
        scores.push_back(dot * 0.0625);
        top = std::max(top, scores.back());
      }
      double sum = 0;
      std::vector<double> out(kDim);
      for (int64_t t = first; t < last; ++t) {
        const double weight = std::exp(scores[t - first] - top);
        sum += weight;
        for (int64_t c = 0; c < kDim; ++c) out[c] += weight * HalfToFloat(vc[(t * kKvHeads + kv) * kDim + c]);
      }
      const float* row = &part[(head * kParts + s) * 258];
      EXPECT_NEAR(row[256], top, 1e-5);
      EXPECT_NEAR(row[257], sum, 1e-5 * sum);
      for (int64_t c = 0; c < kDim; ++c) ASSERT_NEAR(row[c], out[c], 2e-5 * sum) << head << " " << s << " " << c;
    }
  }
}

// Runs the chunks of a small kernel on f32 x[8] and f32 y[8]; the error, or "".
std::string RunSmall(const std::string& body, std::vector<float>& y, std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}) {
  const Kernel kernel =
      KernelText("kernel k ( x : f32[8] in\n y : f32[8] out ) sym N in 0..8 { grid chunk in 0..1 { " + body + " } }");
  y.assign(8, -1);
  const BufferBytes buffers[] = {BytesOf(x), BytesOf(y)};
  return std::string(Interpret(kernel, {{"N", 5}}, buffers).message());
}

TEST(InterpretTest, Statements) {
  std::vector<float> y;
  EXPECT_EQ(RunSmall("for i in 1..8 by 3 { y[i] = x[i] }", y), "");
  EXPECT_EQ(y, std::vector<float>({-1, 2, -1, -1, 5, -1, -1, 8}));
  EXPECT_EQ(RunSmall("var s : f32 = 10 for i in 0..N { s := s + x[i] } y[0] = s", y), "");
  EXPECT_EQ(y[0], 25);
  EXPECT_EQ(RunSmall("for i in 0..8 { if i % 3 == 0 { y[i] = 3 } else { let t = x[i] y[i] = -t } }", y), "");
  EXPECT_EQ(y, std::vector<float>({3, -2, -3, 3, -5, -6, 3, -8}));
  EXPECT_EQ(RunSmall("for i in 0..8 { y[i] = x[i + N] else 0.5 }", y), "");
  EXPECT_EQ(y, std::vector<float>({6, 7, 8, 0.5, 0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(
      RunSmall("y[0] = sum accs 4 vec i in 0..8 { x[i] * x[i] } y[1] = prod for i in 0..4 { x[i] } "
               "y[2] = max vec i in 0..8 { -x[i] } y[3] = min vec i in 3..8 { x[i] } y[4] = sum vec i in 3..3 { x[i] }",
               y),
      "");
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 5), std::vector<float>({204, 24, -1, 4, 0}));
  EXPECT_EQ(
      RunSmall("y[0] = sum accs 4 vec i in 0..8 { let t = x[i] - 2; let u = t * t; u * u } "
               "y[1] = cast<f32>(max for i in 0..4 { let k = 7 - i; k * (sum for j in 0..k { let m = j * k; m }) })",
               y),
      "");
  EXPECT_EQ(y[0], 1 + 0 + 1 + 16 + 81 + 256 + 625 + 1296);
  EXPECT_EQ(y[1], 7 * 7 * 21);
  EXPECT_EQ(RunSmall("tile t, u : f32[2, 4] = 1.5 map (i, j) in t, u [2, 3] { t[i, j] = u + x[4 * i + j] } "
                     "map (i, j) in t [2, 4] { y[4 * i + j] = t + u[i, 3 - j] }",
                     y),
            "");
  EXPECT_EQ(y, std::vector<float>({4, 5, 6, 3, 8, 9, 10, 3}));
  EXPECT_EQ(RunSmall("alloc n : f32[8] scratch for i in 0..8 { n[7 - i] = x[i] } for i in 0..8 { y[i] = n[i] }", y),
            "");
  EXPECT_EQ(y, std::vector<float>({8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(InterpretTest, IntegersWrapAndCastsSaturate) {
  std::vector<float> y;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(
      RunSmall("let a = 100i8 y[0] = cast<f32>(a + 100i8) y[1] = cast<f32>(200u8 * 2u8) "
               "y[2] = cast<f32>(-7 / 2) y[3] = cast<f32>(-7 % 4) y[4] = cast<f32>(cast<i8>(x[0])) "
               "y[5] = cast<f32>(cast<u8>(x[1])) y[6] = cast<f32>(cast<i32>(x[2])) y[7] = cast<f32>(cast<i16>(x[3]))",
               y, {300, -5, nan, -inf, 0, 0, 0, 0}),
      "");
  EXPECT_EQ(y, std::vector<float>({-56, 144, -3, 1, 127, 0, 0, -32768}));
  EXPECT_EQ(RunSmall("y[0] = bits<f32>(bits<i32>(x[0]) + 1) y[1] = cast<f32>(cast<f16>(x[1])) "
                     "y[2] = cast<f32>(cast<bf16>(x[2])) y[3] = cast<f32>(bits<u16>(cast<f16>(x[0])))",
                     y, {1, 1 + 0x1p-11f, 1 + 0x1p-8f + 0x1p-20f, 0, 0, 0, 0, 0}),
            "");
  EXPECT_EQ(y[0], std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(y[1], 1);  // half way: to even
  EXPECT_EQ(y[2], 1 + 0x1p-7f);
  EXPECT_EQ(y[3], 0x3c00);
}

TEST(InterpretTest, IntegersOf64BitsAreRoundedOnce) {
  std::vector<float> y;
  // 2^60 + 2^52 + 1 and its opposite: a double loses the 1, and half way goes to even. 2^53 + 2^29 + 1 and 2^64 - 2^39
  // - 1, the same for f32.
  EXPECT_EQ(
      RunSmall("y[0] = cast<f32>(cast<bf16>(1157425104234217473)) y[1] = cast<f32>(cast<bf16>(-1157425104234217473)) "
               "y[2] = cast<f32>(cast<bf16>(1157425104234217473u64)) y[3] = cast<f32>(9007199791611905) "
               "y[4] = cast<f32>(18446743523953737727u64)",
               y),
      "");
  EXPECT_EQ(y[0], 0x1p60f + 0x1p53f);
  EXPECT_EQ(y[1], -0x1p60f - 0x1p53f);
  EXPECT_EQ(y[2], 0x1p60f + 0x1p53f);
  EXPECT_EQ(y[3], 0x1p53f + 0x1p30f);
  EXPECT_EQ(y[4], 0x1p64f - 0x1p40f);
}

// Floats stay in double until the text rounds them.
TEST(InterpretTest, RoundsAtStoresAndCastsOnly) {
  std::vector<float> y;
  EXPECT_EQ(
      RunSmall("y[0] = (x[0] + x[1]) - x[0] y[1] = cast<f32>(x[0] + x[1]) - x[0]", y, {0x1p30f, 1, 0, 0, 0, 0, 0, 0}),
      "");
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(
      RunSmall("alloc s : f32[1] scratch s[0] = x[0] + x[1] y[0] = s[0] - x[0]", y, {0x1p30f, 1, 0, 0, 0, 0, 0, 0}),
      "");
  EXPECT_EQ(y[0], 0);
}

TEST(InterpretTest, StopsAtBadAccesses) {
  std::vector<float> y;
  EXPECT_EQ(RunSmall("for i in 0..9 { y[i] = 1 }", y), "kernel k, chunk 0: y[i] = 1.0: y[8] is outside y[8]");
  EXPECT_EQ(RunSmall("y[0] = x[N - 6]", y), "kernel k, chunk 0: y[0] = x[N - 6]: x[-1] is outside x[8]");
  EXPECT_EQ(RunSmall("y[0] = sum vec i in 0..N { x[2 * i] }", y),
            "kernel k, chunk 0: y[0] = sum vec i in 0..N { x[2 * i] }: x[8] is outside x[8]");
  EXPECT_EQ(RunSmall("y[0] = y[1]", y), "kernel k, chunk 0: y[0] = y[1]: y[1] is read before it is written");
  EXPECT_EQ(RunSmall("alloc n : f32[8] scratch for i in 0..N { n[i] = 1 } for i in 0..8 { y[i] = n[i] }", y),
            "kernel k, chunk 0: y[i] = n[i]: n[5] is read before it is written");
  EXPECT_EQ(RunSmall("for k in 0..2 { alloc n : f32[1] scratch if k == 0 { n[0] = 1 } y[k] = n[0] }", y),
            "kernel k, chunk 0: y[k] = n[0]: n[0] is read before it is written");
  EXPECT_EQ(RunSmall("x[0] = 1", y), "kernel k, chunk 0: x[0] = 1.0: x[0] is written, but it is an input");
  EXPECT_EQ(RunSmall("tile t : f32[4] = 0 map (i) in t [N] { y[i] = t }", y),
            "kernel k, chunk 0: map (i) in t [N]: extent 5 of t, which has 4");
  EXPECT_EQ(RunSmall("tile t : f32[1, 2] = 0 alloc a : f32[2, 8] scratch alloc b : f32[1, 8] scratch "
                     "for i in 0..8 { a[0, i] = 1 b[0, i] = 1 } dot_f32 t += b[0 : +1, 0 : +N], a[0 : +1, 0 : +N]\nfor "
                     "i in 0..8 { y[i] = t[0, 0] }",
                     y),
            "");
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(RunSmall("tile t : f32[1, 2] = 0 alloc a : f32[2, 8] scratch alloc b : f32[1, 8] scratch "
                     "for i in 0..7 { a[0, i] = 1 b[0, i] = 1 } dot_f32 t += a, b\ny[0] = t[0, 0]",
                     y),
            "kernel k, chunk 0: y[0] = t[0, 0]: t[0, 0] is read before it is written; dot_f32 t += a, b read b[0, 7] "
            "before");
  EXPECT_EQ(
      RunSmall("tile t : f32[1, 2] = 0 alloc a : f32[4, 8] scratch alloc b : f32[1, 8] scratch dot_f32 t += a, b", y),
      "kernel k, chunk 0: dot_f32 t += a, b: tile t has 2 where the operands have 4");
  EXPECT_EQ(
      RunSmall("tile t : f32[1, 4] = 0 alloc a : f32[4, 8] scratch alloc b : f32[1, 7] scratch dot_f32 t += a, b", y),
      "kernel k, chunk 0: dot_f32 t += a, b: b has 7 where an earlier operand has 8");
}

// Lanes of a tile that were never filled have no value, and those beside them all of theirs.
TEST(InterpretTest, LanesThatNobodyFilledAreNotRead) {
  std::vector<float> y;
  const std::string filled =
      "tile t : f32[1, 2] = 0 alloc a : f32[2, 8] scratch alloc b : f32[1, 8] scratch for i in 0..8 { a[0, i] = 1 "
      "b[0, i] = 2 } dot_f32 t += a, b\n";
  EXPECT_EQ(RunSmall(filled + "map (i, j) in t [1, 1] { y[j] = t }", y), "");
  EXPECT_EQ(y[0], 16);
  EXPECT_EQ(RunSmall(filled + "dot_f32 t += a, b\nmap (i, j) in t [1, 1] { y[j] = t }", y), "");
  EXPECT_EQ(y[0], 32);
  EXPECT_EQ(RunSmall(filled + "map (i, j) in t [1, 2] { y[j] = t }", y),
            "kernel k, chunk 0: y[j] = t: t[0, 1] is read before it is written; dot_f32 t += a, b read a[1, 0] before");
}

TEST(InterpretTest, RefusesWrongCalls) {
  std::vector<float> x(8), y(7);
  const Kernel kernel =
      KernelText("kernel k ( x : f32[8] in\n y : f32[8] out ) sym N in 1..8 { grid b in 0..N by 3 { y[b] = 1 } }");
  auto message = [](const Status& status) { return std::string(status.message()); };
  EXPECT_EQ(message(Interpreter::Create(kernel, {}).status()), "kernel k: symbol N is not bound");
  EXPECT_EQ(message(Interpreter::Create(kernel, {{"N", 9}}).status()), "kernel k: symbol N is 9, outside 1..8");
  auto interpreter = Interpreter::Create(kernel, {{"N", 7}});
  ASSERT_TRUE(interpreter.ok());
  EXPECT_EQ(interpreter->chunks(), 3);
  const BufferBytes buffers[] = {BytesOf(x), BytesOf(y)};
  EXPECT_EQ(message(interpreter->Run(buffers, 0, 1)), "kernel k: y has 28 bytes, not 32");
  EXPECT_EQ(message(interpreter->Run({buffers, 1}, 0, 1)), "kernel k: 1 buffers, not 2");
  EXPECT_EQ(message(interpreter->Run(buffers, 0, 4)), "kernel k: chunks 0..4 of 3");
}

// Every pack of the table, on a rectangle of a larger buffer where the layout allows one.
TEST(InterpretTest, PacksToPanels) {
  std::mt19937 random(kSeed);
  constexpr int64_t kRows = 21, kColumns = 512;
  std::vector<uint8_t> w = RandomQ4K(random, kRows, kColumns);
  std::vector<float> y(16 * kColumns), z(32 * kColumns);
  const Kernel kernel = KernelText(R"(kernel k (
    w : q4_K[21, 512] @blocks in
    y : f32[16, 512] out
    z : f32[32, 512] out
  ) {
    grid b in 0..1 {
      alloc p : q4_K[16, 512] @panel16 scratch
      alloc n : f32[32, 512] @kn32 scratch
      pack p = w[9 : +16, :]
      pack n = w
      for r in 0..16 { for j in 0..512 { y[r, j] = decode(p, r, j) } }
      for r in 0..32 { for j in 0..512 { z[r, j] = n[r, j] } }
    }
  })");
  const BufferBytes buffers[] = {BytesOf(w), BytesOf(y), BytesOf(z)};
  ASSERT_EQ(Interpret(kernel, {}, buffers), absl::OkStatus());
  for (int64_t r = 0; r < 32; ++r) {
    for (int64_t j = 0; j < kColumns; ++j) {
      auto value = [&](int64_t row) { return row < kRows ? DecodeElement(DType::kQ4_K, &w[row * 288], j) : 0.0f; };
      if (r < 16) ASSERT_EQ(y[r * kColumns + j], value(9 + r)) << r << " " << j;  // 12 rows, the rest zero
      ASSERT_EQ(z[r * kColumns + j], value(r)) << r << " " << j;
    }
  }
}

// Any bits, NaNs that signal among them.
TEST(InterpretTest, PacksTurnRectangles) {
  std::vector<uint32_t> x(5 * 3 * 7), y(9 * 6, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0x7f800001 + static_cast<uint32_t>(i);
  const Kernel kernel = KernelText(R"(kernel k ( x : f32[5, 3, 7] in, y : f32[9, 6] out ) {
    grid b in 0..1 {
      pack y[2 : +4, 1 : +5] = x[:, 1, 3 : +4]
    }
  })");
  const BufferBytes buffers[] = {BytesOf(x), BytesOf(y)};
  ASSERT_EQ(Interpret(kernel, {}, buffers), absl::OkStatus());
  for (size_t u = 0; u < 9; ++u) {
    for (size_t l = 0; l < 6; ++l) {
      const bool inside = u >= 2 && u < 6 && l >= 1;
      EXPECT_EQ(y[u * 6 + l], inside ? x[(l - 1) * 21 + 7 + u + 1] : 0) << u << " " << l;
    }
  }
}

}  // namespace
}  // namespace quern::kir
