// Columns of text, aligned: numbers to the right, words to the left, the last column as long as it likes.
//
//   TextTable table({"kernel", ">calls"});
//   table.Add({"matmul", "12"});
//   table.Text()
#pragma once

#include <algorithm>
#include <string>
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

  // `columns`: what a line may have, 0: anything. Where that is less, words lose their beginnings, those of the last
  // column first; then columns are left out, the last ones first.
  std::string Text(size_t columns = 0) const {
    std::vector<size_t> widths(right_.size());
    for (const auto& row : rows_) {
      for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    const size_t shown = Fit(widths, columns);
    std::string text;
    for (const auto& row : rows_) {
      std::string line(kGap, ' ');
      for (size_t c = 0; c < shown; ++c) {
        const std::string cell = LastOf(row[c], widths[c]);
        const std::string pad(widths[c] - cell.size(), ' ');
        line += right_[c] ? pad + cell : cell + pad;
        if (c + 1 < shown) line.append(kGap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  static constexpr size_t kGap = 2, kLeastWord = 14;

  // Makes columns narrower; how many of them are shown.
  size_t Fit(std::vector<size_t>& widths, size_t columns) const {
    size_t all = 0, shown = widths.size();
    for (const size_t width : widths) all += width + kGap;
    if (columns == 0) return shown;
    for (size_t c = widths.size(); c-- > 0 && all > columns;) {
      if (right_[c] || widths[c] <= kLeastWord) continue;
      const size_t less = std::min(all - columns, widths[c] - kLeastWord);
      widths[c] -= less;
      all -= less;
    }
    while (shown > 1 && all > columns) all -= widths[--shown] + kGap;
    return shown;
  }
  // "..ffn.matmul.f16": names that begin alike differ at their end.
  static std::string LastOf(const std::string& cell, size_t width) {
    if (cell.size() <= width) return cell;
    size_t from = cell.size() - width + 2;
    while (from < cell.size() && (static_cast<unsigned char>(cell[from]) & 0xC0) == 0x80) ++from;
    return ".." + cell.substr(from);
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quern::profile
