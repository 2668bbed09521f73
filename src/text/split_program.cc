#include "text/split_program.h"

#include <unicode/uregex.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace quern::text {
namespace {

constexpr int32_t kCodePoints = 0x110000, kBlock = 256;
constexpr size_t kMostSets = 64;
constexpr uint32_t kForever = UINT32_MAX;

using Steps = std::vector<quern_kit_step>;  // targets count from the step that has them, until all is one list

// The sets that expressions name, each once: how ICU spells it.
class Sets {
 public:
  uint32_t Add(const std::string& spelling) {
    const auto at = static_cast<size_t>(std::find(spellings_.begin(), spellings_.end(), spelling) - spellings_.begin());
    if (at == spellings_.size()) spellings_.push_back(spelling);
    return static_cast<uint32_t>(at);
  }

  Status Fill(SplitProgram& program) const {
    if (spellings_.size() > kMostSets) return absl::InternalError("an expression with more than 64 sets");
    std::vector<uint64_t> in(kCodePoints);  // a bit for each set
    for (size_t set = 0; set < spellings_.size(); ++set) QUERN_RETURN_IF_ERROR(Mark(spellings_[set], set, in));
    std::map<uint64_t, uint8_t> classes;
    std::map<std::array<uint8_t, kBlock>, uint16_t> blocks;
    for (int32_t begin = 0; begin < kCodePoints; begin += kBlock) {
      std::array<uint8_t, kBlock> block;
      for (int32_t i = 0; i < kBlock; ++i) {
        const size_t known = classes.size();
        if (known == 256 && !classes.contains(in[begin + i])) return absl::InternalError("more than 256 classes");
        block[i] = classes.emplace(in[begin + i], static_cast<uint8_t>(known)).first->second;
      }
      const auto [at, added] = blocks.emplace(block, static_cast<uint16_t>(blocks.size()));
      if (added) program.classes.insert(program.classes.end(), block.begin(), block.end());
      program.blocks.push_back(at->second);
    }
    program.sets.resize(spellings_.size() * QUERN_KIT_SET_WORDS);
    for (const auto& [bits, number] : classes) {
      for (size_t set = 0; set < spellings_.size(); ++set)
        program.sets[set * QUERN_KIT_SET_WORDS + number / 32] |= static_cast<uint32_t>(bits >> set & 1) << number % 32;
    }
    return absl::OkStatus();
  }

 private:
  // Sets the bit of every code point that the expression matches.
  static Status Mark(const std::string& spelling, size_t set, std::vector<uint64_t>& in) {
    std::u16string pattern(spelling.size(), 0);
    int32_t length = 0;
    UErrorCode error = U_ZERO_ERROR;
    u_strFromUTF8(pattern.data(), static_cast<int32_t>(pattern.size()), &length, spelling.data(),
                  static_cast<int32_t>(spelling.size()), &error);
    const std::unique_ptr<URegularExpression, decltype(&uregex_close)> regex(
        uregex_open(pattern.data(), length, 0, nullptr, &error), uregex_close);
    if (U_FAILURE(error))
      return absl::InternalError(absl::StrFormat("expression %s: %s", spelling, u_errorName(error)));
    for (int32_t begin = 0; begin < kCodePoints; begin += kBlock) {
      if (begin >= 0xd800 && begin < 0xe000) continue;  // no characters
      std::u16string text;
      std::vector<int32_t> points;
      for (int32_t point = begin; point < begin + kBlock; ++point) {
        if (point > 0xffff) text += static_cast<char16_t>(U16_LEAD(point));
        text += point > 0xffff ? static_cast<char16_t>(U16_TRAIL(point)) : static_cast<char16_t>(point);
        points.resize(text.size(), point);
      }
      uregex_setText(regex.get(), text.data(), static_cast<int32_t>(text.size()), &error);
      while (uregex_findNext(regex.get(), &error) && U_SUCCESS(error)) {
        const int32_t end = uregex_end(regex.get(), 0, &error);
        for (int32_t at = uregex_start(regex.get(), 0, &error); at < end; ++at) in[points[at]] |= uint64_t{1} << set;
      }
      if (U_FAILURE(error))
        return absl::InternalError(absl::StrFormat("expression %s: %s", spelling, u_errorName(error)));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> spellings_;
};

class Expression {
 public:
  Expression(std::string_view pattern, Sets& sets) : pattern_(pattern), sets_(sets) {}

  StatusOr<Steps> Compile() {
    QUERN_ASSIGN(Steps steps, Alternatives());
    if (at_ < pattern_.size()) return Refuse();
    steps.push_back({QUERN_STEP_MATCH, 0, 0, 0});
    if (steps.size() > QUERN_KIT_MOST_STEPS) return Refuse();
    return steps;
  }

 private:
  bool Take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool Next(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  Status Refuse() const {
    return absl::UnimplementedError(
        absl::StrFormat("the expression %s does not become a program: at character %d", std::string(pattern_), at_));
  }
  static void Append(Steps& to, const Steps& from) { to.insert(to.end(), from.begin(), from.end()); }
  static uint32_t Ahead(size_t steps) { return static_cast<uint32_t>(steps); }

  StatusOr<Steps> Alternatives() {
    std::vector<Steps> branches;
    do {
      Steps branch;
      while (at_ < pattern_.size() && !Next('|') && !Next(')')) {
        QUERN_ASSIGN(const Steps item, Item());
        Append(branch, item);
      }
      branches.push_back(std::move(branch));
    } while (Take("|"));
    Steps result = branches.back();
    for (size_t b = branches.size() - 1; b-- > 0;) {
      Steps steps = {{QUERN_STEP_SPLIT, Ahead(branches[b].size() + 2), 0, 0}};
      Append(steps, branches[b]);
      steps.push_back({QUERN_STEP_JUMP, Ahead(result.size() + 1), 0, 0});
      Append(steps, result);
      result = std::move(steps);
    }
    return result;
  }

  StatusOr<Steps> Item() {
    if (Take("\\z")) return Steps{{QUERN_STEP_AT_END, 0, 0, 0}};
    if (Take("(?!")) {
      QUERN_ASSIGN(const uint32_t set, Set());
      if (!Take(")")) return Refuse();
      return Steps{{QUERN_STEP_NOT_BEFORE, set, 0, 0}};
    }
    if (Next('(')) return Group();
    QUERN_ASSIGN(const uint32_t set, Set());
    uint32_t least = 1, most = 1;
    if (!Repeated(least, most)) return Refuse();
    if (least == 1 && most == 1) return Steps{{QUERN_STEP_SET, set, 0, 0}};
    return Steps{{QUERN_STEP_LOOP, set, least, most}};
  }

  StatusOr<Steps> Group() {
    const bool outer = any_case_;
    if (Take("(?i:"))
      any_case_ = true;
    else if (!Take("(?:") && (!Take("(") || Next('?')))
      return Refuse();
    QUERN_ASSIGN(Steps body, Alternatives());
    any_case_ = outer;
    if (!Take(")")) return Refuse();
    uint32_t least = 1, most = 1;
    if (!Repeated(least, most) || most != 1) return Refuse();
    if (least == 1) return body;
    Steps steps = {{QUERN_STEP_SPLIT, Ahead(body.size() + 1), 0, 0}};
    Append(steps, body);
    return steps;
  }

  // False: not as often as a program can say.
  bool Repeated(uint32_t& least, uint32_t& most) {
    if (Take("?"))
      least = 0;
    else if (Take("*"))
      least = 0, most = kForever;
    else if (Take("+"))
      most = kForever;
    else if (Take("{")) {
      least = Number();
      most = !Take(",") ? least : Next('}') ? kForever : Number();
      if (!Take("}")) return false;
    } else
      return true;
    return !Next('?') && !Next('*') && !Next('+') && most >= least;
  }
  uint32_t Number() {
    uint32_t number = 0;
    while (at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9' && number < 1000)
      number = number * 10 + static_cast<uint32_t>(pattern_[at_++] - '0');
    return number;
  }

  // One character: a class in brackets, an escape, or itself.
  StatusOr<uint32_t> Set() {
    const size_t begin = at_;
    if (at_ == pattern_.size() || std::string_view(".^$*+?{})|").find(pattern_[at_]) != std::string_view::npos)
      return Refuse();
    if (Next('[')) {
      int depth = 0;
      do {
        if (at_ == pattern_.size()) return Refuse();
        depth += Next('[') - Next(']');
        at_ += Next('\\') ? 2 : 1;
      } while (depth > 0);
    } else if (Take("\\")) {
      const char kind = at_ < pattern_.size() ? pattern_[at_] : ' ';
      at_ += kind == 'u' ? 5 : kind == 'U' ? 9 : 1;
      if (kind == 'p' || kind == 'P') at_ = pattern_.find('}', at_) + 1;
      if (std::string_view("bBAZGQEdDwWX0123456789").find(kind) != std::string_view::npos) return Refuse();
    } else {
      U8_FWD_1(reinterpret_cast<const uint8_t*>(pattern_.data()), at_, pattern_.size());
    }
    if (at_ > pattern_.size() || at_ <= begin) return Refuse();
    const std::string spelling = WithWhiteSpace(pattern_.substr(begin, at_ - begin));
    return sets_.Add(absl::StrCat(any_case_ ? "(?i:" : "(?:", spelling, ")"));
  }

  std::string_view pattern_;
  Sets& sets_;
  size_t at_ = 0;
  bool any_case_ = false;
};

}  // namespace

StatusOr<SplitProgram> CompileSplitRule(const SplitRule& rule) {
  SplitProgram program;
  Sets sets;
  for (const std::string_view pattern : rule.patterns) {
    if (pattern.empty()) break;
    QUERN_ASSIGN(Steps steps, Expression(pattern, sets).Compile());
    for (size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].op == QUERN_STEP_SPLIT || steps[s].op == QUERN_STEP_JUMP) steps[s].a += static_cast<uint32_t>(s);
    }
    program.rules.push_back(static_cast<uint32_t>(program.steps.size()));
    program.steps.insert(program.steps.end(), steps.begin(), steps.end());
  }
  QUERN_RETURN_IF_ERROR(sets.Fill(program));
  return program;
}

}  // namespace quern::text
