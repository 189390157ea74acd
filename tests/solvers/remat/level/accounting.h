#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/remat/level/cases.h"
#include "cairn/tests/solvers/remat/level/schedules.h"

/// This file computes memory and cost as the integer program of the method H-ILP does (Gusak et al. 2025, B.3). The
/// program treats each run of a part as one unit. A level is a sequence of parts. A part consists of forward nodes and
/// their backward nodes, and an option is one way to run a part.
namespace cairn::tests::level {

/// Measures all schedules of a level. If several runs of a forward part can save values for the backward part, it tries
/// each of these choices. The memory during a run is the sum of three terms: bytes for the run itself, values that a
/// later run of another part reads, and values that earlier runs have saved. With `corrections`, a value that no later
/// run reads is freed at its last read within a run. Without `corrections`, as in equation 10, the value is freed after
/// that run. With `again`, forward parts can run again.
class Accounting {
 public:
  Accounting(const Case& level, bool corrections, bool again)
      : graph_(level.graph), parts_(level.problem.parts), corrections_(corrections), again_(again) {
    const auto count = static_cast<std::int32_t>(parts_.size());
    for (std::int32_t j = 0; j < count; ++j) nodes_.push_back({j, false, {}, {}});
    if (level.problem.inner) {
      loss_ = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({-1, false, {}, {}});
    }
    first_again_ = 0;
    backward_of_.assign(parts_.size(), -1);
    for (std::int32_t j = count; j-- > 0;) {
      if (parts_[j].layer.backward.empty()) continue;
      if (first_again_ == 0) first_again_ = static_cast<std::int32_t>(nodes_.size());
      backward_of_[j] = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({j, true, {}, {}});
    }
    for (std::int32_t j = 0; j < count; ++j) {
      for (const NodeId v : parts_[j].layer.forward) home_[v] = j;
      for (const NodeId v : parts_[j].layer.backward) home_[v] = backward_of_[j];
    }
    find_data();
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(nodes_.size()); ++k) find_ways(k);
    for (auto& [x, datum] : data_) {
      for (std::int32_t k = 0; k < static_cast<std::int32_t>(nodes_.size()); ++k) {
        for (const Way& way : nodes_[k].all()) {
          if (way.last_read.count(x) > 0) datum.last = std::max(datum.last, k);
        }
      }
    }
  }

  Measures all() {
    saved_.assign(parts_.size(), -1);
    saving_run_.assign(parts_.size(), -1);
    run(0, 0);
    return std::move(found_);
  }

 private:
  struct Way {
    Steps steps;
    std::int64_t cost = 0;
    std::int32_t saves = -1;  ///< the option for whose backward part the run saves values, or -1
    std::int64_t saved_bytes = 0;
    std::map<ValueId, std::int64_t> last_read;  ///< last step that reads a value which no earlier step of the run makes
    std::vector<std::int64_t> inside;           ///< bytes at each step, without the bytes that other runs hold
  };
  struct Compute {
    std::int32_t part = -1;
    bool backward = false;
    std::vector<Way> first, again;  ///< for a backward node, `first` has one entry per option
    std::vector<Way> all() const {
      std::vector<Way> both = first;
      both.insert(both.end(), again.begin(), again.end());
      return both;
    }
  };
  struct Datum {
    std::int32_t maker = 0, last = -1;
    bool to_end = false, to_loss = false, constant = false;
  };
  struct Run {
    std::int32_t phase, node;
    const Way* way;
  };

  void find_data() {
    for (const auto& [v, k] : home_) {
      for (const ValueId x : graph_.outputs(v)) {
        bool outside = false, shared = graph_.value_kept(x);
        for (const NodeId reader : graph_.readers(x)) {
          const auto there = home_.find(reader);
          outside = outside || there == home_.end();
          shared = shared || there == home_.end() || nodes_[there->second].part != nodes_[k].part;
        }
        if (!shared) continue;
        Datum& datum = data_[x];
        datum.maker = k;
        datum.to_loss = outside && !nodes_[k].backward && !graph_.value_kept(x);
        datum.to_end = graph_.value_kept(x) || (outside && nodes_[k].backward);
        datum.constant = nodes_[k].backward || datum.to_end;
      }
    }
  }

  Way measured(std::int32_t k, const Steps& steps, const std::set<ValueId>& stock, const std::set<ValueId>& saved) {
    Way way{.steps = steps, .cost = reference::cost(graph_, {steps})};
    const auto length = static_cast<std::int64_t>(steps.size());
    std::set<ValueId> made;
    std::map<ValueId, std::int64_t> outside;  // last read of each value that no earlier step makes
    for (std::int64_t i = 0; i < length; ++i) {
      for (const ValueId x : graph_.inputs(steps[i])) {
        if (made.count(x) == 0) outside[x] = i;
      }
      for (const ValueId x : graph_.outputs(steps[i])) made.insert(x);
    }
    for (const auto& [x, last] : outside) {
      if (data_.count(x) > 0) way.last_read[x] = last;
    }
    for (std::int64_t i = 0; i < length; ++i) {
      std::int64_t bytes = reference::output_bytes(graph_, steps[i]) + graph_.scratch(steps[i]);
      for (const ValueId x : stock) bytes += outside.count(x) > 0 && outside[x] >= i ? graph_.value_size(x) : 0;
      for (std::int64_t j = 0; j < i; ++j) {
        for (const ValueId x : graph_.outputs(steps[j])) {
          const auto known = data_.find(x);
          bool held = (known != data_.end() && known->second.maker == k) || saved.count(x) > 0;
          for (std::int64_t later = j + 1; later < length; ++later) {
            if (later >= i && reference::reads(graph_, steps[later], x)) held = true;
            if (steps[later] != steps[j]) continue;
            held = false;
            for (std::int64_t between = i; between <= later; ++between)
              held = held || (between < later && reference::reads(graph_, steps[between], x));
            break;
          }
          if (held) bytes += graph_.value_size(x);
        }
      }
      way.inside.push_back(bytes);
    }
    return way;
  }

  bool pinned(const Steps& steps) const {
    return std::any_of(steps.begin(), steps.end(), [&](NodeId v) { return graph_.pinned(v); });
  }

  void find_ways(std::int32_t k) {
    Compute& node = nodes_[k];
    if (node.part < 0) return;
    const LevelProblem::Part& part = parts_[node.part];
    // A run of the forward part that saves nothing needs only some nodes: those whose values are kept or read outside
    // of the part, and the nodes that these need.
    std::set<NodeId> wanted;
    for (auto v = part.layer.forward.rbegin(); v != part.layer.forward.rend(); ++v) {
      bool of_use = false;
      for (const ValueId x : graph_.outputs(*v)) of_use = of_use || data_.count(x) > 0;
      for (const NodeId reader : graph_.successors(*v)) {
        const auto& own = part.layer.forward;
        of_use = of_use || (wanted.count(reader) > 0 && std::find(own.begin(), own.end(), reader) != own.end());
      }
      if (of_use) wanted.insert(*v);
    }
    const auto fewer = [&](Steps steps) {
      steps.erase(std::remove_if(steps.begin(), steps.end(), [&](NodeId v) { return wanted.count(v) == 0; }),
                  steps.end());
      return steps;
    };
    const bool pairs = backward_of_[node.part] >= 0;
    if (pairs && !node.backward && !pinned(part.layer.forward))
      node.first.push_back(measured(k, fewer(part.layer.forward), {}, {}));
    for (std::size_t o = 0; o < part.options.size(); ++o) {
      const LayerOption& option = part.options[o];
      if (!pairs) {
        node.first.push_back(measured(k, option.forward, {}, {}));
        if (!pinned(fewer(option.forward))) node.again.push_back(measured(k, fewer(option.forward), {}, {}));
        continue;
      }
      std::set<ValueId> made, saved;
      for (const NodeId v : option.backward) {
        for (const ValueId x : graph_.inputs(v)) {
          const auto maker = home_.find(graph_.producer(x));
          const bool own = maker != home_.end() && maker->second == node.part;
          if (made.count(x) == 0 && own && data_.count(x) == 0) saved.insert(x);
        }
        for (const ValueId x : graph_.outputs(v)) made.insert(x);
      }
      if (node.backward) {
        node.first.push_back(measured(k, option.backward, saved, {}));
        continue;
      }
      Way way = measured(k, option.forward, {}, saved);
      way.saves = static_cast<std::int32_t>(o);
      for (const ValueId x : saved) way.saved_bytes += graph_.value_size(x);
      node.first.push_back(std::move(way));
    }
    if (pairs && !node.backward && !pinned(part.layer.forward)) node.again = node.first;
  }

  void run(std::int32_t phase, std::int32_t j) {
    if (phase == static_cast<std::int32_t>(nodes_.size())) return measure();
    const Compute& node = nodes_[phase];
    const auto with = [&](std::int32_t k, const Way& way, std::int32_t next_phase, std::int32_t next) {
      const std::int32_t part = nodes_[k].part;
      if (way.saves >= 0 && !nodes_[k].backward) {
        if (saved_[part] >= 0 || phase > backward_of_[part]) return;
        saved_[part] = way.saves;
        saving_run_[part] = static_cast<std::int32_t>(runs_.size());
      }
      runs_.push_back({phase, k, &way});
      run(next_phase, next);
      runs_.pop_back();
      if (way.saves >= 0 && !nodes_[k].backward) saved_[part] = -1;
    };
    if (node.part < 0) {
      run(phase + 1, 0);
    } else if (node.backward) {
      if (saved_[node.part] >= 0) with(phase, node.first[static_cast<std::size_t>(saved_[node.part])], phase + 1, 0);
    } else {
      for (const Way& way : node.first) with(phase, way, phase + 1, 0);
    }
    if (!again_ || phase < first_again_ || node.part < 0) return;
    for (std::int32_t k = j; k < std::min(phase, static_cast<std::int32_t>(parts_.size())); ++k) {
      for (const Way& way : nodes_[k].again) with(k, way, phase, k + 1);
    }
  }

  /// Returns whether some run after run r reads x before the maker of x runs again.
  bool read_later(ValueId x, const Datum& datum, std::size_t r) const {
    for (std::size_t later = r + 1; later < runs_.size(); ++later) {
      if (runs_[later].way->last_read.count(x) > 0) return true;
      if (runs_[later].node == datum.maker) return false;
    }
    return false;
  }

  bool held(ValueId x, const Datum& datum, std::size_t r, std::int64_t step) const {
    const Run& run = runs_[r];
    const auto read = run.way->last_read.find(x);
    const bool still = read != run.way->last_read.end() && read->second >= step;
    if (run.phase <= datum.maker) return false;
    if (datum.to_loss && loss_ >= 0 && run.phase <= loss_) return true;
    if (run.node == datum.maker) return false;
    if (!datum.constant) return (still && made_before(datum, r)) || (made_before(datum, r) && read_later(x, datum, r));
    return datum.to_end || datum.last > run.phase || (datum.last == run.phase && (run.node != run.phase || still));
  }
  bool made_before(const Datum& datum, std::size_t r) const {
    return std::any_of(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(r),
                       [&](const Run& run) { return run.node == datum.maker; });
  }

  void measure() {
    OptionNeeds needs;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const Way& way = *runs_[r].way;
      needs.cost += way.cost;
      std::int64_t phantoms = 0;
      for (std::size_t j = 0; j < parts_.size(); ++j) {
        if (backward_of_[j] < 0) continue;
        const auto saving = static_cast<std::size_t>(saving_run_[j]);
        if (r > saving && runs_[r].phase <= backward_of_[j] && runs_[r].node != backward_of_[j])
          phantoms += runs_[saving].way->saved_bytes;
      }
      const std::int64_t most = way.inside.empty() ? 0 : *std::max_element(way.inside.begin(), way.inside.end());
      for (std::size_t i = 0; i < std::max<std::size_t>(way.inside.size(), 1); ++i) {
        const auto step = corrections_ ? static_cast<std::int64_t>(i) : 0;
        std::int64_t bytes = phantoms + (corrections_ && i < way.inside.size() ? way.inside[i] : most);
        for (const auto& [x, datum] : data_) bytes += held(x, datum, r, step) ? graph_.value_size(x) : 0;
        needs.peak = std::max(needs.peak, bytes);
        if (!corrections_) break;
      }
    }
    if (loss_ >= 0) {
      std::size_t last = 0;  // number of runs before the loss
      while (last < runs_.size() && runs_[last].phase < loss_) ++last;
      for (const auto& [x, datum] : data_) {
        if (datum.maker < loss_ && (datum.constant || (last > 0 && read_later(x, datum, last - 1))))
          needs.between += graph_.value_size(x);
      }
      for (std::size_t j = 0; j < parts_.size(); ++j) {
        if (backward_of_[j] >= 0 && static_cast<std::size_t>(saving_run_[j]) < last)
          needs.between += runs_[static_cast<std::size_t>(saving_run_[j])].way->saved_bytes;
      }
    }
    found_.insert({needs.peak, needs.between, needs.cost});
  }

  const Graph& graph_;
  const std::vector<LevelProblem::Part>& parts_;
  const bool corrections_, again_;
  std::vector<Compute> nodes_;
  std::int32_t loss_ = -1, first_again_ = 0;
  std::vector<std::int32_t> backward_of_;
  std::map<NodeId, std::int32_t> home_;
  std::map<ValueId, Datum> data_;
  std::vector<Run> runs_;
  /// Per part: the option for which values are saved (saved_), and the run that saves them (saving_run_).
  std::vector<std::int32_t> saved_, saving_run_;
  Measures found_;
};

}  // namespace cairn::tests::level
