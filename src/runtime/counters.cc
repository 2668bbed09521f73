#include "runtime/counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace quern {
namespace {

constexpr CounterEvent kHardware[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
};

struct ErrorReason {
  int error;
  const char* reason;
};
constexpr ErrorReason kReasons[] = {
    {EACCES, "this process may not count events (see kernel.perf_event_paranoid)"},
    {EPERM, "this process may not count events (see kernel.perf_event_paranoid, or the container's seccomp profile)"},
    {ENOENT, "this machine has no such counter, as most virtual machines"},
    {EOPNOTSUPP, "this machine has no such counter, as most virtual machines"},
    {ENODEV, "this processor has no such counter"},
    {ENOSYS, "this kernel was built without performance counters"},
    {EMFILE, "too many open files"},
};

}  // namespace

std::span<const CounterEvent> HardwareCounters() { return kHardware; }

std::string CounterError(const char* event, int error) {
  const auto* row =
      std::find_if(std::begin(kReasons), std::end(kReasons), [&](const ErrorReason& r) { return r.error == error; });
  return absl::StrFormat("no hardware counters: perf_event_open of %s failed with errno %d: %s", event, error,
                         row != std::end(kReasons) ? row->reason : std::strerror(error));
}

CounterGroup::CounterGroup(CounterGroup&& other) noexcept
    : files_(std::exchange(other.files_, {-1, -1, -1})), count_(std::exchange(other.count_, 0)) {}
CounterGroup& CounterGroup::operator=(CounterGroup&& other) noexcept {
  std::swap(files_, other.files_);
  std::swap(count_, other.count_);
  return *this;
}
CounterGroup::~CounterGroup() { Close(); }

void CounterGroup::Close() {
  for (int i = count_; i-- > 0;) close(files_[i]);
  count_ = 0;
}

Status CounterGroup::Open(std::span<const CounterEvent> events) {
  if (is_open()) return absl::OkStatus();
  for (const CounterEvent& event : events.first(std::min<size_t>(events.size(), kMaxCounters))) {
    perf_event_attr attr = {};
    attr.size = sizeof attr;
    attr.type = event.type;
    attr.config = event.config;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_GROUP;
    const int leader = count_ == 0 ? -1 : files_[0];
    const auto file = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC));
    if (file < 0) {
      const int error = errno;
      Close();
      return absl::UnavailableError(CounterError(event.name, error));
    }
    files_[count_++] = file;
  }
  return absl::OkStatus();
}

CounterValues CounterGroup::Read() const {
  CounterValues values = {};
  if (count_ == 0) return values;
  uint64_t group[1 + kMaxCounters] = {};  // the number of events, then their values
  if (read(files_[0], group, sizeof group) < static_cast<ssize_t>(sizeof(uint64_t))) return values;
  for (int i = 0; i < count_; ++i) values[i] = group[1 + i];
  return values;
}

}  // namespace quern
