#include "codegen/text/block_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "codegen/text/code.h"
#include "kir/block_fields.h"

namespace quern::text {
namespace {

using kir::BlockStep;

// The steps as expressions of int; each byte and word gets a name, in `loads`.
std::vector<Code> Steps(const BlockFormat& format, const kir::BlockFields& fields, std::string& loads) {
  std::vector<Code> made;
  int bytes = 0, words = 0;
  for (const BlockStep& step : fields.steps) {
    switch (step.kind) {
      case BlockStep::Kind::kIndex: made.push_back({"i"}); continue;
      case BlockStep::Kind::kConst: made.push_back({absl::StrCat(step.constant)}); continue;
      case BlockStep::Kind::kPower: made.push_back({CallText("read_power", {made[step.args[0]].text})}); continue;
      case BlockStep::Kind::kHalf: made.push_back({CallText("from_bits_f16", {made[step.args[0]].text})}); continue;
      case BlockStep::Kind::kTimes:
        made.push_back(Infix("*", Level::kProduct, made[step.args[0]], {absl::StrCat(step.factor, "f")}));
        continue;
      case BlockStep::Kind::kGrid: {
        const std::string name = absl::StrCat("word", words++);
        absl::StrAppend(&loads, "  const int ", name, " = grid_", format.name, "[", made[step.args[0]].text, "];\n");
        made.push_back({name});
        continue;
      }
      case BlockStep::Kind::kLoad: break;
      case BlockStep::Kind::kApply: {
        const Code &a = made[step.args[0]], &b = made[step.args[1]];
        const kir::OpRow& row = kir::Row(step.op);
        if (step.op == kir::Op::kSelect) {
          made.push_back(Conditional(a, b, made[step.args[2]]));
        } else {
          QUERN_CHECK(row.syntax == kir::OpSyntax::kInfix);
          const bool product = row.precedence == kir::Row(kir::Op::kMul).precedence;
          const bool sum = row.precedence == kir::Row(kir::Op::kAdd).precedence;
          made.push_back(Infix(row.name, product ? Level::kProduct : sum ? Level::kSum : Level::kOther, a, b));
        }
        continue;
      }
    }
    const BlockStep& at = fields.steps[step.args[0]];
    if (IsFloat(step.dtype)) {
      const bool start = at.kind == BlockStep::Kind::kConst && at.constant == 0;
      const std::string place =
          start ? "block" : absl::StrCat("block + ", Wrapped(made[step.args[0]], Level::kProduct));
      made.push_back({CallText(step.dtype == DType::kF16 ? "read_half" : "read_float", {place})});
    } else {
      const std::string name = absl::StrCat("byte", bytes++),
                        place = absl::StrCat("block[", made[step.args[0]].text, "]");
      absl::StrAppend(&loads, "  const int ", name, " = ",
                      step.dtype == DType::kI8 ? absl::StrCat("(", place, " ^ 128) - 128") : place, ";\n");
      made.push_back({name});
    }
  }
  return made;
}

}  // namespace

Language::Words BlockWords(DType dtype) {
  const BlockFormat& format = FormatOf(dtype);
  const kir::BlockFields& fields = kir::FieldsOf(dtype);
  std::string lines;
  const std::vector<Code> steps = Steps(format, fields, lines);
  std::vector<std::string> given, names, members, of_e;
  auto field = [&](const char* type, const char* name, int step) {
    if (step < 0) return;
    absl::StrAppend(&lines, "  const ", type, " ", name, " = ", steps[step].text, ";\n");
    given.push_back(absl::StrCat(type, " ", name));
    names.emplace_back(name);
    members.push_back(absl::StrCat(".", name, " = ", name));
    of_e.push_back(absl::StrCat("e.", name));
  };
  field("int", "code", fields.code);
  field("int", "scale", fields.scale);
  field("int", "minimum", fields.minimum);
  field("float", "d", fields.d);
  field("float", "dmin", fields.dmin);
  field("float", "added", fields.added);
  const std::string level = !format.levels.empty() ? absl::StrCat("levels_", format.name, "[code]")
                            : format.zero == 0     ? "code"
                                                   : absl::StrCat("(code - ", format.zero, ")");
  const bool scales = format.scale != nullptr, minimums = format.dmin != nullptr;
  return {{"$B", absl::StrCat(format.elements)},
          {"$N", absl::StrCat(format.bytes)},
          {"$G", absl::StrCat(format.group)},
          {"$S", absl::StrCat(format.sums)},
          {"$M", minimums ? "1" : "0"},
          {"$X", scales ? "1" : "0"},
          {"$A", format.added != nullptr ? "1" : "0"},
          {"$fields", lines},
          {"$given", absl::StrJoin(given, ", ")},
          {"$names", absl::StrJoin(names, ", ")},
          {"$members", absl::StrJoin(members, ", ")},
          {"$of_e", absl::StrJoin(of_e, ", ")},
          {"$value", absl::StrCat("d * ", scales ? "scale * " : "", level, minimums ? ", least = dmin * minimum" : "")},
          {"$less", minimums                  ? " - least"
                    : format.added != nullptr ? " + added"
                                              : ""},
          {"$levels", absl::StrJoin(format.levels, ", ", [](std::string* out, int8_t l) { absl::StrAppend(out, l); })},
          {"$grid", absl::StrJoin(format.grid, ", ")}};
}

}  // namespace quern::text
