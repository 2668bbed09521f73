// NVIDIA devices by the driver API. The driver is libcuda.so.1, found when it is asked for: nothing of CUDA is needed
// to build, and the compiler of its toolkit is not needed to run, for the driver compiles PTX.
//
//   QUERN_ASSIGN(std::shared_ptr<Device> device, cuda::OpenDevice({}));
#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace quern::device::cuda {

struct CudaOptions {
  std::string driver;  // path of the driver library; empty: the environment's QUERN_CUDA_DRIVER, else libcuda.so.1
  int ordinal = 0;     // which device
};

// A device, and what texts it runs.
struct CudaDevice {
  std::shared_ptr<Device> device;
  int capability = 0;  // 90: sm_90
};

// Errors: Unavailable with one sentence where there is no driver, or no such device; a driver that lacks a function;
// what the driver says, with its function and name of the error: "cuMemAlloc_v2, 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY
// (out of memory)".
StatusOr<CudaDevice> OpenDevice(const CudaOptions& options);

}  // namespace quern::device::cuda
