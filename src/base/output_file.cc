#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrFormat("cannot write %s: %s", path, std::strerror(error)));
}

// The error number, or 0.
int WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// A file that has not got its name yet; goes when it never does.
class Pending {
 public:
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending(Pending&& other) noexcept : temporary_(std::move(other.temporary_)), path_(std::move(other.path_)) {
    other.temporary_.clear();
  }
  ~Pending() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  Status Write(const OutputFile& file) {
    path_ = file.path;
    // A link stays one: what it leads to is replaced.
    std::error_code unknown;
    if (const fs::path target = fs::canonical(path_, unknown); !unknown) path_ = target.string();
    std::string name = path_ + ".XXXXXX";
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) return CannotWrite(file.path, errno);
    temporary_ = std::move(name);
    const mode_t mask = umask(0);
    umask(mask);
    int error = WriteAll(descriptor, file.bytes);
    if (error == 0 && fchmod(descriptor, 0666 & ~mask) != 0) error = errno;
    if (close(descriptor) != 0 && error == 0) error = errno;
    return error == 0 ? absl::OkStatus() : CannotWrite(file.path, error);
  }

  Status Rename() {
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return CannotWrite(path_, errno);
    temporary_.clear();
    return absl::OkStatus();
  }

 private:
  std::string temporary_, path_;
};

// What is there and is to be written to in place: a device, a pipe.
bool IsStream(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

Status CheckOutput(const std::string& path, std::span<const std::string> keep) {
  for (const std::string& kept : keep) {
    std::error_code unknown;
    if (fs::equivalent(path, kept, unknown))
      return absl::InvalidArgumentError(absl::StrFormat("%s would be written over the input %s", path, kept));
  }
  return absl::OkStatus();
}

Status WriteFiles(std::span<const OutputFile> files, std::span<const std::string> keep) {
  std::vector<Pending> pending;
  for (const OutputFile& file : files) {
    QUERN_RETURN_IF_ERROR(CheckOutput(file.path, keep));
    if (!IsStream(file.path)) QUERN_RETURN_IF_ERROR(pending.emplace_back().Write(file));
  }
  for (const OutputFile& file : files) {
    if (!IsStream(file.path)) continue;
    const int descriptor = open(file.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return CannotWrite(file.path, errno);
    int error = WriteAll(descriptor, file.bytes);
    if (close(descriptor) != 0 && error == 0) error = errno;
    if (error != 0) return CannotWrite(file.path, error);
  }
  for (Pending& file : pending) QUERN_RETURN_IF_ERROR(file.Rename());
  return absl::OkStatus();
}

}  // namespace quern
