#include "compile.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "model_options.h"

namespace {

namespace fs = std::filesystem;

// How the file of a form ends.
std::string Ending(const std::string& emit) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {"obj", ".o"}, {"asm", ".s"}, {"llvm", ".ll"}, {"bc", ".bc"}, {"kir", ".kir"}};
  for (const auto& [form, ending] : kEndings) {
    if (form == emit) return std::string(ending);
  }
  return "";
}

// -o: a folder, or the file that is wanted, whose header and manifest are beside it. Gives why not.
std::string TakeOutput(const std::string& output, quern::CompileOptions& compile) {
  const fs::path path(output);
  std::error_code unknown;
  compile.folder = output;
  if (fs::is_directory(path, unknown)) return "";
  if (output == "-")
    return "-o -: a folder, or a file of this name: " + compile.emit + " is not written to standard output";
  for (const char* form : {"obj", "asm", "llvm", "bc", "kir"}) {
    if (path.extension() != Ending(form)) continue;
    const bool device = compile.target == "nvptx64" || compile.target == "metal";
    if (compile.emit != form || (device && compile.emit == "obj"))
      return "-o " + output + ": what is asked for is no file that ends in " + Ending(form) +
             (compile.emit == form ? "" : "; --emit " + std::string(form) + " is");
    if (!compile.kernel.empty() && path.stem() != compile.kernel)
      return "-o " + output + ": the file of a kernel has its name; give its folder";
    compile.folder = path.has_parent_path() ? path.parent_path().string() : ".";
    compile.file = path.stem().string();
    return "";
  }
  return "";
}

}  // namespace

CompileCommand::CompileCommand(CLI::App& app)
    : command_(app.add_subcommand("compile", "a model as a C library: NAME.o, NAME.h and NAME.json")),
      text_(*command_, false) {
  AddModelOptions(*command_, model_, options_);
  command_
      ->add_option("-o,--output", output_,
                   "folder of the files, made when it is not there; or FOLDER/FILE.o, with FILE.h and FILE.json beside "
                   "it (.s, .ll, .bc, .kir: as --emit says)")
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
  command_->add_flag("--pack-weights", compile_.pack_weights,
                     "put the parameters into a file of their own, FILE.weights, for programs to map");
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
      "  quern compile model.onnx -o build/detector.o --pack-weights\n"
      "  quern compile model.gguf -o out --target aarch64-linux-gnu\n"
      "  quern compile model.gguf -o out --target nvptx64 --cpu sm_90\n"
      "  quern compile model.gguf -o out --emit asm --kernel layers.0.ffn.matmul.f16\n"
      "  quern compile graph.qir -o out");
}

std::string CompileCommand::Run() {
  const std::string problem = TakeOutput(output_, compile_);
  if (!problem.empty()) return problem;
  const bool graph = quern::TextGraph::Is(model_);
  if (const quern::Result<void> ok = RefuseOthers(*command_, model_, graph); !ok.ok()) return ok.error();
  bool said = false;
  if (isatty(STDERR_FILENO) == 1) {
    compile_.progress = [&](const std::string& what) {
      std::fprintf(stderr, "\r\033[K%s ..", what.c_str());
      said = true;
    };
  }
  const auto compile_text = [&]() {
    quern::Result<quern::TextGraph> text = text_.Open(model_);
    return text.ok() ? quern::CompileGraph(text->graph(), options_, compile_)
                     : quern::Result<quern::CompiledFiles>::Failed(text.details());
  };
  quern::Result<quern::CompiledFiles> files = graph ? compile_text() : quern::CompileModel(model_, options_, compile_);
  if (said) std::fputs("\r\033[K", stderr);
  if (!files.ok()) return files.error();
  for (const std::string* path : {&files->body, &files->header, &files->manifest, &files->weights}) {
    if (!path->empty()) std::printf("%s\n", path->c_str());
  }
  return "";
}
