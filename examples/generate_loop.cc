// A language model that generates inside its graph: a While whose body decodes one token over a cache that it carries,
// with ArgMax in it. Checked against plain loops:
//   generate_loop                      runs it in this process
//   generate_loop --compile FOLDER     writes generate.o, .h and .json there, for generate_loop_main.c
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "quern/compile.h"
#include "quern/graph.h"

namespace {

constexpr int kVocabulary = 40, kWidth = 32, kHeads = 2, kHidden = 64, kLength = 24;
constexpr int kHead = kWidth / kHeads;
constexpr float kEps = 1e-5f;

struct Weights {
  std::vector<float> embedding, places, q, k, v, out, up, down, head, norm1, norm2;

  Weights() {
    uint32_t seed = 7;
    auto noise = [&](int rows, int columns, float scale) {
      std::vector<float> values(static_cast<size_t>(rows) * columns);
      for (float& v : values)
        v = (static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f) * scale;
      return values;
    };
    embedding = noise(kVocabulary, kWidth, 1);
    places = noise(kLength, kWidth, 1);
    for (std::vector<float>* square : {&q, &k, &v, &out}) *square = noise(kWidth, kWidth, 2);
    up = noise(kWidth, kHidden, 1);
    down = noise(kHidden, kWidth, 1);
    head = noise(kWidth, kVocabulary, 1);
    norm1.assign(kWidth, 1);
    norm2.assign(kWidth, 1);
  }
};

// What the body of the loop, and its condition, find: the position, the token there, the tokens so far, the caches; and
// what only the condition looks at, how many tokens there are to be.
struct Carried {
  quern::Value at, token, tokens, keys, values, count;
  explicit Carried(quern::Graph& g)
      : at(g.Input("at", "i64[]")),
        token(g.Input("token", "i64[1]")),
        tokens(g.Input("tokens", "i64[24]")),
        keys(g.Input("keys", "f32[24, 32]")),
        values(g.Input("values", "f32[24, 32]")),
        count(g.Input("count", "i64[]")) {}
};

quern::Graph Condition() {
  quern::Graph g("cond");
  const Carried carried(g);
  g.Output("more", g.Op("Lt", {carried.at, carried.count}));
  return g;
}

quern::Graph Body(const Weights& weights) {
  quern::Graph g("body");
  const Carried c(g);
  const quern::Value embedding = g.Param("embedding", "f32[40, 32]", weights.embedding);
  std::vector<int64_t> numbers(kLength);
  for (int i = 0; i < kLength; ++i) numbers[i] = i;
  const quern::Value positions = g.Constant("i64[24]", std::as_bytes(std::span(numbers)));
  const quern::Value here = g.Op("Eq", {positions, c.at});
  const quern::Value row = g.Op("Reshape", {here}, {{"shape", std::vector<int64_t>{kLength, 1}}});
  const auto rows = [&](quern::Value x, int64_t count) {
    return g.Op("Reshape", {x}, {{"shape", std::vector<int64_t>{1, count, kWidth}}});
  };
  const auto product = [&](quern::Value x, const char* name, const char* type, const std::vector<float>& w) {
    return g.Op("MatMul", {x, g.Param(name, type, w)}, {}, name);
  };

  const quern::Value place = g.Op("Reshape", {c.at}, {{"shape", std::vector<int64_t>{1}}});
  const quern::Value x = g.Op("Add", {g.Op("Gather", {embedding, c.token}),
                                      g.Op("Gather", {g.Param("places", "f32[24, 32]", weights.places), place})});
  const quern::Value h = g.Op("RmsNorm", {x, g.Param("norm1", "f32[32]", weights.norm1)});
  // The row of this position is written into the caches.
  const quern::Value keys = g.Op("Where", {row, product(h, "k", "f32[32, 32]", weights.k), c.keys});
  const quern::Value values = g.Op("Where", {row, product(h, "v", "f32[32, 32]", weights.v), c.values});
  const quern::Value seen = g.Op("Cast", {g.Op("Le", {positions, c.at})}, {{"to", "f32"}});
  const quern::Value mask = g.Op("Reshape", {seen}, {{"shape", std::vector<int64_t>{1, kLength}}});
  const quern::Value mixed = g.Op(
      "Attention",
      {rows(product(h, "q", "f32[32, 32]", weights.q), 1), rows(keys, kLength), rows(values, kLength), mask},
      {{"heads", int64_t{kHeads}}, {"kv_heads", int64_t{kHeads}}, {"head_dim", int64_t{kHead}}, {"mask", "custom"}});
  const quern::Value flat = g.Op("Reshape", {mixed}, {{"shape", std::vector<int64_t>{1, kWidth}}});
  const quern::Value y = g.Op("Add", {x, product(flat, "out", "f32[32, 32]", weights.out)});
  const quern::Value h2 = g.Op("RmsNorm", {y, g.Param("norm2", "f32[32]", weights.norm2)});
  const quern::Value wide = g.Op("Silu", {product(h2, "up", "f32[32, 64]", weights.up)});
  const quern::Value z = g.Op("Add", {y, product(wide, "down", "f32[64, 32]", weights.down)});
  const quern::Value logits = product(z, "head", "f32[32, 40]", weights.head);
  const quern::Value best = g.Op("ArgMax", {logits}, {{"axis", int64_t{-1}}});
  const quern::Value next = g.Op("Cast", {best}, {{"to", "i64"}});

  const int64_t one = 1;
  g.Output("at", g.Op("Add", {c.at, g.Constant("i64[]", std::as_bytes(std::span(&one, 1)))}));
  g.Output("token", next);
  g.Output("tokens", g.Op("Where", {here, next, c.tokens}));
  g.Output("keys", keys);
  g.Output("values", values);
  return g;
}

quern::Graph Generate(const Weights& weights) {
  const auto zeros = [](quern::Graph& g, const char* type, size_t bytes) {
    return g.Constant(type, std::vector<std::byte>(bytes));
  };
  quern::Graph g("generate");
  const quern::Value first = g.Input("first", "i64[1]"), count = g.Input("count", "i64[]");
  const quern::Graph condition = Condition(), body = Body(weights);
  const std::vector<quern::Value> last =
      g.Ops("While",
            {zeros(g, "i64[]", 8), first, zeros(g, "i64[24]", kLength * 8),
             zeros(g, "f32[24, 32]", kLength * kWidth * 4), zeros(g, "f32[24, 32]", kLength * kWidth * 4), count},
            {{"carries", int64_t{5}}, {"max", int64_t{kLength}}}, "generate", {&condition, &body});
  g.Output("tokens", last[2]);
  return g;
}

// The same in loops over doubles.
std::vector<int64_t> Expected(const Weights& w, int64_t first, int count) {
  using Row = std::vector<double>;
  const auto product = [](const Row& x, const std::vector<float>& matrix) {
    Row y(matrix.size() / x.size());
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * matrix[i * y.size() + j];
    return y;
  };
  const auto norm = [](const Row& x) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    Row y = x;
    for (double& v : y) v /= std::sqrt(squares / static_cast<double>(x.size()) + kEps);
    return y;
  };
  std::vector<Row> keys, values;
  std::vector<int64_t> tokens(kLength);
  int64_t token = first;
  for (int at = 0; at < count; ++at) {
    Row x(w.embedding.begin() + token * kWidth, w.embedding.begin() + (token + 1) * kWidth);
    for (int i = 0; i < kWidth; ++i) x[i] += w.places[at * kWidth + i];
    const Row h = norm(x), q = product(h, w.q);
    keys.push_back(product(h, w.k));
    values.push_back(product(h, w.v));
    Row mixed(kWidth);
    for (int head = 0; head < kHeads; ++head) {
      Row scores;
      double sum = 0;
      for (const Row& key : keys) {
        double dot = 0;
        for (int i = head * kHead; i < (head + 1) * kHead; ++i) dot += q[i] * key[i];
        scores.push_back(std::exp(dot / std::sqrt(kHead)));
        sum += scores.back();
      }
      for (int i = head * kHead; i < (head + 1) * kHead; ++i)
        for (size_t j = 0; j < values.size(); ++j) mixed[i] += scores[j] / sum * values[j][i];
    }
    const Row out = product(mixed, w.out);
    for (int i = 0; i < kWidth; ++i) x[i] += out[i];
    Row wide = product(norm(x), w.up);
    for (double& v : wide) v /= 1 + std::exp(-v);
    const Row down = product(wide, w.down);
    for (int i = 0; i < kWidth; ++i) x[i] += down[i];
    const Row logits = product(x, w.head);
    token = std::max_element(logits.begin(), logits.end()) - logits.begin();
    tokens[at] = token;
  }
  return tokens;
}

int Fail(const std::string& why) { return std::fprintf(stderr, "%s\n", why.c_str()), 1; }

}  // namespace

int main(int argc, char** argv) {
  const Weights weights;
  const quern::Graph graph = Generate(weights);
  if (argc == 3 && std::strcmp(argv[1], "--compile") == 0) {
    const quern::Result<quern::CompiledFiles> files = quern::CompileGraph(graph, {}, {.folder = argv[2]});
    return files.ok() ? 0 : Fail(files.error());
  }
  quern::Result<quern::Program> program = graph.Compile();
  if (!program.ok()) return Fail(program.error());
  for (const int64_t count : {0, 1, 20, kLength}) {
    const std::vector<int64_t> first = {3}, counts = {count};
    std::vector<int64_t> tokens(kLength);
    const quern::Result<void> ran = program->Run({quern::In("first", first, {1}), quern::In("count", counts, {})},
                                                 {quern::Out("tokens", tokens, {kLength})});
    if (!ran.ok()) return Fail(ran.error());
    if (tokens != Expected(weights, first[0], static_cast<int>(count))) return Fail("other tokens than the loops");
    if (count != 20) continue;
    for (int i = 0; i < count; ++i)
      std::printf("%lld%s", static_cast<long long>(tokens[i]), i + 1 < count ? " " : "\n");
  }
  // One more than the cache holds: the loop's limit is an error, and nothing has run away.
  const std::vector<int64_t> first = {3}, counts = {kLength + 1};
  std::vector<int64_t> tokens(kLength);
  const quern::Result<void> ran = program->Run({quern::In("first", first, {1}), quern::In("count", counts, {})},
                                               {quern::Out("tokens", tokens, {kLength})});
  return ran.code() == quern::ErrorCode::kOutOfRange ? 0 : Fail("a loop that is too long was not refused");
}
