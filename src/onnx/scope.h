// What the names of a model stand for while it is imported, and the graphs that it becomes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "onnx/import.h"

namespace quern::onnx {

// What a name stands for.
struct Item {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kStrings };
  Kind kind = Kind::kNone;                     // kNone: an optional that is absent
  ir::Value value = {};                        // a tensor of the graph of `home`; node -1: data that is not in it yet
  std::shared_ptr<const Data> data = nullptr;  // of a tensor that the file holds
  std::string name = {};                       // of such a tensor
  std::vector<Item> items = {};                // of a sequence
};

// A number that sizes make: extent / divisor.
struct Ratio {
  Extent extent;
  int64_t divisor = 1;
};

// A graph under construction: that of the model, or a body of a control op.
struct Builder {
  ir::Graph graph;
  Builder* outer = nullptr;           // that of the node whose body it is
  std::map<int, ir::Value> captured;  // by Input: what it stands for in `outer`, where it is the same in each trip
  std::map<std::string, ir::Value> params;
  // How many elements are not 0, as a count and as the symbol that it gives, by the value whose elements they are.
  std::map<ir::Value, std::pair<ir::Value, Extent>> found;
  // What has been found by known.h.
  std::map<ir::Value, std::optional<std::vector<Ratio>>> ratios;
  std::map<ir::Value, std::optional<ir::RefTensor>> tensors;
};

struct Importer;  // importer.h

// What one import has in common.
struct Session {
  const ModelFile& file;
  const ImportOptions& options;
  // Given by the attempts before this one.
  std::map<std::string, int64_t, std::less<>> sizes;  // symbols that are numbers
  std::set<std::string> fixed_inputs;                 // inputs that are data
  std::map<std::string, Extent> solved;               // symbols of sizes that data gives
  // Found by this one.
  std::set<std::string> wanted_sizes = {}, wanted_inputs = {};  // what an op could not do without
  std::map<std::string, int64_t, std::less<>> available = {};   // sizes that values of inputs have
  std::set<std::string> open = {};                              // symbols of sizes that data gives, by what solves them
  std::map<std::string, std::set<std::string>> open_inputs = {};  // what such a size is made of
  std::set<std::string> found = {};                               // symbols of sizes that runs find
  std::map<std::string, std::span<const uint8_t>, std::less<>> params = {};
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> owners = {};
  std::map<std::string, std::string> symbol_names = {};  // of dimensions
  std::map<std::pair<std::string, std::string>, const format::Function*> functions = {};
  std::set<std::string> input_names = {};
  int unnamed = 0, known_depth = 0;
  int64_t nodes = 0;  // imported so far, those of functions and unrolled loops among them
};

// Names of one graph, function or body; those of `outer` are seen too.
class Scope {
 public:
  Scope(Session& session, Builder& builder, const Scope* outer) : session(session), builder(builder), outer_(outer) {}

  // Null: there is no such name.
  const Item* Find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
      const auto found = scope->items_.find(name);
      if (found != scope->items_.end()) return &found->second;
    }
    return nullptr;
  }
  void Set(const std::string& name, Item item) { items_[name] = std::move(item); }

  Session& session;
  Builder& builder;
  std::string label;  // "loop/body/": before those of nodes
  // Of a function: its attributes as the call has them, and the versions of ops that it is written in.
  const std::map<std::string, const format::Attribute*>* attributes = nullptr;
  std::map<std::string, int64_t> opsets;

 private:
  const Scope* outer_;
  std::map<std::string, Item> items_;
};

// The nodes of a graph or function, into the scope. `depth`: of functions and bodies inside each other.
Status ImportNodes(Scope& scope, const google::protobuf::RepeatedPtrField<format::Node>& nodes, int depth);
// The initializers of a graph.
Status TakeInitializers(Scope& scope, const format::Graph& graph);

// The value of a tensor in the graph of `builder`, where its data is added if it is not in it yet.
StatusOr<ir::Value> ValueOf(Session& session, Builder& builder, const Item& item);
inline Item TensorItem(ir::Value value) { return {.kind = Item::Kind::kTensor, .value = value}; }

}  // namespace quern::onnx
