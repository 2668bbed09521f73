// Regions of every family, as they are lowered.
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

TEST(Region, ElementwiseChain) {
  CheckRegion(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Input() {name = "b"} : f32[37]
  %2 = Region(%0, %1) {family = "map"} : f32[S, 37] body graph body sym S in 1..64 {
    %0 = Input() {name = "a"} : f32[S, 37]
    %1 = Input() {name = "b"} : f32[37]
    %2 = Add(%0, %1) : f32[S, 37]
    %3 = Silu(%2) : f32[S, 37]
    %4 = Mul(%3, %2) : f32[S, 37]
    return %4
  }
  return %2
})",
              {{"S", 5}});
}

// What an op is given it does not round in another way: each op of a chain is computed once.
TEST(Region, OpsContractTheirOwnOperationsAlone) {
  constexpr int kOps = 6;
  for (const char* op : {"Mish", "Sinh"}) {
    std::string body = "    %0 = Input() {name = \"a\"} : f32[37]\n";
    for (int n = 1; n <= kOps; ++n) absl::StrAppendFormat(&body, "    %%%d = %s(%%%d) : f32[37]\n", n, op, n - 1);
    const StatusOr<ir::Graph> graph =
        ir::Parse(absl::StrFormat("graph g {\n  %%0 = Input() {name = \"x\"} : f32[37]\n  %%1 = Region(%%0) {family = "
                                  "\"map\"} : f32[37] body graph body {\n%s    return %%%d\n  }\n  return %%1\n}",
                                  body, kOps));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const StatusOr<family::LoweredRegion> lowered =
        LowerRegion(family::MemoryOf(*graph), graph->node(1), graph->symbols, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string text = kir::Print(lowered->kernels[0].kernel);
    int exponentials = 0;
    for (size_t at = text.find("exp("); at != std::string::npos; at = text.find("exp(", at + 1)) ++exponentials;
    EXPECT_EQ(exponentials, kOps) << op << "\n" << text;
  }
}

// All elements follow each other, and an operand's last extent of 1 is no reason to read its first element only.
TEST(Region, ElementwiseOfColumns) {
  for (const std::string dims : {"S, 1", "5, 1, 1", "1", ""}) {
    SCOPED_TRACE(dims);
    const std::string symbols = dims == "S, 1" ? " sym S in 1..64" : "", type = "f32[" + dims + "]";
    CheckRegion("graph g" + symbols + " {\n  %0 = Input() {name = \"x\"} : " + type +
                    "\n  %1 = Input() {name = \"y\"} : f32[]\n" + "  %2 = Region(%0, %1) {family = \"map\"} : " + type +
                    " body graph body" + symbols + " {\n    %0 = Input() {name = \"a\"} : " + type +
                    "\n    %1 = Input() {name = \"b\"} : f32[]\n    %2 = Sub(%0, %1) : " + type +
                    "\n    return %2\n  }\n  return %2\n}",
                {{"S", 5}});
  }
}

// Divisors that may be 0, which give 0.
TEST(Region, IntegerQuotients) {
  CheckRegion(R"(graph g {
  %0 = Input() {name = "x"} : i32[3, 31]
  %1 = Input() {name = "y"} : i32[31]
  %2:2 = Region(%0, %1) {family = "map"} : i32[3, 31], i32[3, 31] body graph body {
    %0 = Input() {name = "a"} : i32[3, 31]
    %1 = Input() {name = "b"} : i32[31]
    %2 = Div(%0, %1) : i32[3, 31]
    %3 = Mod(%1, %0) : i32[3, 31]
    return %2, %3
  }
  return %2.0, %2.1
})",
              {});
}

// Rows of a table by ids: negative ones count from its end, those out of range are the first or the last.
TEST(Region, GatherOfRows) {
  for (const std::string format : {"f32", "q8_0", "q4_K"}) {
    SCOPED_TRACE(format);
    CheckRegion(absl::StrReplaceAll(R"(graph g sym S in 1..64 {
  %0 = Param() {name = "table"} : FORMAT[7, 512]
  %1 = Input() {name = "ids"} : i32[S]
  %2 = Region(%0, %1) {family = "map"} : f32[S, 512] body graph body sym S in 1..64 {
    %0 = Input() {name = "t"} : FORMAT[7, 512]
    %1 = Input() {name = "i"} : i32[S]
    %2 = Gather(%0, %1) {axis = 0} : f32[S, 512]
    return %2
  }
  return %2
})",
                                    {{"FORMAT", format}}),
                {{"S", 29}});
  }
}

// A rotation outside of any product: both styles, whole and partial heads, heads as a dimension and packed.
TEST(Region, Rotation) {
  for (const std::string style : {"gptj", "neox"}) {
    for (const auto& [head_dim, n_rot] : {std::pair(6, 2), {6, 4}, {6, 6}, {2, 2}, {7, 6}, {32, 32}}) {
      for (const bool packed : {false, true}) {
        SCOPED_TRACE(absl::StrCat(style, " ", n_rot, " of ", head_dim));
        const std::string x =
            packed ? absl::StrCat("f32[5, ", 3 * head_dim, "]") : absl::StrCat("f32[5, 3, ", head_dim, "]");
        const std::string table = absl::StrCat("f32[5, ", head_dim, "]");
        CheckRegion(
            absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : ", x, "\n  %1 = Input() {name = \"c\"} : ", table,
                         "\n  %2 = Input() {name = \"s\"} : ", table,
                         "\n  %3 = Region(%0, %1, %2) {family = \"map\"} : ", x, " body graph body {",
                         "\n    %0 = Input() {name = \"x\"} : ", x, "\n    %1 = Input() {name = \"c\"} : ", table,
                         "\n    %2 = Input() {name = \"s\"} : ", table, "\n    %3 = Rope(%0, %1, %2) {head_dim = ",
                         head_dim, ", n_rot = ", n_rot, ", packed = ", packed ? "true" : "false", ", style = \"", style,
                         "\"} : ", x, "\n    return %3\n  }\n  return %3\n}"),
            {});
      }
    }
  }
}

// A value with two uses behind a reduction belongs inside of the sum.
TEST(Region, SharedValueOfAReduction) {
  CheckRegion(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 19, 13]
  %1 = Region(%0) {family = "lines"} : f32[19, 13] body graph body {
    %0 = Input() {name = "a"} : f32[5, 19, 13]
    %1 = Mul(%0, %0) : f32[5, 19, 13]
    %2 = Reduce(%1) {axes = [0], keep_dim = false, op = "sum"} : f32[19, 13]
    %3 = Tanh(%2) : f32[19, 13]
    %4 = Mul(%2, %3) : f32[19, 13]
    return %4
  }
  return %1
})",
              {});
}

TEST(Region, SoftmaxIsOneRowProgram) {
  CheckRegion(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[3, S, 41]
  %1 = Region(%0) {family = "lines"} : f32[3, S, 41] body graph body sym S in 1..64 {
    %0 = Input() {name = "a"} : f32[3, S, 41]
    %1 = Reduce(%0) {axes = [-1], keep_dim = true, op = "max"} : f32[3, S, 1]
    %2 = Sub(%0, %1) : f32[3, S, 41]
    %3 = Exp(%2) : f32[3, S, 41]
    %4 = Reduce(%3) {axes = [-1], keep_dim = true, op = "sum"} : f32[3, S, 1]
    %5 = Div(%3, %4) : f32[3, S, 41]
    return %5
  }
  return %1
})",
              {{"S", 7}});
}

TEST(Region, ReduceOverTheFirstAxis) {
  CheckRegion(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 19, 13]
  %1 = Region(%0) {family = "lines"} : f32[19, 13] body graph body {
    %0 = Input() {name = "a"} : f32[5, 19, 13]
    %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "sum"} : f32[19, 13]
    %2 = Tanh(%1) : f32[19, 13]
    return %2
  }
  return %1
})",
              {});
}

TEST(Region, NormAndQuantise) {
  CheckRegion(R"(graph g sym S in 1..1 {
  %0 = Input() {name = "x"} : f32[1, 512]
  %1 = Param() {name = "g"} : f32[512]
  %2 = Region(%0, %1) {family = "lines"} : q8_K[1, 512] body graph body {
    %0 = Input() {name = "a"} : f32[1, 512]
    %1 = Input() {name = "g"} : f32[512]
    %2 = Mul(%0, %0) : f32[1, 512]
    %3 = Reduce(%2) {axes = [-1], keep_dim = true, op = "mean"} : f32[1, 1]
    %4 = Rsqrt(%3) : f32[1, 1]
    %5 = Mul(%0, %4) : f32[1, 512]
    %6 = Mul(%5, %1) : f32[1, 512]
    %7 = Quantize(%6) {format = q8_K} : q8_K[1, 512]
    return %7
  }
  return %2
})",
              {{"S", 1}}, 1e-2);
}

// The gate and up products of a feed-forward block, at the three numbers of rows that kernels differ in.
// `quantised`: the format that the product of the two leaves in, for the next matrix.
std::string GateUp(const std::string& weight, const std::string& activation, const std::string& rows,
                   const std::string& quantised = "") {
  const std::string result = quantised.empty() ? "f32[" : quantised + "[";
  const std::string body = R"(
    %0 = Input() {name = "a"} : )" +
                           activation + "[" + rows + R"(, 512]
    %1 = Input() {name = "g"} : )" +
                           weight + R"([256, 512]
    %2 = Input() {name = "u"} : )" +
                           weight + R"([256, 512]
    %3 = MatMul(%0, %1) {transpose_b = true} : f32[)" +
                           rows + R"(, 256]
    %4 = MatMul(%0, %2) {transpose_b = true} : f32[)" +
                           rows + R"(, 256]
    %5 = Silu(%3) : f32[)" +
                           rows + R"(, 256]
    %6 = Mul(%5, %4) : f32[)" +
                           rows + ", 256]\n" +
                           (quantised.empty() ? "    return %6\n  }"
                                              : "    %7 = Quantize(%6) {format = " + quantised + "} : " + result +
                                                    rows + ", 256]\n    return %7\n  }");
  const std::string symbols = rows == "S" ? " sym S in 9..256" : "";
  return "graph g" + symbols + " {\n  %0 = Input() {name = \"x\"} : " + activation + "[" + rows +
         ", 512]\n  %1 = Param() {name = \"g\"} : " + weight + "[256, 512]\n  %2 = Param() {name = \"u\"} : " + weight +
         "[256, 512]\n  %3 = Region(%0, %1, %2) {family = \"matmul\"} : " + result + rows + ", 256] body graph body" +
         symbols + " {" + body + "\n  return %3\n}";
}

TEST(Region, GateUpOfEveryFormat) {
  for (const auto& [weight, activation] : std::vector<std::pair<std::string, std::string>>{
           {"f32", "f32"},    {"f16", "f32"},   {"q8_0", "q8_0"}, {"q4_0", "q8_0"},   {"q4_K", "q8_K"},
           {"q5_K", "q8_K"},  {"q6_K", "q8_K"}, {"q5_0", "q8_0"}, {"q5_1", "q8_0"},   {"iq4_nl", "q8_0"},
           {"mxfp4", "q8_0"}, {"q2_K", "q8_K"}, {"q3_K", "q8_K"}, {"iq4_xs", "q8_K"}, {"iq2_xxs", "q8_K"},
           {"iq1_m", "q8_K"}, {"iq3_s", "f32"}, {"q8_0", "f32"},  {"q4_0", "f32"},    {"q4_K", "f32"},
           {"q5_K", "f32"},   {"q6_K", "f32"},  {"q5_1", "f32"},  {"mxfp4", "f32"},   {"tq1_0", "f32"},
           {"q3_K", "f32"}}) {
    for (const std::string rows : {"1", "5", "S"}) {
      SCOPED_TRACE(weight + " x " + activation + " rows " + rows);
      const std::string text = GateUp(weight, activation, rows);
      CheckRegion(text, {{"S", 11}}, 2e-5, kCpu);
      // Squares of 64 rows take the interpreter a while: fewer columns, a prime, and one form of each format.
      const bool floats = rows != "S" || weight == "f32" || weight == "q5_K";
      CheckRegion(absl::StrReplaceAll(text, {{"[256, 512]", "[67, 256]"}, {", 512]", ", 256]"}, {", 256]", ", 67]"}}),
                  {{"S", 11}}, 2e-5, floats ? kBlocks : kHalves);
    }
  }
}

// What a tile of many rows reads and writes besides its panel is asked for before it is multiplied, the next panel's
// weights in parts.
TEST(Region, TilesForeseeTheirMemory) {
  const StatusOr<ir::Graph> graph = ir::Parse(R"(graph g sym S in 9..256 {
  %0 = Input() {name = "x"} : f32[S, 96]
  %1 = Param() {name = "w"} : f16[64, 96]
  %2 = Input() {name = "r"} : f32[S, 64]
  %3 = Region(%0, %1, %2) {family = "matmul"} : f32[S, 64] body graph body sym S in 9..256 {
    %0 = Input() {name = "x"} : f32[S, 96]
    %1 = Input() {name = "w"} : f16[64, 96]
    %2 = Input() {name = "r"} : f32[S, 64]
    %3 = MatMul(%0, %1) {transpose_b = true} : f32[S, 64]
    %4 = Add(%2, %3) : f32[S, 64]
    return %4
  }
  return %3
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<family::LoweredRegion> lowered =
      LowerRegion(family::MemoryOf(*graph), graph->node(3), graph->symbols, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = kir::Print(lowered->kernels[0].kernel);
  const std::string asked = R"(      for m in 0..S by 12 {
        let v0 = m / 12 * 2
        let v1 = max(1, 32 - v0)
        prefetch w1[n0 + f + 32 + v0 : +select(m + 12 < S, min(v1, 2), v1), :]
        prefetch y0[m : +12, n0 + f : +32]
        prefetch x2[m : +12, n0 + f : +32]
        tile )";
  EXPECT_TRUE(absl::StrContains(text, asked)) << text;
}

// A product of two values, neither a weight: on blocks of threads in squares, whatever follows it.
TEST(Region, PlainProduct) {
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    const std::string text = "graph g sym S in 1..64 {\n  %0 = Input() {name = \"a\"} : " + dtype +
                             "[S, 40]\n  %1 = Input() {name = \"b\"} : " + dtype +
                             "[67, 40]\n  %2 = Region(%0, %1) {family = \"matmul\"} : " + dtype +
                             "[S, 67] body graph body sym S in 1..64 {\n    %0 = Input() {name = \"a\"} : " + dtype +
                             "[S, 40]\n    %1 = Input() {name = \"b\"} : " + dtype +
                             "[67, 40]\n    %2 = MatMul(%0, %1) {transpose_b = true} : " + dtype +
                             "[S, 67]\n    %3 = Neg(%2) : " + dtype + "[S, 67]\n    return %3\n  }\n  return %2\n}";
    CheckRegion(text, {{"S", 5}}, dtype == "f32" ? 2e-5 : 5e-3);
    const StatusOr<ir::Graph> graph = ir::Parse(text);
    family::TargetFacts facts;
    facts.blocks.emplace();
    const StatusOr<family::LoweredRegion> lowered =
        LowerRegion(family::MemoryOf(*graph), graph->node(2), graph->symbols, facts);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_TRUE(absl::StrContains(kir::Print(lowered->kernels[0].kernel), "pipeline k0"))
        << kir::Print(lowered->kernels[0].kernel);
  }
}

// Both ways in which a right side may lie, and batches of which one side has a single one.
TEST(Region, PlainProductOfBatches) {
  for (const bool transposed : {false, true}) {
    SCOPED_TRACE(transposed);
    CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"a\"} : f32[2, 1, 5, 7]\n"
                            "  %1 = Input() {name = \"b\"} : f32[3, ",
                            transposed ? "11, 7" : "7, 11", "]\n  %2 = MatMul(%0, %1) {transpose_b = ",
                            transposed ? "true" : "false", "} : f32[2, 3, 5, 11]\n  return %2\n}"),
               {});
  }
}

// Words of four that are not all filled, and panels that are longer than what is multiplied.
TEST(Region, ProductOfBytesOverALengthThatIsASymbol) {
  for (const char* const type : {"i8", "u8"}) {
    for (const bool transposed : {false, true}) {
      for (const int64_t k : {1, 4, 37}) {
        SCOPED_TRACE(absl::StrCat(type, transposed ? " transposed over " : " over ", k));
        CheckFused(absl::StrCat("graph g sym K in 1..200 {\n  %0 = Input() {name = \"a\"} : ", type,
                                "[21, K]\n  %1 = Input() {name = \"b\"} : i8", transposed ? "[40, K]" : "[K, 40]",
                                "\n  %2 = MatMul(%0, %1) {transpose_b = ", transposed ? "true" : "false",
                                "} : i32[21, 40]\n  return %2\n}"),
                   {{"K", k}}, 2e-5, kCpu);
      }
    }
  }
}

// Elements of a computed value over a part of a tensor that stays as it is, which is copied first.
TEST(Region, UpdateOfAPart) {
  for (const int axis : {0, 1}) {
    SCOPED_TRACE(axis);
    CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : f32[7, 5]\n  %1 = Input() {name = \"u\"} : f32",
                            axis == 0 ? "[3, 5]" : "[7, 2]", "\n  %2 = Neg(%1) : f32", axis == 0 ? "[3, 5]" : "[7, 2]",
                            "\n  %3 = Update(%0, %2) {axis = ", axis, ", start = <2>} : f32[7, 5]\n  return %3\n}"),
               {});
  }
}

// What a Pad beside a product reads is computed: outside of it stands the Pad's value, not something of the operand's.
TEST(Region, PadOfAComputedValue) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 16]
  %1 = Param() {name = "w"} : f32[9, 16]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 9]
  %3 = Input() {name = "c"} : f32[6, 4]
  %4 = Transpose(%3) {perm = [1, 0]} : f32[4, 6]
  %5 = Exp(%4) : f32[4, 6]
  %6 = Pad(%5) {high = [0, 1], low = [1, 2], value = 3.0} : f32[5, 9]
  %7 = Add(%2, %6) : f32[5, 9]
  return %7
})",
             {});
}

// Each element of a Concat beside a product is of the operand that it lies in, the first of a piece among them.
TEST(Region, ConcatBesideAProduct) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 16]
  %1 = Param() {name = "w"} : f32[9, 16]
  %2 = MatMul(%0, %1) {transpose_b = true} : f32[5, 9]
  %3 = Input() {name = "a"} : f32[5, 4]
  %4 = Input() {name = "b"} : f32[5, 2]
  %5 = Exp(%4) : f32[5, 2]
  %6 = Input() {name = "c"} : f32[5, 3]
  %7 = Concat(%3, %5, %6) {axis = 1} : f32[5, 9]
  %8 = Add(%2, %7) : f32[5, 9]
  return %8
})",
             {});
}

// Weights of f32 are not rounded to halves, whatever the target multiplies.
TEST(Region, FloatWeightsStayFloats) {
  family::TargetFacts facts;
  facts.blocks.emplace();
  for (const std::string weight : {"f32", "f16"}) {
    const StatusOr<ir::Graph> graph = ir::Parse(GateUp(weight, "f32", "S"));
    const StatusOr<family::LoweredRegion> lowered =
        LowerRegion(family::MemoryOf(*graph), graph->node(3), graph->symbols, facts);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(absl::StrContains(kir::Print(lowered->kernels[0].kernel), "mma_f16"), weight == "f16");
  }
}

// Two products of computed activations, with results of their own, in one kernel: the activations are computed once.
TEST(Region, ProductsOfComputedRows) {
  for (const std::string rows : {"1", "3", "S"}) {
    const std::string symbols = rows == "S" ? " sym S in 9..256" : "", x = "f32[" + rows + ", 96]",
                      y = "f32[" + rows + ", 64]", z = "f32[" + rows + ", 32]";
    CheckRegion("graph g" + symbols + " {\n  %0 = Input() {name = \"x\"} : " + x +
                    "\n  %1 = Param() {name = \"v\"} : f16[64, 96]\n  %2 = Param() {name = \"w\"} : f16[32, 96]\n" +
                    "  %3:2 = Region(%0, %1, %2) {family = \"matmul\"} : " + y + ", " + z + " body graph body" +
                    symbols + " {\n    %0 = Input() {name = \"x\"} : " + x +
                    "\n    %1 = Input() {name = \"v\"} : f16[64, 96]\n    %2 = Input() {name = \"w\"} : f16[32, 96]\n  "
                    "  %3 = Silu(%0) : " +
                    x + "\n    %4 = MatMul(%3, %1) {transpose_b = true} : " + y +
                    "\n    %5 = MatMul(%3, %2) {transpose_b = true} : " + z + "\n    %6 = Relu(%5) : " + z +
                    "\n    return %4, %6\n  }\n  return %3.0, %3.1\n}",
                {{"S", 11}});
  }
}

// The rows that the next product reads, quantised where they were made: gathered in scratch, then packed.
TEST(Region, GateUpQuantised) {
  for (const std::string format : {"q8_0", "q8_K"}) {
    for (const std::string weight : {"f16", "q4_K"}) {
      for (const std::string rows : {"1", "5", "S"}) {
        SCOPED_TRACE(weight + " to " + format + " rows " + rows);
        CheckRegion(GateUp(weight, weight == "f16" ? "f32" : "q8_K", rows, format), {{"S", 11}}, 1e-2);
      }
    }
  }
}

TEST(Region, QkvWithRotationAndCache) {
  for (const std::string rows : {"1", "S"}) {
    const std::string symbols = rows == "S" ? " sym P in 0..53, S in 9..256" : " sym P in 0..53";
    const std::string r = rows;
    CheckRegion("graph g" + symbols + R"( {
  %0 = Input() {name = "x"} : f32[1, )" +
                    r + R"(, 64]
  %1 = Param() {name = "q"} : f32[64, 64]
  %2 = Param() {name = "k"} : f32[32, 64]
  %3 = Param() {name = "v"} : f32[32, 64]
  %4 = Input() {name = "cos"} : f32[)" +
                    r + R"(, 4]
  %5 = Input() {name = "sin"} : f32[)" +
                    r + R"(, 4]
  %6 = Input() {name = "kc"} : f16[309, 4, 8]
  %7 = Input() {name = "vc"} : f16[309, 4, 8]
  %8:3 = Region(%0, %1, %2, %3, %4, %5, %6, %7) {family = "matmul"} : f32[1, )" +
                    r + R"(, 64], f16[309, 4, 8], f16[309, 4, 8] body graph body)" + symbols + R"( {
    %0 = Input() {name = "x"} : f32[1, )" +
                    r + R"(, 64]
    %1 = Input() {name = "q"} : f32[64, 64]
    %2 = Input() {name = "k"} : f32[32, 64]
    %3 = Input() {name = "v"} : f32[32, 64]
    %4 = Input() {name = "cos"} : f32[)" +
                    r + R"(, 4]
    %5 = Input() {name = "sin"} : f32[)" +
                    r + R"(, 4]
    %6 = Input() {name = "kc"} : f16[309, 4, 8]
    %7 = Input() {name = "vc"} : f16[309, 4, 8]
    %8 = MatMul(%0, %1) {transpose_b = true} : f32[1, )" +
                    r + R"(, 64]
    %9 = Rope(%8, %4, %5) {head_dim = 8, n_rot = 8, packed = true, style = "gptj"} : f32[1, )" +
                    r + R"(, 64]
    %10 = MatMul(%0, %2) {transpose_b = true} : f32[1, )" +
                    r + R"(, 32]
    %11 = Rope(%10, %4, %5) {head_dim = 8, n_rot = 8, packed = true, style = "gptj"} : f32[1, )" +
                    r + R"(, 32]
    %12 = Cast(%11) {to = f16} : f16[1, )" +
                    r + R"(, 32]
    %13 = Reshape(%12) {shape = <)" +
                    r + R"(, 4, 8>} : f16[)" + r + R"(, 4, 8]
    %14 = Update(%6, %13) {axis = 0, start = <P>} : f16[309, 4, 8]
    %15 = MatMul(%0, %3) {transpose_b = true} : f32[1, )" +
                    r + R"(, 32]
    %16 = Cast(%15) {to = f16} : f16[1, )" +
                    r + R"(, 32]
    %17 = Reshape(%16) {shape = <)" +
                    r + R"(, 4, 8>} : f16[)" + r + R"(, 4, 8]
    %18 = Update(%7, %17) {axis = 0, start = <P>} : f16[309, 4, 8]
    return %9, %14, %18
  }
  return %8.0, %8.1, %8.2
  donate "kc" -> 1
  donate "vc" -> 2
})",
                {{"S", 13}, {"P", 17}}, 1e-3);
  }
}

TEST(Region, AttentionOfFewAndManyRows) {
  for (const std::string mask : {"none", "causal", "sliding"}) {
    for (const std::string rows : {"1", "3", "S"}) {
      SCOPED_TRACE(mask + " rows " + rows);
      const std::string symbols = rows == "S" ? " sym B in 1..3, P in 0..2000, S in 9..256" : " sym P in 0..2000";
      const std::string batch = rows == "S" ? "B" : "2";
      const std::string keys = rows == "S" ? "P + S" : "P + " + rows;
      const std::string attention = "{head_dim = 12, heads = 6, kv_heads = 2, layout = \"packed\", mask = \"" + mask +
                                    "\", scale = 0.0, softcap = 5.0, window = 9}";
      const std::string text = "graph g" + symbols + " {\n  %0 = Input() {name = \"q\"} : f32[" + batch + ", " + rows +
                               ", 72]\n  %1 = Input() {name = \"k\"} : f16[" + batch + ", " + keys +
                               ", 24]\n  %2 = Input() {name = \"v\"} : f16[" + batch + ", " + keys +
                               ", 24]\n  %3 = Region(%0, %1, %2) {family = \"attention\"} : f32[" + batch + ", " +
                               rows + ", 72] body graph body" + symbols + " {\n    %0 = Input() {name = \"q\"} : f32[" +
                               batch + ", " + rows + ", 72]\n    %1 = Input() {name = \"k\"} : f16[" + batch + ", " +
                               keys + ", 24]\n    %2 = Input() {name = \"v\"} : f16[" + batch + ", " + keys +
                               ", 24]\n    %3 = Attention(%0, %1, %2) " + attention + " : f32[" + batch + ", " + rows +
                               ", 72]\n    return %3\n  }\n  return %3\n}";
      CheckRegion(text, {{"B", 2}, {"S", 35}, {"P", 700}}, 1e-4, kCpu);
      CheckRegion(text, {{"B", 2}, {"S", 11}, {"P", 131}}, 1e-4, kBlocks);  // no halves are multiplied
      family::TargetFacts little;                                           // shared memory for 8 rows of a prompt
      little.blocks.emplace();
      little.blocks->shared_bytes = 9000;
      if (rows == "S") CheckRegionAs(little, text, {{"B", 2}, {"S", 11}, {"P", 67}}, 1e-4, false);
    }
  }
}

// Many rows times one column: a classifier's head.
TEST(Region, ProductsOfOneColumn) {
  for (const char* weights : {"f32", "f16", "q4_K"}) {
    SCOPED_TRACE(weights);
    CheckFused(
        absl::StrCat("graph g sym S in 9..32 {\n  %0 = Input() {name = \"x\"} : f32[S, 256]\n"
                     "  %1 = Param() {name = \"w\"} : ",
                     weights, "[1, 256]\n  %2 = MatMul(%0, %1) {transpose_b = true} : f32[S, 1]\n  return %2\n}"),
        {{"S", 17}}, 1e-3);
  }
}

}  // namespace
}  // namespace quern::codegen
