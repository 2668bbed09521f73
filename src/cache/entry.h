// The bytes of one cached object: written by Encode, and checked in every part by Decode, since a cache file may be cut
// off, rotten, of another Quern, or not ours at all.
//
//   "QUERNOBJ"  u32 format version  u64 bytes of the file  16 bytes hash of the key  16 bytes checksum of what follows
//   u32 number of strings, then each as u64 length and bytes: the fields of the key in the order of KeyFields, the
//   object, the origins
// Numbers are little-endian.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/compile_key.h"

namespace quern::cache {

struct Entry {
  CompileKey key;
  std::string object;                // relocatable ELF; of a plan, its sealed bytes
  std::vector<std::string> origins;  // the kernel's table of origins: which ops of which block the code computes; of a
                                     // plan, what part of a program it is
};

std::string Encode(const Entry& entry);
// Errors say which part is wrong.
StatusOr<Entry> Decode(std::string_view bytes);

}  // namespace quern::cache
