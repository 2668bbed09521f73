// The few functions of the CUDA driver API that are used, declared as its reference manual does (CUDA 11.4 and later),
// and the library that they come from. Internal to device/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace quern::device::cuda {

using Result = int;  // 0: success
using DeviceId = int;
using DevicePointer = uint64_t;
struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct GraphObject;
struct GraphNodeObject;
struct GraphExecObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;
using Graph = GraphObject*;
using GraphNode = GraphNodeObject*;
using GraphExec = GraphExecObject*;

// CUDA_KERNEL_NODE_PARAMS_v2, of which version 1 is all but the last two.
struct KernelNode {
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  Context context;
};

// CUjit_option, CUdevice_attribute
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

// Name, parameters. All return Result. One row a function: the pointers and the look-up by name are made of it. Where a
// driver has no function of that name, the one with "_v2" is meant.
#define QUERN_CUDA_FUNCTIONS(F)                                                                                \
  F(cuInit, (unsigned flags))                                                                                  \
  F(cuGetErrorName, (Result error, const char** text))                                                         \
  F(cuGetErrorString, (Result error, const char** text))                                                       \
  F(cuDeviceGetCount, (int* count))                                                                            \
  F(cuDeviceGet, (DeviceId * device, int ordinal))                                                             \
  F(cuDeviceGetName, (char* name, int bytes, DeviceId device))                                                 \
  F(cuDeviceGetAttribute, (int* value, int attribute, DeviceId device))                                        \
  F(cuDevicePrimaryCtxRetain, (Context * context, DeviceId device))                                            \
  F(cuDevicePrimaryCtxRelease_v2, (DeviceId device))                                                           \
  F(cuCtxPushCurrent_v2, (Context context))                                                                    \
  F(cuCtxPopCurrent_v2, (Context * context))                                                                   \
  F(cuStreamCreate, (Stream * stream, unsigned flags))                                                         \
  F(cuStreamDestroy_v2, (Stream stream))                                                                       \
  F(cuStreamSynchronize, (Stream stream))                                                                      \
  F(cuModuleLoadDataEx, (Module * module, const void* text, unsigned options, int* names, void** values))      \
  F(cuModuleUnload, (Module module))                                                                           \
  F(cuModuleGetFunction, (Function * function, Module module, const char* name))                               \
  F(cuMemAlloc_v2, (DevicePointer * pointer, size_t bytes))                                                    \
  F(cuMemFree_v2, (DevicePointer pointer))                                                                     \
  F(cuMemcpyHtoDAsync_v2, (DevicePointer to, const void* from, size_t bytes, Stream stream))                   \
  F(cuMemcpyDtoHAsync_v2, (void* to, DevicePointer from, size_t bytes, Stream stream))                         \
  F(cuMemsetD8Async, (DevicePointer to, unsigned char value, size_t bytes, Stream stream))                     \
  F(cuLaunchKernel,                                                                                            \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, Stream stream, void** params, void** extra))                     \
  F(cuGraphCreate, (Graph * graph, unsigned flags))                                                            \
  F(cuGraphDestroy, (Graph graph))                                                                             \
  F(cuGraphAddKernelNode,                                                                                      \
    (GraphNode * node, Graph graph, const GraphNode* before, size_t count, const KernelNode* kernel))          \
  F(cuGraphInstantiateWithFlags, (GraphExec * exec, Graph graph, unsigned long long flags))                    \
  F(cuGraphExecDestroy, (GraphExec exec))                                                                      \
  F(cuGraphExecKernelNodeSetParams, (GraphExec exec, GraphNode node, const KernelNode* kernel))                \
  F(cuGraphLaunch, (GraphExec exec, Stream stream))

class Driver {
 public:
  // `path`: of the library; it stays loaded while this lives. Errors: there is none; it lacks a function.
  static StatusOr<std::shared_ptr<const Driver>> Load(const std::string& path);
  ~Driver();
  Driver(const Driver&) = delete;

  // OK for 0, else an error with the function, what was being done, and what the driver calls the error.
  Status Check(Result result, const char* function, const std::string& doing) const;

#define QUERN_CUDA_POINTER(name, parameters) Result(*name) parameters = nullptr;
  QUERN_CUDA_FUNCTIONS(QUERN_CUDA_POINTER)
#undef QUERN_CUDA_POINTER

 private:
  Driver() = default;
  void* library_ = nullptr;
};

// Calls a function of `driver`; returns its error. The text of `doing` is made when there is one.
#define QUERN_CUDA(driver, function, arguments, doing)                                                     \
  do {                                                                                                     \
    if (const ::quern::device::cuda::Result quern_result = (driver).function arguments; quern_result != 0) \
      return (driver).Check(quern_result, #function, doing);                                               \
  } while (false)

}  // namespace quern::device::cuda
