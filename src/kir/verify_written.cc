// Scratch that is read and never written. Whether all that a kernel reads was written before is not decidable; the
// interpreter finds what was not. Refused is what is certain: an element at a fixed place, read outside of any guard,
// that lies beyond all that the kernel ever writes to the buffer. A tile op may read rows of a panel that nobody
// filled: what it makes of them is in rows or columns of its tile that nobody has to read.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kir/verify_state.h"

namespace quern::kir {

void Verifier::NoteScratchWrite(const std::string& buffer, const std::vector<Extent>& position) {
  const auto [known, first] = scratch_writes_.try_emplace(buffer);
  std::vector<Reach>& dims = known->second;
  if (first) dims.resize(position.size(), {INT64_MAX, INT64_MIN});
  for (size_t d = 0; d < position.size() && d < dims.size(); ++d) {
    dims[d].low = std::min(dims[d].low, prover_.Low(position[d]).value_or(INT64_MIN));
    dims[d].high = std::max(dims[d].high, prover_.High(position[d]).value_or(INT64_MAX));
  }
}

void Verifier::NoteScratchRead(const std::string& buffer, const std::vector<Extent>& first,
                               const std::vector<Extent>& last, const std::vector<bool>& apart) {
  if (!OnlyLastingFacts()) return;
  ScratchRead read{buffer, statement_, {}};
  for (size_t d = 0; d < first.size(); ++d) {
    if (d < apart.size() && apart[d]) {
      read.dims.push_back({INT64_MAX, INT64_MIN});
      continue;
    }
    if (!first[d].is_constant() || !last[d].is_constant()) return;
    read.dims.push_back({first[d].constant(), last[d].constant()});
  }
  scratch_reads_.push_back(std::move(read));
}

Status Verifier::CheckWritten() {
  for (const ScratchRead& read : scratch_reads_) {
    const auto written = scratch_writes_.find(read.buffer);
    if (written == scratch_writes_.end()) continue;  // refused where it is read
    statement_ = read.stmt;
    for (size_t d = 0; d < read.dims.size() && d < written->second.size(); ++d) {
      const Reach &reads = read.dims[d], &writes = written->second[d];
      if (writes.low <= reads.low && reads.high <= writes.high) continue;
      return Fail(absl::StrFormat("%s is read from %d to %d in dimension %d, and written from %d to %d only",
                                  read.buffer, reads.low, reads.high, d, writes.low, writes.high));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::kir
