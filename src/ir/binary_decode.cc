#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"
#include "base/diagnostic.h"
#include "ir/binary.h"
#include "ir/binary_layout.h"
#include "ir/control.h"
#include "ir/op.h"
#include "ir/written.h"

namespace quern::ir {
namespace {

using namespace binary;

constexpr uint64_t kMostCopied = 1 << 20, kCopiesOfByte = 64;  // of strings

class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> file) : file_(file), reader_(file) {}

  StatusOr<Graph> Read() {
    QUERN_RETURN_IF_ERROR(ReadHeader());
    QUERN_ASSIGN(const uint32_t count, Count("the strings", sizeof(uint32_t)));
    for (uint32_t i = 0; i < count; ++i) {
      QUERN_ASSIGN(const uint32_t length, reader_.Read<uint32_t>("the length of a string"));
      QUERN_ASSIGN(const std::span<const uint8_t> text, reader_.Take(length, "a string"));
      strings_.emplace_back(Chars(text));
    }
    QUERN_ASSIGN(Graph graph, ReadGraph(0));
    for (size_t o = 0; version_ > 1 && o < graph.outputs.size(); ++o) {
      QUERN_ASSIGN(graph.output_names.emplace_back(), ReadString("the name of an output"));
    }
    if (version_ == 2 && !HasNames(graph.output_names)) return Wrong("names of outputs that are their numbers");
    if (version_ > 2) QUERN_RETURN_IF_ERROR(ReadQuantisation(graph.quantisation));
    if (const Status verified = Verify(graph); !verified.ok()) return At(verified);
    if (RoundUp(reader_.offset()) != data_at_) return Wrong("the graph does not end where the data begins");
    QUERN_ASSIGN(const std::span<const uint8_t> rest, reader_.Take(reader_.left(), "what is between graph and data"));
    if (std::any_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte != 0; }))
      return Wrong("there is something between graph and data");
    return graph;
  }

 private:
  Status Wrong(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrFormat("byte %u: %s", reader_.offset(), std::string(what)));
  }
  // What building says of a node, with its place. What passes get wrong is a bug of ours, of a file it is no bug.
  Status At(const Status& status) const {
    if (status.ok()) return status;
    const std::string message = absl::StrFormat("byte %u: %s", reader_.offset(), std::string(status.message()));
    return absl::IsInternal(status) ? absl::InvalidArgumentError(message) : WithMessage(status, message);
  }

  Status ReadHeader() {
    if (!IsBinary(file_)) return absl::InvalidArgumentError("byte 0: no graph in binary form");
    QUERN_RETURN_IF_ERROR(reader_.Take(kMagic.size(), "the mark").status());
    QUERN_ASSIGN(version_, reader_.Read<uint32_t>("the version"));
    if (version_ < 1 || version_ > kBinaryVersion) {
      return absl::InvalidArgumentError(
          absl::StrFormat("byte 8: version %u is not known, 1 to %u are", version_, kBinaryVersion));
    }
    QUERN_RETURN_IF_ERROR(reader_.Read<uint32_t>("the header").status());
    QUERN_ASSIGN(data_at_, reader_.Read<uint64_t>("where the data begins"));
    QUERN_ASSIGN(const uint64_t bytes, reader_.Read<uint64_t>("the length of the data"));
    if (file_.size() < kHeaderBytes + kHashBytes) return Wrong("the file ends inside the header");
    const uint64_t end = file_.size() - kHashBytes;
    if (data_at_ < kHeaderBytes || data_at_ % kDataAlign != 0 || data_at_ > end || bytes != end - data_at_)
      return Wrong("the data does not lie where the header says");
    const std::span<const uint8_t> hashed = file_.first(end);
    uint64_t hash[2];
    std::memcpy(hash, file_.data() + end, sizeof(hash));
    if (HashBytes(Chars(hashed)) != Hash128{hash[0], hash[1]})
      return absl::InvalidArgumentError(absl::StrFormat("byte %u: the file was damaged: its hash is another", end));
    data_ = file_.subspan(data_at_, bytes);
    const uint64_t read = reader_.offset();
    reader_ = ByteReader(file_.first(data_at_));
    QUERN_RETURN_IF_ERROR(reader_.Take(read, "the header").status());
    return reader_.Take(kHeaderBytes - read, "the header").status();
  }

  // As many things of at least so many bytes as are left.
  StatusOr<uint32_t> Count(std::string_view what, uint64_t bytes_each) {
    QUERN_ASSIGN(const uint32_t count, reader_.Read<uint32_t>(what));
    if (count > reader_.left() / bytes_each)
      return Wrong(absl::StrFormat("%s are %u, more than the file has room for", std::string(what), count));
    return count;
  }
  StatusOr<bool> ReadBool(std::string_view what) {
    QUERN_ASSIGN(const uint8_t value, reader_.Read<uint8_t>(what));
    if (value > 1) return Wrong(absl::StrFormat("%s is neither true nor false", std::string(what)));
    return value == 1;
  }
  StatusOr<std::string> ReadString(std::string_view what) {
    QUERN_ASSIGN(const uint32_t number, reader_.Read<uint32_t>(what));
    if (number >= strings_.size()) return Wrong(absl::StrFormat("there is no string %u", number));
    // A long string that many nodes name is copied for each: no file may ask for much more memory than it has bytes.
    copied_ += strings_[number].size();
    if (copied_ > kMostCopied + kCopiesOfByte * file_.size()) return Wrong("strings that are named too often");
    return strings_[number];
  }
  StatusOr<Value> ReadValue(const Graph& graph) {
    QUERN_ASSIGN(const uint32_t node, reader_.Read<uint32_t>("a value"));
    QUERN_ASSIGN(const uint32_t result, reader_.Read<uint32_t>("a value"));
    if (node >= graph.nodes().size() || result >= graph.node(static_cast<int>(node)).results.size())
      return Wrong("a value that no earlier node has");
    return Value{static_cast<int>(node), static_cast<int>(result)};
  }
  StatusOr<DType> ReadDType() {
    QUERN_ASSIGN(const std::string name, ReadString("a dtype"));
    const std::optional<DType> dtype = DTypeFromName(name);
    if (!dtype) return Wrong(absl::StrFormat("there is no dtype %s", name));
    return *dtype;
  }

  // A factor is what text calls one: a symbol, or a quotient.
  StatusOr<Extent> ReadFactor() {
    QUERN_ASSIGN(const std::string text, ReadString("a symbol"));
    const StatusOr<Extent> factor = Extent::Parse(text);
    if (!factor.ok()) return At(factor.status());
    const std::span<const Extent::Term> terms = factor->terms();
    const bool plain = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].symbols == std::vector{text};
    if (!plain) return Wrong(absl::StrFormat("%s is no symbol", text));
    return *factor;
  }
  StatusOr<Extent> ReadExtent() {
    QUERN_ASSIGN(const uint32_t count, Count("the terms of an extent", sizeof(int64_t) + sizeof(uint32_t)));
    if (count > kMostTerms) return Wrong("an extent of too many terms");
    Extent extent;
    for (uint32_t t = 0; t < count; ++t) {
      QUERN_ASSIGN(const int64_t coefficient, reader_.Read<int64_t>("a coefficient"));
      QUERN_ASSIGN(const uint32_t factors, Count("the factors of a term", sizeof(uint32_t)));
      if (factors > kMostFactors) return Wrong("a term of too many factors");
      Extent term(coefficient);
      for (uint32_t f = 0; f < factors; ++f) {
        QUERN_ASSIGN(const Extent factor, ReadFactor());
        term = term * factor;
      }
      extent = extent + term;
    }
    // One order of terms, none of them 0 or there twice: equal extents have equal bytes.
    if (extent.terms().size() != count) return Wrong("an extent that is not in its simplest form");
    return extent;
  }
  StatusOr<std::vector<Extent>> ReadExtents(std::string_view what) {
    QUERN_ASSIGN(const uint32_t count, Count(what, sizeof(uint32_t)));
    std::vector<Extent> extents;
    for (uint32_t i = 0; i < count; ++i) {
      QUERN_ASSIGN(extents.emplace_back(), ReadExtent());
    }
    if (const Status checked = CheckExtents(extents); !checked.ok()) return At(checked);
    return extents;
  }
  StatusOr<TensorType> ReadType() {
    TensorType type;
    QUERN_ASSIGN(type.dtype, ReadDType());
    QUERN_ASSIGN(type.dims, ReadExtents("the dimensions of a type"));
    if (type.dims.size() > kMostDims) return Wrong(absl::StrFormat("a type of %u dimensions", type.dims.size()));
    return type;
  }

  StatusOr<AttrValue> ReadAttribute() {
    QUERN_ASSIGN(const uint8_t kind, reader_.Read<uint8_t>("the kind of an attribute"));
    switch (static_cast<AttrKind>(kind)) {
      case AttrKind::kBool: {
        QUERN_ASSIGN(const bool value, ReadBool("an attribute"));
        return AttrValue(value);
      }
      case AttrKind::kInt: {
        QUERN_ASSIGN(const int64_t value, reader_.Read<int64_t>("an attribute"));
        return AttrValue(value);
      }
      case AttrKind::kFloat: {
        QUERN_ASSIGN(const double value, reader_.Read<double>("an attribute"));
        return AttrValue(value);
      }
      case AttrKind::kString: {
        QUERN_ASSIGN(std::string value, ReadString("an attribute"));
        return AttrValue(std::move(value));
      }
      case AttrKind::kDType: {
        QUERN_ASSIGN(const DType value, ReadDType());
        return AttrValue(value);
      }
      case AttrKind::kInts: {
        QUERN_ASSIGN(const uint32_t count, Count("the numbers of an attribute", sizeof(int64_t)));
        std::vector<int64_t> values;
        for (uint32_t i = 0; i < count; ++i) {
          QUERN_ASSIGN(values.emplace_back(), reader_.Read<int64_t>("an attribute"));
        }
        return AttrValue(std::move(values));
      }
      case AttrKind::kExtents: {
        QUERN_ASSIGN(std::vector<Extent> values, ReadExtents("the extents of an attribute"));
        return AttrValue(std::move(values));
      }
    }
    return Wrong(absl::StrFormat("an attribute of kind %d", kind));
  }

  StatusOr<Attributes> ReadAttributes(std::string_view what) {
    QUERN_ASSIGN(const uint32_t count, Count(what, sizeof(uint32_t) + 2));
    Attributes attributes;
    for (uint32_t i = 0; i < count; ++i) {
      QUERN_ASSIGN(std::string key, ReadString("the name of an attribute"));
      const auto& known = attributes.values();
      if (!known.empty() && known.back().first >= key) return Wrong("attributes that are not sorted by name");
      QUERN_ASSIGN(AttrValue value, ReadAttribute());
      attributes.Set(std::move(key), std::move(value));
    }
    return attributes;
  }

  Status ReadQuantisation(QuantisationMap& map) {
    QUERN_ASSIGN(const uint32_t count, Count("the schemes of values", 2 * sizeof(uint32_t)));
    if (count == 0) return Wrong("a quantisation map of no value");
    for (uint32_t i = 0; i < count; ++i) {
      QUERN_ASSIGN(const std::string name, ReadString("the name of a value"));
      if (!map.empty() && map.rbegin()->first >= name) return Wrong("schemes that are not sorted by name");
      QUERN_ASSIGN(const Attributes attributes, ReadAttributes("the fields of a scheme"));
      const StatusOr<Scheme> scheme = SchemeOf(name, attributes);
      if (!scheme.ok()) return At(scheme.status());
      // Equal schemes have equal bytes.
      if (AttributesOf(*scheme) != attributes) return Wrong(absl::StrFormat("a scheme of %s without a field", name));
      map.emplace(name, *scheme);
    }
    return absl::OkStatus();
  }

  Status ReadData(WrittenNode& node) {
    QUERN_ASSIGN(const uint64_t at, reader_.Read<uint64_t>("the place of data"));
    QUERN_ASSIGN(const uint64_t bytes, reader_.Read<uint64_t>("the length of data"));
    // One after the other, each at the next multiple of 64: all of the data is somebody's.
    if (at != RoundUp(used_) || at > data_.size() || bytes > data_.size() - at) return Wrong("data that is not there");
    used_ = at + bytes;
    const std::span<const uint8_t> data = data_.subspan(at, bytes);
    node.data.emplace(data.begin(), data.end());
    return absl::OkStatus();
  }

  Status ReadNode(Graph& graph, int nesting) {
    WrittenNode node;
    QUERN_ASSIGN(const std::string name, ReadString("an op"));
    node.op = FindOp(name);
    if (node.op == nullptr) return At(UnknownOp(name));
    QUERN_ASSIGN(const uint32_t inputs, Count("the operands of a node", 2 * sizeof(uint32_t)));
    for (uint32_t i = 0; i < inputs; ++i) {
      QUERN_ASSIGN(node.inputs.emplace_back(), ReadValue(graph));
    }
    QUERN_ASSIGN(node.attributes, ReadAttributes("the attributes of a node"));
    QUERN_ASSIGN(const bool data, ReadBool("whether a node has data"));
    if (data) QUERN_RETURN_IF_ERROR(ReadData(node));
    QUERN_ASSIGN(const uint32_t results, Count("the results of a node", 2 * sizeof(uint32_t)));
    for (uint32_t i = 0; i < results; ++i) {
      QUERN_ASSIGN(node.results.emplace_back(), ReadType());
    }
    if (node.results.empty()) return Wrong("a node without results");
    QUERN_ASSIGN(const bool labelled, ReadBool("whether a node has a label"));
    if (labelled) {
      Origin origin;
      QUERN_ASSIGN(origin.label, ReadString("a label"));
      QUERN_ASSIGN(origin.pass, ReadString("a pass"));
      node.origin = graph.AddOrigin(std::move(origin));
    }
    size_t bodies = node.op->bodies.size();
    if (OptionalBodies(*node.op) > 0) {
      QUERN_ASSIGN(bodies, reader_.Read<uint8_t>("the number of bodies"));
      if (bodies > node.op->bodies.size()) return Wrong(absl::StrFormat("%u bodies", bodies));
    }
    for (size_t b = 0; b < bodies; ++b) {
      QUERN_ASSIGN(Graph body, ReadGraph(nesting + 1));
      node.bodies.push_back(std::make_shared<const Graph>(std::move(body)));
    }
    return At(AddWritten(graph, std::move(node)));
  }

  Status ReadSymbols(Graph& graph) {
    QUERN_ASSIGN(const uint32_t symbols, Count("the symbols", 2 * sizeof(int64_t) + sizeof(uint32_t)));
    for (uint32_t i = 0; i < symbols; ++i) {
      QUERN_ASSIGN(std::string name, ReadString("a symbol"));
      const StatusOr<Extent> symbol = Extent::Parse(name);
      if (!symbol.ok() || *symbol != Extent::Symbol(name)) return Wrong(absl::StrFormat("%s is no symbol", name));
      if (!graph.symbols.empty() && graph.symbols.rbegin()->first >= name)
        return Wrong("symbols that are not sorted by name");
      SymbolRange range;
      QUERN_ASSIGN(range.low, reader_.Read<int64_t>("the range of a symbol"));
      QUERN_ASSIGN(range.high, reader_.Read<int64_t>("the range of a symbol"));
      if (range.low < 0 || range.high < range.low) return Wrong(absl::StrFormat("%s has no range of sizes", name));
      graph.symbols.emplace(std::move(name), range);
    }
    return absl::OkStatus();
  }

  StatusOr<Graph> ReadGraph(int nesting) {
    if (nesting > kMaxNesting) return Wrong("graphs that are nested too deeply");
    Graph graph;
    QUERN_ASSIGN(graph.name, ReadString("the name of a graph"));
    QUERN_RETURN_IF_ERROR(ReadSymbols(graph));
    QUERN_ASSIGN(const uint32_t nodes, Count("the nodes", 4 * sizeof(uint32_t)));
    for (uint32_t n = 0; n < nodes; ++n) QUERN_RETURN_IF_ERROR(ReadNode(graph, nesting));
    QUERN_ASSIGN(const uint32_t constraints, Count("the requirements", 1 + 2 * sizeof(uint32_t)));
    for (uint32_t i = 0; i < constraints; ++i) {
      ExtentConstraint constraint;
      QUERN_ASSIGN(const uint8_t relation, reader_.Read<uint8_t>("a requirement"));
      if (relation > static_cast<uint8_t>(SizeRelation::kAtLeast)) return Wrong("a requirement of no known kind");
      constraint.relation = static_cast<SizeRelation>(relation);
      QUERN_ASSIGN(constraint.left, ReadExtent());
      QUERN_ASSIGN(constraint.right, ReadExtent());
      AddConstraints(graph.constraints, {constraint});
    }
    QUERN_ASSIGN(const uint32_t outputs, Count("the outputs", 2 * sizeof(uint32_t)));
    for (uint32_t i = 0; i < outputs; ++i) {
      QUERN_ASSIGN(graph.outputs.emplace_back(), ReadValue(graph));
    }
    QUERN_ASSIGN(const uint32_t donations, Count("the donations", 2 * sizeof(uint32_t)));
    for (uint32_t i = 0; i < donations; ++i) {
      QUERN_ASSIGN(const uint32_t output, reader_.Read<uint32_t>("a donation"));
      if (output >= graph.outputs.size()) return Wrong("a donation to no output");
      QUERN_ASSIGN(std::string input, ReadString("a donated input"));
      graph.donations.push_back({static_cast<int>(output), std::move(input)});
    }
    return graph;
  }

  const std::span<const uint8_t> file_;
  ByteReader reader_;
  std::span<const uint8_t> data_;
  uint32_t version_ = 0;
  uint64_t data_at_ = 0, used_ = 0, copied_ = 0;
  std::vector<std::string> strings_;
};

}  // namespace

bool IsBinary(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() && Chars(bytes.first(kMagic.size())) == kMagic;
}

StatusOr<Graph> Decode(std::span<const uint8_t> bytes) { return Decoder(bytes).Read(); }

}  // namespace quern::ir
