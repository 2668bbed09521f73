// Decoder: the parts that language models are made of. The file of an architecture (models/architectures) says in them
// what its paper says, in the order of its paper, from token ids to logits:
//
//   Value x = d.Embed();
//   for (const Layer& layer : d.layers()) {
//     const Value n = d.RmsNorm(x, layer("attn_norm"));
//     ...
//   }
//   return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
//
// Names are those of the file's tensors; rows are the step's tokens, [SEQ, width], in f32. A projection takes its bias
// where the file has one. Errors, of metadata, tensors and shapes, are kept: what is built after the first is nothing,
// and the reading ends with it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hir/builder.h"
#include "models/adapters.h"
#include "models/file_tensors.h"
#include "models/hyperparameters.h"
#include "models/model_spec.h"
#include "models/rotary.h"

namespace quern::models {

struct Layer {
  int64_t index;
  // The name of one of its tensors without .weight: "blk.3.attn_q".
  std::string operator()(std::string_view tensor) const { return absl::StrFormat("blk.%d.%s", index, tensor); }
};

// Heads of attention: kv_heads divides heads.
struct Heads {
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
  int64_t query() const { return heads * head_dim; }
  int64_t key() const { return kv_heads * head_dim; }
};

enum class PairStyle {
  kNeighbours,  // elements 2i and 2i + 1 turn together ("gptj")
  kHalves,      // elements i and i + n_rot / 2 do ("neox")
};

struct Rotation {
  Value cosine, sine;  // of this step's positions; of many sequences, of all there are
  int64_t n_rot = 0;
  PairStyle style = PairStyle::kHalves;
};

struct AttentionRule {
  int64_t window = 0;  // keys that a token sees, its own among them; 0: all before it
  double scale = 0;    // of q k^T; 0: 1 / sqrt(head_dim)
  double softcap = 0;  // of q k^T; 0: none
};

// Layers that see a window of the last tokens only; the others see all.
struct LocalLayers {
  int64_t window = 0;  // tokens, the own among them; 0: no layer is local
  std::vector<bool> local;
  bool at(const Layer& layer) const { return window > 0 && local[layer.index]; }
  // Tokens that the layer sees; 0: all.
  int64_t of(const Layer& layer) const { return at(layer) ? window : 0; }
};

// Experts: how a router's numbers become the weights of the few that are chosen.
struct ExpertRule {
  int64_t experts = 0, used = 0, hidden = 0;
  bool normalise = true;  // the weights of the chosen add up to 1
  double scale = 1;       // of the weights
  bool sigmoid = false;   // the router's numbers are probabilities each by itself, else together (softmax)
  const char* activation = "Silu";
};

class Decoder {
 public:
  Decoder(std::shared_ptr<const ModelFile> file, std::string architecture, const ModelOptions& options);

  // What an architecture builds its graph with.
  Hyperparameters& numbers() { return numbers_; }
  FileTensors& tensors() { return tensors_; }
  hir::Builder& graph() { return graph_; }
  int64_t width() const { return spec_.width; }
  int64_t hidden() { return numbers_.Int("feed_forward_length", 1, kMostWidth); }
  std::vector<Layer> layers() const;

  Heads ReadHeads();
  // `base` instead of the file's, where it is not 0, and then positions are not scaled (local layers). The tables are
  // Params called NAME.cos and NAME.sin. Rows of q and k that are in half-split order (ModelTensor) turn as halves,
  // whatever the style.
  Rotation ReadRotation(const Heads& heads, PairStyle style, double base = 0, const char* name = "rope");
  // Of the keys attention.sliding_window and its pattern: every `period`-th layer sees all, or what the file lists.
  // With a period of 1 no layer is local that is not listed.
  LocalLayers ReadLocalLayers(int64_t period, int64_t window = 0);
  // Experts of the keys expert_count and expert_used_count; 0 experts where there are none.
  ExpertRule ReadExperts();

  // To be said first by encoders: every token sees all others, there is no cache, and rows take the place of logits.
  void BeEncoder();
  // To be said first by models that carry states: a step of many sequences has SEQ rows of each.
  void BeRecurrent();
  // Sequences that states are of, and rows of the step: [batch * SEQ, width].
  Extent batch() const { return recurrent_ && many() ? Extent::Symbol(kSequencesSymbol) : Extent(1); }
  Extent rows() const { return batch() * Extent::Symbol(kSequenceSymbol); }
  // Rows of token_embd.
  Value Embed();
  // The one row `index` of a table: [width].
  Value TableRow(const std::string& name, int64_t index);
  // The rows of a table that has one for each position (position_embd), for this step's.
  Value PositionRows(const std::string& name);
  // Rows that get logits: the last LOGITS.
  Value Last(Value x);

  Value RmsNorm(Value x, const std::string& name);
  Value LayerNorm(Value x, const std::string& name);  // NAME.bias where the file has one
  // Each head normalised by itself: [head_dim] weights, or [heads, head_dim] of their own.
  Value RmsNormHeads(Value x, const std::string& name, const Heads& heads);
  Value LayerNormHeads(Value x, const std::string& name, const Heads& heads);

  // With what adapters add to it.
  Value Linear(Value x, const std::string& name, int64_t out);
  // x by the one row of a tensor [width]: [SEQ, 1].
  Value RowProduct(Value x, const std::string& name);
  // Columns [from, from + count) of rows.
  Value Columns(Value x, int64_t from, int64_t count);
  struct Projections {
    Value q, k, v;
  };
  // attn_q, attn_k and attn_v, or all three in attn_qkv.
  Projections Project(Value x, const Layer& layer, const Heads& heads);
  Value Rotate(Value x, const Rotation& rotation, const Heads& heads);
  // Attention over the layer's cache, to which this step's keys and values go; of encoders over this step's rows, both
  // ways: [SEQ, heads * head_dim]. Where there is no v, keys are values as well, and only they are kept.
  Value Attention(const Layer& layer, const Projections& rows, const Heads& heads, const AttentionRule& rule = {});
  // As most have it: projections of x, of which q and k are rotated, attention, and attn_output.
  Value SelfAttention(Value x, const Layer& layer, const Heads& heads, const Rotation& rotation,
                      const AttentionRule& rule = {});

  // What tokens carry on beside keys and values, f32[batch, ..dims]: zeros before the first token.
  Value State(const Layer& layer, const char* name, std::vector<int64_t> dims);
  // What the state of that name is after this step; once for each, after State.
  void Carry(const Layer& layer, const char* name, Value next);
  // Each channel of rows [batch * SEQ, channels] over its own last elements: the sum of element t - j times weight
  // [channel, kernel - 1 - j]. The last kernel - 1 rows are a state.
  Value CausalConvolution(Value x, const Layer& layer, const std::string& name, int64_t kernel);

  // down(activation(gate(x)) * up(x)); the tensors are ffn_gate, ffn_up and ffn_down, with a suffix.
  Value GatedFeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation,
                         const std::string& suffix = "");
  // The same where one tensor, ffn_up, has the rows of gate and then of up.
  Value FusedGatedFeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation);
  // down(activation(up(x)))
  Value FeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation);
  // The sum, by their weights, of the gated feed-forwards of the experts that a token's row of ffn_gate_inp chooses.
  Value Experts(Value x, const Layer& layer, const ExpertRule& rule);

  // a + part, under the name of the part.
  Value Add(Value a, Value part);
  Value Scale(Value x, double factor);
  Value Softcap(Value x, double cap);  // cap tanh(x / cap); x where cap is 0
  // Rows of `output`, or of token_embd where the file has none, by x.
  Value Logits(Value x);

  // The model whose logits, or rows, these are. Error: the first there was.
  StatusOr<ModelSpec> Finish(Value logits);

 private:
  // The name in profiles: "layers.3.attention/q" of blk.3.attn_q.
  static std::string Label(const std::string& name);
  // Tokens before this step's.
  Extent past() const { return spec_.encoder ? Extent(0) : Extent::Symbol(kPastSymbol); }
  bool many() const { return room_.most > 0; }
  // Rows of a table that has one for each position, for this step's.
  Value OfPositions(Value table);
  Value Cached(const Layer& layer, const char* name, Value rows, const Heads& heads);
  Value NormHeads(const char* block, Value x, const std::string& name, const Heads& heads);

  ModelSpec spec_;
  const ModelFile& file_;
  Hyperparameters numbers_;
  hir::Builder graph_;
  FileTensors tensors_;
  Adapters adapters_;
  SequenceRoom room_;
  Value ids_, table_;
  Value positions_, index_, starts_, lengths_, blocks_, rows_, before_, after_;  // of many sequences
  bool recurrent_ = false;
  std::map<std::string, Value> carried_;  // states as the step finds them
  std::vector<Value> states_;
};

}  // namespace quern::models
