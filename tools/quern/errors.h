// How every verb ends: what went wrong in one line on standard error, and the exit code.
#pragma once

#include <string>

#include "quern/result.h"

// One line, whatever a file's names put into the sentence. 1.
int Fail(const std::string& error);
// Likewise; a finding of a check has its details below. 1, or 130 of what an interrupt ended.
int Fail(const quern::Error& error);
// What was printed has to have arrived: a full disk is an error too. 0 or 1.
int Finish();
