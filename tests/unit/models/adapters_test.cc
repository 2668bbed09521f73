// LoRA adapters: small models with one of each architecture against llama.cpp's logits (tests/golden/adapters), and
// against the same model with weights that were merged, by the graph interpreter; files that are refused.

#include "models/adapters.h"

#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/block_format.h"
#include "base/half.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "import/gguf.h"
#include "interpreted.h"
#include "kir/decode.h"
#include "models/architecture.h"
#include "support/described_model.h"

namespace quern::models {
namespace {

StatusOr<std::shared_ptr<const ModelFile>> FileOf(const support::DescribedModel& model) {
  QUERN_ASSIGN(GgufFile file, GgufFile::Parse(model.file));
  return std::make_shared<const GgufFile>(std::move(file));
}

// The rows of a prompt at once, and of the rest one by one.
std::vector<double> RowsOf(const ModelSpec& spec, const std::vector<int32_t>& ids, hir::FusionPolicy policy) {
  Interpreted model = Interpreted::Make(spec, policy);
  const size_t prompt = spec.encoder ? ids.size() : 7;
  std::vector<double> rows = model.Step({ids.begin(), ids.begin() + static_cast<int64_t>(prompt)}, prompt);
  for (size_t i = prompt; i < ids.size(); ++i) {
    const std::vector<double> row = model.Step({ids[i]}, 1);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

template <typename T>
double Largest(const std::vector<double>& got, const std::vector<T>& wanted) {
  double largest = got.size() == wanted.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    const double difference = std::abs(got[i] - static_cast<double>(wanted[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

class AdapterLogits : public ::testing::TestWithParam<std::string> {};

TEST_P(AdapterLogits, AreThoseOfLlamaCpp) {
  const auto adapter = support::ReadDescribedModel(GetParam());
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const auto base = support::ReadDescribedModel(adapter->base);
  ASSERT_TRUE(base.ok()) << base.status();
  const auto file = FileOf(*base), beside = FileOf(*adapter);
  ASSERT_TRUE(file.ok() && beside.ok()) << beside.status();
  const auto spec =
      ReadModel(*file, {.context = base->context,
                        .kv_dtype = DType::kF32,
                        .adapters = {{.file = *beside, .name = "adapter.gguf", .scale = adapter->scale}}});
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (const auto policy : {hir::FusionPolicy::kDirect, hir::FusionPolicy::kFusable}) {
    // llama.cpp rounds what meets halves to halves, whose step is 2^-11, and looks up its GELU in such steps.
    EXPECT_LT(Largest(RowsOf(*spec, base->ids, policy), adapter->rows), 2e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, AdapterLogits, ::testing::ValuesIn(support::DescribedAdapters()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = std::filesystem::path(info.param).stem().string();
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(Adapters, EachArchitectureHasAGoldenOne) {
  std::set<std::string> described;
  for (const std::string& path : support::DescribedAdapters()) {
    const auto adapter = support::ReadDescribedModel(path);
    ASSERT_TRUE(adapter.ok()) << adapter.status();
    described.insert(adapter->architecture);
  }
  for (const Architecture* each : Architectures()) EXPECT_TRUE(described.contains(each->name)) << each->name;
}

// A small model that is all but plain in its products: biases, and an output of its own.
const char* kBase = QUERN_SOURCE_DIR "/tests/golden/architectures/qwen2.txt";

support::DescribedModel Described(const std::vector<std::string>& lines) {
  auto model = support::ParseDescribedModel(absl::StrJoin(lines, "\n"));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::vector<std::string> AdapterLines(std::vector<std::string> tensors, double alpha = 6) {
  std::vector<std::string> lines = {"string general.architecture qwen2", "string general.type adapter",
                                    "string adapter.type lora", absl::StrCat("float adapter.lora.alpha ", alpha)};
  for (const std::string& tensor : tensors) lines.push_back("tensor " + tensor);
  return lines;
}

std::vector<float> Floats(const ModelTensor& tensor) {
  if (IsBlock(*tensor.dtype)) {
    const BlockFormat& format = FormatOf(*tensor.dtype);
    std::vector<float> values(tensor.bytes.size() / format.bytes * format.elements);
    kir::DecodeRow(*tensor.dtype, tensor.bytes.data(), static_cast<int64_t>(values.size()), values.data());
    return values;
  }
  const bool half = tensor.dtype == DType::kF16;
  std::vector<float> values(tensor.bytes.size() / (half ? sizeof(uint16_t) : sizeof(float)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    if (!half) {
      std::memcpy(&values[i], tensor.bytes.data() + i * sizeof(float), sizeof(float));
    } else {
      std::memcpy(&bits, tensor.bytes.data() + i * sizeof(bits), sizeof(bits));
      values[i] = HalfToFloat(bits);
    }
  }
  return values;
}

// Adds scale * alpha / rank times B A to the weights in the bytes of the model's file.
void Merge(support::DescribedModel& base, const support::DescribedModel& adapter, double scale) {
  const auto model = GgufFile::Parse(base.file), pairs = GgufFile::Parse(adapter.file);
  ASSERT_TRUE(model.ok() && pairs.ok());
  for (const ModelTensor& a : pairs->tensors()) {
    if (!a.name.ends_with(".lora_a")) continue;
    const std::string name = a.name.substr(0, a.name.size() - 7);
    const ModelTensor *b = pairs->FindTensor(name + ".lora_b"), *weight = model->FindTensor(name);
    const std::vector<float> left = Floats(a), right = Floats(*b);
    std::vector<float> sum = Floats(*weight);
    const bool table = name == "token_embd.weight";  // its A has a row for each token
    const int64_t rank = b->dims.back(), in = weight->dims.back(), out = weight->dims[weight->dims.size() - 2],
                  groups = weight->dims.size() == 3 ? weight->dims[0] : 1;
    const auto alpha = pairs->Float("adapter.lora.alpha");
    const double factor = alpha.ok() ? scale * *alpha / static_cast<double>(rank) : scale;
    for (int64_t row = 0; row < groups * out; ++row) {
      for (int64_t k = 0; k < in; ++k) {
        double product = 0;
        for (int64_t r = 0; r < rank; ++r) {
          product += table ? static_cast<double>(left[row * rank + r]) * right[k * rank + r]
                           : static_cast<double>(right[row * rank + r]) * left[(row / out * rank + r) * in + k];
        }
        sum[row * in + k] += static_cast<float>(product * factor);
      }
    }
    std::memcpy(base.file.data() + (weight->bytes.data() - base.file.data()), sum.data(), weight->bytes.size());
  }
}

struct Scaled {
  support::DescribedModel adapter;
  double scale = 1;
};

// The largest difference between the model with adapters and the one with merged weights; `changed`: how far both are
// from the model alone.
double FromMerged(support::DescribedModel base, const std::vector<Scaled>& adapters, double* changed) {
  ModelOptions options = {.context = base.context, .kv_dtype = DType::kF32};
  const auto rows_of = [&]() -> std::vector<double> {
    const auto file = FileOf(base);
    const auto spec = ReadModel(*file, options);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? RowsOf(*spec, base.ids, hir::FusionPolicy::kDirect) : std::vector<double>();
  };
  const std::vector<double> plain = rows_of();
  for (const auto& [adapter, scale] : adapters) {
    const auto file = FileOf(adapter);
    EXPECT_TRUE(file.ok()) << file.status();
    options.adapters.push_back({*file, absl::StrCat(options.adapters.size()), scale});
  }
  const std::vector<double> rows = rows_of();
  options.adapters.clear();
  for (const auto& [adapter, scale] : adapters) Merge(base, adapter, scale);
  *changed = Largest(rows, plain);
  return Largest(rows, rows_of());
}

TEST_P(AdapterLogits, AreThoseOfMergedWeights) {
  const auto adapter = support::ReadDescribedModel(GetParam());
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  const auto base = support::ReadDescribedModel(adapter->base);
  ASSERT_TRUE(base.ok()) << base.status();
  double changed = 0;
  EXPECT_LT(FromMerged(*base, {{*adapter, adapter->scale}}, &changed), 1e-4);
  EXPECT_GT(changed, 0.3);
}

TEST(Adapters, TwoAreBothMergedIntoTheirWeights) {
  const auto base = support::ReadDescribedModel(kBase);
  ASSERT_TRUE(base.ok()) << base.status();
  // Both change one weight, and each another: of rank 3 and of rank 5.
  const support::DescribedModel first = Described(
      AdapterLines({"blk.1.ffn_down.weight.lora_a f32 0.5 0.0 3 40", "blk.1.ffn_down.weight.lora_b f32 0.5 0.0 24 3",
                    "output.weight.lora_a f32 0.25 0.0 3 24", "output.weight.lora_b f32 0.5 0.0 61 3"}));
  const support::DescribedModel second = Described(
      AdapterLines({"blk.1.ffn_down.weight.lora_a f32 0.25 0.0 5 40", "blk.1.ffn_down.weight.lora_b f16 0.5 0.0 24 5",
                    "blk.0.attn_q.weight.lora_a f32 0.5 0.0 1 24", "blk.0.attn_q.weight.lora_b f32 0.5 0.0 24 1"},
                   2));
  double changed = 0;
  EXPECT_LT(FromMerged(*base, {{first, 0.75}, {second, -1.5}}, &changed), 1e-4);
  EXPECT_GT(changed, 0.5);
}

// Of blocks, which are what their numbers in f32 are.
TEST(Adapters, QuantisedOnesAreMergedToo) {
  auto text = support::ReadText(QUERN_SOURCE_DIR "/tests/golden/architectures/llama-grids.txt");
  ASSERT_TRUE(text.ok()) << text.status();
  // Rows of whole blocks, which are packed there.
  std::vector<std::string> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(*text, '\n', absl::SkipEmpty()))) {
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "row" || words[0] == "exact") continue;
    if (words[0] == "tensor" && words[2] != "f32") words[2] = "f32", words[3] = "0.07";
    lines.push_back(absl::StrJoin(words, " "));
  }
  const support::DescribedModel base = Described(lines);
  for (const auto& [format, d] : {std::pair<const char*, const char*>{"q8_0", "0.0005"}, {"q4_0", "0.008"}}) {
    lines = {"string general.architecture llama", "string general.type adapter", "string adapter.type lora",
             "float adapter.lora.alpha 32"};
    for (const auto& [name, in, out] : {std::tuple<const char*, int, int>{"blk.0.attn_q", 256, 256},
                                        {"blk.1.attn_k", 256, 128},
                                        {"blk.1.ffn_down", 512, 256},
                                        {"output", 256, 61}}) {
      lines.push_back(absl::StrFormat("tensor %s.weight.lora_a %s %s 0 32 %d", name, format, d, in));
      lines.push_back(absl::StrFormat("tensor %s.weight.lora_b %s %s 0 %d 32", name, format, d, out));
    }
    double changed = 0;
    EXPECT_LT(FromMerged(base, {{Described(lines), 0.75}}, &changed), 1e-4) << format;
    EXPECT_GT(changed, 0.1) << format;
  }
}

// What llama.cpp leaves out in this architecture: the products around its latent rows, and its output.
TEST(Adapters, ReachWhatMakesLatentRows) {
  const auto base = support::ReadDescribedModel(QUERN_SOURCE_DIR "/tests/golden/architectures/deepseek2.txt");
  ASSERT_TRUE(base.ok()) << base.status();
  std::vector<std::string> lines = {"string general.architecture deepseek2", "string general.type adapter",
                                    "string adapter.type lora"};
  const auto file = FileOf(*base);
  ASSERT_TRUE(file.ok());
  for (const char* part : {"blk.1.attn_q_a", "blk.1.attn_q_b", "blk.1.attn_kv_a_mqa", "output"}) {
    const std::string name = absl::StrCat(part, ".weight");
    const std::vector<int64_t>& dims = (*file)->FindTensor(name)->dims;
    lines.push_back(absl::StrCat("tensor ", name, ".lora_a f32 0.5 0 3 ", dims[1]));
    lines.push_back(absl::StrCat("tensor ", name, ".lora_b f32 0.5 0 ", dims[0], " 3"));
  }
  double changed = 0;
  EXPECT_LT(FromMerged(*base, {{Described(lines), 1}}, &changed), 1e-4);
  EXPECT_GT(changed, 0.3);
}

Status ReadWith(const std::string& base, const std::vector<std::string>& lines, double scale = 1) {
  QUERN_ASSIGN(const support::DescribedModel model, support::ReadDescribedModel(base));
  QUERN_ASSIGN(const support::DescribedModel adapter, support::ParseDescribedModel(absl::StrJoin(lines, "\n")));
  QUERN_ASSIGN(auto file, FileOf(model));
  QUERN_ASSIGN(auto beside, FileOf(adapter));
  return ReadModel(std::move(file), {.context = model.context, .adapters = {{std::move(beside), "a.gguf", scale}}})
      .status();
}

TEST(Adapters, WhatDoesNotFitIsRefusedByName) {
  const std::string a = "output.weight.lora_a f32 1 0 3 24", b = "output.weight.lora_b f32 1 0 61 3";
  const std::vector<std::string> right = AdapterLines({a, b});
  ASSERT_TRUE(ReadWith(kBase, right).ok()) << ReadWith(kBase, right);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::vector<std::string> lines = right;
    for (std::string& line : lines) absl::StrReplaceAll({{from, to}}, &line);
    std::erase(lines, "");
    return lines;
  };
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {changed("architecture qwen2", "architecture llama"), "general.architecture is \"llama\", \"qwen2\" expected"},
      {changed("type adapter", "type model"), "general.type is \"model\", \"adapter\" expected"},
      {changed("string general.type adapter", ""), "general.type is nothing, \"adapter\" expected"},
      {changed("type lora", "type ia3"), "adapter.type is \"ia3\", \"lora\" expected"},
      {changed("alpha 6", "alpha inf"), "adapter.lora.alpha is no finite number"},
      {changed("float adapter.lora.alpha 6", "uint adapter.alora.invocation_tokens 6"),
       "adapter.alora.invocation_tokens"},
      {changed("float adapter.lora.alpha 6", "string adapter.lora.alpha 6"), "adapter.lora.alpha"},
      {AdapterLines({}), "it has no tensors"},
      {AdapterLines({a}), "the tensor output.weight.lora_b is missing"},
      {AdapterLines({b}), "the tensor output.weight.lora_a is missing"},
      {AdapterLines({a, b, "output_norm.weight f32 1 0 24"}),
       "output_norm.weight is neither NAME.lora_a nor NAME.lora_b"},
      {changed("output.weight", "blk.9.attn_q.weight"), "the model has no tensor blk.9.attn_q.weight"},
      {changed("output.weight", "output_norm.weight"), "output_norm.weight is no weight of a product"},
      {changed("3 24", "3 25"), "output.weight.lora_a is F32[3, 25], F32[rank, 24] expected, where rank is 3"},
      {changed("3 24", "4 24"), "output.weight.lora_a is F32[4, 24], F32[rank, 24] expected, where rank is 3"},
      {changed("61 3", "60 3"), "output.weight.lora_b is F32[60, 3], F32[61, rank] expected, where rank is 3"},
      {changed("61 3", "61"), "output.weight.lora_a is F32[3, 24], F32[rank, 24] expected, where rank is 61"},
      // A table that was transposed as other weights are.
      {AdapterLines({"token_embd.weight.lora_a f32 1 0 3 24", "token_embd.weight.lora_b f32 1 0 61 3"}),
       "token_embd.weight.lora_a is F32[3, 24], F32[61, rank] expected"},
  };
  for (const auto& [lines, wanted] : kCases) {
    const Status status = ReadWith(kBase, lines);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(wanted)) << absl::StrJoin(lines, "\n");
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("adapter a.gguf: "));
  }
  EXPECT_THAT(std::string(ReadWith(kBase, right, NAN).message()), ::testing::HasSubstr("no finite number"));
  EXPECT_THAT(std::string(ReadWith(kBase, right, 1e38).message()), ::testing::HasSubstr("is too large"));
}

TEST(Adapters, ATableThatIsTheOutputAsWellIsLeftAlone) {
  const std::vector<std::string> lines = {"string general.architecture llama", "string general.type adapter",
                                          "string adapter.type lora", "tensor token_embd.weight.lora_a f32 1 0 61 3",
                                          "tensor token_embd.weight.lora_b f32 1 0 24 3"};
  EXPECT_TRUE(ReadWith(QUERN_SOURCE_DIR "/tests/golden/architectures/llama.txt", lines).ok());
  EXPECT_THAT(std::string(ReadWith(QUERN_SOURCE_DIR "/tests/golden/architectures/llama-tied.txt", lines).message()),
              ::testing::HasSubstr("token_embd.weight has more than one use in this model"));
}

// An adapter without one of its lines, or with an extent of 1 more, is an error that says what, or one that fits; never
// a crash.
TEST(Adapters, DamagedOnesAreRefused) {
  for (const std::string& path : support::DescribedAdapters()) {
    const auto text = support::ReadText(path);
    ASSERT_TRUE(text.ok()) << text.status();
    std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("row"); });
    const std::string base = support::ParseDescribedModel(absl::StrJoin(lines, "\n"))->base;
    ASSERT_TRUE(ReadWith(base, lines).ok()) << path;
    for (size_t i = 0; i < lines.size(); i += 3) {  // 3 does not divide what a layer has
      if (!lines[i].starts_with("tensor")) continue;
      const std::string whole = lines[i];
      lines[i] = absl::StrCat(whole, "1");
      EXPECT_FALSE(ReadWith(base, lines).ok()) << lines[i];
      lines[i] = "scale 1";
      EXPECT_FALSE(ReadWith(base, lines).ok()) << whole;
      lines[i] = whole;
    }
  }
}

// The same of bytes: each cut short and bytes changed at random, most of them in the header.
TEST(Adapters, DamagedFilesAreRefused) {
  const auto base = support::ReadDescribedModel(kBase);
  ASSERT_TRUE(base.ok()) << base.status();
  const auto model = FileOf(*base);
  ASSERT_TRUE(model.ok());
  const support::DescribedModel whole = Described(
      AdapterLines({"blk.1.ffn_down.weight.lora_a f32 0.5 0 3 40", "blk.1.ffn_down.weight.lora_b f16 0.5 0 24 3"}));
  const auto read = [&](const std::vector<uint8_t>& bytes) -> Status {
    support::DescribedModel adapter;
    adapter.file = bytes;
    QUERN_ASSIGN(auto beside, FileOf(adapter));
    QUERN_ASSIGN(const ModelSpec spec,
                 ReadModel(*model, {.context = base->context, .adapters = {{std::move(beside), "a.gguf", 1}}}));
    return hir::Lower(spec.module).status();
  };
  ASSERT_TRUE(read(whole.file).ok()) << read(whole.file);
  for (size_t size = 0; size < whole.file.size(); size += size < 512 ? 1 : 61) {
    EXPECT_FALSE(read({whole.file.begin(), whole.file.begin() + static_cast<int64_t>(size)}).ok()) << size;
  }
  constexpr uint32_t kSeed = 20261127;
  std::mt19937 random(kSeed);
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<uint8_t> bytes = whole.file;
    for (int change = 0; change <= trial % 3; ++change) {
      bytes[random() % (trial % 8 == 0 ? bytes.size() : 512)] = static_cast<uint8_t>(random());
    }
    const Status status = read(bytes);
    refused += !status.ok();
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << "seed " << kSeed << ", trial " << trial << ": " << status;
  }
  EXPECT_GT(refused, 1000) << "seed " << kSeed;
}

}  // namespace
}  // namespace quern::models
