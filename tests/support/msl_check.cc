#include "support/msl_check.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "support/shared_object.h"

namespace quern {
namespace {

struct Token {
  std::string text;
  int line;
};

constexpr int kMaxBuffers = 31;
constexpr int64_t kMaxShared = 32 << 10, kMaxThreads = 1024;

const std::map<std::string, int64_t, std::less<>>& TypeBytes() {
  static const auto& bytes = *new std::map<std::string, int64_t, std::less<>>{
      {"bool", 1},   {"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},
      {"bfloat", 2}, {"int", 4},  {"uint", 4},  {"float", 4}, {"long", 8},   {"ulong", 8}};
  return bytes;
}
bool IsSpace(std::string_view word) {
  return word == "device" || word == "constant" || word == "thread" || word == "threadgroup";
}
bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Words, numbers, "[[", "]]" and single characters; comments and lines of the preprocessor left out.
std::vector<Token> Tokens(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  bool fresh = true;  // nothing but blanks on this line so far
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') {
      ++line, ++at, fresh = true;
    } else if (absl::ascii_isspace(c)) {
      ++at;
    } else if ((c == '#' && fresh) || text.substr(at, 2) == "//") {
      while (at < text.size() && text[at] != '\n') ++at;
    } else {
      fresh = false;
      size_t end = at + 1;
      if (absl::ascii_isdigit(c)) {
        while (end < text.size() && (IsWord(text[end]) || text[end] == '.' ||
                                     ((text[end] == '-' || text[end] == '+') && text[end - 1] == 'e')))
          ++end;
      } else if (IsWord(c)) {
        while (end < text.size() && IsWord(text[end])) ++end;
      } else if (text.substr(at, 2) == "[[" || text.substr(at, 2) == "]]") {
        // "]]" of two subscripts closes no attribute.
        if (c == '[') end = at + 2;
      }
      tokens.push_back({std::string(text.substr(at, end - at)), line});
      at = end;
    }
  }
  return tokens;
}

class Checker {
 public:
  explicit Checker(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Status Run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      QUERN_RETURN_IF_ERROR(CheckToken());
    }
    if (depth_ != 0) return Fail("braces do not close");
    return absl::OkStatus();
  }

 private:
  const std::string& Text(size_t i) const {
    static const auto& none = *new std::string;
    return i < tokens_.size() ? tokens_[i].text : none;
  }
  Status Fail(const std::string& what) const {
    const int line = tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line;
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
  }

  Status CheckToken() {
    const std::string& word = Text(at_);
    if (word == "{") ++depth_;
    if (word == "}" && --depth_ < 0) return Fail("braces do not close");
    if (word == "double") return Fail("there are no 64-bit floats");
    if (absl::ascii_isdigit(word[0])) return CheckNumber(word);
    if (word == "[[") return CheckAttribute();
    if (word == "*") return CheckPointer();
    if (word == "threadgroup") return CheckShared();
    return absl::OkStatus();
  }

  // 1.5, 1e-5 and 0x1p3 are doubles without an f or h behind.
  Status CheckNumber(const std::string& number) const {
    const bool hex = number.size() > 1 && (number[1] == 'x' || number[1] == 'X');
    const bool real =
        number.find('.') != std::string::npos || number.find_first_of(hex ? "pP" : "eE") != std::string::npos;
    if (!real || number.back() == 'f' || (number.back() == 'h' && !hex)) return absl::OkStatus();
    return Fail(absl::StrCat(number, " is a 64-bit float"));
  }

  Status CheckAttribute() {
    const std::string& name = Text(at_ + 1);
    if (name == "kernel") {
      buffers_.clear();
      shared_ = 0;
      for (size_t i = at_; i < tokens_.size() && Text(i) != "]"; ++i) {
        if (Text(i) != "max_total_threads_per_threadgroup") continue;
        const int64_t threads = std::strtoll(Text(i + 2).c_str(), nullptr, 10);
        if (threads < 1 || threads > kMaxThreads) return Fail(absl::StrCat("threadgroups of ", threads, " threads"));
      }
    }
    if (name != "buffer") return absl::OkStatus();
    const int64_t number = std::strtoll(Text(at_ + 3).c_str(), nullptr, 10);
    if (number < 0 || number >= kMaxBuffers) return Fail(absl::StrCat("buffer ", number, ", of ", kMaxBuffers));
    if (!buffers_.insert(number).second) return Fail(absl::StrCat("two buffers ", number));
    return absl::OkStatus();
  }

  // A `*` behind a type declares a pointer; elsewhere it multiplies or reads one.
  Status CheckPointer() const {
    if (at_ == 0) return absl::OkStatus();
    size_t i = at_ - 1;
    while (i > 0 && (Text(i) == "const" || Text(i) == "*")) --i;
    if (!TypeBytes().contains(Text(i)) && Text(i) != "void") return absl::OkStatus();
    for (int words = 0; words < 3 && i > 0; ++words) {
      --i;
      if (IsSpace(Text(i))) return absl::OkStatus();
      if (Text(i) != "const" && Text(i) != "volatile") break;
    }
    return Fail("a pointer without an address space");
  }

  // threadgroup TYPE NAME[COUNT]
  Status CheckShared() {
    const auto type = TypeBytes().find(Text(at_ + 1));
    if (type == TypeBytes().end() || Text(at_ + 3) != "[") return absl::OkStatus();
    if (depth_ != 1) return Fail("threadgroup memory outside the outermost scope of a kernel");
    const int64_t bytes = type->second * std::strtoll(Text(at_ + 4).c_str(), nullptr, 10);
    shared_ += (bytes + 15) / 16 * 16;
    if (shared_ > kMaxShared)
      return Fail(absl::StrCat(shared_, " bytes of threadgroup memory, more than ", kMaxShared));
    return absl::OkStatus();
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::set<int64_t> buffers_;
  int64_t shared_ = 0;
};

}  // namespace

Status CheckMsl(std::string_view text) { return Checker(Tokens(text)).Run(); }

Status CompileMslSpaces(const std::string& text) {
  // Only what OpenCL calls a kernel may have memory of a threadgroup.
  static constexpr std::string_view kKernel = "[[kernel";
  std::string source;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(kKernel, at), text.size());
    absl::StrAppend(&source, text.substr(at, found - at));
    if (found == text.size()) break;
    source += "__kernel";
    at = std::min(text.find("]]", found), text.size() - 2) + 2;
  }
  return CompilesWith(
      source,
      {QUERN_CLANG, "-x", "clcpp", "-cl-std=CLC++2021", "-target", "spir64", "-cl-no-stdinc", "-fsyntax-only",
       "-Xclang", "-fno-builtin", "-Xclang", "-cl-ext=-all,+cl_khr_fp16,-__opencl_c_generic_address_space",
       "-Wno-unknown-attributes", "-Wno-unknown-pragmas", absl::StrCat("-I", QUERN_SHIM_DIR, "/spaces")},
      ".cl");
}

}  // namespace quern
