// Blocks of threads: the agents of a chunk go through its statements together. A loop goes on while any agent does; an
// `if` runs each branch with those that take it. A barrier, copy or pipeline that not all threads of the block reach
// stops the run, as does an access that races (interpret_memory.h).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kir/interpret_machine.h"
#include "kir/parts.h"

namespace quern::kir::interpret {

void Machine::RunBlock() {
  Agent block;
  block.slots = root_slots_;
  block.views = program_.views;
  block.count = program_.watch.threads;
  ++program_.watch.moment;
  program_.watch.chunk = chunk_;
  for (Memory& memory : program_.memories) {
    memory.watch = &program_.watch;
    // What a chunk allocates starts anew.
    if (!memory.storage.empty()) memory.uses.clear();
  }
  Together(program_.body, {&block});
}

void Machine::Select(Agent& agent) {
  slots_ = agent.slots.data();
  views_ = agent.views.data();
  program_.watch.first = agent.first;
  program_.watch.count = agent.count;
}

void Machine::Together(const Steps& steps, const Agents& agents) {
  for (const auto& step : steps) {
    if (failed_ || agents.empty()) return;
    const Step* outer = step_;
    step_ = step.get();
    TogetherOne(*step, agents);
    step_ = outer;
  }
}

void Machine::TogetherOne(const Step& step, const Agents& agents) {
  if (!step.collective) {
    for (Agent* agent : agents) {
      Select(*agent);
      ExecuteOne(step);
      if (failed_) return;
    }
    return;
  }
  std::visit(Overloaded{
                 [&](const kir::Loop& loop) {
                   loop.kind == LoopKind::kThread ? OpenThreads(step, agents) : LoopTogether(step, agents);
                 },
                 [&](const kir::If&) {
                   Agents yes, no;
                   for (Agent* agent : agents) {
                     Select(*agent);
                     (Integer(*step.value) != 0 ? yes : no).push_back(agent);
                   }
                   Together(step.body, yes);
                   Together(step.else_body, no);
                 },
                 [&](const kir::Barrier&) { Barrier(agents); },
                 [&](const kir::Copy&) { RunCopy(step, agents); },
                 [&](const kir::Pipeline&) { RunPipeline(step, agents); },
                 [&](const kir::Shuffle&) { RunShuffle(step, agents); },
                 [&](const auto&) { FailWith("has no meaning for several threads"); },
             },
             step.source->node);
}

void Machine::LoopTogether(const Step& step, const Agents& agents) {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // what is left of each agent's
  for (Agent* agent : agents) {
    Select(*agent);
    const int64_t low = Integer(*step.low);
    ranges.emplace_back(low, Integer(*step.high));
  }
  while (!failed_) {
    Agents active;
    for (size_t a = 0; a < agents.size(); ++a) {
      if (ranges[a].first >= ranges[a].second) continue;
      agents[a]->slots[step.slot].integer = ranges[a].first;
      ranges[a].first += step.step;
      active.push_back(agents[a]);
    }
    if (active.empty()) return;
    Together(step.body, active);
  }
}

void Machine::OpenThreads(const Step& step, const Agents& parents) {
  std::deque<Agent> children;
  Agents all;
  for (Agent* parent : parents) {
    Select(*parent);
    const int count = static_cast<int>(Integer(*step.high));
    const int each = Row(step.level).threads;
    if (count * each != parent->count) {
      FailWith(absl::StrCat("makes ", count * each, " threads of ", parent->count));
      return;
    }
    for (int i = 0; i < count; ++i) {
      Agent& child = children.emplace_back();
      child.slots = parent->slots;
      child.views = parent->views;
      child.first = parent->first + i * each;
      child.count = each;
      child.slots[step.slot].integer = i;
      for (int view : step.privates) {
        Memory& own = child.own.emplace_back();
        own.name = program_.views[view].memory->name;
        own.bytes = program_.views[view].memory->bytes;
        own.writable = true;
        own.storage.assign(static_cast<size_t>(own.bytes), 0);
        own.data = own.storage.data();
        own.Undefine();
        child.views[view].memory = &own;
      }
      all.push_back(&child);
    }
  }
  Together(step.body, all);
}

bool Machine::WholeBlock(const char* what, const Agents& agents) {
  int count = 0;
  for (const Agent* agent : agents) count += agent->count;
  if (count == program_.watch.threads) return true;
  Select(*agents[0]);
  return FailWith(absl::StrCat(what, " is reached by ", count, " of ", program_.watch.threads, " threads"));
}

void Machine::Barrier(const Agents& agents) {
  if (WholeBlock("the barrier", agents)) ++program_.watch.moment;
}

bool Machine::Agree(const Node& node, const Agents& agents, int64_t& value) {
  for (size_t a = 0; a < agents.size(); ++a) {
    Select(*agents[a]);
    const int64_t own = Integer(node);
    if (a > 0 && own != value) return FailWith(absl::StrCat("has the bound ", own, " where others have ", value));
    value = own;
  }
  return !failed_;
}

void Machine::RunPipeline(const Step& step, const Agents& agents) {
  int64_t low = 0, high = 0;
  if (!WholeBlock("the pipeline", agents) || !Agree(*step.low, agents, low) || !Agree(*step.high, agents, high)) return;
  // Each iteration may have a buffer of its own: what it did not fetch, and what earlier ones did, is not there.
  auto forget = [&] {
    for (const auto& copy : step.body) agents[0]->views[copy->dst.view].memory->Undefine();
  };
  for (int64_t i = low; i < high && !failed_; i += step.step) {
    for (Agent* agent : agents) agent->slots[step.slot].integer = i;
    forget();
    Together(step.body, agents);
    ++program_.watch.moment;
    Together(step.else_body, agents);
    ++program_.watch.moment;
  }
  forget();
}

void Machine::RunCopy(const Step& step, const Agents& agents) {
  if (!WholeBlock("the copy", agents)) return;
  Select(*agents[0]);
  program_.watch.first = 0;
  program_.watch.count = program_.watch.threads;
  View dst, src;
  if (!Cut(step.dst, dst) || !Cut(step.src, src)) return;
  if (dst.rank != src.rank) {
    FailWith(absl::StrCat(src.rank, " ranged dimensions to ", dst.rank));
    return;
  }
  int64_t total = 1;
  for (int d = 0; d < dst.rank; ++d) {
    total *= dst.size[d];
    if (src.size[d] > dst.size[d]) {
      FailWith(absl::StrCat("dimension ", d, " has ", src.size[d], " to copy and room for ", dst.size[d]));
      return;
    }
  }
  int64_t index[kMaxRank];
  for (int64_t i = 0; i < total && !failed_; ++i) {
    bool live = true;
    for (int64_t d = dst.rank - 1, rest = i; d >= 0; --d) {
      index[d] = rest % dst.size[d];
      rest /= dst.size[d];
      live = live && index[d] < src.size[d];
    }
    Value value{.integer = 0};  // of floats, too, this is 0
    if (live && !Check(ReadConverted(src, index, value), src, index)) return;
    if (!Check(WriteElement(dst, index, value), dst, index)) return;
  }
}

void Machine::RunShuffle(const Step& step, const Agents& agents) {
  std::vector<Value> values;
  std::vector<int64_t> lanes;
  for (Agent* agent : agents) {
    Select(*agent);
    if (agent->count != 1) {
      FailWith("a shuffle is between lanes");
      return;
    }
    values.push_back(Evaluate(*step.value));
    lanes.push_back(Integer(*step.low));
    if (failed_) return;
  }
  for (size_t a = 0; a < agents.size(); ++a) {
    const int lane = agents[a]->first % kWarpThreads, warp = agents[a]->first - lane;
    int64_t from = lanes[a];
    if (step.shuffle == ShuffleKind::kXor) from = lane ^ lanes[a];
    if (step.shuffle == ShuffleKind::kDown) from = lane + lanes[a];
    if (step.shuffle == ShuffleKind::kDown && from >= kWarpThreads) from = lane;
    const auto source =
        std::find_if(agents.begin(), agents.end(), [&](const Agent* other) { return other->first == warp + from; });
    if (from < 0 || from >= kWarpThreads || source == agents.end()) {
      Select(*agents[a]);
      FailWith(absl::StrCat("lane ", lane, " asks lane ", from, ", which is not there"));
      return;
    }
    agents[a]->slots[step.slot] = values[source - agents.begin()];
  }
}

}  // namespace quern::kir::interpret
