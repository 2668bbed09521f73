#include "kir/decode.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "kir/block_fields.h"
#include "kir/layout.h"

// The values are defined without fused multiply-adds; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern::kir {
namespace {

template <typename T>
T LoadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void StoreAs(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// A step's value: integers and floats have a member each.
struct StepValue {
  int64_t integer = 0;
  float real = 0;
};
constexpr size_t kMostSteps = 128;

StepValue LoadField(DType dtype, const uint8_t* at) {
  if (dtype == DType::kU8) return {.integer = *at};
  if (dtype == DType::kI8) return {.integer = static_cast<int8_t>(*at)};
  if (dtype == DType::kF16) return {.real = HalfToFloat(LoadAs<uint16_t>(at))};
  QUERN_CHECK(dtype == DType::kF32);
  return {.real = LoadAs<float>(at)};
}

// Steps first to last - 1 of element i.
void RunSteps(const BlockFormat& format, const BlockFields& fields, int first, int last, const uint8_t* block,
              int64_t i, StepValue* values) {
  auto integer = [&](int step) {
    const BlockStep& arg = fields.steps[step];
    return arg.values.empty() ? values[step].integer : arg.values[i];
  };
  for (int s = first; s < last; ++s) {
    const BlockStep& step = fields.steps[s];
    if (!step.values.empty()) continue;
    if (step.kind == BlockStep::Kind::kLoad) {
      values[s] = LoadField(step.dtype, block + integer(step.args[0]));
    } else if (step.kind == BlockStep::Kind::kPower) {
      values[s].real = PowerOfByte(integer(step.args[0]));
    } else if (step.kind == BlockStep::Kind::kHalf) {
      values[s].real = HalfToFloat(static_cast<uint16_t>(integer(step.args[0])));
    } else if (step.kind == BlockStep::Kind::kTimes) {
      values[s].real = values[step.args[0]].real * step.factor;
    } else if (step.kind == BlockStep::Kind::kGrid) {
      values[s].integer = format.grid[integer(step.args[0])];
    } else {
      const int64_t third = step.args[2] < 0 ? 0 : integer(step.args[2]);
      const int64_t second = step.args[1] < 0 ? 0 : integer(step.args[1]);
      values[s].integer = EvalInteger(step.op, DType::kI64, integer(step.args[0]), second, third);
    }
  }
}

// The element that the steps have made.
BlockElement ElementOf(const BlockFields& fields, const StepValue* values, int64_t i) {
  auto integer = [&](int step, int32_t otherwise) {
    if (step < 0) return otherwise;
    const BlockStep& made = fields.steps[step];
    return made.values.empty() ? static_cast<int32_t>(values[step].integer) : made.values[i];
  };
  return {.code = integer(fields.code, 0),
          .scale = integer(fields.scale, 1),
          .minimum = integer(fields.minimum, 0),
          .d = values[fields.d].real,
          .dmin = fields.dmin < 0 ? 0 : values[fields.dmin].real,
          .added = fields.added < 0 ? 0 : values[fields.added].real};
}

// Byte of the minimums of a panel where that of element (row, j) is: those of two groups side by side.
int64_t Panel16Minimum(DType dtype, int64_t row, int64_t j) {
  const int64_t group = j / PanelGroup(dtype);
  return (group / 2 * 32 + row * 2 + group % 2) * 2;
}

int StepCount(const BlockFields& fields) {
  QUERN_CHECK(fields.steps.size() <= kMostSteps);
  return static_cast<int>(fields.steps.size());
}

}  // namespace

BlockElement ReadBlockElement(DType dtype, const uint8_t* row, int64_t j) {
  const BlockFormat& format = FormatOf(dtype);
  const BlockFields& fields = FieldsOf(dtype);
  StepValue values[kMostSteps];
  RunSteps(format, fields, 0, StepCount(fields), row + j / format.elements * format.bytes, j % format.elements, values);
  return ElementOf(fields, values, j % format.elements);
}

float BlockValue(DType dtype, const BlockElement& element) {
  const BlockFormat& format = FormatOf(dtype);
  const int level = format.levels.empty() ? element.code - format.zero : format.levels[element.code];
  const float scale = element.d * static_cast<float>(element.scale);
  const float minimum = element.dmin * static_cast<float>(element.minimum);
  const float product = scale * static_cast<float>(level);
  if (format.added != nullptr) return product + element.added;
  return format.dmin == nullptr ? product : product - minimum;
}

float DecodeElement(DType dtype, const uint8_t* row, int64_t j) {
  return BlockValue(dtype, ReadBlockElement(dtype, row, j));
}

void DecodeRow(DType dtype, const uint8_t* row, int64_t k, float* values) {
  const BlockFormat& format = FormatOf(dtype);
  const BlockFields& fields = FieldsOf(dtype);
  StepValue steps[kMostSteps];
  for (int64_t j = 0; j < k; ++j) {
    const int64_t i = j % format.elements;
    const int first = i % format.group == 0 ? 0 : fields.first_of_code;
    RunSteps(format, fields, first, StepCount(fields), row + j / format.elements * format.bytes, i, steps);
    values[j] = BlockValue(dtype, ElementOf(fields, steps, i));
  }
}

float DecodePlanar(DType dtype, const uint8_t* row, int64_t k, int64_t j) {
  const int32_t quant = static_cast<int8_t>(row[j]);
  const float d = LoadAs<float>(row + PlanarRowOf(dtype, k).scales + j / Row(dtype).block_elements * 4);
  return BlockValue(dtype, {.code = quant + FormatOf(dtype).zero, .d = d});
}

float DecodePanel16(DType dtype, const uint8_t* panel, int64_t k, int64_t row, int64_t j) {
  const Panel16 at = Panel16Of(dtype, k);
  const int64_t block = (j / FormatOf(dtype).elements * 16 + row) * 4;
  // The panel keeps d * scale as one f32: a scale of 1 then gives the same product, bit for bit.
  BlockElement element{.code = panel[Panel16CodeOffset(row, j)],
                       .d = LoadAs<float>(panel + at.scales + (j / PanelGroup(dtype) * 16 + row) * 4)};
  if (HasMinimums(dtype)) {
    element.minimum = LoadAs<int16_t>(panel + at.mins + Panel16Minimum(dtype, row, j));
    element.dmin = LoadAs<float>(panel + at.supers + block);
  }
  if (HasAdded(dtype)) element.added = LoadAs<float>(panel + at.supers + block);
  return BlockValue(dtype, element);
}

void WritePanel16(DType dtype, uint8_t* panel, int64_t k, int64_t row, int64_t j, const BlockElement& element) {
  const Panel16 at = Panel16Of(dtype, k);
  const int64_t block = (j / FormatOf(dtype).elements * 16 + row) * 4;
  const float scale = element.d * static_cast<float>(element.scale);
  panel[Panel16CodeOffset(row, j)] = static_cast<uint8_t>(element.code);
  StoreAs(panel + at.scales + (j / PanelGroup(dtype) * 16 + row) * 4, scale);
  if (HasMinimums(dtype)) {
    StoreAs(panel + at.mins + Panel16Minimum(dtype, row, j), static_cast<int16_t>(element.minimum));
    StoreAs(panel + at.supers + block, element.dmin);
  }
  if (HasAdded(dtype)) StoreAs(panel + at.supers + block, element.added);
}

}  // namespace quern::kir
