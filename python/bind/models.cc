// Language models: sessions, samplers, tokenizers, chat templates, embeddings.

#include <nanobind/stl/optional.h>
#include <quern/chat.h>
#include <quern/embed.h>
#include <quern/profile.h>
#include <quern/tokenizer.h>

#include <optional>
#include <string>

#include "bind.h"

namespace quern::python {
namespace {

// A session or embedder with what asks it to stop.
template <typename Model>
struct Owned {
  std::unique_ptr<CancelToken> cancel = std::make_unique<CancelToken>();
  std::optional<Model> model;
  mutable std::atomic<bool> taken{false};

  static std::unique_ptr<Owned> Open(const std::string& path, Options options) {
    auto owned = std::make_unique<Owned>();
    options.cancel = owned->cancel.get();
    owned->model = Unlocked(owned->cancel.get(), [&] { return Model::Open(path, options); });
    return owned;
  }
};
using OwnedSession = Owned<Session>;
using OwnedEmbedder = Owned<Embedder>;

nb::bytes ToBytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

nb::dict TimingsOf(const Timings& t) {
  nb::dict all;
  all["load"] = t.load;
  all["compile"] = t.compile;
  all["run"] = t.run;
  all["passes"] = t.passes;
  all["plans"] = t.plans;
  all["cached"] = t.cached;
  all["llvm"] = t.llvm;
  all["kernels_cached"] = t.kernels_cached;
  all["kernels_compiled"] = t.kernels_compiled;
  return all;
}

Pooling PoolingOf(const std::string& name) {
  constexpr std::pair<const char*, Pooling> kPoolings[] = {
      {"model", Pooling::kModel}, {"mean", Pooling::kMean}, {"first", Pooling::kFirst}, {"last", Pooling::kLast}};
  for (const auto& [known, pooling] : kPoolings) {
    if (name == known) return pooling;
  }
  throw nb::value_error(("pooling is model, mean, first or last, not " + name).c_str());
}

}  // namespace

void BindModels(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer")
      .def_static("open", [](const std::string& path) { return Unlocked([&] { return Tokenizer::Open(path); }); })
      .def("size", &Tokenizer::size)
      .def("encode", [](const Tokenizer& t, std::string_view text, bool begin,
                        bool special) { return t.Encode(text, {.begin = begin, .parse_special = special}); })
      .def("piece", [](const Tokenizer& t, int32_t id, bool special) { return ToBytes(t.Piece(id, special)); })
      .def("decode", [](const Tokenizer& t, const std::vector<int32_t>& ids,
                        bool special) { return ToBytes(t.Decode(ids, special)); })
      .def("is_end", &Tokenizer::IsEnd)
      .def("begin", &Tokenizer::begin)
      .def("end", &Tokenizer::end);

  nb::class_<TextStream>(m, "TextStream")
      .def(nb::init<Tokenizer, std::vector<std::string>, bool>())
      .def("add", &TextStream::Add)
      .def("flush", &TextStream::Flush)
      .def("stopped", &TextStream::stopped);

  nb::class_<SamplingOptions> sampling(m, "SamplingOptions");
  sampling.def(nb::init<>())
      .def_rw("seed", &SamplingOptions::seed)
      .def_rw("logit_bias", &SamplingOptions::logit_bias)
      .def_rw("dry_breakers", &SamplingOptions::dry_breakers)
      .def_rw("grammar", &SamplingOptions::grammar)
      .def("_needs_tokenizer", &SamplingOptions::needs_tokenizer);
  for (const SamplingNumber& number : SamplingNumbers())
    std::visit([&](auto place) { sampling.def_rw(number.name, place); }, number.member);
  nb::class_<Sampler>(m, "Sampler")
      .def_static(
          "make",
          [](const SamplingOptions& options, const Tokenizer* tokenizer) {
            return Take(Sampler::Make(options, tokenizer));
          },
          nb::arg(), nb::arg().none())
      .def("draw",
           [](Sampler& s, nb::ndarray<const float, nb::device::cpu, nb::c_contig> logits) {
             return Take(s.Draw({logits.data(), logits.size()}));
           })
      .def("observe", [](Sampler& s, const std::vector<int32_t>& ids) { s.Observe(ids); })
      .def("forget", &Sampler::Forget)
      .def("complete", &Sampler::complete);
  m.def("grammar_of_json_schema", [](std::string_view schema) { return Take(GrammarOfJsonSchema(schema)); });

  nb::class_<OwnedSession>(m, "Session")
      .def_static("open", &OwnedSession::Open)
      .def("vocabulary", [](const OwnedSession& s) { return s.model->vocabulary(); })
      .def("context", [](const OwnedSession& s) { return s.model->context(); })
      .def("position", [](const OwnedSession& s) { return s.model->position(); })
      .def("trained_context", [](const OwnedSession& s) { return s.model->trained_context(); })
      .def("threads", [](const OwnedSession& s) { return s.model->threads(); })
      .def("timings", [](const OwnedSession& s) { return TimingsOf(s.model->timings()); })
      .def("check_summary", [](const OwnedSession& s) { return s.model->CheckSummary(); })
      .def("tokenizer", [](const OwnedSession& s) { return Take(s.model->tokenizer()); })
      .def("step",
           [](OwnedSession& s, const std::vector<int32_t>& ids) {
             const Turn turn(s.taken);
             std::vector<float> logits = Unlocked(s.cancel.get(), [&] { return s.model->Step(ids); });
             const size_t count = logits.size();
             return Array(std::move(logits), {count});
           })
      .def("step_all",
           [](OwnedSession& s, const std::vector<int32_t>& ids) {
             const Turn turn(s.taken);
             std::vector<float> logits = Unlocked(s.cancel.get(), [&] { return s.model->StepAll(ids); });
             return Array(std::move(logits), {ids.size(), static_cast<size_t>(s.model->vocabulary())});
           })
      .def("reset",
           [](OwnedSession& s) {
             const Turn turn(s.taken);
             s.model->Reset();
           })
      .def("rewind",
           [](OwnedSession& s, int64_t position) {
             const Turn turn(s.taken);
             Take(s.model->Rewind(position));
           })
      .def("save",
           [](const OwnedSession& s) {
             const Turn turn(s.taken);
             const std::vector<uint8_t> bytes = Take(s.model->Save());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("load",
           [](OwnedSession& s, nb::bytes bytes) {
             const Turn turn(s.taken);
             Take(s.model->Load({reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()}));
           })
      .def("cancel", [](OwnedSession& s) { s.cancel->Cancel(); })
      .def("uncancel", [](OwnedSession& s) { s.cancel->Reset(); })
      .def(
          "profiler",
          [](OwnedSession& s, bool counters) {
            const Turn turn(s.taken);
            return Unlocked([&] { return Profiler::Attach(*s.model, {.counters = counters}); });
          },
          nb::keep_alive<0, 1>());

  nb::class_<ChatTemplate>(m, "ChatTemplate")
      .def_static("open", [](const std::string& path) { return Take(ChatTemplate::Open(path)); })
      .def_static("open_with", [](const std::string& path,
                                  std::string_view source) { return Take(ChatTemplate::Open(path, source)); })
      .def("render",
           [](const ChatTemplate& chat, const std::vector<std::tuple<std::string, std::string, std::string>>& messages,
              bool add_generation_prompt, const std::string& tools, const std::string& variables) {
             std::vector<ChatMessage> all;
             for (const auto& [role, content, fields] : messages) all.push_back({role, content, fields});
             const ChatPrompt prompt = Take(chat.Render(
                 all, {.add_generation_prompt = add_generation_prompt, .tools = tools, .variables = variables}));
             return std::make_pair(prompt.text, prompt.begin);
           });

  nb::class_<OwnedEmbedder>(m, "Embedder")
      .def_static("open", &OwnedEmbedder::Open)
      .def("width", [](const OwnedEmbedder& e) { return e.model->width(); })
      .def("context", [](const OwnedEmbedder& e) { return e.model->context(); })
      .def("tokenizer", [](const OwnedEmbedder& e) { return Take(e.model->tokenizer()); })
      .def("embed", [](OwnedEmbedder& e, std::string_view text, const std::string& pooling) {
        const Pooling how = PoolingOf(pooling);
        const Turn turn(e.taken);
        std::vector<float> made = Unlocked(e.cancel.get(), [&] { return e.model->Embed(text, how); });
        const size_t width = made.size();
        return Array(std::move(made), {width});
      });
}

}  // namespace quern::python
