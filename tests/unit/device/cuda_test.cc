// The CUDA device against a driver of the tests (tests/fake_cuda), which watches over the protocol: results,
// recordings, what is given back, and each call failing in turn.
#include "device/cuda/cuda_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "compiler/device_program.h"
#include "compiler/device_targets.h"
#include "device_graph.h"
#include "fake_cuda/fake_cuda.h"
#include "kir/interpret.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

// The functions of the fake, found in the library as the device finds the driver's.
struct FakeDriver {
  void* library = dlopen(QUERN_FAKE_CUDA, RTLD_NOW);
  template <typename F>
  F* Find(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  decltype(&fake_register) do_register = Find<decltype(fake_register)>("fake_register");
  decltype(&fake_translate) translate = Find<decltype(fake_translate)>("fake_translate");
  decltype(&fake_reset) reset = Find<decltype(fake_reset)>("fake_reset");
  decltype(&fake_fail_at) fail_at = Find<decltype(fake_fail_at)>("fake_fail_at");
  decltype(&fake_calls) calls = Find<decltype(fake_calls)>("fake_calls");
  decltype(&fake_failed) failed = Find<decltype(fake_failed)>("fake_failed");
  decltype(&fake_violations) violations = Find<decltype(fake_violations)>("fake_violations");
  decltype(&fake_leaks) leaks = Find<decltype(fake_leaks)>("fake_leaks");
};

// Kernels of a program for the fake: an entry's KIR on the interpreter.
struct Kernels {
  const FakeDriver* driver;
  std::shared_ptr<const device::LoadableProgram> program;
  std::map<std::pair<std::string, std::vector<int64_t>>, kir::Interpreter> interpreters;

  static int Run(void* user, const char* entry, unsigned blocks, unsigned threads, const uint64_t* values, int count) {
    return static_cast<Kernels*>(user)->RunOne(entry, blocks, threads, {values, static_cast<size_t>(count)});
  }
  int RunOne(const std::string& entry, unsigned blocks, unsigned threads, std::span<const uint64_t> values) {
    const device::Program& described = program->program;
    size_t k = 0;
    while (k < described.kernels.size() && described.kernels[k].symbol != entry) ++k;
    if (k == described.kernels.size() || threads != described.kernels[k].threads) return 1;
    const kir::Kernel& kernel = program->source.kernels[k];
    if (values.size() != kernel.params.size() + kernel.symbols.size()) return 2;
    Binding binding;
    std::vector<int64_t> symbols;
    for (size_t s = 0; s < kernel.symbols.size(); ++s) {
      symbols.push_back(static_cast<int64_t>(values[kernel.params.size() + s]));
      binding[kernel.symbols[s].name] = symbols.back();
    }
    std::vector<kir::BufferBytes> buffers;
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const auto bytes =
          kir::LayoutBytes(kernel.params[p].type.layout, kernel.params[p].type.dtype, kernel.params[p].type.dims)
              .Evaluate(binding);
      uint8_t* const memory = driver->translate(values[p], *bytes);
      if (memory == nullptr) return 3;
      buffers.emplace_back(memory, static_cast<size_t>(*bytes));
    }
    auto known = interpreters.find({entry, symbols});
    if (known == interpreters.end()) {
      auto made = kir::Interpreter::Create(kernel, binding);
      if (!made.ok()) return 4;
      known = interpreters.emplace(std::pair(entry, symbols), *std::move(made)).first;
    }
    if (known->second.chunks() != blocks) return 5;
    return known->second.Run(buffers, 0, blocks).ok() ? 0 : 6;
  }
};

class CudaTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    graph_ = new testing::DeviceGraph;
    testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), *graph_);
    auto program = std::make_shared<device::LoadableProgram>(*graph_->program);
    const auto target = compiler::ResolveDeviceTarget("nvptx64", "native");
    ASSERT_TRUE(target.ok()) << target.status();
    const Status written = compiler::AddText(*program, **target);
    ASSERT_TRUE(written.ok()) << written;
    graph_->program = std::move(program);
  }
  void SetUp() override {
    ASSERT_NE(driver_.library, nullptr) << dlerror();
    driver_.reset(1, 90);
    kernels_ = {&driver_, graph_->program, {}};
    driver_.do_register(Kernels::Run, &kernels_);
  }
  void TearDown() override {
    EXPECT_STREQ(driver_.violations(), "");
    EXPECT_STREQ(driver_.leaks(), "");
  }
  StatusOr<std::unique_ptr<device::Executor>> Open(std::shared_ptr<const device::LoadableProgram> program = nullptr) {
    if (program == nullptr) program = graph_->program;
    QUERN_ASSIGN(device::cuda::CudaDevice opened, device::cuda::OpenDevice({.driver = QUERN_FAKE_CUDA}));
    QUERN_ASSIGN(auto executor, device::Executor::Create(std::move(opened.device), SignatureOf(graph_->prepared),
                                                         device::VariantsOf(program)));
    QUERN_RETURN_IF_ERROR(testing::BindSmall(*executor));
    return executor;
  }
  const FakeDriver driver_;
  Kernels kernels_;
  static testing::DeviceGraph* graph_;
};
testing::DeviceGraph* CudaTest::graph_ = nullptr;

TEST_F(CudaTest, StepsAreThoseOfTheEmulatedDevice) {
  auto executor = Open();
  ASSERT_TRUE(executor.ok()) << executor.status();
  auto emulated = device::Executor::Create(device::emulated::MakeDevice(1), SignatureOf(graph_->prepared),
                                           device::VariantsOf(graph_->program));
  ASSERT_TRUE(emulated.ok());
  ASSERT_TRUE(testing::BindSmall(**emulated).ok());
  int64_t past = 0;
  for (const int64_t rows : {3, 1, 1, 1, 5, 1, 1}) {
    SCOPED_TRACE(past);
    const auto got = testing::StepSmall(**executor, past, rows), expected = testing::StepSmall(**emulated, past, rows);
    ASSERT_TRUE(got.ok()) << got.status() << driver_.violations();
    EXPECT_EQ(*got, *expected);
    past += rows;
  }
  EXPECT_EQ(*(*executor)->ReadState("cache"), *(*emulated)->ReadState("cache"));
}

// A variant is recorded when it runs again, and then only launches that differ are updated: here the one that knows the
// position.
TEST_F(CudaTest, StepsAreRecordedAndUpdated) {
  auto executor = Open();
  ASSERT_TRUE(executor.ok()) << executor.status();
  const auto step = [&](int64_t past, int64_t rows) { ASSERT_TRUE(testing::StepSmall(**executor, past, rows).ok()); };
  step(0, 1);
  EXPECT_FALSE((*executor)->last().replayed);
  step(1, 1);
  EXPECT_TRUE((*executor)->last().replayed);
  EXPECT_EQ((*executor)->last().updates, 0);
  const int before = driver_.calls();
  step(2, 1);
  EXPECT_TRUE((*executor)->last().replayed);
  EXPECT_EQ((*executor)->last().updates, 1);
  EXPECT_GT((*executor)->last().launches, 3);
  EXPECT_EQ(driver_.calls() - before,
            3 * 5);  // a copy in, an update, a launch, a copy out and the end, each with the context
  step(2, 1);
  EXPECT_EQ((*executor)->last().updates, 0);
  // Another variant takes more memory: what moves is updated too.
  step(3, 11);
  step(14, 1);
  EXPECT_TRUE((*executor)->last().replayed);
  EXPECT_GT((*executor)->last().updates, 1);
}

TEST_F(CudaTest, ErrorsSayWhatWasBeingDone) {
  auto broken = std::make_shared<device::LoadableProgram>(*graph_->program);
  broken->source.text = "nothing";
  auto executor = Open(broken);
  ASSERT_TRUE(executor.ok());
  const Status status = testing::StepSmall(**executor, 0, 1).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuModuleLoadDataEx, PTX of"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("CUDA_ERROR_INVALID_PTX 218 (as the test wants it): ptxas fatal: no entry in line 1"));
  executor->reset();

  broken = std::make_shared<device::LoadableProgram>(*graph_->program);
  broken->source.entries[0].symbol = "k_missing";
  executor = Open(broken);
  ASSERT_TRUE(executor.ok());
  EXPECT_THAT(std::string(testing::StepSmall(**executor, 0, 1).status().message()),
              HasSubstr("cuModuleGetFunction, k_missing: CUDA_ERROR_NOT_FOUND 500"));
}

TEST_F(CudaTest, NoDriverOrDevice) {
  const auto message = [&](const std::string& path, int ordinal = 0) {
    const auto opened = device::cuda::OpenDevice({.driver = path, .ordinal = ordinal});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable) << opened.status();
    return std::string(opened.status().message());
  };
  EXPECT_THAT(message("/nowhere/libcuda.so.1"),
              HasSubstr("there is no NVIDIA driver: /nowhere/libcuda.so.1: cannot open shared object file"));
  EXPECT_THAT(message("libm.so.6"), HasSubstr("the NVIDIA driver libm.so.6 is too old: it has no cuInit"));
  EXPECT_EQ(message(QUERN_FAKE_CUDA, 1), "there is no NVIDIA device 1: the driver has 1");
  driver_.reset(0, 90);
  EXPECT_EQ(message(QUERN_FAKE_CUDA), "cuInit, the driver: CUDA_ERROR_NO_DEVICE 100 (as the test wants it)");
  driver_.reset(1, 75);
  EXPECT_EQ(message(QUERN_FAKE_CUDA), "Fake 9000 has compute capability 7.5; at least 8.0 is needed");
  ASSERT_EQ(setenv("QUERN_CUDA_DRIVER", "/elsewhere/cuda.so", 1), 0);
  EXPECT_THAT(message(""), HasSubstr("/elsewhere/cuda.so"));
  unsetenv("QUERN_CUDA_DRIVER");
}

// What happens in `Scenario` until something fails.
Status Scenario(const StatusOr<std::unique_ptr<device::Executor>>& executor) {
  QUERN_RETURN_IF_ERROR(executor.status());
  for (const auto& [past, rows] :
       {std::pair(0, 1), std::pair(1, 1), std::pair(2, 1), std::pair(3, 2), std::pair(5, 1)}) {
    QUERN_RETURN_IF_ERROR(testing::StepSmall(**executor, past, rows).status());
  }
  return (*executor)->ReadState("cache").status();
}

TEST_F(CudaTest, EachCallThatFailsIsAnErrorAndLeaksNothing) {
  driver_.fail_at(0);
  ASSERT_TRUE(Scenario(Open()).ok());
  const int calls = driver_.calls();
  ASSERT_GT(calls, 100);
  for (int call = 1; call <= calls; ++call) {
    driver_.reset(1, 90);
    driver_.do_register(Kernels::Run, &kernels_);
    driver_.fail_at(call);
    const Status status = Scenario(Open());
    const std::string failed = driver_.failed();
    ASSERT_STREQ(driver_.violations(), "") << call << " " << failed;
    ASSERT_NE(failed, "") << call;
    // Whoever gives something back is not told that it cannot be, and a context that cannot be current keeps it.
    const bool releasing = status.ok() && failed.starts_with("cuCtx");
    if (!releasing || failed != "cuCtxPushCurrent_v2") {
      ASSERT_STREQ(driver_.leaks(), "") << call << " " << failed;
    }
    if (releasing) continue;
    ASSERT_FALSE(status.ok()) << call << " " << failed;
    EXPECT_THAT(std::string(status.message()), HasSubstr(failed)) << call;
    EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA_ERROR_UNKNOWN 999")) << call;
  }
  driver_.reset(1, 90);
}

// After an error the same executor goes on where it can.
TEST_F(CudaTest, AStepThatFailedIsRepeated) {
  auto executor = Open();
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE(testing::StepSmall(**executor, 0, 1).ok());
  const auto expected = testing::StepSmall(**executor, 1, 1);
  ASSERT_TRUE(expected.ok());
  driver_.fail_at(0);
  ASSERT_TRUE(testing::StepSmall(**executor, 2, 1).ok());
  for (int call = 1, calls = driver_.calls(); call <= calls; ++call) {
    driver_.fail_at(call);
    ASSERT_FALSE(testing::StepSmall(**executor, 2 + call % 2, 1).ok()) << call;
    driver_.fail_at(0);
    const auto got = testing::StepSmall(**executor, 1, 1);
    ASSERT_TRUE(got.ok()) << call << " " << got.status();
    ASSERT_EQ(*got, *expected) << call;
  }
}

}  // namespace
}  // namespace quern
