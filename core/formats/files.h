#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

/// Every file Cairn reads or writes (DESIGN section 3). Readers throw InputError whose one line names the file and the
/// line, node or key, and says how to mend it. Writers write beside the target and rename: never a half-written file;
/// they throw InputError when the path cannot be written. Readers of what may be long take a Limit, with bytes as work,
/// and throw InterruptedError where it ends them.
namespace cairn::core {

/// Whole file as text. Throws InputError.
std::string read_file(const std::string& path);
/// Atomic replacement of `path`, or of what it links to; an existing file's permissions stay. Devices, pipes and open
/// descriptors (/dev/stdout) are written to, never replaced.
void write_file(const std::string& path, std::string_view content);

/// The same for a content that comes in pieces; what is not committed leaves no trace, but on what is written to in
/// place. Throws InputError where the path cannot be written.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view text);
  /// Puts the file in its place. Once, and nothing is written after.
  void commit();

 private:
  /// Removes what was written and throws.
  [[noreturn]] void fail(int error);

  std::string path_;    ///< as people gave it
  std::string target_;  ///< what is replaced
  std::string part_;    ///< what is written
  std::FILE* file_ = nullptr;
};

/// Reads a graph in any known format, recognised by content: Cairn JSON, networkx node-link JSON (both dialects), simrd
/// traces, PACE `.gr` (undirected: vertex i becomes node i - 1, named `v` and i, of size and cost 1; an edge runs from
/// the lower to the higher number, and counts once). O(bytes), for `.gr` O(bytes log).
Graph load_graph(const std::string& path, const Limit& limit = {});
/// The same from memory; `origin` stands for the file in errors.
Graph parse_graph(std::string_view text, const std::string& origin, const Limit& limit = {});

std::string graph_to_json(const Graph& graph);
std::string graph_to_dot(const Graph& graph);
/// The undirected graph under it as PACE `.gr`: node i is vertex i + 1.
std::string graph_to_gr(const Graph& graph);

struct ScheduleFile {
  std::string graph;  ///< fingerprint
  std::string solver;
  Schedule schedule;
  std::int64_t peak_bytes = 0;
  std::int64_t cost = 0;
};
std::string schedule_to_json(const Graph& graph, const Schedule& schedule, std::string_view solver);
/// The same file from steps that come in pieces and are in memory one piece at a time; nobody evaluates them.
class ScheduleWriter {
 public:
  ScheduleWriter(const std::string& path, const Graph& graph, std::string_view solver);
  void write(std::span<const NodeId> steps);
  /// Puts the file in its place, with the measures of the steps written. Once, and nothing is written after.
  void commit(std::int64_t peak_bytes, std::int64_t cost);

 private:
  FileWriter file_;
  std::string text_;
  bool first_ = true;
};
/// Checks format, version, the graph's fingerprint and the schedule's validity. The fingerprint may also be
/// `or_fingerprint`: that of the same nodes and edges with other sizes or scratch, as a backend prepared them.
ScheduleFile load_schedule(const std::string& path, const Graph& graph, std::string_view or_fingerprint = {});
ScheduleFile parse_schedule(std::string_view text, const std::string& origin, const Graph& graph,
                            std::string_view or_fingerprint = {});

std::string plan_to_json(const Graph& graph, const Plan& plan);
/// Checks format, version and fingerprint; not the plan itself (check_plan does).
Plan load_plan(const std::string& path, const Graph& graph);
Plan parse_plan(std::string_view text, const std::string& origin, const Graph& graph);

/// MiniMalloc CSV, columns by name and in any order: `id`, `lower`, `upper`, `size`, and where there are, `alignment`,
/// `offset` (fixed), `hint` (negative: none) and `gaps` ("5-7 9-12", half-open; windows of addresses are refused),
/// empty where a buffer has none; other columns are ignored. The older names `buffer` and `buffer_id`, `start` and
/// `begin`, and `end` (inclusive, with those of gaps) are known. docs/plan.md describes each.
std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const Limit& limit = {});
std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin, const Limit& limit = {});
/// The same with an `offset` column, from plan_buffers' result; `alignment` and `gaps` where a buffer has some.
std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan);
/// The buffers of a schedule's plan as MiniMalloc CSV with `offset`; id = node name and step.
std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan);

/// One schedule in a trace.
struct TraceRun {
  const Schedule* schedule = nullptr;
  const Plan* plan = nullptr;     ///< absent: no counter of its arena, no offsets
  std::span<const double> op_ns;  ///< of each step; empty: the nodes' costs taken as ns
};
/// Chrome/Perfetto trace JSON: the schedule's steps and, where it is given, the baseline's beside them on the same
/// clock; counters of live and arena bytes of both; a flow from the first run of a node to each recomputation; the
/// largest tensors as slices from the step that makes them to their last read, in tracks by kind. Throws InputError on
/// an invalid schedule. O((T + edges) log T).
std::string perfetto_trace(const Graph& graph, const TraceRun& schedule, const TraceRun& baseline = {});

}  // namespace cairn::core
