#include "base/threads.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace quern {

void RunOnThreads(int threads, const std::function<void(int thread)>& work) {
  constexpr size_t kStack = size_t{8} << 20;
  struct Start {
    const std::function<void(int)>* work;
    int index;
    pthread_t thread;
  };
  std::vector<Start> started;
  started.reserve(std::max(threads, 1));  // threads have pointers into it
  pthread_attr_t attributes;
  QUERN_CHECK(pthread_attr_init(&attributes) == 0);
  QUERN_CHECK(pthread_attr_setstacksize(&attributes, kStack) == 0);
  const auto main = [](void* argument) -> void* {
    const Start& start = *static_cast<const Start*>(argument);
    (*start.work)(start.index);
    return nullptr;
  };
  for (int index = 0; index < std::max(threads, 1); ++index) {
    Start& start = started.emplace_back(Start{&work, index, {}});
    // std::thread would throw.
    if (pthread_create(&start.thread, &attributes, main, &start) == 0) continue;
    started.pop_back();
    break;
  }
  pthread_attr_destroy(&attributes);
  if (started.empty()) work(0);
  for (const Start& start : started) pthread_join(start.thread, nullptr);
}

}  // namespace quern
