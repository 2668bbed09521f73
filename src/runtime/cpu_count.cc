// DefaultThreads: what the operating system really lets this process use.

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/thread_pool.h"

namespace quern {
namespace {

int AffinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return INT32_MAX;
  return std::max(1, CPU_COUNT(&set));
}

// CPUs granted by "quota period" in microseconds, rounded up; no limit where either is missing or the quota is "max".
int QuotaCount(double quota, double period) {
  if (quota <= 0 || period <= 0) return INT32_MAX;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

// Version 2: cpu.max of the process's group and of each parent, the tightest counts.
int CgroupV2Count() {
  std::ifstream groups("/proc/self/cgroup");
  int count = INT32_MAX;
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    std::string path = line.substr(3);
    while (true) {
      std::ifstream limit("/sys/fs/cgroup" + path + "/cpu.max");
      std::string quota;
      double period = 0;
      if (limit >> quota >> period && quota != "max") {
        count = std::min(count, QuotaCount(std::atof(quota.c_str()), period));
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return count;
}

int CgroupV1Count() {
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return INT32_MAX;
  return QuotaCount(quota, period);
}

}  // namespace

int DefaultThreads() {
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  return std::min({cores, AffinityCount(), CgroupV2Count(), CgroupV1Count()});
}

}  // namespace quern
