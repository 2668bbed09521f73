// What is left of rows of logits, against llama.cpp's samplers: tests/golden/sampling/record.cc says what its file has.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "generate/sampler.h"

namespace quern {
namespace {

struct Recorded {
  SamplingOptions options = {.temperature = 1};
  std::vector<int32_t> breakers, history;
  std::vector<float> logits;
  std::map<int32_t, double> left;
};

template <typename T>
std::vector<T> Numbers(std::istringstream& line) {
  std::vector<T> numbers;
  for (T number; line >> number;) numbers.push_back(number);
  return numbers;
}

// Sets what a line says.
void Read(const std::string& text, Recorded& to) {
  std::istringstream line(text);
  std::string name;
  line >> name;
  if (name == "breakers") {
    to.breakers = Numbers<int32_t>(line);
  } else if (name == "history") {
    to.history = Numbers<int32_t>(line);
  } else if (name == "logits") {
    to.logits = Numbers<float>(line);
  } else if (name == "left") {
    int32_t id = 0;
    for (double p = 0; line >> id >> p;) to.left[id] = p;
  } else {
    const auto number = std::ranges::find(SamplingNumbers(), name, &SamplingNumber::name);
    ASSERT_NE(number, SamplingNumbers().end()) << name;
    number->Set(to.options, Numbers<double>(line).at(0));
  }
}

TEST(Recorded, IsWhatLlamaCppLeaves) {
  std::ifstream file(QUERN_SOURCE_DIR "/tests/golden/sampling/recorded.txt");
  Recorded recorded;
  std::map<std::string, int> seen;  // options that were not at their defaults
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty()) {
      ASSERT_NO_FATAL_FAILURE(Read(line, recorded));
      ++seen[line.substr(0, line.find(' '))];
      continue;
    }
    SCOPED_TRACE(testing::Message() << "the case that ends at line " << number);
    ASSERT_TRUE(CheckSamplingOptions(recorded.options).ok());
    TokenSampler sampler(recorded.options, nullptr, recorded.breakers);
    sampler.Observe(recorded.history);
    const std::vector<Candidate> got = sampler.Distribution(recorded.logits);
    ASSERT_EQ(got.size(), recorded.left.size());
    for (const Candidate& candidate : got) {
      ASSERT_TRUE(recorded.left.contains(candidate.id)) << candidate.id;
      // It computes in f32, and writes six digits.
      EXPECT_NEAR(candidate.weight, recorded.left[candidate.id], 3e-6) << candidate.id;
    }
    recorded = {};
  }
  for (const char* name : {"repeat_penalty", "dry_base", "breakers", "top_n_sigma", "top_k", "typical_p", "top_p",
                           "min_p", "xtc_threshold", "dynatemp_exponent"})
    EXPECT_GE(seen[name], 12) << name;
}

}  // namespace
}  // namespace quern
