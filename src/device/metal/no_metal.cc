// In place of metal_device.mm where Metal is not built.
#include "device/metal/metal_device.h"

namespace quern::device::metal {

StatusOr<std::shared_ptr<Device>> OpenDevice() {
  return absl::UnavailableError("this build has no Metal: it is for macOS, with QUERN_METAL on");
}

}  // namespace quern::device::metal
