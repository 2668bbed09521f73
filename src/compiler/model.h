// A language model between its file and its first token: everything that opening one needs, shared by the session and
// by dumps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/make_executable.h"
#include "compiler/pipeline.h"
#include "compiler/saved_rows.h"
#include "import/model_file.h"
#include "models/model_spec.h"
#include "quern/quern.h"
#include "runtime/executable.h"
#include "text/tokenizer.h"

namespace quern::compiler {

struct OpenedModel {
  std::shared_ptr<const ModelFile> file;
  models::ModelSpec spec;
};
// An error where the options have adapters: graphs have no tensors of a model's.
Status NoAdapters(const Options& options);
// `room`: for steps of many sequences.
StatusOr<OpenedModel> OpenModel(const std::string& path, const Options& options, const models::SequenceRoom& room = {});

// The file's tokenizer, for a model of so many rows of embeddings. Errors: those of reading it; more tokens than rows.
StatusOr<std::shared_ptr<const text::Tokenizer>> TokenizerOf(const std::shared_ptr<const ModelFile>& file,
                                                             int64_t rows);

// Session::fingerprint of the model.
std::string FingerprintOf(const models::ModelSpec& spec);

// The rows of a state of the model, of which the first extent says how many it has room for.
KeptRows RowsOf(const models::ModelSpec& spec, const Port& state, std::span<const uint8_t> bytes);

// Gives the runnable what the model's file has for its parameters.
Status BindParams(Runnable& runnable, const models::ModelSpec& spec);

// A model compiled for this machine's processor, its parameters bound: what runs on it asks for variants.
struct RunningModel {
  OpenedModel opened;
  MadeExecutable made;
};
// Variants are those of `guards`. Error: also kUnimplemented, options that name a device.
StatusOr<std::unique_ptr<RunningModel>> RunModel(OpenedModel opened, const Options& options,
                                                 const std::vector<SymbolRanges>& guards);

// What the options say of the steps, with the schedule facts of the level they name, which may be a device's ("sm_80"):
// then kernels are scheduled for blocks of threads, and `exact` forbids products of halves. Error: an unknown level.
StatusOr<PipelineOptions> PipelineOptionsOf(const Options& options);

// The guards of a language model's step, in the order they are tried: one token, a few, a chunk of a prompt; each with
// logits for the last row alone, or for many. `invariant`: rows of a prompt take one form, the logits of the last alone
// too.
std::vector<SymbolRanges> StepGuards(bool invariant);
// Those that some step of the graph meets: a model of a short context has none as long as some guards ask.
std::vector<SymbolRanges> StepGuardsOf(const ir::Graph& graph, bool invariant);
// How many of the `left` tokens that are still to come in a step of `ids` go first. `invariant`: no part of a prompt is
// so short that its rows would be computed as those of a few tokens are.
int64_t ChunkOf(int64_t ids, int64_t left, bool invariant);

}  // namespace quern::compiler
