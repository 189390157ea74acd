#include "cairn/solvers/order/internal/search/beam.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "cairn/core/support/random.h"

namespace cairn::solvers {

Beam::Beam(const StepGraph& graph, bool backward, std::int32_t width)
    : graph_(&graph), backward_(backward), width_(width) {
  core::Random random(1);
  for (StepId s = 0; s < graph.step_count(); ++s) {
    for (const StepId u : graph.predecessors(s)) {
      if (graph[u].output > 0) reads_.items.push_back(u);
    }
    reads_.close();
    readers_.push_back(static_cast<std::int32_t>(graph.successors(s).size()));
    const std::span before = backward ? graph.successors(s) : graph.predecessors(s);
    blockers_.push_back(static_cast<std::int32_t>(before.size()));
    const std::uint64_t low = random.next();
    zobrist_.push_back({low, random.next()});
    if (backward) memory_ += graph[s].rise - graph[s].drop - graph[s].output;
  }
  readers_left_ = readers_;
  blockers_left_ = blockers_;
}

void Beam::start(std::int64_t limit) {
  limit_ = limit;
  done_ = 0;
  expanded_ = 0;
  candidates_.clear();
  truncated_ = false;
  trace_.clear();
  level_.clear();
  State root;
  root.memory = memory_;
  for (std::int32_t s = 0; s < graph_->step_count(); ++s) {
    if (blockers_[s] == 0) level_.entries.push_back(s);
  }
  root.ready = static_cast<std::int32_t>(level_.entries.size());
  level_.states.push_back(root);
}

Beam::Outcome Beam::advance(core::Stopwatch& watch) {
  if (memory_ > limit_) return Outcome::none;
  while (done_ < graph_->step_count()) {
    for (const auto parents = static_cast<std::int32_t>(level_.states.size()); expanded_ < parents; ++expanded_) {
      if (watch.charge(level_.states[expanded_].ready + 1).expired()) return Outcome::running;
      expand(expanded_);
    }
    drop_equal();
    keep_best();
    if (candidates_.empty()) return truncated_ ? Outcome::truncated : Outcome::none;
    next_level_.clear();
    for (std::size_t i = 0; i < candidates_.size();) {
      const State& parent = level_.states[candidates_[i].parent];
      load(parent);
      for (const std::int32_t p = candidates_[i].parent; i < candidates_.size() && candidates_[i].parent == p; ++i) {
        run(parent, candidates_[i]);
      }
      unload(parent);
    }
    std::swap(level_, next_level_);
    candidates_.clear();
    expanded_ = 0;
    ++done_;
  }
  return Outcome::found;
}

std::vector<StepId> Beam::order() const {
  std::vector<StepId> order;
  for (std::int32_t t = level_.states.front().trace; t >= 0; t = trace_[t].parent) {
    order.push_back(trace_[t].step);
  }
  if (!backward_) std::reverse(order.begin(), order.end());
  return order;
}

void Beam::load(const State& state) {
  const std::int32_t* entry = level_.entries.data() + state.begin + state.ready;
  for (std::int32_t i = 0; i < state.read; ++i, entry += 2) readers_left_[entry[0]] = entry[1];
  for (std::int32_t i = 0; i < state.blocked; ++i, entry += 2) blockers_left_[entry[0]] = entry[1];
}

void Beam::unload(const State& state) {
  const std::int32_t* entry = level_.entries.data() + state.begin + state.ready;
  for (std::int32_t i = 0; i < state.read; ++i, entry += 2) readers_left_[entry[0]] = readers_[entry[0]];
  for (std::int32_t i = 0; i < state.blocked; ++i, entry += 2) blockers_left_[entry[0]] = blockers_[entry[0]];
}

void Beam::expand(std::int32_t parent) {
  const State& state = level_.states[parent];
  load(state);
  const std::int32_t* ready = level_.entries.data() + state.begin;
  const std::size_t first = candidates_.size();
  for (std::int32_t i = 0; i < state.ready; ++i) {
    const std::int32_t s = ready[i];
    std::int64_t bytes = 0;
    for (const StepId u : reads_[s]) {
      if (readers_left_[u] == (backward_ ? readers_[u] : 1)) bytes += (*graph_)[u].output;
    }
    const StepGraph::Step& step = (*graph_)[s];
    const std::int64_t during = state.memory + (backward_ ? step.drop + bytes : step.rise);
    if (during > limit_) continue;
    const std::int64_t after = during - (backward_ ? step.rise : step.drop + bytes);
    const Candidate candidate{{state.hash.low ^ zobrist_[s].low, state.hash.high ^ zobrist_[s].high}, after, parent, s};
    if (after <= state.memory) {
      candidates_.resize(first);
      candidates_.push_back(candidate);
      break;
    }
    candidates_.push_back(candidate);
  }
  unload(state);
}

void Beam::drop_equal() {
  const std::size_t size = std::bit_ceil(2 * candidates_.size() + 2);
  table_.assign(size, -1);
  std::size_t kept = 0;
  for (const Candidate& candidate : candidates_) {
    std::uint64_t slot = candidate.hash.low & (size - 1);
    while (table_[slot] >= 0 && candidates_[table_[slot]].hash != candidate.hash) slot = (slot + 1) & (size - 1);
    if (table_[slot] >= 0) continue;
    table_[slot] = static_cast<std::int32_t>(kept);
    candidates_[kept++] = candidate;
  }
  candidates_.resize(kept);
}

void Beam::keep_best() {
  if (static_cast<std::int64_t>(candidates_.size()) <= width_) return;
  truncated_ = true;
  std::nth_element(candidates_.begin(), candidates_.begin() + width_, candidates_.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.memory != b.memory ? a.memory < b.memory : a.hash.low < b.hash.low;
                   });
  candidates_.resize(width_);
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.parent != b.parent ? a.parent < b.parent : a.step < b.step;
  });
}

void Beam::run(const State& parent, const Candidate& candidate) {
  const std::int32_t s = candidate.step;
  const std::span<const StepId> inputs = reads_[s], blocked = blocked_by(s);
  for (const StepId u : inputs) --readers_left_[u];
  for (const StepId t : blocked) --blockers_left_[t];

  std::vector<std::int32_t>& out = next_level_.entries;
  State state{candidate.hash, candidate.memory, out.size(), 0, 0, 0, static_cast<std::int32_t>(trace_.size())};
  const std::int32_t* entry = level_.entries.data() + parent.begin;
  for (std::int32_t i = 0; i < parent.ready; ++i, ++entry) {
    if (*entry != s) out.push_back(*entry);
  }
  for (const StepId t : blocked) {
    if (blockers_left_[t] == 0) out.push_back(t);
  }
  state.ready = static_cast<std::int32_t>(out.size() - state.begin);
  const auto put = [&out](std::int32_t id, std::int32_t left, std::int32_t& count) {
    out.push_back(id);
    out.push_back(left);
    ++count;
  };
  for (std::int32_t i = 0; i < parent.read; ++i, entry += 2) {
    if (readers_left_[*entry] > 0) put(*entry, readers_left_[*entry], state.read);
  }
  for (const StepId u : inputs) {
    if (readers_left_[u] > 0 && readers_left_[u] == readers_[u] - 1) put(u, readers_left_[u], state.read);
  }
  for (std::int32_t i = 0; i < parent.blocked; ++i, entry += 2) {
    if (blockers_left_[*entry] > 0) put(*entry, blockers_left_[*entry], state.blocked);
  }
  for (const StepId t : blocked) {
    if (blockers_left_[t] > 0 && blockers_left_[t] == blockers_[t] - 1) put(t, blockers_left_[t], state.blocked);
  }
  trace_.push_back({parent.trace, s});
  next_level_.states.push_back(state);

  for (const StepId u : inputs) ++readers_left_[u];
  for (const StepId t : blocked) ++blockers_left_[t];
}

}  // namespace cairn::solvers
