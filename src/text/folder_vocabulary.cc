#include "text/folder_vocabulary.h"

#include <filesystem>

#include "import/gguf.h"
#include "import/hugging_face/model_folder.h"
#include "text/folder_tokens.h"

namespace quern::text {
namespace {

using hugging_face::Find;
using hugging_face::FindBool;
using hugging_face::FindInt;
using hugging_face::FindText;
using hugging_face::Json;

namespace fs = std::filesystem;

// A token as configurations have it: a text, or an object with one.
std::string TextOf(const Json* token) {
  if (token != nullptr && token->is_object()) token = Find(*token, "content");
  return token != nullptr && token->is_string() ? token->get<std::string>() : "";
}

// What is put around a text, of post_processor.
struct Around {
  bool known = false;
  std::string begin, end;
};

void ReadTemplate(const Json& processor, Around& around) {
  const std::string type = TextOf(Find(processor, "type"));
  if (const Json* list = Find(processor, "processors"); type == "Sequence" && list != nullptr && list->is_array()) {
    for (const Json& each : *list) {
      if (TextOf(Find(each, "type")) != "Sequence") ReadTemplate(each, around);
    }
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto first = [&](const char* key) {
      const Json* pair = Find(processor, key);
      return pair != nullptr && pair->is_array() && !pair->empty() ? TextOf(&(*pair)[0]) : "";
    };
    around = {true, first("cls"), first("sep")};
  }
  const Json* single = Find(processor, "single");
  if (type != "TemplateProcessing" || single == nullptr || !single->is_array() || single->empty()) return;
  const auto special = [](const Json& part) {
    const Json* token = Find(part, "SpecialToken");
    return token == nullptr ? "" : TextOf(Find(*token, "id"));
  };
  around = {true, special(single->front()), single->size() > 1 ? special(single->back()) : ""};
}

Status PutRoles(const TokenizerFiles& files, const FolderTokens& tokens, Metadata& metadata) {
  const auto put = [&](const char* key, const std::string& text) {
    const int32_t id = text.empty() ? -1 : tokens.Find(text);
    if (id >= 0 && !metadata.Has(key)) metadata.PutInt(key, id);
    return id >= 0;
  };
  Around around;
  if (const Json* processor = Find(files.tokenizer, "post_processor"); processor != nullptr)
    ReadTemplate(*processor, around);
  constexpr const char *kBegin = "tokenizer.ggml.bos_token_id", *kEnd = "tokenizer.ggml.eos_token_id";
  if (tokens.model() == "bert") {
    put(kBegin, TextOf(Find(files.tokenizer_config, "cls_token"))) || put(kBegin, around.begin) || put(kBegin, "[CLS]");
    put("tokenizer.ggml.seperator_token_id", TextOf(Find(files.tokenizer_config, "sep_token"))) ||
        put("tokenizer.ggml.seperator_token_id", around.end) || put("tokenizer.ggml.seperator_token_id", "[SEP]");
    return absl::OkStatus();
  }
  put(kBegin, around.begin);
  put(kBegin, TextOf(Find(files.tokenizer_config, "bos_token")));
  put(kEnd, TextOf(Find(files.tokenizer_config, "eos_token")));
  // Numbers, where there are no texts; of several that end a text the others are ends of turns.
  constexpr const char* kMoreEnds[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  size_t more = 0;
  for (const Json* json : {&files.generation_config, &files.config}) {
    const Json* begin = Find(*json, "bos_token_id");
    if (begin != nullptr && tokens.IsId(*begin) && !metadata.Has(kBegin)) metadata.Put(kBegin, begin->get<uint64_t>());
    const Json* end = Find(*json, "eos_token_id");
    if (end == nullptr) continue;
    for (const Json& id : end->is_array() ? *end : Json::array({*end})) {
      if (!tokens.IsId(id)) continue;
      if (!metadata.Has(kEnd))
        metadata.Put(kEnd, id.get<uint64_t>());
      else if (metadata.Int(kEnd).value_or(-1) != id.get<int64_t>() && more < std::size(kMoreEnds))
        metadata.Put(kMoreEnds[more++], id.get<uint64_t>());
    }
  }
  QUERN_ASSIGN(const std::optional<bool> add_begin, FindBool(files.tokenizer_config, "add_bos_token"));
  QUERN_ASSIGN(const std::optional<bool> add_end, FindBool(files.tokenizer_config, "add_eos_token"));
  metadata.Put("tokenizer.ggml.add_bos_token", add_begin.value_or(!around.begin.empty()));
  metadata.Put("tokenizer.ggml.add_eos_token", add_end.value_or(!around.end.empty()));
  return absl::OkStatus();
}

void PutChatTemplate(const TokenizerFiles& files, Metadata& metadata) {
  std::string text = files.chat_template;
  const Json* given = Find(files.tokenizer_config, "chat_template");
  if (text.empty() && given != nullptr && given->is_string()) text = given->get<std::string>();
  if (text.empty() && given != nullptr && given->is_array()) {
    for (const Json& each : *given) {
      if (text.empty() || TextOf(Find(each, "name")) == "default") text = TextOf(Find(each, "template"));
    }
  }
  if (!text.empty()) metadata.PutText("tokenizer.chat_template", text);
}

StatusOr<std::shared_ptr<const Metadata>> ReadFolder(const std::string& folder) {
  const auto path = [&](const char* name) { return (fs::path(folder) / name).string(); };
  TokenizerFiles files;
  StatusOr<Json> tokenizer = hugging_face::ReadJson(path("tokenizer.json"), hugging_face::kMostTokenizerBytes);
  if (absl::IsNotFound(tokenizer.status())) {
    return absl::NotFoundError(absl::StrFormat(
        "%s has no tokenizer.json, so there is no text; ids can be run with --tokens-in and --ids", folder));
  }
  if (!tokenizer.ok()) return tokenizer.status();
  files.tokenizer = *std::move(tokenizer);
  const std::pair<const char*, Json*> beside[] = {{"tokenizer_config.json", &files.tokenizer_config},
                                                  {"config.json", &files.config},
                                                  {"generation_config.json", &files.generation_config}};
  std::error_code error;
  for (const auto& [name, json] : beside) {
    *json = Json::object();
    if (!fs::exists(path(name), error)) continue;
    QUERN_ASSIGN(*json, hugging_face::ReadJson(path(name), hugging_face::kMostConfigBytes));
  }
  if (fs::exists(path("chat_template.jinja"), error)) {
    QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path("chat_template.jinja")));
    if (file.bytes().size() > hugging_face::kMostConfigBytes)
      return absl::InvalidArgumentError(absl::StrFormat("%s: too long", path("chat_template.jinja")));
    files.chat_template.assign(file.bytes().begin(), file.bytes().end());
  }
  StatusOr<Metadata> metadata = ReadTokenizerFiles(files);
  if (!metadata.ok()) {
    return Status(metadata.status().code(),
                  absl::StrFormat("%s: %s", path("tokenizer.json"), std::string(metadata.status().message())));
  }
  return std::make_shared<const Metadata>(*std::move(metadata));
}

}  // namespace

StatusOr<Metadata> ReadTokenizerFiles(const TokenizerFiles& files) {
  QUERN_ASSIGN(const FolderTokens tokens, FolderTokens::Read(files.tokenizer));
  Metadata metadata;
  tokens.Put(metadata);
  QUERN_RETURN_IF_ERROR(PutRoles(files, tokens, metadata));
  PutChatTemplate(files, metadata);
  return metadata;
}

StatusOr<std::shared_ptr<const Metadata>> VocabularyOf(std::shared_ptr<const ModelFile> file) {
  if (file->folder().empty()) return std::shared_ptr<const Metadata>(std::move(file));
  return ReadFolder(file->folder());
}

StatusOr<std::shared_ptr<const Metadata>> OpenVocabulary(const std::string& path) {
  if (hugging_face::IsFolderPath(path)) return ReadFolder(hugging_face::FolderOf(path));
  QUERN_ASSIGN(GgufFile file, GgufFile::Open(path));
  return std::make_shared<const GgufFile>(std::move(file));
}

}  // namespace quern::text
