// Files in memory.
#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace quern {
namespace {

// A file of so many bytes that goes with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(int64_t bytes) {
    const int fd = mkstemp(path_.data());
    made_ = fd >= 0 && ftruncate(fd, bytes) == 0;
    if (fd >= 0) close(fd);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "quern-mapped-XXXXXX";
  bool made_ = false;
};

// What the system was told of the mapping that begins at `data`: "rd sh mr me ms sd hg", or "".
std::string FlagsOf(const void* data) {
  const std::string begin = absl::StrFormat("%08x-", reinterpret_cast<uintptr_t>(data));
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StartsWith(line, begin)) here = true;
    if (here && absl::StartsWith(line, "VmFlags:")) return line.substr(8);
  }
  return "";
}

TEST(MappedFile, LargeOnesAreAskedForInHugePages) {
  void* const memory = mmap(nullptr, 1 << 22, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool known = memory != MAP_FAILED && madvise(memory, 1 << 22, MADV_HUGEPAGE) == 0;
  if (memory != MAP_FAILED) munmap(memory, 1 << 22);
  if (!known) GTEST_SKIP() << "this system has no huge pages";
  for (const auto& [bytes, huge] : {std::pair(int64_t{4} << 20, true), {(int64_t{4} << 20) - 1, false}}) {
    const TemporaryFile file(bytes);
    ASSERT_TRUE(file.made());
    const StatusOr<MappedFile> mapped = MappedFile::Open(file.path());
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_EQ(mapped->bytes().size(), static_cast<size_t>(bytes));
    const std::string flags = FlagsOf(mapped->bytes().data());
    if (flags.empty()) GTEST_SKIP() << "this system does not say what it was told";
    EXPECT_EQ(absl::StrContains(flags, " hg"), huge) << flags;
  }
}

}  // namespace
}  // namespace quern
