#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/plan.h"
#include "cairn/core/random.h"

namespace cairn::core {
namespace {

/// Buffers that share one offset: one buffer, or a chain of in-place ones in which each takes over where the one before
/// ends. The chain's buffers are consecutive in Packing::pieces.
struct Block {
  std::int32_t first_piece = 0;
  std::int32_t piece_count = 0;
};

struct Piece {
  std::int64_t first = 0, last = 0;  ///< closed range of steps
  std::int64_t size = 0;             ///< aligned, guard included
};

struct Problem {
  std::vector<Piece> pieces;
  std::vector<Block> blocks;
  std::int64_t steps = 0;  ///< every `last` is at most this

  const Piece* begin(const Block& b) const { return pieces.data() + b.first_piece; }
  const Piece* end(const Block& b) const { return begin(b) + b.piece_count; }
};

/// Bytes live at every step; where a piece takes over from the one before it, both are live at once in one place.
std::vector<std::int64_t> load(const Problem& problem) {
  std::vector<std::int64_t> delta(problem.steps + 2, 0);
  for (const Block& block : problem.blocks) {
    for (const Piece* p = problem.begin(block); p != problem.end(block); ++p) {
      delta[p->first] += p->size;
      delta[p->last + 1] -= p->size;
      if (p != problem.begin(block)) {
        const std::int64_t shared = std::min(p->size, (p - 1)->size);
        delta[p->first] -= shared;
        delta[p->first + 1] += shared;
      }
    }
  }
  std::partial_sum(delta.begin(), delta.end(), delta.begin());
  delta.pop_back();
  return delta;
}

/// Which gap a block takes: the tightest that holds it, or the lowest.
enum class Fit : std::uint8_t { best, lowest };

/// Placed pieces by the steps at which they live: all that live during [first, last] are those that live at `first`,
/// and those that start later in it.
class TimeIndex {
 public:
  explicit TimeIndex(std::int64_t steps) : starting_(steps + 1) {
    while (width_ <= steps) width_ *= 2;
    covering_.resize(2 * width_);
  }

  void clear() {
    for (auto& list : covering_) list.clear();
    for (auto& list : starting_) list.clear();
  }

  void insert(const Piece& piece, std::int32_t id) {
    starting_[piece.first].push_back(id);
    for (std::int64_t l = piece.first + width_, r = piece.last + 1 + width_; l < r; l /= 2, r /= 2) {
      if (l & 1) covering_[l++].push_back(id);
      if (r & 1) covering_[--r].push_back(id);
    }
  }

  template <class Visit>
  void visit(const Piece& piece, const Visit& visit) const {
    for (std::int64_t node = piece.first + width_; node > 0; node /= 2) {
      for (const std::int32_t id : covering_[node]) visit(id);
    }
    for (std::int64_t step = piece.first + 1; step <= piece.last && step < static_cast<std::int64_t>(starting_.size());
         ++step) {
      for (const std::int32_t id : starting_[step]) visit(id);
    }
  }

 private:
  std::int64_t width_ = 1;
  std::vector<std::vector<std::int32_t>> covering_;  ///< segment tree: pieces that live during all of a node's range
  std::vector<std::vector<std::int32_t>> starting_;  ///< by first step
};

/// Places blocks one by one, each in a gap between those placed so far that live at the same time.
class Placer {
 public:
  /// `conflicts`: how many pairs of pieces live at the same time. Where they are few, pieces are looked up by time;
  /// otherwise all that are placed are kept by offset and looked through.
  Placer(const Problem& problem, double conflicts) : problem_(problem) {
    const auto pieces = static_cast<double>(problem.pieces.size());
    if (16 * conflicts < pieces * pieces) index_.emplace(problem.steps);
  }

  /// Height of the arena; offsets[b] is block b's.
  std::int64_t place(const std::vector<std::int32_t>& order, std::vector<std::int64_t>& offsets, Fit fit = Fit::best) {
    fit_ = fit;
    placed_.clear();
    if (index_) {
      index_->clear();
      placed_.resize(problem_.pieces.size());
    }
    offsets.resize(problem_.blocks.size());
    std::int64_t height = 0;
    for (const std::int32_t b : order) {
      const Block& block = problem_.blocks[b];
      offsets[b] = block.piece_count == 1 ? gap_for(*problem_.begin(block)) : lowest_for(block);
      for (const Piece* p = problem_.begin(block); p != problem_.end(block); ++p) {
        insert(*p, offsets[b]);
        height = std::max(height, offsets[b] + p->size);
      }
    }
    return height;
  }

  /// Pieces looked at so far, in all placements.
  std::int64_t work() const { return work_; }

 private:
  struct Placed {
    std::int64_t offset, end, first, last;
  };
  static constexpr std::int64_t kLookup = 10;  ///< finding and sorting a piece costs about this many comparisons

  void insert(const Piece& piece, std::int64_t offset) {
    const Placed placed{offset, offset + piece.size, piece.first, piece.last};
    if (index_) {
      const auto id = static_cast<std::int32_t>(&piece - problem_.pieces.data());
      placed_[id] = placed;
      index_->insert(piece, id);
      return;
    }
    const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                     [](std::int64_t value, const Placed& p) { return value < p.offset; });
    placed_.insert(at, placed);
  }

  /// Placed pieces that live during some of [piece.first, piece.last], with ascending offsets if `sorted`.
  template <class Visit>
  void conflicts(const Piece& piece, const Visit& visit, bool sorted) {
    if (!index_) {
      work_ += static_cast<std::int64_t>(placed_.size());
      for (const Placed& p : placed_) {
        if (p.first <= piece.last && p.last >= piece.first) visit(p);
      }
      return;
    }
    work_ += piece.last - piece.first + 1;
    found_.clear();
    index_->visit(piece, [&](std::int32_t id) { found_.push_back(placed_[id]); });
    work_ += kLookup * static_cast<std::int64_t>(found_.size());
    if (sorted) {
      std::sort(found_.begin(), found_.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    }
    for (const Placed& p : found_) visit(p);
  }

  /// The tightest gap that holds the piece, the lowest of equals (or, with Fit::lowest, of all); above everything if
  /// there is none.
  std::int64_t gap_for(const Piece& piece) {
    std::int64_t top = 0, best = -1, best_gap = std::numeric_limits<std::int64_t>::max();
    conflicts(
        piece,
        [&](const Placed& p) {
          const std::int64_t gap = p.offset - top;
          if (gap >= piece.size && (fit_ == Fit::best ? gap < best_gap : best < 0)) {
            best = top;
            best_gap = gap;
          }
          top = std::max(top, p.end);
        },
        true);
    return best >= 0 ? best : top;
  }

  /// The lowest offset at which no piece of a chain meets a placed one.
  std::int64_t lowest_for(const Block& block) {
    forbidden_.clear();
    for (const Piece* piece = problem_.begin(block); piece != problem_.end(block); ++piece) {
      conflicts(
          *piece, [&](const Placed& p) { forbidden_.emplace_back(p.offset - piece->size, p.end); }, false);
    }
    std::sort(forbidden_.begin(), forbidden_.end());
    std::int64_t offset = 0;
    for (const auto& [above, below] : forbidden_) {
      if (above >= offset) break;
      offset = std::max(offset, below);
    }
    return offset;
  }

  const Problem& problem_;
  std::optional<TimeIndex> index_;
  Fit fit_ = Fit::best;
  std::int64_t work_ = 0;
  std::vector<Placed> placed_;  ///< by ascending offset; with an index, by piece
  std::vector<Placed> found_;
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;  ///< open intervals of offsets
};

struct BlockMeasures {
  std::int64_t size, length, conflicts, crowd, first;
};

/// What the greedy orders sort by. `crowd` is the largest load during the block's life.
std::vector<BlockMeasures> measure(const Problem& problem, const std::vector<std::int64_t>& loads) {
  std::vector<std::int64_t> starts, ends;
  for (const Piece& p : problem.pieces) {
    starts.push_back(p.first);
    ends.push_back(p.last);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());

  // Range maximum by a sparse table: log2 rows.
  std::vector<std::vector<std::int64_t>> table{loads};
  for (std::size_t width = 1; 2 * width <= loads.size(); width *= 2) {
    const auto& below = table.back();
    std::vector<std::int64_t> row(loads.size() - 2 * width + 1);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::max(below[i], below[i + width]);
    table.push_back(std::move(row));
  }
  const auto range_max = [&](std::int64_t first, std::int64_t last) {
    int row = 0;
    while ((std::int64_t{2} << row) <= last - first + 1) ++row;
    return std::max(table[row][first], table[row][last + 1 - (std::int64_t{1} << row)]);
  };

  std::vector<BlockMeasures> measures;
  measures.reserve(problem.blocks.size());
  for (const Block& block : problem.blocks) {
    const Piece* begin = problem.begin(block);
    const Piece* end = problem.end(block);
    const std::int64_t first = begin->first, last = (end - 1)->last;
    std::int64_t size = 0;
    for (const Piece* p = begin; p != end; ++p) size = std::max(size, p->size);
    const auto started = std::upper_bound(starts.begin(), starts.end(), last) - starts.begin();
    const auto ended = std::lower_bound(ends.begin(), ends.end(), first) - ends.begin();
    measures.push_back({size, last - first + 1, started - ended, range_max(first, last), first});
  }
  return measures;
}

/// The greedy orders, each by a key of which the largest goes first; ties by size, then length, then start.
std::vector<std::vector<std::int32_t>> greedy_orders(const std::vector<BlockMeasures>& measures) {
  using Key = std::function<double(const BlockMeasures&)>;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const std::vector<Key> keys{
      [&](const BlockMeasures& m) { return real(m.size); },
      [&](const BlockMeasures& m) { return real(m.length); },
      [&](const BlockMeasures& m) { return real(m.size) * real(m.length); },
      [&](const BlockMeasures& m) { return real(m.conflicts); },
      [&](const BlockMeasures& m) { return real(m.conflicts) * real(m.size); },
      [&](const BlockMeasures& m) { return real(m.crowd); },
      [&](const BlockMeasures& m) { return -real(m.first); },
  };
  std::vector<std::vector<std::int32_t>> orders;
  for (const Key& key : keys) {
    std::vector<double> value;
    for (const BlockMeasures& m : measures) value.push_back(key(m));
    std::vector<std::int32_t> order(measures.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const BlockMeasures &x = measures[a], &y = measures[b];
      if (value[a] != value[b]) return value[a] > value[b];
      if (x.size != y.size) return x.size > y.size;
      if (x.length != y.length) return x.length > y.length;
      return a < b;
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

struct Packing {
  std::int64_t height = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> offsets;  ///< a block
  std::vector<std::int32_t> order;    ///< that led to it
  Fit fit = Fit::best;                ///< likewise
};

/// Another order near the packing's: one block that reaches the top of the arena, and now and then any other, moves to
/// an earlier place.
std::vector<std::int32_t> perturb(const Problem& problem, const Packing& packing, Random& random) {
  std::vector<std::int32_t> order = packing.order;
  std::vector<std::size_t> on_top;
  for (std::size_t at = 1; at < order.size(); ++at) {
    const Block& block = problem.blocks[order[at]];
    const bool reaches = std::any_of(problem.begin(block), problem.end(block), [&](const Piece& p) {
      return packing.offsets[order[at]] + p.size == packing.height;
    });
    if (reaches) on_top.push_back(at);
  }
  const auto move_earlier = [&](std::size_t at) {
    const auto to = static_cast<std::ptrdiff_t>(random.next() % at), from = static_cast<std::ptrdiff_t>(at);
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
  };
  if (!on_top.empty()) move_earlier(on_top[random.next() % on_top.size()]);
  if (order.size() > 1 && random.next() % 2 == 0) move_earlier(1 + random.next() % (order.size() - 1));
  return order;
}

Packing pack(const Problem& problem, std::int64_t lower_bound, const std::vector<std::int64_t>& loads,
             std::int64_t work) {
  Packing best;
  if (problem.blocks.empty()) return {0, {}, {}, Fit::best};
  const std::vector<BlockMeasures> measures = measure(problem, loads);
  double conflicts = 0;
  for (const BlockMeasures& m : measures) conflicts += static_cast<double>(m.conflicts);
  Placer placer(problem, conflicts);
  std::vector<std::int64_t> offsets;
  for (auto& order : greedy_orders(measures)) {
    for (const Fit fit : {Fit::best, Fit::lowest}) {
      const std::int64_t height = placer.place(order, offsets, fit);
      if (height < best.height) best = {height, offsets, order, fit};
      if (best.height == lower_bound || placer.work() >= work) return best;
    }
  }
  constexpr int kMostRounds = 4000, kPatience = 100;
  Random random(1);
  Packing current = best;
  int since_best = 0;
  for (int round = 0; round < kMostRounds && best.height > lower_bound && placer.work() < work; ++round) {
    std::vector<std::int32_t> order = perturb(problem, current, random);
    const Fit fit = random.next() % 8 == 0 ? (current.fit == Fit::best ? Fit::lowest : Fit::best) : current.fit;
    const std::int64_t height = placer.place(order, offsets, fit);
    // Slightly worse packings are walked through for a while, so that a plateau is left again.
    const std::int64_t slack = random.next() % 4 == 0 ? current.height / 128 : 0;
    if (height <= current.height + slack) current = {height, offsets, std::move(order), fit};
    if (current.height < best.height) {
      best = current;
      since_best = 0;
    } else if (++since_best % kPatience == 0) {
      current = best;
    }
  }
  return best;
}

// Sums of sizes stay below this, so that no height can overflow.
constexpr std::int64_t kSumLimit = std::int64_t{1} << 62;

void check_options(const PlanOptions& options) {
  constexpr std::int64_t kMostAlignment = std::int64_t{1} << 30;
  if (options.alignment < 1 || options.alignment > kMostAlignment) {
    throw InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", options.alignment));
  }
  if (options.guard_bytes < 0 || options.guard_bytes > kMostAlignment) {
    throw InputError(fmt::format("guard of {} bytes is not between 0 and 2^30", options.guard_bytes));
  }
}

void check_total(const Problem& problem) {
  std::int64_t total = 0;
  for (const Piece& piece : problem.pieces) {
    if (piece.size > kSumLimit - total) throw InputError("the buffers' sizes add up to more than 2^62 bytes");
    total += piece.size;
  }
}

/// Lower bound and packing of a problem. Throws InputError when its sizes overflow.
struct Packed {
  std::int64_t lower_bound = 0;
  Packing packing;
};
Packed solve(const Problem& problem, const PlanOptions& options) {
  check_total(problem);
  const std::vector<std::int64_t> loads = load(problem);
  const std::int64_t bound = *std::max_element(loads.begin(), loads.end());
  return {bound, pack(problem, bound, loads, options.work)};
}

}  // namespace

Plan plan_memory(const Graph& graph, const Schedule& schedule, const PlanOptions& options) {
  check_options(options);
  const std::vector<Lifetime> lives = lifetimes(graph, schedule);
  const std::int64_t guard = align_up(options.guard_bytes, options.alignment);

  Plan plan;
  plan.alignment = options.alignment;
  std::vector<std::int32_t> latest(graph.node_count(), -1);  // a node's latest buffer
  std::vector<std::int32_t> takes_over, taken_by;            // chain neighbours among the buffers
  const auto add_buffer = [&](const Buffer& buffer) {
    plan.buffers.push_back(buffer);
    takes_over.push_back(-1);
    taken_by.push_back(-1);
    return static_cast<std::int32_t>(plan.buffers.size()) - 1;
  };
  for (const Lifetime& life : lives) {
    const NodeId v = life.node, u = graph.inplace(v);
    if (graph.size(v) > 0) {
      const std::int32_t b =
          add_buffer({v, life.first, life.last, align_up(graph.size(v), options.alignment), 0, false, kNoNode});
      if (u != kNoNode && latest[u] >= 0 && plan.buffers[latest[u]].last == life.first) {
        takes_over[b] = latest[u];
        taken_by[latest[u]] = b;
        plan.buffers[b].alias_of = u;
      }
      latest[v] = b;
    }
    if (graph.scratch(v) > 0) {
      add_buffer({v, life.first, life.first, align_up(graph.scratch(v), options.alignment), 0, true, kNoNode});
    }
  }

  Problem problem;
  problem.steps = schedule.length();
  std::vector<std::int32_t> block_of(plan.buffers.size());
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(plan.buffers.size()); ++b) {
    if (takes_over[b] >= 0) continue;
    Block block{static_cast<std::int32_t>(problem.pieces.size()), 0};
    for (std::int32_t c = b; c >= 0; c = taken_by[c]) {
      problem.pieces.push_back({plan.buffers[c].first, plan.buffers[c].last, plan.buffers[c].size + guard});
      block_of[c] = static_cast<std::int32_t>(problem.blocks.size());
      ++block.piece_count;
    }
    problem.blocks.push_back(block);
  }

  const auto [bound, packing] = solve(problem, options);
  plan.lower_bound = bound;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) plan.buffers[b].offset = packing.offsets[block_of[b]];
  plan.bytes = packing.height;
  return plan;
}

Plan plan_buffers(const std::vector<BufferSpec>& specs, const PlanOptions& options) {
  check_options(options);
  // Only the order of the ends matters, so the time axis is compressed to their ranks.
  std::vector<std::int64_t> times;
  for (const BufferSpec& spec : specs) {
    if (spec.lower >= spec.upper) {
      throw InputError(fmt::format("buffer '{}': lower {} is not below upper {}", spec.id, spec.lower, spec.upper));
    }
    if (spec.size < 0) throw InputError(fmt::format("buffer '{}' has the negative size {}", spec.id, spec.size));
    if (spec.size > kSumLimit) throw InputError(fmt::format("buffer '{}' has more than 2^62 bytes", spec.id));
    times.push_back(spec.lower);
    times.push_back(spec.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::int64_t time) {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };

  Plan plan;
  plan.alignment = options.alignment;
  const std::int64_t guard = align_up(options.guard_bytes, options.alignment);
  Problem problem;
  problem.steps = static_cast<std::int64_t>(times.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const BufferSpec& spec = specs[i];
    const std::int64_t size = align_up(spec.size, options.alignment);
    plan.buffers.push_back({static_cast<NodeId>(i), spec.lower, spec.upper - 1, size, 0, false, kNoNode});
    problem.blocks.push_back({static_cast<std::int32_t>(i), 1});
    problem.pieces.push_back({rank(spec.lower), rank(spec.upper) - 1, size + guard});
  }
  const auto [bound, packing] = solve(problem, options);
  plan.lower_bound = bound;
  for (std::size_t i = 0; i < specs.size(); ++i) plan.buffers[i].offset = packing.offsets[i];
  plan.bytes = packing.height;
  return plan;
}

}  // namespace cairn::core
