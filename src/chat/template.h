// A chat template: the subset of Jinja that published models use, in a sandbox. It reads no file, calls nothing but
// what is in src/chat, changes nothing but its own variables, and ends: its work and its output are bounded.
//
//   StatusOr<Template> made = Template::Parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
//   made->Render({{"messages", ..}})
//
// What Jinja has and this has not (include, import, extends, recursive loops, chained comparisons, most
// filters for HTML) is an error with its line and column, when the template is parsed or when it is reached.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "chat/syntax.h"

namespace quern::chat {

struct RenderOptions {
  std::time_t now = 0;              // what strftime_now shows, in local time
  int64_t work = int64_t{1} << 28;  // about bytes that are made or looked at
};

// Immutable once made; thread-safe.
class Template {
 public:
  // Errors: what is no template, with "line:column".
  static StatusOr<Template> Parse(std::string_view source);
  // Its text. Errors: with the place, what the template does wrong or refuses (raise_exception).
  StatusOr<std::string> Render(const Dict& variables, const RenderOptions& options = {}) const;

 private:
  explicit Template(Block block) : block_(std::make_shared<const Block>(std::move(block))) {}
  std::shared_ptr<const Block> block_;
};

}  // namespace quern::chat
