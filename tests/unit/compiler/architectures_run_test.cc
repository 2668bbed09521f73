// The small models of tests/golden/architectures, and those of tests/golden/adapters with an adapter beside them,
// compiled: a session of each, and many sequences in one, have the logits of llama.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "quern/embed.h"
#include "quern/quern.h"
#include "quern/sequences.h"
#include "support/described_model.h"
#include "support/temporary_file.h"

namespace quern {
namespace {

// llama.cpp's GELU is looked up by its operand in f16, whose step is 2^-11 of it.
constexpr double kTolerance = 4e-3;
// With an adapter of f16, beside which it rounds to f16 what is multiplied.
constexpr double kAdapterTolerance = 2e-2;
// Of packed weights: activations rounded to int8 move llama.cpp's own logits by 0.06 from those of exact ones, and the
// first rounding that falls the other way moves all that follow.
constexpr double kPackedTolerance = 0.1;

struct Described {
  // Of a model, or of an adapter, whose model is then read too.
  explicit Described(const std::string& path)
      : golden(support::ReadDescribedModel(path).value()),
        with_adapter(!golden.base.empty()),
        model(with_adapter ? support::ReadDescribedModel(golden.base).value() : golden),
        file(model.file),
        adapter(golden.file),
        width(static_cast<int64_t>(golden.rows.size() / model.ids.size())) {}
  // The largest difference of `logits` from those after the first `count` ids.
  double Difference(const std::vector<float>& logits, int64_t count) const {
    if (static_cast<int64_t>(logits.size()) != width) return INFINITY;
    double largest = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double difference = std::abs(logits[i] - golden.rows[(count - 1) * width + i]);
      largest = difference >= largest ? difference : std::isnan(difference) ? INFINITY : largest;
    }
    return largest;
  }
  std::span<const int32_t> Ids(int64_t from, int64_t count) const { return std::span(model.ids).subspan(from, count); }
  Options options() const {
    Options options{.threads = 2, .context = model.context};
    if (with_adapter) options.lora = {{adapter.path(), golden.scale}};
    return options;
  }
  double tolerance() const {
    return with_adapter ? kAdapterTolerance : golden.exact.empty() ? kTolerance : kPackedTolerance;
  }

  support::DescribedModel golden;
  bool with_adapter;
  support::DescribedModel model;
  support::TemporaryFile file, adapter;
  int64_t width;
};

std::string Golden(const std::string& name) { return QUERN_SOURCE_DIR "/tests/golden/architectures/" + name + ".txt"; }

class ArchitectureRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(ArchitectureRuns, InASession) {
  const Described described(GetParam());
  Result<Session> session = Session::Open(described.file.path(), described.options());
  ASSERT_TRUE(session.ok()) << session.error();
  // A second text begins as if there had been none before it.
  for (const int64_t prompt : {7, 11}) {
    session->Reset();
    const Result<std::vector<float>> rows = session->StepAll(described.Ids(0, prompt));
    ASSERT_TRUE(rows.ok()) << rows.error();
    Result<std::vector<float>> all = rows;
    for (int64_t i = 0; i < prompt; ++i) {
      const auto first = all->begin() + i * described.width;
      EXPECT_LT(described.Difference({first, first + described.width}, i + 1), described.tolerance()) << "row " << i;
    }
    for (int64_t i = prompt; i < static_cast<int64_t>(described.model.ids.size()); ++i) {
      Result<std::vector<float>> row = session->Step(described.Ids(i, 1));
      ASSERT_TRUE(row.ok()) << row.error();
      EXPECT_LT(described.Difference(*row, i + 1), described.tolerance())
          << "token " << i << " after a prompt of " << prompt;
    }
  }
}

// Weights whose codes are looked up in grids, of every such format.
TEST(PackedWeights, AreExactOnEveryLevel) {
  Described described(Golden("llama-grids"));
  described.golden.rows = described.golden.exact;
  const int64_t all = static_cast<int64_t>(described.model.ids.size());
  for (const char* const cpu : {"sse4", "avx2", "avx512", "native"}) {
    Options options = described.options();
    options.exact = true;
    options.cpu = cpu;
    Result<Session> session = Session::Open(described.file.path(), options);
    if (session.code() == ErrorCode::kInvalid && std::string_view(cpu).starts_with("avx"))
      continue;  // not of this machine
    ASSERT_TRUE(session.ok()) << session.error();
    const Result<std::vector<float>> rows = session->StepAll(described.Ids(0, 11));
    ASSERT_TRUE(rows.ok()) << rows.error();
    for (int64_t i = 0; i < 11; ++i) {
      const auto first = rows->begin() + i * described.width;
      EXPECT_LT(described.Difference({first, first + described.width}, i + 1), 1e-3) << cpu << ", row " << i;
    }
    for (int64_t i = 11; i < all; ++i) {
      const Result<std::vector<float>> row = session->Step(described.Ids(i, 1));
      ASSERT_TRUE(row.ok()) << row.error();
      EXPECT_LT(described.Difference(*row, i + 1), 1e-3) << cpu << ", token " << i;
    }
  }
}

// Rows that pick experts, and weights of grids, by blocks of threads.
TEST(DeviceSession, HasTheLogits) {
  for (const char* const name : {"llama-moe", "qwen3moe", "llama-grids"}) {
    Described described(Golden(name));
    if (!described.golden.exact.empty()) described.golden.rows = described.golden.exact;
    Options options = described.options();
    options.device = "emulated";
    options.exact = true;
    Result<Session> session = Session::Open(described.file.path(), options);
    ASSERT_TRUE(session.ok()) << name << ": " << session.error();
    constexpr int64_t kPrompt = 11;
    const Result<std::vector<float>> rows = session->StepAll(described.Ids(0, kPrompt));
    ASSERT_TRUE(rows.ok()) << name << ": " << rows.error();
    for (int64_t i = 0; i < kPrompt; ++i) {
      const auto first = rows->begin() + i * described.width;
      EXPECT_LT(described.Difference({first, first + described.width}, i + 1), kTolerance) << name << ", row " << i;
    }
    for (int64_t i = kPrompt; i < kPrompt + 2; ++i) {
      const Result<std::vector<float>> row = session->Step(described.Ids(i, 1));
      ASSERT_TRUE(row.ok()) << name << ": " << row.error();
      EXPECT_LT(described.Difference(*row, i + 1), kTolerance) << name << ", token " << i;
    }
  }
}

// With Options::invariant the tokens after a prompt have the same bits by ones and by several. In these models one
// kernel computes more of a row when it is the only one: the norm after a layer and that before the output.
TEST(InvariantSession, HasTheBitsOfAnyStep) {
  for (const char* const name : {"gemma2", "gemma3", "olmo2", "llama-moe"}) {
    const Described described(Golden(name));
    Options options = described.options();
    options.invariant = true;
    const int64_t all = static_cast<int64_t>(described.model.ids.size());
    std::vector<float> wanted;
    for (const int64_t length : {1, 2, 3, 8}) {
      Result<Session> session = Session::Open(described.file.path(), options);
      ASSERT_TRUE(session.ok()) << session.error();
      std::vector<float> logits;
      for (int64_t at = 0; at < all;) {
        const int64_t count = at == 0 ? 9 : std::min(length, all - at);
        Result<std::vector<float>> rows = session->StepAll(described.Ids(at, count));
        ASSERT_TRUE(rows.ok()) << rows.error();
        logits.insert(logits.end(), rows->begin(), rows->end());
        at += count;
      }
      if (length == 1) wanted = logits;
      EXPECT_EQ(logits, wanted) << name << " by " << length;
    }
  }
}

// A prompt has the same bits in parts and as a whole, of models whose states a long one would meet in chunks too.
TEST(InvariantSession, PromptsInParts) {
  for (const char* const name : {"qwen3next", "mamba", "mamba2"}) {
    const Described described(Golden(name));
    Options options = described.options();
    options.invariant = true;
    std::vector<int32_t> prompt(described.model.ids.begin(), described.model.ids.end());
    prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 6);
    std::vector<float> wanted;
    for (const size_t first : {19, 9, 10}) {
      Result<Session> session = Session::Open(described.file.path(), options);
      ASSERT_TRUE(session.ok()) << session.error();
      Result<std::vector<float>> logits = session->Step(std::span(prompt).first(first));
      if (first < 19) logits = session->Step(std::span(prompt).subspan(first));
      ASSERT_TRUE(logits.ok()) << logits.error();
      if (first == 19) wanted = *logits;
      EXPECT_EQ(*logits, wanted) << name << " after " << first;
    }
  }
}

// Sequences that begin at different steps, in portions of 1 to 5 tokens, each step of as many as are not done.
TEST_P(ArchitectureRuns, InSequences) {
  const Described described(GetParam());
  Result<Sequences> model = Sequences::Open(described.file.path(), described.options(), {.most = 4});
  ASSERT_TRUE(model.ok()) << model.error();
  const int64_t all = static_cast<int64_t>(described.model.ids.size());
  std::vector<int> numbers;
  for (int round = 0; round < 14; ++round) {
    if (round % 2 == 0 && numbers.size() < 4) numbers.push_back(*model->Add());
    std::vector<SequenceStep> steps;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t from = model->length(numbers[i]), count = std::min<int64_t>(all - from, 1 + (round + 2 * i) % 5);
      if (count > 0) steps.push_back({numbers[i], described.Ids(from, count), (round + i) % 3 != 0});
    }
    if (steps.empty()) break;
    Result<std::vector<std::vector<float>>> logits = model->Step(steps);
    ASSERT_TRUE(logits.ok()) << logits.error();
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t length = model->length(steps[i].sequence);
      if (!steps[i].logits) {
        EXPECT_TRUE((*logits)[i].empty());
      } else {
        EXPECT_LT(described.Difference((*logits)[i], length), described.tolerance())
            << "round " << round << ", step " << i;
      }
    }
  }
  for (const int number : numbers) EXPECT_EQ(model->length(number), all);
}

std::vector<std::string> Decoders(std::vector<std::string> paths) {
  std::erase_if(paths, [](const std::string& path) { return path.find("bert") != std::string::npos; });
  return paths;
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, ArchitectureRuns, ::testing::ValuesIn(Decoders(support::DescribedModels())), NameOf);
INSTANTIATE_TEST_SUITE_P(GoldenAdapters, ArchitectureRuns, ::testing::ValuesIn(Decoders(support::DescribedAdapters())),
                         NameOf);

class EncoderRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(EncoderRuns, GiveTheRowsOfLlamaCpp) {
  const Described described(GetParam());
  Result<Embedder> model = Embedder::Open(described.file.path(), described.options());
  ASSERT_TRUE(model.ok()) << model.error();
  const int64_t width = model->width(), all = static_cast<int64_t>(described.model.ids.size());
  ASSERT_EQ(width, described.width);
  Result<std::vector<float>> rows = model->Rows(described.Ids(0, all));
  ASSERT_TRUE(rows.ok()) << rows.error();
  const std::vector<float>& values = *rows;
  double largest = 0;
  std::vector<double> sum(width, 0);
  for (int64_t i = 0; i < all * width; ++i) {
    largest = std::max<double>(largest, std::abs(values[i] - described.golden.rows[i]));
    sum[i % width] += described.golden.rows[i];
  }
  EXPECT_LT(largest, described.tolerance());
  double length = 0;
  for (const double value : sum) length += value * value;
  length = std::sqrt(length);
  Result<std::vector<float>> mean = model->Embed(described.Ids(0, all)),
                             last = model->Embed(described.Ids(0, all), Pooling::kLast);
  for (int64_t i = 0; i < width; ++i) EXPECT_NEAR((*mean)[i], sum[i] / length, 1e-3);
  double cosine = 0, own = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double row = described.golden.rows[(all - 1) * width + i];
    cosine += (*last)[i] * row;
    own += row * row;
  }
  EXPECT_NEAR(cosine / std::sqrt(own), 1, 1e-5);
  EXPECT_EQ(model->Rows({}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(model->Rows(std::vector<int32_t>(65, 1)).code(), ErrorCode::kInvalid);
  EXPECT_EQ(model->Rows(std::vector<int32_t>{61}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(Session::Open(described.file.path()).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(Sequences::Open(described.file.path()).code(), ErrorCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(Golden, EncoderRuns, ::testing::Values(Golden("bert"), Golden("nomic-bert")), NameOf);
INSTANTIATE_TEST_SUITE_P(GoldenAdapters, EncoderRuns,
                         ::testing::Values(QUERN_SOURCE_DIR "/tests/golden/adapters/bert.txt",
                                           QUERN_SOURCE_DIR "/tests/golden/adapters/nomic-bert.txt"),
                         NameOf);

TEST(CarriedStates, CannotBeRewound) {
  const Described described(Golden("mamba"));
  Result<Session> session = Session::Open(described.file.path(), described.options());
  ASSERT_TRUE(session.ok()) << session.error();
  ASSERT_TRUE(session->Step(described.Ids(0, 5)).ok());
  EXPECT_EQ(session->Rewind(3).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(session->position(), 5);
  EXPECT_TRUE(session->Rewind(5).ok());
  EXPECT_TRUE(session->Rewind(0).ok());
  EXPECT_EQ(Embedder::Open(described.file.path()).code(), ErrorCode::kUnsupported);
}

// Two sequences with a beginning in common: it is computed once, and neither sees what the other writes.
TEST(SequencesApi, ForksShareABeginning) {
  const Described described(Golden("gemma3"));
  Result<Sequences> model = Sequences::Open(described.file.path(), described.options(), {.most = 3, .tokens = 160});
  ASSERT_TRUE(model.ok()) << model.error();
  const int a = *model->Add();
  const int64_t room = model->room();
  const SequenceStep first[] = {{a, described.Ids(0, 9)}};
  ASSERT_TRUE(model->Step(first).ok());
  EXPECT_EQ(model->room(), room - 32);
  const int b = *model->Fork(a, 6);
  EXPECT_EQ(model->length(b), 6);
  EXPECT_EQ(model->room(), room - 32) << "shared";
  // b goes another way, then a goes on: its tokens 6 to 8 are still its own.
  const int32_t other[] = {5, 6, 7, 8};
  const SequenceStep apart[] = {{b, other, false}};
  ASSERT_TRUE(model->Step(apart).ok());
  EXPECT_EQ(model->room(), room - 64) << "copied when it was written to";
  const SequenceStep more[] = {{a, described.Ids(9, 4)}};
  Result<std::vector<std::vector<float>>> logits = model->Step(more);
  ASSERT_TRUE(logits.ok()) << logits.error();
  EXPECT_LT(described.Difference((*logits)[0], 13), described.tolerance());
  // b returns to the common text.
  ASSERT_TRUE(model->Truncate(b, 6).ok());
  const SequenceStep back[] = {{b, described.Ids(6, 7)}};
  logits = model->Step(back);
  ASSERT_TRUE(logits.ok()) << logits.error();
  EXPECT_LT(described.Difference((*logits)[0], 13), described.tolerance());
  ASSERT_TRUE(model->Remove(a).ok());
  ASSERT_TRUE(model->Remove(b).ok());
  EXPECT_EQ(model->room(), room);
}

TEST(SequencesApi, AreSavedAndLoaded) {
  const Described described(Golden("llama"));
  Result<Sequences> model = Sequences::Open(described.file.path(), described.options(), {.most = 2});
  ASSERT_TRUE(model.ok()) << model.error();
  const SequenceStep first[] = {{*model->Add(), described.Ids(0, 9), false}};
  ASSERT_TRUE(model->Step(first).ok());
  Result<std::vector<uint8_t>> saved = model->Save(0);
  ASSERT_TRUE(saved.ok()) << saved.error();
  Result<Sequences> other = Sequences::Open(described.file.path(), described.options(), {.most = 2});
  ASSERT_TRUE(other->Add().ok());  // so that it lies elsewhere
  Result<int> loaded = other->Load(*saved);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(other->length(*loaded), 9);
  const SequenceStep more[] = {{*loaded, described.Ids(9, 4)}};
  Result<std::vector<std::vector<float>>> logits = other->Step(more);
  ASSERT_TRUE(logits.ok()) << logits.error();
  EXPECT_LT(described.Difference((*logits)[0], 13), described.tolerance());
  // Damaged bytes, of any length.
  ASSERT_TRUE(other->Remove(*loaded).ok());
  const int64_t room = other->room();
  for (size_t size = 0; size < saved->size(); size += 101)
    EXPECT_EQ(other->Load(std::span(*saved).first(size)).code(), ErrorCode::kInvalid) << size;
  for (size_t at = 0; at < 32; ++at) {  // before the rows
    std::vector<uint8_t> damaged = *saved;
    damaged[at] ^= 0x5a;
    EXPECT_EQ(other->Load(damaged).code(), ErrorCode::kInvalid) << at;
  }
  EXPECT_EQ(other->room(), room);
}

// To the bit the same alone and beside others, in any number of them.
TEST(SequencesApi, AreInvariant) {
  for (const char* const name : {"qwen3", "gemma3", "gpt2", "llama-moe", "mamba", "mamba2", "qwen3next"}) {
    const Described described(Golden(name));
    Options options = described.options();
    options.invariant = true;
    const int64_t all = static_cast<int64_t>(described.model.ids.size());
    std::vector<std::vector<float>> wanted;
    for (const int count : {1, 11, 3}) {
      Result<Sequences> model = Sequences::Open(described.file.path(), options, {.most = 11});
      ASSERT_TRUE(model.ok()) << model.error();
      for (int i = 0; i < count; ++i) ASSERT_TRUE(model->Add().ok());
      for (int64_t step = 0; step < all - 8; ++step) {
        std::vector<SequenceStep> steps;
        for (int i = 0; i < count; ++i)
          steps.push_back({i, step == 0 ? described.Ids(0, 9) : described.Ids(8 + step, 1)});
        Result<std::vector<std::vector<float>>> logits = model->Step(steps);
        ASSERT_TRUE(logits.ok()) << logits.error();
        if (count == 1) wanted.push_back((*logits)[0]);
        for (const std::vector<float>& each : *logits) EXPECT_EQ(each, wanted[step]) << name << ", step " << step;
      }
    }
  }
}

TEST(SequencesApi, ErrorsChangeNothing) {
  const Described described(Golden("llama"));
  EXPECT_EQ(Sequences::Open(described.file.path(), described.options(), {.most = 0}).code(), ErrorCode::kInvalid);
  Result<Sequences> model = Sequences::Open(described.file.path(), described.options(), {.most = 2, .tokens = 32});
  ASSERT_TRUE(model.ok()) << model.error();
  const int a = *model->Add(), b = *model->Add();
  EXPECT_EQ(model->Add().code(), ErrorCode::kResource);
  EXPECT_EQ(model->Fork(a, 1).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(model->Truncate(7, 0).code(), ErrorCode::kUnknownName);
  EXPECT_EQ(model->length(7), -1);
  const int32_t wrong[] = {61}, good[] = {3};
  const std::vector<int32_t> many(65, 3);
  auto code = [&](std::vector<SequenceStep> steps) { return model->Step(steps).code(); };
  EXPECT_EQ(code({{a, wrong}}), ErrorCode::kInvalid);
  EXPECT_EQ(code({{a, {}}}), ErrorCode::kInvalid);
  EXPECT_EQ(code({{a, good}, {a, good}}), ErrorCode::kInvalid);
  EXPECT_EQ(code({{9, good}}), ErrorCode::kUnknownName);
  EXPECT_EQ(code({{a, many}}), ErrorCode::kOutOfRange);
  EXPECT_EQ(code({{a, good}, {b, good}}), ErrorCode::kResource) << "one block";
  EXPECT_EQ(model->length(a), 0);
  EXPECT_EQ(code({{a, good}}), ErrorCode::kNone);
  EXPECT_EQ(code({}), ErrorCode::kNone);
}

}  // namespace
}  // namespace quern
