#include "support/ptx_machine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>

#include "absl/strings/str_cat.h"
#include "base/half.h"

namespace quern::ptx {

constexpr size_t kWarp = 32, kGroup = 128;

// One block after the other; threads of each until they wait.
class BlockRun {
 public:
  using Code = PtxEntry::Code;
  using Instruction = PtxEntry::Instruction;

  BlockRun(const PtxEntry& entry, std::span<const uint64_t> arguments, std::span<const Piece> memory)
      : entry_(entry),
        arguments_(arguments),
        memory_(memory),
        threads_(static_cast<size_t>(entry.threads_)),
        shared_(static_cast<size_t>(entry.shared_bytes_) + 16),
        unfenced_(entry.groups_ ? shared_.size() : 0) {}

  Status Run(int64_t chunk, bool descending) {
    std::fill(shared_.begin(), shared_.end(), uint8_t{0xa5});  // whatever was there before
    for (size_t t = 0; t < threads_.size(); ++t) {
      Thread& thread = threads_[t];
      thread = {.registers = entry_.registers_};
      thread.registers[0] = t;
      thread.registers[1] = static_cast<uint64_t>(chunk);
    }
    while (status_.ok()) {
      for (size_t t = 0; t < threads_.size() && status_.ok(); ++t)
        Go(threads_[descending ? threads_.size() - 1 - t : t]);
      if (!status_.ok()) break;
      bool moved = false;
      for (size_t first = 0; first < threads_.size(); first += kWarp) moved = Together(&threads_[first]) || moved;
      for (size_t first = 0; first + kGroup <= threads_.size(); first += kGroup)
        moved = GroupTogether(&threads_[first]) || moved;
      if (moved) continue;
      const Code what = entry_.code_[threads_[0].at].code;
      for (const Thread& thread : threads_) {
        if (entry_.code_[thread.at].code != what) Fail(entry_.code_[thread.at], "threads wait for different things");
      }
      if (what == Code::kReturn || !status_.ok()) break;
      for (Thread& thread : threads_) ++thread.at;
    }
    return status_;
  }

 private:
  struct Copy {
    uint64_t to, from;
    int size;
    bool live;
  };
  struct Thread {
    std::vector<uint64_t> registers;
    size_t at = 0;
    std::vector<Copy> copies = {};                           // since the last commit
    std::deque<std::vector<Copy>> groups = {};               // by commit
    std::vector<std::pair<uint64_t, uint64_t>> stored = {};  // in shared memory, since the last fence: where, bytes
  };

  void Fail(const Instruction& instruction, const std::string& what) {
    if (status_.ok()) status_ = absl::InternalError(absl::StrCat(entry_.symbol_, ": ", instruction.text, ": ", what));
  }

  // `bytes` at an address, or nowhere, where they may be read.
  uint8_t* Place(const Instruction& instruction, bool shared, uint64_t address, uint64_t bytes) {
    if (address % bytes != 0) Fail(instruction, absl::StrCat(bytes, " bytes at ", address, ", which is not aligned"));
    if (shared) {
      if (address + bytes <= static_cast<uint64_t>(entry_.shared_bytes_)) return &shared_[address];
      Fail(instruction,
           absl::StrCat(bytes, " bytes at ", address, " of ", entry_.shared_bytes_, " bytes of shared memory"));
      return nowhere_;
    }
    auto inside = [&](const Piece& piece) {
      const uint64_t start = reinterpret_cast<uint64_t>(piece.data);
      return address >= start && address - start + bytes <= piece.bytes;
    };
    if (last_ < memory_.size() && inside(memory_[last_])) return reinterpret_cast<uint8_t*>(address);
    for (last_ = 0; last_ < memory_.size(); ++last_) {
      if (inside(memory_[last_])) return reinterpret_cast<uint8_t*>(address);
    }
    for (const auto& constant : entry_.constants_) {
      if (inside({const_cast<uint8_t*>(constant->data()), constant->size()}))
        return reinterpret_cast<uint8_t*>(address);
    }
    Fail(instruction, absl::StrCat(bytes, " bytes outside of every parameter"));
    return nowhere_;
  }

  // Until the thread waits: at what it waits for.
  void Go(Thread& thread) {
    uint64_t* const registers = thread.registers.data();
    while (status_.ok()) {
      const Instruction& instruction = entry_.code_[thread.at];
      if (instruction.guard >= 0 && (registers[instruction.guard] != 0) == instruction.negated) {
        ++thread.at;
        continue;
      }
      switch (instruction.code) {
        case Code::kAlu:
          registers[instruction.to[0]] = instruction.alu(registers[instruction.from[0]], registers[instruction.from[1]],
                                                         registers[instruction.from[2]]);
          break;
        case Code::kSplit:
          for (size_t i = 0; i < instruction.to.size(); ++i) {
            registers[instruction.to[i]] =
                registers[instruction.from[0]] >> i * instruction.size & ((uint64_t{1} << instruction.size) - 1);
          }
          break;
        case Code::kJoin: {
          uint64_t all = 0;
          for (size_t i = 0; i < instruction.from.size(); ++i) {
            all |= (registers[instruction.from[i]] & ((uint64_t{1} << instruction.size) - 1)) << i * instruction.size;
          }
          registers[instruction.to[0]] = all;
          break;
        }
        case Code::kBranch: thread.at = static_cast<size_t>(instruction.target); continue;
        case Code::kParam: registers[instruction.to[0]] = arguments_[instruction.target]; break;
        case Code::kLoad: Load(instruction, registers); break;
        case Code::kStore:
          Store(instruction, registers);
          if (instruction.shared) {
            NoteStore(thread, registers[instruction.from[0]] + static_cast<uint64_t>(instruction.offset),
                      (instruction.from.size() - 1) * static_cast<size_t>(instruction.size));
          }
          break;
        case Code::kCopy:
          thread.copies.push_back({registers[instruction.from[0]] + static_cast<uint64_t>(instruction.offset),
                                   registers[instruction.from[1]] + static_cast<uint64_t>(instruction.target),
                                   instruction.size,
                                   instruction.from.size() < 3 || registers[instruction.from[2]] != 0});
          break;
        case Code::kCommit:
          thread.groups.push_back(std::move(thread.copies));
          thread.copies.clear();
          break;
        case Code::kWait:
          for (; thread.groups.size() > static_cast<size_t>(instruction.size); thread.groups.pop_front()) {
            for (const Copy& copy : thread.groups.front()) {
              Arrive(instruction, copy);
              NoteStore(thread, copy.to, static_cast<uint64_t>(copy.size));
            }
          }
          break;
        case Code::kFence:
          for (const auto& [at, bytes] : thread.stored)
            std::fill_n(unfenced_.begin() + static_cast<int64_t>(at), bytes, false);
          thread.stored.clear();
          break;
        case Code::kShuffle:
        case Code::kMatrix:
        case Code::kMultiply:
        case Code::kGroupMultiply:
        case Code::kGroupSync:
        case Code::kBarrier:
        case Code::kReturn: return;
      }
      ++thread.at;
    }
  }

  void Load(const Instruction& instruction, uint64_t* registers) {
    const size_t count = instruction.to.size();
    const uint64_t address = registers[instruction.from[0]] + static_cast<uint64_t>(instruction.offset);
    const uint8_t* from =
        Place(instruction, instruction.shared, address, count * static_cast<size_t>(instruction.size));
    for (size_t i = 0; i < count; ++i, from += instruction.size) {
      uint64_t value = 0;
      std::memcpy(&value, from, static_cast<size_t>(instruction.size));
      const int rest = 64 - 8 * instruction.size;
      if (instruction.sign) value = static_cast<uint64_t>(static_cast<int64_t>(value << rest) >> rest);
      registers[instruction.to[i]] = value;
    }
  }
  void Store(const Instruction& instruction, const uint64_t* registers) {
    const size_t count = instruction.from.size() - 1;
    const uint64_t address = registers[instruction.from[0]] + static_cast<uint64_t>(instruction.offset);
    uint8_t* to = Place(instruction, instruction.shared, address, count * static_cast<size_t>(instruction.size));
    for (size_t i = 0; i < count; ++i, to += instruction.size)
      std::memcpy(to, &registers[instruction.from[i + 1]], static_cast<size_t>(instruction.size));
  }
  void Arrive(const Instruction& instruction, const Copy& copy) {
    uint8_t* const to = Place(instruction, true, copy.to, static_cast<uint64_t>(copy.size));
    if (!copy.live)
      std::memset(to, 0, static_cast<size_t>(copy.size));
    else
      std::memcpy(to, Place(instruction, false, copy.from, static_cast<uint64_t>(copy.size)),
                  static_cast<size_t>(copy.size));
  }

  void NoteStore(Thread& thread, uint64_t at, uint64_t bytes) {
    if (unfenced_.empty() || !status_.ok()) return;
    std::fill_n(unfenced_.begin() + static_cast<int64_t>(at), bytes, true);
    thread.stored.emplace_back(at, bytes);
  }

  // What four warps do as one, likewise.
  bool GroupTogether(Thread* group) {
    const Instruction& instruction = entry_.code_[group[0].at];
    if (instruction.code != Code::kGroupMultiply && instruction.code != Code::kGroupSync) return false;
    for (size_t t = 1; t < kGroup; ++t) {
      if (group[t].at != group[0].at) return false;
    }
    if (instruction.code == Code::kGroupMultiply) MultiplyOfGroup(instruction, group);
    for (size_t t = 0; t < kGroup; ++t) ++group[t].at;
    return true;
  }

  // wgmma.m64nNk16, both operands by descriptors, without swizzling and K-major: halves (row, k) in parts of 8 x 8.
  void MultiplyOfGroup(const Instruction& instruction, Thread* group) {
    const auto columns = static_cast<size_t>(instruction.size);
    auto operand = [&](int number, size_t rows) {
      const uint64_t descriptor = group[0].registers[instruction.from[static_cast<size_t>(number)]];
      for (size_t t = 1; t < kGroup; ++t) {
        if (group[t].registers[instruction.from[static_cast<size_t>(number)]] != descriptor)
          Fail(instruction, "threads with other descriptors");
      }
      if (descriptor >> 62 != 0) Fail(instruction, "a swizzled operand");
      auto field = [&](int at) { return (descriptor >> at & 0x3fff) << 4; };
      std::vector<float> values(rows * 16);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t k = 0; k < 16; ++k) {
          const uint64_t address = field(0) + r / 8 * field(32) + k / 8 * field(16) + r % 8 * 16 + k % 8 * 2;
          uint16_t bits = 0;
          std::memcpy(&bits, Place(instruction, true, address, 2), 2);
          if (status_.ok() && (unfenced_[address] || unfenced_[address + 1]))
            Fail(instruction, absl::StrCat("shared memory at ", address, " was stored, not fenced"));
          values[r * 16 + k] = instruction.bf16 ? BFloat16ToFloat(bits) : HalfToFloat(bits);
        }
      }
      return values;
    };
    const std::vector<float> left = operand(0, 64), right = operand(1, columns);
    for (size_t t = 0; t < kGroup && status_.ok(); ++t) {
      std::vector<uint64_t>& registers = group[t].registers;
      const size_t lane = t % kWarp;
      for (size_t r = 0; r < instruction.to.size(); ++r) {
        const size_t row = t / kWarp * 16 + lane / 4 + r % 4 / 2 * 8, column = r / 4 * 8 + lane % 4 * 2 + r % 2;
        uint64_t& sum = registers[instruction.to[r]];
        double total = registers[instruction.from[2]] == 0 ? 0 : std::bit_cast<float>(static_cast<uint32_t>(sum));
        for (size_t k = 0; k < 16; ++k)
          total += static_cast<double>(left[row * 16 + k]) * static_cast<double>(right[column * 16 + k]);
        sum = std::bit_cast<uint32_t>(static_cast<float>(total));
      }
    }
  }

  // What a warp does as one, if all its threads have come there.
  bool Together(Thread* warp) {
    const Instruction& instruction = entry_.code_[warp[0].at];
    if (instruction.code != Code::kShuffle && instruction.code != Code::kMatrix && instruction.code != Code::kMultiply)
      return false;
    for (size_t lane = 1; lane < kWarp; ++lane) {
      if (warp[lane].at != warp[0].at) return false;
    }
    if (instruction.code == Code::kShuffle) Shuffle(instruction, warp);
    if (instruction.code == Code::kMatrix) LoadMatrices(instruction, warp);
    if (instruction.code == Code::kMultiply) Multiply(instruction, warp);
    for (size_t lane = 0; lane < kWarp; ++lane) ++warp[lane].at;
    return true;
  }

  void Shuffle(const Instruction& instruction, Thread* warp) {
    uint64_t given[kWarp];
    for (size_t lane = 0; lane < kWarp; ++lane) given[lane] = warp[lane].registers[instruction.from[0]] & 0xffffffff;
    for (size_t lane = 0; lane < kWarp; ++lane) {
      const size_t by = warp[lane].registers[instruction.from[1]] & 31;
      const size_t from = instruction.kind == 0   ? lane ^ by
                          : instruction.kind == 2 ? by
                          : lane + by < kWarp     ? lane + by
                                                  : lane;
      warp[lane].registers[instruction.to[0]] = given[from];
    }
  }

  // ldmatrix: of each part of 8 x 8 halves, row l / 4, its two neighbours at 2 (l % 4).
  void LoadMatrices(const Instruction& instruction, Thread* warp) {
    for (size_t part = 0; part < instruction.to.size(); ++part) {
      for (size_t row = 0; row < 8; ++row) {
        const uint64_t address =
            warp[8 * part + row].registers[instruction.from[0]] + static_cast<uint64_t>(instruction.offset);
        const uint8_t* const bytes = Place(instruction, true, address, 16);
        for (size_t pair = 0; pair < 4; ++pair) {
          uint32_t value = 0;
          std::memcpy(&value, bytes + 4 * pair, 4);
          warp[4 * row + pair].registers[instruction.to[part]] = value;
        }
      }
    }
  }

  // m16n8k16; fragments as the PTX ISA says.
  void Multiply(const Instruction& instruction, Thread* warp) {
    float left[16][16], right[16][8];
    auto half = [&](uint64_t word, int part) {
      const auto bits = static_cast<uint16_t>(word >> 16 * part);
      return instruction.bf16 ? BFloat16ToFloat(bits) : HalfToFloat(bits);
    };
    for (size_t lane = 0; lane < kWarp; ++lane) {
      const size_t group = lane / 4, pair = lane % 4 * 2;
      const std::vector<uint64_t>& registers = warp[lane].registers;
      for (size_t r = 0; r < 4; ++r) {
        for (int part = 0; part < 2; ++part)
          left[group + 8 * (r % 2)][pair + part + 8 * (r / 2)] = half(registers[instruction.from[r]], part);
      }
      for (size_t r = 0; r < 2; ++r) {
        for (int part = 0; part < 2; ++part)
          right[pair + part + 8 * r][group] = half(registers[instruction.from[4 + r]], part);
      }
    }
    for (size_t lane = 0; lane < kWarp; ++lane) {
      const size_t group = lane / 4, pair = lane % 4 * 2;
      std::vector<uint64_t>& registers = warp[lane].registers;
      float sums[4];
      for (size_t r = 0; r < 4; ++r) {
        const float* const row = left[group + 8 * (r / 2)];
        const size_t column = pair + r % 2;
        double sum = std::bit_cast<float>(static_cast<uint32_t>(registers[instruction.from[6 + r]]));
        for (size_t k = 0; k < 16; ++k) sum += static_cast<double>(row[k]) * static_cast<double>(right[k][column]);
        sums[r] = static_cast<float>(sum);
      }
      for (size_t r = 0; r < 4; ++r) registers[instruction.to[r]] = std::bit_cast<uint32_t>(sums[r]);
    }
  }

  const PtxEntry& entry_;
  std::span<const uint64_t> arguments_;
  std::span<const Piece> memory_;
  std::vector<Thread> threads_;
  std::vector<uint8_t> shared_;
  std::vector<bool> unfenced_;  // by byte of it; empty where no product of four warps reads
  size_t last_ = 0;             // the piece that the last access lay in
  uint8_t nowhere_[64] = {};
  Status status_;
};

Status PtxEntry::Run(const Chunks& chunks, std::span<const uint64_t> arguments, std::span<const Piece> memory) const {
  if (arguments.size() != params_)
    return absl::InvalidArgumentError(absl::StrCat(symbol_, ": ", arguments.size(), " arguments, of ", params_));
  BlockRun run(*this, arguments, memory);
  for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk)
    QUERN_RETURN_IF_ERROR(run.Run(chunk, chunks.descending));
  return absl::OkStatus();
}

}  // namespace quern::ptx
