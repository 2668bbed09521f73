// What depends on parameters alone, computed once for all plans of an executable and kept until one of the parameters
// changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "lir/once.h"

namespace quern {

class OnceStore {
 public:
  // Its bytes, or null.
  uint8_t* Find(const Hash128& key) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : entry->second.at;
  }
  // Takes what has been computed, at `at` inside a block that it may share with others; it stays where it is.
  void Add(lir::OnceValue value, std::shared_ptr<const Memory> block, uint8_t* at) {
    entries_.emplace(value.key, Entry{std::move(block), at, std::move(value.params)});
  }
  // Forgets what depends on the parameter; a block goes with the last value in it. No plan uses it any more.
  void Forget(std::string_view param) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.second.params.contains(std::string(param)); });
  }
  // Forgets what has none of these keys, but for what was made of parameters whose bytes are gone (`released`).
  template <typename Released>
  void Keep(const std::set<Hash128>& keys, const Released& released) {
    std::erase_if(entries_, [&](const auto& entry) {
      const std::set<std::string>& params = entry.second.params;
      return !keys.contains(entry.first) && std::none_of(params.begin(), params.end(), released);
    });
  }
  // Held now, by blocks.
  int64_t bytes() const {
    std::set<const Memory*> blocks;
    int64_t bytes = 0;
    for (const auto& [key, entry] : entries_) {
      if (blocks.insert(entry.block.get()).second) bytes += entry.block->size();
    }
    return bytes;
  }

 private:
  struct Entry {
    std::shared_ptr<const Memory> block;
    uint8_t* at;
    std::set<std::string> params;
  };
  std::map<Hash128, Entry> entries_;
};

}  // namespace quern
