// Executor: runs programs on a device. Weights are copied there once, state (a KV cache) lives there, inputs are copied
// in and outputs out; the variant is chosen by each run, and made when a run first needs it.
//
//   QUERN_ASSIGN(auto executor, Executor::Create(device, SignatureOf(graph), std::move(variants)));
//   QUERN_RETURN_IF_ERROR(executor->BindParam("w", bytes));
//   QUERN_RETURN_IF_ERROR(executor->Run(inputs, outputs, {{"SEQ", 5}}));
//
// A variant's launches are recorded when it runs for the second time, where the device can: a step of a language model
// is some hundred launches that take less time than a driver needs to take them one by one. Between two steps few of
// them change (their number of chunks, a pointer, or a symbol such as the position, which are arguments), and only
// those are updated: no launch is recorded again, and none reads sizes from memory. Where the launches that have chunks
// are other ones, they are recorded anew.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/program.h"
#include "runtime/runnable.h"

namespace quern::device {

// A program and what a device loads for it.
struct LoadableProgram {
  Program program;  // verifies
  ModuleSource source;
};

// Several may be of one program, which is loaded once.
struct LazyVariant {
  SymbolRanges guard;
  std::function<StatusOr<std::shared_ptr<const LoadableProgram>>()> make;
  int index = 0;  // of the program's variants
};
// All variants of a program that is there.
std::vector<LazyVariant> VariantsOf(const std::shared_ptr<const LoadableProgram>& program);

// What a device needs to load `program`: its entries.
std::vector<ModuleSource::Entry> EntriesOf(const Program& program);

class Executor : public Runnable {
 public:
  // State is allocated and zero. Errors: a state without a largest size; those of the device.
  // `cancel`: a run ends with Cancelled as soon as it is true, between two launches or trips; null: nobody asks.
  static StatusOr<std::unique_ptr<Executor>> Create(std::shared_ptr<Device> device, Signature signature,
                                                    std::vector<LazyVariant> variants,
                                                    const std::atomic<bool>* cancel = nullptr);
  ~Executor() override;

  const Signature& signature() const override;
  // The bytes are copied to the device before it returns.
  Status BindParam(std::string_view name, std::span<const uint8_t> bytes) override;
  Status Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
             const Binding& symbols) override;
  Status Prepare(const Binding& symbols) override;
  const Report& report() const override;

  // The bytes of a state, copied from and to the device. Errors: an unknown name, another length.
  StatusOr<std::vector<uint8_t>> ReadState(std::string_view name);
  Status WriteState(std::string_view name, std::span<const uint8_t> bytes);

  // Launches of the last run; how many of them were updated in a recording, and whether they were replayed.
  struct LastRun {
    int launches = 0, updates = 0;
    bool replayed = false;
  };
  const LastRun& last() const;

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> s_;
};

}  // namespace quern::device
