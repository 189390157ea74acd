#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

/// Every file that Cairn reads or writes (DESIGN section 3). Readers throw InputError; its one-line message names the
/// file and the line, node or key, and says how to mend it. Writers write beside the target and rename, so that there
/// is never a half-written file; they throw InputError if the path cannot be written. The path `-` is standard input
/// for readers and standard output for writers. Content that begins like gzip is expanded, whatever the file's name.
///
/// JSON numbers are integers if their value is whole: 4.0 and 1e3 are sizes, 4.5 is not. Unknown keys are ignored, and
/// of a key that occurs twice in an object the last value counts; both are reported to ReadOptions::warn.
namespace cairn::core {

/// Something that a reader noticed but accepted. Each kind and key is reported once, however often it occurs in the
/// file.
struct ReadWarning {
  enum class Kind : std::uint8_t { unknown_key, duplicate_key, scaled_costs };
  Kind kind = Kind::unknown_key;
  std::string text;         ///< message of one line: the first place, what is there, and the number of places
  std::int64_t count = 1;   ///< number of places
  std::int64_t factor = 1;  ///< factor by which all costs were multiplied, for scaled_costs
};
std::string_view to_string(ReadWarning::Kind kind);

/// Options for reading a file.
struct ReadOptions {
  Limit limit = {};  ///< counts bytes as work; a reader that reaches it throws InterruptedError
  std::function<void(const ReadWarning&)> warn = {};
  /// Called now and then with the bytes of text read so far, and the total or, if that is not known, 0.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// The name of a file in messages. This is the path, or `stdin` or `stdout` for `-`.
std::string input_name(const std::string& path);
std::string output_name(const std::string& path);

/// Reads a text file, a pipe or a device piece by piece. Waits for a silent pipe until the limit is reached.
class FileReader {
 public:
  /// Throws InputError if there is nothing to read: no such file, no permission, a folder.
  explicit FileReader(const std::string& path, const Limit& limit = {});
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Appends the next piece, at most 1 MiB, to `text`; returns false at the end. Throws InputError if the file cannot
  /// be read, on damaged compressed data and on a byte 0, which no text holds; InterruptedError at the limit.
  bool read(std::string& text);
  std::int64_t size() const { return size_; }  ///< bytes as stored; 0 if not known
  const std::string& name() const { return name_; }

 private:
  class Gunzip;

  /// Reads bytes as stored; returns 0 at the end.
  std::size_t take(char* into, std::size_t most);
  bool read_piece(std::string& text);
  [[noreturn]] void fail(std::string_view message) const;

  std::string name_;
  Stopwatch watch_;
  int file_ = -1;
  std::int64_t size_ = 0, done_ = 0;
  bool started_ = false;
  std::unique_ptr<Gunzip> gunzip_;  ///< null: the file is not compressed
};

/// Reads a whole file as text, of at most 2 GiB once expanded, or as many bytes as the environment variable
/// CAIRN_MAX_INPUT says (`8GiB`). Throws as FileReader does.
std::string read_file(const std::string& path, const ReadOptions& options = {});
/// Atomically replaces `path`, or the file it links to; an existing file's permissions stay. Devices, pipes and open
/// descriptors (/dev/stdout) are written to, never replaced.
void write_file(const std::string& path, std::string_view content);

/// Writes a file like write_file(), from content that comes in pieces. Without commit() there is no change, except to a
/// target that is written in place. Throws InputError if the path cannot be written.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view text);
  /// Puts the file in its place. May be called once, and nothing may be written afterwards.
  void commit();

 private:
  /// Opens a file with an unpredictable name in the target's folder, so that it can be renamed.
  void open_beside(const std::filesystem::path& folder);
  /// Removes what was written and throws.
  [[noreturn]] void fail(int error);

  std::string path_;    ///< path as the caller gave it
  std::string target_;  ///< the file to replace
  std::string part_;    ///< the file being written
  std::FILE* file_ = nullptr;
};

/// Reads a graph in any known format, recognised by content: Cairn JSON, networkx node-link JSON (all dialects), simrd
/// traces, PACE `.gr`. O(bytes), for `.gr` O(bytes log).
/// A PACE graph is undirected: vertex i becomes node i - 1, named `v` and i, of size and cost 1. An edge runs from the
/// lower to the higher number, and counts once.
/// Fractional node costs are made whole: all costs of the file are multiplied by the least power of ten that makes them
/// whole or, if their sum would then exceed 2^53, by the largest power with which it does not, and rounded.
Graph load_graph(const std::string& path, const ReadOptions& options = {});
/// Reads a graph from memory; error messages name `origin` as the file.
Graph parse_graph(std::string_view text, const std::string& origin, const ReadOptions& options = {});

std::string graph_to_json(const Graph& graph);
std::string graph_to_dot(const Graph& graph);
/// The underlying undirected graph as PACE `.gr`: node i is vertex i + 1.
std::string graph_to_gr(const Graph& graph);

struct ScheduleFile {
  std::string graph;  ///< fingerprint of the graph
  std::string solver;
  Schedule schedule;
  std::int64_t peak_bytes = 0;
  std::int64_t cost = 0;
};
std::string schedule_to_json(const Graph& graph, const Schedule& schedule, std::string_view solver);
/// Writes the file of schedule_to_json() from steps that come in pieces. Only one piece is in memory at a time, and the
/// steps are not evaluated.
class ScheduleWriter {
 public:
  ScheduleWriter(const std::string& path, const Graph& graph, std::string_view solver);
  void write(std::span<const NodeId> steps);
  /// Puts the file in its place, with the measures of the written steps. May be called once, and nothing may be written
  /// afterwards.
  void commit(std::int64_t peak_bytes, std::int64_t cost);

 private:
  FileWriter file_;
  std::string text_;
  bool first_ = true;
};
/// Reads a schedule. Checks format, version, the graph's fingerprint and the schedule's validity. The file may also
/// have `or_fingerprint`, the fingerprint of the same nodes and edges with other sizes or scratch, as a backend
/// prepared them.
ScheduleFile load_schedule(const std::string& path, const Graph& graph, std::string_view or_fingerprint = {},
                           const ReadOptions& options = {});
ScheduleFile parse_schedule(std::string_view text, const std::string& origin, const Graph& graph,
                            std::string_view or_fingerprint = {}, const ReadOptions& options = {});

std::string plan_to_json(const Graph& graph, const Plan& plan);
/// Reads a plan. Checks format, version and fingerprint, but not the plan itself (check_plan does).
Plan load_plan(const std::string& path, const Graph& graph, const ReadOptions& options = {});
Plan parse_plan(std::string_view text, const std::string& origin, const Graph& graph, const ReadOptions& options = {});

/// Reads MiniMalloc CSV. Columns are found by name and may come in any order: `id`, `lower`, `upper`, `size`, and
/// optionally `alignment`, `offset` (fixed), `hint` (negative: none) and `gaps` ("5-7 9-12", half-open; windows of
/// addresses are refused), which are empty where a buffer has none. Other columns are ignored. The older names `buffer`
/// and `buffer_id`, `start` and `begin`, and `end` (inclusive, as the ends of gaps then are) are known too.
/// docs/plan.md describes each.
std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const ReadOptions& options = {});
std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin,
                                             const ReadOptions& options = {});
/// Writes `specs` as MiniMalloc CSV with an `offset` column, from plan_buffers' result; `alignment` and `gaps` only if
/// a buffer has some.
std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan);
/// Writes the buffers of a schedule's plan as MiniMalloc CSV with `offset`; the id is node name and step.
std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan);

}  // namespace cairn::core
