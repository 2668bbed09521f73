#include "cache/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/environment.h"

namespace quern::cache {
namespace {

namespace fs = std::filesystem;

Status Refuse(const std::string& folder, const std::string& reason) {
  return absl::PermissionDeniedError(absl::StrFormat("the cache folder %s %s", folder, reason));
}

Status CheckFolder(const fs::path& folder) {
  struct stat info;
  if (stat(folder.c_str(), &info) != 0)
    return Refuse(folder.string(), absl::StrFormat("cannot be used: %s", std::strerror(errno)));
  if (!S_ISDIR(info.st_mode)) return Refuse(folder.string(), "is no folder");
  if (info.st_uid != geteuid()) return Refuse(folder.string(), "belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Refuse(folder.string(), "may be written to by others");
  for (fs::path parent = folder.parent_path(); !parent.empty(); parent = parent.parent_path()) {
    if (stat(parent.c_str(), &info) != 0) return Refuse(folder.string(), "has a parent that cannot be looked at");
    // Who owns a parent, or may write to it, could put another folder here; in a sticky one only owners can.
    const bool foreign = info.st_uid != geteuid() && info.st_uid != 0;
    const bool shared = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (foreign || shared)
      return Refuse(folder.string(),
                    absl::StrFormat("could be replaced by others, who own %s or may write to it", parent.string()));
    if (parent == parent.root_path()) break;
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::string> UserFolder() {
  // The specification of XDG_CACHE_HOME has relative paths ignored.
  if (const std::string base = Environment("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/quern";
  if (const std::string home = Environment("HOME"); home.starts_with('/')) return home + "/.cache/quern";
  return std::nullopt;
}

std::optional<std::string> ChooseFolder(const std::string& choice) {
  const std::string chosen = choice.empty() ? Environment("QUERN_CACHE") : choice;
  if (chosen == "off") return std::nullopt;
  return chosen.empty() ? UserFolder() : chosen;
}

Status PrepareFolder(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "cache/"
  if (!fs::exists(path, error)) {
    fs::create_directories(path.parent_path(), error);
    // The mode holds from the first moment: nobody else gets a foot in the door.
    if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      return Refuse(path.string(), absl::StrFormat("cannot be made: %s", std::strerror(errno)));
    }
  }
  // Of the folder itself, not of a link to it.
  const fs::path real = fs::canonical(path, error);
  if (error) return Refuse(path.string(), absl::StrFormat("cannot be used: %s", error.message()));
  return CheckFolder(real);
}

}  // namespace quern::cache
