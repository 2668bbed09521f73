// A clock for short times: the processor's own counter (x86-64's invariant TSC, aarch64's cntvct), else the system's
// steady clock. Reading it takes some ten nanoseconds and no system call.
//
//   const quern::Tick begin = quern::Tick::Now();
//   Work();
//   std::printf("%.0f ns\n", quern::Tick::Nanoseconds(begin, quern::Tick::Now()));
#pragma once

#include <cstdint>

namespace quern {

struct Tick {
  uint64_t count = 0;

  // From any thread; readings of different cores agree.
  static Tick Now();
  // The time from one reading to another, negative where the second came first. The rate of the counter is measured at
  // the first call, which takes 10 ms, and holds to less than 0.1 %.
  static double Nanoseconds(Tick from, Tick to);
};

}  // namespace quern
