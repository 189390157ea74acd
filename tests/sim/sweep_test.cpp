#include "cairn/sim/sweep.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/parts.h"
#include "cairn/tests/support/plain_tally.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::sweep_test {
namespace {

using sim::Generator;
using sim::Sweep;
using sim::SweepOptions;
using sim::Tally;

core::Graph test_graph(std::uint64_t seed) {
  Random random(seed);
  core::Graph graph;
  do {
    graph = random_graph(random, {.min_nodes = 24, .max_nodes = 24});
  } while (core::baseline_schedule(graph).length() != 24 ||
           core::evaluate(graph, core::baseline_schedule(graph)).peak < 50);
  return graph;
}

Sweep fresh(const core::Graph& graph, const Generator& generator, std::int64_t total) {
  return {generator, total, 0, Tally(sim::tally_options(graph))};
}

/// Runs threads that act as the processes (ranks) of a sweep.
class ThreadRanks {
 public:
  explicit ThreadRanks(int count) : count_(count) {}

  template <class Body>
  void run(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count_; ++rank)
      threads.emplace_back([&, rank] {
        One one(*this, rank);
        body(one);
      });
    for (auto& thread : threads) thread.join();
  }

 private:
  class One : public sim::Ranks {
   public:
    One(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int count() const override { return all_.count_; }
    void broadcast(std::span<std::int64_t> values) override {
      if (rank_ == 0) all_.values_.assign(values.begin(), values.end());
      all_.wait();
      std::copy(all_.values_.begin(), all_.values_.end(), values.begin());
      all_.wait();
    }
    std::vector<std::string> gather(const std::string& bytes) override {
      if (rank_ == 0) all_.texts_.assign(static_cast<std::size_t>(all_.count_), "");
      all_.wait();
      all_.texts_[static_cast<std::size_t>(rank_)] = bytes;
      all_.wait();
      std::vector<std::string> texts;
      if (rank_ == 0) texts = all_.texts_;
      all_.wait();
      return texts;
    }

   private:
    ThreadRanks& all_;
    int rank_;
  };

  void wait() {
    std::unique_lock lock(mutex_);
    const int generation = generation_;
    if (++waiting_ == count_) {
      waiting_ = 0;
      ++generation_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return generation != generation_; });
    }
  }

  int count_, waiting_ = 0, generation_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::int64_t> values_;
  std::vector<std::string> texts_;
};

}  // namespace

TEST_CASE("a sweep is the tally of its candidates however it is divided") {
  const core::Graph graph = test_graph(18);
  const Generator generator{.seed = 7, .moves = 5};
  constexpr std::int64_t kTotal = 3000;
  const Tally expected = plain_tally(graph, generator, kTotal);
  CHECK(expected.front().size() > 1);
  const auto simulator = sim::host_simulator(graph, 1);
  for (const std::int64_t at_once : {0, 1, 7, 1000, 100'000}) {
    for (const double round_seconds : {0.0, 1e-3, 10.0}) {
      Sweep sweep = fresh(graph, generator, kTotal);
      SweepOptions options{.at_once = at_once, .round_seconds = round_seconds};
      std::int64_t seen = 0;
      options.progress = [&](const sim::SweepProgress& progress) {
        CHECK(progress.done >= seen);
        seen = progress.done;
        CHECK(progress.total == kTotal);
        REQUIRE(progress.best);
      };
      const auto result = sim::run_sweep(*simulator, sweep, options);
      CHECK(result.evaluated == kTotal);
      CHECK(seen == kTotal);
      REQUIRE(sweep.done == kTotal);
      REQUIRE(sweep.tally == expected);
    }
  }
}

TEST_CASE("any number of ranks gives the same sweep") {
  const core::Graph graph = test_graph(13);
  const Generator generator{.seed = 3, .moves = 4};
  constexpr std::int64_t kTotal = 2000;
  const Tally expected = plain_tally(graph, generator, kTotal);
  for (const int count : {1, 2, 3, 5}) {
    ThreadRanks ranks(count);
    Sweep sweep;
    int checkpoints = 0;
    std::optional<sim::Entry> best;
    ranks.run([&](sim::Ranks& rank) {
      const auto simulator = sim::host_simulator(graph, 1);
      Sweep own = fresh(graph, generator, kTotal);
      SweepOptions options{.round_seconds = 1e-3};
      if (rank.rank() == 0) {
        options.checkpoint_seconds = 0;  // makes a checkpoint after every round
        options.checkpoint = [&](const Sweep& state) {
          ++checkpoints;
          REQUIRE(state.tally.candidates() == state.done);
        };
        options.progress = [&](const sim::SweepProgress& progress) { best = progress.best; };
      }
      sim::run_sweep(*simulator, own, options, rank);
      if (rank.rank() == 0) sweep = own;
    });
    CHECK(checkpoints > 1);
    REQUIRE(sweep.tally == expected);
    REQUIRE(best == expected.top().front());
  }
}

TEST_CASE("a sweep that was stopped and resumed from its checkpoints is bit for bit the same") {
  const core::Graph graph = test_graph(4);
  const Generator generator{.seed = 1, .moves = 3};
  constexpr std::int64_t kTotal = 2500;
  const auto simulator = sim::host_simulator(graph, 1);
  Sweep whole = fresh(graph, generator, kTotal);
  sim::run_sweep(*simulator, whole);

  std::string checkpoint;
  int runs = 0;
  for (std::int64_t done = 0; done < kTotal; ++runs) {
    Sweep sweep = fresh(graph, generator, kTotal);
    if (!checkpoint.empty()) sweep = sim::resume_sweep(checkpoint, "c", graph, std::move(sweep));
    REQUIRE(sweep.done == done);
    std::atomic<bool> stop = false;
    SweepOptions options{.stop = &stop};
    options.round_seconds = 0;  // makes rounds small
    options.progress = [&](const sim::SweepProgress& progress) { stop = progress.done > done + 400; };
    options.checkpoint = [&](const Sweep& state) { checkpoint = sim::sweep_to_json(graph, state); };
    sim::run_sweep(*simulator, sweep, options);
    REQUIRE(sweep.done > done);
    done = sweep.done;
  }
  CHECK(runs > 3);
  CHECK(checkpoint == sim::sweep_to_json(graph, whole));

  SECTION("and may go on beyond its old end") {
    Sweep longer = sim::resume_sweep(checkpoint, "c", graph, fresh(graph, generator, kTotal + 500));
    CHECK(sim::run_sweep(*simulator, longer).evaluated == 500);
    CHECK(longer.tally == plain_tally(graph, generator, kTotal + 500));
  }
  SECTION("and has nothing to do at its end") {
    Sweep same = sim::resume_sweep(checkpoint, "c", graph, fresh(graph, generator, kTotal));
    CHECK(sim::run_sweep(*simulator, same).evaluated == 0);
    CHECK(same.tally == whole.tally);
  }
  SECTION("nor time, a sweep without any") {
    Sweep none = fresh(graph, generator, kTotal);
    CHECK(sim::run_sweep(*simulator, none, {.seconds = 0}).evaluated == 0);
  }
}

TEST_CASE("a checkpoint of anything else is refused in one line that says what differs") {
  const core::Graph graph = test_graph(4);
  Sweep sweep = fresh(graph, {.seed = 5, .moves = 2}, 200);
  const auto simulator = sim::host_simulator(graph, 1);
  sim::run_sweep(*simulator, sweep);
  const std::string good = sim::sweep_to_json(graph, sweep);
  const auto resume = [&](const std::string& text, const core::Graph& with, const Sweep& wanted) {
    const std::string message = error_of([&] { sim::resume_sweep(text, "c.json", with, wanted); });
    CHECK(message.starts_with("c.json: "));
    check_line(message);
    return message;
  };
  const auto wanted = [&](std::uint64_t seed, std::int32_t moves) { return fresh(graph, {seed, moves}, 200); };

  CHECK(error_of([&] { sim::resume_sweep(good, "c", graph, wanted(5, 2)); }).empty());
  CHECK(contains(resume(good, graph, wanted(6, 2)), "seed 5, not 6"));
  CHECK(contains(resume(good, graph, wanted(5, 3)), "2 moves, not 3 moves"));
  CHECK(contains(resume(good, graph, fresh(graph, {5, 2}, 199)), "200"));
  Sweep other_top = wanted(5, 2);
  sim::TallyOptions options = sim::tally_options(graph);
  options.top = 11;
  other_top.tally = Tally(options);
  CHECK(contains(resume(good, graph, other_top), "top of 10, not 11"));
  options = sim::tally_options(graph);
  options.budget = 3;
  other_top.tally = Tally(options);
  CHECK(contains(resume(good, graph, other_top), "not 3"));

  core::GraphBuilder costlier(graph), larger(graph);
  costlier.node(3).cost += 1;
  larger.node(3).size += 1;
  CHECK(contains(resume(good, costlier.build(), wanted(5, 2)), "other costs"));
  CHECK(contains(resume(good, larger.build(), wanted(5, 2)), "another graph"));

  const auto changed = [&](const std::string& from, const std::string& to) { return replaced(good, from, to); };
  CHECK(contains(resume(changed("\"version\":4", "\"version\":5"), graph, wanted(5, 2)), "version 5"));
  CHECK(contains(resume(changed("\"version\":4", "\"version\":3"), graph, wanted(5, 2)), "drew other schedules"));
  CHECK(contains(resume(changed("cairn.sweep", "cairn.plan"), graph, wanted(5, 2)), "cairn.sweep"));
  CHECK(contains(resume(changed("\"seed\":5", "\"seed\":-5"), graph, wanted(5, 2)), "seed"));
  CHECK(contains(resume(changed("\"done\":200", "\"done\":100"), graph, wanted(5, 2)), "damaged"));
  for (std::size_t length = 0; length + 2 < good.size(); length += 11)
    CHECK(!resume(good.substr(0, length), graph, wanted(5, 2)).empty());
}

TEST_CASE("a checkpoint of which one character is another is refused") {
  const core::Graph graph = test_graph(4);
  Sweep sweep = fresh(graph, {.seed = 5, .moves = 2}, 200);
  sim::run_sweep(*sim::host_simulator(graph, 1), sweep);
  const std::string good = sim::sweep_to_json(graph, sweep);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char other : {'0', '9', 'x', ' ', '"'}) {
      if (good[at] == other) continue;
      std::string text = good;
      text[at] = other;
      INFO(at << ": " << text);
      CHECK_THROWS_AS(sim::resume_sweep(text, "c", graph, fresh(graph, {5, 2}, 200)), core::InputError);
    }
  }
}

}  // namespace cairn::tests::sweep_test
