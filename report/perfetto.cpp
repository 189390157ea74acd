#include "cairn/report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/timeline.h"
#include "cairn/report/explain/support/explain.h"
#include "cairn/report/explain/support/transfers.h"

// Writes the Trace Event Format. A slice is a complete event (X). Of two slices of one thread, one may contain the
// other, but they must not overlap in any other way. Counters are events C. A flow is a pair of events s and f with the
// same category, name and id. Names are metadata (M). Times are in microseconds. Viewers identify threads by their tid
// alone, so a tid must differ from all other tids and from the pids of other processes.
namespace cairn::report {
namespace {

using namespace core::formats;

/// Largest number of tensors that the trace shows for one schedule. If the schedule has more tensors, the trace shows
/// the largest ones.
constexpr std::size_t kMostTensors = 20'000;
constexpr std::size_t kMostLanes = 24;  ///< largest number of tracks (lanes) for the tensors of one kind

/// Identifies the trace's tracks for one schedule.
struct Tracks {
  const char* name;
  int tid;           ///< tid of the track of steps, in process kTime
  int tensors;       ///< pid under which the trace shows tensors
  int first_lane;    ///< tid of the first track of tensors
  const char* live;  ///< name of a counter; viewers append the name of the argument, `bytes`
  const char* arena;
  const char* host;
};
constexpr int kTime = 1;
constexpr Tracks kSchedule = {"schedule", 1, 2, 1000, "schedule: live", "schedule: arena", "schedule: host"};
constexpr Tracks kBaseline = {"baseline", 10, 3, 2000, "baseline: live", "baseline: arena", "baseline: host"};
constexpr int kToHost = 4, kToDevice = 5;  ///< tids of the tracks of copies, in process kTime

/// Returns for every step the end of the highest buffer in use, as an offset in the arena.
std::vector<std::int64_t> arena_heights(const core::Plan& plan, std::int64_t steps) {
  std::vector<std::vector<const core::Buffer*>> born(static_cast<std::size_t>(steps)), dies(born.size());
  for (const core::Buffer& buffer : plan.buffers) {
    if (buffer.first < 0 || buffer.first >= steps || buffer.last < buffer.first) continue;
    born[static_cast<std::size_t>(buffer.first)].push_back(&buffer);
    if (buffer.last < steps) dies[static_cast<std::size_t>(buffer.last)].push_back(&buffer);
  }
  std::multiset<std::int64_t> tops;
  std::vector<std::int64_t> heights(born.size());
  for (std::size_t i = 0; i < born.size(); ++i) {
    for (const core::Buffer* buffer : born[i]) tops.insert(buffer->offset + buffer->size);
    heights[i] = tops.empty() ? 0 : *tops.rbegin();
    for (const core::Buffer* buffer : dies[i]) tops.erase(tops.find(buffer->offset + buffer->size));
  }
  return heights;
}

/// Holds the times at which steps and copies run, in ns. Times are integers, so that a slice begins exactly where the
/// previous slice ends.
struct Clock {
  core::Timeline times;
  /// Whether the times of copies are known. They are unknown if the times of steps were measured, because copies are
  /// not measured.
  bool copies = false;

  std::int64_t begin(std::int64_t step) const {
    return step < std::ssize(times.steps) ? times.steps[static_cast<std::size_t>(step)].begin : times.makespan;
  }
  std::int64_t end(std::int64_t step) const {
    return step < std::ssize(times.steps) ? times.steps[static_cast<std::size_t>(step)].end : times.makespan;
  }
};

Clock clock_of(const core::Graph& graph, const TraceRun& run) {
  const std::size_t steps = run.schedule->steps.size();
  if (!run.op_ns.empty() && run.op_ns.size() != steps) {
    throw core::InputError(
        fmt::format("the trace needs one duration a step, but got {} for {} steps", run.op_ns.size(), steps));
  }
  if (run.op_ns.empty() && graph.host_memory() && !run.schedule->transfers.empty())
    return {core::timeline(graph, *run.schedule, graph.host_memory()->link), true};
  Clock clock;
  std::int64_t now = 0;
  double measured = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const std::int64_t begin = now;
    if (run.op_ns.empty()) {
      now = core::saturating_add(now, graph.cost(run.schedule->steps[i]));
    } else {
      measured += run.op_ns[i];
      now = std::max<std::int64_t>(now, std::llround(measured));
    }
    clock.times.steps.push_back({begin, now});
  }
  clock.times.makespan = now;
  return clock;
}

/// Returns the indices of the spans, ordered by the begin of the spans.
std::vector<std::size_t> in_time(const std::vector<core::Span>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return spans[k].begin; });
  return order;
}

/// Converts ns to us. Rounds up, because viewers multiply by 1000 and may round down.
double microseconds(std::int64_t ns) {
  const double value = static_cast<double>(ns) / 1000;
  return value * 1000 < static_cast<double>(ns) ? std::nextafter(value, HUGE_VAL) : value;
}

class TraceWriter {
 public:
  explicit TraceWriter(const core::Graph& graph) : graph_(graph), labels_(label_tensors(graph)) {
    name("process_name", kTime, {}, "cairn " + graph.name());
  }

  void add_steps(const Tracks& tracks, const TraceRun& run) {
    name("thread_name", kTime, tracks.tid, tracks.name);
    sort_at(kTime, tracks.tid);
    const core::Schedule& schedule = *run.schedule;
    const std::vector<std::int64_t> profile = core::Evaluator(graph_).profile(schedule);
    const Clock clock = clock_of(graph_, run);
    const bool moves = !schedule.transfers.empty();
    std::vector<std::int64_t> heights;
    if (run.plan != nullptr) heights = arena_heights(*run.plan, schedule.length());

    std::vector<std::int64_t> first_run(static_cast<std::size_t>(graph_.node_count()), -1);
    // For each first run of a node, the steps that run the node again. Arrows (flows) lead from the first run to these
    // steps.
    std::vector<std::vector<std::int64_t>> again(schedule.steps.size());
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      std::int64_t& first = first_run[schedule.steps[i]];
      if (first < 0) {
        first = i;
      } else {
        again[first].push_back(i);
      }
    }
    std::int64_t live = -1, arena = -1;
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      const core::NodeId v = schedule.steps[i];
      const double begin = microseconds(clock.begin(i));
      const std::int64_t first = first_run[v];
      add(slice(tracks, v, i, first, begin, microseconds(clock.end(i) - clock.begin(i))));
      for (const std::int64_t step : again[i]) add(flow(tracks, "s", step, begin));
      if (first != i) {
        OrderedJson end = flow(tracks, "f", i, begin);
        end["bp"] = "e";  // binds the end of the arrow to the slice that was added above
        add(end);
      }
      count(tracks.live, begin, profile[2 * i + 1], live);
      if (!heights.empty()) count(tracks.arena, begin, heights[i], arena);
      // Between two steps, memory changes only if copies run.
      if (moves) count(tracks.live, microseconds(clock.end(i)), profile[2 * i + 2], live);
    }
    if (!moves) count(tracks.live, microseconds(clock.times.makespan), profile.back(), live);
  }

  /// Adds the copies between the device's and the host's memory, and the bytes on the host.
  void add_copies(const Tracks& tracks, const TraceRun& run) {
    const core::Schedule& schedule = *run.schedule;
    const Clock clock = clock_of(graph_, run);
    if (!clock.copies) return;
    name("thread_name", kTime, kToHost, "copies to the host");
    sort_at(kTime, kToHost);
    name("thread_name", kTime, kToDevice, "copies to the device");
    sort_at(kTime, kToDevice);
    const auto& [evicts, fetches] = schedule.transfers;
    for (const std::size_t k : in_time(clock.times.evicts)) {
      add(copy(kToHost, static_cast<std::int64_t>(k), evicts[k].value, clock.times.evicts[k],
               {{"made_step", evicts[k].made}, {"start_step", evicts[k].start}, {"finish_step", evicts[k].finish}}));
    }
    for (const std::size_t k : in_time(clock.times.fetches)) {
      const auto from = static_cast<std::size_t>(fetches[k].evict);
      // An arrow leads from the copy to the host to each copy back. Ids of arrows must differ, and those of
      // recomputations are step numbers, so ids of copies are at least the number of steps.
      const std::int64_t id = schedule.length() + static_cast<std::int64_t>(k);
      add(copy_flow(kToHost, "s", id, microseconds(clock.times.evicts[from].begin)));
      add(copy(kToDevice, fetches[k].evict, evicts[from].value, clock.times.fetches[k],
               {{"fetch", k}, {"start_step", fetches[k].start}, {"finish_step", fetches[k].finish}}));
      OrderedJson end = copy_flow(kToDevice, "f", id, microseconds(clock.times.fetches[k].begin));
      end["bp"] = "e";  // binds the end of the arrow to the slice that was added above
      add(end);
    }
    std::int64_t shown = -1;
    count(tracks.host, 0, 0, shown);
    for (const auto& [time, bytes] : host_bytes(graph_, schedule, clock.times))
      count(tracks.host, microseconds(time), bytes, shown);
  }

  void add_tensors(const Tracks& tracks, const TraceRun& run) {
    const Clock clock = clock_of(graph_, run);
    std::vector<core::Lifetime> tensors = core::lifetimes(graph_, *run.schedule);
    std::erase_if(tensors, [&](const core::Lifetime& t) { return graph_.value_size(value_of(t)) == 0; });
    const std::size_t all = tensors.size();
    std::sort(tensors.begin(), tensors.end(), [&](const core::Lifetime& a, const core::Lifetime& b) {
      return std::tuple(-graph_.value_size(value_of(a)), a.first, a.output) <
             std::tuple(-graph_.value_size(value_of(b)), b.first, b.output);
    });
    if (tensors.size() > kMostTensors) tensors.resize(kMostTensors);

    // A key consists of step, output number and fetch. Step and output number alone are not unique, because a fetch can
    // start after the same step that computes an output of this number.
    std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t>, std::int64_t> offsets;
    if (run.plan != nullptr) {
      for (const core::Buffer& buffer : run.plan->buffers) {
        if (!buffer.scratch) offsets[{buffer.first, buffer.output, buffer.fetch}] = buffer.offset;
      }
    }
    // Tensors that overlap in time need different tracks (lanes). Puts each tensor into the first free lane of its
    // kind, the largest tensors first.
    using Lane = std::map<std::int64_t, const core::Lifetime*>;  // the tensors of one lane, by last step
    std::array<std::vector<Lane>, kTensorKinds> lanes;
    std::size_t shown = 0;
    for (const core::Lifetime& tensor : tensors) {
      std::vector<Lane>& of_kind = lanes[static_cast<std::size_t>(labels_.kind_of[value_of(tensor)])];
      auto free = std::find_if(of_kind.begin(), of_kind.end(), [&](const Lane& lane) {
        const auto next = lane.lower_bound(tensor.first);
        return next == lane.end() || next->second->first > tensor.last;
      });
      if (free == of_kind.end() && of_kind.size() < kMostLanes) free = of_kind.insert(of_kind.end(), Lane());
      if (free == of_kind.end()) continue;
      free->emplace(tensor.last, &tensor);
      ++shown;
    }
    if (all == 0) return;
    name("process_name", tracks.tensors, {},
         fmt::format("tensors of the {}", tracks.name) +
             (shown < all ? fmt::format(" ({} of {}, the largest)", shown, all) : ""));
    std::vector<std::uint8_t> stood(static_cast<std::size_t>(graph_.node_count()), 0),
        again(run.schedule->steps.size());
    for (std::size_t i = 0; i < again.size(); ++i) {
      again[i] = stood[run.schedule->steps[i]];
      stood[run.schedule->steps[i]] = 1;
    }
    int tid = tracks.first_lane;
    for (std::size_t kind = 0; kind < lanes.size(); ++kind) {
      for (std::size_t k = 0; k < lanes[kind].size(); ++k, ++tid) {
        name("thread_name", tracks.tensors, tid, fmt::format("{} {}", to_string(static_cast<TensorKind>(kind)), k + 1));
        sort_at(tracks.tensors, tid);
        for (const auto& [last, tensor] : lanes[kind][k]) {
          const core::ValueId x = value_of(*tensor);
          const std::int64_t begin = tensor->fetch >= 0 ? clock.end(tensor->first) : clock.begin(tensor->first);
          const std::int64_t end = tensor->evict >= 0 ? clock.begin(last + 1) : clock.end(last);
          const bool computed_again = tensor->fetch < 0 && again[tensor->first] != 0;
          OrderedJson args{{"bytes", graph_.value_size(x)},
                           {"node", tensor->node},
                           {"layer", labels_.layers[labels_.layer_of[tensor->node]]},
                           {"first_step", tensor->first},
                           {"last_step", tensor->last}};
          if (const auto offset = offsets.find({tensor->first, tensor->output, tensor->fetch}); offset != offsets.end())
            args["offset"] = offset->second;
          add({{"name", graph_.value_name(x) + (tensor->fetch >= 0 ? " (fetched)"
                                                : computed_again   ? " (recomputed)"
                                                                   : "")},
               {"cat", "tensor"},
               {"ph", "X"},
               {"ts", microseconds(begin)},
               {"dur", microseconds(end - begin)},
               {"pid", tracks.tensors},
               {"tid", tid},
               {"args", std::move(args)}});
        }
      }
    }
  }

  std::string text() const { return "{\"traceEvents\":[\n" + text_ + "\n]}\n"; }

 private:
  core::ValueId value_of(const core::Lifetime& tensor) const { return graph_.value({tensor.node, tensor.output}); }

  void add(const OrderedJson& event) { text_ += (text_.empty() ? "" : ",\n") + dump(event); }

  void name(const char* what, int pid, std::optional<int> tid, const std::string& text) {
    OrderedJson event{{"name", what}, {"ph", "M"}, {"pid", pid}};
    if (tid) event["tid"] = *tid;
    event["args"] = {{"name", text}};
    add(event);
  }
  void sort_at(int pid, int tid) {
    add({{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"sort_index", tid}}}});
  }

  void count(const char* what, double time, std::int64_t bytes, std::int64_t& last) {
    if (bytes != last) add({{"name", what}, {"ph", "C"}, {"ts", time}, {"pid", kTime}, {"args", {{"bytes", bytes}}}});
    last = bytes;
  }

  static OrderedJson flow(const Tracks& tracks, const char* phase, std::int64_t recomputation, double time) {
    return {{"name", "recomputed"}, {"cat", "recomputation"}, {"ph", phase},      {"id", recomputation},
            {"ts", time},           {"pid", kTime},           {"tid", tracks.tid}};
  }

  OrderedJson copy(int tid, std::int64_t evict, core::ValueId value, const core::Span& time,
                   const OrderedJson& more) const {
    const std::int64_t bytes = graph_.value_size(value), ns = time.end - time.begin;
    OrderedJson args{{"evict", evict}, {"bytes", bytes}};
    if (ns > 0) args["bytes_per_second"] = std::llround(static_cast<double>(bytes) / static_cast<double>(ns) * 1e9);
    args.update(more);
    return {{"name", graph_.value_name(value)}, {"cat", "copy"}, {"ph", "X"},  {"ts", microseconds(time.begin)},
            {"dur", microseconds(ns)},          {"pid", kTime},  {"tid", tid}, {"args", std::move(args)}};
  }

  static OrderedJson copy_flow(int tid, const char* phase, std::int64_t id, double time) {
    return {{"name", "on the host"}, {"cat", "transfer"}, {"ph", phase}, {"id", id}, {"ts", time},
            {"pid", kTime},          {"tid", tid}};
  }

  OrderedJson slice(const Tracks& tracks, core::NodeId v, std::int64_t step, std::int64_t first, double begin,
                    double duration) const {
    const bool again = first != step;
    const char* category = again ? "recomputation" : graph_.backward(v) ? "backward" : "forward";
    OrderedJson args{{"step", step}, {"node", v}, {"size", graph_.size(v)}, {"cost", graph_.cost(v)}};
    if (graph_.scratch(v) != 0) args["scratch"] = graph_.scratch(v);
    if (const core::Op* op = graph_.op(v)) args["op"] = to_string(op->kind);
    if (again) args["first_run"] = first;
    return {{"name", graph_.name(v) + (again ? " (recomputed)" : "")},
            {"cat", category},
            {"ph", "X"},
            {"ts", begin},
            {"dur", duration},
            {"pid", kTime},
            {"tid", tracks.tid},
            {"args", std::move(args)}};
  }

  const core::Graph& graph_;
  TensorLabels labels_;
  std::string text_;
};

}  // namespace

std::string perfetto_trace(const core::Graph& graph, const TraceRun& schedule, const TraceRun& baseline) {
  TraceWriter writer(graph);
  writer.add_steps(kSchedule, schedule);
  writer.add_copies(kSchedule, schedule);
  if (baseline.schedule != nullptr) writer.add_steps(kBaseline, baseline);
  writer.add_tensors(kSchedule, schedule);
  if (baseline.schedule != nullptr) writer.add_tensors(kBaseline, baseline);
  return writer.text();
}

}  // namespace cairn::report
