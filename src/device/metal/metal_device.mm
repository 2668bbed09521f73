// One queue, and one command buffer that launches are encoded into until somebody waits: dispatches of an encoder run
// in order, each after the one before it. Memory is shared with the processor, so copies are memcpy once what was
// launched before is done.
#include "device/metal/metal_device.h"

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"

namespace quern::device::metal {
namespace {

constexpr NSUInteger kSimdgroup = 32;
constexpr int64_t kMostChunks = int64_t{1} << 32;  // a kernel sees its number as 32 bits

std::string TextOf(NSError* error) {
  return error == nil ? "no reason given" : std::string(error.localizedDescription.UTF8String);
}
NSString* StringOf(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }

struct Function {
  std::string symbol;
  id<MTLComputePipelineState> pipeline;
  NSUInteger threads;
};

class MetalDevice : public Device {
 public:
  explicit MetalDevice(id<MTLDevice> device) : device_(device), queue_([device newCommandQueue]) {}
  ~MetalDevice() override {
    const Status ignored = Synchronise();  // memory goes when nothing uses it any more
    (void)ignored;
  }

  std::string name() const override { return std::string(device_.name.UTF8String); }

  StatusOr<LoadedModule> Load(const ModuleSource& source) override {
    @autoreleasepool {
      MTLCompileOptions* const options = [[MTLCompileOptions alloc] init];
      options.languageVersion = MTLLanguageVersion3_1;
      // The text relies on NaN, infinities, the order of sums and operators that round as IEEE 754 says.
      if (@available(macOS 15.0, *)) {
        options.mathMode = MTLMathModeSafe;
        options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
      } else {
        options.fastMathEnabled = NO;
      }
      NSError* error = nil;
      id<MTLLibrary> library = [device_ newLibraryWithSource:StringOf(source.text) options:options error:&error];
      if (library == nil)
        return absl::InvalidArgumentError(absl::StrCat("Metal does not compile the text: ", TextOf(error)));
      LoadedModule loaded{next_++, {}};
      std::vector<uint64_t>& functions = modules_[loaded.module];
      for (const ModuleSource::Entry& entry : source.entries) {
        StatusOr<Function> function = Make(library, entry);
        if (!function.ok()) {
          const Status ignored = Unload(loaded.module);
          (void)ignored;
          return function.status();
        }
        functions.push_back(next_);
        functions_[next_++] = *std::move(function);
      }
      loaded.functions = functions;
      return loaded;
    }
  }

  Status Unload(uint64_t module) override {
    const auto found = modules_.find(module);
    if (found == modules_.end()) return absl::InvalidArgumentError("no module to unload");
    for (const uint64_t function : found->second) functions_.erase(function);
    modules_.erase(found);
    return absl::OkStatus();
  }

  StatusOr<Address> Allocate(int64_t bytes) override {
    @autoreleasepool {
      id<MTLBuffer> buffer = [device_ newBufferWithLength:static_cast<NSUInteger>(bytes)
                                                  options:MTLResourceStorageModeShared];
      if (buffer == nil) return absl::ResourceExhaustedError(absl::StrCat("Metal has no buffer of ", bytes, " bytes"));
      const auto address = reinterpret_cast<Address>(buffer.contents);
      if (address % static_cast<Address>(kMemoryAlign) != 0)
        return absl::InternalError("Metal gave memory that is not aligned");
      buffers_[address] = buffer;
      return address;
    }
  }

  Status Free(Address address) override {
    // What is encoded keeps the buffer until it is done.
    return buffers_.erase(address) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no memory to free");
  }

  Status CopyIn(Address to, const void* from, int64_t bytes) override {
    QUERN_RETURN_IF_ERROR(Synchronise());
    std::memcpy(reinterpret_cast<void*>(to), from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status CopyOut(void* to, Address from, int64_t bytes) override {
    QUERN_RETURN_IF_ERROR(Synchronise());
    std::memcpy(to, reinterpret_cast<const void*>(from), static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status Fill(Address to, uint8_t value, int64_t bytes) override {
    QUERN_RETURN_IF_ERROR(Synchronise());
    std::memset(reinterpret_cast<void*>(to), value, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

  Status Launch(const LaunchCall& call) override {
    @autoreleasepool {
      const auto found = functions_.find(call.function);
      if (found == functions_.end()) return absl::InvalidArgumentError("no function to launch");
      const Function& function = found->second;
      if (call.chunks < 1 || call.chunks >= kMostChunks)
        return absl::OutOfRangeError(absl::StrCat(function.symbol, ": ", call.chunks, " threadgroups"));
      if (encoder_ == nil) {
        commands_ = [queue_ commandBuffer];
        encoder_ = [commands_ computeCommandEncoder];
        if (encoder_ == nil) return absl::ResourceExhaustedError("Metal has no command buffer");
      }
      [encoder_ setComputePipelineState:function.pipeline];
      NSUInteger index = 0;
      for (const Address address : call.pointers) {
        if (address == 0) {
          [encoder_ setBuffer:nil offset:0 atIndex:index++];
          continue;
        }
        auto next = buffers_.upper_bound(address);
        if (next == buffers_.begin())
          return absl::InvalidArgumentError(absl::StrCat(function.symbol, ": an address that is no memory"));
        --next;
        const Address offset = address - next->first;
        if (offset >= static_cast<Address>(next->second.length)) {
          return absl::InvalidArgumentError(absl::StrCat(function.symbol, ": an address that is no memory"));
        }
        [encoder_ setBuffer:next->second offset:static_cast<NSUInteger>(offset) atIndex:index++];
      }
      if (!call.symbols.empty()) [encoder_ setBytes:call.symbols.data() length:call.symbols.size_bytes() atIndex:index];
      [encoder_ dispatchThreadgroups:MTLSizeMake(static_cast<NSUInteger>(call.chunks), 1, 1)
               threadsPerThreadgroup:MTLSizeMake(function.threads, 1, 1)];
      return absl::OkStatus();
    }
  }

  Status Synchronise() override {
    @autoreleasepool {
      if (encoder_ == nil) return absl::OkStatus();
      [encoder_ endEncoding];
      [commands_ commit];
      [commands_ waitUntilCompleted];
      id<MTLCommandBuffer> done = commands_;
      encoder_ = nil;
      commands_ = nil;
      if (done.status == MTLCommandBufferStatusCompleted) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("Metal stopped: ", TextOf(done.error)));
    }
  }

 private:
  StatusOr<Function> Make(id<MTLLibrary> library, const ModuleSource::Entry& entry) {
    NSError* error = nil;
    id<MTLFunction> made = [library newFunctionWithName:StringOf(entry.symbol)];
    if (made == nil) return absl::InvalidArgumentError(absl::StrCat("the text has no entry ", entry.symbol));
    id<MTLComputePipelineState> pipeline = [device_ newComputePipelineStateWithFunction:made error:&error];
    if (pipeline == nil)
      return absl::InvalidArgumentError(absl::StrCat(entry.symbol, ": Metal makes no pipeline: ", TextOf(error)));
    const auto threads = static_cast<NSUInteger>(entry.threads);
    if (pipeline.maxTotalThreadsPerThreadgroup < threads) {
      return absl::ResourceExhaustedError(absl::StrCat(entry.symbol, ": threadgroups of ", entry.threads,
                                                       " threads, of which the device runs ",
                                                       static_cast<int64_t>(pipeline.maxTotalThreadsPerThreadgroup)));
    }
    if (pipeline.threadExecutionWidth != kSimdgroup)
      return absl::UnavailableError("the device's simdgroups are not of 32 threads");
    return Function{entry.symbol, pipeline, threads};
  }

  id<MTLDevice> device_;
  id<MTLCommandQueue> queue_;
  id<MTLCommandBuffer> commands_ = nil;         // being encoded; nil: nothing is under way
  id<MTLComputeCommandEncoder> encoder_ = nil;  // of commands_
  std::map<Address, id<MTLBuffer>> buffers_;
  std::map<uint64_t, Function> functions_;
  std::map<uint64_t, std::vector<uint64_t>> modules_;
  uint64_t next_ = 1;
};

}  // namespace

StatusOr<std::shared_ptr<Device>> OpenDevice() {
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (device == nil) return absl::UnavailableError("this machine has no Metal device");
    // Matrices of a simdgroup and memory that is shared: Apple's own GPUs, from that of the M1 on.
    if (![device supportsFamily:MTLGPUFamilyApple7]) {
      return absl::UnavailableError(
          absl::StrCat(std::string(device.name.UTF8String), " is not of Apple's GPU family 7 or later"));
    }
    return std::shared_ptr<Device>(std::make_shared<MetalDevice>(device));
  }
}

}  // namespace quern::device::metal
