#include "device/step_sizes.h"

#include <algorithm>

#include "base/overloaded.h"

namespace quern::device {

Status StepSizes::Add(const lir::Argument& at, int moving, const std::string& label, const Extent& count,
                      const Extent& stride) {
  Part part{at.buffer, {}, {}, {}, moving, label};
  QUERN_ASSIGN(part.offset, Polynomial::Compile(at.offset, names_));
  QUERN_ASSIGN(part.count, Polynomial::Compile(count, names_));
  QUERN_ASSIGN(part.stride, Polynomial::Compile(stride, names_));
  parts_.push_back(std::move(part));
  buffers_.insert(at.buffer);
  if (moving >= 0) buffers_.insert(moving);
  return absl::OkStatus();
}

Status StepSizes::Add(const std::vector<lir::Carry>& carries, const std::string& label) {
  for (const lir::Carry& carry : carries) {
    QUERN_RETURN_IF_ERROR(Add(carry.initial, carry.current, label, 1, 0));
    for (const int place : carry.places) {
      for (const int moving : {carry.current, carry.next}) QUERN_RETURN_IF_ERROR(Add({place, 0}, moving, label, 1, 0));
    }
  }
  return absl::OkStatus();
}

StatusOr<StepSizes> StepSizes::Create(const Variant& variant, std::span<const std::string> names) {
  StepSizes made;
  made.variant_ = &variant;
  made.names_.assign(names.begin(), names.end());
  const Overloaded add = {
      [](const lir::Run&) { return absl::OkStatus(); },
      [&](const lir::If& step) { return made.Add(step.predicate, -1, step.label, 1, 0); },
      [&](const lir::While& step) -> Status {
        QUERN_RETURN_IF_ERROR(made.Add(step.predicate, -1, step.label, 1, 0));
        return made.Add(step.carries, step.label);
      },
      [&](const lir::Scan& step) -> Status {
        for (const lir::Row& row : step.rows)
          QUERN_RETURN_IF_ERROR(made.Add(row.whole, row.buffer, step.label, step.length, row.stride));
        return made.Add(step.carries, step.label);
      },
      [](const lir::Count& step) { return ir::RefuseCounted({{step.symbol, {}}}); },
  };
  for (const lir::Body& body : variant.bodies) {
    for (const lir::Step& step : body.steps) QUERN_RETURN_IF_ERROR(std::visit(add, step));
  }
  return made;
}

Status StepSizes::Check(const std::string& where, std::span<const int64_t> values, std::span<const int64_t> sizes,
                        std::span<const int64_t> offsets) const {
  for (const Part& part : parts_) {
    const std::optional<int64_t> offset = part.offset.EvaluateChecked(values),
                                 count = part.count.EvaluateChecked(values),
                                 stride = part.stride.EvaluateChecked(values);
    // Of a loop without trips nothing is taken.
    const bool any = count && *count > 0;
    const int64_t bytes = !any ? 0 : part.moving < 0 ? 1 : sizes[part.moving], have = sizes[part.buffer];
    bool inside = offset && count && stride && *offset >= 0 && *count >= 0 && *stride >= 0;
    int64_t end = 0;  // of the last piece
    inside = inside && !__builtin_mul_overflow(std::max<int64_t>(*count - 1, 0), *stride, &end) &&
             !__builtin_add_overflow(end, *offset, &end) && !__builtin_add_overflow(end, bytes, &end) && end <= have;
    if (inside && !any) continue;
    if (!inside) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: %s takes more of buffer %d (%s) than its %d bytes", where,
                                                        part.label, part.buffer, variant_->buffers[part.buffer].name,
                                                        have));
    }
    if (part.moving < 0) continue;
    const lir::Buffer& from = variant_->buffers[part.buffer];
    const int64_t align = variant_->buffers[part.moving].align;
    const bool loops = from.home == lir::Home::kLoop;
    if ((*offset + offsets[part.buffer]) % align != 0 || *stride % align != 0 || (loops && from.align % align != 0)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s hands around parts of buffer %d (%s) that are not "
                          "aligned to %d bytes",
                          where, part.label, part.buffer, from.name, align));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::device
