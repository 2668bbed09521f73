// For functions that call machine code which was generated at run time.
#pragma once

// -fsanitize=function reads what clang writes before the entry of every function that it compiles, to compare types.
// Nothing is written before a generated kernel, and where that begins a page, nothing can be read there either.
#ifdef __clang__
#define QUERN_CALLS_GENERATED_CODE __attribute__((no_sanitize("function")))
#else
#define QUERN_CALLS_GENERATED_CODE
#endif
