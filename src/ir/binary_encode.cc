#include <map>

#include "base/byte_writer.h"
#include "base/overloaded.h"
#include "ir/binary.h"
#include "ir/binary_layout.h"
#include "ir/control.h"
#include "ir/op.h"
#include "ir/value_names.h"

namespace quern::ir {
namespace {

using namespace binary;

class Encoder {
 public:
  // `labels`: origins, and the name of the graph, are written too.
  explicit Encoder(bool labels) : labels_(labels) {}

  std::string Write(const Graph& graph) {
    PutGraph(graph);
    const bool names = HasNames(graph.output_names);
    const bool map = !graph.quantisation.empty();
    for (size_t o = 0; (names || map) && o < graph.outputs.size(); ++o) PutString(OutputName(graph.output_names, o));
    if (map) PutQuantisation(graph);
    std::string strings;
    PutBytes<uint32_t>(strings, static_cast<uint32_t>(strings_.size()));
    for (const std::string* text : strings_) {
      PutBytes<uint32_t>(strings, static_cast<uint32_t>(text->size()));
      strings += *text;
    }
    std::string file(kMagic);
    const uint64_t data_at = RoundUp(kHeaderBytes + strings.size() + body_.size());
    PutBytes<uint32_t>(file, map ? 3 : names ? 2 : 1);
    PutBytes<uint32_t>(file, 0);
    PutBytes<uint64_t>(file, data_at);
    PutBytes<uint64_t>(file, data_.size());
    file.resize(kHeaderBytes);
    file += strings;
    file += body_;
    file.resize(data_at);
    file += data_;
    const Hash128 hash = HashBytes(file);
    PutBytes(file, hash.high);
    PutBytes(file, hash.low);
    return file;
  }

 private:
  void PutString(const std::string& text) {
    const auto [known, added] = numbers_.emplace(text, static_cast<uint32_t>(strings_.size()));
    if (added) strings_.push_back(&known->first);
    PutBytes(body_, known->second);
  }
  void PutCount(size_t count) { PutBytes(body_, static_cast<uint32_t>(count)); }
  void PutValue(Value value) {
    PutBytes(body_, static_cast<uint32_t>(value.node));
    PutBytes(body_, static_cast<uint32_t>(value.result));
  }

  void PutExtent(const Extent& extent) {
    PutCount(extent.terms().size());
    for (const Extent::Term& term : extent.terms()) {
      PutBytes(body_, term.coefficient);
      PutCount(term.symbols.size());
      for (const std::string& factor : term.symbols) PutString(factor);
    }
  }
  void PutExtents(const std::vector<Extent>& extents) {
    PutCount(extents.size());
    for (const Extent& extent : extents) PutExtent(extent);
  }
  void PutType(const TensorType& type) {
    PutString(std::string(Name(type.dtype)));
    PutExtents(type.dims);
  }

  void PutAttribute(const AttrValue& value) {
    PutBytes(body_, static_cast<uint8_t>(value.index()));
    std::visit(Overloaded{[&](bool v) { PutBytes<uint8_t>(body_, v); }, [&](int64_t v) { PutBytes(body_, v); },
                          [&](double v) { PutBytes(body_, v); }, [&](const std::string& v) { PutString(v); },
                          [&](DType v) { PutString(std::string(Name(v))); },
                          [&](const std::vector<int64_t>& v) {
                            PutCount(v.size());
                            for (const int64_t element : v) PutBytes(body_, element);
                          },
                          [&](const std::vector<Extent>& v) { PutExtents(v); }},
               value);
  }

  void PutAttributes(const Attributes& attributes) {
    PutCount(attributes.values().size());
    for (const auto& [name, value] : attributes.values()) {
      PutString(name);
      PutAttribute(value);
    }
  }

  // By name; where labels do not count, names that are labels do not either.
  void PutQuantisation(const Graph& graph) {
    PutCount(graph.quantisation.size());
    if (!labels_) {
      for (const auto& [value, scheme] : SchemesOf(graph)) {
        PutValue(value);
        PutAttributes(AttributesOf(scheme));
      }
      return;
    }
    for (const auto& [name, scheme] : graph.quantisation) {
      PutString(name);
      PutAttributes(AttributesOf(scheme));
    }
  }

  void PutNode(const Graph& graph, const Node& node) {
    PutString(node.op->name);
    PutCount(node.inputs.size());
    for (const Value& input : node.inputs) PutValue(input);
    PutAttributes(node.attributes);
    PutBytes<uint8_t>(body_, node.data != nullptr);
    if (node.data != nullptr) {
      data_.resize(RoundUp(data_.size()));
      PutBytes<uint64_t>(body_, data_.size());
      PutBytes<uint64_t>(body_, node.data->size());
      data_.append(node.data->begin(), node.data->end());
    }
    PutCount(node.results.size());
    for (const TensorType& type : node.results) PutType(type);
    const bool labelled = labels_ && node.origin >= 0;
    PutBytes<uint8_t>(body_, labelled);
    if (labelled) {
      PutString(graph.origins()[node.origin].label);
      PutString(graph.origins()[node.origin].pass);
    }
    if (OptionalBodies(*node.op) > 0) PutBytes(body_, static_cast<uint8_t>(node.bodies.size()));
    for (const auto& body : node.bodies) PutGraph(*body);
  }

  void PutGraph(const Graph& graph) {
    PutString(labels_ ? graph.name : "");
    PutCount(graph.symbols.size());
    for (const auto& [name, range] : graph.symbols) {
      PutString(name);
      PutBytes(body_, range.low);
      PutBytes(body_, range.high);
    }
    PutCount(graph.nodes().size());
    for (const Node& node : graph.nodes()) PutNode(graph, node);
    PutCount(graph.constraints.size());
    for (const ExtentConstraint& constraint : graph.constraints) {
      PutBytes(body_, static_cast<uint8_t>(constraint.relation));
      PutExtent(constraint.left);
      PutExtent(constraint.right);
    }
    PutCount(graph.outputs.size());
    for (const Value& output : graph.outputs) PutValue(output);
    PutCount(graph.donations.size());
    for (const Donation& donation : graph.donations) {
      PutCount(static_cast<size_t>(donation.output));
      PutString(donation.input);
    }
  }

  const bool labels_;
  std::string body_, data_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<const std::string*> strings_;  // by number: keys of that map
};

}  // namespace

std::string Encode(const Graph& graph) { return Encoder(true).Write(graph); }

Hash128 Fingerprint(const Graph& graph) { return HashBytes(Encoder(false).Write(graph)); }

}  // namespace quern::ir
