#include "chat/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace quern::chat {

struct ToolForm {
  const char* taught;     // in the template
  const char* begin;      // of calls in the answer; a bare one begins with its bracket
  const char* end;        // behind them; may be missing
  bool at_start = false;  // calls are all of the answer, and `begin` may be missing
};

namespace {

using Json = nlohmann::ordered_json;

constexpr ToolForm kForms[] = {
    {"<tool_call>", "<tool_call>", "</tool_call>"},
    {"[TOOL_CALLS]", "[TOOL_CALLS]", ""},
    {"<|tool_call|>", "<|tool_call|>", "<|/tool_call|>"},
    {"{\"name\": function name, \"parameters\":", "<|python_tag|>", "<|eom_id|>", true},
};

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view WithoutBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

// The JSON object or list that `text` begins with, or nothing where that is not whole, or too deep.
std::optional<std::string_view> Bracketed(std::string_view text) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostDepth) return std::nullopt;
    } else if ((c == '}' || c == ']') && --depth <= 0) {
      return depth == 0 ? std::optional(text.substr(0, i + 1)) : std::nullopt;
    }
    if (depth == 0) return std::nullopt;  // it begins with something else
  }
  return std::nullopt;
}

bool AddCall(const Json& call, std::vector<FunctionCall>& calls) {
  if (!call.is_object()) return false;
  const auto name = call.find("name");
  if (name == call.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) return false;
  auto arguments = call.find("arguments");
  if (arguments == call.end()) arguments = call.find("parameters");
  Json object = arguments == call.end() || arguments->is_null() ? Json::object() : *arguments;
  if (object.is_string()) object = Json::parse(object.get_ref<const std::string&>(), nullptr, false);
  if (!object.is_object()) return false;
  calls.push_back({name->get<std::string>(), object.dump(-1, ' ', false, Json::error_handler_t::replace)});
  return true;
}

// Calls at the front of `rest`, which goes on behind them; false where there is none.
bool TakeCalls(const ToolForm& form, std::string_view& rest, std::vector<FunctionCall>& calls) {
  const std::optional<std::string_view> whole = Bracketed(rest = WithoutBlanks(rest));
  if (!whole) return false;
  const Json json = Json::parse(*whole, nullptr, false);
  if (json.is_discarded() || (json.is_array() && json.empty())) return false;
  for (const Json& call : json.is_array() ? json : Json::array({json})) {
    if (!AddCall(call, calls)) return false;
  }
  rest = WithoutBlanks(rest.substr(whole->size()));
  if (rest.starts_with(form.end)) rest = WithoutBlanks(rest.substr(std::string_view(form.end).size()));
  if (form.at_start && rest.starts_with(";")) rest = WithoutBlanks(rest.substr(1));
  return true;
}

// Where the end of `text` may become `marker`.
size_t MayBecome(std::string_view text, std::string_view marker) {
  for (size_t length = std::min(text.size(), marker.size()); length > 0; --length) {
    if (text.ends_with(marker.substr(0, length))) return text.size() - length;
  }
  return text.size();
}

}  // namespace

const ToolForm* FindToolForm(std::string_view source) {
  for (const ToolForm& form : kForms) {
    if (source.find(form.taught) != std::string_view::npos) return &form;
  }
  return nullptr;
}

TakenApart TakeCallsApart(const ToolForm& form, std::string_view answer) {
  const TakenApart all_text{std::string(answer), {}};
  const std::string_view begin = form.begin;
  TakenApart made;
  std::string_view rest = answer;
  if (form.at_start) {
    rest = WithoutBlanks(rest);
    if (rest.starts_with(begin)) rest.remove_prefix(begin.size());
    while (!rest.empty()) {
      if (!TakeCalls(form, rest, made.calls)) return all_text;
    }
    return made.calls.empty() ? all_text : made;
  }
  const size_t first = rest.find(begin);
  if (first == std::string_view::npos) return all_text;
  made.text = rest.substr(0, rest.substr(0, first).find_last_not_of(kBlanks) + 1);
  rest.remove_prefix(first);
  while (!rest.empty()) {
    if (!rest.starts_with(begin)) return all_text;
    rest.remove_prefix(begin.size());
    if (!TakeCalls(form, rest, made.calls)) return all_text;
  }
  return made;
}

size_t CertainText(const ToolForm& form, std::string_view answer) {
  size_t certain = 0;
  if (form.at_start) {
    const std::string_view text = WithoutBlanks(answer), begin = form.begin;
    const bool call = text.empty() || text.starts_with("{") || text.starts_with("[") || text.starts_with(begin) ||
                      begin.starts_with(text);
    certain = call ? 0 : answer.size();
  } else {
    const size_t first = answer.find(form.begin);
    certain = first != std::string_view::npos ? first : MayBecome(answer, form.begin);
  }
  return answer.substr(0, certain).find_last_not_of(kBlanks) + 1;
}

}  // namespace quern::chat
