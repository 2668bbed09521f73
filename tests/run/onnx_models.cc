// The models of ../shared/models/onnx against the outputs that ONNX Runtime gave, every data set of each.
//
//   onnx_models FOLDER [--only TEXT]      a line for each; fails where one is off by more than 1e-3

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/onnx_case.h"

int main(int argc, char** argv) {
  std::string only, folder;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else
      folder = argv[i];
  }
  std::vector<std::string> models;
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unknown)) {
    if (entry.path().string().find(only) != std::string::npos) models.push_back(entry.path().string());
  }
  if (models.empty()) return std::printf("skipped: there are no models in %s\n", folder.c_str()), 0;
  std::sort(models.begin(), models.end());
  int wrong = 0;
  for (const std::string& model : models) {
    for (int set = 0; std::filesystem::exists(model + "/test_data_set_" + std::to_string(set)); ++set) {
      const quern::testing::OnnxOutcome outcome =
          quern::testing::RunOnnxCase(model, "test_data_set_" + std::to_string(set), 1e-3, 1e-3, 2);
      const bool passed = outcome.kind == quern::testing::OnnxOutcome::Kind::kPassed;
      wrong += !passed;
      std::printf("%-36s %d  %s", std::filesystem::path(model).filename().c_str(), set,
                  passed ? "" : outcome.reason.c_str());
      if (passed) std::printf("largest difference %.3g%s", outcome.difference, outcome.fixed ? ", inputs fixed" : "");
      if (passed && !outcome.sizes.empty()) std::printf(", sizes fixed: %s", outcome.sizes.substr(0, 100).c_str());
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  return wrong == 0 ? 0 : 1;
}
