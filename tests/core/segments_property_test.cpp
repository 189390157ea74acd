#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/core/order_cases.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

// Tests segments of memory profiles (section 6 of Jin et al.). A segment is a rise of memory to a peak and the drop to
// the following valley. Its change is the rise minus the drop. A profile a dominates a profile b if two pointers can go
// from their beginnings to their ends such that the value of a is never above that of b (Definition 2.3 of Jin et al.).
namespace cairn::core::segments_property_test {
namespace {

using solvers::NodeSumGraph;
using tests::near_dominated;
using tests::near_values;
using tests::Order;
using tests::Random;
using tests::random_values;
using tests::show;
using tests::summed;
using tests::Values;
using tests::zigzag;

using Segments = std::vector<Segment>;

Segments without_places(const std::vector<PlacedSegment>& placed) { return Segments(placed.begin(), placed.end()); }

/// Returns the segments of Definition 6.3 of Jin et al. without their positions.
Segments literal_segments(const Values& values) { return without_places(reference::segments(values)); }

/// Removes the hidden segment, i.e. the segment on which dominance does not depend (see core::CanonicalProfile), if
/// there is one. Its change is 0, and its rise is at most the drop of the segment before it. There is at most one,
/// because only the first segment whose change is not negative can have a change of 0.
Segments seen_by_dominance(Segments segments) {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::int64_t down = i == 0 ? 0 : segments[i - 1].drop;
    if (segments[i].change() != 0 || segments[i].rise > down) continue;
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  return segments;
}

/// Returns whether each of the two profiles dominates the other, by the literal definition.
bool equivalent(const Values& a, const Values& b) {
  return reference::dominates_by_pointers(a, b) && reference::dominates_by_pointers(b, a);
}

/// Checks the segments of a profile, their positions, and the start, peak and end that CanonicalProfile reports. All
/// must agree with Definition 6.3 of Jin et al.
void check_segments(const Values& values) {
  const std::vector<PlacedSegment> expected = reference::segments(values);
  const std::vector<PlacedSegment> placed = place_segments(values);
  const CanonicalProfile profile = canonical(values);
  INFO(show(values) << " has " << show(without_places(expected)) << "and not " << show(without_places(placed)) << "or "
                    << show(profile.segments));
  REQUIRE(placed.size() == expected.size());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    REQUIRE(placed[i].begin == expected[i].begin);
    REQUIRE(placed[i].peak == expected[i].peak);
    REQUIRE(placed[i].end == expected[i].end);
  }
  REQUIRE(without_places(placed) == without_places(expected));
  REQUIRE(profile.segments == without_places(expected));
  REQUIRE(profile.start == values.front());
  REQUIRE(profile.peak() == *std::max_element(values.begin(), values.end()));
  REQUIRE(profile.end() == values.back());
}

TEST_CASE("Segments are those of Definition 6.3", "[segments]") {
  Random random(63);
  for (int i = 0; i < 60000; ++i) check_segments(random_values(random, 14));
  for (int i = 0; i < 1000; ++i) check_segments(random_values(random, 300));
}

TEST_CASE("Segments of all short profiles of four values", "[segments]") {
  tests::for_each_sequence(3, 6, check_segments);
}

TEST_CASE("Segments of the widest values that profiles have", "[segments]") {
  tests::for_each_wide_sequence(5, check_segments);
}

TEST_CASE("Lemma 6.4: a segment's values lie between its valleys and its peak", "[segments]") {
  Random random(64);
  for (int i = 0; i < 10000; ++i) {
    const Values values = random_values(random, 12);
    INFO(show(values));
    std::int64_t at = 0;
    bool nonnegative = false;
    for (const PlacedSegment& segment : place_segments(values)) {
      REQUIRE(segment.begin == at);
      at = segment.end;
      REQUIRE(segment.begin <= segment.peak);
      REQUIRE(segment.peak <= segment.end);
      REQUIRE(segment.begin < segment.end);
      REQUIRE(reference::left_valley(values, segment.begin, segment.peak) == segment.begin);
      REQUIRE(reference::right_peak(values, segment.begin, segment.peak) == segment.peak);
      REQUIRE(reference::left_peak(values, segment.peak, segment.end) == segment.peak);
      REQUIRE(reference::right_valley(values, segment.peak, segment.end) == segment.end);
      // Segments with a negative change come first. Of the remaining segments, only the first may have a change of 0.
      REQUIRE((segment.change() != 0 || !nonnegative));
      REQUIRE((!segment.negative() || !nonnegative));
      nonnegative = !segment.negative();
    }
    REQUIRE(at == static_cast<std::int64_t>(values.size()) - 1);
  }
}

TEST_CASE("sorts_before is the order of Definition 6.6 and Lemma 6.7 holds", "[segments]") {
  CHECK(Segment{3, 2}.change() == 1);
  CHECK_FALSE(Segment{2, 2}.negative());
  CHECK(Segment{2, 3}.negative());
  Segments all;
  for (std::int64_t rise = 0; rise <= 5; ++rise) {
    for (std::int64_t drop = 0; drop <= 5; ++drop) all.push_back({rise, drop});
  }
  for (const Segment& a : all) {
    for (const Segment& b : all) REQUIRE(sorts_before(a, b) == reference::sort_value_below(a, b));
  }
  Random random(67);
  for (int i = 0; i < 10000; ++i) {
    const Values values = random_values(random, 12);
    INFO(show(values));
    const Segments segments = canonical(values).segments;
    for (std::size_t k = 1; k < segments.size(); ++k) REQUIRE(sorts_before(segments[k - 1], segments[k]));
  }
}

/// Returns all segments whose rise and drop are from 0 to `highest`.
Segments all_small_segments(std::int64_t highest) {
  Segments all;
  for (std::int64_t rise = 0; rise <= highest; ++rise) {
    for (std::int64_t drop = 0; drop <= highest; ++drop) all.push_back({rise, drop});
  }
  return all;
}

TEST_CASE("Two segments belong together exactly if Definition 6.3 makes no two of them", "[segments]") {
  const Segments all = all_small_segments(5);
  for (const Segment& a : all) {
    // belong_together() is defined only for segments in the sense of Definition 6.3. Each segment of this list is
    // such a segment, even if its rise or drop is 0.
    REQUIRE(literal_segments(zigzag(0, Segments{a})) == Segments{a});
    for (const Segment& b : all) {
      const Values values = zigzag(0, Segments{a, b});
      const Segments apart{a, b};
      INFO(show(apart) << "as " << show(values) << " is " << show(literal_segments(values)));
      REQUIRE(belong_together(a, b) == (literal_segments(values) != apart));
      const Segment one = joined(a, b);
      REQUIRE(one.rise == *std::max_element(values.begin(), values.end()));
      REQUIRE(one.rise - one.drop == values.back());
      if (belong_together(a, b)) REQUIRE(literal_segments(values) == Segments{one});
    }
  }
}

TEST_CASE("Joining segments is associative", "[segments]") {
  const Segments all = all_small_segments(3);
  for (const Segment& a : all) {
    for (const Segment& b : all) {
      for (const Segment& c : all) REQUIRE(joined(joined(a, b), c) == joined(a, joined(b, c)));
    }
  }
}

Segment random_segment(Random& random, std::int64_t bound) {
  return {random.between(0, bound), random.between(0, bound)};
}

TEST_CASE("append_segment keeps segments those of the profile", "[segments]") {
  Random random(68);
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t bound = random.pick(Values{1, 2, 5, 100});
    Segments raw;
    Segments chain;
    const std::int64_t start = random.between(-5, 5);
    for (std::int64_t k = random.between(1, 9); k > 0; --k) {
      raw.push_back(random_segment(random, bound));
      append_segment(chain, raw.back());
      INFO(show(raw) << "gives " << show(chain));
      REQUIRE(chain == literal_segments(zigzag(start, raw)));
      REQUIRE(chain == canonical(zigzag(start, raw)).segments);
      REQUIRE(equivalent(zigzag(start, chain), zigzag(start, raw)));
    }
  }
}

TEST_CASE("append_segment of single steps gives the segments of the profile", "[segments]") {
  Random random(69);
  for (int i = 0; i < 20000; ++i) {
    const Values values = random_values(random, 14);
    Segments chain;
    for (std::size_t k = 1; k < values.size(); ++k) {
      const std::int64_t step = values[k] - values[k - 1];
      append_segment(chain, {std::max<std::int64_t>(step, 0), std::max<std::int64_t>(-step, 0)});
    }
    INFO(show(values));
    REQUIRE(chain == literal_segments(values));
  }
}

/// A segment together with the nodes that it consists of.
struct Block : Segment {
  std::vector<int> nodes;
};

TEST_CASE("append_segment of a derived type absorbs from left to right", "[segments]") {
  Random random(70);
  for (int i = 0; i < 3000; ++i) {
    std::vector<Block> chain;
    Segments plain;
    const int length = static_cast<int>(random.between(1, 12));
    for (int k = 0; k < length; ++k) {
      const Segment next = random_segment(random, 3);
      append_segment(plain, next);
      append_segment(chain, Block{next, {k}}, [](Block& a, const Block& b) {
        static_cast<Segment&>(a) = joined(a, b);
        a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
      });
    }
    REQUIRE(Segments(chain.begin(), chain.end()) == plain);
    std::vector<int> nodes;
    for (const Block& block : chain) nodes.insert(nodes.end(), block.nodes.begin(), block.nodes.end());
    REQUIRE(nodes == tests::numbers_below(length));
  }
}

/// Returns a key of a profile: two profiles have the same key exactly if each of them dominates the other.
std::vector<std::int64_t> seen_by_dominance(const Values& values) {
  const CanonicalProfile profile = canonical(values);
  return zigzag(profile.start, seen_by_dominance(profile.segments));
}

TEST_CASE("Profiles dominate each other exactly if dominance sees the same segments", "[segments]") {
  std::map<Values, Values> classes;
  int profiles = 0;
  tests::for_each_sequence(3, 6, [&](const Values& values) {
    const Values& first = classes.emplace(seen_by_dominance(values), values).first->second;
    INFO(show(first) << " and " << show(values));
    REQUIRE(equivalent(first, values));
    ++profiles;
  });
  CHECK(profiles == 4 + 16 + 64 + 256 + 1024 + 4096);
  CHECK(classes.size() > 50);
  for (const auto& [seen, a] : classes) {
    for (const auto& [other, b] : classes) {
      INFO(show(a) << " and " << show(b));
      REQUIRE(equivalent(a, b) == (seen == other));
    }
  }
}

TEST_CASE("Profiles dominate each other exactly if dominance sees the same segments: random ones", "[segments]") {
  Random random(71);
  int alike = 0;
  for (int i = 0; i < 30000; ++i) {
    const Values a = random_values(random, 10), b = near_values(random, a);
    INFO(show(a) << " and " << show(b));
    REQUIRE(equivalent(a, b) == (seen_by_dominance(a) == seen_by_dominance(b)));
    alike += seen_by_dominance(a) == seen_by_dominance(b);
    REQUIRE(equivalent(a, zigzag(a.front(), canonical(a).segments)));
  }
  CHECK(alike > 3000);
}

// The following test checks Theorem 6.5 of Jin et al., about segments of an isolated path.

/// Returns a random node-sum graph in which nodes 0 to path - 1 form a path. It has one to three more nodes, with
/// random edges between these nodes, and between them and the ends of the path.
NodeSumGraph random_graph_around_path(Random& random, NodeId path) {
  const auto n = static_cast<NodeId>(path + random.between(1, 3));
  const std::int64_t bound = random.pick(Values{1, 2, 2, 5, 100});
  Values weights;
  std::vector<NodeSumGraph::Edge> edges;
  for (NodeId v = 0; v < n; ++v) weights.push_back(random.between(-bound, bound));
  for (NodeId v = 1; v < path; ++v) edges.emplace_back(v - 1, v);
  for (NodeId v = path; v < n; ++v) {
    // The first node outside the path may get an edge to an end of the path. The second and third such node may get an
    // edge from an end. Edges between nodes outside the path lead to higher numbers. So there is no cycle.
    const auto before_source = [&](NodeId w) { return (w - path) % 3 == 0; };
    if (before_source(v) && random.chance(50)) edges.emplace_back(v, random.pick(Order{0, path - 1}));
    if (!before_source(v) && random.chance(50)) edges.emplace_back(random.pick(Order{0, path - 1}), v);
    for (NodeId w = v + 1; w < n; ++w) {
      if (random.chance(30)) edges.emplace_back(v, w);
    }
  }
  return NodeSumGraph(weights, edges);
}

TEST_CASE("Theorem 6.5: the segments of an isolated path may run without a break", "[segments]") {
  Random random(650);
  int cases = 0;
  while (cases < 4000) {
    const auto length = static_cast<NodeId>(random.between(3, 6));
    const NodeSumGraph graph = random_graph_around_path(random, length);
    if (reference::topological_order_count(graph) > 250) continue;
    const Order path = tests::numbers_below(length);
    if (!reference::isolated(graph, reference::set_of(path), true)) continue;
    ++cases;
    // Jin et al. form the segments from the memory after each node of the path except the last. A segment from valley i
    // to valley j then consists of the nodes i + 1 to j.
    Values values = profile(graph, path);
    values.erase(values.begin());
    values.pop_back();
    const std::vector<PlacedSegment> segments = place_segments(values);
    const auto unbroken = [&](const Order& order) {
      return std::all_of(segments.begin(), segments.end(), [&](const PlacedSegment& segment) {
        const auto first = std::find(order.begin(), order.end(), static_cast<NodeId>(segment.begin + 1));
        const auto nodes = segment.end - segment.begin;
        if (order.end() - first < nodes) return false;
        for (std::int64_t k = 0; k < nodes; ++k) {
          if (first[k] != segment.begin + 1 + k) return false;
        }
        return true;
      });
    };
    std::vector<Values> unbroken_profiles, profiles;
    reference::for_each_topological_order(graph, [&](const Order& order) {
      profiles.push_back(profile(graph, order));
      if (unbroken(order)) unbroken_profiles.push_back(profiles.back());
    });
    INFO(show(graph) << " path of " << length << " segments " << show(without_places(segments)));
    for (const Values& any : profiles) {
      REQUIRE(std::any_of(unbroken_profiles.begin(), unbroken_profiles.end(),
                          [&](const Values& other) { return dominates(other, any); }));
    }
  }
}

// The following tests check Theorem 6.8 of Jin et al., about merging the segments of parallel chains.

/// Calls visit(steps) for every way to interleave the steps of the parts. The steps of each part stay in their order.
template <class Visit>
void for_each_interleaving(const std::vector<Values>& parts, std::vector<std::size_t>& taken, Values& steps,
                           const Visit& visit) {
  bool complete = true;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (taken[p] == parts[p].size()) continue;
    complete = false;
    steps.push_back(parts[p][taken[p]++]);
    for_each_interleaving(parts, taken, steps, visit);
    --taken[p];
    steps.pop_back();
  }
  if (complete) visit(std::as_const(steps));
}
template <class Visit>
void for_each_interleaving(const std::vector<Values>& parts, const Visit& visit) {
  std::vector<std::size_t> taken(parts.size(), 0);
  Values steps;
  for_each_interleaving(parts, taken, steps, visit);
}

Values random_steps(Random& random, std::int64_t length, std::int64_t bound) {
  Values steps;
  for (; length > 0; --length) steps.push_back(random.between(-bound, bound));
  return steps;
}

/// Returns two or three parallel chains with at most `nodes` nodes in all. A chain is a list of numbers, one for each
/// node: the change of memory when the node runs.
std::vector<Values> random_chains(Random& random, std::int64_t nodes) {
  const std::int64_t bound = random.pick(Values{1, 2, 2, 3, 10, 1000});
  std::vector<Values> chains(static_cast<std::size_t>(random.between(2, 3)));
  for (std::int64_t left = random.between(2, nodes); left > 0; --left) {
    Values& chain = random.pick(chains);
    chain.push_back(random_steps(random, 1, bound)[0]);
  }
  return chains;
}

std::vector<Segments> canonical_parts(const std::vector<Values>& chains) {
  std::vector<Segments> parts;
  for (const Values& chain : chains) parts.push_back(canonical(summed(0, chain)).segments);
  return parts;
}

TEST_CASE("Theorem 6.8: merged segments dominate every interleaving of the chains' nodes", "[segments]") {
  Random random(680);
  std::int64_t interleavings = 0;
  for (int i = 0; i < 15000; ++i) {
    const std::vector<Values> chains = random_chains(random, 8);
    const std::vector<Segments> parts = canonical_parts(chains);
    const Segments merged = merge_segments(parts);
    const Values best = zigzag(0, merged);
    INFO(show(merged));
    bool reached = false;
    for_each_interleaving(chains, [&](const Values& steps) {
      const Values values = summed(0, steps);
      if (!dominates(best, values)) FAIL(show(best) << " does not dominate " << show(values));
      reached = reached || dominates(values, best);
      ++interleavings;
    });
    REQUIRE(reached);
  }
  CHECK(interleavings > 100000);
}

TEST_CASE("Theorem 6.8: merged segments dominate every other order of the segments", "[segments]") {
  Random random(681);
  for (int i = 0; i < 12000; ++i) {
    const std::vector<Segments> parts = canonical_parts(random_chains(random, 10));
    Segments all;
    for (const Segments& part : parts) all.insert(all.end(), part.begin(), part.end());
    if (all.size() > 6) continue;
    const Values best = zigzag(0, merge_segments(parts));
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      Segments other;
      for (const std::size_t k : order) other.push_back(all[k]);
      if (!dominates(best, zigzag(0, other))) FAIL(show(best) << " does not dominate " << show(zigzag(0, other)));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Theorem 6.8 of Jin et al. also holds for any subset of the chains' segments: their sorted sequence dominates every
// order of their nodes that keeps the order of the nodes within each segment. Segments of equal sort value
// (Definition 6.6) may come in any order.
TEST_CASE("Theorem 6.8: sorted segments dominate every order of their nodes", "[segments]") {
  Random random(682);
  std::int64_t orders = 0;
  for (int i = 0; i < 12000; ++i) {
    struct Part : Segment {
      Values steps;
    };
    std::vector<Part> parts;
    for (const Values& chain : random_chains(random, 10)) {
      for (const PlacedSegment& segment : place_segments(summed(0, chain))) {
        if (random.chance(20)) continue;
        parts.push_back({segment, Values(chain.begin() + segment.begin, chain.begin() + segment.end)});
      }
    }
    random.shuffle(parts);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return reference::sort_value_below(a, b); });
    Values sorted;
    std::vector<Values> nodes;
    std::size_t count = 0;
    for (const Part& part : parts) {
      sorted.insert(sorted.end(), part.steps.begin(), part.steps.end());
      nodes.push_back(part.steps);
      count += part.steps.size();
    }
    if (count > 7) continue;
    const Values best = summed(0, sorted);
    for_each_interleaving(nodes, [&](const Values& steps) {
      ++orders;
      if (!dominates(best, summed(0, steps))) FAIL(show(best) << " does not dominate " << show(summed(0, steps)));
    });
  }
  CHECK(orders > 100000);
}

TEST_CASE("merge_segments sorts what it is given and loses nothing", "[segments]") {
  CHECK(merge_segments(std::vector<Segments>{}).empty());
  CHECK(merge_segments(std::vector<Segments>{{}, {}}).empty());
  Random random(683);
  for (int i = 0; i < 15000; ++i) {
    std::vector<Segments> parts(static_cast<std::size_t>(random.between(0, 7)));
    Segments sorted;
    for (Segments& part : parts) {
      const Values values = random_values(random, 12);
      part = canonical(values).segments;
      sorted.insert(sorted.end(), part.begin(), part.end());
    }
    random.shuffle(sorted);
    std::stable_sort(sorted.begin(), sorted.end(), reference::sort_value_below);
    const Segments merged = merge_segments(parts);
    INFO(show(merged) << "for " << show(sorted));
    for (std::size_t k = 1; k < merged.size(); ++k) REQUIRE_FALSE(sorts_before(merged[k], merged[k - 1]));
    REQUIRE(equivalent(zigzag(0, merged), zigzag(0, sorted)));
    if (parts.size() == 1) REQUIRE(merged == parts.front());
  }
}

}  // namespace
}  // namespace cairn::core::segments_property_test
