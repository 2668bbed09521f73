#include "codegen/text/helpers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "codegen/text/block_words.h"

namespace quern::text {
namespace {

constexpr Helper kHelpers[] = {
    // Block formats: what an element is worth does not depend on the layout that its fields were read from.
    {"levels", Over::kBlock, "$constant levels_$D[] = {$levels};"},
    {"grid", Over::kBlock, "$words grid_$D[] = {$grid};"},
    {"value", Over::kBlock, R"(float value_$D($given) {
  const float product = $value;
  return product$less;
})"},

    {"read_power", Over::kNone,
     R"(float read_power(int byte) {  // 2 to the power of byte - 128, subnormal where that is 0 or 1
  return from_bits_f32(byte < 2 ? 0x200000 << byte : (byte - 1) * 0x800000);
})"},

    {"inside", Over::kNone, "bool inside($T i, $T size) { return $U(i) < $U(size); }"},

    // Integers: two's complement, no undefined overflow.
    {"neg", Over::kInteger, "$T neg_$D($T a) { return $T($U(0) - $U(a)); }"},
    {"abs", Over::kSigned, "$T abs_$D($T a) { return a < 0 ? $T($U(0) - $U(a)) : a; }"},
    {"abs", Over::kUnsigned, "$T abs_$D($T a) { return a; }"},
    {"not", Over::kInteger, "$T not_$D($T a) { return $T(~a); }"},
    {"add", Over::kInteger, "$T add_$D($T a, $T b) { return $T($U(a) + $U(b)); }"},
    {"sub", Over::kInteger, "$T sub_$D($T a, $T b) { return $T($U(a) - $U(b)); }"},
    {"mul", Over::kInteger, "$T mul_$D($T a, $T b) { return $T($U(a) * $U(b)); }"},
    {"div", Over::kSigned,
     "$T div_$D($T a, $T b) { return b == 0 ? $T(0) : b == -1 ? $T($U(0) - $U(a)) : $T(a / b); }"},
    {"div", Over::kUnsigned, "$T div_$D($T a, $T b) { return b == 0 ? $T(0) : $T(a / b); }"},
    {"mod", Over::kSigned, R"($T mod_$D($T a, $T b) {  // the sign of b
  if (b == 0 || b == -1) return 0;
  const $T rest = $T(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? $T(rest + b) : rest;
})"},
    {"mod", Over::kUnsigned, "$T mod_$D($T a, $T b) { return b == 0 ? $T(0) : $T(a % b); }"},
    {"min", Over::kInteger, "$T min_$D($T a, $T b) { return b < a ? b : a; }"},
    {"max", Over::kInteger, "$T max_$D($T a, $T b) { return a < b ? b : a; }"},
    {"shl", Over::kSigned, "$T shl_$D($T a, $T n) { return n < 0 || n >= $W ? $T(0) : $T($U(a) << n); }"},
    {"shl", Over::kUnsigned, "$T shl_$D($T a, $T n) { return n >= $W ? $T(0) : $T($U(a) << n); }"},
    {"shr", Over::kSigned, R"($T shr_$D($T a, $T n) {  // with the sign, also where the count is out of range
  return $T(a >> (n < 0 || n >= $W ? $T($W - 1) : n));
})"},
    {"shr", Over::kUnsigned, "$T shr_$D($T a, $T n) { return n >= $W ? $T(0) : $T(a >> n); }"},
    {"saturate", Over::kInteger, R"($T saturate_$D($P x) {  // toward zero; NaN gives 0
  if (x != x) return 0;
  if (x <= $l) return $L;
  return x >= $h ? $H : $T(x);
})"},

    // Floats
    {"mod", Over::kFloat, R"($T mod_$D($T a, $T b) {  // the sign of b
  const $T rest = $fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
})"},
    {"min", Over::kFloat, "$T min_$D($T a, $T b) { return a != a ? a : b != b ? b : b < a ? b : a; }"},
    {"max", Over::kFloat, "$T max_$D($T a, $T b) { return a != a ? a : b != b ? b : a < b ? b : a; }"},
    {"rsqrt", Over::kFloat, "$T rsqrt_$D($T x) { return 1.0f / $sqrt(x); }"},
    {"sigmoid", Over::kFloat, "$T sigmoid_$D($T x) { return 1.0f / (1.0f + $exp(-x)); }"},
};

// Keywords of C and of C++: a name that is one in neither reads well in both.
constexpr std::string_view kKeywords =
    " alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue "
    "decltype default delete "
    "do double else enum explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not "
    "nullptr operator or private protected public register restrict return short signed sizeof static struct switch "
    "template this throw "
    "true try typedef typeid typename union unsigned using virtual void volatile while xor int8_t uint8_t int16_t "
    "uint16_t int32_t "
    "uint32_t int64_t uint64_t size_t ptrdiff_t main ";

bool Applies(Over over, DType dtype) {
  switch (over) {
    case Over::kNone: return false;
    case Over::kSigned: return IsInteger(dtype) && !IsUnsigned(dtype);
    case Over::kUnsigned: return IsUnsigned(dtype);
    case Over::kInteger: return IsInteger(dtype);
    case Over::kFloat: return dtype == DType::kF32 || dtype == DType::kF64;
    case Over::kBlock: return IsBlock(dtype);
  }
  return false;
}

// The helper of that name and the dtype it is for.
std::optional<std::pair<const Helper*, DType>> FindHelper(const Language& language, std::string_view name) {
  for (const std::span<const Helper> helpers : {language.helpers, std::span<const Helper>(kHelpers)}) {
    for (const Helper& helper : helpers) {
      if (helper.over == Over::kNone && name == helper.name) return std::pair(&helper, DType::kI64);
      const std::string_view stem = helper.name;
      if (name.size() <= stem.size() + 1 || !name.starts_with(stem) || name[stem.size()] != '_') continue;
      const std::optional<DType> dtype = DTypeFromName(name.substr(stem.size() + 1));
      if (dtype && Applies(helper.over, *dtype)) return std::pair(&helper, *dtype);
    }
  }
  return std::nullopt;
}

// The least and greatest value of an integer, and the powers of two that bound it as floats.
void AddLimits(DType dtype, Language::Words& words) {
  const int bits = 8 * ScalarBytes(dtype), value_bits = IsUnsigned(dtype) ? bits : bits - 1;
  const uint64_t most = bits == 64 && IsUnsigned(dtype) ? UINT64_MAX : (uint64_t{1} << value_bits) - 1;
  const std::string suffix = absl::StrCat(IsUnsigned(dtype) ? "U" : "", bits == 64 ? "L" : "");
  words.emplace_back("$W", absl::StrCat(bits));
  words.emplace_back("$H", absl::StrCat(most, suffix));
  words.emplace_back("$L", IsUnsigned(dtype) ? "0" : absl::StrCat("(-", most, suffix, " - 1)"));
  words.emplace_back("$l", IsUnsigned(dtype) ? "0.0f" : absl::StrFormat("-%.1ff", std::ldexp(1.0, value_bits)));
  words.emplace_back("$h", absl::StrFormat("%.1ff", std::ldexp(1.0, value_bits)));
}

std::string Expand(const Language& language, const Helper& helper, DType dtype) {
  Language::Words words = language.words == nullptr ? Language::Words{} : language.words(language, dtype);
  if (IsBlock(dtype)) {
    for (auto& word : BlockWords(dtype)) words.push_back(std::move(word));
    words.emplace_back("$words", absl::StrCat(language.constant, " ", MemoryType(language, DType::kU16)));
    words.emplace_back("$constant", absl::StrCat(language.constant, " ", MemoryType(language, DType::kI8)));
  }
  words.emplace_back("$D", Row(dtype).name);
  const std::string type = MemoryType(language, dtype);
  const std::string bits = MemoryType(language, !IsBlock(dtype) && ScalarBytes(dtype) == 8 ? DType::kU64 : DType::kU32);
  for (const auto& [word, name] : {std::pair("$T", type), std::pair("$U", bits)}) {
    words.emplace_back(word, name);
    if (!language.casts_like_calls)
      words.emplace_back(absl::StrCat(word, "("), absl::StrCat("(", name, ")("));  // the longest counts
  }
  const std::string widest = MemoryType(language, DType::kF64);
  words.emplace_back("$P", widest.empty() ? MemoryType(language, DType::kF32) : widest);
  for (const char* function : {"sqrt", "exp", "fmod"})
    words.emplace_back(absl::StrCat("$", function), language.function(function, dtype));
  if (IsInteger(dtype)) AddLimits(dtype, words);
  const std::string text = absl::StrReplaceAll(helper.text, words);
  const char* const kind = text.starts_with("typedef") ? "" : text.starts_with("const") ? "static " : "static inline ";
  return absl::StrCat(kind, text, "\n");
}

// Appends the helpers that `text` names, those they need first.
void AppendHelpers(const Language& language, std::string_view text, std::vector<std::string>& done, std::string& out) {
  auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    at = std::max(end, at + 1);
    const auto found = FindHelper(language, word);
    if (!found || std::find(done.begin(), done.end(), word) != done.end()) continue;
    done.push_back(word);
    const std::string helper = Expand(language, *found->first, found->second);
    AppendHelpers(language, helper, done, out);
    out += helper;
  }
}

}  // namespace

std::string HelpersFor(const Language& language, std::string_view body) {
  std::vector<std::string> done;
  std::string out;
  AppendHelpers(language, body, done, out);
  return out;
}

bool IsKeyword(std::string_view identifier) {
  const bool of_implementations =
      identifier.size() > 1 && identifier[0] == '_' &&
      (identifier[1] == '_' || absl::ascii_isupper(static_cast<unsigned char>(identifier[1])));
  return of_implementations ||
         kKeywords.find(absl::StrCat(" ", std::string(identifier), " ")) != std::string_view::npos;
}

bool Reserved(const Language& language, std::string_view identifier) {
  // Libraries define macros with capitals (INT64_C, NAN, M_PI); names of one or two letters are free.
  if (identifier.size() > 2 && absl::ascii_isupper(identifier[0])) return true;
  const std::string word = absl::StrCat(" ", std::string(identifier), " ");
  return identifier.starts_with('_') || FindHelper(language, identifier) || IsKeyword(identifier) ||
         language.taken.find(word) != std::string_view::npos ||
         (language.is_taken != nullptr && language.is_taken(identifier));
}

}  // namespace quern::text
