// Implements the solver moccasin (moccasin.h). A stage of a schedule consists of the steps between two consecutive
// first runs.

#include "cairn/solvers/remat/stages/moccasin.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/repair/input_ranks.h"
#include "cairn/solvers/remat/repair/refine.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;
using Variable = CpModel::Variable;
using Literal = CpModel::Literal;
using Affine = CpModel::Affine;

/// Adds an edge from each node to the next node of the input order. So in every schedule of the resulting graph, the
/// first runs are in the input order.
core::Graph in_input_order(const core::Graph& graph) {
  core::GraphBuilder builder(graph);
  const auto order = graph.input_order();
  for (std::size_t i = 0; i + 1 < order.size(); ++i) builder.add_control_input(order[i + 1], order[i]);
  return builder.build();
}

/// Returns whether the first runs of all nodes are in the input order. This can become false if a first run without
/// readers is dropped, because the node's next run takes its place.
bool first_runs_in_order(const std::vector<NodeId>& steps, const std::vector<std::int32_t>& rank) {
  std::int32_t next = 0;
  for (const NodeId v : steps) {
    if (rank[v] > next) return false;
    next += rank[v] == next;
  }
  return static_cast<std::size_t>(next) == rank.size();
}

/// Searches for schedules in stages by ruin and recreate (refine.h), on a graph that fixes the order of first runs.
void search_stages(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent,
                   core::Stopwatch& watch) {
  constexpr int kMostIdle = 400;
  const std::vector<std::int32_t> rank = input_ranks(graph);
  const core::Graph ordered = in_input_order(graph);
  const core::Schedule baseline = core::baseline_schedule(graph);
  core::EditableSchedule work(ordered);
  RuinRounds rounds(options, incumbent, kMostIdle, true);
  while (const std::optional<RuinRound> round = rounds.next(watch, graph.node_count())) {
    const bool afresh = round->from_baseline || !first_runs_in_order(incumbent.schedule().steps, rank);
    work.assign(afresh ? baseline.steps : incumbent.schedule().steps);
    // Drops repeated runs whose values are not read. Keeps all first runs, so that their order stays.
    ruin_and_recreate(ordered, *round, incumbent.scope().max_occurrences, work, watch,
                      [&] { incumbent.offer(core::drop_unread(graph, {in_stages(work.steps(), rank)}, true)); });
  }
}

/// Stages in which a node may run again, ascending. Indexed by the node's rank, which is its index in the input order.
using Stages = std::vector<std::vector<std::int32_t>>;

/// Builds and solves the constraint program, either for schedules in stages (`staged`) or for any order. A node is
/// given by its rank in the input order.
class RetentionModel {
 public:
  /// Builds the program. Allows at most `c` runs of each node. If `only` is given, which requires `staged`, allows
  /// repeated runs only in these stages.
  RetentionModel(const core::Graph& graph, std::int32_t c, bool staged, const Stages* only = nullptr)
      : graph_(graph), staged_(staged), n_(graph.node_count()), rank_(input_ranks(graph)), only_(only) {
    count_runs(c);
    add_runs();
    add_ends();
    for (std::int32_t w = 0; w < n_; ++w) add_reads(w);
  }

  /// Returns about a third of the number of constraints: the number of pairs of a run of a node and a run of one of its
  /// readers.
  static double size(const core::Graph& graph, std::int32_t c) {
    return static_cast<double>(graph.edge_count() + graph.node_count()) * c * c;
  }

  /// Returns the greatest common divisor of all sizes and all scratch, in bytes.
  std::int64_t size_unit() const { return size_unit_; }
  std::int64_t cost_unit() const { return cost_unit_; }

  /// Limits the memory at every time to `units` units of size_unit() bytes.
  void limit_memory(Affine units) { model_.add_cumulative(intervals_, demands_, units); }

  /// Makes the peak the objective. `least` and `most` are in units of size_unit() bytes. A peak of less than `least`
  /// counts as `least`. `most` is a known upper bound on the peak.
  void minimize_peak(std::int64_t least, std::int64_t most) {
    peak_ = model_.add_variable(least, most);
    limit_memory(peak_);
    model_.minimize({{{peak_, 1}}});
  }
  void minimize_cost() {
    std::vector<LinearTerm> terms;
    for (const Run& run : runs_) {
      const std::int64_t cost = graph_.cost(node(run.rank)) / cost_unit_;
      if (run.first || cost == 0) continue;
      terms.push_back({run.active, cost});
    }
    model_.minimize(terms);
  }

  EngineAnswer solve(EngineOptions options, const core::Schedule& hint, std::int64_t hint_peak) const {
    if (!hint.steps.empty()) options.hint = values_of(hint, hint_peak);
    return solve_cp(model_, options);
  }

  core::Schedule schedule(const EngineAnswer& answer) const {
    const auto whole = [&](Variable variable) { return answer.whole(variable); };
    std::vector<std::pair<std::int64_t, NodeId>> order;
    for (const Run& run : runs_) {
      const bool active = run.first || answer.whole(run.active) != 0;
      if (active) order.emplace_back(value(run.at, whole), node(run.rank));
    }
    std::sort(order.begin(), order.end());
    core::Schedule schedule;
    for (const auto& [time, v] : order) schedule.steps.push_back(v);
    return schedule;
  }

 private:
  /// Describes a possible run of a node. An event is a place in the sequence of all runs; events have numbers from 0.
  struct Run {
    std::int32_t rank = 0;
    bool first = true;   ///< whether it is the node's first run, which always takes place
    Literal active = 0;  ///< whether the run takes place; not used for first runs
    Affine at = Affine::constant(0);
    /// Stage of the run if staged, otherwise the event of the run. Not used for first runs if staged, because they are
    /// fixed.
    Variable place = Affine::kNone;
    std::int64_t earliest = 0, latest = 0;  ///< range of `place` for a run that takes place
  };
  static constexpr std::int32_t kNoRun = -1;
  NodeId node(std::int32_t rank) const { return graph_.input_order()[rank]; }
  std::int32_t run_count(std::int32_t rank) const { return first_run_[rank + 1] - first_run_[rank]; }
  /// Returns the number of stages if staged, otherwise the number of events. A run that does not take place has this
  /// number or a larger one as its `place`.
  std::int64_t places() const { return staged_ ? n_ : first_run_[n_]; }
  std::int64_t horizon() const { return staged_ ? std::int64_t{n_} * n_ : first_run_[n_]; }

  template <class ValueOf>
  static std::int64_t value(const Affine& affine, const ValueOf& value_of) {
    return affine.offset + (affine.variable == Affine::kNone ? 0 : affine.factor * value_of(affine.variable));
  }

  /// Counts for each node the runs that can be useful, at most `c`. A node that is not kept and has no readers needs no
  /// repeated runs. If staged, no node needs to run again after the last stage in which one of its readers can run.
  void count_runs(std::int32_t c) {
    first_run_.assign(static_cast<std::size_t>(n_) + 1, 0);
    last_use_.assign(static_cast<std::size_t>(n_), 0);
    std::vector<std::int32_t> last_run(static_cast<std::size_t>(n_), 0), count(static_cast<std::size_t>(n_), 1);
    for (std::int32_t r = n_; r-- > 0;) {
      const NodeId v = node(r);
      last_use_[r] = graph_.keep(v) ? n_ - 1 : r;
      for (const NodeId w : graph_.successors(v)) last_use_[r] = std::max(last_use_[r], last_run[rank_[w]]);
      const bool again = !graph_.pinned(v) && last_use_[r] > r;
      count[r] = again ? staged_ ? std::min(c, last_use_[r] - r + 1) : c : 1;
      last_run[r] = count[r] > 1 ? last_use_[r] : r;
      if (only_ != nullptr)
        count[r] = std::min(count[r], static_cast<std::int32_t>((*only_)[static_cast<std::size_t>(r)].size()) + 1);
    }
    for (std::int32_t r = 0; r < n_; ++r) first_run_[r + 1] = first_run_[r] + count[r];
  }

  void add_runs() {
    true_ = model_.add_variable(1, 1);
    std::vector<Affine> events;
    for (std::int32_t r = 0; r < n_; ++r) {
      for (std::int32_t i = 0; i < run_count(r); ++i) {
        Run run{.rank = r, .first = i == 0};
        if (staged_ && i == 0) {
          run.earliest = run.latest = r;
          run.at = Affine::constant(std::int64_t{r} * n_ + r);
        } else if (staged_) {
          std::vector<std::int64_t> stages(static_cast<std::size_t>(last_use_[r] - r - i + 1));
          std::iota(stages.begin(), stages.end(), r + i);
          if (only_ != nullptr) {
            const auto& those = (*only_)[static_cast<std::size_t>(r)];
            stages.assign(those.begin() + i - 1, those.end());
          }
          run.earliest = stages.front();
          run.latest = stages.back();
          stages.push_back(n_);
          run.place = model_.add_variable(stages);
          run.at = Affine(run.place, r, n_);
        } else {
          run.latest = places() - 1;
          std::vector<std::int64_t> places(static_cast<std::size_t>(run.latest + 1));
          std::iota(places.begin(), places.end(), 0);
          // All places must differ. So a run that is left out has a place of its own, after those of all runs that can
          // happen.
          if (i > 0) places.push_back(run.latest + 1 + static_cast<std::int64_t>(runs_.size()));
          run.place = model_.add_variable(places);
          run.at = Affine(run.place);
          events.push_back(run.at);
        }
        if (i > 0) {
          run.active = model_.add_literal();
          model_.add_linear({{{run.place, 1}}}, 0, places() - 1, {{run.active}});
          model_.add_linear({{{run.place, 1}}}, places(), LinearModel::kInfinity, {{CpModel::not_(run.active)}});
          const Run& before = runs_.back();
          if (i > 1) model_.add_implication(run.active, before.active);
          if (before.place != Affine::kNone)
            model_.add_linear({{{run.place, 1}, {before.place, -1}}}, 1, LinearModel::kInfinity, {{run.active}});
        }
        runs_.push_back(run);
      }
    }
    if (!staged_) model_.add_all_different(events);
  }

  /// Adds for each output of each run a variable for the end of the output's lifetime, which is the event after its
  /// last read. Also adds the interval of time in which the output takes memory.
  void add_ends() {
    ends_.resize(runs_.size());
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      const Run& run = runs_[k];
      const NodeId v = node(run.rank);
      std::vector<Literal> present;
      if (!run.first) present.push_back(run.active);
      const bool last_of_node = k + 1 == runs_.size() || runs_[k + 1].rank != run.rank;
      const Run* next = last_of_node ? nullptr : &runs_[k + 1];
      std::int64_t scratch = graph_.scratch(v) / size_unit_;
      if (scratch > 0) demand(add_interval(run.at, plus(run.at, 1), present), scratch);
      for (const ValueId x : graph_.outputs(v)) {
        const std::int64_t units = graph_.value_size(x) / size_unit_;
        const Variable end = model_.add_variable(run.first && staged_ ? run.at.offset + 1 : 0, horizon());
        ends_[k].push_back(end);
        // The node does not run again while the values of this run are in memory.
        if (next != nullptr) add_order(end, next->at, 0, {{next->active}});
        if (graph_.value_kept(x)) {
          std::vector<Literal> last = present;
          if (next != nullptr) last.push_back(CpModel::not_(next->active));
          model_.add_linear({{{end, 1}}}, horizon(), horizon(), last);
        }
        if (!run.first) model_.add_linear({{{end, 1}}}, 0, 0, {{CpModel::not_(run.active)}});
        if (units == 0) {
          add_order(run.at, end, 1, present);
          continue;
        }
        // A node that works in place has negative scratch: a part of its outputs takes new memory only after the node
        // has run.
        const std::int64_t later = std::min(std::max<std::int64_t>(-scratch, 0), units);
        scratch += later;
        if (units > later) demand(add_interval(run.at, end, present), units - later);
        if (later > 0) demand(add_interval(plus(run.at, 1), end, present), later);
        if (units > later && run.place != Affine::kNone) add_order(run.at, end, 1, present);
      }
    }
  }

  static Affine plus(Affine affine, std::int64_t more) {
    affine.offset += more;
    return affine;
  }
  void demand(CpModel::Interval interval, std::int64_t units) {
    intervals_.push_back(interval);
    demands_.push_back(units);
  }
  CpModel::Interval add_interval(const Affine& start, const Affine& end, const std::vector<Literal>& present) {
    if (end.variable == start.variable && end.factor == start.factor)
      return model_.add_interval(start, Affine::constant(end.offset - start.offset), end, present);
    if (start.variable == Affine::kNone) return model_.add_interval(start, plus(end, -start.offset), end, present);
    const Variable size = model_.add_variable(0, horizon());
    sizes_.push_back({start, end, size});
    return model_.add_interval(start, size, end, present);
  }
  /// Adds the constraint `a + gap <= b`. It must hold only if all literals of `if_all` are true.
  void add_order(const Affine& a, const Affine& b, std::int64_t gap, std::span<const Literal> if_all) {
    std::vector<LinearTerm> terms;
    if (b.variable != Affine::kNone) terms.push_back({b.variable, b.factor});
    if (a.variable != Affine::kNone) terms.push_back({a.variable, -a.factor});
    model_.add_linear(terms, gap + a.offset - b.offset, LinearModel::kInfinity, if_all);
  }

  /// Returns a literal that says whether run u takes place before run w. Its value means nothing if run w does not take
  /// place.
  Literal before(std::int32_t u, std::int32_t w) {
    const Run &earlier = runs_[u], &later = runs_[w];
    if (earlier.first) {
      // Run u is the first run of its node. So it takes place before the first run of every reader, and therefore
      // before all later runs of the readers.
      if (!staged_ && later.first) add_order(earlier.at, later.at, 1, {});
      return true_;
    }
    if (staged_ && later.first) {
      const auto [known, is_new] = thresholds_.try_emplace({u, later.rank}, 0);
      if (!is_new) return known->second;
      const std::int64_t stage = later.rank;
      Literal literal = true_;
      if (stage < earlier.earliest) {
        literal = CpModel::not_(true_);
      } else if (stage >= earlier.latest) {
        literal = earlier.active;
      } else {
        literal = model_.add_literal();
        model_.add_linear({{{earlier.place, 1}}}, 0, stage, {{literal}});
        model_.add_linear({{{earlier.place, 1}}}, stage + 1, LinearModel::kInfinity, {{CpModel::not_(literal)}});
        literals_.push_back({literal, u, w, stage});
      }
      return known->second = literal;
    }
    const auto [known, is_new] = pairs_.try_emplace({u, w}, 0);
    if (!is_new) return known->second;
    const Literal literal = model_.add_literal();
    literals_.push_back({literal, u, w, -1});
    std::vector<Literal> then{literal}, otherwise{CpModel::not_(literal)};
    if (!later.first) {
      then.push_back(later.active);
      otherwise.push_back(later.active);
      model_.add_implication(literal, later.active);
    }
    // The literal says whether `earlier` runs before `later`. If a place is a stage, both runs can have the same place.
    // Within a stage, `earlier` still runs first, because its node comes first in the input order.
    add_order(Affine(earlier.place), Affine(later.place), staged_ ? 0 : 1, then);
    add_order(Affine(later.place), Affine(earlier.place), staged_ ? 1 : 0, otherwise);
    return known->second = literal;
  }

  /// Makes sure that the inputs of each run of node w are in memory. A run of w reads each input from the latest run of
  /// the input's producer before the run of w. So the lifetime of this output must end after the run of w.
  void add_reads(std::int32_t w) {
    for (std::int32_t k = first_run_[w]; k < first_run_[w + 1]; ++k) {
      for (const ValueId x : graph_.inputs(node(w))) {
        const std::int32_t u = rank_[graph_.producer(x)];
        const std::int32_t output = graph_.output_ref(x).output;
        for (std::int32_t i = first_run_[u]; i < first_run_[u + 1]; ++i) {
          std::vector<Literal> here;
          if (!runs_[k].first) here.push_back(runs_[k].active);
          here.push_back(before(i, k));
          if (i + 1 < first_run_[u + 1]) here.push_back(CpModel::not_(before(i + 1, k)));
          if (std::find(here.begin(), here.end(), CpModel::not_(true_)) != here.end()) continue;
          std::erase(here, true_);
          add_order(runs_[k].at, ends_[i][output], 1, here);
        }
      }
    }
  }

  /// Computes the values of all variables for a schedule that is in the scope of the program.
  std::vector<std::int64_t> values_of(const core::Schedule& schedule, std::int64_t peak) const {
    std::vector<std::int64_t> values(static_cast<std::size_t>(model_.variable_count()), 0);
    values[true_] = 1;
    if (peak_ != Affine::kNone) values[peak_] = peak / size_unit_;
    std::vector<std::int64_t> at(runs_.size(), -1);  // time of each run; -1: the run does not take place
    std::vector<std::int32_t> runs(static_cast<std::size_t>(n_), 0);
    std::vector<std::int32_t> run_of_step;
    std::int64_t stage = 0;
    for (const NodeId v : schedule.steps) {
      const std::int32_t r = rank_[v], k = first_run_[r] + runs[r]++;
      const auto step = static_cast<std::int64_t>(run_of_step.size());
      run_of_step.push_back(k < first_run_[r + 1] ? k : kNoRun);
      if (run_of_step.back() == kNoRun) continue;  // the model has no variable for this run, because the run is useless
      at[k] = staged_ ? stage * n_ + r : step;
      if (runs_[k].place != Affine::kNone) values[runs_[k].place] = staged_ ? stage : step;
      if (!runs_[k].first) values[runs_[k].active] = 1;
      if (runs[r] == 1) ++stage;
    }
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      if (at[k] >= 0 || runs_[k].first) continue;
      values[runs_[k].place] = staged_ ? n_ : places() + static_cast<std::int64_t>(k);
    }
    const std::vector<core::Lifetime> lives = core::lifetimes(graph_, schedule);
    for (const core::Lifetime& life : lives) {
      const std::int32_t k = run_of_step[static_cast<std::size_t>(life.first)];
      if (k == kNoRun) continue;
      const bool to_end = life.last == schedule.length();
      const std::int32_t reader = to_end ? k : run_of_step[static_cast<std::size_t>(life.last)];
      values[ends_[k][life.output]] = to_end ? horizon() : at[reader == kNoRun ? k : reader] + 1;
    }
    const auto whole = [&](Variable variable) { return values[variable]; };
    for (const auto& [start, end, size] : sizes_)
      values[size] = std::max<std::int64_t>(value(end, whole) - value(start, whole), 0);
    for (const auto& [literal, u, w, threshold] : literals_) {
      if (at[u] < 0) continue;
      values[literal] = threshold >= 0 ? values[runs_[u].place] <= threshold : at[w] >= 0 && at[u] < at[w];
    }
    return values;
  }

  struct Size {
    Affine start, end;
    Variable size;
  };
  struct Before {
    Literal literal;
    std::int32_t u, w;
    std::int64_t threshold;
  };

  const core::Graph& graph_;
  const bool staged_;
  const std::int32_t n_;
  const std::vector<std::int32_t> rank_;
  const Stages* only_;
  CpModel model_;
  /// - first_run_[r]: index in runs_ of the first run of the node of rank r.
  /// - last_use_[r]: last stage in which a run of the node of rank r can be useful.
  std::vector<std::int32_t> first_run_, last_use_;
  std::vector<Run> runs_;
  /// end of each output, indexed by run and output: the event after its last read
  std::vector<std::vector<Variable>> ends_;
  std::vector<CpModel::Interval> intervals_;
  std::vector<std::int64_t> demands_;
  std::vector<Size> sizes_;
  std::vector<Before> literals_;
  std::map<std::pair<std::int32_t, std::int32_t>, Literal> thresholds_, pairs_;
  Literal true_ = 0;
  Variable peak_ = Affine::kNone;
  const std::int64_t size_unit_ = solvers::size_unit(graph_), cost_unit_ = solvers::cost_unit(graph_);
};

/// Makes neighbourhoods of a schedule in stages, for large neighbourhood search. A neighbourhood consists of the
/// repeated runs that the engine may choose from: those of the given schedule and, in a window of stages, more runs. In
/// the window, a node may run again in each stage that ends with the first run of one of its readers, or of a reader of
/// its readers.
class Windows {
 public:
  explicit Windows(const core::Graph& graph)
      : rank_(input_ranks(graph)), near_(static_cast<std::size_t>(graph.node_count())) {
    for (std::size_t r = 0; r < near_.size(); ++r) {
      for (const NodeId w : graph.successors(graph.input_order()[r])) {
        near_[r].push_back(rank_[w]);
        for (const NodeId x : graph.successors(w)) near_[r].push_back(rank_[x]);
      }
      std::sort(near_[r].begin(), near_[r].end());
      near_[r].erase(std::unique(near_[r].begin(), near_[r].end()), near_[r].end());
    }
  }

  Stages around(const core::Schedule& schedule, std::int32_t c, std::int32_t first, std::int32_t width) const {
    const auto inside = [&](std::int32_t stage) { return stage >= first && stage < first + width; };
    Stages open(near_.size());
    std::vector<std::int32_t> runs(near_.size(), 0), outside(near_.size(), 0);
    std::int32_t stage = 0;
    for (const NodeId v : schedule.steps) {
      const auto r = static_cast<std::size_t>(rank_[v]);
      if (runs[r]++ == 0) {
        ++stage;
        continue;
      }
      open[r].push_back(stage);
      outside[r] += inside(stage) ? 0 : 1;
    }
    for (std::size_t r = 0; r < open.size(); ++r) {
      if (outside[r] + 1 < c) std::copy_if(near_[r].begin(), near_[r].end(), std::back_inserter(open[r]), inside);
      std::sort(open[r].begin(), open[r].end());
      open[r].erase(std::unique(open[r].begin(), open[r].end()), open[r].end());
    }
    return open;
  }

 private:
  std::vector<std::int32_t> rank_;
  Stages near_;  ///< indexed by rank: ranks of the node's readers and of their readers
};

/// Runs the two phases of the solver. The engine is CP-SAT.
class Moccasin {
 public:
  Moccasin(const core::Graph& graph, const MoccasinOptions& options, bool staged)
      : graph_(graph),
        options_(options),
        staged_(staged),
        watch_(options.limit),
        incumbent_(graph, options, watch_, {staged ? OrderRule::stages : OrderRule::free, options.c}),
        c_(incumbent_.scope().max_occurrences) {
    engine_.threads = options.threads;
    engine_.seed = options.seed;
  }

  Solution solve() {
    constexpr double kMostPairs = 5e6;
    // Largest number of nodes. There are as many stages as nodes, and a node can run again in any later stage. So the
    // size of the model grows with the square of this number.
    constexpr core::NodeId kMostNodes = 10'000;
    if (RetentionModel::size(graph_, c_) > kMostPairs || graph_.node_count() > kMostNodes)
      throw core::InputError(fmt::format(
          "solver 'moccasin' cannot take a graph of {} nodes and {} edges with c={}: its model is too large; "
          "take a lower c or another solver",
          graph_.node_count(), graph_.edge_count(), c_));
    incumbent_.offer(core::baseline_schedule(graph_));
    if (graph_.node_count() > 0 && !done()) {
      core::within(watch_, 0.1, [&](core::Stopwatch& first) { search_stages(graph_, options_, incumbent_, first); });
    }
    if (graph_.node_count() > 0 && !done()) {
      if (!options_.budget || !incumbent_.within_budget()) lower_peak();
      if (!done() && incumbent_.within_budget()) lower_cost();
    }
    Solution solution = incumbent_.finish(!incumbent_.cannot_improve() && watch_.expired_now());
    if (engine_seconds_ >= 0) solution.best_seconds = engine_seconds_;
    return solution;
  }

 private:
  bool done() { return incumbent_.cannot_improve() || watch_.expired_now(); }

  EngineAnswer run(const RetentionModel& model, const core::Limit& limit) {
    const double started = watch_.seconds();
    engine_.limit = limit;
    const EngineAnswer answer = model.solve(engine_, incumbent_.schedule(), incumbent_.peak());
    watch_.charge(answer.work);
    if (answer.solved()) {
      const auto known = std::pair(incumbent_.peak(), incumbent_.cost());
      incumbent_.offer(model.schedule(answer));
      if (std::pair(incumbent_.peak(), incumbent_.cost()) != known) engine_seconds_ = started + answer.best_seconds;
    }
    return answer;
  }

  void lower_peak() {
    RetentionModel model(graph_, c_, staged_);
    const std::int64_t unit = model.size_unit();
    const std::int64_t least = std::max(incumbent_.lower_bound(), options_.budget.value_or(0)) / unit;
    model.minimize_peak(least, std::max(incumbent_.peak() / unit, least));
    const EngineAnswer answer = run(model, watch_.share(options_.budget ? 1.0 : 0.5));
    if (answer.whole_bound() > least) incumbent_.raise_lower_bound(answer.whole_bound() * unit);
  }

  /// Lowers the cost (phase 2). First solves the whole program for a short time. If staged, then solves programs that
  /// can change the schedule only within a window of stages, as long as this lowers the cost. Finally solves the whole
  /// program again.
  void lower_cost() {
    constexpr double kShort = 0.1;
    minimize_cost(watch_.share(staged_ ? kShort : 1.0));
    if (!staged_ || done()) return;
    core::within(watch_, 0.8, [&](core::Stopwatch& part) { search_windows(part); });
    if (!done()) minimize_cost(watch_.rest());
  }

  RetentionModel within_memory(const Stages* only = nullptr) const {
    RetentionModel model(graph_, c_, staged_, only);
    model.limit_memory(Affine::constant(options_.budget.value_or(incumbent_.peak()) / model.size_unit()));
    model.minimize_cost();
    return model;
  }

  void minimize_cost(const core::Limit& limit) {
    const RetentionModel model = within_memory();
    const EngineAnswer answer = run(model, limit);
    finished_ = answer.status == EngineStatus::optimal;
    const std::int64_t once = cost_of(graph_, graph_.input_order());
    if (options_.budget && answer.bound > 0)
      incumbent_.raise_cost_bound({once + answer.whole_bound() * model.cost_unit(), incumbent_.scope()});
  }

  /// Runs large neighbourhood search on random windows, which are ranges of consecutive stages (see Windows). The next
  /// window is wider if the engine has solved the last one completely, otherwise narrower.
  void search_windows(core::Stopwatch& part) {
    constexpr double kSeconds = 3;
    constexpr std::int64_t kWork = 50'000'000;
    constexpr int kMostIdle = 60;
    if (finished_) return;
    const Windows windows(graph_);
    const std::int32_t n = graph_.node_count();
    core::Random random(options_.seed + 2);
    double width = 0.25 * n;
    for (int idle = 0; idle < kMostIdle && width < n && !incumbent_.cannot_improve() && !part.expired_now(); ++idle) {
      const auto span = std::max(static_cast<std::int32_t>(width), 1);
      // The window can begin before the first stage or end after the last stage. So each stage is in the window with
      // the same probability.
      const auto first = static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(n + span)) - span;
      const Stages open = windows.around(incumbent_.schedule(), c_, first, span);
      core::Limit limit = part.rest();
      if (options_.limit.counts_work()) {
        limit.work = std::min(limit.work, kWork);
      } else {
        limit.seconds = std::min(limit.seconds, kSeconds);
      }
      const std::int64_t cost = incumbent_.cost();
      const EngineAnswer answer = run(within_memory(&open), limit);
      part.charge(answer.work);
      if (incumbent_.cost() < cost) idle = 0;
      width *= answer.status == EngineStatus::optimal ? 1.05 : 0.95;
    }
  }

  const core::Graph& graph_;
  const SolveOptions& options_;
  const bool staged_;
  core::Stopwatch watch_;
  Incumbent incumbent_;
  const std::int32_t c_;
  EngineOptions engine_;
  bool finished_ = false;  ///< whether the engine has solved phase 2 completely
  /// time at which the engine found the incumbent, in seconds; negative if the engine did not find it
  double engine_seconds_ = -1;
};

}  // namespace

Solution moccasin(const core::Graph& graph, const MoccasinOptions& options) {
  const bool staged = options.scope.order != OrderRule::free || options.staged;
  return Moccasin(graph, options, staged).solve();
}

}  // namespace cairn::solvers
