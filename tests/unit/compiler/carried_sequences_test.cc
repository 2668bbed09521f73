// Models that carry states from token to token, many sequences in one: each has the logits that it has alone, whoever
// had its place before, and whatever became of a run that did not end.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "quern/quern.h"
#include "quern/sequences.h"
#include "support/described_model.h"
#include "support/temporary_file.h"

namespace quern {
namespace {

using Logits = std::vector<float>;

constexpr int64_t kContext = 400;

class CarriedSequences : public ::testing::TestWithParam<const char*> {
 protected:
  CarriedSequences()
      : described_(support::ReadDescribedModel(std::string(QUERN_SOURCE_DIR "/tests/golden/architectures/") +
                                               GetParam() + ".txt")
                       .value()),
        file_(described_.file) {}

  Options Invariant() const { return {.threads = 2, .invariant = true, .context = kContext}; }
  Sequences Open(const Options& options, int most = 4) const {
    Result<Sequences> model = Sequences::Open(file_.path(), options, {.most = most});
    EXPECT_TRUE(model.ok()) << model.error();
    return std::move(*model);
  }
  // Ids that differ from text to text.
  static std::vector<int32_t> Ids(int text, int64_t count) {
    std::vector<int32_t> ids(count);
    for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((i * i + 7 * i + 13 * text + 1) % 61);
    return ids;
  }
  static Logits StepOne(Sequences& model, int sequence, std::span<const int32_t> ids) {
    const SequenceStep step[] = {{sequence, ids}};
    Result<std::vector<Logits>> logits = model.Step(step);
    EXPECT_TRUE(logits.ok()) << logits.error();
    return logits.ok() ? (*logits)[0] : Logits();
  }
  // The logits after `prompt` tokens of a text and after each of those behind, in a model of its own.
  std::vector<Logits> Alone(int text, int64_t prompt, int64_t all, const Options& options) const {
    Sequences model = Open(options, 1);
    const std::vector<int32_t> ids = Ids(text, all);
    const int sequence = *model.Add();
    std::vector<Logits> rows = {StepOne(model, sequence, std::span(ids).first(prompt))};
    for (int64_t i = prompt; i < all; ++i) rows.push_back(StepOne(model, sequence, std::span(ids).subspan(i, 1)));
    return rows;
  }

  support::DescribedModel described_;
  support::TemporaryFile file_;
};

TEST_P(CarriedSequences, EachAsAlone) {
  const Options options = Invariant();
  struct Text {
    int64_t prompt, begins;
  };
  const Text texts[] = {{11, 0}, {1, 0}, {5, 2}, {23, 3}};
  constexpr int64_t kMore = 6;
  std::vector<std::vector<Logits>> wanted;
  for (int t = 0; t < 4; ++t) wanted.push_back(Alone(t, texts[t].prompt, texts[t].prompt + kMore, options));
  Sequences model = Open(options);
  EXPECT_FALSE(model.rewinds());
  std::vector<int> numbers(4, -1);
  std::vector<size_t> had(4, 0);
  for (int64_t round = 0; round < kMore + 4; ++round) {
    std::vector<SequenceStep> steps;
    std::vector<std::vector<int32_t>> ids;
    ids.reserve(4);
    std::vector<int> which;
    for (const int t : {2, 0, 3, 1}) {  // not in the order of their numbers
      const int64_t since = round - texts[t].begins;
      if (since < 0 || since > kMore) continue;
      if (since == 0) numbers[t] = *model.Add();
      const std::vector<int32_t> all = Ids(t, texts[t].prompt + kMore);
      const int64_t from = since == 0 ? 0 : texts[t].prompt + since - 1;
      ids.emplace_back(all.begin() + from, all.begin() + texts[t].prompt + since);
      steps.push_back({numbers[t], ids.back()});
      which.push_back(t);
    }
    const Result<std::vector<Logits>> logits = model.Step(steps);
    ASSERT_TRUE(logits.ok()) << logits.error();
    for (size_t i = 0; i < which.size(); ++i)
      EXPECT_EQ((*logits)[i], wanted[which[i]][had[which[i]]++]) << "text " << which[i] << ", round " << round;
  }
}

TEST_P(CarriedSequences, ALongPromptBesideOthers) {
  for (const bool invariant : {false, true}) {
    Options options = Invariant();
    options.invariant = invariant;
    Sequences model = Open(options, 13);
    const std::vector<int32_t> prompt = Ids(20, 300);
    std::vector<SequenceStep> steps;
    std::vector<std::vector<int32_t>> ids;
    for (int t = 0; t < 11; ++t) {
      ids.push_back(Ids(t, 9 + t));
      StepOne(model, *model.Add(), std::span(ids[t]).first(8 + t));
      steps.push_back({t, std::span(ids[t]).last(1)});
    }
    const int64_t before = model.steps();
    steps.insert(steps.begin() + 3, {*model.Add(), prompt});
    steps.push_back({*model.Add(), std::span(prompt).first(257)});
    const Result<std::vector<Logits>> logits = model.Step(steps);
    ASSERT_TRUE(logits.ok()) << logits.error();
    EXPECT_EQ(model.steps() - before, invariant ? 6 : 1 + 2 + 1 + 1);
    Result<Session> session = Session::Open(file_.path(), options);
    ASSERT_TRUE(session.ok()) << session.error();
    for (size_t i = 0; i < steps.size(); ++i) {
      session->Reset();
      const size_t count = steps[i].ids.size();
      const std::vector<int32_t> all = count == 1 ? ids[steps[i].sequence] : prompt;
      Result<Logits> wanted =
          count == 1 ? session->Step(std::span(all).first(all.size() - 1)) : session->Step(std::span(all).first(count));
      if (count == 1) wanted = session->Step(std::span(all).last(1));
      ASSERT_TRUE(wanted.ok()) << wanted.error();
      for (size_t j = 0; j < wanted->size(); ++j) ASSERT_NEAR((*logits)[i][j], (*wanted)[j], 2e-3) << i << ", " << j;
      EXPECT_EQ(model.length(steps[i].sequence), count == 1 ? static_cast<int64_t>(all.size()) : count);
    }
  }
}

TEST_P(CarriedSequences, ForksAreWhole) {
  const Options options = Invariant();
  const std::vector<int32_t> ids = Ids(1, 14), other = Ids(2, 3);
  const std::vector<Logits> wanted = Alone(1, 11, 14, options);
  Sequences model = Open(options);
  const int a = *model.Add();
  StepOne(model, a, std::span(ids).first(11));
  const Result<int> b = model.Fork(a, 11), empty = model.Fork(a, 0), part = model.Fork(a, 5);
  ASSERT_TRUE(b.ok() && empty.ok());
  EXPECT_EQ(part.code(), ErrorCode::kUnsupported);
  EXPECT_NE(part.error().find("not one after 5"), std::string::npos) << part.error();
  EXPECT_EQ(model.Fork(a, 12).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(model.Truncate(a, 5).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(model.Truncate(a, 12).code(), ErrorCode::kOutOfRange);
  EXPECT_TRUE(model.Truncate(a, 11).ok());
  EXPECT_EQ(model.length(a), 11);
  EXPECT_EQ(model.length(*b), 11);
  EXPECT_EQ(model.length(*empty), 0);
  // b goes another way, beside a; then a is ended, and its place given to others.
  const SequenceStep apart[] = {{*b, std::span(other).first(1)}, {a, std::span(ids).subspan(11, 1)}};
  const Result<std::vector<Logits>> logits = model.Step(apart);
  ASSERT_TRUE(logits.ok()) << logits.error();
  EXPECT_NE((*logits)[0], wanted[1]);
  EXPECT_EQ((*logits)[1], wanted[1]);
  const int c = *model.Fork(a, 12);
  ASSERT_TRUE(model.Remove(a).ok());
  StepOne(model, *empty, std::span(ids).first(11));
  EXPECT_EQ(StepOne(model, *empty, std::span(ids).subspan(11, 1)), wanted[1]);
  EXPECT_EQ(StepOne(model, c, std::span(ids).subspan(12, 1)), wanted[2]);
}

// Of the last owner's state nothing is left, not even what is no number.
TEST_P(CarriedSequences, ANewSequenceBeginsAtZeros) {
  const Options options = Invariant();
  const std::vector<int32_t> ids = Ids(3, 12);
  const std::vector<Logits> wanted = Alone(3, 1, 12, options), prompt = Alone(3, 11, 12, options);
  Sequences model = Open(options, 2);
  const int a = *model.Add();
  StepOne(model, a, Ids(4, 9));
  std::vector<uint8_t> poison = *model.Save(a);
  // All numbers behind the mark and the counts, but the bytes of rows: as floats those are next to nothing.
  for (size_t at = 24; at + sizeof(float) <= poison.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &poison[at], sizeof value);
    if (!(std::abs(value) < 1e-20f)) std::memset(&poison[at], 0xff, sizeof value);
  }
  ASSERT_TRUE(model.Remove(a).ok());
  for (int round = 0; round < 5; ++round) {
    const Result<int> b = model.Load(poison);
    ASSERT_TRUE(b.ok()) << b.error();
    EXPECT_TRUE(std::isnan(StepOne(model, *b, std::span(ids).first(1))[0]));
    if (round % 2 == 0) {
      ASSERT_TRUE(model.Truncate(*b, 0).ok());
      EXPECT_EQ(StepOne(model, *b, std::span(ids).first(11)), prompt[0]) << round;
      EXPECT_EQ(StepOne(model, *b, std::span(ids).subspan(11)), prompt[1]) << round;
    }
    ASSERT_TRUE(model.Remove(*b).ok());
    const int c = *model.Add();
    for (int i = 0; i < 12; ++i) EXPECT_EQ(StepOne(model, c, std::span(ids).subspan(i, 1)), wanted[i]) << round;
    ASSERT_TRUE(model.Remove(c).ok());
  }
}

// Sessions and sequences go on from what the other has saved.
TEST_P(CarriedSequences, AreSavedAndLoaded) {
  const Options options = Invariant();
  const std::vector<int32_t> ids = Ids(5, 40);
  const std::vector<Logits> wanted = Alone(5, 35, 38, options);
  Sequences model = Open(options);
  const int a = *model.Add();
  StepOne(model, a, std::span(ids).first(35));
  Result<std::vector<uint8_t>> saved = model.Save(a);
  ASSERT_TRUE(saved.ok()) << saved.error();
  Result<Session> session = Session::Open(file_.path(), options);
  ASSERT_TRUE(session.ok()) << session.error();
  ASSERT_TRUE(session->Load(*saved).ok());
  EXPECT_EQ(session->position(), 35);
  const auto near = [](const Logits& got, const Logits& all) {
    for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(got[i], all[i], 2e-3) << i;
  };
  near(*session->Step(std::span(ids).subspan(35, 1)), wanted[1]);
  saved = session->Save();
  ASSERT_TRUE(saved.ok()) << saved.error();
  Result<int> b = model.Load(*saved);
  ASSERT_TRUE(b.ok()) << b.error();
  EXPECT_EQ(model.length(*b), 36);
  near(StepOne(model, *b, std::span(ids).subspan(36, 1)), wanted[2]);
  // What a sequence wrote is what a sequence reads, to the bit; a itself has not moved.
  saved = model.Save(a);
  b = model.Load(*saved);
  ASSERT_TRUE(b.ok()) << b.error();
  EXPECT_EQ(StepOne(model, *b, std::span(ids).subspan(35, 1)), wanted[1]);
  EXPECT_EQ(StepOne(model, a, std::span(ids).subspan(35, 1)), wanted[1]);
  // Of no tokens there is no state.
  Result<int> none = model.Load(*Session::Open(file_.path(), options)->Save());
  ASSERT_TRUE(none.ok()) << none.error();
  EXPECT_EQ(model.length(*none), 0);
  EXPECT_EQ(StepOne(model, *none, std::span(ids).first(35)), wanted[0]);
  ASSERT_TRUE(model.Remove(*none).ok());
  for (size_t size = 0; size < saved->size(); size += 97)
    EXPECT_EQ(model.Load(std::span(*saved).first(size)).code(), ErrorCode::kInvalid) << size;
  EXPECT_EQ(session->Load(std::span(*saved).first(saved->size() - 1)).code(), ErrorCode::kInvalid);
}

// A run that does not end leaves states as they were, wherever it was stopped.
TEST_P(CarriedSequences, ARunThatIsStoppedChangesNothing) {
  CancelToken cancel;
  Options options = Invariant();
  const std::vector<int32_t> ids = Ids(6, 14);
  const std::vector<Logits> wanted = Alone(6, 11, 14, options);
  options.cancel = &cancel;
  Sequences model = Open(options, 3);
  const int a = *model.Add(), b = *model.Add();
  StepOne(model, a, std::span(ids).first(11));
  StepOne(model, b, std::span(ids).first(11));
  const SequenceStep steps[] = {{a, std::span(ids).subspan(11, 1)}, {b, std::span(ids).subspan(11, 1)}};
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int fork = *model.Fork(a, 11);
    const SequenceStep forked[] = {{fork, std::span(ids).subspan(11, 1)}, {b, std::span(ids).subspan(11, 1)}};
    if (attempt == 0) cancel.Cancel();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(20 * attempt));
      cancel.Cancel();
    });
    const Result<std::vector<Logits>> logits = model.Step(forked);
    other.join();
    cancel.Reset();
    if (logits.ok()) {
      EXPECT_EQ((*logits)[1], wanted[1]);
      ASSERT_TRUE(model.Remove(fork).ok());
      ASSERT_TRUE(model.Remove(b).ok());
      ASSERT_EQ(*model.Fork(a, 11), b);
      continue;
    }
    EXPECT_EQ(logits.code(), ErrorCode::kCancelled);
    EXPECT_EQ(model.length(fork), 11);
    EXPECT_EQ(model.length(b), 11);
    ASSERT_TRUE(model.Remove(fork).ok());
  }
  const Result<std::vector<Logits>> logits = model.Step(steps);
  ASSERT_TRUE(logits.ok()) << logits.error();
  EXPECT_EQ((*logits)[0], wanted[1]);
  EXPECT_EQ((*logits)[1], wanted[1]);
}

std::string NameOf(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, CarriedSequences, ::testing::Values("mamba", "mamba2-groups", "qwen3next"), NameOf);

}  // namespace
}  // namespace quern
