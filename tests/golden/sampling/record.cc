// What llama.cpp's samplers leave of rows of logits, for tests/unit/generate/recorded_test.cc. Not built with tests.
//
//   g++ -O2 -std=c++17 -I LLAMA/include -I LLAMA/ggml/include record.cc -o record -L LLAMA/build/bin -lllama
//   ./record VOCABULARY.gguf > recorded.txt
//
// VOCABULARY: of SentencePiece, whose ids 12 and 13 are a tab and a line end. A case is an option a line, each by
// Quern's name, then
//
//   breakers 13                  ids that end a repetition; absent: none
//   history 4 7 4                tokens that came before
//   logits 0.25 -1 3             of ids 0, 1, 2
//   left 0 0.06 2 0.94           ids, and the probabilities that they have then
//
// and an empty line. The order is that of llama.cpp's chain, at temperature 1.
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

std::mt19937 generator(7);

double Uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(generator); }
int Whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }

// Few digits, so that the file says exactly what was used.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

struct Case {
  std::map<std::string, double> options;
  std::vector<const char*> breakers;
  std::vector<llama_token> history;
  std::vector<float> logits;

  double Of(const char* name, double otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
};

std::vector<llama_sampler*> Chain(const Case& c, const llama_vocab* vocab) {
  std::vector<llama_sampler*> chain;
  const int all = static_cast<int>(c.history.size());
  const auto last = [&](double count) { return count < 0 ? all : static_cast<int>(count); };
  chain.push_back(llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), last(c.Of("penalty_last", 64)),
                                               c.Of("repeat_penalty", 1), c.Of("frequency_penalty", 0),
                                               c.Of("presence_penalty", 0)));
  std::vector<const char*> breakers = c.breakers;
  chain.push_back(llama_sampler_init_dry(vocab, c.Of("dry_multiplier", 0), c.Of("dry_base", 1.75),
                                         c.Of("dry_allowed_length", 2), last(c.Of("dry_penalty_last", -1)),
                                         breakers.data(), breakers.size()));
  if (c.Of("top_n_sigma", 0) > 0) chain.push_back(llama_sampler_init_top_n_sigma(c.Of("top_n_sigma", 0)));
  if (c.Of("top_k", 0) > 0) chain.push_back(llama_sampler_init_top_k(c.Of("top_k", 0)));
  if (c.Of("typical_p", 1) < 1) chain.push_back(llama_sampler_init_typical(c.Of("typical_p", 1), 1));
  if (c.Of("top_p", 1) < 1) chain.push_back(llama_sampler_init_top_p(c.Of("top_p", 1), 1));
  if (c.Of("min_p", 0) > 0) chain.push_back(llama_sampler_init_min_p(c.Of("min_p", 0), 1));
  if (c.Of("xtc_probability", 0) > 0)
    chain.push_back(llama_sampler_init_xtc(c.Of("xtc_probability", 0), c.Of("xtc_threshold", 0.1), 1, 1));
  if (c.Of("dynatemp_range", 0) > 0) {
    chain.push_back(
        llama_sampler_init_temp_ext(c.Of("temperature", 1), c.Of("dynatemp_range", 0), c.Of("dynatemp_exponent", 1)));
  }
  return chain;
}

void Print(const Case& c, const llama_vocab* vocab) {
  std::vector<llama_token_data> data;
  for (size_t i = 0; i < c.logits.size(); ++i) data.push_back({static_cast<llama_token>(i), c.logits[i], 0});
  llama_token_data_array candidates = {data.data(), data.size(), -1, false};
  for (llama_sampler* const sampler : Chain(c, vocab)) {
    for (const llama_token token : c.history) llama_sampler_accept(sampler, token);
    llama_sampler_apply(sampler, &candidates);
    llama_sampler_free(sampler);
  }
  for (const auto& [name, value] : c.options) std::printf("%s %.6g\n", name.c_str(), value);
  if (!c.breakers.empty()) {
    std::printf("breakers");
    for (size_t id = 0; id < c.logits.size(); ++id) {
      char piece[64];
      const int size = llama_token_to_piece(vocab, static_cast<llama_token>(id), piece, sizeof(piece), 0, true);
      const std::string text(piece, std::max(size, 0));
      const auto in_text = [&](const char* breaker) { return text.find(breaker) != std::string::npos; };
      if (std::any_of(c.breakers.begin(), c.breakers.end(), in_text)) std::printf(" %zu", id);
    }
    std::printf("\n");
  }
  std::printf("history");
  for (const llama_token token : c.history) std::printf(" %d", token);
  std::printf("\nlogits");
  for (const float logit : c.logits) std::printf(" %.6g", logit);
  std::map<llama_token, double> left;
  double largest = -INFINITY, sum = 0;
  for (size_t i = 0; i < candidates.size; ++i) largest = std::max<double>(largest, candidates.data[i].logit);
  for (size_t i = 0; i < candidates.size; ++i) {
    if (candidates.data[i].logit > -INFINITY)
      sum += left[candidates.data[i].id] = std::exp(candidates.data[i].logit - largest);
  }
  std::printf("\nleft");
  for (const auto& [id, weight] : left) std::printf(" %d %.6g", id, weight / sum);
  std::printf("\n\n");
}

// History of few distinct tokens, so that much of it comes again; lines and tabs are among them.
std::vector<llama_token> Repetitive(int most) {
  const int kinds = Whole(2, 5), size = Whole(0, most);
  std::vector<llama_token> history;
  while (static_cast<int>(history.size()) < size) {
    if (history.size() > 8 && Whole(0, 2) == 0) {  // a part of it again
      const int from = Whole(0, static_cast<int>(history.size()) - 1), count = Whole(1, 9);
      for (int i = from; i < from + count && i < static_cast<int>(history.size()); ++i) history.push_back(history[i]);
    } else {
      history.push_back(14 - Whole(1, kinds));
    }
  }
  return history;
}

}  // namespace

int main(int, char** arguments) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* const model = llama_model_load_from_file(arguments[1], params);
  const llama_vocab* const vocab = llama_model_get_vocab(model);
  const std::vector<std::pair<const char*, std::function<void(Case&)>>> stages = {
      {"penalties",
       [](Case& c) {
         c.options["repeat_penalty"] = Rounded(Uniform(0.5, 2.5));
         c.options["frequency_penalty"] = Rounded(Uniform(-1, 1));
         c.options["presence_penalty"] = Rounded(Uniform(-1, 1));
         c.options["penalty_last"] = Whole(-1, 9);
       }},
      {"dry",
       [](Case& c) {
         c.options["dry_multiplier"] = Rounded(Uniform(0.1, 2));
         c.options["dry_base"] = Rounded(Uniform(1, 2.5));
         c.options["dry_allowed_length"] = Whole(1, 4);
         if (Whole(0, 1) == 0) c.options["dry_penalty_last"] = Whole(1, 30);
         if (Whole(0, 1) == 0) c.breakers = {"\n"};
         if (Whole(0, 3) == 0) c.breakers = {"\n", "\t"};
       }},
      {"top_n_sigma", [](Case& c) { c.options["top_n_sigma"] = Rounded(Uniform(0.05, 3)); }},
      {"top_k", [](Case& c) { c.options["top_k"] = Whole(1, 20); }},
      {"typical_p", [](Case& c) { c.options["typical_p"] = Rounded(Uniform(0.05, 0.95)); }},
      {"top_p", [](Case& c) { c.options["top_p"] = Rounded(Uniform(0.05, 0.95)); }},
      {"min_p", [](Case& c) { c.options["min_p"] = Rounded(Uniform(0.01, 0.5)); }},
      {"xtc",
       [](Case& c) {
         c.options["xtc_probability"] = 1;
         c.options["xtc_threshold"] = Rounded(Uniform(0.01, 0.55));
       }},
      {"dynatemp",
       [](Case& c) {
         c.options["temperature"] = Rounded(Uniform(0.3, 2));
         c.options["dynatemp_range"] = Rounded(Uniform(0.05, 1.5));
         c.options["dynatemp_exponent"] = Rounded(Uniform(0.3, 3));
       }},
  };
  const auto made = [&] {
    Case c;
    c.history = Repetitive(60);
    const int size = Whole(15, 24);
    // Distinct, since which of equals stays depends on how they were sorted.
    for (int i = 0; i < size; ++i) c.logits.push_back(static_cast<float>(Rounded(Uniform(-3, 3)) + i * 1e-4));
    return c;
  };
  for (const auto& [name, set] : stages) {
    for (int i = 0; i < (std::string(name) == "dry" ? 80 : 12); ++i) {
      Case c = made();
      set(c);
      Print(c, vocab);
    }
  }
  // Several at once. What top_n_sigma leaves out stays among llama.cpp's candidates, where dynamic temperature counts
  // it, and to typical_p it is no number, as what DRY leaves no probability is: these do not come together. Dynamic
  // temperature is last there, and in Quern before what goes by probabilities.
  for (int i = 0; i < 60; ++i) {
    Case c = made();
    for (const auto& [name, set] : stages) {
      const bool last = std::string(name) == "dynatemp" || std::string(name) == "typical_p";
      if (!last && Whole(0, 1) == 0) set(c);
    }
    const bool without = c.options.count("top_n_sigma") == 0 && c.options.count("dry_base") == 0;
    if (without && Whole(0, 1) == 0) stages[4].second(c);
    Print(c, vocab);
  }
  llama_model_free(model);
}
