// Threads for the length of one piece of work that is not kernels: compiling, writing files. Kernels have a pool.
//
//   std::atomic<size_t> next = 0;
//   RunOnThreads(threads, [&](int thread) {
//     for (size_t i = next++; i < items.size(); i = next++) Do(items[i], thread);
//   });
#pragma once

#include <functional>

namespace quern {

// Calls work(0), work(1), ..., at most `threads` of them (at least 1), at the same time, each on a thread of its own
// with a stack of 8 MB, and returns when all have: compilers recurse deeply on long blocks, and the caller's stack may
// be small. Fewer where the system has no more threads, so that work has to be taken, not dealt; with none to be had
// work(0) is called here.
void RunOnThreads(int threads, const std::function<void(int thread)>& work);

}  // namespace quern
