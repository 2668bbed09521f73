// The text of PTX as LLVM writes it: directives, labels, guards, opcodes and operands of entries.
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "support/ptx_machine.h"

namespace quern::ptx {

class Parser {
 public:
  static StatusOr<PtxModule> Run(absl::string_view text) {
    PtxModule module;
    std::string bare;  // without comments
    for (absl::string_view line : absl::StrSplit(text, '\n'))
      absl::StrAppend(&bare, line.substr(0, line.find("//")), "\n");
    const std::string kEntry = ".visible .entry ";
    QUERN_ASSIGN(const ConstantTables constants, Constants(bare));
    for (size_t at = bare.find(kEntry); at != std::string::npos;) {
      const size_t next = bare.find(kEntry, at + 1);
      Parser parser;
      QUERN_RETURN_IF_ERROR(
          parser.Entry(absl::string_view(bare).substr(at + kEntry.size(),
                                                      next == std::string::npos ? next : next - at - kEntry.size()),
                       constants));
      const std::string symbol = parser.entry_.symbol_;
      if (!module.entries_.emplace(symbol, std::move(parser.entry_)).second)
        return absl::InvalidArgumentError("two entries " + symbol);
      at = next;
    }
    return module;
  }

 private:
  using Code = PtxEntry::Code;
  using ConstantTables = std::map<std::string, std::shared_ptr<const std::vector<uint8_t>>>;

  // ".global .align 64 .b8 NAME[BYTES] = {1, 2, ..}", each ended by a semicolon, before the entry that reads it first.
  static StatusOr<ConstantTables> Constants(absl::string_view text) {
    ConstantTables constants;
    for (absl::string_view statement : absl::StrSplit(text, ';')) {
      const size_t global = statement.find(".global .align "), brace = statement.find('{', global);
      if (global == absl::string_view::npos || brace == absl::string_view::npos) continue;
      const absl::string_view head = statement.substr(global, statement.find('[', global) - global);
      std::vector<uint8_t> bytes;
      for (absl::string_view number : absl::StrSplit(statement.substr(brace + 1), ','))
        bytes.push_back(static_cast<uint8_t>(std::atoi(std::string(number).c_str())));
      const std::string name(head.substr(head.rfind(' ') + 1));
      if (!constants.emplace(name, std::make_shared<const std::vector<uint8_t>>(std::move(bytes))).second)
        return absl::InvalidArgumentError("two definitions of " + name);
    }
    return constants;
  }

  Status Fail(absl::string_view what) { return absl::UnimplementedError(absl::StrCat(entry_.symbol_, ": ", what)); }

  Status Entry(absl::string_view text, const ConstantTables& constants) {
    entry_.symbol_ = std::string(text.substr(0, text.find('(')));
    const size_t body = text.find("\n{");
    const absl::string_view head = text.substr(0, body);
    for (absl::string_view part : absl::StrSplit(head, ".param .u64 ")) {
      if (const absl::string_view name = Word(part); absl::StrContains(name, "_param_"))
        params_[std::string(name)] = static_cast<int>(params_.size());
    }
    entry_.params_ = params_.size();
    const size_t threads = head.find(".maxntid ");
    if (body == absl::string_view::npos || threads == absl::string_view::npos)
      return Fail("no body, or no number of threads");
    entry_.threads_ = std::atoi(std::string(head.substr(threads + 9)).c_str());
    tid_ = Register("%tid.x"), ctaid_ = Register("%ctaid.x");
    for (const auto& [name, bytes] : constants) {
      entry_.registers_[Register(name)] = reinterpret_cast<uint64_t>(bytes->data());
      entry_.constants_.push_back(bytes);
    }
    for (absl::string_view statement : absl::StrSplit(text.substr(body + 2), ';'))
      QUERN_RETURN_IF_ERROR(Statement(statement));
    for (PtxEntry::Instruction& instruction : entry_.code_) {
      if (instruction.code != Code::kBranch) continue;
      const auto label = labels_.find(instruction.text);
      if (label == labels_.end()) return Fail("no label " + instruction.text);
      instruction.target = label->second;
    }
    return absl::OkStatus();
  }

  static bool IsWord(char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
  }
  static absl::string_view Word(absl::string_view text) {
    size_t end = 0;
    while (end < text.size() && IsWord(text[end])) ++end;
    return text.substr(0, end);
  }

  Status Statement(absl::string_view text) {
    text = absl::StripAsciiWhitespace(text);
    while (absl::ConsumePrefix(&text, "{") || absl::ConsumePrefix(&text, "}")) text = absl::StripAsciiWhitespace(text);
    while (absl::StartsWith(text, "$")) {
      const absl::string_view label = Word(text);
      labels_[std::string(label)] = static_cast<int>(entry_.code_.size());
      text = absl::StripAsciiWhitespace(text.substr(label.size() + 1));
    }
    if (absl::StartsWith(text, ".shared")) return Shared(text);
    if (text.empty() || text[0] == '.') return absl::OkStatus();
    PtxEntry::Instruction made;
    if (absl::ConsumePrefix(&text, "@")) {
      made.negated = absl::ConsumePrefix(&text, "!");
      const absl::string_view guard = Word(text);
      QUERN_ASSIGN(made.guard, Value(guard));
      text = absl::StripAsciiWhitespace(text.substr(guard.size()));
    }
    const absl::string_view opcode = text.substr(0, text.find_first_of(" \t\n"));
    return Made(std::move(made), std::string(opcode), Groups(text.substr(opcode.size())));
  }

  // ".shared .align 128 .b8 NAME[BYTES]", or ".u32 NAME"
  Status Shared(absl::string_view text) {
    const size_t bracket = text.find('[');
    const absl::string_view before = text.substr(0, bracket);
    const std::string name(before.substr(before.rfind(' ') + 1));
    const absl::string_view type = before.substr(0, before.rfind(' '));
    const int64_t bytes = std::atoi(std::string(type.substr(type.rfind('.') + 2)).c_str()) / 8;
    entry_.shared_bytes_ = (entry_.shared_bytes_ + 127) / 128 * 128;
    entry_.registers_[Register(name)] = static_cast<uint64_t>(entry_.shared_bytes_);
    entry_.shared_bytes_ +=
        bytes * (bracket == absl::string_view::npos ? 1 : std::atoll(std::string(text.substr(bracket + 1)).c_str()));
    return absl::OkStatus();
  }

  // Operands, those in braces or brackets in one: {"%r1"}, {"%f1", "%f2"}, {"[", "%rd1", "+16"}.
  static std::vector<std::vector<std::string>> Groups(absl::string_view text) {
    std::vector<std::vector<std::string>> groups;
    bool inside = false;
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '{' || c == '[') {
        groups.emplace_back();
        if (c == '[') groups.back().push_back("[");
        inside = true;
      }
      if (c == '}' || c == ']') inside = false;
      if (!IsWord(c) && c != '-' && c != '+') {
        ++at;
        continue;
      }
      std::string word(text.substr(at, 1));
      while (++at < text.size() && IsWord(text[at])) word += text[at];
      // "+-16" is one.
      while (word.size() == 1 && at < text.size() && (IsWord(text[at]) || text[at] == '-')) word += text[at++];
      while (at < text.size() && IsWord(text[at])) word += text[at++];
      if (!inside) groups.emplace_back();
      groups.back().push_back(std::move(word));
    }
    return groups;
  }

  int Register(const std::string& name) {
    const auto [found, added] = registers_.emplace(name, static_cast<int>(entry_.registers_.size()));
    if (added) entry_.registers_.push_back(0xdeadbeefdeadbeef);
    return found->second;
  }

  // The register of an operand; that of a constant holds it.
  StatusOr<int> Value(absl::string_view text) {
    const std::string name(text);
    if (text[0] == '%' || registers_.contains(name)) return Register(name);
    uint64_t value = 0;
    if (absl::StartsWith(text, "0f") || absl::StartsWith(text, "0d")) {
      value = std::strtoull(name.c_str() + 2, nullptr, 16);
    } else {
      char* end = nullptr;
      value = static_cast<uint64_t>(text[0] == '-' ? std::strtoll(name.c_str(), &end, 0)
                                                   : static_cast<long long>(std::strtoull(name.c_str(), &end, 0)));
      if (*end != 0) {
        if (absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_') return Register(name);  // "tmp"
        return absl::UnimplementedError(absl::StrCat(entry_.symbol_, ": the operand ", name));
      }
    }
    const int made = Register("=" + name);
    entry_.registers_[made] = value;
    return made;
  }
  Status Values(const std::vector<std::string>& group, std::vector<int>& into) {
    for (const std::string& each : group) {
      QUERN_ASSIGN(const int value, Value(each));
      into.push_back(value);
    }
    return absl::OkStatus();
  }
  // "[%rd1+16]": the register, and the offset.
  Status Address(const std::vector<std::string>& group, PtxEntry::Instruction& made) {
    if (group.size() < 2 || group[0] != "[") return Fail("an address in " + made.text);
    QUERN_ASSIGN(const int base, Value(group[1]));
    made.from.push_back(base);
    if (group.size() > 2) made.offset = std::atoll(group[2].c_str() + (group[2][0] == '+' ? 1 : 0));
    return absl::OkStatus();
  }

  Status Made(PtxEntry::Instruction made, const std::string& opcode,
              const std::vector<std::vector<std::string>>& groups) {
    const std::vector<std::string> parts = absl::StrSplit(opcode, '.');
    const std::string& name = parts[0];
    made.text = opcode;
    absl::string_view bare = parts.size() > 4 ? absl::string_view(parts[4]) : absl::string_view();
    int bits = 0;
    if (!absl::SimpleAtoi(absl::string_view(parts.back()).substr(1), &bits)) bits = 0;
    made.shared = absl::StrContains(opcode, ".shared");
    if (name == "bra") {
      made.code = Code::kBranch;
      made.text = groups[0][0];
    } else if (name == "ret") {
      made.code = Code::kReturn;
    } else if (name == "bar") {
      made.code = Code::kBarrier;
    } else if (name == "ld" && parts[1] == "param") {
      made.code = Code::kParam;
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      const auto param = params_.find(groups[1][1]);
      if (param == params_.end()) return Fail("no parameter " + groups[1][1]);
      made.target = param->second;
    } else if (name == "ld" || name == "st") {
      made.code = name == "ld" ? Code::kLoad : Code::kStore;
      made.size = bits / 8;
      made.sign = parts.back()[0] == 's';
      QUERN_RETURN_IF_ERROR(Address(groups[name == "ld" ? 1 : 0], made));
      QUERN_RETURN_IF_ERROR(Values(groups[name == "ld" ? 0 : 1], name == "ld" ? made.to : made.from));
    } else if (name == "cp") {
      made.code = parts[2] == "commit_group" ? Code::kCommit : parts[2] == "wait_group" ? Code::kWait : Code::kCopy;
      if (made.code == Code::kWait) made.size = std::atoi(groups[0][0].c_str());
      if (made.code == Code::kCopy) {
        PtxEntry::Instruction source;
        QUERN_RETURN_IF_ERROR(Address(groups[0], made));
        QUERN_RETURN_IF_ERROR(Address(groups[1], source));
        made.from.push_back(source.from[0]);
        made.target = static_cast<int>(source.offset);
        made.size = std::atoi(groups[2][0].c_str());
        if (groups.size() > 3) QUERN_RETURN_IF_ERROR(Values(groups[3], made.from));
      }
    } else if (name == "shfl") {
      made.code = Code::kShuffle;
      made.kind = parts[2] == "bfly" ? 0 : parts[2] == "down" ? 1 : 2;
      for (size_t i = 0; i < 3; ++i) QUERN_RETURN_IF_ERROR(Values(groups[i], i == 0 ? made.to : made.from));
    } else if (name == "ldmatrix") {
      made.code = Code::kMatrix;
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      QUERN_RETURN_IF_ERROR(Address(groups[1], made));
    } else if (name == "wgmma" && parts[1] == "mma_async") {
      // .sync.aligned.m64n64k16.f32.f16.f16 {sums}, left, right, more, 1, 1, 0, 0
      made.code = Code::kGroupMultiply;
      made.bf16 = absl::StrContains(opcode, "bf16");
      if (!absl::ConsumePrefix(&bare, "m64n") || groups.size() != 8) return Fail("the instruction " + opcode);
      made.size = std::atoi(std::string(bare).c_str());
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      for (size_t i = 1; i < 8; ++i) QUERN_RETURN_IF_ERROR(Values(groups[i], made.from));
      entry_.groups_ = true;
    } else if (name == "wgmma") {
      made.code = Code::kGroupSync;
    } else if (name == "fence") {
      made.code = Code::kFence;
    } else if (name == "mma") {
      made.code = Code::kMultiply;
      made.bf16 = absl::StrContains(opcode, "bf16");
      for (size_t i = 0; i < 4; ++i) QUERN_RETURN_IF_ERROR(Values(groups[i], i == 0 ? made.to : made.from));
    } else if (name == "mov" && groups[0].size() > 1) {
      made.code = Code::kSplit;
      made.size = bits / static_cast<int>(groups[0].size());
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      QUERN_RETURN_IF_ERROR(Values(groups[1], made.from));
    } else if (name == "mov" && groups[1].size() > 1) {
      made.code = Code::kJoin;
      made.size = bits / static_cast<int>(groups[1].size());
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      QUERN_RETURN_IF_ERROR(Values(groups[1], made.from));
    } else {
      made.alu = FindAlu(opcode);
      if (made.alu == nullptr) return Fail("the instruction " + opcode);
      QUERN_RETURN_IF_ERROR(Values(groups[0], made.to));
      for (size_t i = 1; i < groups.size(); ++i) QUERN_RETURN_IF_ERROR(Values(groups[i], made.from));
      if (made.from.size() > 3 || made.to.size() != 1) return Fail("the operands of " + opcode);
      made.from.resize(3, made.from[0]);
    }
    entry_.code_.push_back(std::move(made));
    return absl::OkStatus();
  }

  PtxEntry entry_;
  std::map<std::string, int> params_, labels_, registers_;
  int tid_ = 0, ctaid_ = 0;
};

StatusOr<PtxModule> PtxModule::Parse(std::string_view text) {
  return Parser::Run(absl::string_view(text.data(), text.size()));
}

const PtxEntry* PtxModule::Find(const std::string& symbol) const {
  const auto found = entries_.find(symbol);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace quern::ptx
