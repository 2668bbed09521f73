#include "tokenize.h"

#include <cstdio>

#include "prompt.h"
#include "text/utf8_stream.h"

TokenizeCommand::TokenizeCommand(CLI::App& app)
    : command_(app.add_subcommand("tokenize", "the tokens of a text, by a model's tokenizer")) {
  command_->add_option("MODEL,-m,--model", model_, "a GGUF file or a folder; its vocabulary is enough")->required();
  text_option_ = command_->add_option("TEXT,-p,--prompt", text_, "the text; standard input when not given");
  command_->add_option("-f,--file", file_, "a file with the text; -: standard input")->excludes(text_option_);
  CLI::Option* ids = command_->add_flag("--ids", ids_, "ids alone, on one line: what --tokens-in takes");
  command_->add_flag("--pieces", pieces_, "pieces alone, one a line, quoted as in JSON")->excludes(ids);
  command_->add_flag("--no-special", no_special_, "control tokens in the text are text like any other");
  command_->add_flag("--no-begin", no_begin_, "without the token that begins a text");
  command_->footer(
      "Examples:\n"
      "  quern tokenize models/addition.gguf \"27+58=\"\n"
      "  quern tokenize model.gguf \"<|im_start|>user\" --ids\n"
      "  quern tokenize model.gguf --file prompt.txt --pieces\n"
      "  echo Hello | quern tokenize model.gguf");
}

namespace {

// As in JSON; bytes that are no text, and control characters, by number: nothing here steers a terminal.
std::string Quoted(const std::string& piece) {
  std::string result = "\"";
  quern::text::Utf8Stream stream;
  const bool text = stream.Add(piece) + stream.Flush() == piece;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    char number[8];
    std::snprintf(number, sizeof(number), byte < 0x80 ? "\\u%04x" : "\\x%02x", byte);
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (byte < 32 || byte == 127 || (byte >= 0x80 && !text))
      result += number;
    else
      result += c;
  }
  return result + '"';
}

}  // namespace

quern::Result<void> TokenizeCommand::Run() {
  quern::Result<quern::Tokenizer> tokenizer = quern::Tokenizer::Open(model_);
  if (!tokenizer.ok()) return quern::Result<void>::Failed(tokenizer.details());
  quern::Result<std::string> text = PromptOf({.given = text_option_->count() > 0, .text = text_, .file = file_});
  if (!text.ok()) return quern::Result<void>::Failed(text.details());
  const std::vector<int32_t> ids = tokenizer->Encode(*text, {.begin = !no_begin_, .parse_special = !no_special_});
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = Quoted(tokenizer->Piece(ids[i], true));
    if (ids_)
      std::printf("%s%d", i == 0 ? "" : ",", ids[i]);
    else if (pieces_)
      std::printf("%s\n", piece.c_str());
    else
      std::printf("%8d  %s\n", ids[i], piece.c_str());
  }
  if (ids_) std::printf("\n");
  return {};
}
