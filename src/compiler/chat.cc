// ChatTemplate of the public interface.
#include "quern/chat.h"

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "chat/template.h"
#include "chat/tool_calls.h"
#include "compiler/public_error.h"
#include "import/gguf.h"

namespace quern {

struct ChatTemplate::State {
  chat::Template parsed;
  const chat::ToolForm* tools;  // null: it teaches none
  std::string begin, end;       // the texts of these tokens; empty where there is none
};

namespace {

// The text of the token that `key` names.
std::string TokenText(const GgufFile& file, const std::vector<std::string_view>& tokens, std::string_view key) {
  const int64_t id = file.Int(key).value_or(-1);
  return id >= 0 && id < static_cast<int64_t>(tokens.size()) ? std::string(tokens[id]) : "";
}

StatusOr<chat::Value> Json(const std::string& text, const char* what, bool object) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded() || (object ? !json.is_object() : !json.is_array()))
    return absl::InvalidArgumentError(absl::StrFormat("%s: no JSON %s", what, object ? "object" : "list"));
  return chat::FromJson(json);
}

// The entries of `more` in the place of those of their names.
void Put(const chat::Dict& more, chat::Dict& dict) {
  for (const auto& [name, value] : more) {
    std::erase_if(dict, [&](const auto& entry) { return entry.first == name; });
    dict.emplace_back(name, value);
  }
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Open(const std::string& path) { return Open(path, ""); }

Result<ChatTemplate> ChatTemplate::Open(const std::string& path, std::string_view source) {
  auto open = [&]() -> StatusOr<std::shared_ptr<const State>> {
    QUERN_ASSIGN(const GgufFile file, GgufFile::Open(path));
    if (source.empty()) {
      if (!file.Has("tokenizer.chat_template")) {
        return absl::UnimplementedError(
            absl::StrFormat("%s has no chat template (tokenizer.chat_template): it may not be a chat model", path));
      }
      QUERN_ASSIGN(source, file.String("tokenizer.chat_template"));
    }
    QUERN_ASSIGN(chat::Template parsed, chat::Template::Parse(source));
    QUERN_ASSIGN(const auto tokens, file.Strings("tokenizer.ggml.tokens"));
    return std::make_shared<const State>(State{std::move(parsed), chat::FindToolForm(source),
                                               TokenText(file, tokens, "tokenizer.ggml.bos_token_id"),
                                               TokenText(file, tokens, "tokenizer.ggml.eos_token_id")});
  };
  auto state = open();
  if (!state.ok()) return Result<ChatTemplate>::Failed(compiler::ErrorOf(state.status()));
  return ChatTemplate(*std::move(state));
}

Result<ChatPrompt> ChatTemplate::Render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
  auto render = [&]() -> StatusOr<ChatPrompt> {
    chat::List list;
    for (const ChatMessage& message : messages) {
      chat::Dict fields = {{"role", chat::Value(message.role)}, {"content", chat::Value(message.content)}};
      if (!message.fields.empty()) {
        QUERN_ASSIGN(const chat::Value more, Json(message.fields, "ChatMessage::fields", true));
        Put(*more.dict(), fields);
      }
      list.emplace_back(std::move(fields));
    }
    chat::Dict variables = {{"messages", chat::Value(std::move(list))},
                            {"add_generation_prompt", chat::Value(options.add_generation_prompt)},
                            {"bos_token", chat::Value(state_->begin)},
                            {"eos_token", chat::Value(state_->end)},
                            {"tools", chat::Value(chat::None{})},
                            {"documents", chat::Value(chat::None{})}};
    if (!options.tools.empty()) {
      QUERN_ASSIGN(variables[4].second, Json(options.tools, "ChatOptions::tools", false));
    }
    if (!options.variables.empty()) {
      QUERN_ASSIGN(const chat::Value more, Json(options.variables, "ChatOptions::variables", true));
      Put(*more.dict(), variables);
    }
    QUERN_ASSIGN(std::string text, state_->parsed.Render(variables, {.now = std::time(nullptr)}));
    const bool begun = !state_->begin.empty() && text.starts_with(state_->begin);
    return ChatPrompt{std::move(text), !begun};
  };
  return compiler::ToResult(render());
}

ChatAnswer ChatTemplate::TakeApart(std::string_view answer) const {
  if (state_->tools == nullptr) return {std::string(answer), {}};
  chat::TakenApart made = chat::TakeCallsApart(*state_->tools, answer);
  ChatAnswer taken{std::move(made.text), {}};
  for (chat::FunctionCall& call : made.calls) taken.calls.push_back({std::move(call.name), std::move(call.arguments)});
  return taken;
}

size_t ChatTemplate::CertainContent(std::string_view answer) const {
  return state_->tools == nullptr ? answer.size() : chat::CertainText(*state_->tools, answer);
}

}  // namespace quern
