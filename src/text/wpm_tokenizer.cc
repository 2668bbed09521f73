// WordPiece ("bert"): text is normalised (NFD, accents and control characters away, lower case), cut into words at
// white space, each punctuation mark and each Chinese character a word of its own; of each word the longest piece that
// is a token comes first. A word that has no such pieces is the unknown token.
//
//   "Héllo!" -> "hello" "!"       vocabularies write the first piece of a word "▁hello"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <algorithm>

#include "text/tokenizer.h"

namespace quern::text {
namespace {

// Chinese characters as the original tokenizer counts them.
bool IsChinese(UChar32 c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool StandsAlone(UChar32 c) {
  return u_ispunct(c) || IsChinese(c) || (c < 0x7f && (U_GET_GC_MASK(c) & U_GC_S_MASK) != 0);
}

std::u16string Decomposed(std::string_view text) {
  std::u16string wide(text.size(), 0);
  int32_t length = 0;
  UErrorCode error = U_ZERO_ERROR;
  u_strFromUTF8WithSub(wide.data(), static_cast<int32_t>(wide.size()), &length, text.data(),
                       static_cast<int32_t>(text.size()), 0xfffd, nullptr, &error);
  if (U_FAILURE(error)) return {};
  wide.resize(length);
  const UNormalizer2* const form = unorm2_getNFDInstance(&error);
  std::u16string result(wide.size() + 16, 0);
  while (true) {
    error = U_ZERO_ERROR;
    length = unorm2_normalize(form, wide.data(), static_cast<int32_t>(wide.size()), result.data(),
                              static_cast<int32_t>(result.size()), &error);
    if (error != U_BUFFER_OVERFLOW_ERROR) break;
    result.resize(length);
  }
  result.resize(U_FAILURE(error) ? 0 : length);
  return result;
}

// The words of a text, in UTF-8.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words(1);
  const std::u16string decomposed = Decomposed(text);
  const auto size = static_cast<int32_t>(decomposed.size());
  for (int32_t at = 0; at < size;) {
    UChar32 c;
    U16_NEXT(decomposed.data(), at, size, c);
    if (u_isUWhiteSpace(c)) {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    const uint32_t category = U_GET_GC_MASK(c);
    if (c == 0 || c == 0xfffd || (category & (U_GC_C_MASK | U_GC_MN_MASK)) != 0) continue;
    const bool alone = StandsAlone(c);
    if (alone && !words.back().empty()) words.emplace_back();
    char bytes[4];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, u_tolower(c));
    words.back().append(bytes, length);
    if (alone) words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

class WpmTokenizer : public Tokenizer {
 public:
  WpmTokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary)
      : Tokenizer(std::move(file), std::move(vocabulary)) {
    for (int32_t id = 0; id < this->vocabulary().size(); ++id)
      longest_ = std::max(longest_, this->vocabulary().token(id).text.size());
  }

 private:
  void EncodeFragment(std::string_view text, bool /*first*/, std::vector<int32_t>& ids) const override {
    constexpr size_t kBlock = size_t{1} << 28;  // ICU counts in 32 bits
    for (; !text.empty(); text.remove_prefix(std::min(kBlock, text.size()))) {
      for (const std::string& word : Words(text.substr(0, kBlock))) EncodeWord(word, ids);
    }
  }

  void EncodeWord(const std::string& word, std::vector<int32_t>& ids) const {
    const std::string text = std::string(kVisibleSpace) + word;
    const size_t before = ids.size();
    for (size_t at = 0; at < text.size();) {
      int32_t found = -1;
      size_t length = std::min(longest_, text.size() - at);
      while (length > 0 && (found = vocabulary().Find(std::string_view(text).substr(at, length))) < 0) --length;
      if (found < 0) {
        ids.resize(before);
        if (vocabulary().unknown() >= 0) ids.push_back(vocabulary().unknown());
        return;
      }
      ids.push_back(found);
      at += length;
    }
  }

  std::string NormalPiece(std::string_view token) const override { return ReplaceAll(token, kVisibleSpace, " "); }

  size_t longest_ = 0;  // bytes of a token
};

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> MakeWpmTokenizer(std::shared_ptr<const Metadata> file) {
  // The space in front of the first word is no part of a text.
  QUERN_ASSIGN(Vocabulary vocabulary,
               Vocabulary::FromMetadata(*file, {.add_begin = true, .add_end = true, .add_space_prefix = true}));
  return std::make_unique<const WpmTokenizer>(std::move(file), std::move(vocabulary));
}

}  // namespace quern::text
