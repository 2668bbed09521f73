#include "profile/html.h"

#include <string_view>

#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "profile/json.h"

// Files embedded by cmake/report.cmake.
// clang-format off
#define QUERN_REPORT_FILES(F)                                                                                \
  F(d3_js) F(d3_licence) F(page_html) F(style_css) F(format_js) F(timeline_js) F(roofline_js) F(arena_js)    \
  F(tables_js) F(stages_js) F(page_js)
// clang-format on

#define QUERN_REPORT_DECLARE(name) extern "C" const char quern_report_##name[], quern_report_##name##_end[];
QUERN_REPORT_FILES(QUERN_REPORT_DECLARE)
#undef QUERN_REPORT_DECLARE

namespace quern::profile {
namespace {

std::string_view FileNamed(std::string_view name) {
#define QUERN_REPORT_FIND(file) \
  if (name == #file) return {quern_report_##file, static_cast<size_t>(quern_report_##file##_end - quern_report_##file)};
  QUERN_REPORT_FILES(QUERN_REPORT_FIND)
#undef QUERN_REPORT_FIND
  return {};
}

// In JSON, "<" stands only in strings, where it may be written so: without it no tag and no comment begins.
std::string Unmarked(const std::string& json) { return absl::StrReplaceAll(json, {{"<", "\\u003c"}}); }

}  // namespace

std::string HtmlText(const Profile& profile) {
  // page.html has {{name}} where a file goes, or the data; what is put in is not looked at again.
  std::string html;
  std::string_view page = FileNamed("page_html");
  for (size_t open; (open = page.find("{{")) != std::string_view::npos;) {
    const size_t close = page.find("}}", open);
    QUERN_CHECK(close != std::string_view::npos);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    html += page.substr(0, open);
    html += name == "data" ? Unmarked(JsonText(profile)) : std::string(FileNamed(name));
    page.remove_prefix(close + 2);
  }
  html += page;
  return html;
}

}  // namespace quern::profile
