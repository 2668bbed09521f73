// Calls of functions in answers, whole and as they come.
#include "chat/tool_calls.h"

#include <gtest/gtest.h>

namespace quern::chat {
namespace {

const ToolForm& Form(std::string_view source) {
  const ToolForm* form = FindToolForm(source);
  EXPECT_NE(form, nullptr) << source;
  return *form;
}

// "text|name(arguments)|.."
std::string Apart(std::string_view source, std::string_view answer) {
  const TakenApart made = TakeCallsApart(Form(source), answer);
  std::string all = made.text;
  for (const FunctionCall& call : made.calls) all += "|" + call.name + "(" + call.arguments + ")";
  return all;
}

constexpr char kHermes[] = "..<tool_call>..", kMistral[] = "[TOOL_CALLS]", kGranite[] = "<|tool_call|>",
               kLlama[] = R"(Respond in the format {"name": function name, "parameters": dictionary})";

TEST(ToolCalls, AreTakenOutOfAnswers) {
  EXPECT_EQ(Apart(kHermes, R"(Let me look.
<tool_call>
{"name": "weather", "arguments": {"city": "Oslo", "days": [1, 2]}}
</tool_call>
<tool_call>{"name": "now"}</tool_call>
)"),
            R"(Let me look.|weather({"city":"Oslo","days":[1,2]})|now({}))");
  EXPECT_EQ(
      Apart(kMistral, R"([TOOL_CALLS] [{"name": "a", "arguments": {"x": "}]\""}}, {"name": "b", "arguments": {}}])"),
      R"(|a({"x":"}]\""})|b({}))");
  EXPECT_EQ(Apart(kGranite, R"(<|tool_call|>[{"name": "a", "arguments": {"x": 1}}]<|/tool_call|>)"), R"(|a({"x":1}))");
  EXPECT_EQ(Apart(kLlama, R"( {"name": "a", "parameters": {"x": 1}})"), R"(|a({"x":1}))");
  EXPECT_EQ(Apart(kLlama, R"(<|python_tag|>{"name": "a", "parameters": {}}; {"name": "b", "parameters": {}})"),
            "|a({})|b({})");
  // Arguments in a string, as OpenAI's form has them.
  EXPECT_EQ(Apart(kHermes, R"(<tool_call>{"name": "a", "arguments": "{\"x\": 1}"}</tool_call>)"), R"(|a({"x":1}))");
  // Cut off by its limit behind the JSON.
  EXPECT_EQ(Apart(kHermes, R"(<tool_call>{"name": "a", "arguments": {}})"), "|a({})");
}

TEST(ToolCalls, WhatIsNoWholeCallIsText) {
  for (const char* const answer :
       {"Hello", "", "<tool_call>", "<tool_call>{\"name\": \"a\"", "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{}</tool_call>", "<tool_call>[]</tool_call>", "<tool_call>no</tool_call>",
        "<tool_call>{\"name\": \"a\", \"arguments\": 3}</tool_call>", "a <tool_call>{\"name\": \"a\"}</tool_call> b",
        "<tool_call>{\"name\": \"a\"]</tool_call>", "<tool_call>}</tool_call>"}) {
    EXPECT_EQ(Apart(kHermes, answer), answer);
  }
  EXPECT_EQ(Apart(kHermes, "<tool_call>" + std::string(100000, '[')), "<tool_call>" + std::string(100000, '['));
  EXPECT_EQ(Apart(kLlama, R"({"answer": 42})"), R"({"answer": 42})");
  EXPECT_EQ(FindToolForm("{{ messages }}"), nullptr);
}

// Whatever is certain early is text of the whole answer.
TEST(ToolCalls, TextIsCertainBeforeTheEnd) {
  const std::string answer = "It < rains. <tool_call>{\"name\": \"a\"}</tool_call>";
  for (size_t length = 0; length <= answer.size(); ++length) {
    const size_t certain = CertainText(Form(kHermes), std::string_view(answer).substr(0, length));
    EXPECT_LE(certain, std::string_view("It < rains.").size()) << length;
    if (length == answer.size()) EXPECT_EQ(certain, std::string_view("It < rains.").size());
  }
  EXPECT_EQ(CertainText(Form(kHermes), "a <tool"), 1u);
  EXPECT_EQ(CertainText(Form(kHermes), "a <tool b"), 9u);
  EXPECT_EQ(CertainText(Form(kLlama), "<|python_"), 0u);
  EXPECT_EQ(CertainText(Form(kLlama), "{\"name\""), 0u);
  EXPECT_EQ(CertainText(Form(kLlama), "Hello"), 5u);
}

}  // namespace
}  // namespace quern::chat
