// A profile as a trace in Chrome's event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open: one track
// for each worker with its kernels, one for the steps, tracks for the spans of the caller's own, and for the phases of
// compiling.
#pragma once

#include <string>

#include "profile/profile.h"

namespace quern::profile {

// Complete events, by time on each track, none overlapping another of its track. Times in microseconds, with
// nanoseconds.
std::string TraceText(const Profile& profile);

}  // namespace quern::profile
