// Everything that is installed, used as another project would: a model that is run, and a graph that is built.
#include <quern/abi.h>
#include <quern/c.h>
#include <quern/cache.h>
#include <quern/call.h>
#include <quern/chat.h>
#include <quern/check.h>
#include <quern/compile.h>
#include <quern/custom.h>
#include <quern/dispatch.h>
#include <quern/embed.h>
#include <quern/extend.h>
#include <quern/graph.h>
#include <quern/kernel.h>
#include <quern/kit.h>
#include <quern/onnx.h>
#include <quern/ops.h>
#include <quern/plan.h>
#include <quern/precision.h>
#include <quern/profile.h>
#include <quern/quern.h>
#include <quern/result.h>
#include <quern/rt.h>
#include <quern/sequences.h>
#include <quern/text.h>
#include <quern/tick.h>
#include <quern/tokenizer.h>

#include <cstdio>
#include <vector>

namespace {

template <typename T>
bool Failed(const quern::Result<T>& result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.error().c_str());
  return !result.ok();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  quern::Result<quern::Session> session = quern::Session::Open(arguments[1]);
  if (Failed(session)) return 1;
  quern::Result<quern::Tokenizer> tokenizer = session->tokenizer();
  if (Failed(tokenizer)) return 1;
  std::vector<int32_t> ids = tokenizer->Encode("27+58=");
  quern::Sampler sampler{quern::SamplingOptions()};
  std::string text;
  while (ids.size() < 16) {
    quern::Result<std::vector<float>> logits = session->Step(ids);
    if (Failed(logits)) return 1;
    quern::Result<int32_t> next = sampler.Draw(*logits);
    if (Failed(next)) return 1;
    if (session->IsEnd(*next)) break;
    text += tokenizer->Piece(*next);
    ids = {*next};
  }
  std::printf("%s\n", text.c_str());

  quern::Graph graph("sums");
  const quern::Value x = graph.Input("x", "f32[2, 3]");
  graph.Output("y", graph.Op("Add", {x, x}));
  quern::Result<quern::Program> program = graph.Compile();
  if (Failed(program)) return 1;
  const float in[] = {1, 2, 3, 4, 5, 6};
  float out[6] = {};
  const quern::Result<void> ran = program->Run({quern::In("x", in, {2, 3})}, {quern::Out("y", out, {2, 3})});
  if (Failed(ran)) return 1;
  std::printf("%g\n", static_cast<double>(out[5]));
  return quern::Tokenizer::Open("/nonexistent").ok() || quern::OnnxModel::Open("/nonexistent").ok() ? 1 : 0;
}
