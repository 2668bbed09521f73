#include "bench_model.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "absl/strings/str_format.h"
#include "base/stopwatch.h"
#include "profile/text_table.h"

namespace {

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::string Rate(double count, double ns) { return absl::StrFormat("%.1f", count * 1e9 / ns); }

}  // namespace

std::string MeasuredName(const std::string& file) { return std::filesystem::path(file).stem().string(); }

quern::Result<ModelRow> MeasureModel(const std::string& file, const quern::Options& given, const ModelBench& bench) {
  using Failure = quern::Result<ModelRow>;
  quern::Options options = given;
  options.context = bench.prompt + bench.tokens;
  const quern::Stopwatch whole;
  quern::Result<quern::Session> session = quern::Session::Open(file, options);
  if (!session.ok()) return Failure::Failed(session.details());
  ModelRow row{.file = file, .threads = session->threads(), .bench = bench};
  row.open_ms = whole.Seconds() * 1e3;
  // What a token is does not matter to the time, but that experts are chosen by it.
  std::mt19937 random(1);
  std::vector<int32_t> ids(static_cast<size_t>(bench.prompt + bench.tokens));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(session->vocabulary()));
  std::vector<double> prompts, tokens;
  for (int s = 0; s <= bench.samples; ++s) {
    session->Reset();
    const quern::Stopwatch prompt_watch;
    quern::Result<std::vector<float>> logits = session->Step(std::span(ids).first(static_cast<size_t>(bench.prompt)));
    const double prompt = prompt_watch.Nanoseconds();
    const quern::Stopwatch token_watch;
    for (size_t t = static_cast<size_t>(bench.prompt); logits.ok() && t < ids.size(); ++t)
      logits = session->Step(std::span(ids).subspan(t, 1));
    const double token = token_watch.Nanoseconds() / bench.tokens;
    if (!logits.ok()) return Failure::Failed(logits.details());
    if (s == 0) continue;  // kernels are compiled, and memory is paged in
    prompts.push_back(prompt);
    tokens.push_back(token);
  }
  row.prompt_median_ns = Median(prompts);
  row.prompt_least_ns = *std::min_element(prompts.begin(), prompts.end());
  row.token_median_ns = Median(tokens);
  row.token_least_ns = *std::min_element(tokens.begin(), tokens.end());
  return row;
}

std::string ModelTable(const std::vector<ModelRow>& rows, int columns) {
  quern::profile::TextTable table(
      {"model", ">threads", ">open ms", ">prompt", ">tokens/s", ">quickest", ">decoded", ">tokens/s", ">quickest"});
  for (const ModelRow& row : rows) {
    table.Add({MeasuredName(row.file), absl::StrFormat("%d", row.threads), absl::StrFormat("%.1f", row.open_ms),
               absl::StrFormat("%d", row.bench.prompt), Rate(row.bench.prompt, row.prompt_median_ns),
               Rate(row.bench.prompt, row.prompt_least_ns), absl::StrFormat("%d", row.bench.tokens),
               Rate(1, row.token_median_ns), Rate(1, row.token_least_ns)});
  }
  return table.Text(columns);
}

nlohmann::ordered_json ModelJson(const std::vector<ModelRow>& rows) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const ModelRow& row : rows) {
    models.push_back({{"model", MeasuredName(row.file)},
                      {"file", row.file},
                      {"threads", row.threads},
                      {"open_ms", row.open_ms},
                      {"samples", row.bench.samples},
                      {"prompt_tokens", row.bench.prompt},
                      {"prompt_median_ns", row.prompt_median_ns},
                      {"prompt_least_ns", row.prompt_least_ns},
                      {"decoded_tokens", row.bench.tokens},
                      {"token_median_ns", row.token_median_ns},
                      {"token_least_ns", row.token_least_ns}});
  }
  return models;
}
