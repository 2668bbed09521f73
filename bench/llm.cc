// Decode and prompt speed of a model file, one JSON object on standard output, for tools/rounds-like drivers that
// interleave it with a peer:
//   bench_llm MODEL [--threads N] [--pp 512] [--tg 32] [--at 128] [--reps 3] [--known] [--sequences N]
//   {"engine":"quern","model":"85m-q4_k_m.gguf","threads":1,"pp_tps":..,"tg_tps":..,"tg_gbps":..,"read_gbps":..,...}
// read_gbps is a read loop over 512 MiB in huge pages on as many threads, in the same process right after the decode:
// DRAM speed differs from minute to minute. --known checks the greedy text of a stories file first. --sequences decodes
// as many texts together instead, a token of each in a step, from their beginnings on: batch_tps are the tokens of all
// of them.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "quern/quern.h"
#include "quern/sequences.h"

namespace {

using quern::bench::Median;
using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double ReadGbps(int threads) {
  constexpr size_t kBytes = size_t{512} << 20;
  static uint64_t* const memory = [] {
    constexpr size_t kHuge = size_t{2} << 20;
    auto* m = static_cast<uint64_t*>(std::aligned_alloc(kHuge, kBytes));
    madvise(m, kBytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < kBytes / 8; ++i) m[i] = i * 0x9e3779b97f4a7c15u;
    return m;
  }();
  std::vector<double> rates;
  for (int round = 0; round < 3; ++round) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      const size_t words = kBytes / 8 / threads;
      workers.emplace_back(quern::bench::ReadLoop, memory + t * words, static_cast<int64_t>(words * 8));
    }
    for (std::thread& worker : workers) worker.join();
    rates.push_back(static_cast<double>(kBytes) / Since(start) / 1e9);
  }
  return Median(rates);
}

int Complain(const std::string& error) {
  std::fprintf(stderr, "bench_llm: %s\n", error.c_str());
  return 1;
}

// The greedy continuation of "Once upon a time" that every stories model gives.
constexpr int32_t kPrompt[] = {1, 403, 407, 261, 378};
constexpr int32_t kKnown[] = {432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338};

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// `count` texts of `tokens` tokens side by side; the first two steps compile and warm up.
int DecodeTogether(const std::string& path, const quern::Options& options, int count, int tokens, int reps) {
  quern::Result<quern::Sequences> model = quern::Sequences::Open(path, options, {.most = count});
  if (!model.ok()) return Complain(model.error());
  std::vector<double> rates;
  for (int r = 0; r <= reps; ++r) {
    std::vector<int32_t> next(count);
    std::vector<quern::SequenceStep> steps;
    for (int k = 0; k < count; ++k) {
      quern::Result<int> sequence = model->Add();
      if (!sequence.ok()) return Complain(sequence.error());
      steps.push_back({*sequence, std::span(&next[k], 1)});
    }
    Clock::time_point start;
    for (int i = 0; i < tokens + 2; ++i) {
      for (int k = 0; k < count; ++k) next[k] = 3 + (i * 7 + k * 31) % 500;
      if (i == 2) start = Clock::now();
      if (auto logits = model->Step(steps); !logits.ok()) return Complain(logits.error());
    }
    if (r > 0) rates.push_back(count * tokens / Since(start));
    for (const quern::SequenceStep& step : steps)
      if (quern::Result<void> removed = model->Remove(step.sequence); !removed.ok()) return Complain(removed.error());
  }
  std::printf(
      "{\"engine\":\"quern\",\"model\":\"%s\",\"threads\":%d,\"sequences\":%d,\"batch_tps\":%.2f,\"read_gbps\":%.2f}\n",
      NameOf(path).c_str(), options.threads, count, Median(rates), ReadGbps(options.threads));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return Complain(
        "usage: bench_llm MODEL [--threads N] [--pp N] [--tg N] [--at N] [--reps N] [--cpu L] [--exact] [--specialise] "
        "[--known] [--sequences N]");
  const std::string path = argv[1];
  quern::Options options;
  int pp = 512, tg = 32, at = 128, reps = 3, sequences = 0;
  bool known = false;
  options.threads = 1;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (flag == "--threads")
      options.threads = std::atoi(value());
    else if (flag == "--pp")
      pp = std::atoi(value());
    else if (flag == "--tg")
      tg = std::atoi(value());
    else if (flag == "--at")
      at = std::atoi(value());
    else if (flag == "--reps")
      reps = std::atoi(value());
    else if (flag == "--sequences")
      sequences = std::atoi(value());
    else if (flag == "--cpu")
      options.cpu = value();
    else if (flag == "--exact")
      options.exact = true;
    else if (flag == "--specialise")
      options.specialise = true;
    else if (flag == "--known")
      known = true;
    else
      return Complain("unknown flag " + flag);
  }
  options.context = 1024;
  if (sequences > 0) return DecodeTogether(path, options, sequences, tg, reps);
  const Clock::time_point opened = Clock::now();
  quern::Result<quern::Session> session = quern::Session::Open(path, options);
  if (!session.ok()) return Complain(session.error());
  const std::vector<int32_t> first = {1};
  if (quern::Result<std::vector<float>> logits = session->Step(first); !logits.ok()) return Complain(logits.error());
  const double first_token = Since(opened);
  const quern::Timings cold = session->timings();

  quern::Sampler greedy({});
  std::string known_text = "not checked";
  if (known) {
    session->Reset();
    quern::Result<std::vector<float>> logits = session->Step(kPrompt);
    known_text = "yes";
    for (const int32_t want : kKnown) {
      if (!logits.ok()) return Complain(logits.error());
      const int32_t next = greedy.Next(*logits);
      if (next != want) known_text = "no";
      logits = session->Step(std::span(&next, 1));
    }
  }

  std::vector<int32_t> prompt(pp);
  for (int i = 0; i < pp; ++i) prompt[i] = 3 + i * 7 % 500;
  std::vector<double> prompt_rates, decode_rates;
  for (int r = 0; r <= reps; ++r) {  // the first repetition compiles and warms up
    session->Reset();
    Clock::time_point start = Clock::now();
    if (auto logits = session->Step(prompt); !logits.ok()) return Complain(logits.error());
    if (r > 0) prompt_rates.push_back(pp / Since(start));
    session->Reset();
    if (auto logits = session->Step(std::span(prompt).first(std::min(at, pp))); !logits.ok())
      return Complain(logits.error());
    int32_t next = 5;
    start = Clock::now();
    for (int t = 0; t < tg; ++t) {
      auto logits = session->Step(std::span(&next, 1));
      if (!logits.ok()) return Complain(logits.error());
      next = greedy.Next(*logits);
    }
    if (r > 0) decode_rates.push_back(tg / Since(start));
  }
  struct stat info = {};
  stat(path.c_str(), &info);
  const double rate = Median(decode_rates);
  std::printf(
      "{\"engine\":\"quern\",\"model\":\"%s\",\"threads\":%d,\"known_text\":\"%s\",\"pp512_tps\":%.2f,\"tg_tps\":%.2f,"
      "\"file_mb\":%.1f,\"read_gbps\":%.2f,\"first_token_ms\":%.1f,\"load_ms\":%.1f,\"compile_ms\":%.1f}\n",
      NameOf(path).c_str(), options.threads, known_text.c_str(), Median(prompt_rates), rate,
      static_cast<double>(info.st_size) / 1e6, ReadGbps(options.threads), first_token * 1e3, cold.load * 1e3,
      cold.compile * 1e3);
  return 0;
}
