// DefaultThreads: what the operating system really lets this process use.
#include "quern/rt.h"
#include "runtime/thread_pool.h"

namespace quern {

int DefaultThreads() { return static_cast<int>(quern_thread_count()); }

}  // namespace quern
