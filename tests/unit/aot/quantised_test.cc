// A quantisation map that is a part of a graph, ahead of time: the bits are those of its pairs.
#include <cmath>

#include "quern/qdq.h"
#include "unit/aot/compiled_model.h"

namespace quern::testing {
namespace {

using OneSize = int32_t(void*, const void* const*, void* const*, int64_t b);

TEST(QuantisedAheadOfTime, AMapIsItsPairs) {
  std::vector<float> weights(13 * 7);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(0.7f * static_cast<float>(i));
  Graph graph("net");
  graph.Symbol("B", 1, 40);
  const Value w = graph.Constant("f32[13, 7]", std::as_bytes(std::span(weights)));
  graph.Output("y", graph.Op("MatMul", {graph.Input("x", "f32[B, 13]"), w}, {}, "up"));
  const Result<QuantisationMap> map = MakeQuantisationMap(graph, {{"x", {-0.5, 0.75}}});
  ASSERT_TRUE(map.ok()) << map.error();
  ASSERT_EQ(map->size(), 2u);
  const Result<Graph> mapped = WithQuantisation(graph, *map), pairs = InsertQdq(graph, *map);
  ASSERT_TRUE(mapped.ok() && pairs.ok()) << mapped.error() << pairs.error();
  const Compiled of_map(*mapped), of_pairs(*pairs), of_floats(graph);
  for (const int64_t rows : {1, 3, 9, 37}) {
    std::vector<float> x(rows * 13);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(0.37f * static_cast<float>(i));
    std::vector<std::vector<float>> y(3, std::vector<float>(rows * 7));
    const void* const inputs[] = {x.data()};
    for (const auto& [model, out] :
         {std::pair(&of_map, y[0].data()), std::pair(&of_pairs, y[1].data()), std::pair(&of_floats, y[2].data())}) {
      ASSERT_NE(model->model(), nullptr);
      void* const outputs[] = {out};
      ASSERT_EQ(model->Function<OneSize>("step")(model->model(), inputs, outputs, rows), QUERN_OK);
    }
    EXPECT_EQ(y[0], y[1]) << rows;
    EXPECT_NE(y[0], y[2]) << rows;
  }
}

}  // namespace
}  // namespace quern::testing
