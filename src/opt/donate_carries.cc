// Carries that a body writes over in place are donated to what the body returns, as a state is to an output of the
// graph:
//
//   %2:2 = While(%0, %1) {..} body graph body {                      %2:2 = While(%0, %1) {..} body graph body {
//     %0 = Input() {name = "i"} : i64[]                               ...
//     %1 = Input() {name = "cache"} : f16[64, 8]               =>     return %3, %4
//     ...                                                             donate "cache" -> 1
//     %4 = Update(%1, %2) {..} : f16[64, 8]                         }
//     return %3, %4 }
//
// That is so where the body's only reader of the carry takes over its memory (an Update of it, or a node with bodies
// that does so in turn) and the result is what the body returns in the carry's place. Likewise for a result of If, when
// one branch writes over the capture that the other returns as it is, or both do. Planning makes sure that the
// operand's memory may be written.
//
// A graph with a While that may fail (max > 0) has its states written at the very end, once nothing can fail any more:
// a run that fails leaves them as they were.

#include <algorithm>
#include <optional>

#include "ir/control.h"
#include "ir/counted.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

const std::string& InputName(const ir::Graph& graph, int input) {
  return graph.node(graph.Inputs()[input]).attributes.String("name");
}

// The result that is written over the memory of an operand of this node, if one is.
std::optional<int> TakenBy(const ir::Node& node, int operand) {
  if (const std::optional<ir::Takeover> takeover = ir::TakeoverOf(node))
    return operand == takeover->operand ? std::optional(takeover->result) : std::nullopt;
  if (node.bodies.empty() || !ir::IsControl(node)) return std::nullopt;
  const ir::Graph& body = *node.bodies.back();
  const int input = ir::IsBranch(node) ? operand - 1 : operand;
  for (const ir::Donation& donation : body.donations) {
    if (input >= 0 && donation.input == InputName(body, input)) return donation.output;
  }
  return std::nullopt;
}

// Whether the body hands input `input` back as output `output` in its own memory: written over by its only reader.
bool WritesOver(const ir::Graph& body, int input, int output) {
  const int leaf = body.Inputs()[input];
  const auto users = body.Users();
  if (users[leaf].size() != 1) return false;
  const bool returned =
      std::any_of(body.outputs.begin(), body.outputs.end(), [&](const Value& value) { return value.node == leaf; });
  const auto [user, operand] = users[leaf][0];
  const std::optional<int> result = TakenBy(body.node(user), operand);
  return !returned && result && body.outputs[output] == Value{user, *result};
}

bool Returns(const ir::Graph& body, int input, int output) {
  return body.outputs[output] == Value{body.Inputs()[input], 0};
}

void Donate(ir::Graph& body, int input, int output) { body.donations.push_back({output, InputName(body, input)}); }

// Marks in the bodies of `node`, which have been rewritten themselves.
void DonateLoop(int carries, ir::Graph& body) {
  for (int c = 0; c < carries; ++c) {
    if (WritesOver(body, c, c)) Donate(body, c, c);
  }
}

void DonateBranches(ir::Graph& then, ir::Graph& otherwise) {
  std::vector<bool> taken(then.Inputs().size());
  for (int r = 0; r < static_cast<int>(then.outputs.size()); ++r) {
    for (int i = 0; i < static_cast<int>(taken.size()); ++i) {
      const bool first = WritesOver(then, i, r), second = WritesOver(otherwise, i, r);
      if (taken[i] || !(first || second)) continue;
      if (!first && !Returns(then, i, r)) continue;
      if (!second && !Returns(otherwise, i, r)) continue;
      taken[i] = true;
      Donate(then, i, r);
      Donate(otherwise, i, r);
      break;
    }
  }
}

StatusOr<ir::Graph> DonateIn(const ir::Graph& graph) {
  Rewriter rewriter(graph, "donate_carries", nullptr);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (node.bodies.empty() || !ir::IsControl(node)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    std::vector<ir::Graph> bodies;
    for (const auto& body : node.bodies) {
      QUERN_ASSIGN(bodies.emplace_back(), DonateIn(*body));
    }
    if (ir::IsBranch(node))
      DonateBranches(bodies[ir::kThen], bodies[ir::kElse]);
    else
      DonateLoop(ir::Carries(node), bodies.back());
    std::vector<std::shared_ptr<const ir::Graph>> kept;
    for (ir::Graph& body : bodies) kept.push_back(std::make_shared<const ir::Graph>(std::move(body)));
    QUERN_RETURN_IF_ERROR(rewriter.CopyAs(n, node.attributes, node.results[0], std::move(kept)));
  }
  return rewriter.Finish();
}

bool MayFail(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    if (ir::IsCounted(node)) return true;  // sizes may not go with the count
    const ir::AttrValue* const max = node.attributes.Find("max");
    if (ir::IsControl(node) && max != nullptr && std::get<int64_t>(*max) > 0) return true;
    return std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) { return MayFail(*body); });
  });
}

// Every Update of a state, or loop over one, works on a copy of it.
StatusOr<ir::Graph> CopyStates(const ir::Graph& graph) {
  Rewriter rewriter(graph, "donate_carries", nullptr);
  const auto users = graph.Users();
  for (int n = 0; n < rewriter.size(); ++n) {
    QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
    const ir::Node& node = graph.node(n);
    const bool state = ir::IsInput(node) &&
                       std::any_of(graph.donations.begin(), graph.donations.end(), [&](const ir::Donation& donation) {
                         return donation.input == node.attributes.String("name");
                       });
    const bool written = std::any_of(users[n].begin(), users[n].end(), [&](const auto& use) {
      return TakenBy(graph.node(use.first), use.second).has_value();
    });
    if (!state || !written) continue;
    QUERN_ASSIGN(const Value copy, ir::MakeCopy(rewriter.Maker(n), rewriter.Now(Value{n, 0}), node.results[0].dtype));
    rewriter.Replace({n, 0}, copy);
  }
  return rewriter.Finish();
}

}  // namespace

StatusOr<ir::Graph> DonateCarries(const ir::Graph& graph) {
  const bool steps = std::any_of(graph.nodes().begin(), graph.nodes().end(), ir::IsControl);
  if (!steps) return graph;
  QUERN_ASSIGN(ir::Graph donated, DonateIn(graph));
  return MayFail(donated) ? CopyStates(donated) : donated;
}

}  // namespace quern::opt
