// One function object of several lambdas: what std::visit takes, so that an alternative nobody thought of does not
// compile.
//
//   std::visit(Overloaded{[](const Run& run) { ... }, [](const If& branch) { ... }}, step);
#pragma once

namespace quern {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace quern
