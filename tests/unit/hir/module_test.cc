// The module itself: printing, named sub-blocks, wrapping a graph, and every error with its exact text.

#include "hir/module.h"

#include <gmock/gmock.h>

#include "base/diagnostic.h"
#include "hir/extensions.h"
#include "random_module.h"

namespace quern::hir {
namespace {

TEST(Module, Prints) {
  Module m;
  m.symbols = {{"SEQ", {1, 256}}};
  Builder b(m);
  const Value x = b.Input("x", F32({Extent::Symbol("SEQ"), 64}));
  ASSERT_TRUE(m.Named("layers.0", [&] {
                 const Value gamma = b.Param("g", F32({64}));
                 const std::vector<Value> pair = b.Results("ResidualRmsNorm", {x, x, gamma});
                 m.outputs = {b.Silu(pair[1])};
                 return b.status();
               }).ok());
  EXPECT_EQ(Print(m), R"(module module sym SEQ in 1..256 fusion direct {
  %0 = Input() {name = "x"} : f32[SEQ, 64]  @"x"
  %1 = Param() {name = "g"} : f32[64]  @"layers.0/g"
  %2:2 = ResidualRmsNorm(%0, %0, %1) {eps = 1e-05} : f32[SEQ, 64], f32[SEQ, 64]  @"layers.0/residual_rms_norm"
  %3 = Mir.Silu(%2.1) : f32[SEQ, 64]  @"layers.0/%3"
  return %3
}
)");
}

TEST(Module, AnAbsentOperandPrintsAsADash) {
  Module m;
  Builder b(m);
  AttentionOptions o;
  o.head_dim = 5;
  const Value q = b.Input("q", F32({2, 3, 5}));
  b.Block("LlamaDecoderBlock",
          {q,
           b.Param("a", F32({5})),
           {},
           b.Param("q_w", F32({5, 2})),
           b.Param("k_w", F32({5, 2})),
           b.Param("v_w", F32({5, 2})),
           b.Param("o_w", F32({2, 5})),
           b.Param("b", F32({5})),
           {},
           b.Param("g", F32({5, 3})),
           b.Param("u", F32({5, 3})),
           b.Param("d", F32({3, 5})),
           b.Param("c", F32({3, 1})),
           b.Param("s", F32({3, 1}))},
          {{"heads", int64_t{1}}, {"head_dim", int64_t{2}}});
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_THAT(Print(m),
              ::testing::HasSubstr("LlamaDecoderBlock(%0, %1, -, %2, %3, %4, %5, %6, -, %7, %8, %9, %10, %11) {"));
}

TEST(Module, AWrappedGraphComesBackEqual) {
  Module m;
  m.symbols = {{"SEQ", {1, 256}}};
  Builder b(m);
  const Value x = b.Input("x", F32({Extent::Symbol("SEQ"), 6}));
  const Value y =
      b.Linear(x, b.Param("w", F32({6, 5})),
               {.act = "Silu", .bias = b.Param("b", F32({5})), .weight_layout = "kn", .label = "layers.0/up"});
  m.outputs = {b.Results("ResidualRmsNorm", {y, y, b.Param("g", F32({5}))})[1], b.Mul(y, b.Scalar(3))};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const auto once = Lower(m);
  ASSERT_TRUE(once.ok()) << once.status();
  const auto wrapped = WrapGraph(*once);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  const auto twice = Lower(*wrapped);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_TRUE(ir::SameGraph(*once, *twice)) << ir::Print(*twice);
  EXPECT_EQ(twice->origins()[twice->node(3).origin].label, "layers.0/up");
}

TEST(Module, LowerForAutodiffIsFusable) {
  Module m;
  Builder b(m);
  m.outputs = {b.RmsNorm(b.Input("x", F32({3, 5})), b.Param("g", F32({5})))};
  const auto graph = LowerForAutodiff(m);
  ASSERT_TRUE(graph.ok());
  for (const ir::Node& node : graph->nodes()) EXPECT_NE(node.op->kind, ir::OpKind::kComposite);
}

TEST(Module, SymbolicLeadingAxes) {
  Module m;
  Builder b(m);
  const Value x = b.InputBatchSeq("x", DType::kF32, {7});
  m.outputs = {b.Linear(x, b.Param("w", F32({7, 5})), {.act = "Tanh", .bias = {}, .weight_layout = "kn", .label = ""})};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m, {{"BATCH", 2}, {"SEQ", 3}});
  EXPECT_EQ(out[0].dims, (std::vector<int64_t>{2, 3, 5}));
}

TEST(Extensions, AppendOrdinaryNodes) {
  Extensions extensions;
  auto twice = [](Module& m, std::span<const Value> in, const Attributes& attributes) {
    return m.AddMir(attributes.String("op"), {in[0], in[0]});
  };
  ASSERT_TRUE(extensions.Register("Twice", twice).ok());
  EXPECT_EQ(extensions.Register("Twice", twice).message(), "Extensions: the name Twice is taken");
  EXPECT_EQ(extensions.Register("Linear", twice).message(), "Extensions: the name Linear is taken");
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 5}));
  const auto y = extensions.Append(m, "Twice", {x}, {{"op", std::string("Mul")}});
  ASSERT_TRUE(y.ok()) << y.status();
  m.outputs = *y;
  EXPECT_EQ(m.nodes().back().label, "Twice/%1");
  EXPECT_THAT(LoweredOps(m), ::testing::ElementsAre("Mul"));
  EXPECT_EQ(extensions.Append(m, "Thrice", {x}).status().message(), "there is no block or op Thrice");
  EXPECT_EQ(extensions.Append(m, "Twice", {Value{9, 0}}, {{"op", std::string("Mul")}}, "here").status().message(),
            "Mul: a refers to no value (%9.0) (in here/%2)");
}

TEST(Extensions, OneThatFailsLeavesNothing) {
  Extensions extensions;
  auto half = [](Module& m, std::span<const Value> in, const Attributes&) -> StatusOr<std::vector<Value>> {
    m.symbols["LEFT"] = {1, 2};
    QUERN_ASSIGN(const std::vector<Value> one, m.AddMir("Exp", {in[0]}));
    m.outputs.push_back(one[0]);
    m.donations.push_back({0, "x"});
    return m.AddMir("Reshape", one, {{"shape", std::vector<Extent>{7}}});
  };
  ASSERT_TRUE(extensions.Register("Half", half).ok());
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 5}));
  EXPECT_FALSE(extensions.Append(m, "Half", {x}).ok());
  EXPECT_EQ(m.nodes().size(), 1u);
  EXPECT_TRUE(m.symbols.empty() && m.outputs.empty() && m.donations.empty());
  const auto y = m.AddMir("Exp", {x});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(m.nodes().back().label, "%1");
}

class Errors : public ::testing::Test {
 protected:
  Errors() { m.symbols = {{"SEQ", {1, 256}}, {"PAST_SEQ", {0, 9}}}; }
  std::string Message() const { return std::string(b.status().message()); }
  Value In(const char* name, std::vector<Extent> dims, DType dtype = DType::kF32) {
    return b.Input(name, {dtype, std::move(dims)});
  }

  Module m;
  Builder b{m};
};

TEST_F(Errors, UnknownBlock) {
  b.Block("Lineer", {});
  EXPECT_EQ(Message(), "there is no block or op Lineer; did you mean Linear? (in %0)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kUnknownOp);
}

TEST_F(Errors, UnknownOp) {
  b.Mir("Silo", {});
  EXPECT_EQ(Message(), "there is no block or op Silo; did you mean Silu? (in %0)");
}

TEST_F(Errors, UnknownOperand) {
  b.Block("Linear", {In("x", {3, 5}), Value{7, 0}});
  EXPECT_EQ(Message(), "Linear: w refers to no value (%7.0) (in linear)");
  EXPECT_EQ(DiagnosticOf(b.status())->operand, "w");
}

TEST_F(Errors, UnknownResult) {
  const Value x = In("x", {3, 5});
  b.Block("RmsNorm", {x, Value{x.node, 1}});
  EXPECT_EQ(Message(), "RmsNorm: gamma refers to no value (%0.1) (in rms_norm)");
}

TEST_F(Errors, AbsentOperand) {
  b.Block("RmsNorm", {Value{}, In("g", {5})});
  EXPECT_EQ(Message(), "RmsNorm: x refers to no value (absent) (in rms_norm)");
}

TEST_F(Errors, UnknownOutput) {
  In("x", {3});
  m.outputs = {{1, 0}};
  EXPECT_EQ(Lower(m).status().message(), "module: output refers to no value (%1.0)");
}

TEST_F(Errors, InputCount) {
  b.Block("SwiGLU", {In("x", {3, 5})});
  EXPECT_EQ(Message(), "SwiGLU takes 4 inputs, got 1 (in swiglu_ffn)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kInputCount);
}

TEST_F(Errors, InputCountOfARange) {
  b.Block("RmsNorm", {In("x", {3, 5})});
  EXPECT_EQ(Message(), "RmsNorm takes 2 to 3 inputs, got 1 (in rms_norm)");
}

TEST_F(Errors, MissingBias) {
  b.Block("Linear", {In("x", {3, 5}), In("w", {5, 7})}, {{"bias", true}}, "head");
  EXPECT_EQ(Message(), "Linear: the bias b is missing (in head)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kMissingBias);
}

TEST_F(Errors, ABiasThatIsNotAskedFor) {
  b.Block("Linear", {In("x", {3, 5}), In("w", {5, 7}), In("b", {7})});
  EXPECT_EQ(Message(), "Linear takes 2 inputs, got 3 (in linear)");
}

TEST_F(Errors, ShapeMismatchNamesEverything) {
  const Status status = m.Named("layers.3", [&] {
    b.SwiGLU(In("x", {3, 5}), In("up", {5, 7}), In("gate", {5, 11}), In("down", {7, 5}));
    return b.status();
  });
  EXPECT_EQ(status.message(), "SwiGLU: gate is f32[5, 11], [5, 7] expected (in layers.3/swiglu_ffn)");
  const Diagnostic want{DiagnosticCode::kShapeMismatch, "SwiGLU", "gate", "[5, 7]", "f32[5, 11]",
                        "layers.3/swiglu_ffn"};
  EXPECT_EQ(DiagnosticOf(status), want);
}

TEST_F(Errors, ShapesOfTheDecoder) {
  b.Block("LlamaDecoderBlock",
          {In("x", {3, 5}),
           In("n", {5}),
           {},
           In("q", {5, 2}),
           In("k", {5, 2}),
           In("v", {5, 3}),
           In("o", {2, 5}),
           In("n2", {5}),
           {},
           In("g", {5, 3}),
           In("u", {5, 3}),
           In("d", {3, 5}),
           In("c", {3, 1}),
           In("s", {3, 1})},
          {{"heads", int64_t{1}}, {"head_dim", int64_t{2}}}, "layers.7");
  EXPECT_EQ(Message(), "LlamaDecoderBlock: v_w is f32[5, 3], [5, 2] expected (in layers.7)");
}

// Found only when the block's parts are lowered: the label leads to the part.
TEST_F(Errors, ShapesInsideTheDecoder) {
  b.Block("LlamaDecoderBlock",
          {In("x", {3, 5}),
           In("n", {5}),
           {},
           In("q", {5, 2}),
           In("k", {5, 2}),
           In("v", {5, 2}),
           In("o", {2, 5}),
           In("n2", {5}),
           {},
           In("g", {5, 3}),
           In("u", {5, 3}),
           In("d", {3, 5}),
           In("c", {4, 1}),
           In("s", {3, 1})},
          {{"heads", int64_t{1}}, {"head_dim", int64_t{2}}}, "layers.7");
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(Lower(m).status().message(), "RoPE: cos is f32[4, 1], [3, 1] expected (in layers.7/attention/q_rope)");
}

TEST_F(Errors, ACacheForABatch) {
  std::vector<Value> in = {
      In("x", {2, 3, 5}), In("n", {5}),    {}, In("q", {5, 2}),     In("k", {5, 2}),    In("v", {5, 2}),
      In("o", {2, 5}),    In("n2", {5}),   {}, In("g", {5, 3}),     In("u", {5, 3}),    In("d", {3, 5}),
      In("c", {3, 1}),    In("s", {3, 1}), {}, In("kc", {9, 1, 2}), In("vc", {9, 1, 2})};
  b.Block("LlamaDecoderBlock", in, {{"heads", int64_t{1}}, {"head_dim", int64_t{2}}});
  EXPECT_EQ(
      Message(),
      "LlamaDecoderBlock: x is f32[2, 3, 5], one sequence, for there is one cache expected (in llama_decoder_block)");
}

TEST_F(Errors, OneCacheOfTwo) {
  for (const bool keys : {true, false}) {
    Module one;
    one.symbols = m.symbols;
    Builder builder(one);
    const auto in = [&](const char* name, std::vector<Extent> dims) {
      return builder.Input(name, {DType::kF32, std::move(dims)});
    };
    std::vector<Value> operands = {
        in("x", {3, 5}), in("n", {5}),   {}, in("q", {5, 2}), in("k", {5, 2}), in("v", {5, 2}),
        in("o", {2, 5}), in("n2", {5}),  {}, in("g", {5, 3}), in("u", {5, 3}), in("d", {3, 5}),
        in("c", {3, 1}), in("s", {3, 1})};
    operands.resize(17);
    operands[keys ? 15 : 16] = in("cache", {9, 1, 2});
    builder.Block("LlamaDecoderBlock", operands, {{"heads", int64_t{1}}, {"head_dim", int64_t{2}}});
    EXPECT_EQ(std::string(builder.status().message()),
              "LlamaDecoderBlock takes both caches or none among its inputs, got one (in llama_decoder_block)")
        << keys;
  }
}

TEST_F(Errors, RankTooSmall) {
  b.Linear(In("x", {5}), In("w", {5, 7}));
  EXPECT_EQ(Message(), "Linear: x is f32[5], rank 2 or more expected (in linear)");
}

TEST_F(Errors, DTypeMismatch) {
  b.RmsNorm(In("x", {3, 5}), In("g", {5}, DType::kF16));
  EXPECT_EQ(Message(), "RmsNorm: gamma is f16, f32 expected (in rms_norm)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kDTypeMismatch);
}

TEST_F(Errors, DTypeOfTheWrongKind) {
  b.RmsNorm(In("x", {3, 5}, DType::kI32), In("g", {5}));
  EXPECT_EQ(Message(), "RmsNorm: x is i32, a float expected (in rms_norm)");
}

TEST_F(Errors, BlockFormatNeedsRows) {
  b.Linear(In("x", {3, 64}), b.Param("w", {DType::kQ8_0, {32, 64}}));
  EXPECT_EQ(Message(), "Linear: the attribute weight_layout is \"kn\", \"nk\" for a block format expected (in linear)");
}

TEST_F(Errors, PartOfABlock) {
  b.Param("w", {DType::kQ8_0, {32, 65}});
  EXPECT_EQ(Message(), "Param: w is q8_0[32, 65], rows of whole blocks of 32 expected (in w)");
}

TEST_F(Errors, BadAttribute) {
  b.Block("Attention", {In("q", {2, 3, 12}), In("k", {2, 3, 12}), In("v", {2, 3, 12})},
          {{"heads", int64_t{3}}, {"kv_heads", int64_t{2}}, {"head_dim", int64_t{4}}});
  EXPECT_EQ(Message(), "Attention: the attribute kv_heads is 2, a divisor of 3 expected (in attention)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kBadAttribute);
}

TEST_F(Errors, AttributeOfTheWrongKind) {
  b.Block("RmsNorm", {In("x", {3, 5}), In("g", {5})}, {{"eps", int64_t{1}}});
  EXPECT_EQ(Message(), "RmsNorm: the attribute eps is 1, a float expected (in rms_norm)");
}

TEST_F(Errors, AttributeOutsideItsChoices) {
  b.Block("RoPE", {In("x", {3, 8}), In("c", {3, 2}), In("s", {3, 2})},
          {{"head_dim", int64_t{4}}, {"style", std::string("llama")}});
  EXPECT_EQ(Message(), "RoPE: the attribute style is \"llama\", one of gptj, neox expected (in rope)");
}

TEST_F(Errors, AttributeMissing) {
  b.Block("RoPE", {In("x", {3, 8}), In("c", {3, 2}), In("s", {3, 2})});
  EXPECT_EQ(Message(), "RoPE: the attribute head_dim is absent, an int expected (in rope)");
}

TEST_F(Errors, AttributeUnknown) {
  b.Block("RmsNorm", {In("x", {3, 5}), In("g", {5})}, {{"epsilon", 1e-5}});
  EXPECT_EQ(Message(), "RmsNorm: the attribute epsilon is unknown, one of eps expected (in rms_norm)");
}

TEST_F(Errors, OddRotation) {
  b.Block("RoPE", {In("x", {3, 8}), In("c", {3, 2}), In("s", {3, 2})},
          {{"head_dim", int64_t{4}}, {"n_rot", int64_t{3}}});
  EXPECT_EQ(Message(), "RoPE: the attribute n_rot is 3, even and at most 4 expected (in rope)");
}

TEST_F(Errors, NoActivation) {
  b.Linear(In("x", {3, 5}), In("w", {5, 7}), {.act = "Add", .bias = {}, .weight_layout = "kn", .label = ""});
  EXPECT_EQ(Message(), "Linear: the attribute act is \"Add\", an elementwise op of one operand expected (in linear)");
}

TEST_F(Errors, MaskWithoutItsOperand) {
  AttentionOptions o;
  o.head_dim = 5;
  o.mask = "custom";
  b.Attention(In("q", {2, 3, 5}), In("k", {2, 3, 5}), In("v", {2, 3, 5}), o);
  EXPECT_EQ(Message(), "Attention takes 4 inputs, got 3 (in attention)");
}

// Their types are given by functions of their own; by name there is none.
TEST_F(Errors, LeavesByName) {
  for (const char* block : {"Input", "Param", "Constant", "Mir"}) {
    const Status status = m.Add(block, {}, {{"name", std::string("w")}}).status();
    ASSERT_TRUE(DiagnosticOf(status).has_value()) << block;
    EXPECT_EQ(DiagnosticOf(status)->code, DiagnosticCode::kUnsupported) << block;
    EXPECT_EQ(DiagnosticOf(status)->op, block);
    EXPECT_FALSE(m.Add(block, {}).ok());
  }
  EXPECT_TRUE(m.nodes().empty());
}

TEST_F(Errors, OpsAndBlocksAreNotTheSame) {
  EXPECT_EQ(m.Add("Softmax", {}).status().message(),
            "there is no block or op Softmax; did you mean the op Softmax? (in %0)");
  EXPECT_EQ(m.AddMir("SwiGLU", {}).status().message(),
            "there is no block or op SwiGLU; did you mean the block SwiGLU? (in %0)");
}

TEST_F(Errors, AnInputAndAParamOfOneName) {
  In("x", {3});
  b.Param("x", {DType::kF32, {3}});
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kDuplicateName);
}

TEST_F(Errors, AttentionOfAnotherRank) {
  AttentionOptions o;
  o.heads = 2;
  o.head_dim = 32;
  b.Attention(In("q", {3, 64}), In("k", {3, 64}), In("v", {3, 64}), o);
  EXPECT_EQ(Message(), "Attention: q is f32[3, 64], [B, S, 64] expected (in attention)");
}

TEST_F(Errors, AttentionThatHasNoKernel) {
  AttentionOptions o;
  o.head_dim = 8;
  const auto in = [&](const char* name, bool wide) { return In(name, {1, 3, 8}, wide ? DType::kF64 : DType::kBF16); };
  for (int operand = 0; operand < 3; ++operand) {
    Module one;
    Builder build(one);
    std::vector<Value> qkv;
    for (int i = 0; i < 3; ++i)
      qkv.push_back(build.Input(std::string(1, "qkv"[i]), {i == operand ? DType::kF64 : DType::kBF16, {1, 3, 8}}));
    build.Attention(qkv[0], qkv[1], qkv[2], o);
    EXPECT_EQ(DiagnosticOf(build.status())->code, DiagnosticCode::kUnsupported);
    // Beside q of f64, which all may be, k is the first that is not.
    EXPECT_EQ(DiagnosticOf(build.status())->operand, std::string(1, "kkv"[operand]));
  }
  b.Attention(in("q", false), in("k", true), in("v", false), o);
  EXPECT_EQ(Message(), "Attention: k is f64[1, 3, 8], which is not supported: f32, f16 or bf16 is (in attention)");
}

TEST_F(Errors, WeightsThatDoNotGoWithTheActivations) {
  for (const auto& [x, w] : {std::pair{DType::kF32, DType::kF64}, {DType::kF16, DType::kF32}}) {
    for (const char* block : {"Linear", "SharedLinearPair", "SwiGLU"}) {
      Module one;
      Builder build(one);
      const std::string_view name = block;
      std::vector<Value> in = {build.Input("x", {x, {3, 8}}), build.Param("w", {w, {8, 8}})};
      if (name != "Linear") in.push_back(build.Param("v", {w, {8, 8}}));
      if (name == "SwiGLU") in.push_back(build.Param("u", {w, {8, 8}}));
      build.Block(block, in);
      ASSERT_TRUE(DiagnosticOf(build.status()).has_value()) << block << build.status();
      EXPECT_EQ(DiagnosticOf(build.status())->code, DiagnosticCode::kDTypeMismatch) << block;
      EXPECT_EQ(DiagnosticOf(build.status())->op, block);
    }
  }
}

TEST_F(Errors, DuplicateName) {
  In("x", {3});
  In("x", {3});
  EXPECT_EQ(Message(), "Input: the name x is taken (in x)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kDuplicateName);
}

TEST_F(Errors, UnboundSymbol) {
  In("x", {Extent::Symbol("ROWS"), 3});
  EXPECT_EQ(Message(), "Input: the symbol ROWS is not declared (in x)");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kUnboundSymbol);
}

TEST_F(Errors, SymbolicParam) {
  b.Param("w", F32({Extent::Symbol("SEQ"), 3}));
  EXPECT_EQ(Message(), "Param: w is f32[SEQ, 3], constant extents expected (in w)");
}

TEST_F(Errors, Unsupported) {
  b.Block("DequantMatMul", {In("x", {3, 64}), b.Param("w", {DType::kQ8_0, {32, 64}})},
          {{"scheme", std::string("Nvfp4Block")}});
  EXPECT_EQ(Message(), "DequantMatMul: the scheme Nvfp4Block is not supported (in dequant_matmul(Nvfp4Block))");
  EXPECT_EQ(DiagnosticOf(b.status())->code, DiagnosticCode::kUnsupported);
}

TEST_F(Errors, ConstantOfTheWrongSize) {
  EXPECT_EQ(m.AddConstant(F32({3}), std::vector<uint8_t>(11)).status().message(),
            "Constant: data of f32[3] is 11 bytes, 12 bytes expected (in constant)");
}

TEST_F(Errors, TheFirstErrorStays) {
  const Value bad = b.RmsNorm(In("x", {3, 5}), In("g", {7}));
  b.Silu(b.Linear(bad, bad));
  EXPECT_EQ(Message(), "RmsNorm: gamma is f32[7], [5] expected (in rms_norm)");
  EXPECT_EQ(m.nodes().size(), 2u) << "the module holds only what was right";
}

}  // namespace
}  // namespace quern::hir
