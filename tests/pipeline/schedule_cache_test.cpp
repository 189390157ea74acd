#include "cairn/pipeline/support/schedule_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::schedule_cache_test {
namespace {

using pipeline::ScheduleCache;

constexpr solvers::Scope kAny = solvers::kAnySchedule;

fit::LeastBudget planned(const core::Graph& graph, const core::Schedule& schedule, std::int64_t alignment) {
  fit::LeastBudget least;
  least.take(fit::PlannedSchedule(graph, schedule, solvers::plan_memory(graph, schedule, {.alignment = alignment})),
             "auto");
  return least;
}

fit::Task task_of(const core::Graph& graph, std::int64_t alignment) {
  return {fit::Problem(graph), fit::Objective::least_budget, alignment, {}};
}

}  // namespace

TEST_CASE("the cache of schedules returns the lowest plan that was kept") {
  const tests::Folder folder;
  int replaced = 0;
  tests::for_each_seed(200, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 12}));
    if (graph.node_count() == 0) return;
    const std::int64_t alignment = random.chance(50) ? 1 : 16;
    const fit::Task task = task_of(graph, alignment);
    // Different seeds can give the same graph, which would share its entries. So each seed has a cache folder of its
    // own.
    const ScheduleCache cache(folder / std::to_string(random.below(1'000'000'000)));
    CHECK(!cache.find(task, kAny));
    std::optional<std::int64_t> lowest;
    for (int i = 0; i < 5; ++i) {
      const fit::LeastBudget one = planned(graph, tests::random_schedule(random, graph), alignment);
      replaced += lowest && one.memory() < *lowest ? 1 : 0;
      lowest = std::min(lowest.value_or(one.memory()), one.memory());
      CHECK(cache.keep(task, kAny, one).memory() == *lowest);
      const auto found = cache.find(task, kAny);
      REQUIRE(found);
      CHECK(found->memory() == *lowest);
      CHECK(core::check_plan(graph, found->schedule, *found->plan).empty());
      CHECK(found->evaluation.cost == core::evaluate(graph, found->schedule).cost);
    }
    CHECK(!cache.find(task_of(graph, 32), kAny));
    CHECK(!cache.find(task, {solvers::OrderRule::input, 0}));
  });
  CHECK(replaced > 20);
}

TEST_CASE("files of the cache that are spoiled, and folders that cannot be written, are ignored") {
  tests::Random random(1);
  const core::Graph graph = tests::random_graph(random, {.min_nodes = 8, .max_nodes = 8});
  const fit::Task task = task_of(graph, 1);
  const fit::LeastBudget one = planned(graph, core::baseline_schedule(graph), 1);
  for (const std::string& none : {std::string(), std::string("/dev/null"), std::string("/proc/none")}) {
    CHECK(ScheduleCache(none).keep(task, kAny, one).memory() == one.memory());
    CHECK(!ScheduleCache(none).find(task, kAny));
  }
  const tests::Folder folder;
  const ScheduleCache cache(folder.path());
  cache.keep(task, kAny, one);
  REQUIRE(cache.find(task, kAny));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const auto size = std::filesystem::file_size(entry.path());
    std::filesystem::resize_file(entry.path(), size / 2);
  }
  CHECK(!cache.find(task, kAny));
  CHECK(cache.keep(task, kAny, one).memory() == one.memory());
  CHECK(cache.find(task, kAny));
}

TEST_CASE("the folder of the cache is that of the first variable that is set, if it can be used") {
  struct Case {
    const char *cache, *xdg, *home, *folder;
  };
  const tests::Folder home;
  const std::string at_home = home.path() + "/.cache/cairn/schedules";
  for (const Case& one : {Case{"/a", "/b", "/c", "/a/schedules"}, Case{"", "/b", "/c", "/b/cairn/schedules"},
                          Case{"a", "/b", "/c", ""}, Case{"", "b", "/c", ""}, Case{"", "", "/none/such", ""},
                          Case{"", "", "home", ""}, Case{"", "", home.path().c_str(), at_home.c_str()}}) {
    INFO(one.cache << ", " << one.xdg << ", " << one.home);
    std::vector<std::string> before;
    const std::pair<const char*, const char*> given[] = {
        {"CAIRN_CACHE", one.cache}, {"XDG_CACHE_HOME", one.xdg}, {"HOME", one.home}};
    for (const auto& [name, value] : given) {
      const char* const old = std::getenv(name);
      before.emplace_back(old != nullptr ? old : "");
      setenv(name, value, 1);
    }
    CHECK(ScheduleCache::default_folder() == one.folder);
    for (std::size_t i = 0; i < before.size(); ++i) setenv(given[i].first, before[i].c_str(), 1);
  }
}

TEST_CASE("the cache stores plans with and without overlap_steps apart") {
  const tests::Folder folder;
  const ScheduleCache cache(folder.path());
  tests::Random random(3);
  const core::Graph graph = tests::random_graph(random, {.min_nodes = 12, .max_nodes = 12, .in_place = false});
  const core::Schedule schedule = core::baseline_schedule(graph);
  const fit::Task close = task_of(graph, 1);
  fit::Task apart = close;
  apart.overlap_steps = 4;
  fit::LeastBudget with_steps;
  with_steps.take(fit::PlannedSchedule(graph, schedule, solvers::plan_memory(graph, schedule, apart.planning())),
                  "auto");
  const fit::LeastBudget without = planned(graph, schedule, 1);
  REQUIRE(without.memory() < with_steps.memory());
  cache.keep(close, kAny, without);
  CHECK(!cache.find(apart, kAny));
  cache.keep(apart, kAny, with_steps);
  CHECK(cache.find(apart, kAny)->memory() == with_steps.memory());
  CHECK(cache.find(close, kAny)->memory() == without.memory());
}

TEST_CASE("the cache keeps the files that were written last") {
  const tests::Folder folder;
  const ScheduleCache cache(folder.path());
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (int i = 0; i < ScheduleCache::kMostFiles; ++i) {
    const std::string path = folder / ("old" + std::to_string(i));
    std::ofstream(path) << "x";
    std::filesystem::last_write_time(path, old - std::chrono::seconds(i));
  }
  tests::Random random(2);
  const core::Graph graph = tests::random_graph(random, {.min_nodes = 8, .max_nodes = 8});
  const fit::Task task = task_of(graph, 1);
  cache.keep(task, kAny, planned(graph, core::baseline_schedule(graph), 1));
  CHECK(cache.find(task, kAny));
  CHECK(!std::filesystem::exists(folder / ("old" + std::to_string(ScheduleCache::kMostFiles - 1))));
  CHECK(std::filesystem::exists(folder / "old0"));
}

}  // namespace cairn::schedule_cache_test
