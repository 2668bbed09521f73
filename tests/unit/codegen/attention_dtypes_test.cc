// Kernels of attention of every float dtype each on the KIR interpreter, which checks every access, for CPUs and for
// blocks of threads.
#include "support/attention_text.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

TEST(AttentionDTypes, OnTheInterpreter) {
  testing::ForEachAttention([&](testing::AttentionText text, int turn) {
    // The interpreter takes its time: a part of them, each dtype of each operand with few rows and many.
    if (turn % 7 != 4 || text.mask_dtype == "bool") return;
    text.keys = 75, text.rows = text.rows == 70 ? 35 : text.rows, text.head_dim = 6;
    SCOPED_TRACE(text.Name());
    CheckFused(text.ToString(), {}, text.dtypes[0] == "f32" ? 1e-4 : 1e-2, kCpu | kBlocks, text.Integers());
  });
}

}  // namespace
}  // namespace quern::codegen
