#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

/// Makes an HTML page about a graph, its schedules and plans. The page is a single file that needs no network, in light
/// and dark colours, with pictures that can be zoomed and searched. A Report holds the contents of a page. Each field
/// that is not empty gets a section of the page.
namespace cairn::report {

/// A figure in a box, with a note below it.
struct ReportFact {
  std::string name, value, note;
  enum class Tone : std::uint8_t { plain, good, bad } tone = Tone::plain;
};

struct ReportTable {
  std::string title, note;
  std::vector<std::string> head;
  struct Row {
    std::vector<std::string> cells;  ///< text of the cells, as many as in `head`; the first cell names the row
    bool marked = false;
  };
  std::vector<Row> rows;
};

/// A number of bytes that is drawn as a horizontal line in the pictures of memory.
struct ReportLevel {
  enum class Kind : std::uint8_t { budget, bound, schedule, baseline };
  std::string name;
  std::int64_t bytes = 0;
  Kind kind = Kind::budget;
  bool of_plan = false;  ///< whether the line is also drawn in pictures of addresses
};

/// A schedule of the page's graph, with its plan if the page shows one.
struct ReportSchedule {
  std::string name;
  core::Schedule schedule;
  std::optional<core::Plan> plan;
};

/// A point in the picture of cost over memory.
struct ReportPoint {
  std::int64_t bytes = 0, cost = 0;
  std::string name, note;
  bool marked = false;         ///< whether the point is drawn with a ring and its name
  std::int32_t schedule = -1;  ///< index in Report::schedules; -1: the page does not show that schedule
};
/// The picture of cost over memory.
struct ReportTradeoff {
  std::string memory = "peak memory";  ///< what `bytes` of the points measures, as the axis names it
  std::string note;                    ///< a sentence, or empty
  /// Schedules in any order. The drawn line skips a point if another point has less memory and a lower cost.
  std::vector<ReportPoint> found;
  /// Proved lower bounds: no schedule within `bytes` costs less than `cost`.
  std::vector<ReportPoint> proved;
  ReportPoint baseline;
  std::int64_t lower_bound_bytes = 0;  ///< lower bound on the memory of every schedule
  /// Schedules without transfers, which tradeoff_svg() draws as a second line. Empty: there is no such line.
  std::vector<ReportPoint> without_transfers;
};

/// A histogram of peaks: counts[b] candidates have a peak in [from + b * width, from + (b + 1) * width) bytes.
struct ReportHistogram {
  std::int64_t from = 0, width = 1;
  std::vector<std::int64_t> counts;
};

/// A picture that needs no script, given as the text of an SVG file.
struct ReportPicture {
  std::string title, note, svg;
};

/// A memory profile. `bytes` alternates between valleys and peaks, from the first valley to the last.
struct ReportProfile {
  std::string name;
  std::vector<std::int64_t> bytes;
};

/// A copy between device memory and host memory, or a time in which a step waits for such a copy.
struct ReportSpan {
  std::int64_t begin = 0, end = 0;  ///< times in the unit of costs
  std::string name;
};
/// The copies of a schedule over time.
struct ReportTransfers {
  std::vector<std::pair<std::int64_t, std::int64_t>> host;  ///< pairs of a time and the bytes on the host from then on
  std::vector<ReportSpan> to_host, to_device;
  std::vector<ReportSpan> waits;  ///< times in which a step waits for a copy
  std::int64_t end = 0;           ///< end of the schedule
  std::string cost_unit;          ///< unit of the times, as in Report::cost_unit
};

/// The losses of a training run.
struct ReportLosses {
  std::vector<double> training;                        ///< means over groups of successive training steps
  std::vector<std::pair<std::int64_t, double>> tests;  ///< number of training steps before a test, and the test's loss
  std::int64_t steps = 0;                              ///< number of all training steps
};

/// A plan of buffers that belong to no graph. plan.buffers[i] has the address of the buffer specs[i], whose last step
/// is specs[i].upper - 1.
struct ReportBuffers {
  std::vector<core::BufferSpec> specs;
  core::Plan plan;
  std::vector<core::AddressRange> forbidden;  ///< addresses that no buffer may use
  std::vector<std::int32_t> conflict;         ///< indices of buffers that cannot all be placed
};

/// The contents of a page.
struct Report {
  std::string title;    ///< name of the graph or file
  std::string command;  ///< command that made the page, for example "cairn run"
  std::string summary;  ///< line below the title
  std::vector<ReportFact> facts;
  std::vector<std::string> notes;  ///< sentences that every reader should see
  std::vector<ReportTable> tables;

  core::Graph graph;
  std::string cost_unit;  ///< unit of costs, or empty; "ns" for times
  /// The schedules to show; the baseline comes first. The page shows which tensors each schedule holds, makes, reads
  /// and recomputes. For a long schedule, the curves have fewer points than steps, and the page contains only the
  /// tensors with the largest product of bytes and steps, and the largest tensors at the peak. The peak and the sums by
  /// kind and layer are still exact.
  std::vector<ReportSchedule> schedules;
  std::int32_t shown = 0;  ///< index of the schedule that the page opens with
  std::vector<ReportLevel> levels;
  std::optional<std::int64_t> budget_bytes;  ///< budget that the picture of cost over memory marks
  std::optional<ReportTradeoff> tradeoff;
  bool tradeoff_first = false;  ///< whether the picture of cost over memory is shown above the schedules
  std::optional<ReportHistogram> histogram;
  std::vector<ReportPicture> pictures;
  std::optional<ReportBuffers> buffers;  ///< buffers that the page shows instead of a graph with schedules
};

/// Returns the unit of the graph's costs: "ns" for times; else the unit that the graph names, or "cost units".
std::string cost_unit_of(const core::Graph& graph);

/// Returns the page as HTML. The page has a few megabytes at most, whatever the size of the graph. Throws InputError on
/// an invalid schedule.
std::string report_page(const Report& report);
/// Returns the JSON object that the page's scripts read, escaped for use inside an HTML element.
std::string report_data(const Report& report);

/// Returns the picture of cost over memory as an SVG file: extra cost as a step function, and the proved bounds.
std::string tradeoff_svg(const ReportTradeoff& tradeoff);
/// Returns a picture of memory profiles as an SVG file. The first profile is drawn in front of the others.
std::string profiles_svg(const std::vector<ReportProfile>& profiles);
/// Returns an SVG file that shows, over time, the bytes on the host, the copies in both directions, and the times in
/// which steps wait for copies. If there are very many copies, the picture shows only the longest ones.
std::string transfers_svg(const ReportTransfers& transfers);
/// Returns a picture of the loss over the training steps as an SVG file.
std::string losses_svg(const ReportLosses& losses);

}  // namespace cairn::report
