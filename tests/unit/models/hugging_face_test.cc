// Folders of Hugging Face's: a small one of each family against transformers' logits (tests/golden/hugging_face), by
// the graph interpreter, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "import/gguf.h"
#include "import/hugging_face/family.h"
#include "import/hugging_face/model_folder.h"
#include "import/safetensors.h"
#include "interpreted.h"
#include "support/described_folder.h"
#include "support/temp_folder.h"

namespace quern::models {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using quern::testing::TempFolder;

support::DescribedFolder Described(const std::string& name) {
  auto folder =
      support::ReadDescribedFolder(std::string(QUERN_SOURCE_DIR "/tests/golden/hugging_face/") + name + ".txt");
  EXPECT_TRUE(folder.ok()) << folder.status();
  return folder.ok() ? *std::move(folder) : support::DescribedFolder();
}

StatusOr<ModelSpec> Open(const std::string& path, int64_t context) {
  QUERN_ASSIGN(std::shared_ptr<const ModelFile> file, OpenModelFile(path));
  return ReadModel(std::move(file), {.context = context, .kv_dtype = DType::kF32});
}

double LargestDifference(const ModelSpec& spec, const support::DescribedFolder& described, hir::FusionPolicy policy) {
  Interpreted model = Interpreted::Make(spec, policy);
  const std::vector<int32_t>& ids = described.ids;
  const size_t prompt = spec.encoder ? ids.size() : 7;
  std::vector<double> got = model.Step({ids.begin(), ids.begin() + static_cast<int64_t>(prompt)}, prompt);
  for (size_t i = prompt; i < ids.size(); ++i) {
    const std::vector<double> row = model.Step({ids[i]}, 1);
    got.insert(got.end(), row.begin(), row.end());
  }
  double largest = got.size() == described.rows.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(got.size(), described.rows.size()); ++i)
    largest = std::max(largest, std::abs(got[i] - described.rows[i]));
  return largest;
}

class FolderLogits : public ::testing::TestWithParam<std::string> {};

TEST_P(FolderLogits, AreThoseOfTransformers) {
  const auto described = support::ReadDescribedFolder(GetParam());
  ASSERT_TRUE(described.ok()) << described.status();
  for (const size_t shards : {1, 3}) {
    const TempFolder folder;
    described->Write(folder.path(), shards);
    const auto spec = Open(folder.path(), described->context);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto policy = shards == 1 ? hir::FusionPolicy::kDirect : hir::FusionPolicy::kFusable;
    EXPECT_LT(LargestDifference(*spec, *described, policy), 5e-4) << shards << " files";
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, FolderLogits, ::testing::ValuesIn(support::DescribedFolders()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = std::filesystem::path(info.param).stem().string();
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(Folders, EachFamilyHasAGoldenOne) {
  std::set<std::string> types;
  for (const std::string& path : support::DescribedFolders()) {
    const auto described = support::ReadDescribedFolder(path);
    ASSERT_TRUE(described.ok()) << described.status();
    types.insert(Json::parse(described->config).value("model_type", ""));
  }
  for (const hugging_face::Family& family : hugging_face::Families()) {
    // The text part of a model of images is a golden folder itself.
    if (family.model_type != "gemma3") EXPECT_TRUE(types.contains(std::string(family.model_type))) << family.model_type;
  }
}

// Weights lie where the files have them: only norms that are from one, and factors, are computed.
TEST(Folders, WeightsAreReadInPlace) {
  const TempFolder folder;
  Described("llama").Write(folder.path());
  const auto file = OpenModelFile(folder.path());
  ASSERT_TRUE(file.ok()) << file.status();
  const std::span<const uint8_t> bytes = (*file)->weights()[0].bytes;
  for (const ModelTensor& tensor : (*file)->tensors()) {
    EXPECT_GE(tensor.bytes.data(), bytes.data()) << tensor.name;
    EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size()) << tensor.name;
  }
}

TEST(Folders, AFileOfTheFolderNamesIt) {
  const TempFolder folder;
  const support::DescribedFolder described = Described("qwen3");
  described.Write(folder.path());
  for (const char* name : {"", "/", "/config.json", "/model.safetensors"})
    EXPECT_TRUE(Open(folder.path() + name, 16).ok()) << name;
}

// The part of the text, in a model of images and text.
TEST(Folders, TheTextPartIsFound) {
  const TempFolder folder;
  support::DescribedFolder described = Described("gemma3");
  Json config = {
      {"model_type", "gemma3"}, {"text_config", Json::parse(described.config)}, {"vision_config", Json::object()}};
  described.config = config.dump();
  FileTensors tensors;
  for (auto& [name, tensor] : described.tensors) tensors.emplace("language_" + name, std::move(tensor));
  tensors.emplace("vision_tower.layer.weight", FileTensor{DType::kF32, {1}, {0, 0, 0, 0}});
  described.tensors = std::move(tensors);
  described.Write(folder.path());
  const auto spec = Open(folder.path(), described.context);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_LT(LargestDifference(*spec, described, hir::FusionPolicy::kDirect), 5e-4);
}

TEST(Folders, StoriesAreThoseOfTheGgufFile) {
  const std::filesystem::path models = QUERN_MODELS_DIR;
  if (!std::filesystem::exists(models / "safetensors/stories260K"))
    GTEST_SKIP() << "no safetensors/stories260K under " << QUERN_MODELS_DIR;
  const auto folder = Open((models / "safetensors/stories260K/model-F32.safetensors").string(), 64);
  const auto file = Open((models / "gguf/stories260K-F32.gguf").string(), 64);
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(file.ok()) << file.status();
  Interpreted one = Interpreted::Make(*folder, hir::FusionPolicy::kDirect),
              other = Interpreted::Make(*file, hir::FusionPolicy::kDirect);
  std::vector<int32_t> ids = {1, 403, 407, 261, 378};
  for (int step = 0; step < 16; ++step) {
    const std::vector<double> got = one.Step(ids, 1), want = other.Step(ids, 1);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-3);
    ids = {static_cast<int32_t>(std::max_element(got.begin(), got.end()) - got.begin())};
  }
}

std::string ErrorOf(const support::DescribedFolder& described) {
  const TempFolder folder;
  described.Write(folder.path());
  const auto spec = Open(folder.path(), described.context);
  return spec.ok() ? "" : std::string(spec.status().message());
}

TEST(Folders, WhatIsNotComputedIsRefusedByName) {
  const struct {
    const char *folder, *change, *error;
  } cases[] = {
      {"llama", R"({"model_type": "mamba9"})", "model_type \"mamba9\" is not supported; these are: llama, "},
      {"llama", R"({"hidden_act": "relu"})", "hidden_act is \"relu\", which the architecture llama does not compute"},
      {"llama", R"({"rope_parameters": {"rope_type": "spiral"}})", "the type \"spiral\" is none of default, linear"},
      {"llama", R"({"rope_parameters": {"rope_type": "yarn"}})", "rope_scaling: factor above 0 expected"},
      {"llama", R"({"quantization_config": {"quant_method": "gptq"}})", "weights quantised by \"gptq\" are not"},
      {"llama", R"({"hidden_size": "wide"})", "hidden_size is \"wide\", an integer expected"},
      {"llama", R"({"hidden_size": 25})", "25"},
      {"llama", R"({"vocab_size": 62})", "62, but token_embd.weight has 61 rows"},
      {"llama", R"({"sliding_window": 4})", "layers of the architecture llama see all tokens"},
      {"llama-yarn", R"({"rope_parameters": {"rope_type": "yarn", "factor": 2, "truncate": false}})", "truncate false"},
      {"qwen3_moe", R"({"norm_topk_prob": false})",
       "norm_topk_prob is false, which the architecture qwen3moe does not"},
      {"smollm3", R"({"no_rope_layers": [1, 1, 1, 1, 1]})", "no_rope_layers"},
      {"gemma3", R"({"layer_types": ["chunked_attention"]})", "layer_types is [\"chunked_attention\"], a list of 7"},
      {"phi3-longrope", R"({"rope_parameters": {"rope_type": "longrope", "long_factor": [1], "short_factor": [1]}})",
       "long_factor of 4 numbers expected"},
  };
  for (const auto& each : cases) {
    support::DescribedFolder described = Described(each.folder);
    Json config = Json::parse(described.config);
    config.update(Json::parse(each.change));
    described.config = config.dump();
    EXPECT_THAT(ErrorOf(described), HasSubstr(each.error)) << each.change;
  }
}

TEST(Folders, TensorsAreOnesOfTheArchitecture) {
  support::DescribedFolder described = Described("llama");
  FileTensors::node_type node = described.tensors.extract("model.layers.1.mlp.up_proj.weight");
  EXPECT_THAT(ErrorOf(described), HasSubstr("the tensor blk.1.ffn_up.weight is missing"));
  node.key() = "model.layers.1.mlp.up_proj.extra";
  described.tensors.insert(std::move(node));
  EXPECT_THAT(ErrorOf(described), HasSubstr("missing"));
  described = Described("llama");
  described.tensors.emplace("model.layers.0.adapter.weight", described.tensors.begin()->second);
  EXPECT_THAT(ErrorOf(described), HasSubstr("the tensor model.layers.0.adapter.weight has no place"));
  described = Described("llama");
  described.tensors.emplace("layers.0.mlp.up_proj.weight", described.tensors.begin()->second);
  EXPECT_THAT(ErrorOf(described), HasSubstr("two tensors are blk.0.ffn_up.weight"));
  described = Described("llama");
  described.tensors.erase("lm_head.weight");
  EXPECT_THAT(ErrorOf(described), HasSubstr("lm_head.weight is missing"));
  described = Described("mixtral");
  std::erase_if(described.tensors, [](const auto& entry) {
    return entry.first.find("layers.0.block_sparse_moe.experts.2.") != std::string::npos;
  });
  EXPECT_THAT(ErrorOf(described), HasSubstr("an expert of blk.0.ffn_"));
}

TEST(Folders, ShardsAreFilesOfTheFolder) {
  const auto error = [](const std::string& text) {
    const auto shards = hugging_face::ShardsOf(text);
    return shards.ok() ? "" : std::string(shards.status().message());
  };
  EXPECT_EQ(error(R"({"weight_map": {"a": "x.safetensors", "b": "y.safetensors", "c": "x.safetensors"}})"), "");
  for (const char* name : {"\"../x.safetensors\"", "\"/etc/x.safetensors\"", "\"a/b.safetensors\"", "\"x.bin\"", "3",
                           "\"a\\\\x.safetensors\"", "\"a\\u0000.safetensors\""}) {
    EXPECT_THAT(error(std::string(R"({"weight_map": {"a": )") + name + "}}"), HasSubstr("is no .safetensors file"))
        << name;
  }
  EXPECT_THAT(error("{"), HasSubstr("no object of JSON"));
  EXPECT_THAT(error("{}"), HasSubstr("weight_map"));
  // A tensor in two of them, and one that is not there.
  const TempFolder folder;
  const support::DescribedFolder described = Described("llama");
  described.Write(folder.path(), 2);
  support::WriteText(folder.path() + "/model-1.safetensors", PrintSafetensors(described.tensors));
  EXPECT_THAT(Open(folder.path(), 16).status().message(), HasSubstr("is in two files"));
  std::filesystem::remove(folder.path() + "/model-1.safetensors");
  EXPECT_THAT(Open(folder.path(), 16).status().message(), HasSubstr("model-1.safetensors"));
}

// Any value in the place of any other is a model of another shape or an error that says what; never a crash.
TEST(Folders, DamagedConfigurationsAreRefused) {
  for (const std::string& path : support::DescribedFolders()) {
    const auto described = support::ReadDescribedFolder(path);
    ASSERT_TRUE(described.ok()) << described.status();
    const std::string bytes = PrintSafetensors(described->tensors);
    const std::span<const uint8_t> weights(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    const Json config = Json::parse(described->config);
    const Json flat = config.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      for (const char* other : {"null", "0", "-1", "3", "1e300", "18446744073709551615", "\"x\"", "[]", "{}", "true"}) {
        Json changed = config;
        changed[Json::json_pointer(pointer)] = Json::parse(other);
        auto folder = ModelFolder::Parse(changed.dump(), weights);
        if (!folder.ok()) {
          EXPECT_FALSE(folder.status().message().empty()) << pointer << other;
          continue;
        }
        const auto spec = ReadModel(std::make_shared<const ModelFile>(*std::move(folder)), {.context = 8});
        if (!spec.ok()) EXPECT_FALSE(spec.status().message().empty()) << pointer << other;
      }
    }
  }
}

}  // namespace
}  // namespace quern::models
