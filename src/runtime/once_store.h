// What depends on parameters alone, computed once for all plans of an executable and kept until one of the parameters
// changes.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "base/memory.h"
#include "lir/once.h"

namespace quern {

class OnceStore {
 public:
  // Its bytes, or null.
  uint8_t* Find(const Hash128& key) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : entry->second.memory.data();
  }
  // Takes what has been computed; it stays where it is.
  void Add(lir::OnceValue value, Memory memory) {
    bytes_ += memory.size();
    entries_.emplace(value.key, Entry{std::move(memory), std::move(value.params)});
  }
  // Gives back what depends on the parameter. No plan uses it any more.
  void Forget(std::string_view param) {
    std::erase_if(entries_, [&](const auto& entry) {
      const bool stale = entry.second.params.contains(std::string(param));
      if (stale) bytes_ -= entry.second.memory.size();
      return stale;
    });
  }
  // Held now.
  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Memory memory;
    std::set<std::string> params;
  };
  std::map<Hash128, Entry> entries_;
  int64_t bytes_ = 0;
};

}  // namespace quern
