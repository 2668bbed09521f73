// Files that are no Llama models, or hostile ones: each refused with a sentence that names the key or the tensor.

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hir/module.h"
#include "models/model_spec.h"
#include "tiny_llama.h"

namespace quern::models {
namespace {

std::string ErrorOf(const TinyLlama& tiny, const ModelOptions& options = {}) {
  std::vector<uint8_t> storage;
  const auto file = tiny.File(storage);
  if (file == nullptr) return "not a GGUF file";
  const auto spec = ReadModel(file, options);
  return spec.ok() ? "no error" : std::string(spec.status().message());
}

template <typename T>
std::string WithKey(const std::string& key, T value) {
  TinyLlama tiny;
  tiny.metadata[key] = value;
  return ErrorOf(tiny);
}

std::string WithoutKey(const std::string& key) {
  TinyLlama tiny;
  tiny.metadata.erase(key);
  return ErrorOf(tiny);
}

std::string WithTensor(const std::string& name, std::vector<uint64_t> dims) {
  TinyLlama tiny;
  tiny.tensors[name] = std::move(dims);
  return ErrorOf(tiny);
}

TEST(LlamaFile, TheSmallestModelIsRead) {
  std::vector<uint8_t> storage;
  const auto file = TinyLlama().File(storage);
  ASSERT_NE(file, nullptr);
  const auto spec = ReadModel(file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->vocabulary, 11);
  EXPECT_EQ(spec->context, 29);
  EXPECT_EQ(spec->kv_dtype, DType::kF32) << "weights are f32";
  EXPECT_EQ(spec->params.size(), 13u) << "11 tensors and the two tables";
  const auto graph = hir::Lower(spec->module);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->type(graph->outputs[0]).ToString(), "f32[LOGITS, 11]");
  EXPECT_EQ(graph->type(graph->outputs[1]).ToString(), "f32[29, 1, 4]");
  EXPECT_EQ(graph->donations.size(), 2u);
  EXPECT_EQ(graph->donations[1].input, "layers.0.v_cache");
}

TEST(LlamaFile, MetadataIsChecked) {
  EXPECT_THAT(WithKey("general.architecture", std::string("lama")),
              ::testing::AllOf(::testing::StartsWith("general.architecture: \"lama\" is not supported; these are: "),
                               ::testing::HasSubstr(", llama, ")));
  EXPECT_EQ(WithoutKey("general.architecture"), "metadata key \"general.architecture\" is missing");
  EXPECT_EQ(WithoutKey("llama.embedding_length"), "metadata key \"llama.embedding_length\" is missing");
  EXPECT_EQ(WithKey("llama.block_count", 0u), "llama.block_count: 0 is not in 1..1024");
  EXPECT_EQ(WithKey("llama.block_count", 4000000000u), "llama.block_count: 4000000000 is not in 1..1024");
  EXPECT_EQ(WithKey("llama.attention.head_count", 5u),
            "llama.attention.head_count: 5 does not divide the embedding length 12");
  EXPECT_EQ(WithKey("llama.attention.head_count_kv", 2u),
            "llama.attention.head_count_kv: 2 does not divide the 3 heads");
  EXPECT_EQ(WithKey("llama.attention.key_length", 1u << 30),
            "llama.attention.key_length: 1073741824 is not in 1..1024");
  EXPECT_EQ(WithKey("llama.attention.value_length", 6u),
            "llama.attention.value_length: 6 differs from the key length 4");
  EXPECT_EQ(WithKey("llama.attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()),
            "llama.attention.layer_norm_rms_epsilon: nan is not in 0..1");
  EXPECT_EQ(WithoutKey("llama.attention.layer_norm_rms_epsilon"),
            "metadata key \"llama.attention.layer_norm_rms_epsilon\" is missing");
  EXPECT_EQ(WithKey("llama.context_length", 0u), "llama.context_length: 0 is not in 1..16777216");
  EXPECT_EQ(WithKey("llama.vocab_size", 12u), "llama.vocab_size: 12, but token_embd.weight has 11 rows");
  EXPECT_EQ(WithKey("llama.expert_count", 8u), "metadata key \"llama.expert_used_count\" is missing");
  EXPECT_EQ(WithKey("llama.rope.dimension_count", 3u),
            "llama.rope.dimension_count: 3 is not even and at most the head dimension 4");
  EXPECT_EQ(WithKey("llama.rope.dimension_count", 6u),
            "llama.rope.dimension_count: 6 is not even and at most the head dimension 4");
  EXPECT_EQ(WithKey("llama.rope.dimension_count", 2u), "no error");
  EXPECT_EQ(WithKey("llama.rope.freq_base", -1.0f), "llama.rope.freq_base: -1 is not in 1..1e+12");
  EXPECT_EQ(WithKey("llama.rope.scaling.type", std::string("ntk")),
            "llama.rope.scaling.type: \"ntk\" is none of none, linear, yarn, longrope");
  EXPECT_EQ(WithKey("llama.rope.scaling.factor", std::numeric_limits<float>::infinity()),
            "llama.rope.scaling.factor: inf is not in 0..1e+06");
}

TEST(LlamaFile, TensorsAreChecked) {
  EXPECT_EQ(WithTensor("blk.0.attn_q.weight", {12, 11}),
            "the tensor blk.0.attn_q.weight is f32[11, 12], f32[12, 12] expected");
  EXPECT_EQ(WithTensor("blk.0.ffn_down.weight", {12, 7}),
            "the tensor blk.0.ffn_down.weight is f32[7, 12], f32[12, 7] expected");
  EXPECT_EQ(WithTensor("output.weight", {12, 11}), "no error");
  EXPECT_EQ(WithTensor("output.weight", {12, 10}), "the tensor output.weight is f32[10, 12], f32[11, 12] expected");
  EXPECT_EQ(WithTensor("blk.0.attn_q.bias", {12}), "no error");
  EXPECT_EQ(WithTensor("blk.0.attn_q.bias", {11}), "the tensor blk.0.attn_q.bias is f32[11], f32[12] expected");
  EXPECT_EQ(WithTensor("blk.0.attn_q.scale", {12}),
            "the tensor blk.0.attn_q.scale has no place in the architecture llama");
  EXPECT_EQ(WithTensor("blk.1.attn_q.weight", {12, 12}),
            "the tensor blk.1.attn_q.weight has no place in the architecture llama");
  EXPECT_EQ(WithTensor("rope_freqs.weight", {3}), "the tensor rope_freqs.weight is not f32[2]");
  EXPECT_EQ(WithTensor("rope_freqs.weight", {2}), "the tensor rope_freqs.weight has a factor that is not above 0");
  TinyLlama tiny;
  tiny.tensors.erase("blk.0.ffn_norm.weight");
  EXPECT_EQ(ErrorOf(tiny), "the tensor blk.0.ffn_norm.weight is missing");
  tiny = {};
  tiny.tensors.erase("token_embd.weight");
  EXPECT_EQ(ErrorOf(tiny), "the tensor token_embd.weight is missing or not of rank 2");
}

TEST(LlamaFile, OptionsAreChecked) {
  EXPECT_EQ(ErrorOf({}, {.context = -1}), "a context of -1 is not in 1..16777216");
  EXPECT_EQ(ErrorOf({}, {.kv_dtype = DType::kQ8_0}), "a cache of q8_0 is not supported: f32, f16 or bf16");
}

}  // namespace
}  // namespace quern::models
