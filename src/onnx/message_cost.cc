#include "onnx/message_cost.h"

#include <iterator>

namespace quern::onnx {
namespace {

constexpr int64_t kMessageBytes = 160, kStringBytes = 48;  // about what each takes, with its place in a list
constexpr int kDeepest = 200;

// Messages by what they hold (format/onnx.proto).
enum Kind : uint8_t { kModel, kGraph, kNode, kAttribute, kTensor, kFunction, kLeaf, kString, kBytes };

struct Field {
  Kind in;
  int number;
  Kind kind;
};
constexpr Field kFields[] = {
    {kModel, 7, kGraph},      {kModel, 8, kLeaf},          {kModel, 25, kFunction},  {kGraph, 1, kNode},
    {kGraph, 5, kTensor},     {kGraph, 11, kLeaf},         {kGraph, 12, kLeaf},      {kGraph, 13, kLeaf},
    {kGraph, 15, kLeaf},      {kNode, 1, kString},         {kNode, 2, kString},      {kNode, 5, kAttribute},
    {kAttribute, 5, kTensor}, {kAttribute, 6, kGraph},     {kAttribute, 9, kString}, {kAttribute, 10, kTensor},
    {kAttribute, 11, kGraph}, {kAttribute, 14, kLeaf},     {kTensor, 6, kString},    {kTensor, 13, kLeaf},
    {kFunction, 4, kString},  {kFunction, 5, kString},     {kFunction, 6, kString},  {kFunction, 7, kNode},
    {kFunction, 9, kLeaf},    {kFunction, 11, kAttribute},
};

Kind KindOf(Kind in, uint64_t number) {
  for (const Field& field : kFields) {
    if (field.in == in && static_cast<uint64_t>(field.number) == number) return field.kind;
  }
  return kBytes;
}

// A number of 7 bits a byte from `at` on; false where there is none.
bool ReadNumber(std::span<const uint8_t> bytes, size_t& at, uint64_t& number) {
  number = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const uint8_t byte = bytes[at++];
    number |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

int64_t CostOf(Kind kind, std::span<const uint8_t> bytes, int depth) {
  int64_t cost = 0;
  for (size_t at = 0; at < bytes.size() && depth < kDeepest;) {
    uint64_t tag = 0, size = 0;
    if (!ReadNumber(bytes, at, tag)) break;
    switch (tag & 7) {
      case 0: {
        if (!ReadNumber(bytes, at, size)) return cost;
        break;
      }
      case 1: at += 8; break;
      case 5: at += 4; break;
      case 2: {
        if (!ReadNumber(bytes, at, size) || size > bytes.size() - at) return cost;
        const Kind inner = KindOf(kind, tag >> 3);
        if (inner == kString) cost += kStringBytes;
        // Types, sizes and entries of a leaf are messages too.
        if (inner == kLeaf) cost += kMessageBytes + static_cast<int64_t>(size) * 16;
        if (inner < kLeaf) cost += kMessageBytes + CostOf(inner, bytes.subspan(at, size), depth + 1);
        at += size;
        break;
      }
      default: return cost;  // groups, which the format does not have
    }
  }
  return cost;
}

}  // namespace

int64_t MessageCost(std::span<const uint8_t> model) { return CostOf(kModel, model, 0); }

}  // namespace quern::onnx
