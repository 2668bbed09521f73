#include "jit/jitdump.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace quern::jit {
namespace {

constexpr uint32_t kMagic = 0x4A695444;  // "JiTD" in the writer's byte order
constexpr uint32_t kVersion = 1;
enum Record : uint32_t { kCodeLoad = 0, kDebugInfo = 2 };

#if defined(__x86_64__)
constexpr uint32_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = EM_AARCH64;
#endif

// Of the clock that `perf record -k mono` uses.
uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutString(std::string& out, std::string_view text) {
  out.append(text);
  out.push_back('\0');
}

// id, size of the whole record, time; then `body`.
std::string RecordOf(Record id, const std::string& body) {
  std::string record;
  Put<uint32_t>(record, id);
  Put<uint32_t>(record, static_cast<uint32_t>(16 + body.size()));
  Put<uint64_t>(record, Now());
  return record + body;
}

}  // namespace

StatusOr<std::unique_ptr<JitDump>> JitDump::Create(const std::string& folder) {
  const std::string path = absl::StrFormat("%s/jit-%d.dump", folder, getpid());
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
  if (file < 0) return absl::UnavailableError(absl::StrFormat("cannot write %s: %s", path, std::strerror(errno)));
  std::string header;
  Put<uint32_t>(header, kMagic);
  Put<uint32_t>(header, kVersion);
  Put<uint32_t>(header, 40);  // bytes of this header
  Put<uint32_t>(header, kMachine);
  Put<uint32_t>(header, 0);  // padding
  Put<uint32_t>(header, static_cast<uint32_t>(getpid()));
  Put<uint64_t>(header, Now());
  Put<uint64_t>(header, 0);  // flags: times are of CLOCK_MONOTONIC
  if (write(file, header.data(), header.size()) != static_cast<ssize_t>(header.size())) {
    close(file);
    return absl::UnavailableError(absl::StrFormat("cannot write %s: %s", path, std::strerror(errno)));
  }
  void* marker = mmap(nullptr, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  return std::unique_ptr<JitDump>(new JitDump(file, marker == MAP_FAILED ? nullptr : marker));
}

JitDump::~JitDump() {
  if (marker_ != nullptr) munmap(marker_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  close(file_);
}

void JitDump::Write(const std::string& record) {
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t put = write(file_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // a convenience: without it perf shows addresses
    rest.remove_prefix(static_cast<size_t>(put));
  }
}

void JitDump::Add(std::string_view symbol, uint64_t address, uint64_t bytes, const std::string& source,
                  const std::vector<CodeLine>& lines) {
  const std::lock_guard lock(mutex_);
  if (!lines.empty()) {
    std::string body;
    Put<uint64_t>(body, address);
    Put<uint64_t>(body, lines.size());
    for (const CodeLine& line : lines) {
      Put<uint64_t>(body, line.address);
      Put<int32_t>(body, static_cast<int32_t>(line.line));
      Put<int32_t>(body, 0);  // discriminator
      PutString(body, source);
    }
    Write(RecordOf(kDebugInfo, body));  // before the code that it is of
  }
  std::string body;
  Put<uint32_t>(body, static_cast<uint32_t>(getpid()));
  Put<uint32_t>(body, static_cast<uint32_t>(syscall(SYS_gettid)));
  Put<uint64_t>(body, address);  // where it was made, and where it is
  Put<uint64_t>(body, address);
  Put<uint64_t>(body, bytes);
  Put<uint64_t>(body, next_++);
  PutString(body, symbol);
  body.append(reinterpret_cast<const char*>(address), bytes);
  Write(RecordOf(kCodeLoad, body));
}

}  // namespace quern::jit
