#include "cairn/solvers/remat/hiremate/level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "cairn/solvers/engines/engine.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using core::ValueId;

constexpr std::int32_t kAbsent = -1;
constexpr std::int32_t kEnd = 1 << 28;  ///< reader that stands for the end of the level

/// A value that one compute node of a level makes, and that other compute nodes or the outside of the level read.
struct Datum {
  std::int64_t bytes = 0;
  std::int32_t maker = 0;             ///< compute node that makes the value
  std::vector<std::int32_t> readers;  ///< compute nodes that read it in some way, ascending; kEnd: it stays to the end
  /// Whether it is a forward value that leaves the level, so that it stays until the loss.
  bool pinned_until_loss = false;
};

/// One way to run one compute node: a sequence of nodes, and its effect on memory.
struct Way {
  struct Read {
    std::int32_t datum = 0, last = 0;  ///< the value read; index in `steps` of its last reader
  };
  /// A group of steps with the same reads to come: they need `bytes` beside values from outside, of which reads[from]
  /// and the following ones are still to be read.
  struct Piece {
    std::int32_t from = 0;
    std::int64_t bytes = 0;
  };
  std::vector<NodeId> steps;
  std::int64_t cost = 0;
  std::vector<Read> reads;    ///< reads of values from outside, in order of `last`
  std::vector<Piece> pieces;  ///< pieces with ascending `from` and bytes, without dominated pieces
  std::int64_t saved = 0;     ///< bytes that stay in memory for the backward part
  bool first = true, again = true;
  bool saves = false;  ///< whether the way keeps what its backward part needs
};

struct ComputeNode {
  /// Number of the part; kAbsent: the loss, i.e. the place where the rest of the graph runs.
  std::int32_t part = kAbsent;
  bool backward = false;
  /// Ways to run it; for a backward node: one for each saving way of its forward node, in that order.
  std::vector<Way> ways;
};

/// Measures what running a sequence of nodes needs in memory.
class Measure {
 public:
  explicit Measure(const Graph& graph) : graph_(graph) {}

  /// Finds the values that the sequence reads and does not make before, each with the index of its last reader.
  std::unordered_map<ValueId, std::int32_t> external_reads(std::span<const NodeId> steps) const {
    std::unordered_map<ValueId, std::int32_t> reads, made;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const ValueId x : graph_.inputs(steps[i])) {
        if (!made.contains(x)) reads[x] = static_cast<std::int32_t>(i);
      }
      for (const ValueId x : graph_.outputs(steps[i])) made.emplace(x, 0);
    }
    return reads;
  }

  /// Computes the bytes during each step: of the values that the sequence makes, of scratch, and of `stock`, the values
  /// that are in memory at the start and freed after their last read. Values for which `stays` holds are kept from
  /// their last making to the end.
  template <class Stays>
  std::vector<std::int64_t> profile(std::span<const NodeId> steps, std::span<const ValueId> stock,
                                    const Stays& stays) const {
    const auto length = static_cast<std::int32_t>(steps.size());
    std::vector<std::int64_t> change(steps.size() + 2, 0);  // change of bytes before each step
    struct Life {
      std::int32_t made, last;
    };
    std::unordered_map<ValueId, Life> live;
    const auto end_life = [&](ValueId x, const Life& life) {
      change[life.made] += graph_.value_size(x);
      change[life.last + 1] -= graph_.value_size(x);
    };
    for (const ValueId x : stock) live[x] = {0, -1};
    for (std::int32_t i = 0; i < length; ++i) {
      for (const ValueId x : graph_.inputs(steps[i])) {
        if (const auto found = live.find(x); found != live.end()) found->second.last = i;
      }
      for (const ValueId x : graph_.outputs(steps[i])) {
        if (const auto found = live.find(x); found != live.end()) end_life(x, found->second);
        live[x] = {i, i};
      }
    }
    for (auto& [x, life] : live) {
      if (stays(x)) life.last = length;
      end_life(x, life);
    }
    std::vector<std::int64_t> during(steps.size());
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < length; ++i) {
      bytes += change[i];
      during[i] = bytes + graph_.scratch(steps[i]);
    }
    return during;
  }

  std::int64_t cost(std::span<const NodeId> steps) const {
    std::int64_t sum = 0;
    for (const NodeId v : steps) sum += graph_.cost(v);
    return sum;
  }

 private:
  const Graph& graph_;
};

}  // namespace

OptionNeeds needs_of(const Graph& graph, const Layer& layer, const LayerOption& option) {
  const Measure measure(graph);
  std::unordered_map<NodeId, char> inside;
  for (const auto* nodes : {&layer.forward, &layer.backward}) {
    for (const NodeId v : *nodes) inside.emplace(v, 0);
  }
  const auto leaves = [&](ValueId x) {
    return graph.value_kept(x) ||
           std::any_of(graph.readers(x).begin(), graph.readers(x).end(), [&](NodeId v) { return !inside.contains(v); });
  };
  std::vector<ValueId> saved;
  for (const auto& [x, last] : measure.external_reads(option.backward)) {
    if (inside.contains(graph.producer(x)) && !graph.backward(graph.producer(x))) saved.push_back(x);
  }
  std::sort(saved.begin(), saved.end());
  OptionNeeds needs;
  needs.cost = measure.cost(option.forward) + measure.cost(option.backward);
  for (const ValueId x : saved) needs.between += graph.value_size(x);
  const auto stays = [&](ValueId x) { return leaves(x) || std::binary_search(saved.begin(), saved.end(), x); };
  for (const std::int64_t bytes : measure.profile(option.forward, {}, stays)) needs.peak = std::max(needs.peak, bytes);
  const auto stays_after = [&](ValueId x) { return graph.backward(graph.producer(x)) && leaves(x); };
  for (const std::int64_t bytes : measure.profile(option.backward, saved, stays_after))
    needs.peak = std::max(needs.peak, bytes);
  return needs;
}

/// The level in the form that the program uses.
struct Level::Model {
  const Graph& graph;
  LevelProblem problem;
  /// Compute nodes: forward parts; if the level is inner, one node (`loss`) that stands for the rest of the graph;
  /// backward parts, in reverse order.
  std::vector<ComputeNode> nodes;
  std::vector<Datum> data;
  std::vector<std::int32_t> backward_of;  ///< backward compute node of each part, or kAbsent
  std::int32_t first_again = 0;           ///< first phase in which forward parts may run again
  std::int32_t loss = kAbsent;

  Model(const Graph& whole, LevelProblem level) : graph(whole), problem(std::move(level)) {
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

  std::int32_t size() const { return static_cast<std::int32_t>(nodes.size()); }
  bool pairs(std::int32_t part) const { return backward_of[part] != kAbsent; }

  /// Selects, among consecutive forward nodes, those whose values are needed outside, and the nodes that these need.
  /// `level`: outside the whole level; else outside the part.
  std::vector<NodeId> needed_outside(const std::vector<NodeId>& forward, bool level = false) const {
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

 private:
  void lay_out() {
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

  std::int32_t home(NodeId v) const {
    const auto found = home_.find(v);
    return found == home_.end() ? kAbsent : found->second;
  }

  void find_data() {
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
          // A value that leaves a forward pass stays until the loss. After the loss the outside holds the value if it
          // is needed there.
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

  std::int32_t datum_of(ValueId x) const {
    const auto found = datum_of_.find(x);
    return found == datum_of_.end() ? kAbsent : found->second;
  }

  Way measured(std::int32_t k, std::vector<NodeId> steps, std::span<const ValueId> stock,
               const std::vector<ValueId>& saved) {
    Way way;
    way.cost = measure_.cost(steps);
    std::unordered_map<ValueId, std::int32_t> reads = measure_.external_reads(steps);
    for (const auto& [x, last] : reads) {
      const std::int32_t datum = datum_of(x);
      if (datum == kAbsent) continue;
      way.reads.push_back({datum, last});
      data[datum].readers.push_back(k);
    }
    std::sort(way.reads.begin(), way.reads.end(), [](const Way::Read& a, const Way::Read& b) {
      return std::pair(a.last, a.datum) < std::pair(b.last, b.datum);
    });
    const auto stays = [&](ValueId x) {
      const std::int32_t datum = datum_of(x);
      return (datum != kAbsent && data[datum].maker == k) || std::binary_search(saved.begin(), saved.end(), x);
    };
    const std::vector<std::int64_t> during = measure_.profile(steps, stock, stays);
    std::int32_t from = 0;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(during.size()); ++i) {
      while (from < static_cast<std::int32_t>(way.reads.size()) && way.reads[from].last < i) ++from;
      // A lower piece with fewer reads left is no tighter than an earlier piece.
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

  void measure_forward(std::int32_t k) {
    const std::int32_t part = nodes[k].part;
    const LevelProblem::Part& level_part = problem.parts[part];
    const auto runs_again = [&](const std::vector<NodeId>& steps) {
      return std::none_of(steps.begin(), steps.end(), [&](NodeId v) { return graph.pinned(v); });
    };
    std::vector<Way> ways;
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
      // A pinned node runs in the only forward run that there is.
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
    nodes[k].ways = std::move(ways);
  }

  /// Finds the values of the part's own forward nodes that only the option's backward part reads.
  std::vector<ValueId> saved_by(std::int32_t part, const LayerOption& option) const {
    std::vector<ValueId> saved;
    for (const auto& [x, last] : measure_.external_reads(option.backward)) {
      if (datum_of(x) == kAbsent && home(graph.producer(x)) == part) saved.push_back(x);
    }
    std::sort(saved.begin(), saved.end());
    return saved;
  }

  void measure_backward(std::int32_t k) {
    const std::int32_t part = nodes[k].part;
    std::vector<Way> ways;
    for (const LayerOption& option : problem.parts[part].options) {
      const std::vector<ValueId> saved = saved_by(part, option);
      Way way = measured(k, option.backward, saved, {});
      ways.push_back(std::move(way));
    }
    nodes[k].ways = std::move(ways);
  }

  Measure measure_{graph};
  std::unordered_map<NodeId, std::int32_t> home_;  ///< compute node to which each node belongs
  std::unordered_map<ValueId, std::int32_t> datum_of_;
};

/// The integer linear program for one budget, and the meaning of its variables.
struct Level::Program {
  using Variable = LinearModel::Variable;

  Program(const Model& level, const LevelBudget& budget, const LevelSearch& search)
      : model(level),
        budget_(budget),
        corrections_(search.corrections),
        again_(search.again),
        building_(search.building) {
    find_last_use();
    add_runs();
    add_saving();
    for (std::int32_t t = 0; t < model.size(); ++t) add_values(t);
    for (std::int32_t t = 0; t < model.size(); ++t) add_memory(t);
    add_between();
  }
  /// Whether all rows were written; false: there was no time or memory for them.
  bool complete() const { return complete_; }

  LevelAnswer read(const EngineAnswer& engine) const {
    LevelAnswer answer;
    std::vector<NodeId>* steps = &answer.schedule.forward;
    const auto append = [&](const Way& way) { steps->insert(steps->end(), way.steps.begin(), way.steps.end()); };
    for (std::int32_t t = 0; t < model.size(); ++t) {
      if (t == model.loss || (model.loss == kAbsent && model.nodes[t].backward)) steps = &answer.schedule.backward;
      for (const std::int32_t k : steps_of(t)) {
        if (k == model.loss) continue;
        const ComputeNode& node = model.nodes[k];
        for (std::size_t w = 0; w < node.ways.size(); ++w) {
          const bool chosen = node.backward ? engine.whole(runs_backward(k, w)) == 1
                                            : run_[t][k][w] != kAbsent && engine.whole(run_[t][k][w]) == 1;
          if (chosen) {
            answer.runs.push_back({t, k, static_cast<std::int32_t>(w)});
            append(node.ways[w]);
            answer.cost += node.ways[w].cost;
          }
        }
      }
    }
    return answer;
  }

  /// Computes the values of all variables for given runs.
  std::vector<std::int64_t> values_of(const std::vector<LevelAnswer::Run>& runs) const {
    std::vector<std::int64_t> values(linear.columns().size(), EngineOptions::kNoHint);
    for (const auto& of_phase : run_) {
      for (const auto& of_node : of_phase) {
        for (const Variable run : of_node) {
          if (run != kAbsent) values[run] = 0;
        }
      }
    }
    for (const LevelAnswer::Run& run : runs) {
      if (model.nodes[run.node].backward || run_[run.phase][run.node].empty()) continue;
      const Variable variable = run_[run.phase][run.node][run.way];
      if (variable != kAbsent) values[variable] = 1;
    }
    // The variables of saved values follow; saved_ may be the variable of the run itself.
    for (std::int32_t k = 0; k < model.size(); ++k) {
      for (std::size_t t = 0; t < saved_[k].size(); ++t) {
        for (std::size_t w = 0; w < saved_[k][t].size(); ++w) {
          const Variable variable = saved_[k][t][w];
          if (variable == kAbsent || values[variable] != EngineOptions::kNoHint) continue;
          const Variable run = run_[t][k].empty() ? kAbsent : run_[t][k][w];
          const Variable before = saved_[k][t - 1].empty() ? kAbsent : saved_[k][t - 1][w];
          values[variable] = (run == kAbsent ? 0 : values[run]) + (before == kAbsent ? 0 : values[before]);
        }
      }
    }
    for (std::int32_t t = model.size(); t-- > 0;) {
      for (std::size_t d = 0; d < model.data.size(); ++d) {
        const Variable after = kept(t + 1, d), before = kept(t, d);
        std::int64_t later = after == kAbsent ? 0 : values[after];
        for (auto reader = needed_[t][d].rbegin(); reader != needed_[t][d].rend(); ++reader) {
          for (const Variable run : readings(t, reader->first, d)) later = std::max(later, values[run]);
          values[reader->second] = later;
        }
        if (before == kAbsent) continue;
        const std::int32_t maker = model.data[d].maker;
        for (const Variable run : run_[t][maker]) {
          if (run != kAbsent && values[run] == 1) later = 0;
        }
        values[before] = linear.columns()[before].lower == 1 ? 1 : later;
      }
    }
    return values;
  }

  std::size_t memory_rows() const { return memory_.size(); }
  /// Adds to `linear` the memory rows for which choose(phase, compute node) holds; returns their number.
  template <class Choose>
  std::size_t add_memory_rows(const Choose& choose) {
    std::size_t added = 0;
    for (MemoryRow& row : memory_) {
      if (row.added || !choose(row.phase, row.node)) continue;
      linear.add_row(row.terms, -LinearModel::kInfinity, row.most);
      row.added = true;
      ++added;
    }
    return added;
  }
  /// Finds the compute nodes whose memory row was not added so far and is violated by the answer.
  std::vector<bool> broken_by(const EngineAnswer& engine) const {
    std::vector<bool> broken(model.nodes.size(), false);
    for (const MemoryRow& row : memory_) {
      std::int64_t bytes = 0;
      for (const LinearTerm& term : row.terms) bytes += term.factor * engine.whole(term.variable);
      if (!row.added && bytes > row.most) broken[static_cast<std::size_t>(row.node)] = true;
    }
    return broken;
  }

  LinearModel linear;
  const Model& model;

 private:
  /// A row that limits the bytes at a compute node in a phase to `most`.
  struct MemoryRow {
    std::int32_t phase, node;
    std::vector<LinearTerm> terms;
    std::int64_t most;
    bool added = false;
  };

  /// Variable for whether way w of the backward node k runs, in its phase. The first way of its forward node does not
  /// save, so ways of k start behind it.
  Variable runs_backward(std::int32_t k, std::size_t w) const { return saved_[model.nodes[k].part][k][w + 1]; }

  /// Lists the compute nodes that can run in a phase, in order.
  std::vector<std::int32_t> steps_of(std::int32_t t) const {
    std::vector<std::int32_t> steps;
    if (t >= model.first_again) {
      for (std::int32_t k = 0; k < t; ++k) {
        if (can_run_again(t, k)) steps.push_back(k);
      }
    }
    steps.push_back(t);
    return steps;
  }
  bool can_run_again(std::int32_t t, std::int32_t k) const {
    const ComputeNode& node = model.nodes[k];
    return again_ && t >= model.first_again && k < t && !node.backward && k != model.loss && t <= last_use_[k] &&
           std::any_of(node.ways.begin(), node.ways.end(), [](const Way& way) { return way.again; });
  }

  /// Finds for each forward node the last phase in which it could be useful to run it again, and for each datum the
  /// last phase in which it could be read.
  void find_last_use() {
    last_use_.assign(model.nodes.size(), -1);
    last_read_.assign(model.data.size(), -1);
    for (std::int32_t k = model.size(); k-- > 0;) {
      if (!model.nodes[k].backward && k != model.loss && model.pairs(model.nodes[k].part))
        last_use_[k] = model.backward_of[model.nodes[k].part];
      for (std::size_t d = 0; d < model.data.size(); ++d) {
        const Datum& datum = model.data[d];
        if (datum.maker != k) continue;
        for (const std::int32_t reader : datum.readers) {
          const std::int32_t last = reader == kEnd ? model.size() : std::max(reader, last_use_[reader]);
          last_read_[d] = std::max(last_read_[d], last);
        }
        if (datum.pinned_until_loss) last_read_[d] = std::max(last_read_[d], model.loss);
        if (!model.nodes[k].backward) last_use_[k] = std::max(last_use_[k], std::min(last_read_[d], model.size() - 1));
      }
    }
  }

  void add_runs() {
    run_.resize(model.nodes.size());
    for (std::int32_t t = 0; t < model.size(); ++t) {
      run_[t].resize(model.nodes.size());
      for (const std::int32_t k : steps_of(t)) {
        const ComputeNode& node = model.nodes[k];
        if (node.backward || k == model.loss) continue;
        std::vector<LinearTerm> any;
        for (const Way& way : node.ways) {
          // a way that saves is useless once the backward part has run
          const bool allowed = (k == t ? way.first : way.again) && (!way.saves || t <= model.backward_of[node.part]);
          run_[t][k].push_back(allowed ? linear.add_binary(way.cost) : kAbsent);
          if (allowed) any.push_back({run_[t][k].back(), 1});
        }
        linear.add_row(any, k == t ? 1 : 0, 1);
      }
    }
  }

  /// Adds saved_[k][t][w]: whether the values saved by way w of forward node k are in memory after k's place in phase
  /// t.
  void add_saving() {
    saved_.resize(model.nodes.size());
    for (std::int32_t k = 0; k < model.size(); ++k) {
      const ComputeNode& node = model.nodes[k];
      if (node.backward || k == model.loss || !model.pairs(node.part)) continue;
      const std::int32_t backward = model.backward_of[node.part];
      saved_[k].resize(model.nodes.size());
      std::vector<LinearTerm> at_last;
      for (std::int32_t t = k; t <= backward; ++t) {
        for (std::size_t w = 0; w < node.ways.size(); ++w) {
          if (!node.ways[w].saves) {
            saved_[k][t].push_back(kAbsent);
            continue;
          }
          const Variable run = run_[t][k].empty() ? kAbsent : run_[t][k][w];
          const Variable before = t == k ? kAbsent : saved_[k][t - 1][w];
          Variable now = before;
          if (run != kAbsent && before == kAbsent) {
            now = run;
          } else if (run != kAbsent || t == backward) {
            now = linear.add_binary();
            std::vector<LinearTerm> terms{{now, 1}};
            if (before != kAbsent) terms.push_back({before, -1});
            if (run != kAbsent) terms.push_back({run, -1});
            linear.add_row(terms, 0, 0);
          }
          saved_[k][t].push_back(now);
        }
      }
      for (std::size_t w = 0; w < node.ways.size(); ++w) {
        if (!node.ways[w].saves) continue;
        const Variable chosen = saved_[k][backward][w];
        at_last.push_back({chosen, 1});
        linear.column(chosen).cost += model.nodes[backward].ways[w - 1].cost;
      }
      linear.add_row(at_last, 1, 1);
    }
  }

  bool constant(const Datum& datum) const {
    return model.nodes[datum.maker].backward || (!datum.readers.empty() && datum.readers.back() == kEnd);
  }

  /// Variable for whether a datum that is not constant is in memory before phase t; kAbsent: the model has no choice.
  Variable kept(std::int32_t t, std::size_t d) const {
    return t < static_cast<std::int32_t>(kept_.size()) ? kept_[t][d] : kAbsent;
  }

  /// Lists the variables of the runs of compute node k in phase t that read d.
  std::vector<Variable> readings(std::int32_t t, std::int32_t k, std::size_t d) const {
    std::vector<Variable> runs;
    const ComputeNode& node = model.nodes[k];
    for (std::size_t w = 0; w < node.ways.size(); ++w) {
      const auto& reads = node.ways[w].reads;
      const Variable run = node.backward ? runs_backward(k, w) : run_[t][k][w];
      if (run != kAbsent && std::any_of(reads.begin(), reads.end(), [&](const Way::Read& read) {
            return read.datum == static_cast<std::int32_t>(d);
          }))
        runs.push_back(run);
    }
    return runs;
  }

  /// Selects those of the given steps that read d.
  std::vector<std::int32_t> readers_among(const std::vector<std::int32_t>& steps, std::size_t d) const {
    std::vector<std::int32_t> readers;
    for (const std::int32_t k : steps) {
      if (std::binary_search(model.data[d].readers.begin(), model.data[d].readers.end(), k)) readers.push_back(k);
    }
    return readers;
  }

  /// Adds kept_[t][d], whether d is in memory before phase t, and needed_[t][d], whether d is needed at each of its
  /// readers' places in phase t, or later.
  void add_values(std::int32_t t) {
    if (kept_.empty()) {
      kept_.assign(model.nodes.size() + 1, std::vector<Variable>(model.data.size(), kAbsent));
      for (std::size_t d = 0; d < model.data.size(); ++d) {
        const Datum& datum = model.data[d];
        if (constant(datum)) continue;
        for (std::int32_t phase = datum.maker + 1; phase <= last_read_[d]; ++phase) {
          kept_[phase][d] = linear.add_binary();
          if (datum.pinned_until_loss && phase <= model.loss) linear.fix(kept_[phase][d], 1);
        }
      }
      needed_.resize(model.nodes.size());
    }
    needed_[t].resize(model.data.size());
    const std::vector<std::int32_t> steps = steps_of(t);
    for (std::size_t d = 0; d < model.data.size() && goes_on(); ++d) {
      const Datum& datum = model.data[d];
      if (constant(datum) || datum.maker > t || last_read_[d] < t) continue;
      // Go from the last reader to the first.
      Variable later = kept(t + 1, d);
      std::vector<std::pair<std::int32_t, Variable>>& needed = needed_[t][d];
      std::vector<std::int32_t> readers = readers_among(steps, d);
      for (auto reader = readers.rbegin(); reader != readers.rend(); ++reader) {
        const Variable now = linear.add_binary();
        if (later != kAbsent) linear.add_row({{{now, 1}, {later, -1}}}, 0, LinearModel::kInfinity);
        std::vector<LinearTerm> reads{{now, 1}};
        for (const Variable run : readings(t, *reader, d)) reads.push_back({run, -1});
        if (reads.size() > 1) linear.add_row(reads, 0, LinearModel::kInfinity);
        needed.emplace_back(*reader, now);
        later = now;
      }
      std::reverse(needed.begin(), needed.end());
      // A needed value was in memory before, or is made.
      if (later == kAbsent) continue;
      std::vector<LinearTerm> supply{{later, -1}};
      if (datum.maker < t) supply.push_back({kept(t, d), 1});
      if (std::find(steps.begin(), steps.end(), datum.maker) != steps.end()) {
        if (datum.maker == t) continue;  // the maker is certain to run
        for (const Variable run : run_[t][datum.maker]) {
          if (run != kAbsent) supply.push_back({run, 1});
        }
      }
      linear.add_row(supply, 0, LinearModel::kInfinity);
    }
  }

  /// Returns the variable for whether d, which is not constant, is needed in phase t at the place of k or later
  /// (`strictly`: only later); kAbsent: it is not needed.
  Variable needed_from(std::int32_t t, std::size_t d, std::int32_t k, bool strictly) const {
    for (const auto& [reader, variable] : needed_[t][d]) {
      if (strictly ? reader > k : reader >= k) return variable;
    }
    return kept(t + 1, d);
  }

  /// Bytes in memory: a certain part, and terms for bytes that are there if a variable is 1.
  struct Held {
    std::int64_t certain = 0;
    std::vector<LinearTerm> terms;  ///< bytes of each variable, every variable once
  };
  static void merge(std::vector<LinearTerm>& terms) {
    std::sort(terms.begin(), terms.end(),
              [](const LinearTerm& a, const LinearTerm& b) { return a.variable < b.variable; });
    std::size_t kept = 0;
    for (const LinearTerm& term : terms) {
      if (kept > 0 && terms[kept - 1].variable == term.variable) {
        terms[kept - 1].factor += term.factor;
      } else {
        terms[kept++] = term;
      }
    }
    terms.resize(kept);
  }

  /// Computes the bytes in memory beside the outputs and the inside of step k in phase t, when its reads `still` are to
  /// come.
  Held held_at(std::int32_t t, std::int32_t k, std::span<const Way::Read> still) const {
    Held held;
    for (std::size_t d = 0; d < model.data.size(); ++d) {
      const Datum& datum = model.data[d];
      if (datum.bytes == 0 || datum.maker > t) continue;
      const bool read = std::any_of(still.begin(), still.end(),
                                    [&](const Way::Read& r) { return r.datum == static_cast<std::int32_t>(d); });
      if (constant(datum)) {
        if (datum.maker == t || datum.maker == k) continue;  // an output counts in the way's own bytes
        const std::int32_t last = datum.readers.empty() ? datum.maker : datum.readers.back();
        // The last reader may free the value within its run.
        if (last > t || (last == t && (k != t || read))) held.certain += datum.bytes;
        continue;
      }
      if (last_read_[d] < t) continue;
      Variable variable = kAbsent;
      // Up to the place of its maker, the value is in memory if it was there before the phase.
      if (k <= datum.maker) {
        if (datum.maker < t) variable = kept(t, d);
      } else {
        variable = needed_from(t, d, k, !read);
      }
      if (variable != kAbsent) held.terms.push_back({variable, datum.bytes});
    }
    // The values that other forward parts saved are in memory, too.
    for (std::int32_t j = 0; j <= std::min(t, model.size() - 1); ++j) {
      if (saved_[j].empty() || t > model.backward_of[model.nodes[j].part]) continue;
      // The part's own values.
      if (k == t && model.nodes[k].backward && model.nodes[k].part == model.nodes[j].part) continue;
      const std::int32_t phase = j < k ? t : t - 1;
      if (phase < j) continue;
      for (std::size_t w = 0; w < model.nodes[j].ways.size(); ++w) {
        const Variable variable = saved_[j][phase][w];
        if (variable != kAbsent && model.nodes[j].ways[w].saved > 0)
          held.terms.push_back({variable, model.nodes[j].ways[w].saved});
      }
    }
    merge(held.terms);
    return held;
  }

  bool goes_on() {
    constexpr std::size_t kMostTerms = 30'000'000;
    complete_ = complete_ && memory_terms_ <= kMostTerms && !building_.expired_now();
    return complete_;
  }

  void add_memory(std::int32_t t) {
    const auto same = [](const LinearTerm& a, const LinearTerm& b) {
      return a.variable == b.variable && a.factor == b.factor;
    };
    for (const std::int32_t k : steps_of(t)) {
      if (k == model.loss) continue;
      const ComputeNode& node = model.nodes[k];
      // Ways with the same reads left share a row, because at most one of them runs.
      struct Row {
        Held held;
        std::vector<LinearTerm> own;
      };
      std::vector<Row> rows;
      for (std::size_t w = 0; w < node.ways.size(); ++w) {
        const Variable run = node.backward ? runs_backward(k, w) : run_[t][k][w];
        if (run == kAbsent) continue;
        const Way& way = node.ways[w];
        const std::vector<Way::Piece> whole{{0, way.pieces.back().bytes}};
        for (const Way::Piece& piece : corrections_ ? way.pieces : whole) {
          if (!goes_on()) return;
          Held held = held_at(t, k, std::span(way.reads).subspan(static_cast<std::size_t>(piece.from)));
          auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
            return std::equal(held.terms.begin(), held.terms.end(), other.held.terms.begin(), other.held.terms.end(),
                              same);
          });
          if (row == rows.end()) {
            memory_terms_ += held.terms.size();
            rows.push_back({std::move(held), {}});
            row = rows.end() - 1;
          }
          row->held.certain = std::max(row->held.certain, held.certain);
          if (!row->own.empty() && row->own.back().variable == run) {
            row->own.back().factor = std::max(row->own.back().factor, piece.bytes);
          } else {
            row->own.push_back({run, piece.bytes});
          }
        }
      }
      for (Row& row : rows) {
        std::vector<LinearTerm>& terms = row.held.terms;
        terms.insert(terms.end(), row.own.begin(), row.own.end());
        merge(terms);
        std::erase_if(terms, [](const LinearTerm& term) { return term.factor == 0; });
        memory_.push_back({t, k, std::move(terms), budget_.peak - row.held.certain});
      }
    }
  }

  void add_between() {
    if (!budget_.between || model.loss == kAbsent) return;
    std::vector<LinearTerm> terms;
    std::int64_t certain = 0;
    for (std::size_t d = 0; d < model.data.size(); ++d) {
      if (model.data[d].maker >= model.loss) continue;
      if (constant(model.data[d])) {
        certain += model.data[d].bytes;
      } else if (const Variable variable = kept(model.loss + 1, d); variable != kAbsent) {
        terms.push_back({variable, model.data[d].bytes});
      }
    }
    for (std::int32_t j = 0; j < model.loss; ++j) {
      if (saved_[j].empty()) continue;
      for (std::size_t w = 0; w < model.nodes[j].ways.size(); ++w) {
        const Variable variable = saved_[j][model.loss][w];
        if (variable != kAbsent && model.nodes[j].ways[w].saved > 0)
          terms.push_back({variable, model.nodes[j].ways[w].saved});
      }
    }
    linear.add_row(terms, -LinearModel::kInfinity, *budget_.between - certain);
  }

  LevelBudget budget_;
  bool corrections_, again_;
  core::Stopwatch building_;
  bool complete_ = true;
  std::size_t memory_terms_ = 0;
  std::vector<MemoryRow> memory_;
  std::vector<std::int32_t> last_use_, last_read_;
  std::vector<std::vector<std::vector<Variable>>> run_;  ///< variable of a run, by [phase][compute node][way]
  /// Variable of saved values, by [forward compute node][phase][way].
  std::vector<std::vector<std::vector<Variable>>> saved_;
  /// Variable for a datum in memory before a phase, by [phase][datum].
  std::vector<std::vector<Variable>> kept_;
  std::vector<std::vector<std::vector<std::pair<std::int32_t, Variable>>>>
      needed_;  ///< readers of a datum with the variables for its need, by [phase][datum]
};

Level::Level(const Graph& graph, LevelProblem problem)
    : model_(std::make_unique<const Model>(graph, std::move(problem))) {}
Level::~Level() = default;

LayerOption Level::cheapest() const {
  LayerOption all;
  const auto& parts = model_->problem.parts;
  for (const auto& part : parts)
    all.forward.insert(all.forward.end(), part.options.front().forward.begin(), part.options.front().forward.end());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    all.backward.insert(all.backward.end(), part->options.front().backward.begin(),
                        part->options.front().backward.end());
  return all;
}

LayerOption Level::again() const {
  LayerOption all = cheapest();
  if (std::any_of(all.forward.begin(), all.forward.end(), [&](NodeId v) { return model_->graph.pinned(v); }))
    return all;
  all.backward.insert(all.backward.begin(), all.forward.begin(), all.forward.end());
  all.forward = model_->needed_outside(all.forward, true);
  return all;
}

LevelAnswer Level::solve(const LevelBudget& budget, const LevelSearch& search) const {
  constexpr std::size_t kFewRows = 400;
  constexpr double kSomeOfTheTime = 0.6;
  Program program(*model_, budget, search);
  if (!program.complete()) return {};
  core::Stopwatch watch(search.limit);
  EngineOptions options;
  options.threads = search.threads;
  options.seed = search.seed;
  if (search.hint != nullptr) options.hint = program.values_of(*search.hint);
  EngineAnswer engine;
  double bound = -std::numeric_limits<double>::infinity();
  const auto run = [&](const core::Limit& limit) {
    options.limit = limit;
    engine = search.highs ? solve_milp(program.linear, options) : solve_cp(program.linear, options);
    watch.charge(engine.work);
    bound = std::max(bound, engine.bound);
  };

  // Few of the memory rows are ever tight. The rows of first runs are added first, then the rows of nodes where an
  // answer breaks one.
  std::optional<EngineAnswer> known;  // an answer that breaks no row
  bool done = false;
  if (program.memory_rows() > kFewRows) {
    program.add_memory_rows([](std::int32_t phase, std::int32_t node) { return phase == node; });
    while (!done && !known && watch.seconds() < kSomeOfTheTime * search.limit.seconds && !watch.expired_now()) {
      core::Limit limit = watch.share(kSomeOfTheTime);
      if (std::isfinite(limit.seconds)) limit.seconds = kSomeOfTheTime * search.limit.seconds - watch.seconds();
      run(limit);
      done = engine.status == EngineStatus::infeasible;
      if (!engine.solved()) break;
      const std::vector<bool> broken = program.broken_by(engine);
      options.hint = program.values_of(program.read(engine).runs);
      if (program.add_memory_rows([&](std::int32_t, std::int32_t node) { return broken[node]; }) > 0) continue;
      known = engine;
      done = engine.status == EngineStatus::optimal;
    }
  }
  if (!done) {
    if (!known && search.hint != nullptr) options.hint = program.values_of(*search.hint);
    program.add_memory_rows([](std::int32_t, std::int32_t) { return true; });
    run(watch.rest());
    if (known && (!engine.solved() || engine.objective > known->objective)) engine = *known;
  }

  LevelAnswer answer;
  if (engine.solved()) answer = program.read(engine);
  answer.status = engine.status;
  engine.bound = bound;
  answer.bound = engine.status == EngineStatus::infeasible ? 0 : engine.whole_bound();
  answer.work = watch.work();
  return answer;
}

}  // namespace cairn::solvers
