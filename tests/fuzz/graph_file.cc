// A graph in binary form: an error, or a graph that is written and read back as itself. The hash at the end is made
// right first, so that what lies behind it is reached.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ir/binary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= 16) {
    const Hash128 hash = HashBytes(std::string_view(file).substr(0, size - 16));
    std::memcpy(file.data() + size - 16, &hash.high, 8);
    std::memcpy(file.data() + size - 8, &hash.low, 8);
  }
  const auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  const StatusOr<ir::Graph> graph = ir::Decode(bytes(file));
  if (absl::IsInternal(graph.status())) std::abort();
  if (!graph.ok()) return 0;
  const std::string written = ir::Encode(*graph);
  const StatusOr<ir::Graph> again = ir::Decode(bytes(written));
  if (!again.ok() || !ir::SameGraph(*graph, *again) || ir::Encode(*again) != written) {
    std::fprintf(stderr, "%s%s\n", ir::Print(*graph).c_str(),
                 again.ok() ? "is read as another" : again.status().ToString().c_str());
    std::abort();
  }
  return 0;
}
