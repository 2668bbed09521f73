// Ctrl-C: the run under way is asked to stop, between two kernels; the second one ends the process at once.
#pragma once

#include "quern/quern.h"

// From here on an interrupt cancels this token, which is the same for every call, and is not cancelled after one.
const quern::CancelToken* CancelOnInterrupt();
// From here on it ends the process, as it does where nothing was said.
void InterruptsEndTheProcess();

// What a process returns that an interrupt ended, as shells count.
inline constexpr int kInterrupted = 130;
