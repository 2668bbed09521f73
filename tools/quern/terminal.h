// How wide the terminal is.
#pragma once

#include <cstddef>

// Characters of a line of standard output: COLUMNS where it is set, or as the terminal says; 0: anything, of a file or
// a pipe.
size_t OutputColumns();
