// The forms of OpenAI's interface: JSON that clients send, read by checked accessors alone, and what they get.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quern/chat.h"
#include "serve/scheduler.h"

namespace quern::serve {

using Json = nlohmann::ordered_json;

// What a body asks for.
struct Call {
  std::vector<ChatMessage> messages;  // of a chat
  std::string tools;                  // JSON, or empty: none, or none that may be called
  std::string prompt;                 // of a completion
  std::vector<int32_t> prompt_ids;    // likewise, instead
  std::vector<std::string> inputs;    // of embeddings
  std::string model;
  bool stream = false, include_usage = false;
  Request request;  // without its prompt
};

enum class Form { kChat, kCompletion, kEmbedding };

// Where a body does not say.
struct CallDefaults {
  int64_t tokens = 16;
  SamplingOptions sampling = {.temperature = 1};  // OpenAI's
};

// Errors name the field. Fields that change the answer and that nothing here does (several choices) are errors; others
// are left alone.
StatusOr<Call> ParseCall(std::string_view body, Form form, const CallDefaults& defaults = {});

Json ErrorBody(std::string_view message, std::string_view type, std::string_view code);

// What one answer is called in all that is said of it.
struct AnswerName {
  std::string id, model;
  int64_t created = 0;  // seconds since 1970
  Form form = Form::kChat;
  bool logprobs = false;  // the request asks for those of tokens
};
// `logprobs`: what LogprobsOf gives, null where nothing was asked of tokens.
Json WholeAnswer(const AnswerName& name, const ChatAnswer& said, Answer::End end, const Answer::Counts& counts,
                 const Json& logprobs);
// One event of a stream: text, or calls. `first` says who speaks. `calls`: those of the whole answer, at its end.
Json PartOfAnswer(const AnswerName& name, std::string_view text, bool first, Answer::End end, const Json& logprobs,
                  const std::vector<ToolCall>& calls = {});
// Tokens and their logarithms in the form of the interface. `characters`: how many of the answer begin before these
// tokens, and then with them.
Json LogprobsOf(const AnswerName& name, const std::vector<Drawn>& drawn, int64_t& characters);
Json UsageOfAnswer(const AnswerName& name, const Answer::Counts& counts);

}  // namespace quern::serve
