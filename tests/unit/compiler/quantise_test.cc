// Quantise of the public interface: a folder becomes a GGUF file of the same model, with its rows in the order of GGUF
// files; what is refused leaves nothing behind. ctest `quantise` holds files to llama.cpp's.
#include "quern/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "support/described_folder.h"
#include "support/gguf_bytes.h"
#include "support/temp_folder.h"
#include "unit/models/interpreted.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using quern::testing::TempFolder;

// Of rows by the graph interpreter, from those that transformers computed for the folder.
double LargestDifference(const std::string& path, const support::DescribedFolder& described) {
  StatusOr<std::shared_ptr<const ModelFile>> file = OpenModelFile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return INFINITY;
  EXPECT_EQ((*file)->kind(), "GGUF v3");
  const auto spec = models::ReadModel(*std::move(file), {.context = described.context, .kv_dtype = DType::kF32});
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return INFINITY;
  models::Interpreted model = models::Interpreted::Make(*spec, hir::FusionPolicy::kDirect);
  const std::vector<double> got = model.Step(described.ids, static_cast<int64_t>(described.ids.size()));
  double largest = got.size() == described.rows.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(got.size(), described.rows.size()); ++i)
    largest = std::max(largest, std::abs(got[i] - described.rows[i]));
  return largest;
}

TEST(Quantise, FoldersBecomeTheSameModels) {
  int turned = 0;
  for (const std::string& path : support::DescribedFolders()) {
    SCOPED_TRACE(path);
    const auto described = support::ReadDescribedFolder(path);
    ASSERT_TRUE(described.ok()) << described.status();
    const TempFolder folder;
    described->Write(folder.path());
    const std::string out = (fs::path(folder.path()) / "out.gguf").string();
    int64_t done = 0;
    const Result<QuantiseReport> report =
        Quantise(folder.path(), out, {.type = "f32", .progress = [&](int64_t now, int64_t) { done = now; }});
    ASSERT_TRUE(report.ok()) << report.error();
    EXPECT_EQ(done, static_cast<int64_t>(report->tensors.size()));
    EXPECT_LT(LargestDifference(out, *described), 5e-4);
    turned += path.find("llama-biases") != std::string::npos;
  }
  EXPECT_EQ(turned, 1);  // rows of weights and of biases
}

std::vector<uint8_t> ModelOf(float value) {
  support::GgufBytes bytes;
  bytes.Put("general.architecture", std::string_view("llama"));
  std::vector<float> weights(2 * 256, 1.0f);
  weights[300] = value;
  const auto* begin = reinterpret_cast<const uint8_t*>(weights.data());
  bytes.AddTensor("blk.0.attn_q.weight", {256, 2}, 0, {begin, begin + weights.size() * sizeof(float)});
  return bytes.Build();
}

TEST(Quantise, NumbersThatNoBlockHolds) {
  for (const char* type : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q4_K_S", "Q5_K_S", "Q6_K",
                           "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0"}) {
    for (const float value : {NAN, std::numeric_limits<float>::infinity(), 1e30f}) {
      const TempFolder folder;
      const fs::path in = fs::path(folder.path()) / "in.gguf", out = fs::path(folder.path()) / "out.gguf";
      const std::vector<uint8_t> bytes = ModelOf(value);
      std::ofstream(in, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      const Result<QuantiseReport> report = Quantise(in.string(), out.string(), {.type = type, .pure = true});
      ASSERT_FALSE(report.ok()) << type << " of " << value;
      EXPECT_NE(report.error().find("the tensor blk.0.attn_q.weight has "), std::string::npos) << report.error();
      EXPECT_NE(report.error().find(" in row 1"), std::string::npos) << report.error();
      EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
    }
  }
}

TEST(Quantise, StopsWhenItIsCancelled) {
  const TempFolder folder;
  CancelToken token;
  token.Cancel();
  const Result<QuantiseReport> report =
      Quantise(QUERN_SOURCE_DIR "/models/addition.gguf", (fs::path(folder.path()) / "out.gguf").string(),
               {.type = "Q8_0", .cancel = &token});
  EXPECT_EQ(report.code(), ErrorCode::kCancelled);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace quern
