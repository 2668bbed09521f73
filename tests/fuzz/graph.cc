// A graph in text form: an error, or a graph that prints and parses back as itself and that passes, fusion and code
// generation take as far as kernels that verify. Only a generated kernel that does not is our fault.
#include <cstdio>
#include <cstdlib>

#include "compiler/pipeline.h"
#include "fuzz/mutate_text.h"
#include "ir/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  if (!graph.ok()) return 0;
  const std::string printed = ir::Print(*graph);
  const StatusOr<ir::Graph> again = ir::Parse(printed);
  if (!again.ok() || !ir::SameGraph(*graph, *again) || ir::Print(*again) != printed) {
    std::fprintf(stderr, "%s\n%s\n", printed.c_str(),
                 again.ok() ? "parses as another" : again.status().ToString().c_str());
    std::abort();
  }
  const StatusOr<hir::Module> module = hir::WrapGraph(*graph);
  if (!module.ok()) return 0;
  compiler::PipelineOptions options;
  options.verify_steps = true;
  const StatusOr<ir::Graph> prepared = compiler::PrepareGraph(*module, options);
  const Status planned = prepared.ok() ? compiler::PlanVariant(*prepared, {}, options).status() : prepared.status();
  if (planned.code() != absl::StatusCode::kInternal) return 0;
  std::fprintf(stderr, "%s\n%s\n", printed.c_str(), planned.ToString().c_str());
  std::abort();
}
