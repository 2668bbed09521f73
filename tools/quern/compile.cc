#include "compile.h"

#include <cstdio>

#include "model_options.h"

CompileCommand::CompileCommand(CLI::App& app)
    : command_(app.add_subcommand("compile", "a model as a C library: NAME.o, NAME.h and NAME.json")),
      text_(*command_) {
  AddModelOptions(*command_, model_, options_);
  command_->add_option("-o,--output", compile_.folder, "folder of the files, made when it is not there")
      ->capture_default_str();
  command_->add_option("--name", compile_.name, "prefix of files and functions; the model file's name when not given");
  command_->add_option("--target", compile_.target,
                       "x86_64-linux-gnu or aarch64-linux-gnu, this machine's when not given; nvptx64 or metal: "
                       "kernels for a device, and how to run them");
  command_
      ->add_option("--cpu", compile_.cpus,
                   "levels, separated by commas; the object takes the best that a machine has (native: this one's; of "
                   "another target the least when not given)")
      ->delimiter(',');
  command_->add_flag("--embed-weights", compile_.embed_weights, "put the model file into the object");
  command_->add_flag("--embed-vocabulary", compile_.embed_vocabulary,
                     "of a language model: put its vocabulary into the object, for quern/kit.h");
  command_->add_option("--emit", compile_.emit, "obj, or one file in place of the three: asm, llvm, bc or kir")
      ->capture_default_str();
  command_->add_option("--kernel", compile_.kernel,
                       "one kernel alone, by its symbol in the manifest: a function of quern/abi.h");
  command_->footer(
      "Examples:\n"
      "  quern compile models/addition.gguf -o out\n"
      "  quern compile model.gguf -o out --cpu x86-64-v2,x86-64-v3,x86-64-v4 --context 512\n"
      "  quern compile model.gguf -o out --target aarch64-linux-gnu\n"
      "  quern compile model.gguf -o out --target nvptx64 --cpu sm_90\n"
      "  quern compile model.gguf -o out --emit asm --kernel layers.0.ffn.matmul.f16\n"
      "  quern compile graph.qir -o out");
}

std::string CompileCommand::Run() {
  const auto compile_text = [&]() {
    quern::Result<quern::TextGraph> text = text_.Open(model_);
    return text.ok() ? quern::CompileGraph(text->graph(), options_, compile_)
                     : quern::Result<quern::CompiledFiles>::Failed(text.details());
  };
  quern::Result<quern::CompiledFiles> files =
      quern::TextGraph::Is(model_) ? compile_text() : quern::CompileModel(model_, options_, compile_);
  if (!files.ok()) return files.error();
  for (const std::string* path : {&files->body, &files->header, &files->manifest}) {
    if (!path->empty()) std::printf("%s\n", path->c_str());
  }
  return "";
}
