#include "support/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace quern {
namespace {

namespace fs = std::filesystem;

// A new directory, removed with all in it.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quern-so-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

pid_t Start(std::vector<std::string> words, const std::string& output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

std::string Contents(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The end of what Start began.
Status Finish(pid_t compiler, const std::string& name, const fs::path& output) {
  int result = -1;
  if (compiler >= 0 && waitpid(compiler, &result, 0) >= 0 && result == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, " failed:\n", Contents(output).substr(0, 4000)));
}

}  // namespace

Status CompilesWith(const std::string& source, const std::vector<std::string>& compiler, const std::string& extension) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return absl::InternalError("no temporary folder");
  const std::string file = (folder.path / ("k" + extension)).string(), log = (folder.path / "log").string();
  std::ofstream(file) << source;
  std::vector<std::string> words = compiler;
  words.push_back(file);
  return Finish(Start(std::move(words), log), compiler[0], log);
}

void SharedObjects::Close::operator()(void* handle) const { dlclose(handle); }

void* SharedObjects::Find(size_t source, const std::string& symbol) const {
  return dlsym(handles_[source].get(), symbol.c_str());
}

quern_kernel* SharedObjects::FindKernel(size_t source, const std::string& symbol) const {
  return reinterpret_cast<quern_kernel*>(Find(source, symbol));
}

StatusOr<SharedObjects> SharedObjects::Compile(const std::vector<std::string>& sources,
                                               const std::vector<std::string>& compiler, const std::string& extension,
                                               const std::vector<std::string>& after) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return absl::InternalError("no temporary folder");
  std::vector<pid_t> compilers;
  auto file = [&](size_t i, const std::string& suffix) {
    return (folder.path / absl::StrCat("k", i, suffix)).string();
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    std::ofstream(file(i, extension)) << sources[i];
    std::vector<std::string> words = compiler;
    words.insert(words.end(), {"-o", file(i, ".so"), file(i, extension)});
    words.insert(words.end(), after.begin(), after.end());
    compilers.push_back(Start(std::move(words), file(i, ".log")));
  }
  SharedObjects objects;
  Status status;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (Status finished = Finish(compilers[i], compiler[0], file(i, ".log")); !finished.ok()) {
      status = finished;
      continue;
    }
    objects.handles_.emplace_back(dlopen(file(i, ".so").c_str(), RTLD_NOW | RTLD_LOCAL));
    if (objects.handles_.back() == nullptr) status = absl::InternalError(dlerror());
  }
  if (!status.ok()) return status;
  return objects;
}

}  // namespace quern
