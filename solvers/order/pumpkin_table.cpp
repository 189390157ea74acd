#include "solvers/order/internal/pumpkin_table.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace cairn::solvers {
namespace {

constexpr std::int64_t kBeyondCounting = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostStates = std::int64_t{1} << 40;
constexpr std::size_t kMostKinds = 255;  // a kind is remembered in a byte

/// A layer's segments, each thread's in blocks that never move.
class Arena {
 public:
  core::Segment* reserve(std::size_t count) {
    if (blocks_.empty() || used_ + count > capacity_) {
      capacity_ = std::max<std::size_t>(count, std::size_t{1} << 14);
      blocks_.push_back(std::make_unique<core::Segment[]>(capacity_));
      used_ = 0;
    }
    return blocks_.back().get() + used_;
  }
  void commit(std::size_t count) { used_ += count; }

 private:
  std::vector<std::unique_ptr<core::Segment[]>> blocks_;
  std::size_t used_ = 0, capacity_ = 0;
};

}  // namespace

PumpkinTable::PumpkinTable(std::span<const Branch> branches, std::int64_t released)
    : branches_(branches), released_(released) {
  group_branches();
  count_states();
}

void PumpkinTable::group_branches() {
  const auto profile = [&](std::int32_t b) {
    std::vector<std::int64_t> words{branches_[b].key.rise, branches_[b].key.drop};
    for (const Piece& piece : branches_[b].rest) words.insert(words.end(), {piece.rise, piece.drop});
    return words;
  };
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(branches_.size()); ++b) {
    const auto [found, is_new] = known.emplace(profile(b), kinds_.size());
    if (is_new) {
      kinds_.emplace_back();
      rests_.emplace_back(branches_[b].rest.begin(), branches_[b].rest.end());
    }
    kinds_[found->second].branches.push_back(b);
  }
}

void PumpkinTable::count_states() {
  needed_bytes_ = kBeyondCounting;
  states_ = 1;
  states_of_size_ = {1};
  std::size_t longest_rest = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::size_t copies = kinds_[k].branches.size();
    longest_rest = std::max(longest_rest, rests_[k].size());
    longest_ += copies * (1 + rests_[k].size());
    kinds_[k].stride = states_;
    if (states_ > kMostStates / static_cast<std::int64_t>(copies + 1)) return;
    states_ *= static_cast<std::int64_t>(copies) + 1;
    std::vector<std::int64_t> sizes(states_of_size_.size() + copies, 0);
    for (std::size_t i = 0; i < states_of_size_.size(); ++i) {
      for (std::size_t c = 0; c <= copies; ++c) sizes[i + c] += states_of_size_[i];
    }
    states_of_size_ = std::move(sizes);
  }
  if (kinds_.size() > kMostKinds) return;
  // The numbers of a layer's states and where they are, the byte to go back by, and two layers of segments.
  double layers = 0, before = 0;
  for (std::size_t size = 1; size < states_of_size_.size(); ++size) {
    const auto segments = static_cast<double>(std::min(longest_, size * (1 + longest_rest)));
    const double bytes = static_cast<double>(states_of_size_[size]) *
                         (segments * sizeof(core::Segment) + sizeof(State) + 2 * sizeof(std::int64_t));
    layers = std::max(layers, before + bytes);
    before = bytes;
  }
  const double bytes = layers + static_cast<double>(states_) * (1 + sizeof(std::uint32_t));
  if (bytes < 0x1p62) needed_bytes_ = static_cast<std::int64_t>(bytes);
}

bool PumpkinTable::solve(Stopwatch& watch, int threads, const std::function<void()>& tick) {
  const std::size_t branch_count = branches_.size();
  first_.assign(static_cast<std::size_t>(states_), 0);
  std::vector<std::uint32_t> place(static_cast<std::size_t>(states_), 0);  // within its layer
  std::vector<Arena> arenas(static_cast<std::size_t>(threads)), arenas_before;
  std::vector<State> layer, layer_before;
  std::vector<std::int64_t> numbers{0}, next_numbers;

  for (std::size_t size = 1; size <= branch_count; ++size) {
    // The states of this layer: every one of the last with one branch more. Adding to no kind before the last one that
    // has a branch makes each of them once.
    next_numbers.clear();
    for (const std::int64_t number : numbers) {
      for (std::size_t kind = kinds_.size(); kind-- > 0;) {
        const std::int64_t have = digit(number, kind);
        if (have < static_cast<std::int64_t>(kinds_[kind].branches.size())) {
          next_numbers.push_back(number + kinds_[kind].stride);
        }
        if (have > 0) break;
      }
    }
    numbers.swap(next_numbers);
    layer.swap(layer_before);
    layer.assign(numbers.size(), {});
    arenas_before = std::exchange(arenas, std::vector<Arena>(static_cast<std::size_t>(threads)));

    const auto solve_state = [&](std::size_t i, Arena& arena, std::vector<core::Segment>& best,
                                 std::vector<core::Segment>& candidate) {
      const std::int64_t number = numbers[i];
      std::int32_t best_count = -1;
      std::int64_t highest = kBeyondCounting / 2;
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (digit(number, kind) == 0) continue;
        core::Segment key = branches_[kinds_[kind].branches.front()].key;
        State others;
        if (size == 1) {
          key.drop += released_;
        } else {
          others = layer_before[place[number - kinds_[kind].stride]];
        }
        const std::int32_t count = put_first(key, others.segments, others.count, rests_[kind].data(),
                                             static_cast<std::int32_t>(rests_[kind].size()), highest, candidate.data());
        if (count < 0) continue;
        const core::CanonicalView view(0, {candidate.data(), static_cast<std::size_t>(count)});
        // One of the candidates dominates all others (Theorem 3.1), so it wins against whichever it meets.
        if (best_count >= 0 &&
            !core::dominates(view, core::CanonicalView(0, {best.data(), static_cast<std::size_t>(best_count)})))
          continue;
        highest = 0;
        std::int64_t bytes = 0;
        for (std::int32_t s = 0; s < count; ++s) {
          highest = std::max(highest, bytes + candidate[s].rise);
          bytes += candidate[s].change();
        }
        best.swap(candidate);
        best_count = count;
        first_[number] = static_cast<std::uint8_t>(kind);
      }
      core::Segment* kept = arena.reserve(static_cast<std::size_t>(best_count));
      std::copy_n(best.begin(), best_count, kept);
      arena.commit(static_cast<std::size_t>(best_count));
      layer[i] = {kept, best_count};
    };

    constexpr std::size_t kBlock = 2048;        // states between two looks at the clock
    constexpr std::size_t kWorthSharing = 256;  // below it, waking threads takes longer
    for (std::size_t begin = 0; begin < numbers.size(); begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, numbers.size());
#pragma omp parallel num_threads(threads) if (threads > 1 && end - begin >= kWorthSharing)
      {
        std::vector<core::Segment> best(longest_), candidate(longest_);
        Arena& arena = arenas[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic, 16)
        for (std::size_t i = begin; i < end; ++i) solve_state(i, arena, best, candidate);
      }
      if (watch.expired(static_cast<std::int64_t>((end - begin) * size))) return false;
      if (tick) tick();
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) place[numbers[i]] = static_cast<std::uint32_t>(i);
  }
  return true;
}

Chain PumpkinTable::chain(Ropes& ropes) const {
  // Forwards: who goes first in each remaining set. Backwards: the chain, branch by branch.
  std::vector<std::int32_t> order;
  std::vector<std::size_t> used(kinds_.size(), 0);
  for (std::int64_t state = states_ - 1; state > 0;) {
    const std::size_t kind = first_[state];
    order.push_back(kinds_[kind].branches[used[kind]++]);
    state -= kinds_[kind].stride;
  }
  Chain result;
  for (auto branch = order.rbegin(); branch != order.rend(); ++branch) {
    Piece key = branches_[*branch].key;
    const bool last = branch == order.rbegin();
    if (last) key.drop += released_;
    Chain longer;
    append(longer, key, ropes);
    std::vector<Chain> parts;
    parts.push_back(std::move(result));
    parts.push_back(branches_[*branch].rest);
    append(longer, merge(std::move(parts), ropes), ropes);
    result = std::move(longer);
  }
  return result;
}

}  // namespace cairn::solvers
