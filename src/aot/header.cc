#include "aot/header.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "aot/support/library.h"
#include "codegen/text/helpers.h"
#include "quern/abi.h"

namespace quern::aot {
namespace {

// `text` with each "$" the name of the model and each "%" the name in capitals.
void Put(std::string& out, const std::string& name, std::string_view text) {
  for (const char c : text) {
    if (c == '$')
      out += name;
    else if (c == '%')
      for (const char n : name) out += static_cast<char>(std::toupper(static_cast<unsigned char>(n)));
    else
      out += c;
  }
}

void PutPorts(std::string& out, const char* word, const std::vector<Port>& ports) {
  for (size_t i = 0; i < ports.size(); ++i)
    absl::StrAppend(&out, " *   ", word, " ", i, ": ", ports[i].name, "  ", ports[i].type.ToString(), "\n");
}

void PutTokens(std::string& h, const Model& model) {
  if (!model.tokens.has_value()) return;
  const Tokens& tokens = *model.tokens;
  Put(h, model.name,
      "/* How many tokens there are, the one that begins a text and the one that ends it; -1: none. */\n");
  const std::pair<const char*, int32_t> numbers[] = {
      {"VOCABULARY", tokens.count}, {"BEGIN_TOKEN", tokens.begin}, {"END_TOKEN", tokens.end}};
  for (const auto& [word, number] : numbers) {
    Put(h, model.name, "#define %_");
    absl::StrAppend(&h, word, " (", number, ")\n");
  }
  if (!tokens.vocabulary.empty())
    Put(h, model.name,
        "/* What quern/kit.h makes text of ids and ids of text with. */\n"
        "extern const struct quern_vocabulary $_vocabulary;\n");
  h += "\n";
}

// A symbol as a C parameter, beside the others that functions have.
std::string Parameter(const std::string& symbol) {
  constexpr std::string_view kTaken[] = {"model", "inputs", "outputs", "i", "int32_t", "int64_t"};
  std::string name;
  for (const char c : symbol) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  // One more _ at the end, also where some are there: i becomes i_, and i_ something else.
  const std::string word = name.substr(0, name.find_last_not_of('_') + 1);
  const bool taken = std::find(std::begin(kTaken), std::end(kTaken), word) != std::end(kTaken);
  return taken || text::IsKeyword(word) ? name + "_" : name;
}

}  // namespace

std::string Header(const Model& model, const Workspace& workspace, std::span<const ir::CustomDef* const> calls,
                   const ObjectSymbols& symbols_of, const Options& options) {
  const Signature& signature = model.signature;
  std::string symbols, ranges, found, most, call;
  for (const auto& [symbol, range] : signature.symbols) {
    absl::StrAppend(&symbols, ", int64_t ", Parameter(symbol));
    absl::StrAppend(&ranges, " *   ", symbol, " in ", range.low, "..", range.high, "\n");
    absl::StrAppend(&call, ", ", Parameter(symbol));
  }
  for (const auto& [symbol, size] : signature.counted) {
    absl::StrAppend(&found, ", int64_t* ", Parameter(symbol));
    absl::StrAppend(&most, " *   ", symbol, " at most ", size.ToString(), "\n");
    absl::StrAppend(&call, ", &", Parameter(symbol));
  }
  std::string levels;
  for (const Level& level : model.levels) absl::StrAppend(&levels, levels.empty() ? "" : ", ", level.target->name);

  std::string h;
  auto put = [&](std::string_view text) { Put(h, model.name, text); };
  put("/* $: a model compiled by Quern. Link $.o");
  h += symbols_of.needs_mathematics() ? " and -lm, the mathematics of the C library; no other library is needed.\n *\n"
                                      : "; no library is needed but that of C.\n *\n";
  PutPorts(h, "input", signature.inputs);
  PutPorts(h, "output", signature.outputs);
  absl::StrAppend(&h, ranges.empty() ? "" : " * Sizes, given to every step:\n", ranges,
                  most.empty() ? "" : " * Sizes that every step finds:\n", most, " * For ",
                  model.levels[0].target->platform->triple, ", CPU levels: ", levels, "\n *\n");
  put(" *   void* memory = aligned_alloc(64, $_workspace_bytes(1));\n"
      " *   $* model;\n"
      " *   int error = $_init(&model, memory, $_workspace_bytes(1), weights, weight_bytes, NULL);\n"
      " *   if (error == 0) error = $_step(model, inputs, outputs");
  h += call;
  put(");\n"
      " *   if (error != 0) puts($_error(error));\n *\n"
      " * No function allocates memory or keeps global state. Different workspaces are independent and may be used by "
      "different\n"
      " * threads at once; one workspace by one thread at a time. Dense tensors are row-major, little-endian. */\n"
      "#ifndef %_H_\n#define %_H_\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
  absl::StrAppend(&h, "/* ---- quern/abi.h */\n", std::string(AbiHeader()), "/* ---- */\n\n");
  absl::StrAppend(&h, "#if QUERN_ABI_VERSION != ", QUERN_ABI_VERSION,
                  "\n#error \"this header and another of Quern's disagree about the ABI\"\n#endif\n\n");
  put("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  if (!calls.empty()) {
    h += "/* Functions that steps call and the object lacks: the program has them. */\n";
    for (const ir::CustomDef* call : calls) absl::StrAppend(&h, "quern_kernel ", call->symbol, ";\n");
    h += "\n";
  }
  for (const auto& [symbol, range] : signature.symbols) {
    put("#define %_");
    absl::StrAppend(&h, Parameter(symbol), "_MIN INT64_C(", range.low, ")\n");
    put("#define %_");
    absl::StrAppend(&h, Parameter(symbol), "_MAX INT64_C(", range.high, ")\n");
  }
  put("#define %_INPUTS ");
  absl::StrAppend(&h, signature.inputs.size(), "\n");
  put("#define %_OUTPUTS ");
  absl::StrAppend(&h, signature.outputs.size(), "\n");
  put("#define %_WEIGHT_BYTES INT64_C(");
  absl::StrAppend(&h, model.weights.bytes.size(), ")\n\n");
  PutTokens(h, model);
  put("/* A model in its workspace. It ends with the workspace: there is nothing else to free. */\n"
      "typedef struct $ $;\n\n"
      "/* Names, element types and shapes; a row of nulls ends each table. */\n"
      "extern const quern_port $_inputs[];\n"
      "extern const quern_port $_outputs[];\n\n"
      "/* Bytes of workspace for this many workers (1 without a runner): ");
  absl::StrAppend(&h, workspace.fixed, " and, for each worker, ", workspace.scratch, " and its part of a table.\n",
                  " * The cache and other state take ", workspace.state_bytes,
                  " of them. -1: more workers than 65536, or none. */\n");
  put("int64_t $_workspace_bytes(int64_t workers);\n\n"
      "/* Makes a model in `workspace`, which is aligned to 64 bytes and stays with the model, as do the weights and "
      "the runner.\n"
      " * Chooses the CPU level, clears the state, checks the weights and does the work that depends on them alone.\n"
      " * weights: ");
  if (model.weights.bytes.empty())
    put("null, of 0 bytes: the parameters are in the object.\n");
  else
    put("the bytes of the model file, aligned to 32 (a mapped file is), never written.\n");
  if (options.embed_weights) put(" *   Null: those in the object.\n");
  put(" * runner: threads of the caller's or of quern/rt.h; null: everything runs on the calling thread. The struct is "
      "copied.\n"
      " * Errors: QUERN_ERROR_*; *out is null then. */\n"
      "int32_t $_init($** out, void* workspace, size_t bytes, const void* weights, size_t weight_bytes,\n"
      "    const quern_runner* runner);\n"
      "/* The same in memory that is all zero, as calloc gives it: the state is not cleared, so that the pages of a "
      "large cache are\n"
      " * not touched before they are used. With memory that is not zero, results are wrong. */\n"
      "int32_t $_init_zeroed($** out, void* workspace, size_t bytes, const void* weights, size_t weight_bytes,\n"
      "    const quern_runner* runner);\n\n"
      "/* Runs one step. inputs[i] and outputs[i] are the caller's memory, in the order of the tables, of the sizes "
      "that\n"
      " * $_input_bytes and $_output_bytes say, aligned to their elements; no output overlaps anything else.\n"
      " * Errors: a null pointer, a size out of range, sizes that do not go together; nothing is written then.");
  if (!found.empty())
    put("\n * A size that the step finds is written where its pointer says, which may be null; not after an error. "
        "Outputs have\n"
        " * room for the most that there may be; their elements lie dense at the start. Where it is such a size that "
        "is "
        "out of\n"
        " * range or does not go with others, outputs may hold anything, and the state is as it was.");
  put(" */\nint32_t $_step($* model, const void* const* inputs, void* const* outputs");
  absl::StrAppend(&h, symbols, found);
  put(");\n\n/* From now on a step looks at *flag every few kernels, and before each trip of a loop: where it is not 0 "
      "the step ends\n"
      " * with QUERN_ERROR_CANCELLED, and outputs and state may hold anything. Null: it looks no more. */\n"
      "void $_cancel_when($* model, const volatile int32_t* flag);\n\n"
      "/* Back to the state after $_init. */\nint32_t $_reset($* model);\n\n"
      "/* Bytes of the memory of input or output i; -1 where there is none, or a size is out of range. */\n"
      "int64_t $_input_bytes(int64_t i");
  absl::StrAppend(&h, symbols, ");\n");
  put("int64_t $_output_bytes(int64_t i");
  absl::StrAppend(&h, symbols, ");\n\n");
  put("/* The CPU level that was chosen: \"avx2\". */\n"
      "const char* $_level(const $* model);\n\n"
      "/* What a code means, in words. */\n"
      "const char* $_error(int32_t code);\n\n"
      "#ifdef __cplusplus\n}\n#endif\n\n#endif /* %_H_ */\n");
  return h;
}

}  // namespace quern::aot
