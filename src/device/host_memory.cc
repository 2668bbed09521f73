#include "device/host_memory.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace quern::device {

void HostMemoryDevice::Freed::operator()(uint8_t* memory) const { std::free(memory); }

StatusOr<Address> HostMemoryDevice::Allocate(int64_t bytes) {
  const auto size = static_cast<size_t>((bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign);
  Piece piece{std::unique_ptr<uint8_t, Freed>(static_cast<uint8_t*>(std::aligned_alloc(kMemoryAlign, size))), bytes};
  if (piece.memory == nullptr) return absl::ResourceExhaustedError(absl::StrFormat("no memory for %d bytes", bytes));
  std::memset(piece.memory.get(), 0xff, size);
  const auto address = reinterpret_cast<Address>(piece.memory.get());
  pieces_.emplace(address, std::move(piece));
  return address;
}

Status HostMemoryDevice::Free(Address address) {
  return pieces_.erase(address) == 1 ? absl::OkStatus() : absl::InvalidArgumentError("no memory to free");
}

Status HostMemoryDevice::CopyIn(Address to, const void* from, int64_t bytes) {
  QUERN_ASSIGN(uint8_t* const memory, Find(to, bytes, "a copy in"));
  std::memcpy(memory, from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

Status HostMemoryDevice::CopyOut(void* to, Address from, int64_t bytes) {
  QUERN_ASSIGN(const uint8_t* const memory, Find(from, bytes, "a copy out"));
  std::memcpy(to, memory, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

Status HostMemoryDevice::Fill(Address to, uint8_t value, int64_t bytes) {
  QUERN_ASSIGN(uint8_t* const memory, Find(to, bytes, "a fill"));
  std::memset(memory, value, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

std::span<uint8_t> HostMemoryDevice::PieceOf(Address address) const {
  auto next = pieces_.upper_bound(address);
  if (next == pieces_.begin()) return {};
  const auto& [start, piece] = *std::prev(next);
  if (address - start > static_cast<Address>(piece.bytes)) return {};
  return {piece.memory.get(), static_cast<size_t>(piece.bytes)};
}

StatusOr<uint8_t*> HostMemoryDevice::Find(Address address, int64_t bytes, const char* what) const {
  const std::span<uint8_t> piece = PieceOf(address);
  const auto at = static_cast<int64_t>(address - reinterpret_cast<Address>(piece.data()));
  if (!piece.empty() && bytes >= 0 && at <= static_cast<int64_t>(piece.size()) - bytes) return piece.data() + at;
  if (bytes == 0) return nullptr;
  return absl::InvalidArgumentError(absl::StrFormat("%s of %d bytes is not in the device's memory", what, bytes));
}

}  // namespace quern::device
