// A GGUF file of metadata alone: a vocabulary made by hand, or damaged on purpose.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace quern {

struct TestToken {
  std::string_view text;
  float score = 0;
  int32_t kind = 1;  // as in the file: 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
};

class VocabularyFile {
 public:
  VocabularyFile(std::string_view model, const std::vector<TestToken>& tokens) {
    Text("tokenizer.ggml.model", model);
    Array("tokenizer.ggml.tokens", 8, tokens.size());
    for (const TestToken& token : tokens) Put(token.text);
    Array("tokenizer.ggml.scores", 6, tokens.size());
    for (const TestToken& token : tokens) Put(token.score);
    Array("tokenizer.ggml.token_type", 5, tokens.size());
    for (const TestToken& token : tokens) Put(token.kind);
  }
  VocabularyFile& Text(std::string_view key, std::string_view value) {
    Key(key, 8);
    Put(value);
    return *this;
  }
  VocabularyFile& Number(std::string_view key, uint32_t value) {
    Key(key, 4);
    Put(value);
    return *this;
  }
  VocabularyFile& Flag(std::string_view key, bool value) {
    Key(key, 7);
    Put(static_cast<uint8_t>(value));
    return *this;
  }
  VocabularyFile& Texts(std::string_view key, const std::vector<std::string_view>& values) {
    Array(key, 8, values.size());
    for (const std::string_view value : values) Put(value);
    return *this;
  }
  std::vector<uint8_t> Bytes() const {
    VocabularyFile header;
    header.Put(uint32_t{0x46554747});
    header.Put(uint32_t{3});
    header.Put(uint64_t{0});
    header.Put(keys_);
    header.bytes_.insert(header.bytes_.end(), bytes_.begin(), bytes_.end());
    return header.bytes_;
  }

 private:
  VocabularyFile() = default;
  template <typename T>
  void Put(T value) {
    const auto* data = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), data, data + sizeof(value));
  }
  void Put(std::string_view value) {
    Put(uint64_t{value.size()});
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void Key(std::string_view key, uint32_t type) {
    ++keys_;
    Put(key);
    Put(type);
  }
  void Array(std::string_view key, uint32_t type, size_t count) {
    Key(key, 9);
    Put(type);
    Put(uint64_t{count});
  }

  std::vector<uint8_t> bytes_;
  uint64_t keys_ = 0;
};

}  // namespace quern
