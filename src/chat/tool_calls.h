// Calls of functions in the text of an answer, in the forms that chat templates teach models.
//
//   Let me look. <tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>     Hermes, Qwen
//   [TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Oslo"}}]                          Mistral
//   <|tool_call|>[{"name": "weather", "arguments": {"city": "Oslo"}}]<|/tool_call|>            Granite, Phi-4
//   {"name": "weather", "parameters": {"city": "Oslo"}}                                        Llama 3, after
//                                                                                              <|python_tag|> or not
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::chat {

struct FunctionCall {
  std::string name, arguments;  // the latter a JSON object
};

struct TakenApart {
  std::string text;
  std::vector<FunctionCall> calls;
};

struct ToolForm;

// The form that a template's source teaches, or null.
const ToolForm* FindToolForm(std::string_view source);

// What a whole answer says and calls. An answer with anything that is no whole call where one should be is all text.
TakenApart TakeCallsApart(const ToolForm& form, std::string_view answer);

// How much of an answer that is still coming is text, whatever comes; blanks before a call are not.
size_t CertainText(const ToolForm& form, std::string_view answer);

}  // namespace quern::chat
