// Opens a GGUF model and completes a prompt: run_gguf MODEL PROMPT
#include <cstdio>

#include "quern/quern.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: run_gguf MODEL PROMPT\n"), 1;
  quern::Result<quern::Session> session = quern::Session::Open(argv[1]);
  if (!session.ok()) return std::fprintf(stderr, "%s\n", session.error().c_str()), 1;
  quern::Result<std::vector<int32_t>> prompt = session->Tokenize(argv[2]);
  if (!prompt.ok()) return std::fprintf(stderr, "%s\n", prompt.error().c_str()), 1;
  quern::Sampler sampler({});
  quern::Result<std::vector<float>> logits = session->Step(*prompt);
  for (int i = 0; i < 32 && logits.ok(); ++i) {
    const int32_t next = sampler.Next(*logits);
    if (session->IsEnd(next)) break;
    std::fputs(session->Piece(next).c_str(), stdout);
    logits = session->Step(std::span(&next, 1));
  }
  std::puts("");
  return logits.ok() ? 0 : (std::fprintf(stderr, "%s\n", logits.error().c_str()), 1);
}
