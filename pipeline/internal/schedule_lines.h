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
  bool one_object = false;  ///< all of it is one schedule

  struct Line {
    std::int64_t number;
    std::string_view text;  ///< without white space around it; valid while the batch is
  };
  /// Those that are neither empty nor a comment.
  std::vector<Line> schedules() const;
};

/// Reads a file of schedules piece by piece: one schedule a line, or one cairn.schedule object over many lines that is
/// the whole file: it begins with a line that has no } at its end. Memory stays bounded.
class ScheduleLines {
 public:
  /// A path, compressed or not, or - for stdin; `most_lines` >= 1 in a batch. Throws InputError.
  ScheduleLines(const std::string& path, std::int64_t most_lines, const std::atomic<bool>* stop);

  /// The next lines; false at the end, and where `stop` is raised while waiting for input. Throws InputError where the
  /// file cannot be read, and on a line too long to be a schedule.
  bool next(LineBatch& batch);

 private:
  /// Adds to pending_; false where there is no more.
  bool read_more();
  /// Behind the end of the line that begins at `begin`, which is read if need be.
  std::size_t line_end(std::size_t begin);
  bool begins_object_over_lines();

  core::FileReader file_;
  std::int64_t most_lines_;
  std::string pending_;    ///< read and not handed out yet
  std::int64_t line_ = 1;  ///< the first of pending_
  bool started_ = false, ended_ = false;
};

/// Reads one schedule: a JSON list of node numbers, a cairn.schedule object, or numbers separated by spaces or commas.
/// An integer that is no node is kept as some number that is no node. Returns what is wrong with the line, in words;
/// empty where nothing is. `fingerprint`: the graph's.
std::string parse_schedule_line(std::string_view line, std::string_view fingerprint, std::vector<core::NodeId>& steps);

}  // namespace cairn::pipeline
