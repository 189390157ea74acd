#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"

namespace cairn::pipeline {

/// Whole lines of a file of schedules. Lines count from 1.
struct LineBatch {
  std::int64_t first_line = 1;
  std::string text;
  bool one_object = false;  ///< `text` as a whole is one schedule

  struct Line {
    std::int64_t number;
    std::string_view text;  ///< without surrounding white space; valid as long as the batch
  };
  /// Returns the lines that are neither empty nor a comment.
  std::vector<Line> schedules() const;
};

/// Reads a file of schedules piece by piece, in bounded memory. Each line is a schedule; or the whole file is one
/// cairn.schedule object, if its first line that is no comment starts an object without a } at the end.
class ScheduleLines {
 public:
  /// Opens a path, compressed or not, or `-` for stdin. A batch has at most `most_lines` >= 1 lines. Throws InputError.
  ScheduleLines(const std::string& path, std::int64_t most_lines, const std::atomic<bool>* stop);

  /// Reads the next lines. Returns false at the end, and where `stop` is raised while waiting for input. Throws
  /// InputError where the file cannot be read or a line is too long to be a schedule.
  bool next(LineBatch& batch);

 private:
  /// Appends to pending_; returns false at the end of the file.
  bool read_more();
  /// Returns the position after the line that begins at `begin`; reads more if need be.
  std::size_t line_end(std::size_t begin);
  bool begins_object_over_lines();

  core::FileReader file_;
  std::int64_t most_lines_;
  std::string pending_;    ///< text that was read but not handed out yet
  std::int64_t line_ = 1;  ///< number of the first line of pending_
  bool started_ = false, ended_ = false;
};

/// Reads one schedule: a JSON list of node numbers, a cairn.schedule object, or numbers separated by spaces or commas.
/// An integer outside the graph stays outside it. Returns what is wrong with the line, in words; empty where nothing
/// is. `fingerprint`: the graph's.
std::string parse_schedule_line(std::string_view line, std::string_view fingerprint, std::vector<core::NodeId>& steps);

}  // namespace cairn::pipeline
