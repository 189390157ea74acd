#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "cairn/core/graph.h"
#include "cairn/tests/reference/kumar2019/decompositions.h"
#include "cairn/tests/reference/kumar2019/schedules.h"
#include "cairn/tests/reference/kumar2019/spines.h"

/// This file has sections A.3 and A.4 of Kumar et al. (2019): interleaved schedules, and rematerialization by a path
/// decomposition. A node is *known* to a schedule if its value is in memory before the schedule begins.
namespace cairn::tests::kumar2019 {

/// An interleaved schedule (Definition 15) is a set of tuples <sigma, x> of a sequence sigma and a node x. X is the set
/// of the nodes x. Tuples are stored as (x, sigma), so that they are sorted by x and then lexicographically.
using Interleaved = std::set<std::pair<NodeId, Sequence>>;

inline Nodes on(const Interleaved& tuples) {
  Nodes result;
  for (const auto& tuple : tuples) result.insert(tuple.first);
  return result;
}
inline Nodes before(const Nodes& nodes, NodeId x) { return {nodes.begin(), nodes.lower_bound(x)}; }
inline Sequence then(Sequence sigma, NodeId x) {
  sigma.push_back(x);
  return sigma;
}
inline Interleaved both(Interleaved a, const Interleaved& b) {
  a.insert(b.begin(), b.end());
  return a;
}

inline bool valid(const Graph& graph, const Interleaved& tuples, const Nodes& known) {
  const Nodes nodes = on(tuples);
  return std::all_of(tuples.begin(), tuples.end(), [&](const auto& tuple) {
    return valid(graph, then(tuple.second, tuple.first), both(known, before(nodes, tuple.first)));
  });
}

/// Says how the memory M_W(I) counts known nodes. For a tuple of x, these are the nodes of W and the nodes of X before
/// x. As printed, some are counted twice: the total size of all known nodes is added, and M_W(sigma o x) also contains
/// the known nodes that are read later. With paid_once, M_W(sigma o x) does not contain known nodes.
enum class KnownNodes { as_printed, paid_once };

/// Returns M_W(I), the memory of the interleaved schedule I (`tuples`) if the nodes W (`known`) are in memory before it
/// begins.
inline std::int64_t memory(const Graph& graph, const Interleaved& tuples, const Nodes& known,
                           KnownNodes pay = KnownNodes::as_printed) {
  const Nodes nodes = on(tuples);
  std::int64_t most = 0;
  for (const NodeId x : nodes) {
    const Nodes now_known = both(known, before(nodes, x));
    std::int64_t sum = size_of(graph, now_known);
    for (const auto& [target, sigma] : tuples) {
      if (target != x) continue;
      sum += memory(graph, then(sigma, x), now_known, pay == KnownNodes::paid_once ? now_known : Nodes{});
    }
    most = std::max(most, sum);
  }
  return most;
}

/// Returns L(I), the total cost of an interleaved schedule.
inline std::int64_t length(const Graph& graph, const Interleaved& tuples) {
  std::int64_t sum = 0;
  for (const auto& [x, sigma] : tuples) sum += length(graph, then(sigma, x));
  return sum;
}

inline Interleaved merge(const Interleaved& tuples) {
  std::map<NodeId, Sequence> merged;
  for (const auto& [x, sigma] : tuples) extend(merged[x], sigma);
  return {merged.begin(), merged.end()};
}

inline Sequence flatten(const Interleaved& tuples) {
  Sequence result;
  for (const auto& [x, sigma] : merge(tuples)) extend(result, then(sigma, x));
  return result;
}

/// Returns Condense(X', I), which keeps only the tuples of nodes in X' (`onto`). The steps of any other tuple become
/// part of the next kept tuple. Tuples after the last node of X' are dropped.
inline Interleaved condense(const Nodes& onto, const Interleaved& tuples) {
  Interleaved result;
  Sequence tau;
  for (const auto& [x, sigma] : merge(tuples)) {
    extend(tau, sigma);
    if (onto.contains(x)) {
      result.insert({x, tau});
      tau.clear();
    } else {
      tau.push_back(x);
    }
  }
  return result;
}

/// Runs Algorithm 3 (PWRemat and InterleavedSchedule). As printed, its schedules need not be valid, because it runs
/// known nodes again, and also runs nodes whose inputs it wrongly takes for known. Without `as_printed`, a corrected
/// version runs, which the tests call settled. It does not run known nodes:
/// - If PWRemat is called for a node that is known, or for a node that is in none of the bags of the call, it returns
///   an empty sequence.
/// - Let u_1, u_2, ... be the nodes of the separator, and the nodes of X that come before the last one of these. Let
///   sigma_i be the schedule that PWRemat returns for the node before u_i on the spine. The tuple of u_i is <sigma_1 o
///   ... o sigma_i, u_i>. The sequence does not run u_1, ..., u_{i-1}, because these count as known in the tuple of
///   u_i. It includes sigma_q even if u_q is in W, because u_i may read what sigma_q makes. There is no tuple for a u_i
///   in W.
/// - InterleavedSchedule of the inner bags gets all of X, and takes all u_i for known.
/// PWRemat splits the bags at the middle bag of INTERVAL(u), and InterleavedSchedule at bag (b + 1) / 2 of b bags,
/// counted from 1.
class Algorithm3 {
 public:
  explicit Algorithm3(const Graph& graph, bool as_printed = false) : graph_(graph), as_printed_(as_printed) {}

  /// Returns the schedule for the last node. The graph must have a long spine, i.e. an edge from each node to the next
  /// one.
  Sequence schedule(const Bags& bags) const { return pw_remat(bags, graph_.node_count() - 1, {}); }

 private:
  Sequence pw_remat(const Bags& bags, NodeId u, const Nodes& known) const {
    const Nodes nodes = all_of(bags);
    if (known.contains(u) || !nodes.contains(u)) return as_printed_ ? Sequence{u} : Sequence{};
    if (less(common(in(graph_, u), nodes), known).empty()) return {u};
    Bags cut;
    for (const Nodes& bag : bags) cut.push_back(before(bag, u + 1));
    if (width(cut) <= 1) {
      const Nodes needed = needed_for(graph_, {u}, less(all_of(cut), known));
      return {needed.begin(), needed.end()};
    }
    const auto [first, last_bag] = interval(cut, u);
    const std::int64_t i = (first + last_bag) / 2;
    const Bags left(cut.rend() - i, cut.rend()), right(cut.begin() + i + 1, cut.end());
    const Interleaved joined = both(interleaved(cut[i], left, known), interleaved(cut[i], right, known));
    return flatten(joined);
  }

  Interleaved interleaved(const Nodes& nodes, const Bags& bags, const Nodes& known) const {
    Interleaved result;
    const Nodes wanted = as_printed_ ? nodes : less(nodes, known);
    if (less(nodes, known).empty() || bags.empty()) {
      for (const NodeId x : wanted) result.insert({x, {}});
      return result;
    }
    const auto middle = static_cast<std::ptrdiff_t>((bags.size() - 1) / 2);
    const Nodes& separator = bags[middle];
    const Bags inner(bags.begin(), bags.begin() + middle), outer(bags.begin() + middle + 1, bags.end());
    if (separator.empty()) return interleaved(nodes, inner, known);  // then the outer bags are empty, too, by Lemma 9
    const Nodes earlier = before(nodes, last(separator)), both_sides = both(earlier, separator);
    Sequence sigma;
    Nodes passed;
    for (const NodeId u : both_sides) {
      if (u > 0) extend(sigma, pw_remat(inner, u - 1, passed));
      if (as_printed_ || !known.contains(u)) result.insert({u, sigma});
      if (as_printed_) sigma.push_back(u);
      passed.insert(u);
    }
    result = both(result, interleaved(separator, outer, known));
    result = both(result, interleaved(as_printed_ ? less(nodes, earlier) : nodes, inner, both(known, both_sides)));
    return condense(wanted, result);
  }

  const Graph& graph_;
  bool as_printed_;
};

/// Computes the bounds of Theorem 22 with constants, for the corrected Algorithm 3 and a path decomposition of b bags
/// with at most p nodes each. The bound on the number of steps follows the recurrence of the proof, because the closed
/// form in the text drops constants. In this recurrence, each sigma_q is in at most 2p tuples, those of two separators.
/// The bound on memory is lower than that of the paper, which adds up interleaved schedules. In fact, only one sigma
/// runs at a time. While it runs, each level of InterleavedSchedule, on both sides of the bag of u, holds at most 2p
/// nodes of its separators and the inputs of one node.
class Theorem22 {
 public:
  /// Returns the bound on the cost of PWRemat's schedule if each node costs 1.
  double steps(std::int64_t p, std::int64_t b) {
    return p <= 2 ? static_cast<double>(2 * b + 1) : 2 * interleaved_steps(p, b);
  }
  /// Returns the bound on memory, in units of M_in + M_max, i.e. of largest_inputs() + largest_size().
  static std::int64_t memory(std::int64_t p, std::int64_t b) {
    if (p <= 2 || b == 0) return 1;
    return memory(p - 1, b / 2) + 2 * std::bit_width(static_cast<std::uint64_t>(b)) * (2 * p + 1) + p + 1;
  }

 private:
  double interleaved_steps(std::int64_t p, std::int64_t b) {
    if (b == 0) return static_cast<double>(p);
    const auto [known, added] = known_.insert({{p, b}, 0});
    if (added) {
      const std::int64_t inner = (b - 1) / 2, outer = b - 1 - inner;
      const double tuples = static_cast<double>(2 * p);
      known->second = tuples * (tuples + 1) / 2 * steps(p - 1, inner) + tuples + interleaved_steps(p, inner) +
                      interleaved_steps(p, outer);
    }
    return known->second;
  }

  std::map<std::pair<std::int64_t, std::int64_t>, double> known_;
};

}  // namespace cairn::tests::kumar2019
