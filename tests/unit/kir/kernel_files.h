// The kernels of tests/kir, and kernels from text in a test.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "kir/kir.h"

namespace quern::kir {

// The kernel of tests/kir/<name>.kir; a failure of the test and an empty kernel when it does not parse.
inline Kernel KernelFile(const std::string& name) {
  std::ifstream file(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + name + ".kir");
  std::stringstream text;
  text << file.rdbuf();
  auto kernel = ParseKernel(text.str());
  EXPECT_TRUE(kernel.ok()) << name << ": " << kernel.status().message();
  return kernel.ok() ? *std::move(kernel) : Kernel{};
}

inline Kernel KernelText(const std::string& text) {
  auto kernel = ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message() << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : Kernel{};
}

}  // namespace quern::kir
