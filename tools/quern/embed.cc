#include "embed.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "prompt.h"

namespace {

constexpr struct {
  const char* name;
  quern::Pooling pooling;
} kPoolings[] = {{"model", quern::Pooling::kModel},
                 {"mean", quern::Pooling::kMean},
                 {"first", quern::Pooling::kFirst},
                 {"last", quern::Pooling::kLast}};

quern::Pooling PoolingOf(const std::string& name) {
  for (const auto& each : kPoolings) {
    if (name == each.name) return each.pooling;
  }
  return quern::Pooling::kModel;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

EmbedCommand::EmbedCommand(CLI::App& app)
    : command_(app.add_subcommand("embed", "vectors of texts, by an encoder, each of length 1")) {
  AddModelOptions(*command_, model_, options_, /*graphs=*/false);
  AddCpuOption(*command_, options_);
  AddRunOptions(*command_, options_);
  text_option_ = command_->add_option("TEXT,-p,--prompt", text_, "the text; standard input when not given");
  command_->add_option("-f,--file", file_, "a file with the text; -: standard input")->excludes(text_option_);
  command_->add_flag("--lines", lines_, "every line is a text of its own");
  command_->add_option("--pooling", pooling_, "mean, first or last: of the tokens' rows; model: as the file says")
      ->capture_default_str()
      ->check(CLI::IsMember({"model", "mean", "first", "last"}));
  RequireValues(*command_, {"TEXT"});
  command_->footer(
      "A line of numbers for each text.\n"
      "Examples:\n"
      "  quern embed encoder.gguf \"a text\"\n"
      "  quern embed encoder.gguf --file texts.txt --lines --pooling first");
}

quern::Result<void> EmbedCommand::Run() {
  quern::Result<std::string> text = PromptOf({.given = text_option_->count() > 0, .text = text_, .file = file_});
  if (!text.ok()) return quern::Result<void>::Failed(text.details());
  quern::Result<quern::Embedder> model = quern::Embedder::Open(model_, options_);
  if (!model.ok()) return quern::Result<void>::Failed(model.details());
  for (const std::string& each : lines_ ? LinesOf(*text) : std::vector<std::string>{*text}) {
    quern::Result<std::vector<float>> vector = model->Embed(each, PoolingOf(pooling_));
    if (!vector.ok()) return quern::Result<void>::Failed(vector.details());
    for (size_t i = 0; i < vector->size(); ++i) std::printf("%s%.9g", i == 0 ? "" : " ", (*vector)[i]);
    std::printf("\n");
  }
  return {};
}
