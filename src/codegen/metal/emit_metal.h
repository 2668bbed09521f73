// Kernels that are scheduled for blocks of threads as one text of the Metal Shading Language, 3.1.
//
//   kernel scale (x : f32[S] in, y : f32[S] out) sym S in 1..100000 {
//     grid c in 0..S by 1024 { thread t in 0..256 @ block {
//       for i in c + t..min(c + 1024, S) by 256 { y[i] = x[i] * 0.5 }
//     } }
//   }
// becomes, after the helper functions that it uses,
//   [[kernel, max_total_threads_per_threadgroup(256)]] void scale(
//       device const float* x [[buffer(0)]],
//       device float* y [[buffer(1)]],
//       constant long* symbols [[buffer(2)]],
//       uint chunk_index [[threadgroup_position_in_grid]],
//       uint thread_index [[thread_position_in_threadgroup]]) {
//     const int thread_id = int(thread_index);
//     const int S = int(symbols[0]);
//     const int c = int(chunk_index) * 1024;
//     for (int i = c + thread_id, i_end = min_i32(c + 1024, S); i < i_end; i += 256) {
//       y[i] = x[i] * 0.5f;
//     }
//   }
// A kernel with symbols takes their values, derived ones included, in one buffer behind the others. The host compiles
// the text without fast math. docs/targets.md says how it is checked.
#pragma once

#include <span>

#include "codegen/device_module.h"

namespace quern::metal {

std::span<const codegen::DeviceTarget> Targets();

}  // namespace quern::metal
