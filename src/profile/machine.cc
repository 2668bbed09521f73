#include "profile/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/output_file.h"
#include "cache/folder.h"
#include "profile/probe.h"

namespace quern::profile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A buffer that no cache holds for one process, whatever the system says of it.
constexpr int64_t kEnoughDram = int64_t{128} << 20;
// A virtual machine may have moved, a kernel of the system may have become another.
constexpr int64_t kKeptSeconds = int64_t{30} * 24 * 3600;

// "model name : Intel(R) Xeon(R) Processor" of the first processor; aarch64 has its part number alone.
std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string part;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU part")) part = "part " + value;
  }
  return part.empty() ? "unknown" : part;
}

std::string FileName(const Machine& machine) {
  std::string name = "machine-" + machine.cpu + "-" + machine.level + "-" + std::to_string(machine.threads) + "t";
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name + ".json";
}

StatusOr<Machine> Load(const fs::path& path, const Machine& wanted) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  QUERN_ASSIGN(Machine machine, ParseMachine(text.str()));
  if (machine.cpu != wanted.cpu || machine.level != wanted.level || machine.threads != wanted.threads) {
    return absl::NotFoundError("peaks of another machine");
  }
  machine.stored = true;
  return machine;
}

// Whole or not at all: another process may read it at the same moment. What cannot be kept is measured again next time.
void Store(const fs::path& path, const std::string& text) {
  // The cache of kernels lies there too, and takes no folder that others may write to.
  if (!cache::PrepareFolder(path.parent_path().string()).ok()) return;
  WriteFile(path.string(), text).IgnoreError();  // it is measured again
}

}  // namespace

int Machine::LevelFor(int64_t bytes) const {
  for (size_t l = 0; l < memory.size(); ++l) {
    if (memory[l].bytes == 0 || bytes <= memory[l].bytes) return static_cast<int>(l);
  }
  return static_cast<int>(memory.size()) - 1;
}

bool Machine::Consistent() const {
  for (size_t l = 1; l < memory.size(); ++l) {
    if (memory[l - 1].gbps < memory[l].gbps) return false;
  }
  return memory.empty() || memory.back().gbps >= dram_gbps_one;
}

void Machine::Merge(const Machine& other) {
  // Of a buffer that caches may have held nothing is known about memory behind them.
  const bool both = (dram_bytes >= kEnoughDram) == (other.dram_bytes >= kEnoughDram);
  Machine lesser = other;
  if (dram_bytes <= other.dram_bytes) {
    std::swap(memory, lesser.memory);
    std::swap(dram_gbps_one, lesser.dram_gbps_one);
    std::swap(dram_bytes, lesser.dram_bytes);
  }
  if (both) dram_gbps_one = std::max(dram_gbps_one, lesser.dram_gbps_one);
  for (MemoryLevel& level : memory) {
    if (level.bytes == 0 && !both) continue;
    for (const MemoryLevel& known : lesser.memory) {
      if (known.name == level.name && known.bytes == level.bytes) level.gbps = std::max(level.gbps, known.gbps);
    }
  }
  f32_gflops = std::max(f32_gflops, other.f32_gflops);
  bf16_gflops = std::max(bf16_gflops, other.bf16_gflops);
  int8_gops = std::max(int8_gops, other.int8_gops);
  dispatch_ns = std::min(dispatch_ns, other.dispatch_ns);
  probe_ms = other.probe_ms;
  rounds += other.rounds;
  measured = measured == 0 ? other.measured : std::min(measured, other.measured);
}

std::string MachineText(const Machine& machine) {
  Json memory = Json::array();
  for (const MemoryLevel& level : machine.memory)
    memory.push_back({{"name", level.name}, {"bytes", level.bytes}, {"gbps", level.gbps}});
  const Json json = {{"cpu", machine.cpu},
                     {"level", machine.level},
                     {"threads", machine.threads},
                     {"memory", std::move(memory)},
                     {"dram_gbps_one_thread", machine.dram_gbps_one},
                     {"dram_buffer_bytes", machine.dram_bytes},
                     {"f32_gflops", machine.f32_gflops},
                     {"bf16_gflops", machine.bf16_gflops},
                     {"int8_gops", machine.int8_gops},
                     {"dispatch_ns", machine.dispatch_ns},
                     {"probe_ms", machine.probe_ms},
                     {"measured", machine.measured},
                     {"rounds", machine.rounds}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<Machine> ParseMachine(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const Status damaged = absl::InvalidArgumentError("not the peaks of a machine");
  if (!json.is_object()) return damaged;
  // Whatever is missing or of another type, and peaks that cannot be.
  const auto string = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  const auto number = [](const Json& object, const char* key) {
    return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0.0;
  };
  Machine machine;
  machine.cpu = string("cpu");
  machine.level = string("level");
  machine.threads = static_cast<int>(number(json, "threads"));
  machine.dram_gbps_one = number(json, "dram_gbps_one_thread");
  machine.dram_bytes = static_cast<int64_t>(std::clamp(number(json, "dram_buffer_bytes"), 0.0, 1e15));
  machine.f32_gflops = number(json, "f32_gflops");
  machine.bf16_gflops = number(json, "bf16_gflops");
  machine.int8_gops = number(json, "int8_gops");
  machine.dispatch_ns = number(json, "dispatch_ns");
  machine.probe_ms = number(json, "probe_ms");
  machine.measured = static_cast<int64_t>(std::clamp(number(json, "measured"), 0.0, 1e15));
  machine.rounds = static_cast<int>(std::clamp(number(json, "rounds"), 1.0, 1e6));
  if (machine.cpu.empty() || machine.level.empty() || machine.threads < 1) return damaged;
  for (const double peak :
       {machine.dram_gbps_one, machine.f32_gflops, machine.bf16_gflops, machine.int8_gops, machine.dispatch_ns}) {
    if (!(peak > 0)) return damaged;
  }
  if (!json.contains("memory") || !json["memory"].is_array() || json["memory"].empty()) return damaged;
  for (const Json& row : json["memory"]) {
    if (!row.is_object() || !row.contains("name") || !row["name"].is_string()) return damaged;
    const double gbps = number(row, "gbps"), bytes = number(row, "bytes");
    if (!(gbps > 0) || !(bytes >= 0) || bytes > 1e15) return damaged;
    machine.memory.push_back({row["name"].get<std::string>(), static_cast<int64_t>(bytes), gbps});
  }
  return machine;
}

StatusOr<Machine> MachineOf(const std::string& level, ThreadPool& pool, const ProbeOptions& options) {
  Machine machine;
  machine.cpu = CpuName();
  machine.level = level;
  machine.threads = pool.threads();
  const fs::path path = options.folder.empty() ? fs::path() : fs::path(options.folder) / FileName(machine);
  const int64_t now = time(nullptr);
  StatusOr<Machine> stored = absl::NotFoundError("");
  if (!path.empty()) stored = Load(path, machine);
  const bool old = stored.ok() && (stored->measured > now || now - stored->measured > kKeptSeconds);
  if (!options.fresh && stored.ok() && !old && stored->Consistent()) return stored;
  QUERN_RETURN_IF_ERROR(Probe(pool, level, machine));
  machine.measured = now;
  if (stored.ok() && !old) {
    stored->Merge(machine);
    machine = *std::move(stored);
    machine.stored = false;
  }
  // All threads read no less than one does, and what is nearer is no slower: it was only measured while something else
  // ran.
  machine.memory.back().gbps = std::max(machine.memory.back().gbps, machine.dram_gbps_one);
  for (size_t l = machine.memory.size(); l-- > 1;)
    machine.memory[l - 1].gbps = std::max(machine.memory[l - 1].gbps, machine.memory[l].gbps);
  if (!path.empty() && machine.dram_bytes >= kEnoughDram) Store(path, MachineText(machine));
  return machine;
}

}  // namespace quern::profile
