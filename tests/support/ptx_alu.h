// The instructions of PTX that compute in one thread, by opcode. Registers are 64 bits, of which an instruction takes
// the low ones.
#pragma once

#include <cstdint>
#include <string>

namespace quern::ptx {

using Alu = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c);

// "fma.rn.f32"; null when there is none.
Alu FindAlu(const std::string& opcode);

}  // namespace quern::ptx
