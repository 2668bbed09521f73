#include "text/folder_tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

using hugging_face::FindBool;
using hugging_face::FindText;
using hugging_face::Json;
using hugging_face::Shown;

constexpr uint64_t kMostTokens = 1 << 22;

const Json* Member(const Json& object, std::string_view key) { return hugging_face::Find(object, key); }

std::string TypeOf(const Json& part) {
  const Json* type = Member(part, "type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : "";
}

Status Unsupported(const char* what, const Json& part) {
  return absl::UnimplementedError(absl::StrFormat("%s %s is not supported", what, Shown(part)));
}

// The parts of a Sequence, or the one part there is; at most one level deep.
StatusOr<std::vector<Json>> PartsOf(const Json* whole, const char* list, const char* what) {
  std::vector<Json> parts;
  if (whole == nullptr) return parts;
  if (TypeOf(*whole) != "Sequence") return std::vector<Json>{*whole};
  const Json* members = Member(*whole, list);
  if (members == nullptr || !members->is_array()) return Unsupported(what, *whole);
  for (const Json& part : *members) {
    if (TypeOf(part) == "Sequence") return Unsupported(what, part);
    parts.push_back(part);
  }
  return parts;
}

// The expression that a part of the pre_tokenizer splits by.
StatusOr<std::string> PatternOf(const Json& split) {
  const Json* pattern = Member(split, "pattern");
  const Json* regex = pattern == nullptr ? nullptr : Member(*pattern, "Regex");
  QUERN_ASSIGN(const std::optional<std::string> behavior, FindText(split, "behavior"));
  QUERN_ASSIGN(const std::optional<bool> invert, FindBool(split, "invert"));
  // What matches is a word; what is removed where it does not match is nothing, of expressions that match everything.
  const bool words =
      (behavior == "Isolated" && !invert.value_or(false)) || (behavior == "Removed" && invert.value_or(false));
  if (regex == nullptr || !regex->is_string() || !words) return Unsupported("pre_tokenizer", split);
  return regex->get<std::string>();
}

}  // namespace

int32_t FolderTokens::Find(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

bool FolderTokens::IsId(const Json& value) const {
  return value.is_number_unsigned() && value.get<uint64_t>() < texts_.size();
}

Status FolderTokens::ReadVocabulary(const Json& tokenizer, const Json& model) {
  const Json* vocabulary = Member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object())
    return absl::InvalidArgumentError("model: vocab of tokens and numbers expected");
  const auto put = [&](const std::string& text, const Json& number, TokenKind kind) -> Status {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= kMostTokens) {
      return absl::InvalidArgumentError(absl::StrFormat("the number of token %s is %s, below %u expected",
                                                        Shown(Json(text)), Shown(number), kMostTokens));
    }
    const size_t id = number.get<size_t>();
    if (id >= texts_.size()) {
      texts_.resize(id + 1);
      kinds_.resize(id + 1, 0);
    }
    if (kinds_[id] != 0 && kind == TokenKind::kNormal)
      return absl::InvalidArgumentError(absl::StrFormat("two tokens have the number %u", id));
    texts_[id] = text;
    kinds_[id] = static_cast<int32_t>(kind);
    ids_.insert_or_assign(text, static_cast<int32_t>(id));
    return absl::OkStatus();
  };
  for (const auto& [text, number] : vocabulary->items()) QUERN_RETURN_IF_ERROR(put(text, number, TokenKind::kNormal));
  if (const Json* added = Member(tokenizer, "added_tokens"); added != nullptr && added->is_array()) {
    for (const Json& token : *added) {
      QUERN_ASSIGN(const std::optional<std::string> text, FindText(token, "content"));
      QUERN_ASSIGN(const std::optional<bool> special, FindBool(token, "special"));
      const Json* number = Member(token, "id");
      if (!text || number == nullptr) return absl::InvalidArgumentError("added_tokens: content and id expected");
      QUERN_RETURN_IF_ERROR(
          put(*text, *number, special.value_or(false) ? TokenKind::kControl : TokenKind::kUserDefined));
    }
  }
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (kinds_[id] != 0) continue;
    texts_[id] = absl::StrCat("[PAD", id, "]");
    kinds_[id] = static_cast<int32_t>(TokenKind::kUnused);
  }
  QUERN_ASSIGN(const std::optional<std::string> unknown, FindText(model, "unk_token"));
  if (unknown) unknown_ = Find(*unknown);
  return absl::OkStatus();
}

Status FolderTokens::ReadMerges(const Json& model) {
  const Json* merges = Member(model, "merges");
  if (merges == nullptr || !merges->is_array()) return absl::InvalidArgumentError("model: a list of merges expected");
  for (const Json& merge : *merges) {
    std::string left, right;
    if (merge.is_string()) {
      const std::string text = merge.get<std::string>();
      const size_t blank = text.find(' ', 1);
      if (blank != std::string::npos) left = text.substr(0, blank), right = text.substr(blank + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    }
    if (left.empty() || right.empty())
      return absl::InvalidArgumentError(absl::StrFormat("merges: %s is no pair of texts", Shown(merge)));
    const std::string joined = left + right;
    // The first merge that makes a token is its place.
    if (const int32_t id = Find(joined); id >= 0) places_.emplace(id, merges_.size());
    merges_.push_back(absl::StrCat(left, " ", right));
  }
  return absl::OkStatus();
}

// Spaces as U+2581, one of them in front, and NFC, which is not applied: texts are taken to be in it already.
Status FolderTokens::ReadNormalizer(const Json& normalizer) {
  QUERN_ASSIGN(const std::vector<Json> parts, PartsOf(&normalizer, "normalizers", "normalizer"));
  for (const Json& part : parts) {
    const std::string type = TypeOf(part);
    const Json* pattern = Member(part, "pattern");
    const Json* from = pattern == nullptr ? nullptr : Member(*pattern, "String");
    const Json* to = Member(part, type == "Prepend" ? "prepend" : "content");
    if (type == "NFC") continue;
    const bool visible = to != nullptr && *to == Json(std::string(kVisibleSpace));
    if (type == "Prepend" && visible) {
      space_prefix_ = true;
    } else if (type == "Replace" && visible && from != nullptr && *from == Json(" ")) {
      visible_space_ = true;
    } else {
      return Unsupported("normalizer", part);
    }
  }
  return absl::OkStatus();
}

Status FolderTokens::ReadSplits(const Json& pre_tokenizer, std::vector<std::string>& patterns) {
  QUERN_ASSIGN(const std::vector<Json> parts, PartsOf(&pre_tokenizer, "pretokenizers", "pre_tokenizer"));
  for (const Json& part : parts) {
    const std::string type = TypeOf(part);
    if (type == "ByteLevel") {
      byte_level_ = true;
      QUERN_ASSIGN(const std::optional<bool> space, FindBool(part, "add_prefix_space"));
      QUERN_ASSIGN(const std::optional<bool> regex, FindBool(part, "use_regex"));
      if (space.value_or(false)) return Unsupported("pre_tokenizer", part);
      if (regex.value_or(true)) patterns.emplace_back(kGpt2Pattern);
    } else if (type == "Split") {
      QUERN_ASSIGN(std::string pattern, PatternOf(part));
      patterns.push_back(std::move(pattern));
    } else if (type == "Digits") {
      QUERN_ASSIGN(const std::optional<bool> each, FindBool(part, "individual_digits"));
      patterns.emplace_back(each.value_or(false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Punctuation") {
      QUERN_ASSIGN(const std::optional<std::string> behavior, FindText(part, "behavior"));
      if (behavior != "Contiguous") return Unsupported("pre_tokenizer", part);
      patterns.emplace_back(R"([\p{P}$+<=>\^~|`]+)");
    } else {
      return Unsupported("pre_tokenizer", part);
    }
  }
  return absl::OkStatus();
}

// BPE over bytes.
Status FolderTokens::ReadBytePairs(const Json& tokenizer, const Json& model) {
  model_ = "gpt2";
  if (visible_space_ || space_prefix_) return Unsupported("normalizer", *Member(tokenizer, "normalizer"));
  const Json* pre_tokenizer = Member(tokenizer, "pre_tokenizer");
  std::vector<std::string> patterns;
  if (pre_tokenizer != nullptr) QUERN_RETURN_IF_ERROR(ReadSplits(*pre_tokenizer, patterns));
  if (!byte_level_)
    return absl::UnimplementedError(
        "model: a BPE that is neither of bytes nor has them as a fallback is not supported");
  QUERN_ASSIGN(const std::optional<bool> ignore, FindBool(model, "ignore_merges"));
  QUERN_ASSIGN(const SplitRule* rule, FindSplitRuleOf(patterns, ignore.value_or(false)));
  pre_ = rule->names.substr(0, rule->names.find(' '));
  return absl::OkStatus();
}

// BPE over characters, with bytes for those that are no token: SentencePiece's. A token's score is the place of the
// first merge that makes it.
Status FolderTokens::ReadPieces(const Json& tokenizer) {
  model_ = "llama";
  if (const Json* pre_tokenizer = Member(tokenizer, "pre_tokenizer"); pre_tokenizer != nullptr) {
    const std::string type = TypeOf(*pre_tokenizer);
    const Json* pattern = Member(*pre_tokenizer, "pattern");
    if (type == "Metaspace") {
      QUERN_ASSIGN(const std::optional<std::string> scheme, FindText(*pre_tokenizer, "prepend_scheme"));
      QUERN_ASSIGN(const std::optional<bool> prefix, FindBool(*pre_tokenizer, "add_prefix_space"));
      visible_space_ = true;
      metaspace_ = scheme.value_or(prefix.value_or(true) ? "always" : "never");
      space_prefix_ |= metaspace_ != "never";
    } else if (type != "Split" || pattern == nullptr || *pattern != Json{{"String", " "}} || !visible_space_) {
      return Unsupported("pre_tokenizer", *pre_tokenizer);
    }
  }
  if (!visible_space_) return absl::UnimplementedError("a BPE with bytes as a fallback whose spaces are not U+2581");
  scores_.assign(texts_.size(), -static_cast<float>(merges_.size()) - 1);
  for (const auto& [id, place] : places_) scores_[static_cast<size_t>(id)] = -static_cast<float>(place);
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (kinds_[id] == static_cast<int32_t>(TokenKind::kNormal) && ByteOf(texts_[id]) >= 0)
      kinds_[id] = static_cast<int32_t>(TokenKind::kByte);
  }
  return absl::OkStatus();
}

Status FolderTokens::ReadWordPieces(const Json& tokenizer, const Json& model) {
  model_ = "bert";
  QUERN_ASSIGN(const std::optional<std::string> prefix, FindText(model, "continuing_subword_prefix"));
  if (prefix.value_or("##") != "##") return Unsupported("continuing_subword_prefix", Json(*prefix));
  const Json* normalizer = Member(tokenizer, "normalizer");
  const Json* pre_tokenizer = Member(tokenizer, "pre_tokenizer");
  if (normalizer == nullptr || TypeOf(*normalizer) != "BertNormalizer")
    return Unsupported("normalizer", normalizer == nullptr ? Json() : *normalizer);
  QUERN_ASSIGN(const std::optional<bool> lower, FindBool(*normalizer, "lowercase"));
  QUERN_ASSIGN(const std::optional<bool> accents, FindBool(*normalizer, "strip_accents"));
  if (!lower.value_or(true) || !accents.value_or(true)) return Unsupported("normalizer", *normalizer);
  if (pre_tokenizer == nullptr || TypeOf(*pre_tokenizer) != "BertPreTokenizer")
    return Unsupported("pre_tokenizer", pre_tokenizer == nullptr ? Json() : *pre_tokenizer);
  // Vocabularies of GGUF mark the first piece of a word, these the others.
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (kinds_[id] != static_cast<int32_t>(TokenKind::kNormal)) continue;
    texts_[id] =
        texts_[id].starts_with("##") ? texts_[id].substr(2) : absl::StrCat(std::string(kVisibleSpace), texts_[id]);
  }
  return absl::OkStatus();
}

StatusOr<FolderTokens> FolderTokens::Read(const Json& tokenizer) {
  const Json* model = Member(tokenizer, "model");
  if (model == nullptr || !model->is_object()) return absl::InvalidArgumentError("model expected");
  const std::string type = TypeOf(*model);
  const bool pairs = type == "BPE" || (type.empty() && Member(*model, "merges") != nullptr);
  if (!pairs && type != "WordPiece") {
    return absl::UnimplementedError(
        absl::StrFormat("a tokenizer model %s is not supported; BPE and WordPiece are", Shown(Json(type))));
  }
  FolderTokens tokens;
  QUERN_RETURN_IF_ERROR(tokens.ReadVocabulary(tokenizer, *model));
  if (!pairs) {
    QUERN_RETURN_IF_ERROR(tokens.ReadWordPieces(tokenizer, *model));
  } else {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      QUERN_ASSIGN(const std::optional<std::string> text, FindText(*model, key));
      if (text && !text->empty()) return Unsupported(key, Json(*text));
    }
    if (const Json* normalizer = Member(tokenizer, "normalizer"); normalizer != nullptr)
      QUERN_RETURN_IF_ERROR(tokens.ReadNormalizer(*normalizer));
    QUERN_RETURN_IF_ERROR(tokens.ReadMerges(*model));
    QUERN_ASSIGN(const std::optional<bool> fallback, FindBool(*model, "byte_fallback"));
    QUERN_RETURN_IF_ERROR(fallback.value_or(false) ? tokens.ReadPieces(tokenizer)
                                                   : tokens.ReadBytePairs(tokenizer, *model));
  }
  if (tokens.unknown_ >= 0 && tokens.model_ != "gpt2")
    tokens.kinds_[static_cast<size_t>(tokens.unknown_)] = static_cast<int32_t>(TokenKind::kUnknown);
  return tokens;
}

void FolderTokens::Put(Metadata& metadata) const {
  metadata.PutText("tokenizer.ggml.model", model_);
  if (!pre_.empty()) metadata.PutText("tokenizer.ggml.pre", pre_);
  metadata.PutTexts("tokenizer.ggml.tokens", texts_);
  metadata.PutInts("tokenizer.ggml.token_type", kinds_);
  if (!scores_.empty()) metadata.PutFloats("tokenizer.ggml.scores", scores_);
  if (!merges_.empty()) metadata.PutTexts("tokenizer.ggml.merges", merges_);
  if (model_ == "llama") metadata.Put("tokenizer.ggml.add_space_prefix", space_prefix_);
  if (!metaspace_.empty()) metadata.PutText(kMetaspace, metaspace_);
  if (unknown_ >= 0) metadata.PutInt("tokenizer.ggml.unknown_token_id", unknown_);
}

}  // namespace quern::text
