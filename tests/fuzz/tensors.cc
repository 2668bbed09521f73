// Files of tensors; the first byte says which kind. Whatever the rest is, there is an error that says something, or
// tensors whose bytes are those of their shapes, and that are written and read back as themselves.
//
//   s  a .safetensors file
//   n  a .npy file
//   z  a .npz file
#include <cstdlib>
#include <string>

#include "import/npy.h"
#include "import/npz.h"
#include "import/safetensors.h"

namespace {

using namespace quern;

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool Same(const FileTensor& a, const FileTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

void Check(const Status& status) {
  if (!status.ok() && (status.message().empty() || absl::IsInternal(status))) std::abort();
}

void Check(const FileTensor& tensor) {
  if (BytesOf(tensor.dtype, tensor.shape) != tensor.bytes.size()) std::abort();
}

void ReadManyTensors(std::span<const uint8_t> file, bool npz) {
  const StatusOr<FileTensors> tensors = npz ? ParseNpz(file) : ParseSafetensors(file);
  Check(tensors.status());
  if (!tensors.ok()) return;
  const StatusOr<std::string> written = npz ? PrintNpz(*tensors) : PrintSafetensors(*tensors);
  if (!written.ok()) std::abort();
  const StatusOr<FileTensors> again = npz ? ParseNpz(BytesOf(*written)) : ParseSafetensors(BytesOf(*written));
  if (!again.ok() || again->size() != tensors->size()) std::abort();
  for (const auto& [name, tensor] : *tensors) {
    Check(tensor);
    const auto found = again->find(name);
    if (found == again->end() || !Same(found->second, tensor)) std::abort();
  }
}

void ReadOneTensor(std::span<const uint8_t> file) {
  const StatusOr<FileTensor> tensor = ParseNpy(file);
  Check(tensor.status());
  if (!tensor.ok()) return;
  Check(*tensor);
  const StatusOr<std::string> written = PrintNpy(*tensor);
  if (!written.ok()) std::abort();  // NumPy has a name for what it has written
  const StatusOr<FileTensor> again = ParseNpy(BytesOf(*written));
  if (!again.ok() || !Same(*again, *tensor)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> file(data + 1, size - 1);
  if (data[0] == 's' || data[0] == 'z') ReadManyTensors(file, data[0] == 'z');
  if (data[0] == 'n') ReadOneTensor(file);
  return 0;
}
