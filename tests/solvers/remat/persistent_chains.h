#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes small training chains, and enumerates all their persistent schedules by the definition
/// (solvers/remat/rotor/dynamic_program.h).
namespace cairn::tests {

/// A chain of n stages, each with a forward node f and a backward node b. The f of stage l makes two values: the
/// checkpoint that enters stage l + 1, and a value inside the stage, which only the b of stage l may read. The b of
/// stage l makes the gradient that the b of stage l - 1 reads.
struct ChainShape {
  int n = 0;
  /// Per stage: whether its b reads the checkpoint that enters, and whether it reads the value inside.
  std::vector<int> reads_entering, reads_inside;

  core::NodeId forward(int l) const { return l; }
  core::NodeId backward(int l) const { return 2 * n - 1 - l; }
};

inline ChainShape random_chain_shape(int n, std::uint64_t reads) {
  ChainShape shape{n, {}, {}};
  for (int l = 0; l < n; ++l) {
    shape.reads_entering.push_back(l > 0 ? static_cast<int>(reads >> (2 * l) & 1) : 0);
    // The value inside the last stage is the loss. The b of that stage always reads it.
    shape.reads_inside.push_back(l + 1 == n ? 1 : static_cast<int>(reads >> (2 * l + 1) & 1));
  }
  return shape;
}

inline core::Graph random_chain(Random& random, const ChainShape& shape) {
  const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 3, 10, 30});
  core::GraphBuilder builder;
  const auto size = [&] { return random.between(0, most); };
  for (int l = 0; l < shape.n; ++l) {
    core::Node f = tests::make_node(fmt::format("f{}", l), 0, {}, random.between(0, 9));
    f.scratch = random.chance(40) ? size() : 0;
    if (l > 0) f.inputs = {{shape.forward(l - 1), 0}};
    f.outputs = {{size(), false, {}, ""}, {size(), false, {}, ""}};
    if (l + 1 == shape.n) f.outputs[0].keep = random.chance(50);
    builder.add(f);
  }
  for (int l = shape.n - 1; l >= 0; --l) {
    core::Node b = tests::make_node(fmt::format("b{}", l), size(), {}, random.between(0, 9));
    b.scratch = random.chance(40) ? size() : 0;
    b.backward = true;
    // If a backward node has no mark, its stage must follow from the values that it reads.
    const bool unmarked = shape.reads_entering[l] + shape.reads_inside[l] > 0 && random.chance(20);
    b.forward = unmarked ? core::kNoNode : shape.forward(l);
    b.keep = random.chance(20);
    if (l + 1 < shape.n) b.inputs.push_back({shape.backward(l + 1), 0});
    if (shape.reads_entering[l] != 0) b.inputs.push_back({shape.forward(l - 1), 0});
    if (shape.reads_inside[l] != 0) b.inputs.push_back({shape.forward(l), 1});
    builder.add(b);
  }
  return builder.build();
}

/// Enumerates every persistent schedule of a chain, by this definition. The forward nodes (f) that run between two
/// backward nodes (b) are consecutive nodes of the chain. Each of them, except the first, reads what the previous step
/// has made. A value made by a run of f is either freed after the next step, or stays until a certain b has run. For a
/// checkpoint, this is the b of the stage that the checkpoint enters. For a value inside a stage, it is the b of the
/// stage itself. While such a value stays, neither this f nor the f of an earlier stage may run again. The loss is
/// computed once.
class PersistentSchedules {
 public:
  explicit PersistentSchedules(const ChainShape& shape) : shape_(shape), last_(shape.n, -1), final_(shape.n, false) {
    extend(shape.n - 1);
  }
  const std::vector<core::Schedule>& all() const { return all_; }

 private:
  /// Tries all continuations of `steps_`. The backward node that runs next is that of stage `next`.
  void extend(int next) {
    if (next < 0) {
      if (std::count(last_.begin(), last_.end(), -1) == 0) all_.push_back({steps_});
      return;
    }
    // Appends a step. If the step does not read the value that the previous forward step has made, the value must stay
    // for a backward node.
    const auto step = [&](core::NodeId node, const std::vector<int>& reads, int runs, int then) {
      const auto now = static_cast<int>(steps_.size());
      const std::vector<bool> before = final_;
      const std::vector<int> last_before = last_;
      for (const int l : reads) {
        if (last_[l] == now - 1) continue;
        if (*std::max_element(last_.begin(), last_.begin() + l) > last_[l]) return;
        final_[l] = true;
      }
      if (now > 0 && steps_.back() < shape_.n && std::find(reads.begin(), reads.end(), steps_.back()) == reads.end())
        final_[steps_.back()] = true;
      if (runs < 0) final_[next] = false;  // a backward node frees the values that it has read
      if (runs < 0 && next > 0) final_[next - 1] = false;
      if (runs >= 0) last_[runs] = now;
      steps_.push_back(node);
      extend(then);
      steps_.pop_back();
      last_ = last_before;
      final_ = before;
    };
    for (int l = 0; l < shape_.n; ++l) {
      const bool kept = std::find(final_.begin() + l, final_.end(), true) != final_.end();
      if (kept || (l > 0 && last_[l - 1] < 0) || (l + 1 == shape_.n && last_[l] >= 0)) continue;
      const bool sweeping = !steps_.empty() && steps_.back() < shape_.n;
      if (sweeping && steps_.back() + 1 != shape_.forward(l)) continue;
      step(shape_.forward(l), l > 0 ? std::vector<int>{l - 1} : std::vector<int>{}, l, next);
    }
    std::vector<int> reads;
    if (shape_.reads_entering[next] != 0) reads.push_back(next - 1);
    if (shape_.reads_inside[next] != 0) reads.push_back(next);
    for (const int l : reads) {
      if (last_[l] < 0) return;
    }
    step(shape_.backward(next), reads, -1, next - 1);
  }

  const ChainShape& shape_;
  std::vector<core::Schedule> all_;
  std::vector<core::NodeId> steps_;
  std::vector<int> last_;    ///< step of the latest run of each f, or -1 if it has not run
  std::vector<bool> final_;  ///< whether f must not run again until a backward node has read its value
};

}  // namespace cairn::tests
