// What the parts of the extension module have in common: errors, arrays, and runs that Ctrl-C stops.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <quern/quern.h>
#include <quern/result.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace quern::python {

namespace nb = nanobind;

// Throws quern.QuernError.
[[noreturn]] void Raise(const Error& error);

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Raise(result.details());
  return std::move(*result);
}
inline void Take(const Result<void>& result) {
  if (!result.ok()) Raise(result.details());
}

// While it lives, on Python's main thread where that handles SIGINT, Ctrl-C also asks the token to stop. The destructor
// gives the signal back; Finish, with the GIL, raises what Ctrl-C asked for (KeyboardInterrupt).
class Interruptible {
 public:
  explicit Interruptible(CancelToken* token);
  ~Interruptible();
  void Finish();

 private:
  bool watching_ = false;
  CancelToken* token_;
};

// Runs `work`, which gives a Result, without the GIL; Ctrl-C stops it.
template <typename Work>
auto Unlocked(CancelToken* token, const Work& work) {
  Interruptible interruptible(token);
  auto result = [&] {
    nb::gil_scoped_release release;
    return work();
  }();
  interruptible.Finish();
  return Take(std::move(result));
}
template <typename Work>
auto Unlocked(const Work& work) {
  return Unlocked(nullptr, work);
}

// A program or session is one thread's at a time; while one runs without the GIL another may ask: QuernError, "busy".
class Turn {
 public:
  explicit Turn(std::atomic<bool>& taken);
  ~Turn() { taken_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& taken_;
};

// Dense arrays in the memory of this machine, as the caller has them. How Python's side makes them: quern/arrays.py.
using Input = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;
using Output = nb::ndarray<nb::device::cpu, nb::c_contig>;

// A numpy array that owns what a vector held.
template <typename T>
nb::object Array(std::vector<T> values, std::vector<size_t> shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

void BindFormats(nb::module_& m);
void BindGraphs(nb::module_& m);
void BindModels(nb::module_& m);
void BindSequences(nb::module_& m);

}  // namespace quern::python
