// What a model's file says of sampling, for verbs that draw tokens.
#pragma once

#include <functional>
#include <string>

#include "quern/quern.h"

// Sets the numbers of quern::SamplingDefaultsOf in `options`, but those that `given` is true of, and says on standard
// error which, and what of the file makes no sense. Error: a file that cannot be read.
quern::Result<void> TakeFileSampling(const std::string& model,
                                     const std::function<bool(const quern::SamplingNumber&)>& given,
                                     quern::SamplingOptions& options);
