// How many tokens a second a language model takes of a prompt, and gives.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quern/quern.h"

// What is timed: a prompt of so many ids that are drawn from the vocabulary, in an empty cache, and so many tokens
// behind it, one at a time. `samples`: times that both are run, after one that is not counted.
struct ModelBench {
  int prompt = 512;
  int tokens = 128;
  int samples = 5;
};

// Of one model file on one number of threads. Nanoseconds of the whole prompt, and of a token.
struct ModelRow {
  std::string file;
  int threads = 0;
  ModelBench bench;
  double open_ms = 0;
  double prompt_median_ns = 0, prompt_least_ns = 0, token_median_ns = 0, token_least_ns = 0;
};

// What a table calls a file: its name without folder and extension.
std::string MeasuredName(const std::string& file);
// Errors: those of Session::Open and Step.
quern::Result<ModelRow> MeasureModel(const std::string& file, const quern::Options& options, const ModelBench& bench);
// A line for each, at most `columns` wide where that is above 0.
std::string ModelTable(const std::vector<ModelRow>& rows, int columns);
nlohmann::ordered_json ModelJson(const std::vector<ModelRow>& rows);
