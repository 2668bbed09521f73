// DRY, "don't repeat yourself" (p-e-w 2024, text-generation-webui's pull request 5677): where the text ends as it ended
// before, n tokens long, the token that came then loses
//
//   dry_multiplier dry_base^(n - dry_allowed_length)          where n is at least dry_allowed_length
//
// of its logit, n being the longest such ending. Only the last dry_penalty_last tokens are looked at; what repeats does
// not go over a token that holds one of dry_breakers, and such tokens lose nothing.
//
//   a b c c b c y a b c    n: 3 of c (a b c c), 1 of b (c b), 2 of y (b c y)
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "generate/stage.h"

namespace quern {
namespace {

// At `back`: how long the ending is that `text` has in common with itself less its last `back` tokens. This is the Z
// function of the text from its end (Gusfield 1997, "Algorithms on Strings, Trees, and Sequences", section 1.4), in
// time linear in the text: prompts have a hundred thousand tokens.
std::vector<size_t> CommonEndings(std::span<const int32_t> text) {
  std::vector<size_t> common(text.size(), 0);
  const auto from_end = [&](size_t i) { return text[text.size() - 1 - i]; };
  size_t begin = 0, end = 0;  // of what is known to be as from_end(0) on, the part that reaches furthest
  for (size_t back = 1; back < text.size(); ++back) {
    size_t length = back < end ? std::min(common[back - begin], end - back) : 0;
    while (back + length < text.size() && from_end(back + length) == from_end(length)) ++length;
    common[back] = length;
    if (back + length > end) {
      begin = back;
      end = back + length;
    }
  }
  return common;
}

void Apply(const StageInput& in, std::vector<Candidate>& candidates) {
  const SamplingOptions& options = in.options;
  std::span<const int32_t> text = in.history;
  if (options.dry_penalty_last >= 0 && text.size() > static_cast<size_t>(options.dry_penalty_last))
    text = text.last(options.dry_penalty_last);
  const auto breaks = [&](int32_t id) { return std::binary_search(in.breakers.begin(), in.breakers.end(), id); };
  const auto most = static_cast<size_t>(std::find_if(text.rbegin(), text.rend(), breaks) - text.rbegin());
  const auto allowed = static_cast<size_t>(options.dry_allowed_length);
  if (most < allowed) return;
  const std::vector<size_t> common = CommonEndings(text);
  std::unordered_map<int32_t, size_t> longest;
  for (size_t back = 1; back < text.size(); ++back) {
    const size_t length = std::min(common[back], most);
    if (length < allowed) continue;
    size_t& before = longest[text[text.size() - back]];
    before = std::max(before, length);
  }
  for (Candidate& candidate : candidates) {
    const auto found = longest.find(candidate.id);
    if (found == longest.end() || breaks(candidate.id)) continue;
    const double power = std::pow(options.dry_base, static_cast<double>(found->second - allowed));
    // Finite: an infinite logit less infinity would be NaN.
    constexpr double kMost = std::numeric_limits<float>::max();
    candidate.logit = static_cast<float>(candidate.logit - std::min(options.dry_multiplier * power, kMost));
  }
}

}  // namespace

Status CheckDryBreakers(const SamplingOptions& options) {
  for (const std::string& text : options.dry_breakers) {
    if (text.empty()) return absl::InvalidArgumentError("a text of dry_breakers is empty");
  }
  return absl::OkStatus();
}

constexpr Stage kDry = {[](const SamplingOptions& o) { return o.dry_multiplier > 0 && o.dry_penalty_last != 0; },
                        Apply};

}  // namespace quern
