// A kernel in text form: an error, or a kernel that prints and parses back as itself; in one that verifies the
// interpreter, which checks each access, finds nothing but reads of what was never written, where the verifier cannot
// know (verify_written.cc).
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "kir/canonical.h"
#include "kir/interpret.h"
#include "kir/kir.h"

namespace {

constexpr int64_t kMostBytes = 1 << 16, kMostChunks = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  if (size > 4096) return 0;
  const StatusOr<kir::Kernel> kernel = kir::ParseKernel({reinterpret_cast<const char*>(data), size});
  if (!kernel.ok()) return 0;
  const std::string printed = kir::Print(*kernel);
  const StatusOr<kir::Kernel> again = kir::ParseKernel(printed);
  if (!again.ok() || kir::Print(*again) != printed) {
    std::fprintf(stderr, "%s\n%s\n", printed.c_str(),
                 again.ok() ? "parses as another" : again.status().ToString().c_str());
    std::abort();
  }
  if (!kir::Verify(*kernel).ok()) return 0;
  Binding binding;
  for (const kir::SymbolDecl& symbol : kernel->symbols) {
    if (!symbol.derived) binding[symbol.name] = std::min<int64_t>(symbol.range.high, symbol.range.low + 3);
  }
  const StatusOr<Binding> bound = kir::BindSymbols(*kernel, binding);
  const StatusOr<int64_t> chunks = kir::GridChunks(*kernel, binding);
  if (!bound.ok() || !chunks.ok() || *chunks > kMostChunks) return 0;
  std::vector<std::vector<uint8_t>> memory;
  for (const kir::Param& param : kernel->params) {
    const StatusOr<int64_t> bytes =
        kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(*bound);
    if (!bytes.ok() || *bytes < 0 || *bytes > kMostBytes) return 0;
    memory.emplace_back(*bytes);
  }
  std::vector<kir::BufferBytes> buffers(memory.begin(), memory.end());
  const Status ran = kir::Interpret(*kernel, binding, buffers);
  if (ran.ok() || absl::StrContains(std::string(ran.message()), "is read before it is written")) return 0;
  std::fprintf(stderr, "%s\n%s\n", printed.c_str(), ran.ToString().c_str());
  std::abort();
}
