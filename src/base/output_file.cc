#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
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
  if (path.empty()) return absl::OkStatus();  // no file
  if (IsStream(path)) return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : CannotWrite(path, errno);
  std::error_code unknown;
  const fs::path target = fs::canonical(path, unknown), file = unknown ? fs::path(path) : target;
  if (fs::is_directory(file, unknown)) return CannotWrite(path, EISDIR);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return access(folder.c_str(), W_OK | X_OK) == 0 ? absl::OkStatus() : CannotWrite(path, errno);
}

StatusOr<OutputStream> OutputStream::Create(const std::string& path, std::span<const std::string> keep) {
  QUERN_RETURN_IF_ERROR(CheckOutput(path, keep));
  OutputStream stream;
  stream.asked_ = stream.path_ = path;
  if (IsStream(path)) {
    stream.descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (stream.descriptor_ < 0) return CannotWrite(path, errno);
    return stream;
  }
  // A link stays one: what it leads to is replaced.
  std::error_code unknown;
  if (const fs::path target = fs::canonical(path, unknown); !unknown) stream.path_ = target.string();
  std::string name = stream.path_ + ".XXXXXX";
  stream.descriptor_ = mkstemp(name.data());
  if (stream.descriptor_ < 0) return CannotWrite(path, errno);
  stream.temporary_ = std::move(name);
  return stream;
}

OutputStream::OutputStream(OutputStream&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      asked_(std::move(other.asked_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")) {}

OutputStream::~OutputStream() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status OutputStream::Write(std::string_view bytes) {
  const int error = WriteAll(descriptor_, bytes);
  return error == 0 ? absl::OkStatus() : CannotWrite(asked_, error);
}

Status OutputStream::Close() {
  if (descriptor_ < 0) return absl::OkStatus();
  int error = 0;
  if (!temporary_.empty()) {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor_, 0666 & ~mask) != 0) error = errno;
  }
  if (close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
  return error == 0 ? absl::OkStatus() : CannotWrite(asked_, error);
}

Status OutputStream::Finish() {
  QUERN_RETURN_IF_ERROR(Close());
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return CannotWrite(asked_, errno);
  temporary_.clear();
  return absl::OkStatus();
}

Status WriteFiles(std::span<const OutputFile> files, std::span<const std::string> keep) {
  // All of what gets a name lies on the disk before anything is written in place, and that before the first name.
  std::vector<OutputStream> pending;
  const auto write = [&](bool in_place) -> Status {
    for (const OutputFile& file : files) {
      if (IsStream(file.path) != in_place) continue;
      QUERN_ASSIGN(OutputStream stream, OutputStream::Create(file.path, keep));
      QUERN_RETURN_IF_ERROR(stream.Write(file.bytes));
      QUERN_RETURN_IF_ERROR(stream.Close());
      pending.push_back(std::move(stream));
    }
    return absl::OkStatus();
  };
  for (const OutputFile& file : files) QUERN_RETURN_IF_ERROR(CheckOutput(file.path, keep));
  QUERN_RETURN_IF_ERROR(write(false));
  QUERN_RETURN_IF_ERROR(write(true));
  for (OutputStream& file : pending) QUERN_RETURN_IF_ERROR(file.Finish());
  return absl::OkStatus();
}

}  // namespace quern
