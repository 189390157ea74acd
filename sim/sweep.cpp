#include "cairn/sim/sweep.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/random.h"

namespace cairn::sim {
namespace {

using core::formats::Json;
using core::formats::Place;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string costs_hash(const core::Graph& graph) {
  std::uint64_t hash = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v)
    hash = core::Random(hash ^ static_cast<std::uint64_t>(graph.cost(v))).next();
  return fmt::format("{:016x}", hash);
}

/// Returns the link that candidates with transfers use, or "none".
std::string link_text(const core::Graph& graph) {
  return graph.host_memory() ? core::to_string(graph.host_memory()->link) : "none";
}

constexpr std::int64_t kVersion = 4;  // in versions 1 to 3, a candidate's number stood for another schedule than now
constexpr std::string_view kChecksum = ",\"checksum\":";

std::string checksum_of(std::string_view text) {
  return fmt::format("{:08x}", crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

bool is_whole(std::string_view text) {
  const std::size_t end = text.rfind(kChecksum);
  if (end == std::string_view::npos) return false;
  return text.substr(end) == fmt::format("{}\"{}\"}}\n", kChecksum, checksum_of(text.substr(0, end)));
}

/// What rank 0 tells the other ranks to do in the next round. A sweep runs in rounds; in each of them, the ranks
/// (processes) share the evaluation of `count` candidates from candidate `first` on.
struct Round {
  std::int64_t first = 0, count = 0;
  bool merge = false, last = false;

  void broadcast(Ranks& ranks) {
    std::array<std::int64_t, 4> values = {first, count, merge ? 1 : 0, last ? 1 : 0};
    ranks.broadcast(values);
    *this = {values[0], values[1], values[2] != 0, values[3] != 0};
  }
};

/// Decides, on rank 0, which candidates the next round evaluates, whether the tallies are merged after it, and whether
/// it is the last one.
class Conductor {
 public:
  Conductor(const Sweep& sweep, const SweepOptions& options, int ranks)
      : sweep_(sweep), options_(options), size_(kFirst * ranks) {}

  double seconds() const { return seconds_since(start_); }

  Round next() {
    const std::int64_t left = sweep_.total - sweep_.done;
    const bool stopped = options_.stop != nullptr && *options_.stop;
    if (stopped || left <= 0 || seconds() >= options_.seconds) return {sweep_.done, 0, true, true};
    round_start_ = Clock::now();
    const bool due = options_.checkpoint && seconds_since(checkpoint_) >= options_.checkpoint_seconds;
    if (due) checkpoint_ = Clock::now();
    return {sweep_.done, std::min(size_, left), due, false};
  }
  void finished(const Round& round) {
    // Limits the growth of a round's size from round to round, because the first rounds are too short to measure the
    // speed well.
    constexpr double kMostGrowth = 8;
    const double wanted = std::min(options_.round_seconds, std::max(0.0, options_.seconds - seconds()));
    const double growth = wanted / std::max(seconds_since(round_start_), 1e-9);
    const double size = static_cast<double>(round.count) * std::clamp(growth, 1 / kMostGrowth, kMostGrowth);
    size_ = std::clamp(static_cast<std::int64_t>(size), std::int64_t{1}, kMost);
  }

 private:
  static constexpr std::int64_t kFirst = 64, kMost = std::int64_t{1} << 40;
  const Sweep& sweep_;
  const SweepOptions& options_;
  std::int64_t size_;
  Clock::time_point start_ = Clock::now(), checkpoint_ = start_, round_start_ = start_;
};

/// Returns, on rank 0, the best entry of all ranks. Returns none on all other ranks.
std::optional<Entry> best_of(const Tally& tally, Ranks& ranks) {
  const bool any = !tally.top().empty();
  const Entry best = any ? tally.top().front() : Entry{};
  std::optional<Entry> least;
  for (const std::string& text : ranks.gather(any ? fmt::format("{} {} {}", best.peak, best.cost, best.index) : "")) {
    Entry entry;
    if (std::sscanf(text.c_str(), "%ld %ld %ld", &entry.peak, &entry.cost, &entry.index) != 3) continue;
    if (!least || entry < *least) least = entry;
  }
  return least;
}

[[noreturn]] void refuse(const Place& place, std::string_view what, const std::string& has, const std::string& wanted) {
  place.fail(fmt::format("was made by a sweep with {} {}, not {}; use the same value or another checkpoint file", what,
                         has, wanted));
}

template <class T>
void require_same(const Place& place, std::string_view what, const T& has, const T& wanted) {
  if (has != wanted) refuse(place, what, fmt::format("{}", has), fmt::format("{}", wanted));
}

void require_same(const Place& place, const TallyOptions& has, const TallyOptions& wanted) {
  require_same(place, "a top of", has.top, wanted.top);
  require_same(place, "a budget of", has.budget, wanted.budget);
  require_same(place, "a host budget of", has.host_budget, wanted.host_budget);
  require_same(place, "a list of invalid candidates of", has.invalid, wanted.invalid);
  if (has != wanted)
    refuse(place, "a histogram of", fmt::format("{} bins of {} bytes from {}", has.bins, has.width(), has.from),
           fmt::format("{} of {} from {}", wanted.bins, wanted.width(), wanted.from));
}

}  // namespace

void merge_to_first(Tally& tally, Ranks& ranks) {
  if (ranks.count() == 1) return;
  const std::vector<std::string> texts = ranks.gather(ranks.rank() == 0 ? "" : tally.to_json());
  if (ranks.rank() != 0) tally = Tally(tally.options());
  for (std::size_t rank = 1; rank < texts.size(); ++rank)
    tally.merge(Tally::from_json(texts[rank], fmt::format("the tally of rank {}", rank)));
}

std::string sweep_to_json(const core::Graph& graph, const Sweep& sweep) {
  const std::string transfers =
      sweep.generator.transfers == 0
          ? ""
          : fmt::format("\"transfers\":{},\"link\":\"{}\",", sweep.generator.transfers, link_text(graph));
  const std::string text = fmt::format(
      "{{\"format\":\"cairn.sweep\",\"version\":{},\"graph\":\"{}\",\"costs\":\"{}\",\"seed\":{},\"moves\":{},{}"
      "\"total\":"
      "{},\"done\":{},\"tally\":{}",
      kVersion, graph.fingerprint(), costs_hash(graph), sweep.generator.seed, sweep.generator.moves, transfers,
      sweep.total, sweep.done, sweep.tally.to_json());
  return fmt::format("{}{}\"{}\"}}\n", text, kChecksum, checksum_of(text));
}

Sweep resume_sweep(std::string_view text, const std::string& origin, const core::Graph& graph, Sweep wanted) {
  const Place place{.origin = origin};
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) place.fail("is empty; delete it to start anew");
  const Json json = core::formats::parse_json(text, origin);
  core::formats::check_header(json, "cairn.sweep", place, &graph, "", kVersion);
  if (const std::int64_t version = core::formats::require_int(json, "version", place); version < kVersion)
    place.fail(fmt::format("is of version {}, which drew other schedules; delete it to start anew", version));
  const std::string costs = core::formats::string_or(json, "costs", place, "");
  if (costs != costs_hash(graph))
    place.fail("was made for this graph with other costs; give those again, or another checkpoint file");
  const Json& seed = core::formats::require(json, "seed", place);
  if (!seed.is_number_unsigned())
    place.fail(fmt::format("\"seed\" must be an integer from 0 on, not {}", core::formats::describe(seed)));
  require_same(place, "seed", seed.get<std::uint64_t>(), wanted.generator.seed);
  require_same(place, "at most", fmt::format("{} moves", core::formats::require_int(json, "moves", place)),
               fmt::format("{} moves", wanted.generator.moves));
  const std::int64_t transfers = json.contains("transfers") ? core::formats::require_int(json, "transfers", place) : 0;
  require_same(place, "at most", fmt::format("{} transfers", transfers),
               fmt::format("{} transfers", wanted.generator.transfers));
  if (transfers > 0)
    require_same(place, "a link of", core::formats::string_or(json, "link", place, ""), link_text(graph));
  Tally tally = Tally::from_json(core::formats::require(json, "tally", place).dump(), origin);
  require_same(place, tally.options(), wanted.tally.options());
  wanted.done = core::formats::require_int(json, "done", place);
  const auto damaged = [&] {
    place.fail("its numbers contradict each other; the file is damaged: start again without it");
  };
  if (wanted.done != tally.candidates()) damaged();
  core::Evaluator evaluator(graph);
  for (const std::vector<Entry>& kept : {tally.top(), tally.front()}) {
    for (const Entry& entry : kept) {
      if (entry.index >= wanted.done) damaged();
      const core::Evaluation found = evaluator.evaluate(generate(graph, wanted.generator, entry.index));
      if (found.peak != entry.peak || found.cost != entry.cost) damaged();
    }
  }
  if (!is_whole(text)) damaged();
  if (wanted.done > wanted.total)
    place.fail(fmt::format(
        "already covers {} candidates, more than the {} requested; request at least as many, or start again",
        wanted.done, wanted.total));
  wanted.tally = std::move(tally);
  return wanted;
}

SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options, Ranks& ranks) {
  const std::int64_t begin = sweep.done;
  Conductor conductor(sweep, options, ranks.count());
  for (Round round; !round.last;) {
    if (ranks.rank() == 0) round = conductor.next();
    round.broadcast(ranks);
    // The product of the count and a rank stays below 2^63, because a round has at most 2^40 candidates.
    const std::int64_t end = round.first + round.count * (ranks.rank() + 1) / ranks.count();
    for (std::int64_t first = round.first + round.count * ranks.rank() / ranks.count(); first < end;) {
      const std::int64_t count = options.at_once > 0 ? std::min(options.at_once, end - first) : end - first;
      simulator.sweep(sweep.generator, first, count, sweep.tally);
      first += count;
    }
    sweep.done = round.first + round.count;
    // The gather() in best_of() waits until all ranks have finished the round. So the time that is measured next is
    // that of the slowest rank.
    const std::optional<Entry> best = best_of(sweep.tally, ranks);
    if (round.merge) merge_to_first(sweep.tally, ranks);
    if (ranks.rank() != 0) continue;
    if (!round.last) conductor.finished(round);
    if (options.progress) {
      const double seconds = conductor.seconds();
      options.progress(
          {sweep.done, sweep.total, seconds, static_cast<double>(sweep.done - begin) / std::max(seconds, 1e-9), best});
    }
    if (round.merge && options.checkpoint) options.checkpoint(sweep);
  }
  return {sweep.done - begin, conductor.seconds()};
}

SweepResult run_sweep(Simulator& simulator, Sweep& sweep, const SweepOptions& options) {
  Ranks alone;
  return run_sweep(simulator, sweep, options, alone);
}

}  // namespace cairn::sim
