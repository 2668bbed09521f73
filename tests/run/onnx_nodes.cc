// Every case of ONNX's backend tests in folders, a model of one op or a few each, against the outputs stored with it.
//
//   onnx_nodes FOLDER.. [--only TEXT]         prints each case that did not pass, with its reason, and counts
//   onnx_nodes FOLDER.. --least 98            the same, and fails where fewer of a hundred pass
//   onnx_nodes FOLDER --page docs/onnx.md     fails where the page's list is another one
//   onnx_nodes FOLDER --write docs/onnx.md    writes the list into the page

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/onnx_case.h"

namespace {

using quern::testing::OnnxOutcome;
constexpr double kAtol = 1e-5, kRtol = 1e-3;
constexpr char kBegin[] = "<!-- nodes:begin -->\n", kEnd[] = "<!-- nodes:end -->\n";

// What has no one answer: numbers drawn at random.
bool IsRandom(const std::string& name) {
  return name.find("bernoulli") != std::string::npos ||
         (name.find("training_dropout") != std::string::npos && name.find("zero_ratio") == std::string::npos);
}

// Cases whose data is not what the model says, by name.
const char* FaultOf(const std::string& name) {
  if (name == "test_adam_multiple") return "its data was made with an epsilon of 0.01, which its model lacks";
  if (name.find("castlike") != std::string::npos && name.find("BFLOAT16") != std::string::npos)
    return "the operand whose type it takes has other sizes in its data than in its model";
  return nullptr;
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  std::string only, page, write;
  double least = 0;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (more && std::strcmp(argv[i], "--only") == 0)
      only = argv[++i];
    else if (more && std::strcmp(argv[i], "--page") == 0)
      page = argv[++i];
    else if (more && std::strcmp(argv[i], "--write") == 0)
      write = argv[++i];
    else if (more && std::strcmp(argv[i], "--least") == 0)
      least = std::atof(argv[++i]);
    else
      folders.emplace_back(argv[i]);
  }
  std::vector<std::string> cases;
  for (const std::string& folder : folders) {
    std::error_code unknown;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unknown)) {
      if (std::filesystem::exists(entry.path() / "model.onnx") &&
          entry.path().filename().string().find(only) != std::string::npos)
        cases.push_back(entry.path().string());
    }
  }
  if (cases.empty() && only.empty()) return std::puts("skipped: there is no test data of ONNX (libonnx-testdata)"), 0;
  std::sort(cases.begin(), cases.end());
  std::vector<OnnxOutcome> outcomes(cases.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) {
      for (int set = 0; std::filesystem::exists(cases[i] + "/test_data_set_" + std::to_string(set)); ++set) {
        outcomes[i] = quern::testing::RunOnnxCase(cases[i], "test_data_set_" + std::to_string(set), kAtol, kRtol, 1);
        if (outcomes[i].kind != OnnxOutcome::Kind::kPassed) break;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1U, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  std::map<std::string, std::vector<std::string>> by_reason;
  int passed = 0, fixed = 0, random = 0, not_dense = 0, failed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = std::filesystem::path(cases[i]).filename().string();
    OnnxOutcome& outcome = outcomes[i];
    if (outcome.kind == OnnxOutcome::Kind::kPassed) {
      ++passed;
      fixed += outcome.fixed;
      continue;
    }
    if (outcome.kind == OnnxOutcome::Kind::kNotDense) {
      ++not_dense;
    } else if (IsRandom(name)) {
      ++random;
      outcome.reason = "random numbers: there is no one answer";
    } else {
      ++failed;
      if (outcome.kind == OnnxOutcome::Kind::kWrong) outcome.reason = "wrong: " + outcome.reason;
      if (FaultOf(name) != nullptr) outcome.reason = FaultOf(name);
    }
    by_reason[outcome.reason].push_back(name);
  }
  std::ostringstream list;
  list << "Of " << cases.size() << " cases " << not_dense << " are not about dense tensors of numbers and " << random
       << " are random; of the other " << passed + failed << " " << passed << " pass, " << fixed
       << " of them with the value of an input that decides sizes as part of the graph. The rest:\n\n";
  for (const auto& [reason, names] : by_reason) {
    list << "- " << reason << ":";
    for (size_t n = 0; n < names.size(); ++n) list << (n == 0 ? " `" : ", `") << names[n] << "`";
    list << "\n";
  }
  if (page.empty() && write.empty()) {
    std::fputs(list.str().c_str(), stdout);
    const double share = 100.0 * passed / std::max(1, passed + failed);
    std::printf("%.2f %%\n", share);
    return share >= least ? 0 : 1;
  }
  const std::string path = page.empty() ? write : page, text = Slurp(path);
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return std::printf("%s has no list\n", path.c_str()), 1;
  const std::string whole = text.substr(0, begin) + kBegin + "\n" + list.str() + "\n" + text.substr(end);
  if (!write.empty()) return (std::ofstream(path, std::ios::binary) << whole).good() ? 0 : 1;
  const bool enough = passed * 100.0 >= (passed + failed) * 98.0;
  if (!enough) std::printf("only %d of %d cases pass\n", passed, passed + failed);
  if (whole != text) {
    std::printf("%s is not what onnx_nodes --write makes of it; its list would be:\n%s", path.c_str(),
                list.str().c_str());
  }
  return whole == text && enough ? 0 : 1;
}
