#include "cache/object_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "cache/folder.h"

namespace quern::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".qo", kTemporarySuffix = ".tmp";
constexpr int64_t kMostBytes = int64_t{256} << 20;  // of one entry: a size that lies must not cost memory
constexpr int64_t kAbandoned = 3600;                // seconds after which a temporary file has no writer any more
constexpr int64_t kBetween = 600;                   // seconds from one collection to the next
constexpr const char* kCollected = "/collected";    // whose time is that of the last

// O_NONBLOCK: opening a pipe that lies there must not wait for its writer.
class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR)) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // False when what was written did not reach the file.
  bool Close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

Status Failed(const char* what, const std::string& path) {
  return absl::UnavailableError(absl::StrFormat("cannot %s %s: %s", what, path, std::strerror(errno)));
}

StatusOr<std::string> ReadWhole(const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file.is_open()) return Failed("open", path);
  struct stat info;
  if (fstat(file.descriptor(), &info) != 0) return Failed("look at", path);
  if (!S_ISREG(info.st_mode)) return absl::DataLossError("it is no plain file");
  if (info.st_uid != geteuid()) return absl::DataLossError("it belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return absl::DataLossError("others may write to it");
  if (info.st_size > kMostBytes) return absl::DataLossError("it is too large");
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = read(file.descriptor(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Failed("read", path);
    at += static_cast<size_t>(got);
  }
  return bytes;
}

Status WriteWhole(const std::string& path, std::string_view bytes) {
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.is_open()) return Failed("make", path);
  while (!bytes.empty()) {
    const ssize_t put = write(file.descriptor(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return file.Close() ? absl::OkStatus() : Failed("write", path);
}

struct Listed {
  std::string name;
  int64_t bytes;
  struct timespec used;
};

// Plain files of the folder whose names end in `suffix`, most recently used first.
std::vector<Listed> Files(const std::string& folder, std::string_view suffix) {
  std::vector<Listed> files;
  std::error_code error;
  for (const fs::directory_entry& at : fs::directory_iterator(folder, error)) {
    const std::string name = at.path().filename().string();
    struct stat info;
    if (!name.ends_with(suffix) || lstat(at.path().c_str(), &info) != 0) continue;
    files.push_back({name, info.st_size, info.st_mtim});
  }
  std::sort(files.begin(), files.end(), [](const Listed& a, const Listed& b) {
    return std::tie(b.used.tv_sec, b.used.tv_nsec, a.name) < std::tie(a.used.tv_sec, a.used.tv_nsec, b.name);
  });
  return files;
}

}  // namespace

StatusOr<std::unique_ptr<ObjectStore>> ObjectStore::Open(std::string folder, int64_t limit) {
  QUERN_RETURN_IF_ERROR(PrepareFolder(folder));
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::move(folder), limit));
}

std::string ObjectStore::PathOf(const Hash128& key) const {
  return absl::StrFormat("%s/%s%s", folder_, key.ToHex(), kSuffix);
}

std::optional<Entry> ObjectStore::Find(const CompileKey& key) const {
  std::optional<Entry> entry = Find(HashOf(key));
  // The whole key is compared: one with the same hash is a miss.
  if (entry && entry->key != key) return std::nullopt;
  return entry;
}

std::optional<Entry> ObjectStore::Find(const Hash128& key) const {
  const std::string path = PathOf(key);
  const StatusOr<std::string> bytes = ReadWhole(path);
  if (!bytes.ok()) return std::nullopt;
  StatusOr<Entry> entry = Decode(*bytes);
  if (!entry.ok() || HashOf(entry->key) != key) return std::nullopt;  // or a file under a wrong name
  // Where the folder cannot be written to, entries age by when they were made.
  (void)utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return *std::move(entry);
}

Status ObjectStore::Insert(const Entry& entry) const {
  static std::atomic<int64_t> number{0};
  const std::string temporary = absl::StrFormat("%s/%d-%d%s", folder_, getpid(), number++, kTemporarySuffix);
  const std::string bytes = Encode(entry);
  Status status = WriteWhole(temporary, bytes);
  if (status.ok() && rename(temporary.c_str(), PathOf(HashOf(entry.key)).c_str()) != 0)
    status = Failed("rename", temporary);
  if (status.ok())
    inserted_ += static_cast<int64_t>(bytes.size());
  else
    (void)unlink(temporary.c_str());
  return status;
}

std::vector<StoredFile> ObjectStore::List() const {
  std::vector<StoredFile> files;
  for (const Listed& listed : Files(folder_, kSuffix)) {
    StoredFile file{listed.name, listed.bytes, listed.used.tv_sec, absl::DataLossError("")};
    const StatusOr<std::string> bytes = ReadWhole(folder_ + "/" + listed.name);
    file.entry = bytes.ok() ? Decode(*bytes) : bytes.status();
    if (file.entry.ok() && HashOf(file.entry->key).ToHex() + std::string(kSuffix) != listed.name) {
      file.entry = absl::DataLossError("its name is not the hash of its key");
    }
    files.push_back(std::move(file));
  }
  return files;
}

ObjectStore::Removed ObjectStore::Collect() const {
  Removed removed;
  auto remove = [&](const Listed& file) {
    if (unlink((folder_ + "/" + file.name).c_str()) != 0) return;
    ++removed.files;
    removed.bytes += file.bytes;
  };
  const int64_t now = std::time(nullptr);
  for (const Listed& file : Files(folder_, kTemporarySuffix)) {
    if (now - file.used.tv_sec > kAbandoned) remove(file);
  }
  int64_t kept = 0;
  for (const Listed& file : Files(folder_, kSuffix)) {
    if (kept + file.bytes > limit_)
      remove(file);
    else
      kept += file.bytes;
  }
  return removed;
}

void ObjectStore::CollectAtTimes() const {
  const std::string marker = folder_ + kCollected;
  const int64_t now = std::time(nullptr);
  struct stat info;
  const bool lately = lstat(marker.c_str(), &info) == 0 && info.st_mtime <= now && now - info.st_mtime < kBetween;
  if (lately && inserted_ <= limit_ / 8) return;
  inserted_ = 0;
  (void)File(marker, O_WRONLY | O_CREAT);
  (void)utimensat(AT_FDCWD, marker.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  Collect();
}

ObjectStore::Removed ObjectStore::RemoveIf(const std::function<bool(const StoredFile&)>& unwanted) const {
  Removed removed;
  bool kept = false;
  for (const StoredFile& file : List()) {
    if (!unwanted(file) || unlink((folder_ + "/" + file.name).c_str()) != 0) {
      kept = true;
      continue;
    }
    ++removed.files;
    removed.bytes += file.bytes;
  }
  if (!kept) (void)unlink((folder_ + kCollected).c_str());
  return removed;
}

}  // namespace quern::cache
