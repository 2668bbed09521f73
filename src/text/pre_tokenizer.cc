#include "text/pre_tokenizer.h"

#include <absl/strings/str_join.h>
#include <unicode/uregex.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <string>

#include "text/tokenizer.h"

namespace quern::text {
namespace {

// Parts that many expressions share, as published models write them.
#define WORD_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"
#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define LETTERS R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define SYMBOLS_LINES R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define SYMBOLS_SLASHES R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"
#define BLANKS R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
// A word may change from upper to lower case once; END is what may follow it.
#define CASED(END) R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" END R"(|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*" END
#define LLAMA3 CONTRACTION "|" LETTERS R"(|\p{N}{1,3}|)" SYMBOLS_LINES "|" BLANKS
#define QWEN2 CONTRACTION "|" LETTERS R"(|\p{N}|)" SYMBOLS_LINES "|" BLANKS
#define ASCII_SYMBOL R"([!"#$%\&'()*+,\-./:;<=>?@\[\\\]\^_`\{|\}~])"
#define HAN_LETTER(CLASSES) R"([[)" CLASSES R"(]&&[^\p{Han}]])"
#define KIMI_UPPER HAN_LETTER(R"(\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})")
#define KIMI_LOWER HAN_LETTER(R"(\p{Ll}\p{Lm}\p{Lo}\p{M})")
// Letters with case, as a list of ranges: of Unicode when the model was made.
#define DEEPSEEK_CASED                                                                                          \
  R"(A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373)"  \
  R"(\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481)"          \
  R"(\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B)" \
  R"(\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B)"  \
  R"(\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB)"  \
  R"(\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128)"    \
  R"(\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4)"   \
  R"(\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF)"  \
  R"(\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3)"           \
  R"(\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF)"                     \
  R"(\U0001E900-\U0001E943)"

constexpr SplitRule kRules[] = {
    {"gpt-2 phi-2 mpt olmo jais trillion granite-docling gigachat a.x-4.0 mellum jina-es jina-de jina-v2-es jina-v2-de "
     "jina-v2-code jina-v1-en roberta-bpe modern-bert",
     {WORD_GPT2}},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", {LLAMA3}, true, true},
    {"dbrx smaug-bpe chatglm-bpe glm4", {LLAMA3}},
    {"qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo grok-2 solar-open", {QWEN2}},
    {"qwen35", {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" BLANKS}},
    {"gpt-4o llama4 minimax-m2", {CASED(CONTRACTION "?") R"(|\p{N}{1,3}|)" SYMBOLS_SLASHES "|" BLANKS}},
    {"tekken", {CASED("") R"(|\p{N}|)" SYMBOLS_SLASHES "|" BLANKS}, true, true},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {R"(\p{N})", WORD_GPT2}},
    {"falcon", {R"([\p{P}$+<=>\^~|`]+)", WORD_GPT2, "[0-9][0-9][0-9]"}},
    {"deepseek-llm",
     {R"([\r\n])", R"(\s?[)" DEEPSEEK_CASED R"(]+)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+\z)",
      R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N}+)"}},
    {"deepseek-coder", {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"}},
    {"deepseek-v3 hunyuan-dense",
     {R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
      ASCII_SYMBOL R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" BLANKS}},
    {"kimi-k2",
     {R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION R"(?|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER
      "+" KIMI_LOWER "*" CONTRACTION R"(?|\p{N}{1,3}|)" SYMBOLS_LINES "|" BLANKS}},
    {"bailingmoe llada-moe",
     {R"('(?i:[sdmt]|ll|ve|re)|)" LETTERS R"(|\p{N}|)" SYMBOLS_LINES R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {"seed-coder", {CONTRACTION "|" LETTERS R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" BLANKS}},
    {"bloom gpt3-finnish poro-chat", {R"( ?[^(\s|.,!?…。，、।۔،)]+)"}},
    {"viking", {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"}},
    {"default", {R"([\p{P}$+<=>\^~|]+)", WORD_GPT2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
};

struct CloseRegex {
  void operator()(URegularExpression* regex) const { uregex_close(regex); }
};
using Regex = std::unique_ptr<URegularExpression, CloseRegex>;

// UTF-16 of a text, and where each of its units came from.
struct Wide {
  std::u16string units;
  std::vector<uint32_t> begins;  // in bytes; one more than units
};

Wide WidenText(std::string_view text) {
  Wide wide;
  wide.units.reserve(text.size());
  wide.begins.reserve(text.size() + 1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t at = 0; at < size;) {
    const int32_t begin = at;
    UChar32 point;
    U8_NEXT(bytes, at, size, point);
    if (point < 0) at = begin + 1;  // invalid: one byte, not what a longer sequence would have been
    const bool pair = point > 0xffff;
    wide.units += point < 0 ? char16_t{0xfffd}
                  : pair    ? static_cast<char16_t>(U16_LEAD(point))
                            : static_cast<char16_t>(point);
    wide.begins.push_back(static_cast<uint32_t>(begin));
    if (pair) {
      wide.units += static_cast<char16_t>(U16_TRAIL(point));
      wide.begins.push_back(static_cast<uint32_t>(begin));
    }
  }
  wide.begins.push_back(static_cast<uint32_t>(size));
  return wide;
}

// Cuts the words that end at `ends` (in units) further, by one expression. An expression that gives up (its stack is
// bounded) leaves what is left of the word whole.
std::vector<int32_t> Cut(URegularExpression* regex, const std::vector<int32_t>& ends) {
  std::vector<int32_t> result;
  int32_t begin = 0;
  for (const int32_t end : ends) {
    UErrorCode error = U_ZERO_ERROR;
    uregex_setRegion(regex, begin, end, &error);
    while (uregex_findNext(regex, &error) && U_SUCCESS(error)) {
      const int32_t from = uregex_start(regex, 0, &error), to = uregex_end(regex, 0, &error);
      if (to == from) continue;
      if (from > begin) result.push_back(from);
      result.push_back(to);
      begin = to;
    }
    if (end > begin) result.push_back(end);
    begin = end;
  }
  return result;
}

// One spelling of expressions that split alike: a class that cannot give back what it took needs no possessive +,
// \s* takes every line end but the one that must follow, and what nothing matches is a word of its own anyway.
std::string Canonical(std::string_view pattern) {
  constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {"?+", "?"},
      {"++", "+"},
      {"*+", "*"},
      {"}+", "}"},
      {R"('(?i:[sdmt]|ll|ve|re))", CONTRACTION},
      {R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))", CONTRACTION},
      {R"(\s*[\r\n]|)", R"(\s*[\r\n]+|)"},
  };
  std::string text(pattern);
  for (const auto& [from, to] : kSpellings) text = ReplaceAll(text, from, to);
  constexpr std::string_view kRest = R"(|\s+)";
  if (text.ends_with(kRest)) text.resize(text.size() - kRest.size());
  return text;
}

}  // namespace

const std::string_view kGpt2Pattern = WORD_GPT2;

std::string WithWhiteSpace(std::string_view pattern) {
  std::string result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool escape = pattern[i] == '\\' && i + 1 < pattern.size();
    if (escape && (pattern[i + 1] == 's' || pattern[i + 1] == 'S'))
      result += pattern[i + 1] == 's' ? R"(\p{White_Space})" : R"(\P{White_Space})";
    else if (escape)
      result += pattern.substr(i, 2);
    else
      result += pattern[i];
    i += escape;
  }
  return result;
}

StatusOr<const SplitRule*> FindSplitRuleOf(std::span<const std::string> patterns, bool ignore_merges) {
  std::vector<std::string> wanted;
  for (const std::string& pattern : patterns) wanted.push_back(Canonical(pattern));
  for (const SplitRule& rule : kRules) {
    std::vector<std::string> own;
    for (const std::string_view pattern : rule.patterns) {
      if (!pattern.empty()) own.push_back(Canonical(pattern));
    }
    if (own == wanted && rule.ignore_merges == ignore_merges) return &rule;
  }
  return absl::UnimplementedError(absl::StrFormat("pre_tokenizer: no rule splits a text by %s%s",
                                                  absl::StrJoin(patterns, " and then "),
                                                  ignore_merges ? ", with ignore_merges" : ""));
}

StatusOr<const SplitRule*> FindSplitRule(std::string_view name) {
  for (const SplitRule& rule : kRules) {
    const std::string names = ' ' + std::string(rule.names) + ' ';
    if (!name.empty() && names.find(' ' + std::string(name) + ' ') != std::string::npos) return &rule;
  }
  return absl::UnimplementedError(
      absl::StrFormat("tokenizer.ggml.pre \"%s\" is not supported; these are: %s", std::string(name),
                      absl::StrJoin(SplitRuleNames(), ", ", [](std::string* out, std::string_view n) { *out += n; })));
}

std::vector<std::string_view> SplitRuleNames() {
  std::vector<std::string_view> result;
  for (const SplitRule& rule : kRules) {
    for (std::string_view names = rule.names; !names.empty();) {
      const size_t blank = std::min(names.find(' '), names.size());
      result.push_back(names.substr(0, blank));
      names.remove_prefix(std::min(blank + 1, names.size()));
    }
  }
  return result;
}

struct PreTokenizer::State {
  std::vector<Regex> expressions;
};

PreTokenizer::PreTokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

StatusOr<PreTokenizer> PreTokenizer::Make(const SplitRule& rule) {
  auto state = std::make_unique<State>();
  for (const std::string_view pattern : rule.patterns) {
    if (pattern.empty()) break;
    const Wide wide = WidenText(WithWhiteSpace(pattern));
    UErrorCode error = U_ZERO_ERROR;
    UParseError place;
    Regex regex(uregex_open(wide.units.data(), static_cast<int32_t>(wide.units.size()), 0, &place, &error));
    if (U_FAILURE(error)) {
      return absl::InternalError(
          absl::StrFormat("expression %s: %s at %d", std::string(pattern), u_errorName(error), place.offset));
    }
    state->expressions.push_back(std::move(regex));
  }
  return PreTokenizer(std::move(state));
}

std::vector<size_t> PreTokenizer::Split(std::string_view text) const {
  std::vector<size_t> result;
  // ICU counts in 32 bits. Blocks are cut between characters, where the text is valid.
  constexpr size_t kBlock = size_t{1} << 28;
  size_t offset = 0;
  while (!text.empty()) {
    size_t size = std::min(text.size(), kBlock);
    while (size < text.size() && size > kBlock - 4 && (static_cast<uint8_t>(text[size]) & 0xc0) == 0x80) --size;
    const Wide wide = WidenText(text.substr(0, size));
    std::vector<int32_t> ends = {static_cast<int32_t>(wide.units.size())};
    for (const Regex& expression : state_->expressions) {
      UErrorCode error = U_ZERO_ERROR;
      const Regex own(uregex_clone(expression.get(), &error));  // an expression remembers its match
      uregex_setText(own.get(), wide.units.data(), static_cast<int32_t>(wide.units.size()), &error);
      if (U_FAILURE(error)) break;
      ends = Cut(own.get(), ends);
    }
    for (const int32_t end : ends) result.push_back(offset + wide.begins[end]);
    offset += size;
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace quern::text
