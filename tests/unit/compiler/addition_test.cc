// The bundled model adds: at least 99% of 500 prompts that it was not trained on.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "quern/quern.h"

namespace quern {
namespace {

std::string Answer(Session& session, const std::string& prompt) {
  session.Reset();
  Sampler greedy({});
  std::string answer;
  Result<std::vector<float>> logits = session.Step(*session.Tokenize(prompt));
  for (int i = 0; i < 8; ++i) {
    if (!logits.ok()) return logits.error();
    const int32_t next = greedy.Next(*logits);
    if (session.IsEnd(next)) break;
    answer += session.Piece(next);
    logits = session.Step(std::span(&next, 1));
  }
  return answer;
}

TEST(Addition, Answers500UnseenPrompts) {
  Result<Session> session = Session::Open(QUERN_SOURCE_DIR "/models/addition.gguf");
  ASSERT_TRUE(session.ok()) << session.error();
  std::ifstream cases(QUERN_SOURCE_DIR "/models/addition_test.txt");
  int right = 0, asked = 0;
  for (std::string line; std::getline(cases, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    ++asked;
    const std::string answer = Answer(*session, line.substr(0, equals + 1));
    if (answer == line.substr(equals + 1))
      ++right;
    else
      std::printf("%s answered %s\n", line.c_str(), answer.c_str());
  }
  EXPECT_EQ(asked, 500);
  EXPECT_GE(right, 495);
  std::printf("%d of %d right\n", right, asked);
}

TEST(Session, SaysWhatIsWrong) {
  Result<Session> session = Session::Open(QUERN_SOURCE_DIR "/models/addition.gguf");
  ASSERT_TRUE(session.ok()) << session.error();
  const std::vector<int32_t> wild = {1, 100000};
  EXPECT_FALSE(session->Step(wild).ok());
  EXPECT_FALSE(session->Step({}).ok());
  const std::vector<int32_t> too_long(session->context() + 1, 3);
  EXPECT_FALSE(session->Step(too_long).ok());
  EXPECT_EQ(session->position(), 0);
  EXPECT_FALSE(Session::Open("/nonexistent.gguf").ok());
  EXPECT_FALSE(Session::Open(QUERN_SOURCE_DIR "/models/addition.gguf", {.cpu = "pentium"}).ok());
}

TEST(Session, ThreadsAndChunksDoNotChangeTheBits) {
  const std::string path = QUERN_SOURCE_DIR "/models/addition.gguf";
  Result<Session> one = Session::Open(path, {.threads = 1}), two = Session::Open(path, {.threads = 2});
  ASSERT_TRUE(one.ok() && two.ok());
  const std::vector<int32_t> ids = *one->Tokenize("12+34=46");
  Result<std::vector<float>> first = one->StepAll(ids), second = two->StepAll(ids);
  ASSERT_TRUE(first.ok()) << first.error();
  ASSERT_TRUE(second.ok()) << second.error();
  EXPECT_EQ(*first, *second);
  const std::vector<int32_t> next = {264};
  first = one->Step(next), second = two->Step(next);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

}  // namespace
}  // namespace quern
