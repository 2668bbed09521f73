// Attention of which an operand is a constant of one element: a literal of the code, not a buffer.
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

TEST(AttentionConstants, AnOperandBehindTheValuesMayBeANumber) {
  const std::vector<std::string> graphs = {
      // a bias
      R"(graph g {
        %0 = Input() {name = "q"} : f32[1, 3, 32]
        %1 = Input() {name = "k"} : f16[1, 67, 32]
        %2 = Constant() hex 00000041 : f32[]
        %3 = Attention(%0, %1, %1, %2) {head_dim = 32, heads = 1, kv_heads = 1, mask = "bias"} : f32[1, 3, 32]
        return %3
      })",
      // how many keys live
      R"(graph g {
        %0 = Input() {name = "q"} : f32[1, 3, 32]
        %1 = Input() {name = "k"} : f16[1, 67, 32]
        %2 = Constant() hex 05000000 : i32[1]
        %3 = Attention(%0, %1, %1, %2) {head_dim = 32, heads = 1, kv_heads = 1, sequences = "lengths"} : f32[1, 3, 32]
        return %3
      })",
  };
  for (const std::string& text : graphs) ExpectRight(text, {{}});
}

TEST(AttentionConstants, AQueryIsRefusedByName) {
  const StatusOr<Planned> planned = Plan(R"(graph g {
    %0 = Constant() hex 00000041 : f32[1, 1, 1]
    %1 = Input() {name = "k"} : f32[1, 67, 1]
    %2 = Attention(%0, %1, %1) {head_dim = 1, heads = 1, kv_heads = 1} : f32[1, 1, 1]
    return %2
  })");
  EXPECT_EQ(planned.status().code(), absl::StatusCode::kUnimplemented) << planned.status();
}

}  // namespace
}  // namespace quern
