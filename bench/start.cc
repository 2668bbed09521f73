// What a start takes: from exec to the first kernel and the first token, cold (an empty cache) and warm, in interleaved
// rounds of fresh processes. The model file stays in the page cache.
//
//   bench_start MODEL [--rounds 5] [--threads N] [--cpu LEVEL]
//   {"model":"85m-q4_k_m.gguf","start":"cold","exec_ms":..,"load_ms":..,"passes_ms":..,"plans_ms":..,"cached_ms":..,
//    "llvm_ms":..,"kernels_cached":0,"kernels_compiled":17,"ready_ms":..,"token_ms":..}
// Medians of the rounds, but for the counts. exec: to main. load, passes, plans, cached (kernels from the cache), llvm
// (summed over threads): as Timings has them. ready: from exec until the model takes its first step. token: until the
// logits of that step.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "quern/quern.h"

namespace {

namespace fs = std::filesystem;

// Of a clock that processes share.
double NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

int Complain(const std::string& error) {
  std::fprintf(stderr, "bench_start: %s\n", error.c_str());
  return 1;
}

constexpr const char* kNames[] = {"exec_ms", "load_ms",        "passes_ms",        "plans_ms", "cached_ms",
                                  "llvm_ms", "kernels_cached", "kernels_compiled", "ready_ms", "token_ms"};
constexpr size_t kCount = std::size(kNames);

// One start, in this process; numbers in the order of kNames.
int Start(const std::string& model, const quern::Options& options, double exec) {
  const double main_at = NowMs();
  quern::Result<quern::Session> session = quern::Session::Open(model, options);
  if (!session.ok()) return Complain(session.error());
  const double ready = NowMs();
  const int32_t id = 1;
  const quern::Result<std::vector<float>> logits = session->Step({&id, 1});
  if (!logits.ok()) return Complain(logits.error());
  const double token = NowMs();
  const quern::Timings& t = session->timings();
  std::printf("%f %f %f %f %f %f %d %d %f %f\n", main_at - exec, t.load * 1e3, t.passes * 1e3, t.plans * 1e3,
              t.cached * 1e3, t.llvm * 1e3, t.kernels_cached, t.kernels_compiled, ready - exec, token - exec);
  return 0;
}

// Runs this program anew with `arguments` and the time of that; its numbers, or none.
std::vector<double> Spawn(std::vector<std::string> arguments) {
  arguments.push_back("--child");
  arguments.push_back(std::to_string(NowMs()));
  std::string command;
  for (const std::string& argument : arguments) command += "'" + argument + "' ";
  std::FILE* pipe = popen(("exec " + command).c_str(), "r");
  std::vector<double> values(kCount);
  size_t got = 0;
  while (pipe != nullptr && got < kCount && std::fscanf(pipe, "%lf", &values[got]) == 1) ++got;
  const int status = pipe == nullptr ? -1 : pclose(pipe);
  return status == 0 && got == kCount ? values : std::vector<double>();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return Complain("usage: bench_start MODEL [--rounds N] [--threads N] [--cpu L]");
  quern::Options options;
  int rounds = 5;
  double child = -1;
  std::vector<std::string> arguments = {fs::read_symlink("/proc/self/exe").string(), argv[1]};
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--rounds")
      rounds = std::atoi(value.c_str());
    else if (flag == "--threads")
      options.threads = std::atoi(value.c_str());
    else if (flag == "--cpu")
      options.cpu = value;
    else if (flag == "--cache")
      options.cache = value;
    else if (flag == "--child")
      child = std::atof(value.c_str());
    else
      return Complain("unknown flag " + flag);
    if (flag == "--threads" || flag == "--cpu") arguments.insert(arguments.end(), {flag, value});
  }
  if (child >= 0) return Start(argv[1], options, child);

  std::string folder = (fs::temp_directory_path() / "quern-start-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Complain("cannot make a folder for the cache");
  arguments.insert(arguments.end(), {"--cache", folder});
  std::vector<std::vector<double>> cold(kCount), warm(kCount);
  for (int round = 0; round <= rounds; ++round) {
    for (const fs::directory_entry& at : fs::directory_iterator(folder)) fs::remove(at.path());
    for (std::vector<std::vector<double>>* start : {&cold, &warm}) {
      const std::vector<double> values = Spawn(arguments);
      if (values.empty()) return Complain("a start failed");
      if (round == 0) continue;  // pages the model in
      for (size_t i = 0; i < kCount; ++i) (*start)[i].push_back(values[i]);
    }
  }
  fs::remove_all(folder);
  for (const auto& [name, columns] : {std::pair("cold", &cold), {"warm", &warm}}) {
    std::printf("{\"model\":\"%s\",\"start\":\"%s\"", fs::path(argv[1]).filename().c_str(), name);
    for (size_t i = 0; i < kCount; ++i) std::printf(",\"%s\":%.2f", kNames[i], quern::bench::Median((*columns)[i]));
    std::printf("}\n");
  }
  return 0;
}
