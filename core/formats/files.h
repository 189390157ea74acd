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

/// This header declares the readers and writers of all file formats that Cairn knows. Readers throw InputError; its
/// one-line message names the file and the line, node or key, and says how to fix the error. Writers write a new file
/// beside the target and then rename it, so that the target is never half-written. They throw InputError if the path
/// cannot be written. The path `-` is standard input for readers and standard output for writers. Content that begins
/// with gzip's magic number is decompressed, whatever the file's name.
///
/// A JSON number counts as an integer if its value is whole: 4.0 and 1e3 are valid sizes, 4.5 is not. Unknown keys are
/// ignored. If a key occurs twice in an object, the last value counts. Unknown keys and repeated keys are reported to
/// ReadOptions::warn.
namespace cairn::core {

/// Something unusual that a reader accepted. There is one warning for each kind and key, even if it occurs often in the
/// file.
struct ReadWarning {
  enum class Kind : std::uint8_t { unknown_key, duplicate_key, scaled_costs };
  Kind kind = Kind::unknown_key;
  std::string text;         ///< one-line message: what the unusual thing is, where it occurs first, and how often
  std::int64_t count = 1;   ///< number of occurrences
  std::int64_t factor = 1;  ///< factor by which all costs were multiplied, for scaled_costs
};
std::string_view to_string(ReadWarning::Kind kind);

/// Options for reading a file.
struct ReadOptions {
  Limit limit = {};  ///< limit.work counts bytes; a reader that reaches the limit throws InterruptedError
  std::function<void(const ReadWarning&)> warn = {};
  /// Called now and then with the bytes of text read so far, and with the bytes of the whole file (0 if not known).
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Returns the name of an input file for messages: the path, or `stdin` for `-`.
std::string input_name(const std::string& path);
/// Returns the name of an output file for messages: the path, or `stdout` for `-`.
std::string output_name(const std::string& path);

/// Reads a text file, a pipe or a device in pieces. If a pipe sends nothing, waits until the limit is reached.
class FileReader {
 public:
  /// Opens the file. Throws InputError if the file does not exist, is a folder, or may not be read.
  explicit FileReader(const std::string& path, const Limit& limit = {});
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Appends the next piece, at most 1 MiB, to `text`. Returns false at the end of the file. Throws InputError if the
  /// file cannot be read, if compressed data is damaged, or if a byte is zero, because no text contains such a byte.
  /// Throws InterruptedError at the limit.
  bool read(std::string& text);
  std::int64_t size() const { return size_; }  ///< bytes of the file as stored; 0 if not known
  const std::string& name() const { return name_; }

 private:
  class Gunzip;

  /// Reads at most `most` bytes as stored, without decompression. Returns the number of bytes read, which is 0 at the
  /// end.
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

/// Reads a whole file as text. After decompression, the text may have at most 2 GiB. The environment variable
/// CAIRN_MAX_INPUT can set another limit, such as `8GiB`. Throws the same exceptions as FileReader.
std::string read_file(const std::string& path, const ReadOptions& options = {});
/// Atomically replaces the file at `path`, or the file that a link at `path` points to. The permissions of an existing
/// file stay. Devices, pipes and open descriptors (/dev/stdout) are written to and never replaced.
void write_file(const std::string& path, std::string_view content);

/// Writes a file like write_file(), from content that arrives in pieces. The target changes only at commit(), unless it
/// is a device, a pipe or an open descriptor. Throws InputError if the path cannot be written.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  /// Selects the constructor that writes to a file with the fixed name `path` + `.part`, and that replaces a file of
  /// that name. So a process that is killed leaves at most one partial file, however often it is started again.
  struct FixedPart {};
  FileWriter(const std::string& path, FixedPart fixed);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view text);
  /// Moves the written file to its path, after it has reached the disk. Afterwards, no other function of the object may
  /// be called.
  void commit();

 private:
  /// Opens a file with an unpredictable name in the target's folder. It is in the same folder so that it can replace
  /// the target by being renamed, which works only within a file system.
  void open_beside(const std::filesystem::path& folder);
  void open_fixed();
  void open(bool fixed_part);
  /// Removes the file being written and throws InputError with the text of the system's error number `error`.
  [[noreturn]] void fail(int error);

  std::string path_;    ///< path as the caller gave it
  std::string target_;  ///< the file to replace
  std::string part_;    ///< the file being written
  std::FILE* file_ = nullptr;
};

/// Reads a graph in any known format: Cairn JSON, networkx node-link JSON (all dialects), simrd traces, or PACE `.gr`.
/// The format is recognised by the content. O(bytes), but O(bytes log bytes) for `.gr`.
/// A PACE graph is undirected. Its vertex i becomes node i - 1, which has the name `v` followed by i, size 1 and cost
/// 1. An undirected edge becomes a directed edge from the lower to the higher number. Repeated edges count once.
/// If node costs have fractions, all costs of the file are multiplied by the least power of ten that makes them whole.
/// If the sum of the costs would then exceed 2^53, a smaller power of ten is used: the largest with which the sum does
/// not exceed 2^53. In that case costs are rounded.
Graph load_graph(const std::string& path, const ReadOptions& options = {});
/// Reads a graph from a text. Error messages name `origin` as the file.
Graph parse_graph(std::string_view text, const std::string& origin, const ReadOptions& options = {});

std::string graph_to_json(const Graph& graph);
std::string graph_to_dot(const Graph& graph);
/// Returns the graph as PACE `.gr`, without the directions of its edges. Node i becomes vertex i + 1.
std::string graph_to_gr(const Graph& graph);

struct ScheduleFile {
  std::string graph;  ///< fingerprint of the graph
  std::string solver;
  Schedule schedule;
  std::int64_t peak_bytes = 0;
  std::int64_t cost = 0;
  /// Offsets of the plan's buffers (offsets_of()), not checked. Empty if the file has none.
  std::vector<std::int64_t> offsets;
};
/// Writes a schedule as JSON. If `plan` is given, also writes the size of its arena, its alignment and the offsets of
/// its buffers, so that a reader of the file need not search for a plan again. `plan` must be a plan of this schedule,
/// without guards (gaps behind the buffers).
std::string schedule_to_json(const Graph& graph, const Schedule& schedule, std::string_view solver,
                             const std::optional<Plan>& plan = std::nullopt);
/// Writes the file of schedule_to_json() from steps that arrive in pieces. Keeps only one piece in memory and does not
/// evaluate the steps.
class ScheduleWriter {
 public:
  ScheduleWriter(const std::string& path, const Graph& graph, std::string_view solver);
  void write(std::span<const NodeId> steps);
  /// Adds the given peak and cost to the file, and moves the file to its path. Afterwards, no other function of the
  /// object may be called.
  void commit(std::int64_t peak_bytes, std::int64_t cost);

 private:
  FileWriter file_;
  std::string text_;
  bool first_ = true;
};
/// Reads a schedule. Checks the format, the version, the graph's fingerprint and the schedule's validity. The
/// fingerprint in the file must be that of `graph`, or `or_fingerprint`. A caller passes `or_fingerprint` if a backend
/// has changed sizes or scratch of the graph after the schedule was written. Nodes and edges must have stayed the same.
/// Does not check the offsets, because they are valid only for one alignment and for the scratch of one backend.
ScheduleFile load_schedule(const std::string& path, const Graph& graph, std::string_view or_fingerprint = {},
                           const ReadOptions& options = {});
ScheduleFile parse_schedule(std::string_view text, const std::string& origin, const Graph& graph,
                            std::string_view or_fingerprint = {}, const ReadOptions& options = {});

std::string plan_to_json(const Graph& graph, const Plan& plan);
/// Reads a plan. Checks the format, the version and the fingerprint. Does not check the plan itself, which check_plan()
/// does.
Plan load_plan(const std::string& path, const Graph& graph, const ReadOptions& options = {});
Plan parse_plan(std::string_view text, const std::string& origin, const Graph& graph, const ReadOptions& options = {});

/// Reads MiniMalloc CSV. Columns are found by name and may be in any order.
/// - `id`, `lower`, `upper` and `size` are required.
/// - `alignment`, `offset` (a fixed offset), `hint` (a negative number means no hint) and `gaps` are optional. If a
///   buffer has no value for such a column, the field of its BufferSpec keeps its default.
/// - `gaps` holds half-open ranges of time such as "5-7 9-12". Throws InputError if it holds ranges of addresses.
/// - Other columns are ignored.
/// - The older names `buffer` and `buffer_id` (for `id`), `start` and `begin` (for `lower`), and `end` (for `upper`)
///   are known too. If the column is named `end`, the ends of lifetimes and gaps are inclusive.
/// docs/plan.md describes each column.
std::vector<BufferSpec> load_minimalloc_csv(const std::string& path, const ReadOptions& options = {});
std::vector<BufferSpec> parse_minimalloc_csv(std::string_view text, const std::string& origin,
                                             const ReadOptions& options = {});
/// Writes `specs` as MiniMalloc CSV. `plan` must be the result of plan_buffers() for `specs`; its offsets go into the
/// column `offset`. The column `alignment` is written only if a buffer has an alignment other than 1, and `gaps` only
/// if a buffer has gaps.
std::string minimalloc_csv(const std::vector<BufferSpec>& specs, const Plan& plan);
/// Writes the buffers of a schedule's plan as MiniMalloc CSV with the column `offset`. The id of a buffer consists of
/// the node's name and the step.
std::string plan_to_minimalloc_csv(const Graph& graph, const Plan& plan);

}  // namespace cairn::core
