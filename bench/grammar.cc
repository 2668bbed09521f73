// What a grammar costs for each token: bench_grammar VOCABULARY.gguf [TEXT].
//
// The text, JSON, is tokenised and its tokens are accepted one after the other under the grammar of --json, as a
// sampler asks for what may come. One line of JSON, in ms: the tree of the vocabulary (once a tokenizer), the first
// pass over the text, in which states are new, and a second one, in which they are known: the mean token and the
// slowest.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "generate/constraint.h"
#include "generate/json_schema.h"
#include "import/gguf.h"
#include "text/tokenizer.h"

namespace {

double Milliseconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "bench_grammar VOCABULARY.gguf [TEXT]\n"), 1;
  std::string text =
      R"({"name": "Ada Lovelace", "born": 1815, "tags": ["mathematics", "engines", null], "works": [{"title": )"
      R"("Notes on the Analytical Engine", "year": 1843, "pages": [1, 2, 3.5e2]}], "alive": false})";
  if (argc > 2) text = argv[2];
  quern::StatusOr<quern::GgufFile> file = quern::GgufFile::Open(argv[1]);
  if (!file.ok()) return std::fprintf(stderr, "%s\n", std::string(file.status().message()).c_str()), 1;
  const auto tokenizer =
      quern::text::Tokenizer::FromMetadata(std::make_shared<const quern::GgufFile>(*std::move(file)));
  if (!tokenizer.ok()) return std::fprintf(stderr, "%s\n", std::string(tokenizer.status().message()).c_str()), 1;
  const double tree = Milliseconds([&] { (*tokenizer)->trie(); });
  const std::vector<int32_t> ids = (*tokenizer)->Encode(text, {.add_special = false});
  const auto rules = quern::json_schema::Grammar("{}");
  auto constraint = quern::Constraint::Make(*rules, (*tokenizer)->trie());
  if (!constraint.ok()) return std::fprintf(stderr, "%s\n", std::string(constraint.status().message()).c_str()), 1;
  std::printf("{\"vocabulary\": %d, \"tokens\": %zu, \"tree_ms\": %.1f", (*tokenizer)->vocabulary().size(), ids.size(),
              tree);
  for (const char* const pass : {"first", "again"}) {
    (*constraint)->Restart();
    double all = 0, slowest = 0;
    for (const int32_t id : ids) {
      bool right = false;
      const double time =
          Milliseconds([&] { right = (*constraint)->Allowed().ok() && (*constraint)->Accept(id).ok(); });
      if (!right) return std::fprintf(stderr, "the text is no JSON\n"), 1;
      all += time;
      slowest = std::max(slowest, time);
    }
    std::printf(", \"%s_ms\": %.4f, \"%s_slowest_ms\": %.3f", pass, all / static_cast<double>(ids.size()), pass,
                slowest);
  }
  std::printf("}\n");
  return 0;
}
