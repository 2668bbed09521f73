// Pieces of graph text, read one after another: what the readers of graphs and of modules share. The text is not
// trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace quern::ir {

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // Errors about the text, kInvalid: "3:24: expected WHAT", where reading is now, ...
  Status Expected(std::string_view what) const;
  // ... "3:24: unknown op", of `status`, and "line 3: .." of what a whole node says.
  Status Here(const Status& status) const;
  Status At(Status status) const;

  // Steps over `token` if it comes next, spaces and comments before it too; else stays where the last one ended, so
  // that errors point there.
  bool Accept(std::string_view token);
  Status Need(std::string_view token);
  // Whether that character comes next.
  bool Next(char c);
  // Whether nothing comes any more.
  bool AtEnd();

  StatusOr<std::string> Word(std::string_view what);
  // A word, or a string of anything (NameText).
  StatusOr<std::string> Name(std::string_view what);
  StatusOr<int64_t> Integer();
  StatusOr<std::string> String();
  StatusOr<TensorType> Type();
  // "sym A in 1..3, B in 0..", or nothing.
  StatusOr<SymbolRanges> Symbols();
  // "%4.1" as 4 and 1; whether there is such a value is for others to see.
  using Ref = std::pair<int64_t, int64_t>;
  StatusOr<Ref> Reference();
  // ":2", or nothing: 1.
  StatusOr<int64_t> ResultCount();
  // "{axis = 1}", or nothing.
  StatusOr<Attributes> AttributeList();
  // "hex 00ff", or nothing.
  StatusOr<std::optional<std::vector<uint8_t>>> Data();
  // ": f32[2], i64[2]", as many as `count`.
  StatusOr<std::vector<TensorType>> Types(int64_t count);
  // "S == T", "64 >= PAST_SEQ + SEQ".
  StatusOr<ExtentConstraint> Constraint();
  // "as "y"", or nothing: adds the name of the next output.
  Status ReadOutputName(std::vector<std::string>& names);
  // "-> 1" of a donation, of so many outputs.
  StatusOr<Donation> ReadDonation(size_t outputs);
  // "quantise "x" {dtype = u8, ..}", any number of them.
  StatusOr<QuantisationMap> ReadQuantisation();

 private:
  std::string Place() const;
  void Skip();
  // The text up to `close` (not included), which must come before the end of the line.
  StatusOr<std::string_view> Until(char close);
  StatusOr<AttrValue> Value();

  std::string_view text_;
  size_t at_ = 0;
};

// Reads "graph NAME .. { .. }" within a text, so many graphs deep; it verifies. Errors: those of Parse.
StatusOr<Graph> ReadGraph(TextReader& reader, int nesting);

}  // namespace quern::ir
