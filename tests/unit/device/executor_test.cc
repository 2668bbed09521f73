// Programs on the emulated device beside the JIT: results, state, variants, and the errors of a run.
#include "device/executor.h"

#include <gmock/gmock.h>

#include <cstring>

#include "base/diagnostic.h"
#include "device_graph.h"

namespace quern {
namespace {

using testing::DeviceGraph;

class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), graph_));
    ASSERT_NO_FATAL_FAILURE(Open(2));
  }
  void Open(int threads) {
    auto executor = device::Executor::Create(device::emulated::MakeDevice(threads), SignatureOf(graph_.prepared),
                                             device::VariantsOf(graph_.program));
    ASSERT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
    ASSERT_TRUE(testing::BindSmall(*executor_).ok());
  }
  DiagnosticCode CodeOf(const Status& status) {
    const std::optional<Diagnostic> diagnostic = DiagnosticOf(status);
    EXPECT_TRUE(diagnostic.has_value()) << status;
    return diagnostic ? diagnostic->code : DiagnosticCode::kUnknownOp;
  }
  DeviceGraph graph_;
  std::unique_ptr<device::Executor> executor_;
};

TEST_F(ExecutorTest, StepsAreThoseOfTheJit) {
  testing::Jitted jitted;
  ASSERT_NO_FATAL_FAILURE(testing::MakeJitted(testing::kSmallGraph, jitted));
  int64_t past = 0;
  for (const int64_t rows : {5, 1, 1, 7, 1, 2}) {
    SCOPED_TRACE(past);
    const auto got = testing::StepSmall(*executor_, past, rows),
               expected = testing::StepSmall(*jitted.executable, past, rows);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_NO_FATAL_FAILURE(testing::ExpectClose(*got, *expected, 1e-5));
    past += rows;
  }
  const auto state = executor_->ReadState("cache");
  ASSERT_TRUE(state.ok()) << state.status();
  const auto expected = jitted.executable->State("cache");
  ASSERT_TRUE(expected.ok());
  ASSERT_EQ(state->size(), expected->size());
  std::vector<float> got(state->size() / 4), want(state->size() / 4);
  std::memcpy(got.data(), state->data(), state->size());
  std::memcpy(want.data(), expected->data(), expected->size());
  testing::ExpectClose(got, want, 1e-5);
}

TEST(DeviceCopies, OutputsThatNothingComputes) {
  DeviceGraph graph;
  ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(R"(graph copies sym S in 1..2311 {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Reshape(%0) {shape = <1, S>} : f32[1, S]
  return %1
})",
                                                 {{}}, graph));
  auto executor = device::Executor::Create(device::emulated::MakeDevice(1), SignatureOf(graph.prepared),
                                           device::VariantsOf(graph.program));
  ASSERT_TRUE(executor.ok()) << executor.status();
  const std::vector<float> x = testing::Wave(2311, 0.3);
  std::vector<float> y(2311);
  const ConstBytes in{x.data(), 2311 * 4};
  const MutableBytes out{y.data(), 2311 * 4};
  const Status status = (*executor)->Run({&in, 1}, {&out, 1}, {{"S", 2311}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(x, y);
}

TEST_F(ExecutorTest, AnyNumberOfThreadsGivesTheSameBits) {
  const auto two = testing::StepSmall(*executor_, 3, 11);
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_NO_FATAL_FAILURE(Open(1));
  const auto one = testing::StepSmall(*executor_, 3, 11);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, *two);
}

TEST_F(ExecutorTest, ParametersBoundAnewDoTheirWorkAgain) {
  const auto before = testing::StepSmall(*executor_, 0, 3);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(executor_->BindParam("gain", testing::Bytes(testing::Wave(37, 0.77))).ok());
  const auto other = testing::StepSmall(*executor_, 0, 3);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(*other, *before);
  ASSERT_TRUE(testing::BindSmall(*executor_).ok());
  EXPECT_EQ(*testing::StepSmall(*executor_, 0, 3), *before);
}

TEST_F(ExecutorTest, StateIsWrittenAndRead) {
  const std::vector<float> values = testing::Wave(43 * 37, 0.5);
  ASSERT_TRUE(executor_->WriteState("cache", testing::Bytes(values)).ok());
  const auto read = executor_->ReadState("cache");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::memcmp(read->data(), values.data(), read->size()), 0);
  EXPECT_EQ(CodeOf(executor_->WriteState("cache", {})), DiagnosticCode::kShapeMismatch);
  EXPECT_EQ(CodeOf(executor_->ReadState("cash").status()), DiagnosticCode::kUnknownName);
}

TEST_F(ExecutorTest, ErrorsAreThoseOfAnExecutable) {
  const auto run = [&](const Binding& symbols, int64_t in_bytes, size_t outputs = 1) {
    std::vector<float> x(37 * 23), y(41 * 23);
    const ConstBytes in{x.data(), in_bytes};
    const MutableBytes out{y.data(), 41 * 4};
    return executor_->Run({&in, 1}, std::span(&out, outputs), symbols);
  };
  EXPECT_TRUE(run({{"P", 0}, {"S", 1}}, 37 * 4).ok());
  EXPECT_EQ(CodeOf(run({{"S", 1}}, 37 * 4)), DiagnosticCode::kMissing);
  EXPECT_EQ(CodeOf(run({{"P", 0}, {"S", 24}}, 37 * 4)), DiagnosticCode::kOutOfRange);
  EXPECT_EQ(CodeOf(run({{"P", 0}, {"S", 1}, {"T", 1}}, 37 * 4)), DiagnosticCode::kUnknownName);
  EXPECT_EQ(CodeOf(run({{"P", 0}, {"S", 1}}, 36 * 4)), DiagnosticCode::kShapeMismatch);
  EXPECT_EQ(CodeOf(run({{"P", 0}, {"S", 1}}, 37 * 4, 0)), DiagnosticCode::kMissing);
  EXPECT_EQ(CodeOf(executor_->BindParam("v", {})), DiagnosticCode::kUnknownName);
  EXPECT_EQ(CodeOf(executor_->BindParam("w", testing::Bytes(testing::Wave(7, 1)))), DiagnosticCode::kShapeMismatch);
  auto unbound = device::Executor::Create(device::emulated::MakeDevice(1), SignatureOf(graph_.prepared),
                                          device::VariantsOf(graph_.program));
  ASSERT_TRUE(unbound.ok());
  EXPECT_EQ(CodeOf((*unbound)->Prepare({{"P", 0}, {"S", 1}})), DiagnosticCode::kMissing);
}

// Sizes that only lie under some values of the symbols are found when those come.
TEST_F(ExecutorTest, SizesThatLieAreErrorsBeforeAnythingIsLaunched) {
  struct Lie {
    const char* what;
    void (*tell)(device::Variant&);
  };
  const Lie lies[] = {
      {"reaches past the arena", [](device::Variant& v) { v.arena_bytes = Extent(64); }},
      {"an offset of a view past its buffer",
       [](device::Variant& v) { v.launches[0].arguments[0].offset = Extent(1 << 20); }},
      {"an offset that is not aligned",
       [](device::Variant& v) {
         for (lir::Buffer& buffer : v.buffers) {
           if (buffer.home == lir::Home::kArena) buffer.offset = buffer.offset + Extent(2);
         }
         v.arena_bytes = v.arena_bytes + Extent(2);
       }},
      {"a negative offset",
       [](device::Variant& v) { v.launches[0].arguments[0].offset = Extent(0) - Extent::Symbol("S"); }},
      {"a buffer larger than the input",
       [](device::Variant& v) {
         for (lir::Buffer& buffer : v.buffers) {
           if (buffer.home == lir::Home::kInput) buffer.bytes = buffer.bytes * Extent(1000);
         }
       }},
      {"sizes of more than 64 bits",
       [](device::Variant& v) { v.arena_bytes = Extent::Symbol("S") * Extent(INT64_MAX / 2); }},
  };
  for (const Lie& lie : lies) {
    SCOPED_TRACE(lie.what);
    auto lying = std::make_shared<device::LoadableProgram>(*graph_.program);
    for (device::Variant& variant : lying->program.variants) lie.tell(variant);
    ASSERT_TRUE(device::Verify(lying->program).ok());
    auto executor = device::Executor::Create(device::emulated::MakeDevice(1), SignatureOf(graph_.prepared),
                                             device::VariantsOf(lying));
    ASSERT_TRUE(executor.ok());
    ASSERT_TRUE(testing::BindSmall(**executor).ok());
    const auto got = testing::StepSmall(**executor, 0, 19);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
    EXPECT_THAT(std::string(got.status().message()), ::testing::HasSubstr("small: ")) << got.status();
  }
}

}  // namespace
}  // namespace quern
