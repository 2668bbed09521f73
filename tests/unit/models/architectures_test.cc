// A small model of each architecture against llama.cpp's logits (tests/golden/architectures), by the graph interpreter.

#include "models/architecture.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "import/gguf.h"
#include "interpreted.h"
#include "support/described_model.h"

namespace quern::models {
namespace {

class ArchitectureLogits : public ::testing::TestWithParam<std::string> {};

TEST_P(ArchitectureLogits, AreThoseOfLlamaCpp) {
  const auto described = support::ReadDescribedModel(GetParam());
  ASSERT_TRUE(described.ok()) << described.status();
  auto file = GgufFile::Parse(described->file);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = ReadModel(std::make_shared<const GgufFile>(*std::move(file)),
                              {.context = described->context, .kv_dtype = DType::kF32});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::vector<int32_t>& ids = described->ids;
  const std::vector<float>& rows = described->exact.empty() ? described->rows : described->exact;
  const size_t width = rows.size() / ids.size();
  for (const auto policy : {hir::FusionPolicy::kDirect, hir::FusionPolicy::kFusable}) {
    Interpreted model = Interpreted::Make(*spec, policy);
    // A prompt at once, and the rest one by one: states carry on.
    const size_t prompt = spec->encoder ? ids.size() : 7;
    std::vector<double> got = model.Step({ids.begin(), ids.begin() + prompt}, prompt);
    for (size_t i = prompt; i < ids.size(); ++i) {
      const std::vector<double> row = model.Step({ids[i]}, 1);
      got.insert(got.end(), row.begin(), row.end());
    }
    ASSERT_EQ(got.size(), rows.size());
    double largest = 0;
    size_t where = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double difference = std::abs(got[i] - rows[i]);
      if (!(difference <= largest)) largest = difference, where = i;
    }
    // llama.cpp's GELU is looked up by its operand in f16, whose step is 2^-11 of it.
    EXPECT_LT(largest, 4e-3) << "at row " << where / width << " of " << ids.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ArchitectureLogits, ::testing::ValuesIn(support::DescribedModels()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = std::filesystem::path(info.param).stem().string();
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

StatusOr<ModelSpec> ReadLines(const std::vector<std::string>& lines) {
  QUERN_ASSIGN(const support::DescribedModel model, support::ParseDescribedModel(absl::StrJoin(lines, "\n")));
  QUERN_ASSIGN(GgufFile file, GgufFile::Parse(model.file));
  return ReadModel(std::make_shared<const GgufFile>(std::move(file)), {.context = model.context});
}

// A file without one of its tensors, or with a number that is 0 or far too large, is a model of another shape or an
// error that says what; never a crash.
TEST(Architectures, DamagedModelsAreRefused) {
  for (const std::string& path : support::DescribedModels()) {
    const auto text = support::ReadText(path);
    ASSERT_TRUE(text.ok()) << text.status();
    std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("row") || line.starts_with("exact"); });
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string whole = lines[i];
      if (whole.starts_with("tensor")) {
        lines.erase(lines.begin() + static_cast<int64_t>(i));
        const auto without = ReadLines(lines);
        // Some are optional: biases, norms and factors.
        if (!without.ok()) EXPECT_THAT(without.status().message(), ::testing::HasSubstr("the tensor ")) << whole;
        lines.insert(lines.begin() + static_cast<int64_t>(i), whole);
      } else if (whole.starts_with("uint")) {
        for (const char* value : {"0", "3", "4000000000"}) {
          lines[i] = absl::StrCat(whole.substr(0, whole.rfind(' ')), " ", value);
          const auto changed = ReadLines(lines);
          if (!changed.ok()) EXPECT_FALSE(changed.status().message().empty()) << lines[i];
        }
        lines[i] = whole;
      }
    }
  }
}

TEST(Architectures, EachHasAGoldenModel) {
  std::set<std::string> described;
  for (const std::string& path : support::DescribedModels()) {
    const auto model = support::ReadDescribedModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    described.insert(model->architecture);
  }
  for (const Architecture* each : Architectures()) EXPECT_TRUE(described.contains(each->name)) << each->name;
}

}  // namespace
}  // namespace quern::models
