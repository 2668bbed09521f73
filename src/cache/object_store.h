// ObjectStore: a folder of compiled kernels and of plans, one file an entry, named by the hash of its key.
//
//   QUERN_ASSIGN(auto store, cache::ObjectStore::Open(folder, cache::kDefaultLimit));
//   if (std::optional<cache::Entry> entry = store->Find(key)) ...   // checked; anything odd about the file is a miss
//   store->Insert(entry);                                           // whole or not at all, also beside other processes
// Files are written under another name and renamed, so that a reader sees all of an entry or nothing. Only plain files
// of this user that others cannot write are read. Thread-safe; several processes may share a folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/entry.h"

namespace quern::cache {

inline constexpr int64_t kDefaultLimit = int64_t{256} << 20;  // bytes

// One file of the folder. `entry` is what it holds, or why it cannot be used.
struct StoredFile {
  std::string name;
  int64_t bytes = 0;
  int64_t used = 0;  // when it was last read or written, seconds since 1970
  StatusOr<Entry> entry;
};

class ObjectStore {
 public:
  // Makes the folder where it is not there. `limit`: bytes that Collect leaves. Errors: see PrepareFolder.
  static StatusOr<std::unique_ptr<ObjectStore>> Open(std::string folder, int64_t limit);

  const std::string& folder() const { return folder_; }
  int64_t limit() const { return limit_; }

  // The entry of an equal key, marked as used now. None when there is none, or when it is damaged.
  std::optional<Entry> Find(const CompileKey& key) const;
  // The same by the hash of its key.
  std::optional<Entry> Find(const Hash128& key) const;
  // Errors: no space, no permission; the store is as it was.
  Status Insert(const Entry& entry) const;

  // Every file with the suffix of entries, most recently used first.
  std::vector<StoredFile> List() const;
  struct Removed {
    int files = 0;
    int64_t bytes = 0;
  };
  // Removes what was used least recently until at most `limit` bytes are left, and what writers that died left behind.
  Removed Collect() const;
  // Collect, unless somebody has within ten minutes and no more than an eighth of the limit was inserted here since:
  // listing a folder of thousands of entries takes longer than compiling one.
  void CollectAtTimes() const;
  // Removes files for which `unwanted` holds; the folder stays.
  Removed RemoveIf(const std::function<bool(const StoredFile&)>& unwanted) const;

 private:
  ObjectStore(std::string folder, int64_t limit) : folder_(std::move(folder)), limit_(limit) {}
  std::string PathOf(const Hash128& key) const;

  const std::string folder_;
  const int64_t limit_;
  mutable std::atomic<int64_t> inserted_{0};  // bytes, since CollectAtTimes collected
};

}  // namespace quern::cache
