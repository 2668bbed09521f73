// Perplexities by llama.cpp's library, as its llama-perplexity adds them up, for tests/run/perplexity_test.py: chunks
// that begin with the begin token, of which the second half counts; f16 cache. With a base, the divergence from it as
// well. Not built with the tests.
//
//   g++ -O2 -std=c++17 -I LLAMA/include -I LLAMA/ggml/include record.cc -o record -L LLAMA/build/src -lllama -lggml
//   ./record MODEL.gguf TEXT CHUNK [BASE.gguf]
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Model {
  llama_model* model;
  llama_context* context;
  int vocabulary;
};

Model Open(const char* path, int chunk) {
  llama_model* const model = llama_model_load_from_file(path, llama_model_default_params());
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = chunk;
  return {model, llama_init_from_model(model, params), llama_n_vocab(model)};
}

void Decode(const Model& of, const llama_token* ids, int chunk) {
  llama_kv_cache_clear(of.context);
  llama_batch batch = llama_batch_init(chunk, 0, 1);
  batch.n_tokens = chunk;
  for (int i = 0; i < chunk; ++i) {
    batch.token[i] = ids[i], batch.pos[i] = i, batch.n_seq_id[i] = 1, batch.seq_id[i][0] = 0, batch.logits[i] = 1;
  }
  if (llama_decode(of.context, batch) != 0) std::exit(1);
  llama_batch_free(batch);
}

std::vector<double> Chances(const Model& of, int i) {
  const float* const logits = llama_get_logits_ith(of.context, i);
  const double highest = *std::max_element(logits, logits + of.vocabulary);
  std::vector<double> chances;
  double all = 0;
  for (int v = 0; v < of.vocabulary; ++v) all += chances.emplace_back(std::exp(logits[v] - highest));
  for (double& chance : chances) chance /= all;
  return chances;
}

}  // namespace

int main(int count, char** arguments) {
  llama_backend_init();
  const int chunk = std::atoi(arguments[3]);
  const Model model = Open(arguments[1], chunk), base = Open(arguments[count > 4 ? 4 : 1], chunk);
  std::ifstream file(arguments[2]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<llama_token> ids(text.size() + 8);
  ids.resize(llama_tokenize(model.model, text.data(), text.size(), ids.data(), ids.size(), true, false));
  double sum = 0, divergence = 0;
  int tokens = 0, same = 0;
  for (int c = 0; c < static_cast<int>(ids.size()) / chunk; ++c) {
    llama_token* const here = ids.data() + c * chunk;
    if (llama_add_bos_token(model.model) == 1) here[0] = llama_token_bos(model.model);
    Decode(model, here, chunk);
    Decode(base, here, chunk);
    for (int i = chunk / 2; i < chunk - 1; ++i, ++tokens) {
      const std::vector<double> q = Chances(model, i), p = Chances(base, i);
      sum -= std::log(q[here[i + 1]]);
      for (int v = 0; v < model.vocabulary; ++v) divergence += p[v] > 0 ? p[v] * std::log(p[v] / q[v]) : 0;
      same += std::max_element(q.begin(), q.end()) - q.begin() == std::max_element(p.begin(), p.end()) - p.begin();
    }
  }
  std::printf("%.6f, %d tokens; from the base %.8f, %d the same\n", std::exp(sum / tokens), tokens, divergence / tokens,
              same);
}
