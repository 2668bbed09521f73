// Many texts in one language model.
#include <quern/sequences.h>
#include <quern/tokenizer.h>

#include <optional>
#include <string>
#include <tuple>

#include "bind.h"

namespace quern::python {
namespace {

// With what asks a step to stop.
struct OwnedSequences {
  CancelToken cancel;
  std::optional<Sequences> model;
  mutable std::atomic<bool> taken{false};

  static std::unique_ptr<OwnedSequences> Open(const std::string& path, Options options, int most, int64_t tokens) {
    auto owned = std::make_unique<OwnedSequences>();
    options.cancel = &owned->cancel;
    owned->model =
        Unlocked(&owned->cancel, [&] { return Sequences::Open(path, options, {.most = most, .tokens = tokens}); });
    return owned;
  }

  // What each of these sequences adds, and whether it wants logits; None for those that do not.
  nb::list Step(const std::vector<std::tuple<int, std::vector<int32_t>, bool>>& rows) {
    const Turn turn(taken);
    std::vector<SequenceStep> steps;
    for (const auto& [sequence, ids, logits] : rows) steps.push_back({sequence, ids, logits});
    std::vector<std::vector<float>> made = Unlocked(&cancel, [&] { return model->Step(steps); });
    nb::list all;
    for (std::vector<float>& logits : made) {
      const size_t count = logits.size();
      if (count == 0)
        all.append(nb::none());
      else
        all.append(Array(std::move(logits), {count}));
    }
    return all;
  }
};

}  // namespace

void BindSequences(nb::module_& m) {
  using S = OwnedSequences;
  nb::class_<S>(m, "Sequences")
      .def_static("open", &S::Open)
      .def("vocabulary", [](const S& s) { return s.model->vocabulary(); })
      .def("context", [](const S& s) { return s.model->context(); })
      .def("rewinds", [](const S& s) { return s.model->rewinds(); })
      .def("room",
           [](const S& s) {
             const Turn turn(s.taken);
             return s.model->room();
           })
      .def("steps",
           [](const S& s) {
             const Turn turn(s.taken);
             return s.model->steps();
           })
      .def("length",
           [](const S& s, int sequence) {
             const Turn turn(s.taken);
             return s.model->length(sequence);
           })
      .def("tokenizer", [](const S& s) { return Take(s.model->tokenizer()); })
      .def("add",
           [](S& s) {
             const Turn turn(s.taken);
             return Take(s.model->Add());
           })
      .def("fork",
           [](S& s, int sequence, int64_t tokens) {
             const Turn turn(s.taken);
             return Take(s.model->Fork(sequence, tokens));
           })
      .def("truncate",
           [](S& s, int sequence, int64_t tokens) {
             const Turn turn(s.taken);
             Take(s.model->Truncate(sequence, tokens));
           })
      .def("remove",
           [](S& s, int sequence) {
             const Turn turn(s.taken);
             Take(s.model->Remove(sequence));
           })
      .def("step", &S::Step)
      .def("save",
           [](const S& s, int sequence) {
             const Turn turn(s.taken);
             const std::vector<uint8_t> bytes = Take(s.model->Save(sequence));
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("load",
           [](S& s, nb::bytes bytes) {
             const Turn turn(s.taken);
             return Take(s.model->Load({reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()}));
           })
      .def("cancel", [](S& s) { s.cancel.Cancel(); })
      .def("uncancel", [](S& s) { s.cancel.Reset(); });
}

}  // namespace quern::python
