// Files that nobody should trust: what is wrong with one is a sentence.
#include "onnx/model_file.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/import.h"

namespace quern::onnx {
namespace {

using ::testing::HasSubstr;

StatusOr<std::shared_ptr<const ModelFile>> Load(const format::Model& model, std::string folder = "") {
  const std::string bytes = model.SerializeAsString();
  return ModelFile::Parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, std::move(folder));
}

// y = Add(x, w), w of two floats.
format::Model AddModel() {
  format::Model model;
  model.set_ir_version(8);
  format::Opset& opset = *model.add_opset_import();
  opset.set_version(17);
  format::Graph& graph = *model.mutable_graph();
  format::ValueInfo& input = *graph.add_input();
  input.set_name("x");
  format::Type::Dense& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(1);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  type.mutable_shape()->add_dim()->set_dim_value(2);
  format::Tensor& w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(1);
  w.add_dims(2);
  w.set_raw_data(std::string(8, '\0'));
  format::Node& node = *graph.add_node();
  node.set_name("sum");
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  graph.add_output()->set_name("y");
  return model;
}

std::string ErrorOf(const format::Model& model, std::string folder = "", const ImportOptions& options = {}) {
  const auto file = Load(model, std::move(folder));
  if (!file.ok()) return std::string(file.status().message());
  const StatusOr<Imported> imported = Import(**file, options);
  return imported.ok() ? "" : std::string(imported.status().message());
}

TEST(ModelFile, ReadsWhatItShould) {
  const auto file = Load(AddModel());
  ASSERT_TRUE(file.ok());
  const StatusOr<Imported> imported = Import(**file, {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.output_names, std::vector<std::string>{"y"});
  EXPECT_EQ(imported->graph.type(imported->graph.outputs[0]).ToString(), "f32[N, 2]");
  EXPECT_TRUE(NotCovered(**file).empty());
}

TEST(ModelFile, RefusesWhatIsNoModel) {
  for (const std::string& bytes : {std::string("GGUF"), std::string(64, '\xff'), std::string("\x08\x08\x3a\x7f", 4)}) {
    const auto file = ModelFile::Parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "");
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("no ONNX file"));
  }
  const std::string whole = AddModel().SerializeAsString();
  const auto cut = ModelFile::Parse({reinterpret_cast<const uint8_t*>(whole.data()), whole.size() - 5}, "");
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("cut short"));
  format::Model model = AddModel();
  model.clear_graph();
  EXPECT_THAT(ErrorOf(model), HasSubstr("no graph"));
  model = AddModel();
  model.mutable_opset_import(0)->set_version(99);
  EXPECT_THAT(ErrorOf(model), HasSubstr("opset 99"));
}

// A node is two bytes, and a hundred times as many in memory.
TEST(ModelFile, MemoryIsBoundedByTheFile) {
  std::string nodes;
  for (int i = 0; i < 100'000; ++i) nodes += std::string("\x0a\x00", 2);
  format::Model model = AddModel();
  ASSERT_TRUE(model.mutable_graph()->MergeFromString(nodes));
  EXPECT_THAT(ErrorOf(model), HasSubstr("bytes of memory"));
  // As many nodes as a real one may have are none too many.
  model = AddModel();
  for (int i = 0; i < 100'000; ++i) {
    format::Node& node = *model.mutable_graph()->add_node();
    node.set_op_type("Abs");
    node.add_input("x");
    node.add_output("z");
  }
  EXPECT_EQ(ErrorOf(model), "");
}

TEST(ModelFile, CountsTheBytesOfTensors) {
  format::Model model = AddModel();
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 3);
  EXPECT_THAT(ErrorOf(model), HasSubstr("tensor w has 8 bytes; 3 elements of FLOAT have 12"));
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, -1);
  EXPECT_THAT(ErrorOf(model), HasSubstr("a size of -1"));
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(ErrorOf(model), HasSubstr("more elements"));
  model = AddModel();
  model.mutable_graph()->mutable_initializer(0)->set_data_type(15);
  EXPECT_THAT(ErrorOf(model), HasSubstr("no tensors of COMPLEX128"));
}

TEST(ModelFile, ReadsNarrowTypes) {
  format::Model model;
  format::Tensor& tensor = *model.mutable_graph()->add_initializer();
  const auto file = Load(model);
  ASSERT_TRUE(file.ok());
  tensor.set_data_type(22);  // INT4
  tensor.add_dims(3);
  tensor.set_raw_data("\x7f\x08");
  StatusOr<Data> data = (*file)->Read(tensor);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(std::vector<uint8_t>(data->bytes.begin(), data->bytes.end()), (std::vector<uint8_t>{255, 7, 248}));
  tensor.set_data_type(17);  // FLOAT8E4M3FN: 1, the least, 448
  tensor.set_raw_data("\x38\x01\x7e");
  data = (*file)->Read(tensor);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(std::vector<uint8_t>(data->bytes.begin(), data->bytes.end()),
            (std::vector<uint8_t>{0x00, 0x3c, 0x00, 0x18, 0x00, 0x5f}));
  tensor.set_data_type(9);  // BOOL
  data = (*file)->Read(tensor);
  EXPECT_THAT(std::string(data.status().message()), HasSubstr("a bool that is 56"));
}

TEST(ModelFile, ExternalDataStaysInTheFolder) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "quern_onnx_external";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.bin", std::ios::binary) << std::string(24, '\1');
  std::error_code ignored;
  std::filesystem::create_symlink("/etc/passwd", folder / "link", ignored);
  const auto with = [&](const std::string& location, const std::string& offset, const std::string& length) {
    format::Model model = AddModel();
    format::Tensor& w = *model.mutable_graph()->mutable_initializer(0);
    w.clear_raw_data();
    w.set_data_location(1);
    for (const auto& [key, value] : {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      format::Entry& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    return ErrorOf(model, folder.string());
  };
  EXPECT_EQ(with("w.bin", "8", "8"), "");
  EXPECT_THAT(with("w.bin", "20", "8"), HasSubstr("ends behind the 24 bytes"));
  EXPECT_THAT(with("w.bin", "99", "8"), HasSubstr("begins at byte 99"));
  EXPECT_THAT(with("w.bin", "-1", "8"), HasSubstr("the offset of its external data"));
  EXPECT_THAT(with("w.bin", "0", "4"), HasSubstr("has 4 bytes"));
  for (const char* outside : {"/etc/passwd", "../w.bin", "a/../../w.bin", "link", ""})
    EXPECT_THAT(with(outside, "0", "8"), HasSubstr("not in the model's folder")) << outside;
  EXPECT_THAT(with("nowhere.bin", "0", "8"), HasSubstr("cannot be read"));
}

TEST(Import, NamesTheNode) {
  format::Model model = AddModel();
  model.mutable_graph()->mutable_node(0)->set_op_type("Frobnicate");
  EXPECT_THAT(ErrorOf(model), HasSubstr("no importer of the op Frobnicate, which the node sum is"));
  const auto file = Load(model);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(NotCovered(**file), std::vector<std::string>{"op Frobnicate (first: sum)"});
  model = AddModel();
  model.mutable_graph()->mutable_node(0)->set_input(1, "nothing");
  EXPECT_THAT(ErrorOf(model), HasSubstr("Add sum: there is no value called nothing before it"));
  model = AddModel();
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 1);
  model.mutable_graph()->mutable_initializer(0)->add_dims(1);
  model.mutable_graph()->mutable_initializer(0)->set_data_type(11);
  EXPECT_THAT(ErrorOf(model), HasSubstr("in sum"));
  model = AddModel();
  model.mutable_graph()->mutable_node(0)->set_op_type("Reshape");
  EXPECT_THAT(ErrorOf(model), HasSubstr("sum"));
  model = AddModel();
  model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(ErrorOf(model), HasSubstr("the output z is made by no node"));
}

TEST(Import, ValuesThatDecideSizesArePartOfTheGraph) {
  format::Model model = AddModel();
  format::Graph& graph = *model.mutable_graph();
  graph.mutable_node(0)->set_op_type("Reshape");
  graph.mutable_node(0)->set_input(1, "shape");
  format::ValueInfo& shape = *graph.add_input();
  shape.set_name("shape");
  shape.mutable_type()->mutable_tensor_type()->set_elem_type(7);
  shape.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
  EXPECT_THAT(ErrorOf(model), HasSubstr("made of the inputs shape"));
  const auto file = Load(model);
  ASSERT_TRUE(file.ok());
  FileTensor value{DType::kI64, {2}, std::vector<uint8_t>(16)};
  value.bytes[0] = 2;
  std::fill(value.bytes.begin() + 8, value.bytes.end(), 255);
  const StatusOr<Imported> imported = Import(**file, {.values = {{"shape", value}}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.type(imported->graph.outputs[0]).ToString(), "f32[2, N]");
  EXPECT_TRUE(imported->fixed_inputs.contains("shape"));
}

// Seeds of fuzzing and what it found: an error, or a graph that verifies.
TEST(Import, SeedsAreErrorsOrGraphs) {
  int graphs = 0, errors = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QUERN_SOURCE_DIR "/tests/fuzz/corpus/onnx")) {
    const auto file = ModelFile::Open(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status();
    const StatusOr<Imported> imported = Import(**file, {.usual_size = 3});
    EXPECT_FALSE(absl::IsInternal(imported.status())) << imported.status();
    ++(imported.ok() ? graphs : errors);
    if (imported.ok()) EXPECT_TRUE(ir::Verify(imported->graph).ok()) << entry.path();
  }
  EXPECT_GT(graphs, 15);
  EXPECT_GE(errors, 1);
}

// Functions that call each other, and bodies inside each other, end.
TEST(Import, RecursionEnds) {
  format::Model model = AddModel();
  model.mutable_graph()->mutable_node(0)->set_op_type("F");
  model.mutable_graph()->mutable_node(0)->set_domain("d");
  format::Function& function = *model.add_functions();
  function.set_name("F");
  function.set_domain("d");
  function.add_input("a");
  function.add_output("b");
  format::Node& node = *function.add_node();
  node.set_op_type("F");
  node.set_domain("d");
  node.add_input("a");
  node.add_output("b");
  EXPECT_THAT(ErrorOf(model), HasSubstr("more than 32 deep"));
  format::Node& twice = *function.add_node();
  twice = node;
  EXPECT_THAT(ErrorOf(model), HasSubstr("more than 32 deep"));
  format::Graph inner;
  inner.add_output()->set_name("x");
  for (int depth = 0; depth < 100; ++depth) {
    format::Graph outer;
    format::Node& branch = *outer.add_node();
    branch.set_op_type("If");
    branch.add_input("x");
    branch.add_output("x");
    format::Attribute& attribute = *branch.add_attribute();
    attribute.set_name("then_branch");
    *attribute.mutable_g() = inner;
    inner = outer;
  }
  model = AddModel();
  *model.mutable_graph()->mutable_node(0) = inner.node(0);
  EXPECT_THAT(ErrorOf(model), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace quern::onnx
