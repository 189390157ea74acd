#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/key_trees.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/random_graph.h"

// Tests search_key_orders(), the search over orders of keys, i.e. of the nodes of a tree where paths meet. Compares it
// with brute force over topological cuts, and its results on several machines. A topological cut is a set of nodes that
// contains all inputs of its nodes, i.e. a set of nodes that can have run.
namespace cairn::solvers::key_orders_search_test {
namespace {

using core::Segment;
using core::reference::Bytes;
using core::reference::Order;
using core::reference::OrderModel;
using tests::Random;
namespace reference = core::reference;
using Step = KeyOrdersFound::Place;

/// The steps that an order of the tree must contain. Each step is a segment of a part (a key or a free path) of the
/// tree.
struct Steps {
  std::vector<Step> steps;
  std::vector<Segment> segments;
  OrderModel model;
  std::int32_t number(const Step& step) const {
    return static_cast<std::int32_t>(std::find(steps.begin(), steps.end(), step) - steps.begin());
  }
};

Steps steps_of(const KeyTree& tree) {
  const auto keys = static_cast<std::int32_t>(tree.keys.size());
  Steps all;
  reference::NodeSet readers = 0;
  std::vector<std::int32_t> first, last, parent;  // for each part: its first step, the end of its steps, and its parent
  const auto add_part = [&](std::int32_t part, const std::vector<Segment>& segments, std::int32_t number) {
    for (const Segment& segment : segments) {
      all.steps.push_back({part, number++});
      all.segments.push_back(segment);
    }
  };
  for (std::int32_t k = 0; k < keys; ++k) {
    const KeyTree::Key& key = tree.keys[static_cast<std::size_t>(k)];
    first.push_back(static_cast<std::int32_t>(all.steps.size()));
    if (key.reads_source) readers |= reference::bit(first.back());
    add_part(k, {key.key}, -1);
    add_part(k, key.rest, 0);
    last.push_back(static_cast<std::int32_t>(all.steps.size()));
    parent.push_back(key.parent);
  }
  for (std::size_t f = 0; f < tree.free.size(); ++f) {
    first.push_back(static_cast<std::int32_t>(all.steps.size()));
    add_part(keys + static_cast<std::int32_t>(f), tree.free[f].segments, 0);
    last.push_back(static_cast<std::int32_t>(all.steps.size()));
    parent.push_back(tree.free[f].parent);
  }
  const auto count = static_cast<std::int32_t>(all.steps.size());
  std::vector<std::vector<std::int32_t>> successors(static_cast<std::size_t>(count));
  for (std::size_t part = 0; part < first.size(); ++part) {
    for (std::int32_t s = first[part]; s + 1 < last[part]; ++s)
      successors[static_cast<std::size_t>(s)].push_back(s + 1);
    if (parent[part] >= 0 && first[part] < last[part])
      successors[static_cast<std::size_t>(last[part] - 1)].push_back(first[static_cast<std::size_t>(parent[part])]);
  }
  all.model = OrderModel(count, [&](std::int32_t s) { return successors[static_cast<std::size_t>(s)]; });
  const auto memory = [segments = all.segments, readers, released = tree.released](reference::NodeSet done) {
    std::int64_t bytes = (readers & ~done) == 0 ? -released : 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (reference::contains(done, static_cast<std::int32_t>(s))) bytes += segments[s].change();
    }
    return bytes;
  };
  all.model.memory = memory;
  all.model.during = [segments = all.segments, memory](reference::NodeSet done, std::int32_t s) {
    return memory(done) + segments[static_cast<std::size_t>(s)].rise;
  };
  return all;
}

std::vector<Segment> random_chain(Random& random, std::int64_t steps, std::int64_t most) {
  std::vector<Segment> chain;
  for (; steps > 0; --steps) core::append_segment(chain, {random.between(0, most), random.between(0, most)});
  return chain;
}

/// Returns a random tree of a few keys. Some keys and some paths are equal, and some paths are free (KeyTree::Free).
KeyTree random_tree(Random& random) {
  const std::int64_t most = random.pick(std::vector<std::int64_t>{0, 1, 2, 3, 10, 1000});
  const int readers = static_cast<int>(random.between(1, 5));
  KeyTree tree = tests::key_tree_shape(random, readers, static_cast<int>(random.between(0, readers)));
  tree.released = random.between(0, 2 * most);
  KeyTree::Key kinds[2];
  for (KeyTree::Key& kind : kinds) {
    kind.key = {random.between(0, most), random.between(0, most)};
    kind.rest = random_chain(random, random.between(0, 3), most);
  }
  const bool alike = random.chance(40);
  for (KeyTree::Key& key : tree.keys) {
    if (alike || random.chance(30)) {
      const KeyTree::Key& kind = kinds[random.chance(30) ? 0 : 1];
      key.key = kind.key;
      key.rest = kind.rest;
    } else {
      key.key = {random.between(0, most), random.between(0, most)};
      key.rest = random_chain(random, random.between(0, 3), most);
    }
    if (random.chance(10)) key.reads_source = true;
  }
  const std::vector<Segment> same = random_chain(random, 2, most);
  for (std::int64_t paths = random.chance(70) ? 0 : random.between(1, 2); paths > 0; --paths) {
    const auto parent = static_cast<std::int32_t>(random.between(-1, static_cast<std::int64_t>(tree.keys.size()) - 1));
    tree.free.push_back({random.chance(50) ? same : random_chain(random, 2, most), parent});
  }
  return tree;
}

std::string describe(const KeyTree& tree) {
  std::string text = fmt::format("\n  released {}\n", tree.released);
  const auto chain = [](const std::vector<Segment>& segments) {
    std::string written;
    for (const Segment& segment : segments) written += fmt::format(" +{}-{}", segment.rise, segment.drop);
    return written;
  };
  for (const KeyTree::Key& key : tree.keys) {
    text += fmt::format("  key{} rest{} parent {}{}\n", chain({key.key}), chain(key.rest), key.parent,
                        key.reads_source ? " reads" : "");
  }
  for (const KeyTree::Free& path : tree.free) {
    text += fmt::format("  free{} parent {}\n", chain(path.segments), path.parent);
  }
  return text;
}

/// Returns what is wrong with an answer, or an empty text. If `lattice` is given, the answer must be a dominant order.
std::string defect(const Steps& all, const KeyOrdersFound& found, const reference::CutLattice* lattice) {
  Order order;
  for (const Step& step : found.steps) order.push_back(all.number(step));
  if (order.size() != all.steps.size()) return "not every step stands there just once";
  if (!reference::leads(all.model, order, 0, reference::first(all.model.count))) return "no order of the tree";
  std::vector<std::int32_t> keys;
  for (const Step& step : found.steps) {
    if (step.segment < 0) keys.push_back(step.part);
  }
  if (keys != found.keys) return "the keys come in another order";
  const Bytes profile = reference::profile_of(all.model, order);
  if (*std::max_element(profile.begin(), profile.end()) != found.peak) return "another peak";
  if (lattice == nullptr) return "";
  if (!found.complete) return "not complete";
  if (found.peak != reference::least_peak(*lattice)) return fmt::format("peak {}", found.peak);
  return reference::dominates_all(profile, *lattice) ? "" : "not dominant";
}

TEST_CASE("key orders of small trees are dominant however wide the search is", "[sim]") {
  Random random(1);
  core::HostMachine machine(1);
  int examined = 0;
  for (int i = 0; i < 4500; ++i) {
    const KeyTree tree = random_tree(random);
    const Steps all = steps_of(tree);
    if (all.model.count > 16) continue;
    ++examined;
    const reference::CutLattice lattice = reference::cut_lattice(all.model);
    for (const std::int64_t width : {1, 3, 1000}) {
      KeyOrderOptions options{.least_width = width, .most_width = width, .least_batch = 0};
      const KeyOrdersFound found = search_key_orders(tree, options, machine);
      const std::string wrong = defect(all, found, &lattice);
      if (!wrong.empty())
        FAIL(wrong << " of " << reference::least_peak(lattice) << " width " << width << describe(tree));
    }
  }
  CHECK(examined > 2500);
}

/// Calls visit(order) for every order of the keys in which each key comes after its children.
void each_order(const KeyTree& tree, std::vector<std::int32_t>& order,
                const std::function<void(const std::vector<std::int32_t>&)>& visit) {
  const auto keys = static_cast<std::int32_t>(tree.keys.size());
  if (static_cast<std::int32_t>(order.size()) == keys) return visit(order);
  for (std::int32_t k = 0; k < keys; ++k) {
    const auto placed = [&](std::int32_t key) { return std::find(order.begin(), order.end(), key) != order.end(); };
    bool ready = !placed(k);
    for (std::int32_t child = 0; child < keys; ++child) {
      ready = ready && (tree.keys[static_cast<std::size_t>(child)].parent != k || placed(child));
    }
    if (!ready) continue;
    order.push_back(k);
    each_order(tree, order, visit);
    order.pop_back();
  }
}

TEST_CASE("of equal subtrees one order in each class is tried and its peak is that of the others", "[sim]") {
  Random random(2);
  core::HostMachine machine(1);
  int fewer = 0;
  for (int i = 0; i < 1500; ++i) {
    const KeyTree tree = random_tree(random);
    const PackedKeyTree packed(tree);
    const KeyTreeView view = packed.view();
    std::vector<std::int64_t> memory(static_cast<std::size_t>(packed.workspace_bytes()) / 8 + 1);
    RelaxationSolver work(reinterpret_cast<std::byte*>(memory.data()), view, packed.size);
    std::vector<std::int64_t> all_peaks, tried_peaks;
    std::vector<std::int32_t> order;
    each_order(tree, order, [&](const std::vector<std::int32_t>& whole) {
      const auto keys = static_cast<std::int32_t>(whole.size());
      bool tried = true;
      for (std::int32_t length = 0; length < keys; ++length) {
        tried = tried && view.may_follow(whole.data(), length, whole[static_cast<std::size_t>(length)]);
      }
      work.relaxation.build(view, whole.data(), keys, -1);
      const std::int64_t peak = work.solver.least_peak(work.relaxation.graph());
      all_peaks.push_back(peak);
      if (tried) tried_peaks.push_back(peak);
    });
    fewer += tried_peaks.size() < all_peaks.size() ? 1 : 0;
    // Orders that differ only by exchanging equal subtrees form a class. All classes have the same size c, and the
    // search tries one order of each class. All orders of a class have the same peak. So each peak occurs c times as
    // often among all orders as among the tried orders.
    std::sort(all_peaks.begin(), all_peaks.end());
    std::sort(tried_peaks.begin(), tried_peaks.end());
    REQUIRE(!tried_peaks.empty());
    REQUIRE(all_peaks.size() % tried_peaks.size() == 0);
    const std::size_t of_class = all_peaks.size() / tried_peaks.size();
    for (std::size_t k = 0; k < tried_peaks.size(); ++k) {
      INFO(describe(tree));
      REQUIRE(tried_peaks[k] == all_peaks[k * of_class]);
    }
  }
  CHECK(fewer > 300);
}

TEST_CASE("key orders are the same on every machine", "[sim]") {
  Random random(3);
  tests::FiberMachine forwards(tests::Threads::forward), backwards(tests::Threads::reverse);
  core::HostMachine one(1), two(2);
  for (int i = 0; i < 40; ++i) {
    const KeyTree tree = i < 30 ? random_tree(random) : tests::random_key_tree(random, 5, 3, 3);
    KeyOrderOptions options{.least_width = random.pick(std::vector<std::int64_t>{5, 100})};
    options.least_batch = random.pick(std::vector<std::int64_t>{0, 20});
    const KeyOrdersFound expected = search_key_orders(tree, options, one);
    const auto check = [&](const KeyOrdersFound& found) {
      INFO(describe(tree));
      CHECK(found.complete);
      CHECK(found.steps == expected.steps);
      CHECK(found.peak == expected.peak);
      CHECK(found.relaxations == expected.relaxations);
      CHECK(found.dominant == expected.dominant);
    };
    check(search_key_orders(tree, options, two));
    check(search_key_orders(tree, options, [&]() -> tests::FiberMachine& { return forwards; }));
    check(search_key_orders(tree, options, [&]() -> tests::FiberMachine& { return backwards; }));
  }
}

TEST_CASE("a search of key orders that is stopped has some order and no better one than a search that is not",
          "[sim]") {
  Random random(4);
  core::HostMachine machine(2);
  int cut = 0;
  for (int i = 0; i < 300; ++i) {
    const KeyTree tree = random_tree(random);
    const Steps all = steps_of(tree);
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t most : {-1, 0, 30, 300, 1'000'000}) {
      KeyOrderOptions options;
      std::int64_t left = most;
      options.stop = [&](std::int64_t work) { return (left -= work) < 0; };
      const KeyOrdersFound found = search_key_orders(tree, options, machine);
      const std::string wrong = defect(all, found, nullptr);
      if (!wrong.empty()) FAIL(wrong << describe(tree));
      if (most > 300) REQUIRE(found.complete);
      if (most < 0) REQUIRE(!found.complete);
      cut += found.complete ? 0 : 1;
      if (found.complete) REQUIRE(found.peak <= before);
      before = std::min(before, found.peak);
    }
  }
  CHECK(cut > 600);
}

TEST_CASE("key orders of no key and of parents that cannot be", "[sim]") {
  core::HostMachine machine(1);
  KeyTree tree;
  const KeyOrdersFound nothing = search_key_orders(tree, {}, machine);
  CHECK(nothing.complete);
  CHECK(nothing.steps.empty());
  CHECK(nothing.peak == 0);
  tree.free.push_back({{{3, 1}}, -1});
  const KeyOrdersFound path = search_key_orders(tree, {}, machine);
  CHECK(path.steps == std::vector<Step>{{0, 0}});
  CHECK(path.peak == 3);
  tree.free[0].parent = 0;
  CHECK_THROWS_AS(search_key_orders(tree, {}, machine), core::InputError);
  tree.free.clear();
  tree.keys.push_back({{1, 0}, {}, 0, true});
  CHECK_THROWS_AS(search_key_orders(tree, {}, machine), core::InputError);
}

}  // namespace
}  // namespace cairn::solvers::key_orders_search_test
