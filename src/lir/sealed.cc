#include "lir/sealed.h"

#include <type_traits>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "kir/kir.h"

namespace quern::lir {
namespace {

constexpr std::string_view kMagic = "QUERNPLN";
// Of what Writer and Reader say below: another order or another field is another number.
constexpr uint32_t kVersion = 3;

// Both directions are one list of fields: `Fields(io, value)` hands every field of a value to `io`, which writes it, or
// fills it from bytes.

class Writer {
 public:
  std::string bytes;

  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void operator()(const T& value) {
    PutBytes(bytes, value);
  }
  void operator()(const std::string& text) {
    PutBytes(bytes, static_cast<uint32_t>(text.size()));
    bytes += text;
  }
  // Nearly all are constants.
  void operator()(const Extent& extent) {
    PutBytes<uint8_t>(bytes, extent.is_constant());
    if (extent.is_constant())
      PutBytes(bytes, extent.constant());
    else
      (*this)(extent.ToString());
  }
  void operator()(const std::shared_ptr<const std::vector<uint8_t>>& data) {
    PutBytes<uint8_t>(bytes, data != nullptr);
    if (data == nullptr) return;
    PutBytes(bytes, static_cast<uint64_t>(data->size()));
    bytes.append(data->begin(), data->end());
  }
  // A kernel's head.
  void operator()(const kir::Kernel& kernel) {
    kir::Kernel head = kernel;
    head.body.clear();
    head.origins.clear();
    (*this)(kir::Print(head));
  }
  template <typename... Kinds>
  void operator()(const std::variant<Kinds...>& value) {
    PutBytes(bytes, static_cast<uint8_t>(value.index()));
    std::visit([this](const auto& kind) { (*this)(kind); }, value);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    PutBytes(bytes, static_cast<uint32_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
  template <typename Key, typename T, typename Less>
  void operator()(const std::map<Key, T, Less>& values) {
    PutBytes(bytes, static_cast<uint32_t>(values.size()));
    for (const auto& [key, value] : values) (*this)(key), (*this)(value);
  }
  template <typename T>
  void operator()(const std::set<T>& values) {
    PutBytes(bytes, static_cast<uint32_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
  template <typename T, size_t N>
  void operator()(const std::array<T, N>& values) {
    for (const T& value : values) (*this)(value);
  }
  template <typename T>
    requires std::is_class_v<T>
  void operator()(const T& value) {
    Fields(*this, const_cast<T&>(value));
  }
};

// After the first field that cannot be read the rest stays as it is.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : reader_(bytes) {}

  const Status& status() const { return status_; }
  uint64_t left() const { return reader_.left(); }

  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void operator()(T& value) {
    Take(reader_.Read<T>("a number"), value);
  }
  void operator()(std::string& text) {
    std::span<const uint8_t> bytes;
    Take(reader_.Take(Number<uint32_t>(), "a text"), bytes);
    text.assign(bytes.begin(), bytes.end());
  }
  void operator()(Extent& extent) {
    if (Number<uint8_t>() != 0) {
      extent = Number<int64_t>();
      return;
    }
    std::string text;
    (*this)(text);
    if (status_.ok()) Take(Extent::Parse(text), extent);
  }
  void operator()(std::shared_ptr<const std::vector<uint8_t>>& data) {
    if (Number<uint8_t>() == 0) return;
    std::span<const uint8_t> bytes;
    Take(reader_.Take(Number<uint64_t>(), "a constant"), bytes);
    data = std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end());
  }
  void operator()(kir::Kernel& kernel) {
    std::string text;
    (*this)(text);
    if (status_.ok()) Take(kir::ParseKernel(text), kernel);
  }
  template <typename... Kinds>
  void operator()(std::variant<Kinds...>& value) {
    const uint8_t index = Number<uint8_t>();
    size_t kind = 0;
    const auto fill = [&]<typename Kind>(Kind made) {
      if (kind++ != index) return;
      (*this)(made);
      value = std::move(made);
    };
    (fill(Kinds()), ...);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    for (uint32_t left = Count(); left > 0 && status_.ok(); --left) (*this)(values.emplace_back());
  }
  template <typename Key, typename T, typename Less>
  void operator()(std::map<Key, T, Less>& values) {
    for (uint32_t left = Count(); left > 0 && status_.ok(); --left) {
      Key key{};
      (*this)(key);
      (*this)(values[key]);
    }
  }
  template <typename T>
  void operator()(std::set<T>& values) {
    for (uint32_t left = Count(); left > 0 && status_.ok(); --left) {
      T value{};
      (*this)(value);
      values.insert(std::move(value));
    }
  }
  template <typename T, size_t N>
  void operator()(std::array<T, N>& values) {
    for (T& value : values) (*this)(value);
  }
  template <typename T>
    requires std::is_class_v<T>
  void operator()(T& value) {
    Fields(*this, value);
  }

 private:
  template <typename T, typename To>
  void Take(StatusOr<T> read, To& to) {
    if (!read.ok())
      status_ = read.status();
    else if (status_.ok())
      to = *std::move(read);
  }
  template <typename T>
  T Number() {
    T value{};
    (*this)(value);
    return value;
  }
  // Of things that have a byte at least each.
  uint32_t Count() {
    const uint32_t count = Number<uint32_t>();
    if (status_.ok() && count > reader_.left())
      status_ = absl::DataLossError(absl::StrFormat("%u things in %u bytes", count, reader_.left()));
    return count;
  }

  ByteReader reader_;
  Status status_ = absl::OkStatus();
};

template <typename Io>
void Fields(Io& io, Hash128& hash) {
  io(hash.high), io(hash.low);
}
template <typename Io>
void Fields(Io& io, SymbolRange& range) {
  io(range.low), io(range.high);
}
template <typename Io>
void Fields(Io& io, kir::BufferType& type) {
  io(type.dtype), io(type.dims), io(type.layout);
}
template <typename Io>
void Fields(Io& io, Buffer& buffer) {
  io(buffer.name), io(buffer.home), io(buffer.index), io(buffer.type), io(buffer.bytes), io(buffer.offset);
  io(buffer.data), io(buffer.align);
}
template <typename Io>
void Fields(Io& io, Argument& argument) {
  io(argument.buffer), io(argument.offset);
}
template <typename Io>
void Fields(Io& io, Launch& launch) {
  io(launch.kernel), io(launch.arguments), io(launch.label), io(launch.region), io(launch.body);
}
template <typename Io>
void Fields(Io& io, Carry& carry) {
  io(carry.initial), io(carry.current), io(carry.next), io(carry.places);
}
template <typename Io>
void Fields(Io& io, Row& row) {
  io(row.buffer), io(row.whole), io(row.stride);
}
template <typename Io>
void Fields(Io& io, Run& run) {
  io(run.first), io(run.end);
}
template <typename Io>
void Fields(Io& io, If& step) {
  io(step.predicate), io(step.then), io(step.otherwise), io(step.node), io(step.label);
}
template <typename Io>
void Fields(Io& io, While& step) {
  io(step.predicate), io(step.cond), io(step.body), io(step.carries), io(step.max), io(step.node), io(step.label);
}
template <typename Io>
void Fields(Io& io, Scan& step) {
  io(step.body), io(step.length), io(step.reverse), io(step.carries), io(step.rows), io(step.node), io(step.label);
}
template <typename Io>
void Fields(Io& io, Requirement& requirement) {
  io(requirement.value), io(requirement.exact), io(requirement.text);
}
template <typename Io>
void Fields(Io& io, Count& step) {
  io(step.count), io(step.symbol), io(step.range), io(step.requirements), io(step.node), io(step.label);
}
template <typename Io>
void Fields(Io& io, Body& body) {
  io(body.name), io(body.parent), io(body.node), io(body.position), io(body.steps), io(body.values);
}
template <typename Io>
void Fields(Io& io, OnceValue& value) {
  io(value.key), io(value.params);
}
template <typename Io>
void Fields(Io& io, SealedKernel& kernel) {
  io(kernel.symbol), io(kernel.text), io(kernel.object), io(kernel.scratch_bytes);
}
template <typename Io>
void Fields(Io& io, Sealed& sealed) {
  io(sealed.kernels), io(sealed.once);
}
template <typename Io>
void Fields(Io& io, Plan& plan) {
  io(plan.name), io(plan.ranges), io(plan.kernels), io(plan.buffers), io(plan.once), io(plan.launches);
  io(plan.bodies), io(plan.requirements), io(plan.arena_bytes), io(plan.once_bytes), io(plan.once_kept_bytes);
}

// Of the border of a program.
template <typename Io>
void Fields(Io& io, ir::TensorType& type) {
  io(type.dtype), io(type.dims);
}
template <typename Io>
void Fields(Io& io, Port& port) {
  io(port.name), io(port.type), io(port.output);
}
template <typename Io>
void Fields(Io& io, Signature& signature) {
  io(signature.name), io(signature.inputs), io(signature.outputs), io(signature.params), io(signature.states);
  io(signature.symbols), io(signature.counted), io(signature.counted_in_bodies);
}
template <typename Io>
void Fields(Io& io, SealedProgram& program) {
  io(program.signature), io(program.guards);
}

std::string_view Chars(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The values behind a mark and a version, before a hash of all that.
template <typename... Values>
std::string Framed(const Values&... values) {
  Writer writer;
  writer.bytes = kMagic;
  writer(kVersion);
  (writer(values), ...);
  writer(HashBytes(writer.bytes));
  return std::move(writer.bytes);
}

template <typename... Values>
Status Unframed(std::span<const uint8_t> bytes, Values&... values) {
  const size_t frame = kMagic.size() + sizeof(kVersion) + sizeof(Hash128);
  if (bytes.size() < frame || !Chars(bytes).starts_with(kMagic)) return absl::DataLossError("it is no sealed plan");
  Reader end(bytes.last(sizeof(Hash128)));
  Hash128 hash;
  end(hash);
  const std::span<const uint8_t> hashed = bytes.first(bytes.size() - sizeof(Hash128));
  if (HashBytes(Chars(hashed)) != hash) return absl::DataLossError("its hash is another");
  Reader reader(hashed.subspan(kMagic.size()));
  uint32_t version = 0;
  reader(version);
  if (version != kVersion) return absl::DataLossError("its form is of another version");
  (reader(values), ...);
  QUERN_RETURN_IF_ERROR(reader.status());
  if (reader.left() != 0) return absl::DataLossError("there is more of it than it says");
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> Seal(const Plan& plan, const Sealed& sealed) {
  if (!plan.calls.empty()) return absl::UnimplementedError("the plan calls functions of this process");
  return Framed(plan, sealed);
}

StatusOr<Plan> Unseal(std::span<const uint8_t> bytes) {
  Plan plan;
  auto sealed = std::make_shared<Sealed>();
  QUERN_RETURN_IF_ERROR(Unframed(bytes, plan, *sealed));
  if (sealed->kernels.size() != plan.kernels.size()) return absl::DataLossError("its parts do not add up");
  plan.sealed = std::move(sealed);
  return plan;
}

std::string Seal(const SealedProgram& program) { return Framed(program); }

StatusOr<SealedProgram> UnsealProgram(std::span<const uint8_t> bytes) {
  SealedProgram program;
  QUERN_RETURN_IF_ERROR(Unframed(bytes, program));
  return program;
}

}  // namespace quern::lir
