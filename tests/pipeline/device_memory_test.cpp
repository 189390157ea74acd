#include "cairn/pipeline/device_memory.h"

#include "cairn/models/registry.h"
#include "cairn/pipeline/graph_source.h"
#include "cairn/pipeline/request.h"
#include "cairn/tests/catch.h"

namespace cairn::device_memory_test {
namespace {

core::Graph ffn(std::int64_t batch, std::string optimizer) {
  models::BuildOptions options;
  options.values = {{"layers", 3}, {"width", 32}, {"inputs", 32}, {"outputs", 16}, {"batch", batch}};
  options.optimizer = std::move(optimizer);
  return models::build_model("ffn", options);
}

core::Graph ffn_of(std::int64_t batch) {
  pipeline::GraphSource source{.name = "ffn"};
  source.options.values = {{"layers", 3}, {"width", 32}, {"inputs", 32}, {"outputs", 16}, {"batch", batch}};
  return source.build();
}

fit::LargestBatch largest(std::int64_t budget, const std::string& max_cost = "", std::int64_t overlap_steps = 0) {
  fit::LargestBatchOptions options;
  options.overlap_steps = overlap_steps;
  if (!max_cost.empty())
    options.max_cost = [&](const fit::Problem& problem) {
      return pipeline::parse_max_cost(max_cost, problem.baseline.cost);
    };
  options.budget = [budget](const core::Graph&) { return budget; };
  options.search.limit.work = 50'000'000;
  return fit::find_largest_batch(ffn_of, solvers::find_solver("auto"), options);
}

}  // namespace

TEST_CASE("a cost without a unit is read exactly") {
  CHECK(pipeline::parse_max_cost("1.4e15", 1'000'000'000'000'900) == 1'400'000'000'000'000);
  CHECK(pipeline::parse_max_cost("9007199254740993", 10) == 9'007'199'254'740'993);
  CHECK(pipeline::parse_max_cost("10%", 1000) == 1100);
}

TEST_CASE("the largest batch may be limited in cost") {
  const std::int64_t budget = 30'000;
  const fit::LargestBatch any = largest(budget), free = largest(budget, "0%"), none = largest(budget, "1");
  CHECK(any.batch > any.as_it_is);
  CHECK(free.batch < any.batch);
  CHECK(free.batch >= free.as_it_is);
  CHECK(free.as_it_is == any.as_it_is);
  CHECK(largest(budget, "1000%").batch == any.batch);
  CHECK(none.batch == 0);
  CHECK(none.refusal_proved);
}

TEST_CASE("the largest batch is smaller if buffers stay reserved for longer") {
  const fit::LargestBatch any = largest(30'000), apart = largest(30'000, "", 8);
  CHECK(apart.batch > 0);
  CHECK(apart.batch < any.batch);
  CHECK(apart.as_it_is < any.as_it_is);
}

TEST_CASE("resident bytes are told by what they are") {
  const core::Graph adam = ffn(4, "adam"), none = ffn(4, "none");
  const pipeline::ResidentBytes bytes = pipeline::resident_bytes(adam);
  CHECK(bytes.total() == adam.resident_bytes());
  CHECK(bytes.weights > 0);
  CHECK(bytes.gradients == bytes.weights);
  CHECK(bytes.optimizer == 2 * bytes.weights);
  CHECK(bytes.inputs > 0);
  CHECK(bytes.unlisted == 0);
  CHECK(pipeline::resident_bytes(none).optimizer == 0);
  CHECK(pipeline::resident_bytes(ffn(8, "adam")).weights == bytes.weights);

  core::GraphBuilder builder("file");
  builder.add({.name = "a", .size = 8, .cost = 1});
  builder.add_resident_bytes(100);
  const pipeline::ResidentBytes file = pipeline::resident_bytes(builder.build());
  CHECK(file.unlisted == 100);
  CHECK(file.parts() == std::vector<std::pair<std::string, std::int64_t>>{{"unlisted", 100}});
}

TEST_CASE("a device is shared by what is resident, the context, libraries and the arena") {
  const core::Graph graph = ffn(4, "adam");
  const pipeline::DeviceShare share = pipeline::share_device(graph, {1'000'000'000, 300'000'000});
  CHECK(share.arena() == 1'000'000'000 - 300'000'000 - pipeline::kWorkspaceBytes - graph.resident_bytes());
  CHECK(share.beside_arena() + share.arena() == share.device);

  core::GraphBuilder builder("no ops");
  builder.add({.name = "a", .size = 8, .cost = 1});
  CHECK(pipeline::share_device(builder.build(), {1000, 0}).arena() == 1000);
  CHECK(pipeline::share_device(graph, {1000, 0}).arena() < 0);
}

TEST_CASE("the largest batch fits, and the next one is not known to") {
  // Tries all batch sizes: `as_it_is` becomes the largest whose baseline fits, and `needs` the largest whose lower
  // bound fits.
  const fit::Problem eight(ffn(8, "adam"));
  const std::int64_t budget = eight.rounded_up(256).baseline.peak;
  std::int64_t as_it_is = 0, needs = 0;
  for (std::int64_t batch = 1; batch <= 64; ++batch) {
    const fit::Problem rounded = fit::Problem(ffn(batch, "adam")).rounded_up(256);
    if (rounded.baseline.peak <= budget) as_it_is = batch;
    if (rounded.lower_bound <= budget) needs = batch;
  }
  const fit::LargestBatch found = largest(budget);
  CHECK(found.as_it_is == as_it_is);  // every batch's baseline has a plan as low as its peak
  CHECK(found.batch >= as_it_is);
  CHECK(found.batch <= needs);
  CHECK(found.refused == found.batch + 1);
  if (found.refusal_proved) CHECK(found.batch == needs);
  CHECK_FALSE(found.timed_out);

  const fit::LargestBatch none = largest(1);
  CHECK(none.batch == 0);
  CHECK(none.refused == 1);
  CHECK(none.refusal_proved);
}

}  // namespace cairn::device_memory_test
