// A graph in text form, of ops or of blocks: an error, or a graph that prints and parses back as itself and that
// passes, fusion and code generation take as far as kernels that verify. Only a generated kernel that does not is our
// fault.
#include <cstdio>
#include <cstdlib>

#include "compiler/pipeline.h"
#include "fuzz/mutate_text.h"
#include "ir/graph.h"

namespace quern {
namespace {

[[noreturn]] void Complain(const std::string& printed, const Status& status) {
  std::fprintf(stderr, "%s\n%s\n", printed.c_str(), status.ok() ? "parses as another" : status.ToString().c_str());
  std::abort();
}

StatusOr<hir::Module> ReadBlocks(std::string_view text) {
  StatusOr<hir::Module> module = hir::Parse(text);
  if (!module.ok()) return module;
  const std::string printed = hir::Print(*module);
  const StatusOr<hir::Module> again = hir::Parse(printed);
  if (!again.ok() || hir::Print(*again) != printed) Complain(printed, again.status());
  return module;
}

StatusOr<hir::Module> ReadOps(std::string_view text) {
  QUERN_ASSIGN(const ir::Graph graph, ir::Parse(text));
  const std::string printed = ir::Print(graph);
  const StatusOr<ir::Graph> again = ir::Parse(printed);
  if (!again.ok() || !ir::SameGraph(graph, *again) || ir::Print(*again) != printed) Complain(printed, again.status());
  return hir::WrapGraph(graph);
}

}  // namespace
}  // namespace quern

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<hir::Module> module = hir::IsModuleText(text) ? ReadBlocks(text) : ReadOps(text);
  if (!module.ok()) return 0;
  compiler::PipelineOptions options;
  options.verify_steps = true;
  const StatusOr<ir::Graph> prepared = compiler::PrepareGraph(*module, options);
  const Status planned = prepared.ok() ? compiler::PlanVariant(*prepared, {}, options).status() : prepared.status();
  if (planned.code() != absl::StatusCode::kInternal) return 0;
  Complain(hir::Print(*module), planned);
}
