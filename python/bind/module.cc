// The extension module quern._quern: the C++ interface as it is, for the Python of the package to build on.

#include <nanobind/stl/optional.h>
#include <quern/compile.h>
#include <quern/ops.h>
#include <quern/profile.h>
#include <signal.h>

#include <atomic>

#include "bind.h"

namespace quern::python {
namespace {

// In the order of ErrorCode.
constexpr const char* kCodes[] = {
    "none",           "unknown_op",     "unknown_operand", "input_count",    "missing_bias", "shape_mismatch",
    "dtype_mismatch", "unbound_symbol", "bad_attribute",   "duplicate_name", "unsupported",  "missing",
    "unknown_name",   "out_of_range",   "size_conflict",   "busy",           "cancelled",    "check",
    "invalid",        "resource",       "internal"};
static_assert(std::size(kCodes) == static_cast<size_t>(ErrorCode::kInternal) + 1);

// What a signal handler can reach: the token of the run on the main thread, and the handler that was there before.
std::atomic<CancelToken*> watched{nullptr};
std::atomic<bool> asked{false};
struct sigaction previous;

void OnInterrupt(int signal, siginfo_t* info, void* context) {
  if (CancelToken* const token = watched.load()) token->Cancel(), asked = true;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  }
}

bool OnMainThread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return nb::cast<unsigned long>(threading.attr("main_thread")().attr("ident")) == PyThread_get_thread_ident();
}

}  // namespace

void Raise(const Error& error) {
  nb::object type = nb::module_::import_("quern.errors").attr("QuernError");
  nb::object made = type(error.message, kCodes[static_cast<int>(error.code)], error.op, error.operand, error.expected,
                         error.got, error.where, error.suggestion);
  PyErr_SetObject(type.ptr(), made.ptr());
  throw nb::python_error();
}

Interruptible::Interruptible(CancelToken* token) : token_(token) {
  if (token == nullptr || watched.load() != nullptr || !OnMainThread()) return;
  // Only where Python would answer: a program that has a handler of its own keeps it.
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) == 0 && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  previous = now;
  watched.store(token);
  struct sigaction ours = {};
  ours.sa_sigaction = OnInterrupt;
  ours.sa_flags = SA_SIGINFO;
  sigemptyset(&ours.sa_mask);
  watching_ = sigaction(SIGINT, &ours, nullptr) == 0;
  if (!watching_) watched.store(nullptr);
}

Interruptible::~Interruptible() {
  if (!watching_) return;
  sigaction(SIGINT, &previous, nullptr);
  watched.store(nullptr);
}

void Interruptible::Finish() {
  if (!watching_) return;
  if (asked.exchange(false)) token_->Reset();  // that Ctrl-C has ended this run, and no later one
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Turn::Turn(std::atomic<bool>& taken) : taken_(taken) {
  if (!taken.exchange(true)) return;
  Error error;
  error.code = ErrorCode::kBusy;
  error.message = "another thread is using this";
  Raise(error);
}

}  // namespace quern::python

NB_MODULE(_quern, m) {
  using namespace quern;          // NOLINT
  using namespace quern::python;  // NOLINT
  m.doc() = "The C++ interface of Quern. Use the package quern instead.";
  m.attr("error_codes") = nb::cast(std::vector<std::string>(std::begin(kCodes), std::end(kCodes)));

  nb::class_<OperandInfo>(m, "OperandInfo")
      .def_ro("name", &OperandInfo::name)
      .def_ro("kind", &OperandInfo::kind)
      .def_ro("shape", &OperandInfo::shape)
      .def_ro("optional", &OperandInfo::optional)
      .def_ro("variadic", &OperandInfo::variadic);
  nb::class_<AttributeInfo>(m, "AttributeInfo")
      .def_ro("name", &AttributeInfo::name)
      .def_ro("kind", &AttributeInfo::kind)
      .def_ro("required", &AttributeInfo::required)
      .def_ro("default_value", &AttributeInfo::default_value)
      .def_ro("doc", &AttributeInfo::doc)
      .def_ro("choices", &AttributeInfo::choices);
  nb::class_<OpInfo>(m, "OpInfo")
      .def_ro("name", &OpInfo::name)
      .def_ro("doc", &OpInfo::doc)
      .def_ro("section", &OpInfo::section)
      .def_ro("operands", &OpInfo::operands)
      .def_ro("attributes", &OpInfo::attributes)
      .def_ro("bodies", &OpInfo::bodies);
  m.def("op_table", &OpTable);
  m.def("block_table", &BlockTable);

  nb::class_<LoraAdapter>(m, "LoraAdapter")
      .def(nb::init<>())
      .def_rw("path", &LoraAdapter::path)
      .def_rw("scale", &LoraAdapter::scale);
  nb::class_<Options>(m, "Options")
      .def(nb::init<>())
      .def_rw("cpu", &Options::cpu)
      .def_rw("device", &Options::device)
      .def_rw("threads", &Options::threads)
      .def_rw("compile_threads", &Options::compile_threads)
      .def_rw("exact", &Options::exact)
      .def_rw("invariant", &Options::invariant)
      .def_rw("kernels", &Options::kernels)
      .def_rw("specialise", &Options::specialise)
      .def_rw("cache", &Options::cache)
      .def_rw("cache_verify", &Options::cache_verify)
      .def_rw("check", &Options::check)
      .def_rw("check_folder", &Options::check_folder)
      .def_rw("perf_map", &Options::perf_map)
      .def_rw("debug_kernels", &Options::debug_kernels)
      .def_rw("context", &Options::context)
      .def_rw("lora", &Options::lora);

  m.def("inspect", [](const std::string& path) { return Unlocked([&] { return Inspect(path); }); });
  m.def("dump", [](const std::string& path, const Options& options, const std::string& stage, int64_t tokens) {
    return Unlocked([&] { return Dump(path, options, {.stage = stage, .tokens = tokens}); });
  });

  BindFormats(m);
  BindGraphs(m);
  BindModels(m);
  BindSequences(m);
}
