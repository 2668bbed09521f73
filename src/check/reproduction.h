// A reproduction: a graph, the bytes that go into it, and how it was compiled and run. Two files, NAME.qir and
// NAME.safetensors.
//
// NAME.qir is graph text (ir/graph.h) below lines of comment, of which some are read:
//   # quern replay NAME.qir
//   # check: ref                                              or nan
//   # options: cpu=avx512 threads=1 passes=none fuse=on exact=off specialise=off
//   # sizes: SEQ=5 PAST_SEQ=3                                 a value for every symbol of the graph
//   # data: NAME.safetensors                                  a file beside it
// What is not there is as in a fresh Reproduction. Other comments are for people.
//
// NAME.safetensors has a tensor for each Input and Param of the graph, by name, of its dtype and shape. Block formats,
// which the format has not, are U8: rows of the bytes that check::Bytes has. Both files are taken for hostile until
// they have been checked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "check/finding.h"
#include "check/run_case.h"
#include "import/tensor_file.h"
#include "ir/graph.h"

namespace quern::check {

struct Settings {
  std::string cpu = "native";
  int threads = 1;
  bool passes = true;  // the passes before fusion; off: the graph has been through them
  bool fuse = true;
  bool exact = false;
  bool specialise = false;
};

struct Reproduction {
  ir::Graph graph;
  Binding sizes;
  Bytes bytes;
  Kind kind = Kind::kRef;
  Settings settings;
  std::vector<std::string> notes;  // lines of comment
};

// The comments and the graph; `data`: name of the other file, without a folder.
std::string PrintText(const Reproduction& reproduction, std::string_view name, std::string_view data);
// The values as a .safetensors file. Errors: a leaf without bytes, a name that such a file cannot have.
StatusOr<std::string> PrintData(const Reproduction& reproduction);
// Errors: a sentence with the line or the byte where it goes wrong; a symbol without a size, a leaf with none or the
// wrong number of bytes, bytes of no leaf.
StatusOr<Reproduction> ParseText(std::string_view text, std::string* data);
// The comments alone, above whatever sort of graph.
StatusOr<Reproduction> ParseComments(std::string_view text, std::string* data);
// Puts the tensors of a .safetensors file into `made`, whose graph and sizes are there. Errors: one without a tensor,
// one of no leaf, another dtype or shape.
Status ParseData(std::span<const uint8_t> file, Reproduction& made);
// The bytes of an Input or Param from a tensor of a file: of its dtype and shape, or U8 of as many bytes where it is of
// a block format. `where`: the graph's name. Errors: kDTypeMismatch and kShapeMismatch.
Status TakeTensor(const ir::Node& leaf, const Binding& sizes, const std::string& where, FileTensor tensor,
                  std::vector<uint8_t>& bytes);
Status Check(const Reproduction& reproduction);

// The sizes that a run is given, and the most of those that it finds. Error: one is not given.
StatusOr<Binding> MostSizes(const ir::Graph& graph, const Binding& given);

// Both files. `path` ends in .qir. Errors name the file.
Status Write(const Reproduction& reproduction, const std::string& path);
StatusOr<Reproduction> Read(const std::string& path);

}  // namespace quern::check
