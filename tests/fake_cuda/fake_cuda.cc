#include "fake_cuda/fake_cuda.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace quern::device::cuda {

// The objects that handles point to.
struct ContextObject {
  int retained = 0;
};
struct FunctionObject {
  std::string name;
  int params = 0;
  ModuleObject* module = nullptr;
};
struct ModuleObject {
  std::map<std::string, FunctionObject> functions;
};
struct StreamObject {
  std::deque<std::function<Result()>> work;
};
struct GraphNodeObject {
  FunctionObject* function;
  unsigned blocks, threads;
  std::vector<uint64_t> values;
  GraphNodeObject* before;
};
struct GraphObject {
  std::deque<GraphNodeObject> nodes;
};
struct GraphExecObject {
  GraphObject* graph;
  std::map<GraphNodeObject*, GraphNodeObject> nodes;
};

namespace {

constexpr Result kInvalidValue = 1, kNoDevice = 100, kInvalidContext = 201, kInvalidPtx = 218, kInvalidHandle = 400,
                 kNotFound = 500, kInjected = 999;

struct Allocation {
  std::vector<uint8_t> bytes;
};

struct Fake {
  int devices = 1, capability = 80;
  bool initialised = false;
  ContextObject context;
  std::vector<Context> current;
  std::map<uint64_t, Allocation> memory;
  uint64_t next = 0xD00000000000;
  std::set<ModuleObject*> modules;
  std::set<StreamObject*> streams;
  std::set<GraphObject*> graphs;
  std::set<GraphExecObject*> execs;
  FakeKernel* kernel = nullptr;
  void* user = nullptr;
  int fail_at = 0, calls = 0;
  std::string failed, violations, leaks;
};
Fake storage;
Fake* const fake = &storage;

Result Violation(const std::string& text, Result result = kInvalidValue) {
  fake->violations += text + "\n";
  return result;
}

// Counts a call; not 0: it fails.
Result Enter(const char* name) {
  if (++fake->calls != fake->fail_at) return 0;
  fake->failed = name;
  return kInjected;
}
Result EnterCurrent(const char* name) {
  if (fake->current.empty() || fake->current.back() != &fake->context || fake->context.retained == 0)
    return Violation(std::string(name) + " without a context", kInvalidContext);
  return Enter(name);
}
#define ENTER(function) \
  if (const Result entered = Enter(#function); entered != 0) return entered
#define ENTER_CURRENT(function) \
  if (const Result entered = EnterCurrent(#function); entered != 0) return entered
// Releases: not counted, and not failed.
#define RELEASE(function) \
  if (fake->current.empty()) return Violation(#function " without a context", kInvalidContext)

uint8_t* Translate(uint64_t address, int64_t bytes, const char* what) {
  auto next = fake->memory.upper_bound(address);
  if (next != fake->memory.begin()) {
    auto& [start, allocation] = *std::prev(next);
    const uint64_t at = address - start;
    if (bytes >= 0 && at + static_cast<uint64_t>(bytes) <= allocation.bytes.size()) return allocation.bytes.data() + at;
  }
  Violation(std::string(what) + ": " + std::to_string(bytes) + " bytes outside of an allocation");
  return nullptr;
}

Result Run(const GraphNodeObject& launch) {
  if (fake->modules.count(launch.function->module) == 0) return Violation("a kernel of a module that is unloaded");
  if (fake->kernel == nullptr) return 700;
  return fake->kernel(fake->user, launch.function->name.c_str(), launch.blocks, launch.threads, launch.values.data(),
                      static_cast<int>(launch.values.size())) == 0
             ? 0
             : 700;
}

Result Drain(Stream stream) {
  Result result = 0;
  while (!stream->work.empty()) {
    const Result one = stream->work.front()();
    stream->work.pop_front();
    if (result == 0) result = one;
  }
  return result;
}
void DrainAll() {
  for (Stream stream : fake->streams) Drain(stream);
}

GraphNodeObject Launched(Function function, unsigned blocks, unsigned threads, void** params) {
  GraphNodeObject launch{function, blocks, threads, {}, nullptr};
  for (int p = 0; p < function->params; ++p) {
    uint64_t value = 0;
    std::memcpy(&value, params[p], sizeof value);
    launch.values.push_back(value);
  }
  return launch;
}

Result CheckShape(const KernelNode& node) {
  const bool whole = node.grid_x >= 1 && node.grid_x <= 0x7fffffff && node.grid_y == 1 && node.grid_z == 1 &&
                     node.block_x >= 1 && node.block_x <= 1024 && node.block_y == 1 && node.block_z == 1;
  return whole ? 0 : Violation("a launch of no blocks, or of too many threads");
}

// The entries of a text and how many parameters they have.
bool ParseText(const std::string& text, ModuleObject& module) {
  const std::string word = ".visible .entry ";
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t name = at + word.size(), open = text.find('(', name), close = text.find(')', name);
    if (open == std::string::npos || close == std::string::npos) return false;
    FunctionObject& function = module.functions[text.substr(name, open - name)];
    function = {text.substr(name, open - name), 0, &module};
    for (size_t p = text.find(".param", open); p < close; p = text.find(".param", p + 1)) ++function.params;
  }
  return !module.functions.empty();
}

}  // namespace

extern "C" {

Result cuInit(unsigned) {
  ENTER(cuInit);
  if (fake->devices == 0) return kNoDevice;
  fake->initialised = true;
  return 0;
}
Result cuGetErrorName(Result error, const char** text) {
  static const std::map<Result, const char*>* const names =
      new std::map<Result, const char*>{{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                        {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                        {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
                                        {kInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
                                        {kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                        {kInjected, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names->find(error);
  if (found == names->end()) return kInvalidValue;
  *text = found->second;
  return 0;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "as the test wants it";
  return 0;
}
Result cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  if (!fake->initialised) return Violation("cuDeviceGetCount before cuInit");
  *count = fake->devices;
  return 0;
}
Result cuDeviceGet(DeviceId* device, int ordinal) {
  ENTER(cuDeviceGet);
  *device = ordinal + 17;
  return 0;
}
Result cuDeviceGetName(char* name, int bytes, DeviceId device) {
  ENTER(cuDeviceGetName);
  if (device != 17) return Violation("a name of no device");
  std::strncpy(name, "Fake 9000", static_cast<size_t>(bytes));
  return 0;
}
Result cuDeviceGetAttribute(int* value, int attribute, DeviceId) {
  ENTER(cuDeviceGetAttribute);
  *value = attribute == kCapabilityMajor ? fake->capability / 10 : fake->capability % 10;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context* context, DeviceId) {
  ENTER(cuDevicePrimaryCtxRetain);
  ++fake->context.retained;
  *context = &fake->context;
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(DeviceId) {
  if (fake->context.retained-- == 0) return Violation("a context is released twice");
  return 0;
}
// A context that cannot be current is lost, and nothing runs in it any more.
Result cuCtxPushCurrent_v2(Context context) {
  if (fake->calls + 1 == fake->fail_at) DrainAll();
  ENTER(cuCtxPushCurrent_v2);
  fake->current.push_back(context);
  return 0;
}
// Pops even where it fails, as an error of earlier work would have it.
Result cuCtxPopCurrent_v2(Context* context) {
  if (fake->current.empty()) return Violation("nothing to pop", kInvalidContext);
  *context = fake->current.back();
  fake->current.pop_back();
  ENTER(cuCtxPopCurrent_v2);
  return 0;
}
Result cuStreamCreate(Stream* stream, unsigned) {
  ENTER_CURRENT(cuStreamCreate);
  *stream = new StreamObject;
  fake->streams.insert(*stream);
  return 0;
}
Result cuStreamDestroy_v2(Stream stream) {
  RELEASE(cuStreamDestroy_v2);
  if (fake->streams.erase(stream) == 0) return Violation("a stream is destroyed twice");
  delete stream;
  return 0;
}
// What fails here is earlier work, which is over.
Result cuStreamSynchronize(Stream stream) {
  if (fake->streams.count(stream) == 0) return Violation("a stream that is gone");
  const Result result = Drain(stream);
  ENTER_CURRENT(cuStreamSynchronize);
  return result;
}
Result cuModuleLoadDataEx(Module* module, const void* text, unsigned options, int* names, void** values) {
  ENTER_CURRENT(cuModuleLoadDataEx);
  auto made = std::make_unique<ModuleObject>();
  if (!ParseText(static_cast<const char*>(text), *made)) {
    for (unsigned o = 0; o < options; ++o) {
      if (names[o] == kJitErrorLog) std::strcpy(static_cast<char*>(values[o]), "ptxas fatal: no entry in line 1");
    }
    return kInvalidPtx;
  }
  *module = made.release();
  fake->modules.insert(*module);
  return 0;
}
Result cuModuleUnload(Module module) {
  RELEASE(cuModuleUnload);
  DrainAll();
  if (fake->modules.erase(module) == 0) return Violation("a module is unloaded twice");
  delete module;
  return 0;
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  ENTER_CURRENT(cuModuleGetFunction);
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  *function = &found->second;
  return 0;
}
Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  ENTER_CURRENT(cuMemAlloc_v2);
  if (bytes == 0) return Violation("no bytes to allocate");
  if (bytes > (size_t{1} << 30)) return 2;
  *pointer = fake->next;
  fake->memory[fake->next].bytes.assign(bytes, 0xA5);
  fake->next += (bytes + 4095) / 4096 * 4096 + 4096;
  return 0;
}
Result cuMemFree_v2(DevicePointer pointer) {
  RELEASE(cuMemFree_v2);
  DrainAll();
  return fake->memory.erase(pointer) == 1 ? 0 : Violation("memory is freed twice");
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream stream) {
  ENTER_CURRENT(cuMemcpyHtoDAsync_v2);
  if (Translate(to, static_cast<int64_t>(bytes), "cuMemcpyHtoDAsync_v2") == nullptr) return kInvalidValue;
  stream->work.push_back([=]() -> Result {
    uint8_t* const memory = Translate(to, static_cast<int64_t>(bytes), "a copy that is late");
    if (memory == nullptr) return 700;
    std::memcpy(memory, from, bytes);
    return 0;
  });
  return 0;
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream stream) {
  ENTER_CURRENT(cuMemcpyDtoHAsync_v2);
  if (Translate(from, static_cast<int64_t>(bytes), "cuMemcpyDtoHAsync_v2") == nullptr) return kInvalidValue;
  stream->work.push_back([=]() -> Result {
    const uint8_t* const memory = Translate(from, static_cast<int64_t>(bytes), "a copy that is late");
    if (memory == nullptr) return 700;
    std::memcpy(to, memory, bytes);
    return 0;
  });
  return 0;
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream stream) {
  ENTER_CURRENT(cuMemsetD8Async);
  stream->work.push_back([=]() -> Result {
    uint8_t* const memory = Translate(to, static_cast<int64_t>(bytes), "cuMemsetD8Async");
    if (memory == nullptr) return 700;
    std::memset(memory, value, bytes);
    return 0;
  });
  return 0;
}
Result cuLaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, Stream stream, void** params, void** extra) {
  ENTER_CURRENT(cuLaunchKernel);
  if (shared != 0 || extra != nullptr) return Violation("a launch with what no kernel here asks for");
  if (const Result shape = CheckShape({function, gx, gy, gz, bx, by, bz, shared, params, extra, nullptr, nullptr});
      shape != 0)
    return shape;
  stream->work.push_back([launch = Launched(function, gx, bx, params)] { return Run(launch); });
  return 0;
}
Result cuGraphCreate(Graph* graph, unsigned) {
  ENTER_CURRENT(cuGraphCreate);
  *graph = new GraphObject;
  fake->graphs.insert(*graph);
  return 0;
}
Result cuGraphDestroy(Graph graph) {
  RELEASE(cuGraphDestroy);
  if (fake->graphs.erase(graph) == 0) return Violation("a graph is destroyed twice");
  delete graph;
  return 0;
}
Result cuGraphAddKernelNode(GraphNode* node, Graph graph, const GraphNode* before, size_t count,
                            const KernelNode* kernel) {
  ENTER_CURRENT(cuGraphAddKernelNode);
  if (const Result shape = CheckShape(*kernel); shape != 0) return shape;
  if (count > 1 || (count == 1) != !graph->nodes.empty())
    return Violation("a launch that does not follow the one before it");
  graph->nodes.push_back(Launched(kernel->function, kernel->grid_x, kernel->block_x, kernel->params));
  if (count == 1) graph->nodes.back().before = *before;
  *node = &graph->nodes.back();
  return 0;
}
Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  ENTER_CURRENT(cuGraphInstantiateWithFlags);
  auto* made = new GraphExecObject{graph, {}};
  for (GraphNodeObject& node : graph->nodes) made->nodes.emplace(&node, node);
  *exec = made;
  fake->execs.insert(made);
  return 0;
}
Result cuGraphExecDestroy(GraphExec exec) {
  RELEASE(cuGraphExecDestroy);
  DrainAll();
  if (fake->execs.erase(exec) == 0) return Violation("a graph is destroyed twice");
  delete exec;
  return 0;
}
Result cuGraphExecKernelNodeSetParams(GraphExec exec, GraphNode node, const KernelNode* kernel) {
  ENTER_CURRENT(cuGraphExecKernelNodeSetParams);
  if (fake->graphs.count(exec->graph) == 0) return Violation("a node of a graph that is gone");
  const auto found = exec->nodes.find(node);
  if (found == exec->nodes.end() || found->second.function != kernel->function)
    return Violation("a node that cannot be changed so", kInvalidHandle);
  if (const Result shape = CheckShape(*kernel); shape != 0) return shape;
  DrainAll();  // launches that are under way have the arguments that they were launched with
  GraphNodeObject* const before = found->second.before;
  found->second = Launched(kernel->function, kernel->grid_x, kernel->block_x, kernel->params);
  found->second.before = before;
  return 0;
}
Result cuGraphLaunch(GraphExec exec, Stream stream) {
  ENTER_CURRENT(cuGraphLaunch);
  stream->work.push_back([exec]() -> Result {
    std::vector<const GraphNodeObject*> order;  // from the last node back
    for (const auto& [node, launch] : exec->nodes) {
      bool last = true;
      for (const auto& [other, next] : exec->nodes) last &= next.before != node;
      if (last) order.push_back(&launch);
    }
    if (order.size() != 1) return Violation("a graph that is no chain");
    while (order.back()->before != nullptr) order.push_back(&exec->nodes.at(order.back()->before));
    for (size_t n = order.size(); n-- > 0;) {
      if (const Result result = Run(*order[n]); result != 0) return result;
    }
    return 0;
  });
  return 0;
}

void fake_register(FakeKernel* kernel, void* user) { fake->kernel = kernel, fake->user = user; }
uint8_t* fake_translate(uint64_t address, int64_t bytes) { return Translate(address, bytes, "a kernel"); }
void fake_reset(int devices, int capability) {
  const auto forget = [](const auto& objects) {
    for (auto* object : objects) delete object;
  };
  forget(fake->execs), forget(fake->graphs), forget(fake->streams), forget(fake->modules);
  *fake = Fake{};
  fake->devices = devices;
  fake->capability = capability;
}
void fake_fail_at(int call) { fake->fail_at = call, fake->calls = 0, fake->failed.clear(); }
int fake_calls() { return fake->calls; }
const char* fake_failed() { return fake->failed.c_str(); }
const char* fake_violations() { return fake->violations.c_str(); }
const char* fake_leaks() {
  fake->leaks.clear();
  const auto count = [](const char* what, size_t number) {
    if (number > 0) fake->leaks += std::to_string(number) + " " + what + "\n";
  };
  count("contexts retained", static_cast<size_t>(fake->context.retained));
  count("contexts current", fake->current.size());
  count("allocations", fake->memory.size());
  count("modules", fake->modules.size());
  count("streams", fake->streams.size());
  count("graphs", fake->graphs.size());
  count("instances of graphs", fake->execs.size());
  return fake->leaks.c_str();
}

}  // extern "C"

}  // namespace quern::device::cuda
