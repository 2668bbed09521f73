// A language model on a device, by the public interface: the bundled model, whose logits are those of the JIT.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "quern/graph.h"
#include "quern/profile.h"
#include "quern/quern.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

const char* Model() { return QUERN_SOURCE_DIR "/models/addition.gguf"; }

Options OnDevice(const std::string& device) {
  Options options;
  options.device = device;
  options.cache = "off";
  options.threads = 2;
  options.exact = true;
  return options;
}

std::string OpenError(const Options& options) {
  Result<Session> session = Session::Open(Model(), options);
  return session.ok() ? "" : session.error();
}

TEST(DeviceSession, LogitsAreThoseOfTheJit) {
  Result<Session> device = Session::Open(Model(), OnDevice("emulated")), cpu = Session::Open(Model(), OnDevice("cpu"));
  ASSERT_TRUE(device.ok()) << device.error();
  ASSERT_TRUE(cpu.ok()) << cpu.error();
  EXPECT_EQ(device->threads(), 2);
  EXPECT_GT(device->timings().kernels_compiled, 5);
  const auto compare = [&](std::span<const int32_t> ids) {
    Result<std::vector<float>> got = device->Step(ids), expected = cpu->Step(ids);
    ASSERT_TRUE(got.ok()) << got.error();
    ASSERT_TRUE(expected.ok()) << expected.error();
    ASSERT_EQ(got->size(), expected->size());
    for (size_t i = 0; i < got->size(); ++i)
      ASSERT_NEAR((*got)[i], (*expected)[i], 2e-4 * (1 + std::fabs((*expected)[i]))) << i;
  };
  // A few tokens, one, and one behind a longer past.
  const std::vector<int32_t> prompt = *cpu->Tokenize("2+3=");
  ASSERT_GT(prompt.size(), 2u);
  ASSERT_NO_FATAL_FAILURE(compare(prompt));
  ASSERT_NO_FATAL_FAILURE(compare(std::span(prompt).first(1)));
  ASSERT_NO_FATAL_FAILURE(compare(std::span(prompt).last(1)));
  EXPECT_EQ(device->position(), cpu->position());
  Result<Profiler> profiler = Profiler::Attach(*device, {});
  ASSERT_FALSE(profiler.ok());
  EXPECT_EQ(profiler.error(), "a session on a device has no profile");
}

TEST(DeviceSession, OptionsThatMakeNoSense) {
  EXPECT_EQ(OpenError(OnDevice("gpu")), "there is no device \"gpu\"; there are cpu, cuda, emulated and metal");
  Options options = OnDevice("emulated");
  options.check = "ref";
  EXPECT_EQ(OpenError(options), "checks are made on device cpu only, not on emulated");
  options = OnDevice("emulated");
  options.cpu = "avx2";
  EXPECT_THAT(OpenError(options), HasSubstr("device emulated has no cpu \"avx2\""));
  options = OnDevice("emulated");
  options.threads = -1;
  EXPECT_THAT(OpenError(options), HasSubstr("-1 threads were asked for"));
  ASSERT_EQ(setenv("QUERN_CUDA_DRIVER", "/nowhere/cuda.so", 1), 0);
  EXPECT_THAT(OpenError(OnDevice("cuda")), HasSubstr("there is no NVIDIA driver: /nowhere/cuda.so"));
  unsetenv("QUERN_CUDA_DRIVER");
}

TEST(DeviceSession, GraphsRunOnTheCpu) {
  Graph graph("g");
  const Value x = graph.Input("x", "f32[3]");
  graph.Output("y", graph.Op("Abs", {x}));
  Result<Program> program = graph.Compile(OnDevice("emulated"));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error(), "graphs run on device cpu, not on emulated");
}

}  // namespace
}  // namespace quern
