// Every op in every dtype: its examples with that dtype are refused when the node is added, with an error that names
// the op, or they compile, run and are what the interpreter makes of them. Nothing is left to fail when it first runs.

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "ir/examples.h"
#include "unit/compiler/expect_right.h"

namespace quern::testing {
namespace {

class DTypes : public ::testing::TestWithParam<int> {};

TEST_P(DTypes, AreComputedOrRefused) {
  const DType dtype = ir::ScalarDTypes()[GetParam()];
  int computed = 0, refused = 0;
  for (const ir::OpDef* op : ir::Ops()) {
    const Binding binding = {{"S", 5}};
    for (const ir::ExampleGraph& example : ir::ExamplesIn(*op, dtype)) {
      if (!example.status.ok()) {
        const std::optional<Diagnostic> why = DiagnosticOf(example.status);
        ASSERT_TRUE(why.has_value()) << op->name << ": " << example.status;
        EXPECT_EQ(why->op, op->name) << example.status;
        ++refused;
        continue;
      }
      ++computed;
      ExpectRight(ir::Print(example.graph), {binding});
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(computed, 20);
  std::printf("%d computed, %d refused\n", computed, refused);
}

INSTANTIATE_TEST_SUITE_P(Each, DTypes, ::testing::Range(0, static_cast<int>(ir::ScalarDTypes().size())),
                         [](const auto& each) { return std::string(Name(ir::ScalarDTypes()[each.param])); });

}  // namespace
}  // namespace quern::testing
