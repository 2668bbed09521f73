// Perplexities by llama.cpp's library, as its llama-perplexity adds them up, for tests/run/perplexity_test.py: chunks
// that begin with the begin token, of which the second half counts; f16 cache. Not built with the tests.
//
//   g++ -O2 -std=c++17 -I LLAMA/include -I LLAMA/ggml/include record.cc -o record -L LLAMA/build/src -lllama -lggml
//   ./record MODEL.gguf TEXT CHUNK
#include <llama.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int, char** argv) {
  llama_backend_init();
  llama_model* const model = llama_model_load_from_file(argv[1], llama_model_default_params());
  std::ifstream file(argv[2]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const int chunk = std::atoi(argv[3]);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = chunk;
  llama_context* const context = llama_init_from_model(model, params);
  std::vector<llama_token> ids(text.size() + 8);
  ids.resize(llama_tokenize(model, text.data(), text.size(), ids.data(), ids.size(), true, false));
  const int vocabulary = llama_n_vocab(model), chunks = static_cast<int>(ids.size()) / chunk;
  double sum = 0;
  int count = 0;
  for (int c = 0; c < chunks; ++c) {
    llama_token* const here = ids.data() + c * chunk;
    if (llama_add_bos_token(model) == 1) here[0] = llama_token_bos(model);
    llama_kv_cache_clear(context);
    llama_batch batch = llama_batch_init(chunk, 0, 1);
    batch.n_tokens = chunk;
    for (int i = 0; i < chunk; ++i) {
      batch.token[i] = here[i], batch.pos[i] = i, batch.n_seq_id[i] = 1, batch.seq_id[i][0] = 0, batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) return 1;
    for (int i = chunk / 2; i < chunk - 1; ++i, ++count) {
      const float* const logits = llama_get_logits_ith(context, i);
      double all = 0;
      for (int v = 0; v < vocabulary; ++v) all += std::exp(logits[v] - logits[here[i + 1]]);
      sum += std::log(all);
    }
    llama_batch_free(batch);
  }
  std::printf("%.6f, %d tokens\n", std::exp(sum / count), count);
}
