// Builds the integer program of a level (level_program.h). A compute node is the forward half or the backward half of a
// part of the level. Each compute node runs for the first time in its own phase. A way is a sequence of steps by which
// a compute node can run. A datum is a value that passes from one compute node to others.

#include "cairn/solvers/remat/hiremate/internal/level_program.h"

#include <algorithm>

namespace cairn::solvers::level {
namespace {

/// Returns whether one of the reads is a read of datum d.
bool contain(std::span<const Way::Read> reads, std::size_t d) {
  return std::ranges::find(reads, static_cast<std::int32_t>(d), &Way::Read::datum) != reads.end();
}

}  // namespace

Program::Program(const Model& level, const LevelBudget& budget, const LevelSearch& search)
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

LevelAnswer Program::read(const EngineAnswer& engine) const {
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

std::vector<std::int64_t> Program::values_of(const std::vector<LevelAnswer::Run>& runs) const {
  std::vector<std::int64_t> values(linear.columns().size(), CpModel::kNoHint);
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
  // Set the variables of saved values. Some entries of saved_ are variables of runs, which are already set.
  for (std::int32_t k = 0; k < model.size(); ++k) {
    for (std::size_t t = 0; t < saved_[k].size(); ++t) {
      for (std::size_t w = 0; w < saved_[k][t].size(); ++w) {
        const Variable variable = saved_[k][t][w];
        if (variable == kAbsent || values[variable] != CpModel::kNoHint) continue;
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

std::vector<bool> Program::broken_by(const EngineAnswer& engine) const {
  std::vector<bool> broken(model.nodes.size(), false);
  for (const MemoryRow& row : memory_) {
    std::int64_t bytes = 0;
    for (const LinearTerm& term : row.terms) bytes += term.factor * engine.whole(term.variable);
    if (!row.added && bytes > row.most) broken[static_cast<std::size_t>(row.node)] = true;
  }
  return broken;
}

std::vector<std::int32_t> Program::steps_of(std::int32_t t) const {
  std::vector<std::int32_t> steps;
  for (std::int32_t k = 0; k < t; ++k) {
    if (can_run_again(t, k)) steps.push_back(k);
  }
  steps.push_back(t);
  return steps;
}

bool Program::can_run_again(std::int32_t t, std::int32_t k) const {
  const ComputeNode& node = model.nodes[k];
  return again_ && t >= model.first_again && !node.backward && k != model.loss && t <= last_use_[k] &&
         std::any_of(node.ways.begin(), node.ways.end(), [](const Way& way) { return way.again; });
}

void Program::find_last_use() {
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

void Program::add_runs() {
  run_.resize(model.nodes.size());
  for (std::int32_t t = 0; t < model.size(); ++t) {
    run_[t].resize(model.nodes.size());
    for (const std::int32_t k : steps_of(t)) {
      const ComputeNode& node = model.nodes[k];
      if (node.backward || k == model.loss) continue;
      std::vector<LinearTerm> any;
      for (const Way& way : node.ways) {
        // A way that saves values is useless in phases after the backward half has run.
        const bool allowed = (k == t ? way.first : way.again) && (!way.saves || t <= model.backward_of[node.part]);
        run_[t][k].push_back(allowed ? linear.add_binary(way.cost) : kAbsent);
        if (allowed) any.push_back({run_[t][k].back(), 1});
      }
      linear.add_row(any, k == t ? 1 : 0, 1);
    }
  }
}

void Program::add_saving() {
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

bool Program::constant(const Datum& datum) const {
  return model.nodes[datum.maker].backward || (!datum.readers.empty() && datum.readers.back() == kEnd);
}

Program::Variable Program::kept(std::int32_t t, std::size_t d) const {
  return t < static_cast<std::int32_t>(kept_.size()) ? kept_[t][d] : kAbsent;
}

std::vector<Program::Variable> Program::readings(std::int32_t t, std::int32_t k, std::size_t d) const {
  std::vector<Variable> runs;
  const ComputeNode& node = model.nodes[k];
  for (std::size_t w = 0; w < node.ways.size(); ++w) {
    const Variable run = node.backward ? runs_backward(k, w) : run_[t][k][w];
    if (run != kAbsent && contain(node.ways[w].reads, d)) runs.push_back(run);
  }
  return runs;
}

void Program::add_values(std::int32_t t) {
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
    // Go through the readers from the last to the first, because the variable of a reader depends on the variable of
    // the next reader.
    Variable later = kept(t + 1, d);
    std::vector<std::pair<std::int32_t, Variable>>& needed = needed_[t][d];
    for (auto reader = steps.rbegin(); reader != steps.rend(); ++reader) {
      if (!std::binary_search(datum.readers.begin(), datum.readers.end(), *reader)) continue;
      const Variable now = linear.add_binary();
      if (later != kAbsent) linear.add_row({{{now, 1}, {later, -1}}}, 0, LinearModel::kInfinity);
      std::vector<LinearTerm> reads{{now, 1}};
      for (const Variable run : readings(t, *reader, d)) reads.push_back({run, -1});
      if (reads.size() > 1) linear.add_row(reads, 0, LinearModel::kInfinity);
      needed.emplace_back(*reader, now);
      later = now;
    }
    std::reverse(needed.begin(), needed.end());
    // A value that is needed in this phase was in memory before the phase, or its maker runs in the phase.
    if (later == kAbsent) continue;
    std::vector<LinearTerm> supply{{later, -1}};
    if (datum.maker < t) supply.push_back({kept(t, d), 1});
    if (std::find(steps.begin(), steps.end(), datum.maker) != steps.end()) {
      if (datum.maker == t) continue;  // the maker always runs in this phase
      for (const Variable run : run_[t][datum.maker]) {
        if (run != kAbsent) supply.push_back({run, 1});
      }
    }
    linear.add_row(supply, 0, LinearModel::kInfinity);
  }
}

Program::Variable Program::needed_from(std::int32_t t, std::size_t d, std::int32_t k, bool strictly) const {
  for (const auto& [reader, variable] : needed_[t][d]) {
    if (strictly ? reader > k : reader >= k) return variable;
  }
  return kept(t + 1, d);
}

void Program::add_saved(std::int32_t j, std::int32_t t, LinearSum& held) const {
  for (std::size_t w = 0; w < model.nodes[j].ways.size(); ++w) {
    const Variable variable = saved_[j][t][w];
    if (variable != kAbsent && model.nodes[j].ways[w].saved > 0) held.add(variable, model.nodes[j].ways[w].saved);
  }
}

LinearSum Program::held_at(std::int32_t t, std::int32_t k, std::span<const Way::Read> still) const {
  LinearSum held;
  for (std::size_t d = 0; d < model.data.size(); ++d) {
    const Datum& datum = model.data[d];
    if (datum.bytes == 0 || datum.maker > t) continue;
    const bool read = contain(still, d);
    if (constant(datum)) {
      if (datum.maker == t || datum.maker == k) continue;  // an output is counted in the bytes of the way itself
      const std::int32_t last = datum.readers.empty() ? datum.maker : datum.readers.back();
      // The last reader can free the value in the middle of its run. So during this run, the value counts only until it
      // has been read.
      if (last > t || (last == t && (k != t || read))) held.fixed += datum.bytes;
      continue;
    }
    if (last_read_[d] < t) continue;
    Variable variable = kAbsent;
    // Before and during the run of its maker, the value is in memory only if it was in memory before the phase.
    if (k <= datum.maker) {
      if (datum.maker < t) variable = kept(t, d);
    } else {
      variable = needed_from(t, d, k, !read);
    }
    if (variable != kAbsent) held.add(variable, datum.bytes);
  }
  for (std::int32_t j = 0; j <= std::min(t, model.size() - 1); ++j) {
    if (saved_[j].empty() || t > model.backward_of[model.nodes[j].part]) continue;
    // A backward half counts the values saved for itself as its own bytes.
    if (k == t && model.nodes[k].backward && model.nodes[k].part == model.nodes[j].part) continue;
    const std::int32_t phase = j < k ? t : t - 1;
    if (phase >= j) add_saved(j, phase, held);
  }
  held.merge();
  return held;
}

std::int64_t Program::negative_scratch() const {
  std::int64_t bytes = 0;
  for (const LevelProblem::Part& part : model.problem.parts) {
    for (const std::vector<NodeId>* nodes : {&part.layer.forward, &part.layer.backward}) {
      for (const NodeId v : *nodes) bytes -= std::min<std::int64_t>(model.graph.scratch(v), 0);
    }
  }
  return bytes;
}

bool Program::goes_on() {
  constexpr std::size_t kMostTerms = 30'000'000;
  complete_ = complete_ && memory_terms_ <= kMostTerms && !building_.expired_now();
  return complete_;
}

void Program::add_memory(std::int32_t t) {
  for (const std::int32_t k : steps_of(t)) {
    if (k == model.loss) continue;
    const ComputeNode& node = model.nodes[k];
    // A memory row limits the bytes in memory during this run. Two ways share a row if the same values of other compute
    // nodes are in memory during both. This is correct because at most one of the ways is chosen, so at most one adds
    // its own bytes.
    struct Row {
      LinearSum held;
      std::vector<LinearTerm> own;
    };
    // If k does not run again in this phase, the row must not limit what is held. Mostly it does not, because another
    // row limits the same bytes. But after a step with negative scratch, more can be held than during the step.
    const std::int64_t slack = k == t ? 0 : negative_scratch();
    std::vector<Row> rows;
    for (std::size_t w = 0; w < node.ways.size(); ++w) {
      const Variable run = node.backward ? runs_backward(k, w) : run_[t][k][w];
      if (run == kAbsent) continue;
      const Way& way = node.ways[w];
      const std::vector<Way::Piece> whole{{0, way.pieces.back().bytes}};
      for (const Way::Piece& piece : corrections_ ? way.pieces : whole) {
        if (!goes_on()) return;
        LinearSum held = held_at(t, k, std::span(way.reads).subspan(static_cast<std::size_t>(piece.from)));
        auto row = std::ranges::find_if(rows, [&](const Row& other) { return other.held.terms == held.terms; });
        if (row == rows.end()) {
          memory_terms_ += held.terms.size();
          rows.push_back({held, {}});
          row = rows.end() - 1;
        }
        // The fixed bytes of pieces differ only in the first run of k, which takes place in exactly one way. So the
        // difference to the row's fixed bytes counts as bytes of the way.
        const std::int64_t bytes = piece.bytes + held.fixed - row->held.fixed + slack;
        if (!row->own.empty() && row->own.back().variable == run) {
          row->own.back().factor = std::max(row->own.back().factor, bytes);
        } else {
          row->own.push_back({run, bytes});
        }
      }
    }
    for (Row& row : rows) {
      row.held.terms.insert(row.held.terms.end(), row.own.begin(), row.own.end());
      row.held.merge();
      memory_.push_back({t, k, std::move(row.held.terms), budget_.peak - row.held.fixed + slack});
    }
  }
}

void Program::add_between() {
  if (!budget_.between || model.loss == kAbsent) return;
  LinearSum held;
  for (std::size_t d = 0; d < model.data.size(); ++d) {
    if (model.data[d].maker >= model.loss) continue;
    if (constant(model.data[d])) {
      held.fixed += model.data[d].bytes;
    } else if (const Variable variable = kept(model.loss + 1, d); variable != kAbsent) {
      held.add(variable, model.data[d].bytes);
    }
  }
  for (std::int32_t j = 0; j < model.loss; ++j) {
    if (!saved_[j].empty()) add_saved(j, model.loss, held);
  }
  linear.add_row(held.terms, -LinearModel::kInfinity, *budget_.between - held.fixed);
}

}  // namespace cairn::solvers::level
