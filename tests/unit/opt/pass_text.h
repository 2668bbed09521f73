// A pass as text in, text out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "opt/passes.h"

namespace quern::opt {

inline ir::Graph Parsed(std::string_view text) {
  StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : ir::Graph();
}

// The text of the pass's result without origins; the result verifies.
template <typename Pass, typename... Options>
std::string After(Pass pass, std::string_view text, const Options&... options) {
  const StatusOr<ir::Graph> result = pass(Parsed(text), options...);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return "";
  const Status verified = ir::Verify(*result);
  EXPECT_TRUE(verified.ok()) << verified;
  std::string printed = ir::Print(*result), plain;
  for (size_t at = 0; at < printed.size();) {
    size_t end = printed.find('\n', at);
    std::string line = printed.substr(at, end - at);
    if (const size_t origin = line.find("  @\""); origin != std::string::npos) line.resize(origin);
    plain += line + "\n";
    at = end + 1;
  }
  return plain;
}

template <typename Pass, typename... Options>
void ExpectUnchanged(Pass pass, std::string_view text, const Options&... options) {
  EXPECT_EQ(After(pass, text, options...), text);
}

}  // namespace quern::opt
