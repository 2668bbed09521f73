// Runs PTX text on the CPU: the instructions that codegen/ptx emits, a block of threads after the other.
//
//   QUERN_ASSIGN(PtxModule module, PtxModule::Parse(text));
//   QUERN_RETURN_IF_ERROR(module.Find("norm")->Run({.begin = 0, .end = 3}, arguments, memory));
//
// The threads of a block go on by themselves until one stands at an instruction that needs others: a shuffle, matrix
// load or product waits for its warp, a product of four warps for those, a barrier for the block. Bytes of cp.async
// arrive no earlier than a wait asks for them. What a product of four warps reads from shared memory must have been
// fenced by the thread that stored it. Every access is checked: that it lies in one piece of memory, and is aligned.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "support/ptx_alu.h"

namespace quern::ptx {

// Memory that a kernel may touch. Read-only where it is not to write.
struct Piece {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

struct Chunks {
  int64_t begin = 0, end = 0;
  bool descending = false;  // threads begin with the last one
};

class PtxEntry {
 public:
  int64_t threads() const { return threads_; }
  size_t params() const { return params_; }
  // One argument a parameter: addresses are those of the pieces. Errors: an access outside of them, threads that wait
  // for different things.
  Status Run(const Chunks& chunks, std::span<const uint64_t> arguments, std::span<const Piece> memory) const;

 private:
  friend class Parser;
  friend class BlockRun;
  enum class Code : uint8_t {
    kAlu,
    kSplit,
    kJoin,
    kBranch,
    kLoad,
    kStore,
    kParam,
    kCopy,
    kCommit,
    kWait,
    kShuffle,
    kMatrix,
    kMultiply,
    kGroupMultiply,
    kGroupSync,
    kFence,
    kBarrier,
    kReturn
  };
  // Operands are numbers of registers; constants lie in registers of their own.
  struct Instruction {
    Code code = Code::kAlu;
    Alu alu = nullptr;
    int guard = -1;
    bool negated = false, shared = false, sign = false, bf16 = false;
    std::vector<int> to, from;
    int64_t offset = 0;
    int size = 0, target = 0, kind = 0;
    std::string text;
  };
  std::string symbol_;
  int64_t threads_ = 0;
  size_t params_ = 0;
  std::vector<Instruction> code_;
  std::vector<uint64_t> registers_;  // as a thread begins
  int64_t shared_bytes_ = 0;
  bool groups_ = false;                                                 // it has products of four warps
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> constants_;  // the module's tables in global memory
};

class PtxModule {
 public:
  // Errors: Unimplemented for an instruction that is not known.
  static StatusOr<PtxModule> Parse(std::string_view text);
  const PtxEntry* Find(const std::string& symbol) const;

 private:
  friend class Parser;
  std::map<std::string, PtxEntry> entries_;
};

}  // namespace quern::ptx
