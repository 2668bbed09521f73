// PTX text of kernels for blocks of threads (codegen/block_schedule.h makes them), through LLVM. One text for all
// kernels of a call: one header, one `.visible .entry SYMBOL(...)` a kernel. The kernels are compiled on all processors
// that the process may use.
//
//   const codegen::DeviceTarget& target = ptx::Targets()[0];
//   QUERN_ASSIGN(codegen::DeviceModule made, target.emit(kernels, symbols, target));
//
// An entry takes, in this order, a pointer to global memory for each parameter of the kernel, aligned as the kernel
// says, then an i64 for each of its symbols, derived ones included (kir::BindSymbols). It is launched in one dimension:
// GridChunks(kernel) blocks of DeviceKernel::threads threads, with no dynamic shared memory. A parameter without
// elements may be any pointer.
//
//   void* args[] = {&x, &y, &S};    // CUdeviceptr x, y; int64_t S
//   cuLaunchKernel(entry, chunks, 1, 1, made.kernels[0].threads, 1, 1, 0, stream, args, nullptr);
#pragma once

#include <span>

#include "codegen/device_module.h"

namespace quern::ptx {

// Name "nvptx64"; `cpu` is the machine (sm_80, sm_90), `features` what LLVM calls the version of the text.
std::span<const codegen::DeviceTarget> Targets();

}  // namespace quern::ptx
