#include "device/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace quern::device::cuda {
namespace {

// Of CUresult: those that mean something else than a fault of a kernel or of this program.
constexpr Result kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101, kUnsupportedPtx = 222, kSystemNotReady = 802,
                 kDriverMismatch = 803;

absl::StatusCode CodeOf(Result result) {
  if (result == kOutOfMemory) return absl::StatusCode::kResourceExhausted;
  const bool absent = result == kNoDevice || result == kInvalidDevice || result == kUnsupportedPtx ||
                      result == kSystemNotReady || result == kDriverMismatch;
  return absent ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal;
}

template <typename Pointer>
bool Find(void* library, const char* name, Pointer& pointer) {
  void* found = dlsym(library, name);
  if (found == nullptr) found = dlsym(library, absl::StrCat(name, "_v2").c_str());
  pointer = reinterpret_cast<Pointer>(found);
  return found != nullptr;
}

}  // namespace

StatusOr<std::shared_ptr<const Driver>> Driver::Load(const std::string& path) {
  std::shared_ptr<Driver> driver(new Driver);
  // A driver may have threads of its own, which end with the process: its code stays.
  driver->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (driver->library_ == nullptr) {
    const char* const why = dlerror();
    return absl::UnavailableError(
        absl::StrFormat("there is no NVIDIA driver: %s", why == nullptr ? path : std::string(why)));
  }
#define QUERN_CUDA_FIND(name, parameters)                                                                         \
  if (!Find(driver->library_, #name, driver->name)) {                                                             \
    return absl::UnavailableError(absl::StrFormat("the NVIDIA driver %s is too old: it has no %s", path, #name)); \
  }
  QUERN_CUDA_FUNCTIONS(QUERN_CUDA_FIND)
#undef QUERN_CUDA_FIND
  return std::shared_ptr<const Driver>(std::move(driver));
}

Driver::~Driver() {
  if (library_ != nullptr) dlclose(library_);
}

Status Driver::Check(Result result, const char* function, const std::string& doing) const {
  if (result == 0) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != 0 || name == nullptr) name = "an unknown error";
  if (cuGetErrorString(result, &text) != 0 || text == nullptr) text = "";
  return Status(CodeOf(result), absl::StrFormat("%s, %s: %s %d%s", function, doing, name, result,
                                                *text == '\0' ? "" : absl::StrCat(" (", text, ")")));
}

}  // namespace quern::device::cuda
