// Models in other formats: quantising them, and what they lose by it.

#include <quern/perplexity.h>
#include <quern/quantise.h>

#include <string>

#include "bind.h"

namespace quern::python {

void BindFormats(nb::module_& m) {
  m.def("quantise", [](const std::string& in, const std::string& out, const std::string& type, bool pure,
                       bool requantise, const std::string& importance, int threads) {
    CancelToken cancel;
    const QuantiseOptions options = {.type = type,
                                     .pure = pure,
                                     .requantise = requantise,
                                     .importance = importance,
                                     .threads = threads,
                                     .cancel = &cancel};
    const QuantiseReport report = Unlocked(&cancel, [&] { return Quantise(in, out, options); });
    nb::dict formats;
    for (const QuantiseReport::Tensor& tensor : report.tensors)
      formats[tensor.name.c_str()] = nb::make_tuple(tensor.before, tensor.after);
    return formats;
  });
  m.def("quantise_types", &QuantiseTypes);
  m.def("perplexity", [](const std::string& model, std::string_view text, const std::string& base, int64_t chunks,
                         bool special, Options run) {
    CancelToken cancel;
    run.cancel = &cancel;
    const PerplexityOptions options = {.run = run, .chunks = chunks, .parse_special = special, .base = base};
    const PerplexityReport report = Unlocked(&cancel, [&] { return MeasurePerplexity(model, text, options); });
    nb::object divergence = nb::none();
    if (report.divergence) {
      const Divergence& from = *report.divergence;
      divergence = nb::make_tuple(from.base_perplexity, from.mean, from.error, from.largest, from.same_top);
    }
    return nb::make_tuple(report.perplexity, report.error, report.nll, report.tokens, report.chunks, report.chunk_size,
                          divergence);
  });
}

}  // namespace quern::python
