/* What the operating system really lets this process use. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quern/rt.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t affinity_count(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return INT64_MAX; /* more processors than the set has bits */
  return CPU_COUNT(&set);
}

/* CPUs granted by quota and period in microseconds, rounded up; no limit where either is none. */
static int64_t quota_count(long long quota, long long period) {
  return quota > 0 && period > 0 ? (quota + period - 1) / period : INT64_MAX;
}

/* Numbers of a file; how many there are, at most two. A word, such as the "max" of cpu.max, is none. */
static int read_numbers(const char* path, long long* first, long long* second) {
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const int count = fscanf(file, "%lld %lld", first, second);
  fclose(file);
  return count < 0 ? 0 : count;
}

/* Version 2: cpu.max of the process's group and of each parent, the tightest counts. */
static int64_t cgroup2_count(void) {
  FILE* groups = fopen("/proc/self/cgroup", "r");
  if (groups == NULL) return INT64_MAX;
  int64_t count = INT64_MAX;
  char line[4096];
  while (fgets(line, sizeof(line), groups) != NULL) {
    if (strncmp(line, "0::", 3) != 0) continue;
    char* group = line + 3;
    group[strcspn(group, "\n")] = 0;
    for (;;) {
      char path[sizeof(line) + 32];
      long long quota = 0, period = 0;
      snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
      if (read_numbers(path, &quota, &period) == 2) count = least(count, quota_count(quota, period));
      char* slash = strrchr(group, '/');
      if (slash == NULL || group[1] == 0) break;
      *slash = 0;
    }
  }
  fclose(groups);
  return count;
}

static int64_t cgroup1_count(void) {
  long long quota = 0, period = 0, none;
  if (read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota, &none) < 1) return INT64_MAX;
  if (read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period, &none) < 1) return INT64_MAX;
  return quota_count(quota, period);
}

int64_t quern_thread_count(void) {
  const int64_t count =
      least(least(sysconf(_SC_NPROCESSORS_ONLN), affinity_count()), least(cgroup2_count(), cgroup1_count()));
  return count < 1 ? 1 : count;
}
