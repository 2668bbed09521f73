// The numbers among the options of sampling (quern/sampling.h): a row is all that the command line, the server, C and
// Python know of one. What it does is a stage of src/generate/stages.
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "quern/sampling.h"

namespace quern {
namespace {

using Options = SamplingOptions;
constexpr double kNoLimit = std::numeric_limits<double>::infinity(), kMostWhole = std::numeric_limits<int>::max();
constexpr SamplingRange kFinite = {-kNoLimit, kNoLimit}, kFromZero = {0, kNoLimit}, kFromOne = {1, kNoLimit},
                        kPositive = {0, kNoLimit, true}, kShare = {0, 1}, kShareAboveZero = {0, 1, true};

constexpr SamplingRange WholeFrom(int low) { return {static_cast<double>(low), kMostWhole, false, true}; }

constexpr SamplingNumber kNumbers[] = {
    {"temperature", &Options::temperature, kFromZero, "0: the most likely token", "--temp,--temperature", "temp"},
    {"top_k", &Options::top_k, WholeFrom(0), "draw from this many tokens; 0: all", nullptr, "top_k"},
    {"top_p", &Options::top_p, kShareAboveZero, "draw from the likeliest tokens that reach this probability; 1: all",
     nullptr, "top_p"},
    {"min_p", &Options::min_p, kShare, "draw from tokens at least this part as likely as the likeliest; 0: all",
     nullptr, "min_p"},
    {"typical_p", &Options::typical_p, kShareAboveZero,
     "draw from the tokens of most typical surprise that reach this probability; 1: all", "--typical-p,--typical"},
    {"top_n_sigma", &Options::top_n_sigma, kFromZero,
     "draw from tokens so many standard deviations of the logits below the likeliest at most; 0: all",
     "--top-n-sigma,--top-nsigma"},
    {"xtc_probability", &Options::xtc_probability, kShare,
     "how often the likeliest tokens are left out but for the last of them; 0: never", nullptr, "xtc_probability"},
    {"xtc_threshold", &Options::xtc_threshold, kShare, "the probability from which a token is one of those", nullptr,
     "xtc_threshold"},
    {"dynatemp_range", &Options::dynatemp_range, kFromZero,
     "lower the temperature by up to so much where the model is sure, and raise it where it is not; 0: not", nullptr},
    {"dynatemp_exponent", &Options::dynatemp_exponent, kFromZero, "the power of the entropy that does so",
     "--dynatemp-exponent,--dynatemp-exp"},
    {"repeat_penalty", &Options::repeat_penalty, kPositive,
     "make tokens that occurred less likely, by a factor; 1: not", nullptr, "penalty_repeat"},
    {"frequency_penalty", &Options::frequency_penalty, kFinite, "likewise, for each time they occurred", nullptr},
    {"presence_penalty", &Options::presence_penalty, kFinite, "likewise, once", nullptr},
    {"penalty_last", &Options::penalty_last, WholeFrom(-1), "tokens that penalties look back on; -1: all",
     "--penalty-last,--repeat-last-n", "penalty_last_n"},
    {"dry_multiplier", &Options::dry_multiplier, kFromZero,
     "make tokens that would go on with a repetition less likely; 0: not", nullptr},
    {"dry_base", &Options::dry_base, kFromOne, "by how much more with each token that repeats", nullptr},
    {"dry_allowed_length", &Options::dry_allowed_length, WholeFrom(1), "tokens that a repetition has, at least",
     nullptr},
    {"dry_penalty_last", &Options::dry_penalty_last, WholeFrom(-1), "tokens that it looks back on; -1: all",
     "--dry-penalty-last,--dry-penalty-last-n"},
    {"mirostat_tau", &Options::mirostat_tau, kFromZero,
     "keep the text's surprise at this many bits a token, whatever else is asked for; 0: not",
     "--mirostat,--mirostat-tau", "mirostat_tau"},
    {"mirostat_eta", &Options::mirostat_eta, kShare, "how fast that follows the text, from 0 to 1", nullptr,
     "mirostat_eta"},
};

}  // namespace

bool SamplingRange::Holds(double number) const {
  return std::isfinite(number) && number >= low && number <= high && !(above && number == low);
}

std::string SamplingRange::Text() const {
  const char* const noun = whole ? "a whole number" : "a number";
  if (high < (whole ? kMostWhole : kNoLimit))
    return absl::StrFormat("%s in %c%g, %g]", noun, above ? '(' : '[', low, high);
  if (low == -kNoLimit) return "a finite number";
  return above ? absl::StrFormat("%s above %g", noun, low) : absl::StrFormat("%s from %g on", noun, low);
}

double SamplingNumber::Of(const SamplingOptions& options) const {
  return std::visit([&](auto place) -> double { return options.*place; }, member);
}

void SamplingNumber::Set(SamplingOptions& options, double number) const {
  std::visit([&](auto place) { options.*place = static_cast<std::decay_t<decltype(options.*place)>>(number); }, member);
}

std::span<const SamplingNumber> SamplingNumbers() { return kNumbers; }

}  // namespace quern
