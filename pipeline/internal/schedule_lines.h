#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::pipeline {

/// Several consecutive lines of a file of schedules. Lines are numbered from 1.
struct LineBatch {
  std::int64_t first_line = 1;
  std::string text;
  bool one_object = false;  ///< whether `text` as a whole is one schedule

  struct Line {
    std::int64_t number;
    std::string_view text;  ///< without surrounding white space; valid as long as the batch is
  };
  /// Returns the lines that are neither empty nor a comment.
  std::vector<Line> schedules() const;
};

/// Reads a file of schedules in batches of lines, because the file can be larger than memory. Usually each line is a
/// schedule. But if the first line that is not a comment begins with { and does not end with }, the whole file is one
/// cairn.schedule object.
class ScheduleLines {
 public:
  /// Opens the file `path`, compressed or not, or stdin for `-`. A batch has at most `most_lines` >= 1 lines. Throws
  /// InputError.
  ScheduleLines(const std::string& path, std::int64_t most_lines, const std::atomic<bool>* stop);

  /// Reads the next lines. Returns false at the end of the file, or if the stop flag is raised while this function
  /// waits for input. Throws InputError if the file cannot be read or a line is too long to be a schedule.
  bool next(LineBatch& batch);

 private:
  /// Appends more text to pending_. Returns false at the end of the file.
  bool read_more();
  /// Returns the position behind the line that begins at `begin`. Reads more text if needed.
  std::size_t line_end(std::size_t begin);
  bool begins_object_over_lines();

  core::FileReader file_;
  std::int64_t most_lines_;
  std::string pending_;    ///< text that was read and that next() has not returned yet
  std::int64_t line_ = 1;  ///< number of the first line of pending_
  bool started_ = false, ended_ = false, interrupted_ = false;
};

/// Reads a schedule: a JSON list of node numbers, a cairn.schedule object, or numbers separated by spaces or commas. A
/// number that does not fit into a NodeId is replaced by an id that no node has. Returns what is wrong with the line,
/// or an empty text. The object may have `transfers`, as in a schedule file. `fingerprint` is that of the graph.
std::string parse_schedule_line(std::string_view line, const core::Graph& graph, std::string_view fingerprint,
                                core::Schedule& schedule);

}  // namespace cairn::pipeline
