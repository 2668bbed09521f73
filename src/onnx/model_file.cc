#include "onnx/model_file.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <charconv>
#include <climits>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "onnx/message_cost.h"
#include "onnx/tensor_data.h"

namespace quern::onnx {
namespace {

// Of those before 7 most forms that ops had then.
constexpr int kOldestOpset = 1, kNewestOpset = 23;
// Every message between two graphs counts: 40 control ops inside each other, which no model has.
constexpr int kDeepest = 200;
// Bytes of memory for each of the file, beside a few for any: a node of names of one letter takes 14.
constexpr int64_t kMostMemory = 32, kFreeMemory = 1 << 20;

template <typename Message>
Status ParseMessage(std::span<const uint8_t> bytes, Message& message) {
  if (bytes.size() > INT_MAX)
    return absl::InvalidArgumentError("the file has more than the 2 GiB that the format allows: external data may");
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kDeepest);
  if (message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("this is no ONNX file, or it is cut short or nested too deep: its messages end at byte %d of %u",
                      coded.CurrentPosition(), bytes.size()));
}

// A number of external data; `missing` where the key is not there.
StatusOr<uint64_t> Number(const format::Tensor& tensor, const char* key, uint64_t missing) {
  for (const format::Entry& entry : tensor.external_data()) {
    if (entry.key() != key) continue;
    uint64_t number = 0;
    const char* const end = entry.value().data() + entry.value().size();
    const auto [stop, error] = std::from_chars(entry.value().data(), end, number);
    if (error == std::errc() && stop == end) return number;
    return absl::InvalidArgumentError(
        absl::StrFormat("tensor %s: the %s of its external data is \"%s\"", tensor.name(), key, entry.value()));
  }
  return missing;
}

}  // namespace

StatusOr<std::shared_ptr<const ModelFile>> ModelFile::Open(const std::string& path) {
  QUERN_ASSIGN(const MappedFile file, MappedFile::Open(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  StatusOr<std::shared_ptr<const ModelFile>> parsed = Parse(file.bytes(), std::move(folder));
  if (!parsed.ok()) return Status(parsed.status().code(), absl::StrCat(path, ": ", parsed.status().message()));
  return parsed;
}

StatusOr<std::shared_ptr<const ModelFile>> ModelFile::Parse(std::span<const uint8_t> bytes, std::string folder) {
  auto file = std::make_shared<ModelFile>();
  file->folder_ = std::move(folder);
  const int64_t cost = MessageCost(bytes), most = static_cast<int64_t>(bytes.size()) * kMostMemory + kFreeMemory;
  if (cost > most) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the file's %u bytes are messages that would take %d bytes of memory", bytes.size(), cost));
  }
  QUERN_RETURN_IF_ERROR(ParseMessage(bytes, file->model_));
  if (!file->model_.has_graph()) return absl::InvalidArgumentError("the file has no graph: this is no ONNX model");
  for (const format::Opset& opset : file->model_.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (opset.version() >= kOldestOpset && opset.version() <= kNewestOpset) continue;
    return absl::UnimplementedError(
        absl::StrFormat("the model is of opset %d; %d to %d are known", opset.version(), kOldestOpset, kNewestOpset));
  }
  return file;
}

StatusOr<std::span<const uint8_t>> ModelFile::External(const format::Tensor& tensor) const {
  const auto wrong = [&](std::string what) {
    return absl::InvalidArgumentError(absl::StrFormat("tensor %s: its external data %s", tensor.name(), what));
  };
  std::string location;
  for (const format::Entry& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
  }
  if (folder_.empty()) return wrong("is in a file, and the model has no folder");
  const std::filesystem::path place(location);
  bool inside = !location.empty() && !place.is_absolute() && location.find('\0') == std::string::npos;
  for (const std::filesystem::path& part : place) inside = inside && part != "..";
  // A link may lead elsewhere: what counts is where the file is.
  std::error_code unknown;
  const std::filesystem::path root = std::filesystem::weakly_canonical(folder_, unknown);
  const std::filesystem::path found =
      std::filesystem::weakly_canonical(std::filesystem::path(folder_) / place, unknown);
  inside =
      inside && !unknown && std::mismatch(root.begin(), root.end(), found.begin(), found.end()).first == root.end();
  if (!inside) return wrong(absl::StrFormat("is at \"%s\", which is not in the model's folder", location));
  const std::lock_guard<std::mutex> lock(mutex_);
  auto known = external_.find(location);
  if (known == external_.end()) {
    StatusOr<MappedFile> file = MappedFile::Open(found.string());
    if (!file.ok()) return wrong(absl::StrCat("cannot be read: ", file.status().message()));
    known = external_.emplace(location, *std::move(file)).first;
  }
  const std::span<const uint8_t> bytes = known->second.bytes();
  QUERN_ASSIGN(const uint64_t offset, Number(tensor, "offset", 0));
  if (offset > bytes.size())
    return wrong(absl::StrFormat("begins at byte %u of the %u bytes of %s", offset, bytes.size(), location));
  QUERN_ASSIGN(const uint64_t length, Number(tensor, "length", bytes.size() - offset));
  if (length > bytes.size() - offset)
    return wrong(absl::StrFormat("ends behind the %u bytes of %s", bytes.size(), location));
  return bytes.subspan(offset, length);
}

StatusOr<Data> ModelFile::Read(const format::Tensor& tensor) const {
  std::span<const uint8_t> raw(reinterpret_cast<const uint8_t*>(tensor.raw_data().data()), tensor.raw_data().size());
  const bool external = tensor.data_location() == 1;
  if (external) {
    QUERN_ASSIGN(raw, External(tensor));
  }
  return ReadTensor(tensor, raw, external || tensor.has_raw_data());
}

StatusOr<Data> ParseTensor(std::span<const uint8_t> bytes, std::string* name) {
  format::Tensor tensor;
  QUERN_RETURN_IF_ERROR(ParseMessage(bytes, tensor));
  *name = tensor.name();
  const std::span<const uint8_t> raw(reinterpret_cast<const uint8_t*>(tensor.raw_data().data()),
                                     tensor.raw_data().size());
  QUERN_ASSIGN(Data data, ReadTensor(tensor, raw, tensor.has_raw_data()));
  if (data.owner == nullptr) {
    data.owner = std::make_shared<const std::vector<uint8_t>>(data.bytes.begin(), data.bytes.end());
    data.bytes = *data.owner;
  }
  return data;
}

bool LooksLikeModel(std::span<const uint8_t> bytes) {
  // Field 1, a small number; then one of the strings, the graph, a version, or the opsets.
  if (bytes.size() < 4 || bytes[0] != 0x08 || bytes[1] == 0 || bytes[1] > 127) return false;
  const int field = bytes[2] >> 3, wire = bytes[2] & 7;
  return (wire == 2 && ((field >= 2 && field <= 8 && field != 5) || field == 14)) || (wire == 0 && field == 5);
}

}  // namespace quern::onnx
