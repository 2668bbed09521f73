// What parsing a model would take of memory, before it is parsed: two bytes of a file may be a message, and a message
// in memory is a hundred bytes and more.
#pragma once

#include <cstdint>
#include <span>

namespace quern::onnx {

// An estimate of the bytes that the messages and names of a model take beside the data of its tensors. What is no
// message is counted as far as it goes: parsing says what is wrong with it.
int64_t MessageCost(std::span<const uint8_t> model);

}  // namespace quern::onnx
