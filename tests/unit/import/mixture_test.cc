// Which format a tensor gets: layers that count, kinds that are kept, formats that rows do not fit. ctest `quantise`
// holds whole files to llama.cpp's.
#include "import/mixture.h"

#include <gtest/gtest.h>

#include <map>

#include "import/gguf.h"
#include "import/gguf_writer.h"

namespace quern {
namespace {

// Formats by tensor of a model of so many layers with rows of `width`.
std::map<std::string, Quantised> Formats(const std::string& type, int layers, int64_t width, int experts = 0,
                                         const std::string& architecture = "llama", int kv_heads = 8,
                                         bool guided = false) {
  Metadata metadata;
  metadata.PutText("general.architecture", architecture);
  metadata.PutInt(architecture + ".block_count", layers);
  metadata.PutInt(architecture + ".expert_count", experts);
  metadata.PutInt(architecture + ".attention.head_count", 8);
  metadata.PutInt(architecture + ".attention.head_count_kv", kv_heads);
  std::vector<GgufTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> dims) {
    uint64_t bytes = 2;
    for (const int64_t dim : dims) bytes *= static_cast<uint64_t>(dim);
    tensors.push_back({name, std::move(dims), 1, bytes});
  };
  add("token_embd.weight", {3, width});
  add("output.weight", {3, width});
  add("output_norm.weight", {width});
  for (int l = layers - 1; l >= 0; --l) {  // the order of the file says nothing
    const std::string block = "blk." + std::to_string(l) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_down", "ffn_gate_inp"})
      add(block + name + ".weight", {2, width});
    add(block + "attn_q.bias", {width});
  }
  std::string bytes = GgufHeader(metadata, tensors);
  for (const GgufTensor& tensor : tensors)
    bytes += std::string(tensor.bytes, '\0') + GgufPadding(metadata, tensor.bytes);
  const std::vector<uint8_t> data(bytes.begin(), bytes.end());
  const StatusOr<GgufFile> file = GgufFile::Parse(data);
  EXPECT_TRUE(file.ok()) << file.status();
  const std::vector<Quantised> formats = FormatsOf(**FindMixture(type), *file, false, guided);
  std::map<std::string, Quantised> named;
  for (size_t t = 0; t < formats.size(); ++t) named[file->tensors()[t].name] = formats[t];
  return named;
}

TEST(Mixtures, SomeLayersHaveMoreBits) {
  auto formats = Formats("q4_k_m", 16, 256);
  std::string down, values;
  for (int l = 0; l < 16; ++l) {
    const std::string block = "blk." + std::to_string(l);
    down += formats[block + ".ffn_down.weight"].dtype == DType::kQ6_K ? '6' : '4';
    values += formats[block + ".attn_v.weight"].dtype == DType::kQ6_K ? '6' : '4';
    EXPECT_EQ(formats[block + ".attn_q.weight"].dtype, DType::kQ4_K);
    EXPECT_TRUE(formats[block + ".ffn_gate_inp.weight"].kept);
    EXPECT_TRUE(formats[block + ".attn_q.bias"].kept);
  }
  // The first and last eighth, and of those between every third.
  EXPECT_EQ(down, "6644644644644666");
  EXPECT_EQ(values, down);
  EXPECT_EQ(formats["output.weight"].dtype, DType::kQ6_K);
  EXPECT_EQ(formats["token_embd.weight"].dtype, DType::kQ4_K);
  EXPECT_TRUE(formats["output_norm.weight"].kept);
}

TEST(Mixtures, RowsThatDoNotFitFallBack) {
  auto formats = Formats("Q4_K", 1, 96);
  EXPECT_EQ(formats["blk.0.attn_q.weight"].dtype, DType::kQ5_0);
  EXPECT_TRUE(formats["blk.0.attn_q.weight"].fell_back);
  EXPECT_EQ(formats["output.weight"].dtype, DType::kQ8_0);
  EXPECT_EQ(Formats("Q5_K_S", 1, 96)["blk.0.attn_q.weight"].dtype, DType::kQ5_1);
  EXPECT_EQ(Formats("Q6_K", 1, 96)["blk.0.attn_q.weight"].dtype, DType::kQ8_0);
  EXPECT_EQ(Formats("Q2_K", 1, 96)["blk.0.attn_q.weight"].dtype, DType::kQ4_0);
  EXPECT_EQ(Formats("IQ4_XS", 1, 96)["blk.0.attn_q.weight"].dtype, DType::kIQ4_NL);
  EXPECT_EQ(Formats("Q4_0", 1, 40)["blk.0.attn_q.weight"].dtype, DType::kF16);
}

TEST(Mixtures, ModelsOfTheirOwnKind) {
  EXPECT_EQ(Formats("Q4_K_M", 2, 256, 8)["blk.1.attn_v.weight"].dtype, DType::kQ8_0);
  EXPECT_EQ(Formats("Q4_K_M", 2, 256, 8)["blk.1.attn_output.weight"].dtype, DType::kQ5_K);
  EXPECT_EQ(Formats("Q2_K", 2, 256, 0, "llama", 2)["blk.1.attn_v.weight"].dtype, DType::kQ4_K);
  EXPECT_EQ(Formats("Q2_K", 2, 256)["blk.1.attn_v.weight"].dtype, DType::kQ3_K);
  EXPECT_EQ(Formats("Q4_K_M", 2, 256, 0, "falcon")["output.weight"].dtype, DType::kQ8_0);
  EXPECT_EQ(Formats("Q3_K_L", 2, 256, 0, "falcon")["blk.0.attn_output.weight"].dtype, DType::kQ4_K);
  EXPECT_EQ(Formats("TQ2_0", 2, 256)["token_embd.weight"].dtype, DType::kQ4_K);
  EXPECT_EQ(Formats("F16", 2, 256)["token_embd.weight"].dtype, DType::kF16);
}

// Formats of ffn_down by layer.
std::string Down(const std::string& type, bool guided, const std::string& architecture = "llama") {
  auto formats = Formats(type, 16, 256, 0, architecture, 8, guided);
  std::string down;
  for (int l = 0; l < 16; ++l)
    down += std::string(Name(formats["blk." + std::to_string(l) + ".ffn_down.weight"].dtype)) + (l < 15 ? " " : "");
  return down;
}

// The first eighth of layers.
TEST(Mixtures, ByAnImportance) {
  const auto layers = [](const std::string& first, const std::string& others) {
    std::string all = first + " " + first;
    for (int l = 2; l < 16; ++l) all += " " + others;
    return all;
  };
  EXPECT_EQ(Down("Q4_0", false), layers("q4_0", "q4_0"));
  EXPECT_EQ(Down("Q4_0", true), layers("q4_1", "q4_0"));
  EXPECT_EQ(Down("Q5_0", true), layers("q5_1", "q5_0"));
  EXPECT_EQ(Down("IQ4_XS", false), layers("q5_K", "iq4_xs"));
  EXPECT_EQ(Down("IQ4_XS", true), layers("iq4_xs", "iq4_xs"));
  EXPECT_EQ(Down("IQ4_NL", false, "falcon"), layers("q5_K", "iq4_nl"));
  EXPECT_EQ(Down("IQ4_NL", true, "falcon"), layers("iq4_nl", "iq4_nl"));
  EXPECT_EQ(Down("Q2_K_S", true), layers("q4_K", "q2_K"));
  EXPECT_EQ(Down("Q4_K_S", true), Down("Q4_K_S", false));
}

TEST(Mixtures, SomeNeedAnImportance) {
  auto formats = Formats("Q2_K_S", 8, 256);
  EXPECT_TRUE(formats["blk.1.attn_q.weight"].needs_importance);
  EXPECT_FALSE(formats["blk.0.ffn_down.weight"].needs_importance);  // q4_K
  EXPECT_FALSE(formats["token_embd.weight"].needs_importance);
  EXPECT_FALSE(formats["output.weight"].needs_importance);
  EXPECT_FALSE(Formats("Q2_K", 8, 256)["blk.1.attn_q.weight"].needs_importance);
  EXPECT_FALSE(Formats("Q2_K_S", 8, 96)["blk.1.attn_q.weight"].needs_importance);  // q4_0
}

TEST(Mixtures, UnknownNames) {
  const StatusOr<const Mixture*> none = FindMixture("Q7_K");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("there are F32, F16, BF16, Q8_0"), std::string::npos);
  EXPECT_STREQ((*FindMixture("q5_k"))->name, "Q5_K_M");
  EXPECT_EQ(NameOfFileType(15), "Q4_K_M");
  EXPECT_EQ(NameOfFileType(9999), "");
}

}  // namespace
}  // namespace quern
