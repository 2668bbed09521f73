// Answers many prompts at once: each step takes a token of every answer that is not done, and new prompts join as soon
// as there is a place.
//
//   many_texts MODEL PROMPT...
#include <quern/sequences.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int kPlaces = 4, kTokens = 64;

struct Answer {
  int sequence = -1;
  std::vector<int32_t> next;  // the prompt, then one token at a time
  std::string text = {};
  int tokens = 0;
  bool done = false;
};

int Complain(const std::string& error) {
  std::fprintf(stderr, "%s\n", error.c_str());
  return 1;
}

int32_t MostLikely(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return Complain("many_texts MODEL PROMPT...");
  quern::Result<quern::Sequences> model = quern::Sequences::Open(argv[1], {}, {.most = kPlaces});
  if (!model.ok()) return Complain(model.error());
  quern::Result<quern::Tokenizer> tokenizer = model->tokenizer();
  if (!tokenizer.ok()) return Complain(tokenizer.error());
  std::vector<Answer> answers;
  for (int i = 2; i < argc; ++i) answers.push_back({.next = tokenizer->Encode(argv[i])});

  while (true) {
    std::vector<quern::SequenceStep> steps;
    std::vector<Answer*> running;
    for (Answer& answer : answers) {
      if (answer.done) continue;
      if (answer.sequence < 0) {
        quern::Result<int> place = model->Add();
        if (!place.ok()) continue;  // all are taken: in a later step
        answer.sequence = *place;
      }
      running.push_back(&answer);
      steps.push_back({answer.sequence, answer.next});
    }
    if (steps.empty()) break;
    quern::Result<std::vector<std::vector<float>>> logits = model->Step(steps);
    if (!logits.ok()) return Complain(logits.error());
    for (size_t i = 0; i < running.size(); ++i) {
      Answer& answer = *running[i];
      const int32_t id = MostLikely((*logits)[i]);
      answer.done = tokenizer->IsEnd(id) || ++answer.tokens > kTokens;
      if (!answer.done) answer.text += tokenizer->Piece(id);
      answer.next = {id};
      if (answer.done) (void)model->Remove(answer.sequence);
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) std::printf("%s %s\n", argv[i + 2], answers[i].text.c_str());
  return 0;
}
