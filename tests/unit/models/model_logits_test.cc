// Models from files, run through the graph interpreter, against the logits of an independent runtime.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/half.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "import/gguf.h"
#include "interpreted.h"

namespace quern::models {
namespace {

using ::testing::HasSubstr;

std::filesystem::path Models() { return QUERN_MODELS_DIR; }

std::shared_ptr<const GgufFile> OpenModel(const std::string& name) {
  auto file = GgufFile::Open((Models() / name).string());
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? std::make_shared<const GgufFile>(*std::move(file)) : nullptr;
}

std::vector<float> ReadFloats(const std::string& name) {
  std::ifstream in(Models() / name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double LargestDifference(const std::vector<double>& got, const std::vector<float>& want, size_t first, size_t count) {
  double largest = got.size() == count ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(count, got.size()); ++i)
    largest = std::max(largest, std::abs(got[i] - want[first + i]));
  return largest;
}

// "Once upon a time, there was a little girl named Lily. She loved to play"; references of stories have the first five.
constexpr int32_t kPrompt[] = {1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298,
                               315, 421, 395, 317, 426, 338, 401, 396, 267, 337};

struct Case {
  const char* model;
  const char* logits;
  size_t prompt;  // tokens
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model; }

class ModelLogits : public ::testing::TestWithParam<Case> {};

TEST_P(ModelLogits, AgreeWithAnIndependentRuntime) {
  if (!std::filesystem::exists(Models() / GetParam().model))
    GTEST_SKIP() << "no " << GetParam().model << " under " << QUERN_MODELS_DIR;
  const std::vector<float> want = ReadFloats(GetParam().logits);
  auto spec = ReadModel(OpenModel(GetParam().model), {.context = 64, .kv_dtype = DType::kF32});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const size_t vocabulary = spec->vocabulary;
  for (const auto policy : {hir::FusionPolicy::kDirect, hir::FusionPolicy::kFusable}) {
    Interpreted model = Interpreted::Make(*spec, policy);
    // The prompt at once, then two tokens one by one: the cache carries on.
    const size_t n = GetParam().prompt;
    const std::vector<double> prompt = model.Step({kPrompt, kPrompt + n}, static_cast<int64_t>(n));
    EXPECT_LT(LargestDifference(prompt, want, 0, n * vocabulary), 1e-3);
    for (size_t step = n; step < n + 2; ++step) {
      // The reference's rows after the prompt are of its own greedy choices.
      const auto before = want.begin() + (step - 1) * vocabulary;
      const auto next = static_cast<int32_t>(std::max_element(before, before + vocabulary) - before);
      EXPECT_LT(LargestDifference(model.Step({next}, 1), want, step * vocabulary, vocabulary), 1e-3) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, ModelLogits,
    ::testing::Values(Case{"gguf/stories260K-F32.gguf", "ref/llm/stories260K-F32.once.logits.f32", 5},
                      Case{"gguf/stories260K-F16.gguf", "ref/llm/stories260K-F16.weightonly.once.logits.f32", 5},
                      Case{"gguf/stories260K-Q8_0.gguf", "ref/llm/stories260K-Q8_0.weightonly.once.logits.f32", 5},
                      Case{"gguf/stories260K-Q4_0.gguf", "ref/llm/stories260K-Q4_0.weightonly.once.logits.f32", 5},
                      Case{"archs/llama-rand.gguf", "ref/archs/llama-rand.weightonly.logits.f32", 21},
                      Case{"archs/llama3-ropefreqs-rand.gguf", "ref/archs/llama3-ropefreqs-rand.weightonly.logits.f32",
                           21},
                      Case{"archs/llama-moe4x2-rand.gguf", "ref/archs/llama-moe4x2-rand.weightonly.logits.f32", 21},
                      Case{"archs/qwen2-rand.gguf", "ref/archs/qwen2-rand.weightonly.logits.f32", 21},
                      Case{"archs/qwen3-rand.gguf", "ref/archs/qwen3-rand.weightonly.logits.f32", 21},
                      Case{"archs/gemma2-rand.gguf", "ref/archs/gemma2-rand.weightonly.logits.f32", 21}));

}  // namespace
}  // namespace quern::models
