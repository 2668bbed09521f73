// An importance matrix, in either form. Whatever the bytes are, there is an error or a matrix whose means are numbers,
// and which is read again as it was written.
#include <cmath>
#include <cstdlib>

#include "import/importance.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  const StatusOr<ImportanceMatrix> matrix = ParseImportance({data, size});
  if (!matrix.ok()) return 0;
  for (const auto& [name, entry] : matrix->entries) {
    for (const float mean : MeansOf(entry)) {
      if (!std::isfinite(mean) || mean < 0) std::abort();
    }
  }
  const std::string written = ImportanceFile(*matrix);
  const StatusOr<ImportanceMatrix> again =
      ParseImportance({reinterpret_cast<const uint8_t*>(written.data()), written.size()});
  if (!again.ok() || again->entries.size() != matrix->entries.size()) std::abort();
  return 0;
}
