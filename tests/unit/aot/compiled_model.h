// A graph without parameters that CompileGraph compiled, as a model of this process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "quern/abi.h"
#include "quern/compile.h"
#include "quern/graph.h"
#include "support/temp_folder.h"
#include "unit/aot/graph_case.h"

namespace quern::testing {

// A graph in a library of this process, and a model in memory of its own.
class Compiled {
 public:
  explicit Compiled(const Graph& graph) {
    const Result<CompiledFiles> files = CompileGraph(graph, {}, {.folder = folder_.path(), .name = "g"});
    EXPECT_TRUE(files.ok()) << files.error();
    if (!files.ok()) return;
    std::ifstream header(files->header);
    header_.assign(std::istreambuf_iterator<char>(header), {});
    const std::string path = folder_.path() + "/g.so";
    const std::string command = absl::StrCat(QUERN_C_COMPILER " -shared -Wl,-z,defs ", files->body, " -lm -o ", path);
    EXPECT_EQ(std::system(command.c_str()), 0);
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    if (library_ == nullptr) return;
    memory_ = std::make_unique<Aligned>(Function<int64_t(int64_t)>("workspace_bytes")(1));
    const auto init = Function<int32_t(void**, void*, size_t, const void*, size_t, const quern_runner*)>("init");
    EXPECT_EQ(init(&model_, memory_->data, memory_->size, nullptr, 0, nullptr), QUERN_OK);
  }
  ~Compiled() {
    if (library_ != nullptr) dlclose(library_);
  }

  template <typename Type>
  Type* Function(const char* word) const {
    return reinterpret_cast<Type*>(dlsym(library_, absl::StrCat("g_", word).c_str()));
  }
  void* model() const { return model_; }
  const Aligned& memory() const { return *memory_; }
  const std::string& header() const { return header_; }

 private:
  const TempFolder folder_;
  std::string header_;
  void* library_ = nullptr;
  std::unique_ptr<Aligned> memory_;
  void* model_ = nullptr;
};

}  // namespace quern::testing
