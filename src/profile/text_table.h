// Columns of text, aligned: numbers to the right, words to the left, the last column as long as it likes.
//
//   TextTable table({"kernel", ">calls"});
//   table.Add({"matmul", "12"});
//   table.Text()
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace quern::profile {

class TextTable {
 public:
  // A name that starts with '>' is of a column of numbers.
  explicit TextTable(std::vector<std::string> names) {
    for (std::string& name : names) {
      right_.push_back(name.starts_with('>'));
      if (right_.back()) name.erase(0, 1);
    }
    Add(std::move(names));
  }
  // Missing cells are empty.
  void Add(std::vector<std::string> cells) {
    cells.resize(right_.size());
    rows_.push_back(std::move(cells));
  }
  size_t rows() const { return rows_.size() - 1; }

  std::string Text(std::string_view indent = "  ") const {
    std::vector<size_t> widths(right_.size());
    for (const auto& row : rows_) {
      for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line(indent);
      for (size_t c = 0; c < row.size(); ++c) {
        const std::string pad(widths[c] - row[c].size(), ' ');
        line += right_[c] ? pad + row[c] : row[c] + pad;
        if (c + 1 < row.size()) line += "  ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quern::profile
