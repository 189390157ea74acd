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

/// Every file Cairn reads or writes (DESIGN section 3). Readers throw InputError whose one line names the file and the
/// line, node or key, and says how to mend it. Writers write beside the target and rename: never a half-written file;
/// they throw InputError when the path cannot be written. The path `-` is standard input for readers and standard
/// output for writers. What begins as gzip's files do is expanded, whatever its name.
///
/// JSON numbers are whole where their value is: 4.0 and 1e3 are sizes, 4.5 is none. Keys that a format does not know
/// are ignored, and of a key that stands twice in an object the last value counts: both are told to ReadOptions::warn.
namespace cairn::core {

/// What a reader noticed and read on: of each kind and key one, however often it stands in the file.
struct ReadWarning {
  enum class Kind : std::uint8_t { unknown_key, duplicate_key, scaled_costs };
  Kind kind = Kind::unknown_key;
  std::string text;         ///< one line: the first place, what is there, and in how many places
  std::int64_t count = 1;   ///< places
  std::int64_t factor = 1;  ///< of scaled_costs: what all costs were multiplied by
};
std::string_view to_string(ReadWarning::Kind kind);

/// How a file is read.
struct ReadOptions {
  Limit limit = {};  ///< its work are bytes; where it ends the reading, InterruptedError is thrown
  std::function<void(const ReadWarning&)> warn = {};
  /// Now and then: bytes of the text that were read and, where it is known, of all of it, else 0.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// For messages: the path, or `stdin` or `stdout` for `-`.
std::string input_name(const std::string& path);
std::string output_name(const std::string& path);

/// Reads a text file, a pipe or a device piece by piece. A silent pipe is waited for until the limit ends it.
class FileReader {
 public:
  /// Throws InputError where there is nothing to read: no such file, no permission, a folder.
  explicit FileReader(const std::string& path, const Limit& limit = {});
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Appends what comes next, at most 1 MiB, to `text`; false at the end. Throws InputError where it cannot be read, on
  /// damaged compressed data and on a byte 0, which no text holds; InterruptedError.
  bool read(std::string& text);
  std::int64_t size() const { return size_; }  ///< bytes as they are stored; 0 where that is not known
  const std::string& name() const { return name_; }

 private:
  class Gunzip;

  /// Bytes as they are stored; 0 at the end.
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

/// Whole file as text, of at most 2 GiB once it is expanded, or as many bytes as the environment's CAIRN_MAX_INPUT
/// says (`8GiB`). Throws as FileReader does.
std::string read_file(const std::string& path, const ReadOptions& options = {});
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
  /// Opens a file of a name that nobody can foresee, in the folder of the target, so that it can be renamed.
  void open_beside(const std::filesystem::path& folder);
  /// Removes what was written and throws.
  [[noreturn]] void fail(int error);

  std::string path_;    ///< as people gave it
  std::string target_;  ///< what is replaced
  std::string part_;    ///< what is written
  std::FILE* file_ = nullptr;
};

/// Reads a graph in any known format, recognised by content: Cairn JSON, networkx node-link JSON (all dialects), simrd
/// traces, PACE `.gr` (undirected: vertex i becomes node i - 1, named `v` and i, of size and cost 1; an edge runs from
/// the lower to the higher number, and counts once). O(bytes), for `.gr` O(bytes log).
/// Costs of nodes that are fractions are made whole: all costs of the file are multiplied by the least power of ten
/// that does it, or, where their sum would exceed 2^53, by the largest with which it does not, and rounded.
Graph load_graph(const std::string& path, const ReadOptions& options = {});
/// The same from memory; `origin` stands for the file in errors.
Graph parse_graph(std::string_view text, const std::string& origin, const ReadOptions& options = {});

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
ScheduleFile load_schedule(const std::string& path, const Graph& graph, std::string_view or_fingerprint = {},
                           const ReadOptions& options = {});
ScheduleFile parse_schedule(std::string_view text, const std::string& origin, const Graph& graph,
                            std::string_view or_fingerprint = {}, const ReadOptions& options = {});

std::string plan_to_json(const Graph& graph, const Plan& plan);
/// Checks format, version and fingerprint; not the plan itself (check_plan does).
Plan load_plan(const std::string& path, const Graph& graph, const ReadOptions& options = {});
Plan parse_plan(std::string_view text, const std::string& origin, const Graph& graph, const ReadOptions& options = {});

/// MiniMalloc CSV, columns by name and in any order: `id`, `lower`, `upper`, `size`, and where there are, `alignment`,
/// `offset` (fixed), `hint` (negative: none) and `gaps` ("5-7 9-12", half-open; windows of addresses are refused),
/// empty where a buffer has none; other columns are ignored. The older names `buffer` and `buffer_id`, `start` and
/// `begin`, and `end` (inclusive, with those of gaps) are known. docs/plan.md describes each.
std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const ReadOptions& options = {});
std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin,
                                             const ReadOptions& options = {});
/// The same with an `offset` column, from plan_buffers' result; `alignment` and `gaps` where a buffer has some.
std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan);
/// The buffers of a schedule's plan as MiniMalloc CSV with `offset`; id = node name and step.
std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan);

}  // namespace cairn::core
