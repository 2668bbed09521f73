// Sizes that only data decides, in the bodies of loops and branches: what stays inside is found there, and a result
// that has one is refused in a sentence. golden/onnx has what such models compute.
#include <gtest/gtest.h>

#include "ir/counted.h"
#include "onnx/import.h"

namespace quern::onnx {
namespace {

enum : int { kF32 = 1, kI64 = 7, kBool = 9 };

void AddInput(format::Graph& graph, const char* name, int type, std::initializer_list<const char*> dims) {
  format::ValueInfo& input = *graph.add_input();
  input.set_name(name);
  format::Type::Dense& dense = *input.mutable_type()->mutable_tensor_type();
  dense.set_elem_type(type);
  dense.mutable_shape();
  for (const char* dim : dims) dense.mutable_shape()->add_dim()->set_dim_param(dim);
}

format::Node& AddNode(format::Graph& graph, const char* op, std::initializer_list<const char*> inputs,
                      const char* output) {
  format::Node& node = *graph.add_node();
  node.set_name(output);
  node.set_op_type(op);
  for (const char* input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

format::Graph& AddBody(format::Node& node, const char* name) {
  format::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  return *attribute.mutable_g();
}

void AddNumber(format::Node& node, const char* name, int64_t value) {
  format::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_i(value);
}

// What of `x` is where `c` holds, and the sum of it, as the results of a body.
void Keep(format::Graph& body, const char* x, bool returns_all) {
  AddNumber(AddNode(body, "Compress", {x, "c"}, "kept"), "axis", 0);
  AddNumber(AddNode(body, "ReduceSum", {"kept"}, "sum"), "keepdims", 0);
  body.add_output()->set_name(returns_all ? "kept" : "sum");
}

format::Model Model() {
  format::Model model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  format::Graph& graph = *model.mutable_graph();
  AddInput(graph, "x", kF32, {"S"});
  AddInput(graph, "c", kBool, {"S"});
  graph.add_output()->set_name("y");
  return model;
}

format::Model Branches(bool returns_all) {
  format::Model model = Model();
  AddInput(*model.mutable_graph(), "p", kBool, {});
  format::Node& node = AddNode(*model.mutable_graph(), "If", {"p"}, "y");
  Keep(AddBody(node, "then_branch"), "x", returns_all);
  Keep(AddBody(node, "else_branch"), "x", returns_all);
  return model;
}

format::Model Loop(bool returns_all) {
  format::Model model = Model();
  AddInput(*model.mutable_graph(), "n", kI64, {});
  if (!returns_all) AddNumber(AddNode(*model.mutable_graph(), "ReduceSum", {"x"}, "first"), "keepdims", 0);
  format::Node& node = AddNode(*model.mutable_graph(), "Loop", {"n", "", returns_all ? "x" : "first"}, "y");
  format::Graph& body = AddBody(node, "body");
  AddInput(body, "i", kI64, {});
  AddInput(body, "go", kBool, {});
  AddInput(body, "h", kF32, {});
  AddNode(body, "Identity", {"go"}, "on");
  body.add_output()->set_name("on");
  Keep(body, "x", returns_all);
  return model;
}

format::Model Rows(bool returns_all) {
  format::Model model = Model();
  format::ValueInfo& x = *model.mutable_graph()->mutable_input(0);
  x.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("S");
  format::Node& node = AddNode(*model.mutable_graph(), "Scan", {"x"}, "y");
  AddNumber(node, "num_scan_inputs", 1);
  format::Graph& body = AddBody(node, "body");
  AddInput(body, "row", kF32, {"S"});
  Keep(body, "row", returns_all);
  return model;
}

StatusOr<Imported> ImportOf(const format::Model& model) {
  const std::string bytes = model.SerializeAsString();
  QUERN_ASSIGN(const auto file, ModelFile::Parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, ""));
  return Import(*file, {});
}

TEST(FoundSizes, StayInTheBody) {
  for (const format::Model& model : {Branches(false), Loop(false), Rows(false)}) {
    const StatusOr<Imported> imported = ImportOf(model);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_TRUE(ir::CountedSizesOf(imported->graph).empty());
    EXPECT_FALSE(ir::AllCountedSizes(imported->graph).empty());
    for (const auto& [symbol, range] : ir::GivenSymbols(imported->graph)) EXPECT_FALSE(symbol.starts_with("FOUND_"));
  }
}

TEST(FoundSizes, NoResultOfABodyHasOne) {
  EXPECT_EQ(ImportOf(Branches(true)).status().message(),
            "If y: a result of its body has the size FOUND_y_kept, which only data decides");
  EXPECT_EQ(ImportOf(Loop(true)).status().message(),
            "Loop y: a result of its body has the size FOUND_y_kept, which only data decides in each trip");
  EXPECT_EQ(ImportOf(Rows(true)).status().message(),
            "Scan y: a result of its body has the size FOUND_y_kept, which only data decides");
}

}  // namespace
}  // namespace quern::onnx
