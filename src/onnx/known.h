// What is known of a value of a graph before it runs: the elements of small tensors of integers as extents of symbols,
// and of any tensor that depends on data of the model alone as numbers.
#pragma once

#include <optional>

#include "onnx/scope.h"

namespace quern::onnx {

// The elements, row-major, of a tensor of integers or bools; nothing where there are no such, or more than a few.
std::optional<std::vector<Extent>> KnownExtents(Session& session, Builder& builder, ir::Value value);
// The tensor; nothing where it depends on what is given at run time.
std::optional<ir::RefTensor> KnownTensor(Session& session, Builder& builder, ir::Value value);
// What a value depends on of which nothing is known: inputs by name, and symbols.
void Dependences(const Session& session, Builder& builder, ir::Value value, std::set<std::string>* inputs,
                 std::set<std::string>* symbols);

}  // namespace quern::onnx
