// GgufBytes: a GGUF file of version 3 written in memory, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace quern::support {

class GgufBytes {
 public:
  void Put(std::string_view key, uint32_t value) { Number(key, 4, value); }
  void Put(std::string_view key, float value) { Number(key, 6, value); }
  void Put(std::string_view key, bool value) { Number(key, 7, static_cast<uint8_t>(value)); }
  void Put(std::string_view key, std::string_view value) {
    Text(metadata_, key);
    Append(metadata_, uint32_t{8});
    Text(metadata_, value);
    ++keys_;
  }
  // `dims` innermost first, as in the file; `type` is ggml's number of the format.
  void AddTensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                 const std::vector<uint8_t>& bytes) {
    Text(tensors_, name);
    Append(tensors_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) Append(tensors_, dim);
    Append(tensors_, type);
    Append(tensors_, uint64_t{data_.size()});
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    data_.resize((data_.size() + 31) / 32 * 32);
    ++count_;
  }
  std::vector<uint8_t> Build() const {
    std::vector<uint8_t> file;
    Append(file, uint32_t{0x46554747});
    Append(file, uint32_t{3});
    Append(file, count_);
    Append(file, keys_);
    file.insert(file.end(), metadata_.begin(), metadata_.end());
    file.insert(file.end(), tensors_.begin(), tensors_.end());
    file.resize((file.size() + 31) / 32 * 32);
    file.insert(file.end(), data_.begin(), data_.end());
    return file;
  }

 private:
  template <typename T>
  static void Append(std::vector<uint8_t>& to, T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof(value));
  }
  static void Text(std::vector<uint8_t>& to, std::string_view text) {
    Append(to, uint64_t{text.size()});
    to.insert(to.end(), text.begin(), text.end());
  }
  template <typename T>
  void Number(std::string_view key, uint32_t type, T value) {
    Text(metadata_, key);
    Append(metadata_, type);
    Append(metadata_, value);
    ++keys_;
  }

  std::vector<uint8_t> metadata_, tensors_, data_;
  uint64_t keys_ = 0, count_ = 0;
};

}  // namespace quern::support
