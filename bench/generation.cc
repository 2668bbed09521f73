// A whole greedy generation inside a graph beside a session that the host drives, on the same model file:
//   bench_generation MODEL [--threads N] [--tokens 128] [--context 512] [--rounds 7]
//   {"model":"85m-q4_k_m.gguf","threads":1,"tokens":128,"graph_tps":..,"session_tps":..,"ratio":..,"same":128}
// The graph is a While: its body is the model's step for one sequence, whose place is data, with ArgMax behind it; it
// carries the caches, and no host code runs between tokens. The session steps token by token and picks the greatest
// logit, as `quern run` does. Both begin with the token 1 at position 0, in turn; `same` is how many tokens agree.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "compiler/graph_state.h"
#include "compiler/model.h"
#include "quern/graph.h"

namespace {

using quern::Value;

int Complain(const std::string& error) {
  std::fprintf(stderr, "bench_generation: %s\n", error.c_str());
  return 1;
}

template <typename T>
Value ConstantOf(quern::Graph& g, const std::string& type, const std::vector<T>& values) {
  return g.Constant(type, std::as_bytes(std::span(values)));
}

// The step of `spec` as a graph whose caches are inputs and outputs like any others, its weights bound.
struct Step {
  quern::Graph graph;
  std::vector<std::string> inputs;
  std::vector<std::string> caches;           // what output 1 + i is the next one of
  std::map<std::string, std::string> types;  // of inputs
};

quern::Result<Step> StepOf(quern::models::ModelSpec& spec) {
  std::vector<std::string> caches(spec.module.donations.size());
  for (const quern::ir::Donation& donation : spec.module.donations) caches[donation.output - 1] = donation.input;
  spec.module.donations.clear();
  spec.module.output_names.clear();
  quern::Result<quern::Graph> graph = quern::Graph::Parse(quern::hir::Print(spec.module));
  if (!graph.ok()) return quern::Result<Step>::Failed(graph.details());
  Step step{std::move(*graph), {}, std::move(caches), {}};
  for (const quern::hir::Node& node : spec.module.nodes()) {
    if (!quern::hir::IsInput(node)) continue;
    step.inputs.push_back(node.attributes.String("name"));
    step.types[step.inputs.back()] = node.results[0].ToString();
  }
  for (const quern::models::ParamData& param : spec.params) {
    const quern::Result<void> bound = step.graph.Bind(param.name, std::as_bytes(param.bytes));
    if (!bound.ok()) return quern::Result<Step>::Failed(bound.details());
  }
  return quern::Result<Step>(std::move(step));
}

// What the loop carries, in this order, and how many tokens there are to be, which it only looks at.
struct Carried {
  Value at, token, tokens;
  std::map<std::string, Value> caches;
  Value count;
  Carried(quern::Graph& g, const Step& step, int64_t context)
      : at(g.Input("at", "i32[1]")), token(g.Input("token", "i32[1]")), tokens(g.Input("tokens", TokensType(context))) {
    for (const std::string& cache : step.caches) caches[cache] = g.Input(cache, step.types.at(cache));
    count = g.Input("count", "i32[1]");
  }
  static std::string TokensType(int64_t context) { return "i32[" + std::to_string(context) + "]"; }
};

quern::Graph Condition(const Step& step, int64_t context) {
  quern::Graph g("cond");
  const Carried carried(g, step, context);
  g.Output("more", g.Op("Reshape", {g.Op("Lt", {carried.at, carried.count})}, {{"shape", std::vector<int64_t>{}}}));
  return g;
}

quern::Graph Body(const Step& step, int64_t context) {
  quern::Graph g("body");
  const Carried carried(g, step, context);
  const Value next = g.Op("Add", {carried.at, ConstantOf<int32_t>(g, "i32[1]", {1})});
  std::map<std::string, Value> given = {
      {quern::models::kIdsInput, carried.token},
      {quern::models::kPositionsInput, carried.at},
      {quern::models::kIndexInput, carried.at},
      {quern::models::kStartsInput, ConstantOf<int32_t>(g, "i32[2]", {0, 1})},
      {quern::models::kLengthsInput, next},
      {quern::models::kBlocksInput, ConstantOf<int32_t>(g, "i32[1, 1]", {0})},
      {quern::models::kRowsInput, ConstantOf<int32_t>(g, "i32[1]", {0})},
  };
  given.insert(carried.caches.begin(), carried.caches.end());
  std::vector<Value> values;
  for (const std::string& input : step.inputs) values.push_back(given.at(input));
  const std::vector<Value> made = g.Inline(step.graph, values, "step");
  const Value best = g.Op("Cast", {g.Op("ArgMax", {made[0]}, {{"axis", int64_t{-1}}})}, {{"to", "i32"}});
  g.Output("at", next);
  g.Output("token", best);
  g.Output("tokens", g.Op("Update", {carried.tokens, best, carried.at}, {{"axis", int64_t{0}}}));
  for (size_t c = 0; c < step.caches.size(); ++c) g.Output(step.caches[c], made[1 + c]);
  return g;
}

quern::Graph Generation(const Step& step, int64_t context) {
  const quern::Graph condition = Condition(step, context), body = Body(step, context);
  quern::Graph g("generation");
  std::vector<Value> operands = {ConstantOf<int32_t>(g, "i32[1]", {0}), g.Input("first", "i32[1]"),
                                 ConstantOf(g, Carried::TokensType(context), std::vector<int32_t>(context))};
  for (const std::string& cache : step.caches) operands.push_back(g.Input(cache, step.types.at(cache)));
  const int64_t carries = static_cast<int64_t>(operands.size());
  operands.push_back(g.Input("count", "i32[1]"));
  const std::vector<Value> last = g.Ops("While", operands, {{"carries", carries}}, "generate", {&condition, &body});
  g.Output("tokens", last[2]);
  for (size_t c = 0; c < step.caches.size(); ++c) g.Carry(step.caches[c], last[3 + c]);
  return g;
}

std::vector<int32_t> Stepped(quern::Session& session, int count) {
  std::vector<int32_t> tokens;
  quern::Sampler greedy({});
  session.Reset();
  int32_t token = 1;
  while (static_cast<int>(tokens.size()) < count) {
    const quern::Result<std::vector<float>> logits = session.Step(std::span(&token, 1));
    if (!logits.ok()) break;
    tokens.push_back(token = greedy.Next(*logits));
  }
  return tokens;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return Complain("usage: bench_generation MODEL [--threads N] [--tokens N] [--context N] [--rounds N]");
  const std::string path = argv[1];
  std::map<std::string, int> numbers = {{"--threads", 1}, {"--tokens", 128}, {"--context", 512}, {"--rounds", 7}};
  for (int i = 2; i < argc; i += 2) {
    if (!numbers.contains(argv[i]) || i + 1 == argc) return Complain(std::string("unknown flag ") + argv[i]);
    numbers[argv[i]] = std::atoi(argv[i + 1]);
  }
  const int count = numbers["--tokens"];
  quern::Options options;
  options.threads = numbers["--threads"];
  options.context = numbers["--context"];
  quern::StatusOr<quern::compiler::OpenedModel> opened =
      quern::compiler::OpenModel(path, options, {.most = 1, .block = options.context, .blocks = 1});
  if (!opened.ok()) return Complain(std::string(opened.status().message()));
  const quern::Result<Step> step = StepOf(opened->spec);
  if (!step.ok()) return Complain(step.error());
  quern::Result<quern::Program> program = Generation(*step, options.context).Compile(options);
  if (!program.ok()) return Complain(program.error());
  quern::Result<quern::Session> session = quern::Session::Open(path, options);
  if (!session.ok()) return Complain(session.error());

  const std::vector<int32_t> first = {1}, counts = {count};
  std::vector<int32_t> tokens(options.context), stepped;
  std::vector<double> graph_times, session_times;
  for (int round = 0; round <= numbers["--rounds"]; ++round) {  // the first one compiles and warms up
    quern::Result<void> ran;
    const double in_graph = quern::bench::WallTime([&] {
      ran = program->Run({quern::In("first", first, {1}), quern::In("count", counts, {1})},
                         {quern::Out("tokens", tokens, {options.context})});
    });
    if (!ran.ok()) return Complain(ran.error());
    const double in_session = quern::bench::WallTime([&] { stepped = Stepped(*session, count); });
    if (round == 0) continue;
    graph_times.push_back(in_graph);
    session_times.push_back(in_session);
  }
  int same = 0;
  while (same < static_cast<int>(stepped.size()) && stepped[same] == tokens[same]) ++same;
  const double graph = quern::bench::Median(graph_times), stepping = quern::bench::Median(session_times);
  std::printf(
      "{\"model\":\"%s\",\"threads\":%d,\"tokens\":%d,\"graph_tps\":%.1f,\"session_tps\":%.1f,\"ratio\":%.3f,"
      "\"quickest\":%.3f,\"same\":%d}\n",
      path.substr(path.rfind('/') + 1).c_str(), options.threads, count, count / graph, count / stepping,
      stepping / graph,
      *std::min_element(session_times.begin(), session_times.end()) /
          *std::min_element(graph_times.begin(), graph_times.end()),
      same);
  return 0;
}
