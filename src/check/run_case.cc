#include "check/run_case.h"

#include <algorithm>

#include "check/value.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

StatusOr<const std::vector<uint8_t>*> BytesFor(const Bytes& all, const std::string& name, int64_t expected) {
  const auto found = all.find(name);
  if (found == all.end()) return absl::InvalidArgumentError(absl::StrFormat("there are no bytes for %s", name));
  if (static_cast<int64_t>(found->second.size()) != expected) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has %u bytes, %d expected", name, found->second.size(), expected));
  }
  return &found->second;
}

}  // namespace

StatusOr<Ran> RunCase(const ir::Graph& fused, const lir::Plan& plan, const Binding& sizes, const Bytes& bytes,
                      ExecutableOptions options) {
  Variant variant{{}, [&plan]() -> StatusOr<lir::Plan> { return plan; }};
  QUERN_ASSIGN(const std::unique_ptr<Executable> executable,
               Executable::Create(SignatureOf(fused), {std::move(variant)}, std::move(options)));
  const Signature& signature = executable->signature();
  for (const Port& port : signature.params) {
    QUERN_ASSIGN(const int64_t expected, BytesOf(port.type, true, sizes));
    QUERN_ASSIGN(const std::vector<uint8_t>* from, BytesFor(bytes, port.name, expected));
    QUERN_RETURN_IF_ERROR(executable->BindParam(port.name, *from));
  }
  for (const Port& port : signature.states) {
    QUERN_ASSIGN(const int64_t expected, BytesOf(port.type, false, sizes));
    QUERN_ASSIGN(const std::vector<uint8_t>* from, BytesFor(bytes, port.name, expected));
    QUERN_ASSIGN(const std::span<uint8_t> state, executable->State(port.name));
    if (state.size() < from->size())
      return absl::InvalidArgumentError(absl::StrFormat("state %s is larger than its type allows", port.name));
    std::copy(from->begin(), from->end(), state.begin());
  }
  std::vector<ConstBytes> inputs;
  for (const Port& port : signature.inputs) {
    QUERN_ASSIGN(const int64_t expected, BytesOf(port.type, false, sizes));
    QUERN_ASSIGN(const std::vector<uint8_t>* from, BytesFor(bytes, port.name, expected));
    inputs.push_back({from->data(), expected});
  }
  std::vector<std::vector<uint8_t>> results;
  for (const ir::Value& output : fused.outputs) {
    QUERN_ASSIGN(const int64_t size, BytesOf(RoomFor(signature, {"", fused.type(output)}).type, false, sizes));
    results.emplace_back(size, uint8_t{0xCD});
  }
  std::vector<MutableBytes> outputs;
  for (const Port& port : signature.outputs)
    outputs.push_back({results[port.output].data(), static_cast<int64_t>(results[port.output].size())});
  Binding symbols;
  for (const auto& [symbol, range] : signature.symbols) {
    if (const auto value = sizes.find(symbol); value != sizes.end()) symbols[symbol] = value->second;
  }
  QUERN_RETURN_IF_ERROR(executable->Run(inputs, outputs, symbols));
  for (const ir::Donation& donation : fused.donations) {
    QUERN_ASSIGN(const std::span<uint8_t> state, executable->State(donation.input));
    std::copy_n(state.begin(), results[donation.output].size(), results[donation.output].begin());
  }
  const Binding known = executable->last_sizes();
  for (size_t o = 0; o < results.size(); ++o) {
    QUERN_ASSIGN(const int64_t size, BytesOf(fused.type(fused.outputs[o]), false, known));
    results[o].resize(size);
  }
  return Ran{std::move(results), known};
}

StatusOr<ir::Feeds> FeedsOf(const ir::Graph& graph, const Binding& sizes, const Bytes& bytes) {
  ir::Feeds feeds;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->kind != ir::OpKind::kLeaf || ir::IsConstant(node)) continue;
    const bool parameter = ir::IsParam(node);
    const std::string& name = node.attributes.String("name");
    QUERN_ASSIGN(const int64_t expected, BytesOf(node.results[0], parameter, sizes));
    QUERN_ASSIGN(const std::vector<uint8_t>* from, BytesFor(bytes, name, expected));
    QUERN_ASSIGN(feeds[name], Decode(node.results[0], parameter, sizes, *from));
  }
  return feeds;
}

}  // namespace quern::check
