#include "profile/debug_text.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quern::profile {
namespace {

using absl::string_view;

// The number that `text` starts with, which is removed; -1: none.
int TakeNumber(string_view& text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  int number = -1;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number)) return -1;
  text.remove_prefix(digits);
  return number;
}

// Lines of "!7 = !DILocation(line: 4, scope: !5)" by number of the node.
std::map<int, int> Locations(const std::vector<string_view>& lines) {
  std::map<int, int> locations;
  for (string_view line : lines) {
    if (!absl::ConsumePrefix(&line, "!")) continue;
    const int node = TakeNumber(line);
    absl::ConsumePrefix(&line, " = distinct");
    absl::ConsumePrefix(&line, " =");
    if (!absl::ConsumePrefix(&line, " !DILocation(line: ")) continue;
    const int number = TakeNumber(line);
    if (node >= 0 && number > 0) locations[node] = number;
  }
  return locations;
}

// `line` without ", !alias.scope !5" and the like; `location`: the node of !dbg, where there is one.
std::string WithoutMetadata(string_view line, int& location) {
  std::string out;
  while (!line.empty()) {
    const size_t at = line.find('!');
    if (at == string_view::npos) break;
    // What is no use of a node, such as "!" in a name, stays.
    string_view rest = line.substr(at + 1);
    size_t name = 0;
    while (name < rest.size() && (absl::ascii_isalnum(rest[name]) || rest[name] == '.' || rest[name] == '_')) ++name;
    const string_view kind = rest.substr(0, name);
    rest.remove_prefix(name);
    if (kind.empty() || !absl::ConsumePrefix(&rest, " !")) {
      absl::StrAppend(&out, line.substr(0, at + 1));
      line.remove_prefix(at + 1);
      continue;
    }
    const int node = TakeNumber(rest);
    if (kind == "dbg") location = node;
    string_view before = line.substr(0, at);
    if (!absl::ConsumeSuffix(&before, ", ")) absl::ConsumeSuffix(&before, " ");  // after a call; in front of a body
    absl::StrAppend(&out, before);
    line = rest;
  }
  absl::StrAppend(&out, line);
  return out;
}

// "<4 x float> <float 1.0, float 1.0, float 1.0, float 1.0>" -> "<4 x float> splat (float 1.0)".
std::string WithSplats(string_view line) {
  std::string out;
  for (;;) {
    const size_t open = line.find("> <");
    const size_t close = open == string_view::npos ? open : line.find('>', open + 3);
    if (close == string_view::npos) break;
    const std::vector<string_view> elements = absl::StrSplit(line.substr(open + 3, close - open - 3), ", ");
    bool equal = elements.size() > 1;
    for (const string_view element : elements) equal &= element == elements[0];
    if (equal) {
      absl::StrAppend(&out, line.substr(0, open), "> splat (", elements[0], ")");
      line.remove_prefix(close + 1);
    } else {
      absl::StrAppend(&out, line.substr(0, open + 3));
      line.remove_prefix(open + 3);
    }
  }
  absl::StrAppend(&out, line);
  return out;
}

void Add(KirLines& linked, string_view text, int line) {
  absl::StrAppend(&linked.text, text, "\n");
  linked.lines.push_back(line);
}

}  // namespace

KirLines LinkedIr(std::string_view ir) {
  const std::vector<string_view> lines = absl::StrSplit(string_view(ir.data(), ir.size()), '\n');
  const std::map<int, int> locations = Locations(lines);
  KirLines linked;
  bool blank = true;
  for (const string_view line : lines) {
    // Where it is from and for what is said elsewhere in the report.
    if (absl::StartsWith(line, "!") || absl::StartsWith(line, "; ModuleID") ||
        absl::StartsWith(line, "source_filename"))
      continue;
    if (absl::StartsWith(line, "; Function Attrs:")) continue;
    if (absl::StartsWith(line, "attributes #") || absl::StartsWith(line, "target ")) continue;
    if (line.empty() && blank) continue;
    blank = line.empty();
    int node = -1;
    const std::string text = WithSplats(WithoutMetadata(line, node));
    const auto found = absl::StartsWith(line, "define ") ? locations.end() : locations.find(node);
    Add(linked, text, found == locations.end() ? 0 : found->second);
  }
  if (absl::EndsWith(linked.text, "\n\n")) {
    linked.text.pop_back();
    linked.lines.pop_back();
  }
  return linked;
}

KirLines LinkedAssembly(std::string_view assembly) {
  KirLines linked;
  bool debug_section = false;
  int at = 0;
  for (const string_view line : absl::StrSplit(string_view(assembly.data(), assembly.size()), '\n')) {
    string_view word = absl::StripLeadingAsciiWhitespace(line);
    if (absl::StartsWith(word, ".section") || word == ".text")
      debug_section = absl::StrContains(word, ".debug_") || absl::StrContains(word, ".note");
    if (debug_section || word.empty()) continue;
    if (absl::ConsumePrefix(&word, ".loc")) {
      word = absl::StripLeadingAsciiWhitespace(word);
      TakeNumber(word);  // the file: there is one
      word = absl::StripLeadingAsciiWhitespace(word);
      at = std::max(TakeNumber(word), 0);
      continue;
    }
    if (absl::StartsWith(word, ".file") || absl::StartsWith(word, ".cfi_") || absl::StartsWith(word, ".ident"))
      continue;
    const bool label = absl::EndsWith(word.substr(0, word.find_first_of(" \t")), ":");
    // Labels that only line tables refer to.
    if (label &&
        (absl::StartsWith(word, ".Ltmp") || absl::StartsWith(word, ".Lfunc_") || absl::StartsWith(word, ".L__")))
      continue;
    const bool instruction = !label && word[0] != '.' && word[0] != '#';
    Add(linked, line, instruction ? at : 0);
  }
  return linked;
}

}  // namespace quern::profile
