#include "support/c_kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/c/emit_c.h"
#include "kir/interpret.h"
#include "support/kernel_buffers.h"

extern char** environ;

namespace quern {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGuard = 64;
constexpr uint8_t kGuardByte = 0xA5;

// A new directory, removed with all in it.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quern-c-XXXXXX").string();
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

// Memory of a parameter, 64-aligned, with guard bytes on both sides and an unmapped page not far behind: a write outside
// is seen, and a read of more than the guard behind the end stops the program.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(const std::vector<uint8_t>& bytes) : size_(static_cast<int64_t>(bytes.size())) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t mapped = (size_ + 63) / 64 * 64 + kGuard;
    total_ = (mapped + kGuard + page - 1) / page * page + page;
    void* const memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    QUERN_CHECK(memory != MAP_FAILED);
    start_ = static_cast<uint8_t*>(memory);
    std::memset(start_, kGuardByte, total_ - page);
    QUERN_CHECK(mprotect(start_ + total_ - page, page, PROT_NONE) == 0);
    end_ = start_ + total_ - page;
    data_ = end_ - mapped;
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(start_, other.start_), std::swap(end_, other.end_), std::swap(data_, other.data_);
    std::swap(size_, other.size_), std::swap(total_, other.total_);
    return *this;
  }
  ~GuardedBuffer() {
    if (start_ != nullptr) munmap(start_, total_);
  }
  uint8_t* data() const { return data_; }
  bool Intact() const {
    auto guard = [](uint8_t byte) { return byte == kGuardByte; };
    return std::all_of(start_, data_, guard) && std::all_of(data_ + size_, end_, guard);
  }
  std::vector<uint8_t> Bytes() const { return {data_, data_ + size_}; }

 private:
  uint8_t* start_ = nullptr;
  uint8_t* end_ = nullptr;
  uint8_t* data_ = nullptr;
  int64_t size_ = 0, total_ = 0;
};

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Ranges ChunkRanges(int64_t chunks, int64_t max_chunks, std::mt19937_64& random) {
  if (chunks <= max_chunks) {
    const int64_t cut = static_cast<int64_t>(random() % (chunks + 1));
    return {{0, cut}, {cut, chunks}};
  }
  const int64_t middle = 1 + static_cast<int64_t>(random() % (chunks - 2));
  Ranges ranges = {{middle, middle + 1}, {chunks - 1, chunks}, {0, 1}};
  if (max_chunks < 3) ranges.resize(std::max<int64_t>(max_chunks, 1));
  return ranges;
}

double ToleranceOf(DType dtype, double tolerance) {
  if (dtype == DType::kF16) return tolerance + 0x1p-10;
  return dtype == DType::kBF16 ? tolerance + 0x1p-7 : tolerance;
}

// Runs one case: the interpreter once, then each function on memory of its own.
Status RunCase(const CKernelCase& test, quern_kernel* wide, quern_kernel* narrow) {
  const std::string where = absl::StrFormat("kernel %s, seed %d", test.kernel.name, test.seed);
  auto fail = [&](const std::string& message) { return absl::InternalError(absl::StrCat(where, ", ", message)); };
  std::mt19937_64 random(test.seed);
  QUERN_ASSIGN(const Binding binding, kir::BindSymbols(test.kernel, test.binding));
  QUERN_ASSIGN(const int64_t chunks, kir::GridChunks(test.kernel, test.binding));
  QUERN_ASSIGN(const int64_t scratch_bytes, kir::ScratchBytes(test.kernel, test.binding));
  std::vector<std::vector<uint8_t>> initial;
  for (const kir::Param& param : test.kernel.params) {
    QUERN_ASSIGN(std::vector<uint8_t> bytes, kir::RandomBuffer(param.type, binding, random));
    initial.push_back(std::move(bytes));
  }
  const Ranges ranges = ChunkRanges(chunks, test.max_chunks, random);

  std::vector<std::vector<uint8_t>> expected = initial;
  std::vector<kir::BufferBytes> spans;
  for (std::vector<uint8_t>& bytes : expected) spans.emplace_back(bytes);
  QUERN_ASSIGN(kir::Interpreter interpreter, kir::Interpreter::Create(test.kernel, test.binding));
  for (const auto& [begin, end] : ranges) {
    if (Status ran = interpreter.Run(spans, begin, end); !ran.ok()) return fail(std::string(ran.message()));
  }

  std::vector<int64_t> symbols;
  for (const kir::SymbolDecl& symbol : test.kernel.symbols) symbols.push_back(binding.at(symbol.name));
  for (const bool is_wide : {true, false}) {
    if (!is_wide && test.tolerance == 0) continue;
    quern_kernel* const run = is_wide ? wide : narrow;
    if (run == nullptr) return fail("no function");
    std::vector<GuardedBuffer> buffers;
    std::vector<void*> pointers;
    for (const std::vector<uint8_t>& bytes : initial) {
      buffers.emplace_back(bytes);
      pointers.push_back(buffers.back().data());
    }
    const quern_args args = {pointers.data(), symbols.data()};
    for (const auto& [begin, end] : ranges) {
      GuardedBuffer scratch(std::vector<uint8_t>(scratch_bytes, 0xFF));
      run(&args, scratch.data(), begin, end);
      if (!scratch.Intact()) return fail("writes outside its scratch");
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const kir::Param& param = test.kernel.params[i];
      if (!buffers[i].Intact()) return fail(absl::StrCat("writes outside ", param.name));
      const double tolerance = is_wide ? 0 : ToleranceOf(param.type.dtype, test.tolerance);
      const std::string difference = kir::FirstDifference(param.type, buffers[i].Bytes(), expected[i], tolerance);
      if (!difference.empty())
        return fail(absl::StrCat(is_wide ? "in double, " : "in float, ", param.name, difference));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void CLibrary::Close::operator()(void* handle) const { dlclose(handle); }

quern_kernel* CLibrary::Find(size_t source, const std::string& symbol) const {
  return reinterpret_cast<quern_kernel*>(dlsym(handles_[source].get(), symbol.c_str()));
}

StatusOr<CLibrary> CLibrary::Compile(const std::vector<std::string>& sources) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return absl::InternalError("no temporary folder");
  std::vector<pid_t> compilers;
  auto file = [&](size_t i, const char* suffix) { return (folder.path / absl::StrCat("k", i, suffix)).string(); };
  for (size_t i = 0; i < sources.size(); ++i) {
    std::ofstream(file(i, ".c")) << sources[i];
    // Calls to these are kept: a compiler may give them another last bit, or make one of another.
    compilers.push_back(Start({QUERN_C_COMPILER, "-std=c11", "-O1", "-shared", "-fPIC", "-ffp-contract=off",
                               "-fno-builtin-pow", "-fno-builtin-powf", "-fno-builtin-exp2", "-fno-builtin-exp2f",
                               "-Werror=return-type", "-Werror=implicit-function-declaration",
                               "-Werror=incompatible-pointer-types", "-o", file(i, ".so"), file(i, ".c"), "-lm"},
                              file(i, ".log")));
  }
  CLibrary library;
  Status status;
  for (size_t i = 0; i < sources.size(); ++i) {
    int result = -1;
    if (compilers[i] < 0 || waitpid(compilers[i], &result, 0) < 0 || result != 0) {
      status =
          absl::InternalError(absl::StrCat(QUERN_C_COMPILER, " failed:\n", Contents(file(i, ".log")).substr(0, 4000)));
      continue;
    }
    library.handles_.emplace_back(dlopen(file(i, ".so").c_str(), RTLD_NOW | RTLD_LOCAL));
    if (library.handles_.back() == nullptr) status = absl::InternalError(dlerror());
  }
  if (!status.ok()) return status;
  return library;
}

Status CheckKernelsThroughC(std::span<const CKernelCase> cases) {
  // One source in double, one in float of those that are compared so.
  std::vector<c::NamedKernel> wide, narrow;
  for (size_t i = 0; i < cases.size(); ++i) {
    wide.push_back({cases[i].emitted ? &*cases[i].emitted : &cases[i].kernel, absl::StrCat("kernel_", i)});
    if (cases[i].tolerance != 0) narrow.push_back(wide.back());
  }
  std::vector<std::string> sources(2);
  QUERN_ASSIGN(sources[0], c::EmitC(wide, {.wide = true}));
  QUERN_ASSIGN(sources[1], c::EmitC(narrow, {.wide = false}));
  QUERN_ASSIGN(const CLibrary library, CLibrary::Compile(sources));
  for (size_t i = 0; i < cases.size(); ++i) {
    QUERN_RETURN_IF_ERROR(RunCase(cases[i], library.Find(0, wide[i].symbol), library.Find(1, wide[i].symbol)));
  }
  return absl::OkStatus();
}

Status CheckKernelThroughC(const kir::Kernel& kernel, const Binding& binding, uint64_t seed) {
  const CKernelCase test{.kernel = kernel, .binding = binding, .seed = seed};
  return CheckKernelsThroughC({&test, 1});
}

}  // namespace quern
