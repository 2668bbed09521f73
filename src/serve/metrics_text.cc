#include "serve/metrics_text.h"

#include "absl/strings/str_format.h"

namespace quern::serve {

std::string MetricsText(const Scheduler::Metrics& m) {
  const struct {
    const char *name, *type, *help;
    double value;
  } rows[] = {
      {"requests_total", "counter", "Requests taken.", static_cast<double>(m.requests)},
      {"requests_refused_total", "counter", "Requests refused because too many waited.",
       static_cast<double>(m.refused)},
      {"answers_finished_total", "counter", "Answers that came to their end.", static_cast<double>(m.finished)},
      {"answers_cancelled_total", "counter", "Answers that nobody read any more.", static_cast<double>(m.cancelled)},
      {"answers_failed_total", "counter", "Answers that ended in an error.", static_cast<double>(m.failed)},
      {"prompt_tokens_total", "counter", "Tokens of prompts.", static_cast<double>(m.prompt_tokens)},
      {"cached_tokens_total", "counter", "Tokens of prompts that were in the cache.",
       static_cast<double>(m.cached_tokens)},
      {"answer_tokens_total", "counter", "Tokens of answers.", static_cast<double>(m.answer_tokens)},
      {"steps_total", "counter", "Steps of the model.", static_cast<double>(m.steps)},
      {"step_seconds_total", "counter", "Time in steps.", m.step_seconds},
      {"answers_active", "gauge", "Answers under way.", static_cast<double>(m.active)},
      {"requests_waiting", "gauge", "Requests that wait.", static_cast<double>(m.waiting)},
  };
  std::string text;
  for (const auto& row : rows) {
    absl::StrAppendFormat(&text, "# HELP quern_%s %s\n# TYPE quern_%s %s\nquern_%s %.17g\n", row.name, row.help,
                          row.name, row.type, row.name, row.value);
  }
  return text;
}

}  // namespace quern::serve
