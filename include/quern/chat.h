// Conversations as a model was trained on them: the chat template of its file.
//
//   quern::Result<quern::ChatTemplate> chat = quern::ChatTemplate::Open("model.gguf");
//   quern::Result<quern::ChatPrompt> prompt = chat->Render({{"user", "Hello"}});
//   quern::Result<std::vector<int32_t>> ids = session->Tokenize(prompt->text, {.begin = prompt->begin});
//
// Templates are a subset of Jinja that reads nothing, changes nothing and ends (docs/chat.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/result.h"

namespace quern {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool", or what else the template knows
  std::string content;
  // More of the message for the template, as a JSON object: {"tool_calls": [..]}, {"tool_call_id": ".."}. Templates
  // take the arguments of calls as objects.
  std::string fields = {};
};

// A function that an answer calls.
struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object
};
struct ChatAnswer {
  std::string content;
  std::vector<ToolCall> calls;
};

struct ChatOptions {
  // The text goes up to where the assistant's answer begins.
  bool add_generation_prompt = true;
  // Functions that the model may call, as a JSON list in OpenAI's form; empty: none.
  std::string tools = {};
  // More variables of the template, as a JSON object: {"enable_thinking": false}.
  std::string variables = {};
};

struct ChatPrompt {
  std::string text;
  // Whether to put the begin token in front (TokenizeOptions::begin): the template did not.
  bool begin = true;
};

// Immutable and thread-safe; copies share what was parsed.
class ChatTemplate {
 public:
  // That of a GGUF file. Errors: kResource, kInvalid as of other files; kUnsupported, the file has none; kInvalid, with
  // line and column, it is no template or has what is not supported.
  static Result<ChatTemplate> Open(const std::string& path);
  // The template `source` in the place of the file's, whose tokens it may name.
  static Result<ChatTemplate> Open(const std::string& path, std::string_view source);

  // What an answer says, and the functions that it calls in the form that the template teaches (docs/chat.md). One with
  // anything that is no whole call where one should be is all content, as it is where the template teaches none.
  // The answer's text has control tokens in it (TextStream's `special`).
  ChatAnswer TakeApart(std::string_view answer) const;
  // Of an answer that is still coming: how many of its bytes are content, whatever comes.
  size_t CertainContent(std::string_view answer) const;

  // Control tokens in messages are text of the prompt like any other, and become tokens when it is tokenised with
  // TokenizeOptions::parse_special, as the template's own must: messages that others write are to be checked for them.
  // Errors: kInvalid, with line and column, what the template refuses or does wrong; options that are no JSON.
  Result<ChatPrompt> Render(const std::vector<ChatMessage>& messages, const ChatOptions& options = {}) const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace quern
