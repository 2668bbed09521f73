// Calibrator of the public interface: a program whose outputs are the least and greatest element of each value.

#include <cmath>
#include <cstring>

#include "compiler/graph_state.h"
#include "compiler/observing.h"
#include "compiler/public_error.h"
#include "hir/module.h"
#include "ir/composite.h"
#include "ir/value_names.h"
#include "opt/passes.h"
#include "quern/qdq.h"

namespace quern {
namespace {

// Each output of the observing graph that is no state: a number of `value`.
struct Watched {
  std::string value, output;
  bool is_low = false;
  float seen = 0;
};

// `graph` with the least and greatest elements of its values in the place of its outputs; states stay.
StatusOr<ir::Graph> Observing(ir::Graph graph, std::vector<Watched>& watched) {
  const std::map<ir::Value, std::string> names = ir::ValueNames(graph);
  const std::vector<bool> once = opt::OncePerBinding(graph);
  std::vector<compiler::Observed> outputs;
  for (const auto& [value, name] : names) {
    const ir::TensorType type = graph.type(value);
    if (once[value.node] || !IsFloat(type.dtype)) continue;
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < type.rank(); ++d) axes.push_back(d);
    for (const bool low : {true, false}) {
      ir::Expansion e(graph, -1);
      const ir::Value wide = e.Stored(value, DType::kF32);
      const ir::Value number = axes.empty() ? wide : e.Sized(e.Reduced(low ? "min" : "max", wide, axes), {});
      QUERN_ASSIGN(const std::vector<ir::Value> made, e.Finish({number}));
      watched.push_back({name, absl::StrCat(low ? "least " : "greatest ", name), low});
      outputs.push_back({watched.back().output, made[0]});
    }
  }
  compiler::Observe(graph, outputs);
  return graph;
}

}  // namespace

struct Calibrator::State {
  std::vector<Watched> watched;
  std::vector<MutableTensor> outputs;
  std::optional<Program> program;
  ValueRanges ranges;
};

Calibrator::Calibrator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator& Calibrator::operator=(Calibrator&&) noexcept = default;
Calibrator::~Calibrator() = default;

Result<Calibrator> Calibrator::Make(const Graph& graph, const Options& options) {
  const auto failed = [](const Error& error) { return Result<Calibrator>::Failed(error); };
  const compiler::GraphAccess::State& of = compiler::GraphAccess::Of(graph);
  if (!of.ok()) return failed(of.error);
  auto state = std::make_unique<State>();
  auto observing = [&]() -> StatusOr<ir::Graph> {
    QUERN_ASSIGN(ir::Graph lowered, hir::LowerForAutodiff(of.module));
    lowered.quantisation.clear();  // ranges are those of floats
    return Observing(std::move(lowered), state->watched);
  };
  const Result<Graph> watching = of.InOps(observing());
  if (!watching.ok()) return failed(watching.details());
  Options exact = options;
  exact.exact = true;
  Result<Program> program = watching->Compile(exact);
  if (!program.ok()) return failed(program.details());
  state->program = std::move(*program);
  for (Watched& each : state->watched) state->outputs.push_back({each.output, &each.seen, sizeof(float), "f32", {}});
  return Calibrator(std::move(state));
}

Result<void> Calibrator::Run(const std::vector<ConstTensor>& inputs, const std::map<std::string, int64_t>& symbols) {
  Result<void> ran = state_->program->Run(inputs, state_->outputs, symbols);
  if (!ran.ok()) return ran;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  ValueRanges seen;
  for (size_t i = 0; i + 1 < state_->watched.size(); i += 2) {
    const double low = state_->watched[i].seen, high = state_->watched[i + 1].seen;
    if (low == kInf && high == -kInf) continue;  // of no elements
    const bool numbers = std::isfinite(low) && std::isfinite(high);
    seen[state_->watched[i].value] = numbers ? ValueRange{low, high} : ValueRange{-kInf, kInf};
  }
  Widen(state_->ranges, seen);
  return ran;
}

const ValueRanges& Calibrator::ranges() const { return state_->ranges; }

}  // namespace quern
