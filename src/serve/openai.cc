#include "serve/openai.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quern::serve {
namespace {

constexpr size_t kMostMessages = 4096, kMostTexts = 16, kMostInputs = 256;
constexpr int64_t kMostLikeliest = 20;

Status Wrong(std::string_view field, std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s expected", std::string(field), std::string(wanted)));
}

// Null where the object has no such field, or null in it.
const Json* Find(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

StatusOr<int64_t> Whole(const Json& object, const char* field, int64_t low, int64_t high, int64_t otherwise) {
  const Json* value = Find(object, field);
  if (value == nullptr) return otherwise;
  const std::string wanted = absl::StrFormat("a whole number in %d..%d", low, high);
  if (!value->is_number_integer()) return Wrong(field, wanted);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return Wrong(field, wanted);
  const int64_t number = value->get<int64_t>();
  if (number < low || number > high) return Wrong(field, wanted);
  return number;
}

StatusOr<bool> Truth(const Json& object, const char* field) {
  const Json* value = Find(object, field);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return Wrong(field, "true or false");
  return value->get<bool>();
}

StatusOr<std::string> Text(const Json& object, const char* field, std::string_view where) {
  const Json* value = Find(object, field);
  if (value == nullptr || !value->is_string()) return Wrong(where, "a string");
  return value->get<std::string>();
}

// Brackets in brackets, beyond which nothing here goes: what walks the value later recurs.
bool IsNestedTooDeeply(std::string_view body) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  bool text = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (text) {
      if (c == '\\') ++i;
      if (c == '"') text = false;
    } else if (c == '"') {
      text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// A string, or a list of parts of the kind "text".
StatusOr<std::string> Content(const Json& message, const std::string& where) {
  const Json* content = Find(message, "content");
  if (content == nullptr) return std::string();  // of an assistant that called a function
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return Wrong(where, "a string, or a list of parts");
  std::string text;
  for (const Json& part : *content) {
    const Json* type = part.is_object() ? Find(part, "type") : nullptr;
    if (type == nullptr || !type->is_string() || type->get_ref<const std::string&>() != "text")
      return Wrong(where, "parts of the type text");
    QUERN_ASSIGN(const std::string piece, Text(part, "text", where));
    text += piece;
  }
  return text;
}

// What a message has beside its role and content, calls of functions with their arguments as objects; empty: nothing.
StatusOr<std::string> MoreFields(const Json& message, const std::string& where) {
  Json fields = Json::object();
  for (const char* const name : {"name", "tool_call_id"}) {
    if (Find(message, name) == nullptr) continue;
    QUERN_ASSIGN(fields[name], Text(message, name, absl::StrCat(where, ".", name)));
  }
  if (const Json* calls = Find(message, "tool_calls")) {
    if (!calls->is_array()) return Wrong(where + ".tool_calls", "a list");
    Json& list = fields["tool_calls"] = *calls;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = absl::StrFormat("%s.tool_calls[%d].function", where, i);
      const auto function = list[i].is_object() ? list[i].find("function") : list[i].end();
      if (!list[i].is_object() || function == list[i].end() || !function->is_object()) return Wrong(at, "an object");
      QUERN_RETURN_IF_ERROR(Text(*function, "name", at + ".name").status());
      Json& arguments = (*function)["arguments"];
      if (arguments.is_string()) arguments = Json::parse(arguments.get_ref<const std::string&>(), nullptr, false);
      if (!arguments.is_object() || IsNestedTooDeeply(arguments.dump(-1, ' ', false, Json::error_handler_t::replace)))
        return Wrong(at + ".arguments", "a string with a JSON object");
    }
  }
  return fields.empty() ? "" : fields.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status ReadTools(const Json& object, Call& call) {
  const Json* choice = Find(object, "tool_choice");
  const bool none = choice != nullptr && *choice == "none";
  if (choice != nullptr && !none && *choice != "auto")
    return Wrong("tool_choice", "\"auto\" or \"none\" (calls that have to be are not supported)");
  const Json* tools = Find(object, "tools");
  if (tools == nullptr) return absl::OkStatus();
  if (!tools->is_array()) return Wrong("tools", "a list");
  if (none || tools->empty()) return absl::OkStatus();
  call.tools = tools->dump(-1, ' ', false, Json::error_handler_t::replace);
  call.request.special = true;  // calls may begin with control tokens
  return absl::OkStatus();
}

Status ReadMessages(const Json& object, Call& call) {
  const Json* messages = Find(object, "messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() || messages->size() > kMostMessages)
    return Wrong("messages", absl::StrFormat("a list of 1 to %d messages", kMostMessages));
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string where = absl::StrFormat("messages[%d]", i);
    const Json& message = (*messages)[i];
    if (!message.is_object()) return Wrong(where, "an object");
    QUERN_ASSIGN(std::string role, Text(message, "role", where + ".role"));
    QUERN_ASSIGN(std::string content, Content(message, where + ".content"));
    QUERN_ASSIGN(std::string fields, MoreFields(message, where));
    call.messages.push_back({std::move(role), std::move(content), std::move(fields)});
  }
  return ReadTools(object, call);
}

Status ReadPrompt(const Json& object, Call& call) {
  const Json* prompt = Find(object, "prompt");
  if (prompt != nullptr && prompt->is_string()) {
    call.prompt = prompt->get<std::string>();
    return absl::OkStatus();
  }
  if (prompt == nullptr || !prompt->is_array()) return Wrong("prompt", "a string, or a list of token ids");
  for (const Json& id : *prompt) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      return Wrong("prompt", "a string, or a list of token ids");
    call.prompt_ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return absl::OkStatus();
}

Status ReadInputs(const Json& object, Call& call) {
  const Json* input = Find(object, "input");
  if (input != nullptr && input->is_string()) {
    call.inputs = {input->get<std::string>()};
    return absl::OkStatus();
  }
  const std::string wanted = absl::StrFormat("a string, or a list of 1 to %d strings", kMostInputs);
  if (input == nullptr || !input->is_array() || input->empty() || input->size() > kMostInputs)
    return Wrong("input", wanted);
  for (const Json& text : *input) {
    if (!text.is_string()) return Wrong("input", wanted);
    call.inputs.push_back(text.get<std::string>());
  }
  return absl::OkStatus();
}

// A string, or several; `texts` stays as it is where there is no such field.
Status ReadTexts(const Json& object, const char* field, std::vector<std::string>& texts) {
  const Json* value = Find(object, field);
  if (value == nullptr) return absl::OkStatus();
  if (value->is_string()) {
    texts = {value->get<std::string>()};
    return absl::OkStatus();
  }
  const std::string wanted = absl::StrFormat("a string, or a list of at most %d", kMostTexts);
  if (!value->is_array() || value->size() > kMostTexts) return Wrong(field, wanted);
  texts.clear();
  for (const Json& text : *value) {
    if (!text.is_string()) return Wrong(field, wanted);
    texts.push_back(text.get<std::string>());
  }
  return absl::OkStatus();
}

Status ReadBias(const Json& object, SamplingOptions& sampling) {
  const Json* bias = Find(object, "logit_bias");
  if (bias == nullptr) return absl::OkStatus();
  const char* wanted = "an object from token ids to numbers in -100..100";
  if (!bias->is_object()) return Wrong("logit_bias", wanted);
  for (const auto& [key, value] : bias->items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id < 0 || !value.is_number()) return Wrong("logit_bias", wanted);
    const double number = value.get<double>();
    if (!(number >= -100 && number <= 100)) return Wrong("logit_bias", wanted);
    sampling.logit_bias.emplace_back(id, static_cast<float>(number));
  }
  return absl::OkStatus();
}

// Where OpenAI's interface allows less than SamplingNumbers().
struct Narrower {
  std::string_view name;
  SamplingRange range;
};
constexpr Narrower kNarrower[] = {{"frequency_penalty", {-2, 2}}, {"presence_penalty", {-2, 2}}};

Status ReadSampling(const Json& object, const CallDefaults& defaults, Request& request) {
  SamplingOptions& sampling = request.sampling;
  sampling = defaults.sampling;
  for (const SamplingNumber& number : SamplingNumbers()) {
    const Json* value = Find(object, number.name);
    if (value == nullptr) continue;
    const auto narrower = std::ranges::find(kNarrower, std::string_view(number.name), &Narrower::name);
    const SamplingRange& range = narrower == std::end(kNarrower) ? number.range : narrower->range;
    if (!(range.whole ? value->is_number_integer() : value->is_number()) || !range.Holds(value->get<double>()))
      return Wrong(number.name, range.Text());
    number.Set(sampling, value->get<double>());
  }
  QUERN_RETURN_IF_ERROR(ReadTexts(object, "dry_breakers", sampling.dry_breakers));
  if (std::ranges::count(sampling.dry_breakers, "") > 0) return Wrong("dry_breakers", "texts that are not empty");
  QUERN_ASSIGN(const int64_t seed, Whole(object, "seed", INT64_MIN, INT64_MAX, 0));
  sampling.seed = static_cast<uint64_t>(seed);
  const char* tokens = Find(object, "max_completion_tokens") != nullptr ? "max_completion_tokens" : "max_tokens";
  QUERN_ASSIGN(request.tokens, Whole(object, tokens, 1, INT32_MAX, defaults.tokens));
  return ReadBias(object, sampling);
}

// What would change the answer, and is not done.
Status RefuseOthers(const Json& object) {
  QUERN_ASSIGN(const int64_t choices, Whole(object, "n", 1, INT32_MAX, 1));
  if (choices != 1) return absl::InvalidArgumentError("n: more than one choice is not supported");
  QUERN_ASSIGN(const int64_t best, Whole(object, "best_of", 1, INT32_MAX, 1));
  if (best != 1) return absl::InvalidArgumentError("best_of: more than one is not supported");
  return absl::OkStatus();
}

// A chat has two fields, a flag and a number, a completion one.
Status ReadLogprobs(const Json& object, Form form, Request& request) {
  if (form == Form::kCompletion) {
    const Json* asked = Find(object, "logprobs");
    if (asked == nullptr || *asked == false) return absl::OkStatus();
    QUERN_ASSIGN(const int64_t count, Whole(object, "logprobs", 0, kMostLikeliest, 0));
    request.likeliest = static_cast<int>(count);
    return absl::OkStatus();
  }
  QUERN_ASSIGN(const bool asked, Truth(object, "logprobs"));
  QUERN_ASSIGN(const int64_t count, Whole(object, "top_logprobs", 0, kMostLikeliest, 0));
  if (count > 0 && !asked) return Wrong("logprobs", "true, where top_logprobs are asked for,");
  if (asked) request.likeliest = static_cast<int>(count);
  return absl::OkStatus();
}

Json OfLikely(const Likely& likely) {
  Json bytes = Json::array();
  for (const char c : likely.token) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", likely.token}, {"logprob", likely.logprob}, {"bytes", std::move(bytes)}};
}

// The grammar of an answer that has to be JSON.
Status ReadResponseFormat(const Json& object, SamplingOptions& sampling) {
  const Json* form = Find(object, "response_format");
  if (form == nullptr) return absl::OkStatus();
  const Json* type = form->is_object() ? Find(*form, "type") : nullptr;
  if (type == nullptr || !type->is_string()) return Wrong("response_format", "an object with a type");
  const std::string& kind = type->get_ref<const std::string&>();
  if (kind == "text") return absl::OkStatus();
  std::string schema = "{}";
  if (kind == "json_schema") {
    const Json* outer = Find(*form, "json_schema");
    const Json* inner = outer != nullptr && outer->is_object() ? Find(*outer, "schema") : nullptr;
    if (inner == nullptr) return Wrong("response_format.json_schema", "an object with a schema");
    schema = inner->dump(-1, ' ', false, Json::error_handler_t::replace);
  } else if (kind != "json_object") {
    return Wrong("response_format.type", "text, json_object or json_schema");
  }
  Result<std::string> grammar = GrammarOfJsonSchema(schema);
  if (!grammar.ok()) return absl::InvalidArgumentError("response_format.json_schema: " + grammar.error());
  sampling.grammar = *std::move(grammar);
  return absl::OkStatus();
}

const char* FinishReason(Answer::End end, const std::vector<ToolCall>& calls) {
  if (!calls.empty()) return "tool_calls";
  return end == Answer::End::kStop ? "stop" : end == Answer::End::kTokens ? "length" : "error";
}

Json Head(const AnswerName& name, const char* object) {
  return {{"id", name.id}, {"object", object}, {"created", name.created}, {"model", name.model}};
}

Json Usage(const Answer::Counts& counts) {
  return {{"prompt_tokens", counts.prompt},
          {"completion_tokens", counts.answer},
          {"total_tokens", counts.prompt + counts.answer},
          {"prompt_tokens_details", {{"cached_tokens", counts.cached}}}};
}

// As OpenAI's form has them; in streams each says which it is.
Json Calls(const AnswerName& name, const std::vector<ToolCall>& calls, bool numbered) {
  Json list = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    Json call = Json::object();
    if (numbered) call["index"] = i;
    call["id"] = absl::StrCat("call_", name.id.substr(name.id.find('-') + 1), "_", i);
    call["type"] = "function";
    call["function"] = {{"name", calls[i].name}, {"arguments", calls[i].arguments}};
    list.push_back(std::move(call));
  }
  return list;
}

const char* StreamObject(const AnswerName& name) {
  return name.form == Form::kChat ? "chat.completion.chunk" : "text_completion";
}

}  // namespace

StatusOr<Call> ParseCall(std::string_view body, Form form, const CallDefaults& defaults) {
  if (IsNestedTooDeeply(body)) return absl::InvalidArgumentError("the body is nested too deeply");
  const Json object = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return absl::InvalidArgumentError("the body is no JSON");
  if (!object.is_object()) return absl::InvalidArgumentError("the body is no JSON object");
  Call call;
  if (const Json* model = Find(object, "model")) {
    if (!model->is_string()) return Wrong("model", "a string");
    call.model = model->get<std::string>();
  }
  if (form == Form::kEmbedding) {
    QUERN_RETURN_IF_ERROR(ReadInputs(object, call));
    return call;
  }
  QUERN_RETURN_IF_ERROR(form == Form::kChat ? ReadMessages(object, call) : ReadPrompt(object, call));
  QUERN_RETURN_IF_ERROR(ReadTexts(object, "stop", call.request.stops));
  QUERN_RETURN_IF_ERROR(ReadSampling(object, defaults, call.request));
  QUERN_RETURN_IF_ERROR(RefuseOthers(object));
  QUERN_RETURN_IF_ERROR(ReadLogprobs(object, form, call.request));
  QUERN_RETURN_IF_ERROR(ReadResponseFormat(object, call.request.sampling));
  QUERN_ASSIGN(call.stream, Truth(object, "stream"));
  if (const Json* options = Find(object, "stream_options")) {
    if (!options->is_object()) return Wrong("stream_options", "an object");
    QUERN_ASSIGN(call.include_usage, Truth(*options, "include_usage"));
  }
  return call;
}

Json ErrorBody(std::string_view message, std::string_view type, std::string_view code) {
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", code}}}};
}

Json LogprobsOf(const AnswerName& name, const std::vector<Drawn>& drawn, int64_t& characters) {
  if (name.form == Form::kChat) {
    Json content = Json::array();
    for (const Drawn& token : drawn) {
      Json entry = OfLikely(token);
      Json& best = entry["top_logprobs"] = Json::array();
      for (const Likely& likely : token.best) best.push_back(OfLikely(likely));
      content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}};
  }
  Json tokens = Json::array(), logprobs = Json::array(), best = Json::array(), offsets = Json::array();
  const auto goes_on = [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; };  // a character
  for (const Drawn& token : drawn) {
    // Of a token that begins within a character, where that begins.
    const bool within = !token.token.empty() && goes_on(token.token[0]) && characters > 0;
    offsets.push_back(characters - (within ? 1 : 0));
    characters +=
        static_cast<int64_t>(token.token.size()) - std::count_if(token.token.begin(), token.token.end(), goes_on);
    tokens.push_back(token.token);
    logprobs.push_back(token.logprob);
    Json& each = best.emplace_back(Json::object());
    for (const Likely& likely : token.best) each[likely.token] = likely.logprob;
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(best)},
          {"text_offset", std::move(offsets)}};
}

Json WholeAnswer(const AnswerName& name, const ChatAnswer& said, Answer::End end, const Answer::Counts& counts,
                 const Json& logprobs) {
  const bool chat = name.form == Form::kChat;
  Json answer = Head(name, chat ? "chat.completion" : "text_completion");
  Json choice = {{"index", 0}};
  if (chat) {
    Json& message = choice["message"] = {{"role", "assistant"}, {"content", said.content}};
    if (!said.calls.empty()) message["tool_calls"] = Calls(name, said.calls, false);
    if (!said.calls.empty() && said.content.empty()) message["content"] = nullptr;
  } else {
    choice["text"] = said.content;
  }
  if (!logprobs.is_null()) choice["logprobs"] = logprobs;
  choice["finish_reason"] = FinishReason(end, said.calls);
  answer["choices"] = Json::array({std::move(choice)});
  answer["usage"] = Usage(counts);
  return answer;
}

Json PartOfAnswer(const AnswerName& name, std::string_view text, bool first, Answer::End end, const Json& logprobs,
                  const std::vector<ToolCall>& calls) {
  Json part = Head(name, StreamObject(name));
  Json choice = {{"index", 0}};
  if (name.form == Form::kChat) {
    Json delta = Json::object();
    if (first) delta["role"] = "assistant";
    if (!text.empty() || first) delta["content"] = text;
    if (!calls.empty() && end == Answer::End::kNone) delta["tool_calls"] = Calls(name, calls, true);
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = text;
  }
  if (!logprobs.is_null()) choice["logprobs"] = logprobs;
  choice["finish_reason"] = end == Answer::End::kNone ? Json(nullptr) : Json(FinishReason(end, calls));
  part["choices"] = Json::array({std::move(choice)});
  return part;
}

Json UsageOfAnswer(const AnswerName& name, const Answer::Counts& counts) {
  Json part = Head(name, StreamObject(name));
  part["choices"] = Json::array();
  part["usage"] = Usage(counts);
  return part;
}

}  // namespace quern::serve
