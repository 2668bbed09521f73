// Text through the public interface: tokenizers, streams, going back, chat templates.
#include <gtest/gtest.h>

#include <string>

#include "quern/chat.h"
#include "quern/quern.h"

namespace quern {
namespace {

constexpr const char* kModel = QUERN_SOURCE_DIR "/models/addition.gguf";
using Ids = std::vector<int32_t>;

TEST(TextApi, ASessionsTokenizerIsTheFiles) {
  Result<Session> session = Session::Open(kModel);
  Result<Tokenizer> own = Tokenizer::Open(kModel);
  ASSERT_TRUE(session.ok() && own.ok()) << session.error() << own.error();
  Result<Tokenizer> tokenizer = session->tokenizer();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  const Ids ids = own->Encode("27+58=");
  EXPECT_EQ(tokenizer->Encode("27+58="), ids);
  EXPECT_EQ(*session->Tokenize("27+58="), ids);
  EXPECT_EQ(ids.front(), own->begin());
  EXPECT_EQ(own->Encode("27+58=", {.begin = false}), Ids(ids.begin() + 1, ids.end()));
  EXPECT_EQ(own->Decode(ids), "27+58=");
  EXPECT_EQ(own->Encode("1</s>").back(), own->end());
  EXPECT_NE(own->Encode("1</s>", {.parse_special = false}).back(), own->end());
  for (const int32_t id : {-1, own->size(), INT32_MAX}) {
    EXPECT_EQ(own->Piece(id, true), "");
    EXPECT_FALSE(own->IsEnd(id));
  }
  EXPECT_EQ(own->Decode(Ids{-1, ids[1], INT32_MAX}), "2");
  EXPECT_EQ(Tokenizer::Open("/no/such/file").code(), ErrorCode::kResource);
}

TEST(TextApi, StreamsAreWholeCharacters) {
  Result<Tokenizer> tokenizer = Tokenizer::Open(kModel);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  TextStream stream(*tokenizer);
  std::string text;
  // Spelled in byte tokens.
  for (const int32_t id : tokenizer->Encode("1\u00e9\U0001f999\xff", {.begin = false})) {
    const std::string part = stream.Add(id);
    EXPECT_TRUE(part.empty() || (static_cast<uint8_t>(part[0]) & 0xc0) != 0x80) << "no part begins inside a character";
    text += part;
  }
  EXPECT_EQ(text + stream.Flush(), "1\u00e9\U0001f999\ufffd");
  TextStream stopping(*tokenizer, {"+5"});
  text.clear();
  for (const int32_t id : tokenizer->Encode("27+58")) text += stopping.Add(id);
  EXPECT_EQ(text + stopping.Flush(), "27");
  EXPECT_TRUE(stopping.stopped());
}

TEST(TextApi, RewindGoesOnFromThere) {
  Result<Session> session = Session::Open(kModel);
  ASSERT_TRUE(session.ok()) << session.error();
  const Ids ids = *session->Tokenize("27+58="), other = *session->Tokenize("99", {.begin = false});
  const std::span<const int32_t> head(ids.data(), 5), tail(ids.data() + 5, ids.size() - 5);
  ASSERT_TRUE(session->Step(head).ok());
  Result<std::vector<float>> want = session->Step(tail);
  ASSERT_TRUE(want.ok()) << want.error();
  ASSERT_TRUE(session->Rewind(5).ok());
  EXPECT_EQ(session->position(), 5);
  ASSERT_TRUE(session->Step(other).ok());
  ASSERT_TRUE(session->Rewind(5).ok());
  Result<std::vector<float>> got = session->Step(tail);
  ASSERT_TRUE(got.ok()) << got.error();
  EXPECT_EQ(*got, *want) << "what was taken back leaves nothing";
  EXPECT_EQ(session->Rewind(-1).code(), ErrorCode::kInvalid);
  EXPECT_EQ(session->Rewind(100).code(), ErrorCode::kInvalid);
  EXPECT_EQ(session->trained_context(), 64);
}

TEST(TextApi, ChatTemplates) {
  EXPECT_EQ(ChatTemplate::Open(kModel).code(), ErrorCode::kUnsupported) << "it has none";
  EXPECT_EQ(ChatTemplate::Open(kModel, "{{").code(), ErrorCode::kInvalid);
  Result<ChatTemplate> chat = ChatTemplate::Open(
      kModel,
      "{{ bos_token }}{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{{ tools|tojson }}{{ x }}");
  ASSERT_TRUE(chat.ok()) << chat.error();
  Result<ChatPrompt> prompt = chat->Render({{"user", "a"}, {"assistant", "b"}});
  ASSERT_TRUE(prompt.ok()) << prompt.error();
  EXPECT_EQ(prompt->text, "<s>user=a;assistant=b;null");
  EXPECT_FALSE(prompt->begin) << "the template began the text";
  prompt = chat->Render({}, {.tools = "[{\"type\": 1}]", .variables = "{\"x\": 2}"});
  ASSERT_TRUE(prompt.ok()) << prompt.error();
  EXPECT_EQ(prompt->text, "<s>[{\"type\": 1}]2");
  EXPECT_EQ(chat->Render({}, {.tools = "{}"}).error(), "ChatOptions::tools: no JSON list");
  EXPECT_EQ(chat->Render({}, {.variables = "nothing"}).code(), ErrorCode::kInvalid);
  EXPECT_TRUE(ChatTemplate::Open(kModel, "x")->Render({})->begin);
}

TEST(TextApi, PromptsSayHowFarTheyAre) {
  std::vector<std::pair<int64_t, int64_t>> seen;
  Options options;
  options.context = 1024;
  options.progress = [&](int64_t done, int64_t all) { seen.emplace_back(done, all); };
  Result<Session> session = Session::Open(kModel, options);
  ASSERT_TRUE(session.ok()) << session.error();
  ASSERT_TRUE(session->Step(Ids(200, 261)).ok());
  EXPECT_TRUE(seen.empty()) << "one part";
  ASSERT_TRUE(session->Step(Ids(600, 261)).ok());
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(seen, (Pairs{{256, 600}, {512, 600}, {600, 600}}));
}

}  // namespace
}  // namespace quern
