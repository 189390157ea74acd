#include "cairn/runtime/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/runtime/support/execution.h"

namespace cairn::runtime {
namespace {

using Step = std::int64_t;
constexpr Step kNone = -1;

/// The latest accesses to each byte of one range of addresses, such as the arena: which step wrote the byte last, and
/// which steps have read it since.
class Accesses {
 public:
  /// Records that `step` reads the bytes [begin, end). Appends to `needed` the steps that wrote these bytes last.
  void read(std::int64_t begin, std::int64_t end, Step step, std::vector<Step>& needed) {
    const auto [first, last] = ranges(begin, end);
    for (auto it = first; it != last; ++it) {
      if (it->second.writer != kNone) needed.push_back(it->second.writer);
      it->second.readers.push_back(step);
    }
  }

  /// Records that `step` writes the bytes [begin, end). Appends to `needed` the steps that wrote these bytes last, and
  /// the steps that have read them since.
  void write(std::int64_t begin, std::int64_t end, Step step, std::vector<Step>& needed) {
    const auto [first, last] = ranges(begin, end);
    if (first == last) return;
    for (auto it = first; it != last; ++it) {
      if (it->second.writer != kNone) needed.push_back(it->second.writer);
      needed.insert(needed.end(), it->second.readers.begin(), it->second.readers.end());
    }
    accesses_.erase(std::next(first), last);
    first->second = {step, {}};
  }

 private:
  struct Latest {
    Step writer = kNone;
    std::vector<Step> readers;  ///< steps that have read the bytes since they were last written
  };
  using Map = std::map<std::int64_t, Latest>;

  std::pair<Map::iterator, Map::iterator> ranges(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return {accesses_.end(), accesses_.end()};
    const auto first = split(begin);
    return {first, split(end)};
  }

  /// Returns the range that begins at `at`. If there is none, first divides the range that contains `at` into two.
  Map::iterator split(std::int64_t at) {
    const auto behind = accesses_.upper_bound(at);
    const auto around = std::prev(behind);
    return around->first == at ? around : accesses_.emplace_hint(behind, at, around->second);
  }

  Map accesses_{{0, {}}};  ///< accesses by the first byte of a range, which ends where the next one begins
};

/// Finds on which earlier instructions each instruction of a program depends. of_next() must be called for all
/// instructions, in the order of the program.
class Dependences {
 public:
  explicit Dependences(const Program& program)
      : program_(program),
        sinks_(sinks_of(program.graph)),
        residents_(program.graph.residents().size()),
        latest_(static_cast<std::size_t>(program.graph.node_count()), kNone) {}

  /// Returns the steps on which the next instruction depends, in descending order. The result is valid until the next
  /// call.
  const std::vector<Step>& of_next(const Instruction& instruction) {
    needed_.clear();
    const core::Graph& graph = program_.graph;
    for (const core::NodeId p : graph.predecessors(instruction.node)) {
      if (latest(p) != kNone) needed_.push_back(latest(p));
    }
    const auto inputs = program_.inputs_of(instruction);
    for (const Location& input : inputs) access(input, instruction.step, &Accesses::read);
    for (const OutputLocation& output : program_.outputs_of(instruction))
      access(output, instruction.step, &Accesses::write);
    access(instruction.scratch, instruction.step, &Accesses::write);
    if (const core::Op* op = graph.op(instruction.node); op != nullptr) {
      for (const std::size_t i : core::updated_args(op->kind)) access(inputs[i], instruction.step, &Accesses::write);
    }
    const bool sink = !std::ranges::equal_range(sinks_, instruction.node, {}, &SinkDigest::node).empty();
    if (sink && latest(instruction.node) != kNone) needed_.push_back(latest(instruction.node));
    latest(instruction.node) = instruction.step;
    std::erase(needed_, instruction.step);
    std::ranges::sort(needed_, std::greater());
    needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
    return needed_;
  }

 private:
  using Access = void (Accesses::*)(std::int64_t, std::int64_t, Step, std::vector<Step>&);

  void access(const Location& location, Step step, Access note) {
    const std::int64_t bytes = std::max(location.bytes, location.reserved);
    if (location.kind == Location::Kind::arena) (arena_.*note)(location.offset, location.offset + bytes, step, needed_);
    if (location.kind == Location::Kind::resident)
      (residents_[static_cast<std::size_t>(location.resident)].*note)(0, bytes, step, needed_);
  }

  Step& latest(core::NodeId v) { return latest_[static_cast<std::size_t>(v)]; }

  const Program& program_;
  const std::vector<SinkDigest> sinks_;
  Accesses arena_;
  std::vector<Accesses> residents_;
  std::vector<Step> latest_;  ///< for each node, its latest execution so far
  std::vector<Step> needed_;
};

/// Goes through the instructions in the order of the program, and simulates their execution: every instruction takes
/// its cost. For each instruction, chooses the stream on which it runs and the instructions of other streams for which
/// it waits.
class Assignment {
 public:
  explicit Assignment(int streams)
      : free_(static_cast<std::size_t>(streams), 0),
        last_(free_.size(), kNone),
        ended_(free_.size(), std::vector<Step>(free_.size(), kNone)) {
    result_.streams = streams;
  }

  void add(Step step, const std::vector<Step>& needed, std::int64_t cost) {
    std::int64_t ready = 0, longest = 0;
    Step before = kNone;  // the step in `needed` that ends the longest path (Done::longest)
    for (const Step d : needed) {
      ready = std::max(ready, done_[static_cast<std::size_t>(d)].finish);
      const std::int64_t path = done_[static_cast<std::size_t>(d)].longest;
      if (before == kNone || path > longest) before = d;
      longest = std::max(longest, path);
    }
    const std::size_t s = choose(before, ready);
    free_[s] = std::max(free_[s], ready) + cost;
    last_[s] = step;
    add_waits(s, needed);
    ended_[s][s] = step;
    done_.push_back({free_[s], longest + cost, ended_[s]});
    result_.stream.push_back(static_cast<std::int32_t>(s));
    result_.cost += cost;
    result_.makespan = std::max(result_.makespan, free_[s]);
    result_.critical_path = std::max(result_.critical_path, longest + cost);
  }

  Overlap result() && { return std::move(result_); }

 private:
  struct Done {
    std::int64_t finish = 0;   ///< time at which the instruction ends in the simulation
    std::int64_t longest = 0;  ///< sum of the costs on the longest path of dependences that ends with the instruction
    /// For each stream, the latest step of that stream that must have ended when this instruction has ended.
    std::vector<Step> ended;
  };

  std::size_t choose(Step before, std::int64_t ready) const {
    if (before != kNone) {
      const auto s = static_cast<std::size_t>(result_.stream[static_cast<std::size_t>(before)]);
      if (last_[s] == before) return s;
    }
    // Among the streams that are free when the instruction is ready, the one that became free last is chosen. The
    // streams that became free earlier stay free for instructions that are ready earlier. If no stream is free in time,
    // the one that becomes free first is chosen.
    std::size_t best = 0;
    for (std::size_t s = 1; s < free_.size(); ++s) {
      const bool in_time = free_[s] <= ready;
      if (in_time ? free_[best] > ready || free_[s] > free_[best] : free_[s] < free_[best]) best = s;
    }
    return best;
  }

  /// Adds the waits of the next instruction, which runs on stream s. Waiting for a later step can make the waits for
  /// earlier steps unnecessary, but never the reverse. So the steps in `needed` must be in descending order.
  void add_waits(std::size_t s, const std::vector<Step>& needed) {
    std::vector<Step>& ended = ended_[s];
    for (const Step d : needed) {
      const auto at = static_cast<std::size_t>(d);
      if (ended[static_cast<std::size_t>(result_.stream[at])] >= d) continue;
      result_.waits.push_back(d);
      for (std::size_t r = 0; r < ended.size(); ++r) ended[r] = std::max(ended[r], done_[at].ended[r]);
    }
    result_.wait_begin.push_back(result_.waits.size());
  }

  Overlap result_;
  std::vector<std::int64_t> free_;        ///< time from which each stream is free in the simulation
  std::vector<Step> last_;                ///< last instruction of each stream
  std::vector<std::vector<Step>> ended_;  ///< Done::ended of the last instruction of each stream
  std::vector<Done> done_;
};

}  // namespace

Overlap overlap(const Program& program, int streams) {
  if (streams < 1 || streams > kMostStreams)
    throw core::InputError(fmt::format("{} streams are not between 1 and {}", streams, kMostStreams));
  if (streams > 1 && !program.copies.empty())
    throw core::InputError("a schedule with transfers cannot run on several streams; choose one stream");
  Dependences dependences(program);
  Assignment assignment(streams);
  for (const Instruction& instruction : program.instructions)
    assignment.add(instruction.step, dependences.of_next(instruction), program.graph.cost(instruction.node));
  return std::move(assignment).result();
}

}  // namespace cairn::runtime
