// What a scheduler counts, in the text form that Prometheus reads.
#pragma once

#include <string>

#include "serve/scheduler.h"

namespace quern::serve {

std::string MetricsText(const Scheduler::Metrics& metrics);

}  // namespace quern::serve
