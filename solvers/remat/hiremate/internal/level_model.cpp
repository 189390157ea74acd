// Builds the model of a level (level_model.h). The loss stands for the rest of the graph, which runs between the
// forward and the backward pass of an inner level.

#include "cairn/solvers/remat/hiremate/internal/level_model.h"

#include <utility>

#include "cairn/solvers/common/support/costs.h"

namespace cairn::solvers::level {

using core::Graph;

std::unordered_map<ValueId, std::int32_t> external_reads(const Graph& graph, std::span<const NodeId> steps) {
  std::unordered_map<ValueId, std::int32_t> reads, made;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const ValueId x : graph.inputs(steps[i])) {
      if (!made.contains(x)) reads[x] = static_cast<std::int32_t>(i);
    }
    for (const ValueId x : graph.outputs(steps[i])) made.emplace(x, 0);
  }
  return reads;
}

Model::Model(const Graph& whole, LevelProblem level) : graph(whole), problem(std::move(level)) {
  lay_out();
  find_data();
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (!nodes[k].backward && nodes[k].part != kAbsent) measure_forward(static_cast<std::int32_t>(k));
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].backward) measure_backward(static_cast<std::int32_t>(k));
  }
  for (Datum& datum : data) {
    std::sort(datum.readers.begin(), datum.readers.end());
    datum.readers.erase(std::unique(datum.readers.begin(), datum.readers.end()), datum.readers.end());
  }
}

std::vector<NodeId> Model::needed_outside(const std::vector<NodeId>& forward, bool level) const {
  std::unordered_map<NodeId, char> wanted;
  std::vector<NodeId> chosen;
  for (auto v = forward.rbegin(); v != forward.rend(); ++v) {
    const auto outputs = graph.outputs(*v);
    const bool leaves = std::any_of(outputs.begin(), outputs.end(), [&](ValueId x) {
      const std::int32_t datum = datum_of(x);
      return datum != kAbsent && (!level || data[datum].pinned_until_loss || graph.value_kept(x));
    });
    if (!leaves && !wanted.contains(*v)) continue;
    chosen.push_back(*v);
    for (const NodeId u : graph.predecessors(*v)) wanted.emplace(u, 0);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

void Model::lay_out() {
  const auto parts = static_cast<std::int32_t>(problem.parts.size());
  for (std::int32_t j = 0; j < parts; ++j) nodes.push_back({j, false, {}});
  if (problem.inner) {
    loss = size();
    nodes.push_back({kAbsent, false, {}});
  }
  backward_of.assign(problem.parts.size(), kAbsent);
  first_again = size();
  bool any = false;
  for (std::int32_t j = parts; j-- > 0;) {
    if (problem.parts[j].layer.backward.empty()) continue;
    any = true;
    backward_of[j] = size();
    nodes.push_back({j, true, {}});
  }
  if (!any) first_again = 0;
  for (std::int32_t j = 0; j < parts; ++j) {
    for (const NodeId v : problem.parts[j].layer.forward) home_[v] = j;
    for (const NodeId v : problem.parts[j].layer.backward) home_[v] = backward_of[j];
  }
}

std::int32_t Model::home(NodeId v) const {
  const auto found = home_.find(v);
  return found == home_.end() ? kAbsent : found->second;
}

void Model::find_data() {
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].part == kAbsent) continue;
    const Layer& layer = problem.parts[nodes[k].part].layer;
    for (const NodeId v : nodes[k].backward ? layer.backward : layer.forward) {
      for (const ValueId x : graph.outputs(v)) {
        bool shared = graph.value_kept(x), leaves = graph.value_kept(x);
        for (const NodeId reader : graph.readers(x)) {
          const std::int32_t there = home(reader);
          leaves = leaves || there == kAbsent;
          shared = shared || there == kAbsent || nodes[there].part != nodes[k].part;
        }
        if (!shared) continue;
        Datum datum{graph.value_size(x), static_cast<std::int32_t>(k), {}, false};
        // A value that leaves the forward pass of an inner level stays in memory until the loss. After that, the rest
        // of the graph is responsible for keeping it in memory.
        if (leaves && !nodes[k].backward && problem.inner && !graph.value_kept(x)) {
          datum.pinned_until_loss = true;
        } else if (leaves) {
          datum.readers.push_back(kEnd);
        }
        datum_of_[x] = static_cast<std::int32_t>(data.size());
        data.push_back(std::move(datum));
      }
    }
  }
}

std::int32_t Model::datum_of(ValueId x) const {
  const auto found = datum_of_.find(x);
  return found == datum_of_.end() ? kAbsent : found->second;
}

Way Model::measured(std::int32_t k, std::vector<NodeId> steps, std::span<const ValueId> stock,
                    const std::vector<ValueId>& saved) {
  Way way;
  way.cost = cost_of(graph, steps);
  for (const auto& [x, last] : external_reads(graph, steps)) {
    const std::int32_t datum = datum_of(x);
    if (datum == kAbsent) continue;
    way.reads.push_back({datum, last});
    data[datum].readers.push_back(k);
  }
  std::ranges::sort(way.reads, {}, [](const Way::Read& read) { return std::pair(read.last, read.datum); });
  const auto stays = [&](ValueId x) {
    const std::int32_t datum = datum_of(x);
    return (datum != kAbsent && data[datum].maker == k) || std::binary_search(saved.begin(), saved.end(), x);
  };
  const std::vector<std::int64_t> during = profile(graph, steps, stock, stays);
  std::int32_t from = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(during.size()); ++i) {
    while (from < static_cast<std::int32_t>(way.reads.size()) && way.reads[from].last < i) ++from;
    // The step is left out if an earlier piece needs at least as many bytes (see Way::pieces).
    if (!way.pieces.empty() && during[i] <= way.pieces.back().bytes) continue;
    if (!way.pieces.empty() && way.pieces.back().from == from) {
      way.pieces.back().bytes = during[i];
    } else {
      way.pieces.push_back({from, during[i]});
    }
  }
  if (way.pieces.empty()) way.pieces.push_back({0, 0});
  way.steps = std::move(steps);
  return way;
}

void Model::measure_forward(std::int32_t k) {
  const std::int32_t part = nodes[k].part;
  const LevelProblem::Part& level_part = problem.parts[part];
  const auto runs_again = [&](const std::vector<NodeId>& steps) {
    return std::none_of(steps.begin(), steps.end(), [&](NodeId v) { return graph.pinned(v); });
  };
  std::vector<Way>& ways = nodes[k].ways;
  if (pairs(part)) {
    Way pass = measured(k, needed_outside(level_part.layer.forward), {}, {});
    pass.again = runs_again(pass.steps);
    ways.push_back(std::move(pass));
    for (const LayerOption& option : level_part.options) {
      const std::vector<ValueId> saved = saved_by(part, option);
      Way way = measured(k, option.forward, {}, saved);
      for (const ValueId x : saved) way.saved += graph.value_size(x);
      way.saves = true;
      way.again = runs_again(way.steps);
      ways.push_back(std::move(way));
    }
    // A pinned node may run only once. So the forward half runs only once, in a way that saves values.
    if (!runs_again(level_part.layer.forward)) {
      for (Way& way : ways) way.again = false;
      ways.front().first = false;
    }
  } else {
    for (const LayerOption& option : level_part.options) {
      Way way = measured(k, option.forward, {}, {});
      std::vector<NodeId> fewer = needed_outside(level_part.layer.forward);
      std::sort(fewer.begin(), fewer.end());
      std::vector<NodeId> rerun;
      for (const NodeId v : option.forward) {
        if (std::binary_search(fewer.begin(), fewer.end(), v)) rerun.push_back(v);
      }
      if (rerun.size() != way.steps.size()) {
        way.again = false;
        Way again = measured(k, std::move(rerun), {}, {});
        again.first = false;
        again.again = runs_again(again.steps);
        ways.push_back(std::move(again));
      } else {
        way.again = runs_again(way.steps);
      }
      ways.push_back(std::move(way));
    }
  }
}

std::vector<ValueId> Model::saved_by(std::int32_t part, const LayerOption& option) const {
  std::vector<ValueId> saved;
  for (const auto& [x, last] : external_reads(graph, option.backward)) {
    if (datum_of(x) == kAbsent && home(graph.producer(x)) == part) saved.push_back(x);
  }
  std::sort(saved.begin(), saved.end());
  return saved;
}

void Model::measure_backward(std::int32_t k) {
  const std::int32_t part = nodes[k].part;
  for (const LayerOption& option : problem.parts[part].options)
    nodes[k].ways.push_back(measured(k, option.backward, saved_by(part, option), {}));
}

}  // namespace cairn::solvers::level
