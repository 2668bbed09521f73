// CollectImportance of the public interface against llama.cpp's matrix of the bundled model (tests/golden/importance),
// and Quantise by one. ctest `imatrix` and `quantise` hold more models and whole files.
#include "quern/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "import/importance.h"
#include "quern/quantise.h"
#include "support/described_model.h"
#include "support/gguf_bytes.h"
#include "support/temp_folder.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using quern::testing::TempFolder;

constexpr const char* kModel = QUERN_SOURCE_DIR "/models/addition.gguf";
constexpr const char* kGolden = QUERN_SOURCE_DIR "/tests/golden/importance/";

std::string In(const TempFolder& folder, const char* name) { return (fs::path(folder.path()) / name).string(); }

void WriteBytes(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

TEST(CollectImportance, IsLlamaCpps) {
  const TempFolder folder;
  const std::string text = *support::ReadText(std::string(kGolden) + "addition.txt"), out = In(folder, "made.gguf");
  int64_t told = 0;
  ImportanceOptions options{
      .output = true, .dataset = "addition.txt", .progress = [&](int64_t, int64_t all) { told = all; }};
  options.run.context = 48;
  const Result<ImportanceReport> report = CollectImportance(kModel, text, out, options);
  ASSERT_TRUE(report.ok()) << report.error();
  const auto made = ReadImportance(out), wanted = ReadImportance(std::string(kGolden) + "addition.gguf");
  ASSERT_TRUE(made.ok() && wanted.ok()) << made.status() << wanted.status();
  EXPECT_EQ(made->chunks, wanted->chunks);
  EXPECT_EQ(told, wanted->chunks);
  EXPECT_EQ(made->datasets, wanted->datasets);
  EXPECT_EQ(made->entries.size(), wanted->entries.size());
  EXPECT_EQ(report->entries, static_cast<int64_t>(wanted->entries.size()));
  EXPECT_TRUE(report->untouched.empty());
  for (const auto& [name, entry] : wanted->entries) {
    const auto own = made->entries.find(name);
    ASSERT_NE(own, made->entries.end()) << name;
    EXPECT_EQ(own->second.counts, entry.counts) << name;
    ASSERT_EQ(own->second.sums.size(), entry.sums.size()) << name;
    for (size_t i = 0; i < entry.sums.size(); ++i)
      EXPECT_NEAR(own->second.sums[i], entry.sums[i], 1e-5f * entry.sums[i]) << name << " " << i;
  }
}

TEST(CollectImportance, WhatCannotBe) {
  const TempFolder folder;
  const std::string out = In(folder, "out.gguf");
  const auto error_of = [&](const std::string& model, const ImportanceOptions& options) {
    const Result<ImportanceReport> report = CollectImportance(model, "1+2=3", out, options);
    EXPECT_FALSE(fs::exists(out));
    return report.ok() ? "" : report.error();
  };
  EXPECT_NE(error_of(kModel, {}).find("less than a chunk of 64 (--context)"), std::string::npos)
      << error_of(kModel, {});
  ImportanceOptions adapter, device, cancelled;
  adapter.run.lora = {{"a.gguf"}};
  EXPECT_NE(error_of(kModel, adapter).find("adapter a.gguf"), std::string::npos);
  device.run.device = "emulated";
  EXPECT_NE(error_of(kModel, device).find("not on a device"), std::string::npos);
  CancelToken token;
  token.Cancel();
  cancelled.run.context = 4;
  cancelled.run.cancel = &token;
  EXPECT_EQ(CollectImportance(kModel, "1+2=3", out, cancelled).code(), ErrorCode::kCancelled);
  const auto encoder = support::ReadDescribedModel(QUERN_SOURCE_DIR "/tests/golden/architectures/bert.txt");
  ASSERT_TRUE(encoder.ok());
  WriteBytes(In(folder, "bert.gguf"), encoder->file);
  EXPECT_NE(error_of(In(folder, "bert.gguf"), {}).find("the architecture bert is an encoder"), std::string::npos);
}

// Of weights in one row of 256, by their importance.
TEST(CollectImportance, NumbersThatNoBlockHolds) {
  const TempFolder folder;
  support::GgufBytes model, matrix;
  model.Put("general.architecture", std::string_view("llama"));
  matrix.Put("general.type", std::string_view("imatrix"));
  const auto floats = [](float value) {
    const std::vector<float> values(512, value);
    const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
    return std::vector<uint8_t>(begin, begin + 2048);
  };
  std::vector<uint8_t> counts(floats(1));
  counts.resize(4);
  model.AddTensor("a.weight", {256, 2}, 0, floats(3));
  matrix.AddTensor("a.weight.in_sum2", {256}, 0, [&] {
    std::vector<uint8_t> sums = floats(1e38f);
    sums.resize(1024);
    return sums;
  }());
  matrix.AddTensor("a.weight.counts", {1}, 0, counts);
  WriteBytes(In(folder, "in.gguf"), model.Build());
  WriteBytes(In(folder, "matrix.gguf"), matrix.Build());
  for (const char* type :
       {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q4_K_S", "Q5_K_S", "Q6_K", "IQ4_NL", "IQ4_XS"}) {
    const Result<QuantiseReport> report =
        Quantise(In(folder, "in.gguf"), In(folder, "out.gguf"),
                 {.type = type, .pure = true, .importance = In(folder, "matrix.gguf")});
    // Blocks that are numbers, or an error that names the tensor.
    if (report.ok()) continue;
    EXPECT_NE(report.error().find("too large for row 0"), std::string::npos) << report.error();
    EXPECT_NE(report.error().find("a.weight"), std::string::npos) << report.error();
  }
}

}  // namespace
}  // namespace quern
