#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::editable_schedule_property_test {
namespace {

using tests::Random;
using tests::random_graph;
using tests::random_schedule;
using Occurrence = EditableSchedule::Occurrence;
using Place = EditableSchedule::Place;
constexpr Occurrence kNone = EditableSchedule::kNone;

std::vector<Occurrence> occurrences(const EditableSchedule& edited) {
  std::vector<Occurrence> all;
  for (Occurrence o = edited.first(); o != edited.end(); o = edited.next(o)) all.push_back(o);
  return all;
}

/// Checks that everything `edited` reports is right for `schedule`. `lifetimes` are the lifetimes of the schedule's
/// occurrences. during(i) and after(i) return the bytes in memory during and after step i.
template <class Lifetimes, class During, class After>
void check_against(const EditableSchedule& edited, const Graph& graph, const Schedule& schedule,
                   const Lifetimes& lifetimes, const During& during, const After& after) {
  const std::vector<Occurrence> all = occurrences(edited);
  REQUIRE(static_cast<std::int64_t>(all.size()) == schedule.length());
  REQUIRE(edited.length() == schedule.length());
  std::map<Place, std::int64_t> step_at;
  Place before = -1;
  Occurrence previous = kNone;
  std::vector<Occurrence> latest(static_cast<std::size_t>(graph.node_count()), kNone);
  std::vector<std::vector<Occurrence>> readers(all.size());
  std::map<Occurrence, std::size_t> step_of;
  std::int64_t peak = 0, peak_step = -1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Occurrence o = all[i];
    const NodeId v = schedule.steps[i];
    REQUIRE(edited.node(o) == v);
    REQUIRE(edited.place(o) > before);
    REQUIRE(edited.at(edited.place(o)) == o);
    REQUIRE(edited.previous(o) == previous);
    REQUIRE(edited.latest_before(v, edited.place(o)) == latest[v]);
    REQUIRE(edited.previous_of_node(o) == latest[v]);
    if (latest[v] != kNone) REQUIRE(edited.next_of_node(latest[v]) == o);
    for (std::size_t k = 0; k < graph.inputs(v).size(); ++k) {
      const Occurrence source = latest[graph.producer(graph.inputs(v)[k])];
      REQUIRE(edited.source(o, static_cast<std::int32_t>(k)) == source);
      std::vector<Occurrence>& read_by = readers[step_of.at(source)];
      if (read_by.empty() || read_by.back() != o) read_by.push_back(o);
    }
    for (Place empty = before + 1; empty < edited.place(o); ++empty) {
      REQUIRE(edited.at(empty) == kNone);
      REQUIRE(edited.during(empty) == edited.before(o));
    }
    REQUIRE(edited.during(edited.place(o)) == during(i));
    REQUIRE(edited.before(o) == (i == 0 ? 0 : after(i - 1)));
    if (during(i) > peak || peak_step < 0) {
      peak = during(i);
      peak_step = static_cast<std::int64_t>(i);
    }
    before = edited.place(o);
    previous = latest[v] = o;
    step_of[o] = i;
  }
  REQUIRE(edited.previous(edited.end()) == previous);
  REQUIRE(edited.before(edited.end()) == (all.empty() ? 0 : after(all.size() - 1)));
  REQUIRE(edited.peak() == peak);
  REQUIRE(edited.peak_step() == (all.empty() ? edited.end() : all[static_cast<std::size_t>(peak_step)]));
  auto life = lifetimes.begin();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Occurrence o = all[i];
    Place latest_use = -1;
    std::int64_t live_at_end = 0;
    for (std::int32_t k = 0; k < graph.output_count(edited.node(o)); ++k, ++life) {
      const auto last = static_cast<std::size_t>(life->last);
      REQUIRE(edited.last_use(o, k) == edited.place(last == all.size() ? edited.end() : all[last]));
      latest_use = std::max(latest_use, edited.last_use(o, k));
      if (last == all.size()) live_at_end += graph.value_size(graph.value({edited.node(o), k}));
    }
    REQUIRE(edited.last_use(o) == latest_use);
    REQUIRE(edited.live_bytes(o, edited.place(edited.end())) == live_at_end);
    REQUIRE(edited.readers(o) == readers[i]);
    REQUIRE(edited.first_reader(o) == (readers[i].empty() ? kNone : readers[i].front()));
    for (std::size_t r = 0; r < readers[i].size(); ++r) {
      const auto inputs = graph.inputs(edited.node(readers[i][r]));
      const auto made_by_o = [&](ValueId x) { return graph.producer(x) == edited.node(o); };
      const auto k = std::find_if(inputs.begin(), inputs.end(), made_by_o) - inputs.begin();
      const Occurrence next = edited.next_reader(readers[i][r], static_cast<std::int32_t>(k));
      REQUIRE(next == (r + 1 == readers[i].size() ? kNone : readers[i][r + 1]));
      REQUIRE(edited.first_reader(o, edited.place(readers[i][r])) == readers[i][r]);
    }
    const bool is_last = edited.next_of_node(o) == kNone;
    REQUIRE(edited.needed(o) == (!readers[i].empty() || (is_last && graph.required(schedule.steps[i]))));
  }
}

void check(const EditableSchedule& edited, const Graph& graph) {
  const Schedule schedule{edited.steps()};
  if (schedule.length() > 0) REQUIRE(reference::valid(graph, schedule));
  check_against(
      edited, graph, schedule, reference::lifetimes(graph, schedule),
      [&](std::size_t i) { return reference::during(graph, schedule, static_cast<std::int64_t>(i)); },
      [&](std::size_t i) { return reference::after(graph, schedule, static_cast<std::int64_t>(i)); });
}

/// Works like check(), but is fast enough for long schedules, because it gets memory and lifetimes from the fast
/// functions instead of the definitions.
void check_fast(const EditableSchedule& edited, const Graph& graph) {
  const Schedule schedule{edited.steps()};
  const std::vector<std::int64_t> profile = Evaluator(graph).profile(schedule.steps);
  check_against(
      edited, graph, schedule, lifetimes(graph, schedule), [&](std::size_t i) { return profile[2 * i + 1]; },
      [&](std::size_t i) { return profile[2 * i + 2]; });
}

/// Makes random edits after which the schedule is still valid. The functions return false if they have changed nothing,
/// because the drawn edit is not possible or, for a move, was only evaluated.
class Editor {
 public:
  Editor(Random& random, const Graph& graph, EditableSchedule& edited)
      : random_(random), graph_(graph), edited_(edited) {}

  bool insert(NodeId v, Occurrence before) {
    for (const NodeId u : graph_.predecessors(v)) {
      if (edited_.latest_before(u, edited_.place(before)) == kNone) return false;
    }
    std::vector<NodeId> wanted = edited_.steps();
    const std::vector<Occurrence> all = occurrences(edited_);
    wanted.insert(wanted.begin() + (std::find(all.begin(), all.end(), before) - all.begin()), v);
    const Occurrence o = edited_.insert(v, before);
    REQUIRE(edited_.node(o) == v);
    REQUIRE(edited_.next(o) == before);
    REQUIRE(edited_.steps() == wanted);
    return true;
  }
  bool insert() {
    const auto all = occurrences(edited_);
    const auto at = static_cast<std::size_t>(random_.between(0, edited_.length()));
    return insert(static_cast<NodeId>(random_.below(graph_.node_count())), at == all.size() ? edited_.end() : all[at]);
  }

  bool can_drop(Occurrence o) const {
    const bool last_of_required = edited_.next_of_node(o) == kNone && graph_.required(edited_.node(o));
    return edited_.previous_of_node(o) != kNone || (edited_.readers(o).empty() && !last_of_required);
  }
  bool drop(bool with_unneeded) {
    if (edited_.length() == 0) return false;
    const Occurrence o = random_.pick(occurrences(edited_));
    if (!can_drop(o)) return false;
    const auto all = occurrences(edited_);
    Schedule wanted{edited_.steps()};
    wanted.steps.erase(wanted.steps.begin() + (std::find(all.begin(), all.end(), o) - all.begin()));
    if (with_unneeded) {
      // The expected steps come from reference::drop_unread(). It also drops steps that were not needed before the
      // edit, so there must be no such steps.
      if (std::any_of(all.begin(), all.end(), [&](Occurrence other) { return other != o && !edited_.needed(other); }))
        return false;
      wanted = reference::drop_unread(graph_, wanted);
      edited_.drop_with_unneeded(o);
    } else {
      edited_.drop(o);
    }
    REQUIRE(edited_.place(o) == -1);
    REQUIRE(edited_.steps() == wanted.steps);
    return true;
  }

  bool move() {
    if (edited_.length() == 0) return false;
    const std::vector<Occurrence> all = occurrences(edited_);
    const auto from = static_cast<std::size_t>(random_.below(edited_.length()));
    const Occurrence o = all[from];
    const auto [first, last] = edited_.legal(o);
    REQUIRE((first <= edited_.place(o) && edited_.place(o) <= last));
    const auto to = static_cast<std::size_t>(random_.below(edited_.length()));
    const Place target = edited_.place(all[to]);
    if (to == from || target < first || target > last) return false;
    std::vector<NodeId> wanted = edited_.steps();
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(from));
    wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(to), edited_.node(o));
    const std::vector<std::int64_t> profile = Evaluator(graph_).profile(wanted);
    edited_.evaluate_move(o, target);
    for (std::size_t i = std::min(from, to); i <= std::max(from, to); ++i) {
      REQUIRE(edited_.moved_during(edited_.place(all[i])) == profile[2 * i + 1]);
    }
    if (random_.chance(30)) return false;  // evaluates the move, but does not make it
    edited_.move();
    REQUIRE(edited_.steps() == wanted);
    return true;
  }

  bool edit() {
    const std::int64_t kind = random_.below(100);
    if (kind < 35) return insert();
    if (kind < 55) return drop(false);
    if (kind < 65) return drop(true);
    if (kind < 95) return move();
    edited_.close_gaps();
    for (const Occurrence o : occurrences(edited_)) REQUIRE(edited_.next(o) == edited_.at(edited_.place(o) + 1));
    return true;
  }

 private:
  Random& random_;
  const Graph& graph_;
  EditableSchedule& edited_;
};

TEST_CASE("after every edit an edited schedule has the memory, lifetimes and readers that the definitions give") {
  int edits = 0;
  tests::for_each_seed(5000, [&](Random& random) {
    const Graph graph = random_graph(random, {.max_nodes = 9, .several_outputs = random.chance(60)});
    EditableSchedule edited(graph);
    check(edited, graph);
    for (int round = 0; round < 2; ++round) {  // the second round reuses the edited object
      const Schedule schedule = random_schedule(random, graph);
      edited.assign(schedule.steps);
      REQUIRE(edited.steps() == schedule.steps);
      check(edited, graph);
      Editor editor(random, graph, edited);
      for (int k = 0; k < 12; ++k) {
        if (!editor.edit()) continue;
        ++edits;
        check(edited, graph);
      }
    }
  });
  CHECK(edits > 20000);
}

TEST_CASE("long schedules, across many blocks of places") {
  tests::for_each_seed(30, [&](Random& random) {
    const Graph graph =
        random_graph(random, {.min_nodes = 100, .max_nodes = 200, .several_outputs = random.chance(50)});
    EditableSchedule edited(graph);
    edited.assign(random_schedule(random, graph, random.between(0, 300)).steps);
    Editor editor(random, graph, edited);
    for (int k = 0; k < 100; ++k) {
      if (editor.edit()) check_fast(edited, graph);
    }
    // Inserts many steps at one position, so that no empty place is left there and the object has to make room.
    const Occurrence spot = random.pick(occurrences(edited));
    for (int k = 0; k < 200; ++k) {
      if (editor.insert(static_cast<NodeId>(random.below(graph.node_count())), spot)) check_fast(edited, graph);
    }
  });
}

TEST_CASE("very long schedules, whose blocks are larger") {
  Random random(1);
  GraphBuilder builder;
  for (NodeId v = 0; v < 9000; ++v) {
    Node node = tests::make_node("", random.between(0, 100));
    for (std::int64_t k = random.between(0, 2); k > 0 && v > 0; --k) {
      node.inputs.push_back(static_cast<NodeId>(random.between(std::max(0, v - 400), v - 1)));
    }
    builder.add(node);
  }
  const Graph graph = builder.build();
  EditableSchedule edited(graph);
  edited.assign(graph.input_order());
  Editor editor(random, graph, edited);
  int edits = 0;
  for (int k = 0; k < 100; ++k) edits += editor.edit() ? 1 : 0;
  check_fast(edited, graph);
  const Occurrence spot = random.pick(occurrences(edited));
  for (int k = 0; k < 600; ++k) edits += editor.insert(static_cast<NodeId>(k), spot) ? 1 : 0;
  check_fast(edited, graph);
  CHECK(edits > 500);
}

TEST_CASE("the range maximum agrees with a plain one") {
  tests::for_each_seed(100, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 2, .max_nodes = 250});
    EditableSchedule edited(graph);
    edited.assign(random_schedule(random, graph).steps);
    Editor editor(random, graph, edited);
    for (int k = 0; k < 20; ++k) {
      editor.edit();
      const Place places = edited.place(edited.end());
      if (places == 0) continue;
      const auto first = static_cast<Place>(random.below(places)),
                 last = static_cast<Place>(random.between(first - 1, places - 1));
      std::int64_t most = std::numeric_limits<std::int64_t>::min() / 2;
      for (Place p = first; p <= last; ++p) most = std::max(most, edited.during(p));
      REQUIRE(edited.max(first, last) == most);
    }
  });
}

TEST_CASE("what exceeds a ceiling agrees with a plain sum, and the steps that do are found") {
  std::int64_t above = 0;
  tests::for_each_seed(400, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 2, .max_nodes = 150, .several_outputs = random.chance(50)});
    EditableSchedule edited(graph);
    const std::int64_t charge = random.between(0, 3);
    std::int64_t ceiling = 0;
    edited.assign(random_schedule(random, graph).steps);
    Editor editor(random, graph, edited);
    for (int k = 0; k < 25; ++k) {
      if (k % 10 == 0) {
        if (k > 0 && random.chance(30)) edited.assign(random_schedule(random, graph).steps);
        ceiling = random.between(0, edited.peak());
        edited.set_ceiling(ceiling, charge);
      }
      editor.edit();
      if (random.chance(40)) continue;  // skips this check, so that some checks follow several edits
      std::int64_t sum = 0;
      std::vector<Occurrence> found;
      for (const Occurrence o : occurrences(edited)) {
        if (edited.during(edited.place(o)) <= ceiling) continue;
        sum += edited.during(edited.place(o)) - ceiling + charge;
        found.push_back(o);
      }
      REQUIRE(edited.excess() == sum);
      above += static_cast<std::int64_t>(found.size());
      const auto from = static_cast<Place>(random.below(edited.place(edited.end()) + 1));
      const auto behind =
          std::find_if(found.begin(), found.end(), [&](Occurrence o) { return edited.place(o) >= from; });
      const Occurrence wanted = behind != found.end() ? *behind : found.empty() ? kNone : found.front();
      REQUIRE(edited.step_above_ceiling(from) == wanted);
    }
  });
  CHECK(above > 10'000);
}

TEST_CASE("the legal range of a step is where every step still reads what it reads") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random, {.max_nodes = 8, .several_outputs = random.chance(50)});
    EditableSchedule edited(graph);
    edited.assign(random_schedule(random, graph).steps);
    const auto reads = [&](const std::vector<std::pair<NodeId, Occurrence>>& steps) {
      std::map<std::pair<Occurrence, NodeId>, Occurrence> found;
      std::vector<Occurrence> latest(static_cast<std::size_t>(graph.node_count()), kNone);
      for (const auto& [v, o] : steps) {
        for (const NodeId u : graph.predecessors(v)) found[{o, u}] = latest[u];
        found[{o, v}] = latest[v];  // the occurrences of one node must keep their order, too
        latest[v] = o;
      }
      return found;
    };
    std::vector<std::pair<NodeId, Occurrence>> steps;
    for (const Occurrence o : occurrences(edited)) steps.emplace_back(edited.node(o), o);
    for (std::size_t from = 0; from < steps.size(); ++from) {
      const auto [first, last] = edited.legal(steps[from].second);
      for (std::size_t to = 0; to < steps.size(); ++to) {
        auto moved = steps;
        moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(from));
        moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), steps[from]);
        const auto place = static_cast<Place>(to);
        REQUIRE((reads(moved) == reads(steps)) == (first <= place && place <= last));
      }
    }
  });
}

TEST_CASE("memory effects beyond those of graphs: what stays for good, and what goes with its last reader") {
  // Step 0 adds 7 bytes: 5 bytes stay for good, and 2 bytes are freed when steps 1 and 2 have both run.
  EditableSchedule edited(std::vector<MemoryEffect>{{7, 0, 2, false}, {4, 3, 0, false}, {1, 1, 0, false}}, {0, 0, 1, 2},
                          {0, 0});
  edited.assign(std::vector<NodeId>{0, 1, 2});
  CHECK(edited.during(0) == 7);
  CHECK(edited.during(1) == 11);
  CHECK(edited.during(2) == 9);
  CHECK(edited.before(edited.end()) == 6);
  CHECK(edited.peak() == 11);
  edited.evaluate_move(1, 2);
  CHECK(edited.moved_during(1) == 8);
  CHECK(edited.moved_during(2) == 11);
  edited.move();
  CHECK(edited.steps() == std::vector<NodeId>{0, 2, 1});
  CHECK(edited.before(edited.end()) == 6);
  CHECK(edited.last_use(0) == 2);
}

}  // namespace
}  // namespace cairn::core::editable_schedule_property_test
