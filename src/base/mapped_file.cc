#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/huge_pages.h"

namespace quern {

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Not blocking: a pipe by that name would wait for a writer before it can be refused.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot open %s", path));
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return absl::ErrnoToStatus(error, absl::StrFormat("cannot read the size of %s", path));
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrFormat("%s is not a regular file", path));
  }
  MappedFile file;
  file.path_ = path;
  if (info.st_size > 0) {
    void* data = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      close(fd);
      return absl::ErrnoToStatus(error, absl::StrFormat("cannot map %s", path));
    }
    // Weights stream by: with an entry of the page table for every 4 KiB of them a virtual machine reads at little more
    // than half of the speed. Where the system keeps files in huge pages, those that it reads from now on are such.
    AskForHugePages(data, static_cast<size_t>(info.st_size));
    file.data_ = static_cast<const uint8_t*>(data);
    file.size_ = info.st_size;
  }
  close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace quern
