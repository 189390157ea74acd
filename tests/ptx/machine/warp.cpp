#include "cairn/tests/ptx/machine/warp.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace cairn::tests::ptx {
namespace {

constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

Mask first_lanes(std::uint32_t count) { return count >= kLanes ? kAllLanes : (Mask{1} << count) - 1; }

}  // namespace

void Counts::add(const Counts& other) {
  for (std::size_t i = 0; i < warp_instructions.size(); ++i) {
    warp_instructions[i] += other.warp_instructions[i];
    lane_instructions[i] += other.lane_instructions[i];
  }
  for (const auto count :
       {&Counts::divergent_branches, &Counts::global_requests, &Counts::global_sectors, &Counts::read_sectors,
        &Counts::written_sectors, &Counts::shared_requests, &Counts::shared_wavefronts, &Counts::local_requests,
        &Counts::local_sectors, &Counts::atomic_lanes, &Counts::atomic_same_address})
    this->*count += other.*count;
}

std::uint64_t Counts::warps() const {
  return std::accumulate(warp_instructions.begin(), warp_instructions.end(), std::uint64_t{0});
}
std::uint64_t Counts::lanes() const {
  return std::accumulate(lane_instructions.begin(), lane_instructions.end(), std::uint64_t{0});
}

// The following functions belong to Warp.

Warp::Warp(Block& block, std::uint32_t first_thread, std::uint32_t threads)
    : block_(block),
      program_(block.program()),
      first_(first_thread),
      all_(first_lanes(threads)),
      alive_(all_),
      registers_(program_.register_bytes),
      specials_(static_cast<std::size_t>(Special::count) * kLanes * sizeof(std::uint32_t)),
      predicates_(program_.predicates),
      local_bytes_(program_.local_bytes * kLanes) {
  banks_[static_cast<int>(Place::Bank::registers)] = registers_.data();
  banks_[static_cast<int>(Place::Bank::constants)] = const_cast<std::byte*>(program_.constants.data());
  banks_[static_cast<int>(Place::Bank::specials)] = specials_.data();
  const Launch& launch = block.grid().launch;
  const Extent at = block.index(), size = launch.block;
  const auto set = [&](Special which, int lane, std::uint32_t value) {
    reinterpret_cast<std::uint32_t*>(
        specials_.data())[static_cast<std::size_t>(which) * kLanes + static_cast<std::size_t>(lane)] = value;
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t thread = first_ + static_cast<std::uint32_t>(lane);
    set(Special::tid_x, lane, thread % size.x);
    set(Special::tid_y, lane, thread / size.x % size.y);
    set(Special::tid_z, lane, thread / size.x / size.y);
    const std::pair<Special, std::uint32_t> same[] = {
        {Special::ntid_x, size.x},
        {Special::ntid_y, size.y},
        {Special::ntid_z, size.z},
        {Special::ctaid_x, at.x},
        {Special::ctaid_y, at.y},
        {Special::ctaid_z, at.z},
        {Special::nctaid_x, launch.grid.x},
        {Special::nctaid_y, launch.grid.y},
        {Special::nctaid_z, launch.grid.z},
        {Special::warpid, first_ / kLanes},
        {Special::nwarpid, static_cast<std::uint32_t>((size.count() + kLanes - 1) / kLanes)},
        {Special::nsmid, 1},
        {Special::dynamic_smem_size, static_cast<std::uint32_t>(launch.dynamic_shared)},
        {Special::total_smem_size, static_cast<std::uint32_t>(launch.dynamic_shared + program_.shared_bytes)}};
    for (const auto& [which, value] : same) set(which, lane, value);
    const Mask own = Mask{1} << lane;
    set(Special::laneid, lane, static_cast<std::uint32_t>(lane));
    set(Special::lanemask_eq, lane, own);
    set(Special::lanemask_lt, lane, own - 1);
    set(Special::lanemask_le, lane, own | (own - 1));
    set(Special::lanemask_gt, lane, ~(own | (own - 1)));
    set(Special::lanemask_ge, lane, ~(own - 1));
    if (program_.local_bytes > 0)
      local_.push_back(std::make_unique<Region>(
          local_bytes_.data() + program_.local_bytes * static_cast<std::size_t>(lane), program_.local_bytes, false));
  }
}

void Warp::fault(const Instruction& instruction, int lane, const std::string& what) const {
  std::string text = program_.name + ", " + program_.where(instruction) + ": ";
  text += "block " + std::to_string(block_.number()) + ", thread ";
  throw Fault(text + std::to_string(first_ + static_cast<std::uint32_t>(lane)) + " " + what);
}

Actor Warp::actor(int lane, bool strong, bool narrow) const {
  return {block_.grid().launch.number,
          block_.number(),
          first_ + static_cast<std::uint32_t>(lane),
          epoch_[lane],
          block_epoch_,
          warp_epoch_[lane],
          part_epoch_[lane],
          part_[lane],
          known_[lane].get(),
          strong,
          narrow};
}

void Warp::enter(Mask lanes, std::uint32_t epoch) {
  each_lane(lanes, [&](int lane) {
    epoch_[lane] = epoch;
    if (lanes == all_) {
      warp_epoch_[lane] = epoch;
    } else {
      part_epoch_[lane] = epoch;
      part_[lane] = lanes;
    }
  });
}

void Warp::synchronise(Mask lanes) {
  enter(lanes, block_.next_epoch());
  learn(lanes, known(lanes));
}

void Warp::fence(Mask lanes, bool whole_device) {
  const std::uint32_t epoch = block_.next_epoch();
  each_lane(lanes, [&](int lane) {
    epoch_[lane] = epoch;
    for (const Read& read : read_[lane]) acquire(lane, read.address, whole_device && read.whole_device);
    if (whole_device) read_[lane].clear();
    for (const bool of_device : {false, true}) {
      if (of_device && !whole_device) continue;
      fenced_[lane][of_device ? 1 : 0] = {actor(lane, false), known_[lane]};
      // The clock can be freed before the stored fence is used, so no pointer to the clock may stay.
      fenced_[lane][of_device ? 1 : 0].actor.known = nullptr;
    }
  });
}

void Warp::acquire(int lane, std::uint64_t address, bool whole_device) {
  known_[lane] = block_.grid().order.acquire(address, block_.number(), whole_device, known_[lane]);
}

void Warp::note_read(int lane, std::uint64_t address, bool whole_device) {
  std::vector<Read>& read = read_[lane];
  const Read one{address, whole_device};
  if (std::find(read.begin(), read.end(), one) == read.end()) read.push_back(one);
}

Known Warp::known(Mask lanes) const {
  Known all;
  each_lane(lanes, [&](int lane) { all = both(all, known_[lane]); });
  return all;
}
void Warp::learn(Mask lanes, const Known& known) {
  each_lane(lanes, [&](int lane) {
    if (known_[lane] != known) known_[lane] = both(known_[lane], known);
  });
}

void Warp::pass_barrier(Mask lanes, std::uint32_t epoch, bool whole) {
  if (whole) block_epoch_ = epoch;
  enter(lanes, epoch);
  waiting_ &= ~lanes;
  each_lane(lanes, [&](int lane) { ++pc_[lane]; });
}

void Warp::keep_place() {
  each_lane(current_, [&](int lane) { pc_[lane] = at_; });
  current_ = 0;
}

/// Chooses the lanes that run next. Usually, these are the lanes that are furthest behind in the code, so that lanes
/// which have diverged meet again. One time in eight, they are the lanes at the instruction of a random lane instead.
/// Otherwise, a loop that waits for a lane further ahead would never let that lane run.
void Warp::choose(std::mt19937_64& random) {
  constexpr std::uint64_t kSeldom = 8;
  keep_place();
  const Mask ready = alive_ & ~waiting_;
  if (ready == 0) return;
  at_ = kNever;
  each_lane(ready, [&](int lane) { at_ = std::min(at_, pc_[lane]); });
  if (random() % kSeldom == 0) {
    auto skip = static_cast<int>(random() % static_cast<std::uint64_t>(std::popcount(ready)));
    Mask rest = ready;
    while (skip-- > 0) rest &= rest - 1;
    at_ = pc_[std::countr_zero(rest)];
  }
  limit_ = kNever;
  each_lane(ready, [&](int lane) {
    if (pc_[lane] == at_) {
      current_ |= Mask{1} << lane;
    } else if (pc_[lane] > at_) {
      limit_ = std::min(limit_, pc_[lane]);
    }
  });
}

bool Warp::step(int most, std::mt19937_64& random) {
  choose(random);
  if (current_ == 0) return false;
  Counts& counts = block_.grid().counts;
  const Instruction* const code = program_.code.data();
  while (most-- > 0) {
    if (current_ == 0 || at_ >= limit_) {
      choose(random);
      if (current_ == 0) break;
    }
    const Instruction& instruction = code[at_];
    Mask lanes = current_;
    if (instruction.guarded) lanes &= predicates_[instruction.guard] ^ (instruction.guard_negated ? kAllLanes : 0);
    const auto kind = static_cast<std::size_t>(instruction.kind);
    ++counts.warp_instructions[kind];
    counts.lane_instructions[kind] += static_cast<std::uint64_t>(std::popcount(lanes));
    if (lanes == 0) {
      ++at_;
      continue;
    }
    switch (instruction.flow) {
      case Instruction::Flow::plain:
        instruction.run(*this, instruction, lanes);
        ++at_;
        break;
      case Instruction::Flow::branch:
        branch(instruction, lanes);
        break;
      case Instruction::Flow::exit:
        alive_ &= ~lanes;
        current_ &= ~lanes;
        ++at_;
        break;
      case Instruction::Flow::collective:
        collective(instruction, lanes);
        break;
      case Instruction::Flow::barrier:
        barrier(instruction, lanes);
        break;
    }
  }
  keep_place();
  return true;
}

void Warp::branch(const Instruction& instruction, Mask lanes) {
  if (lanes == current_) {
    at_ = instruction.target;
    // Other lanes may already be at the target or beyond it. The running lanes stop when they reach the first of those
    // lanes.
    limit_ = kNever;
    each_lane(alive_ & ~waiting_ & ~current_, [&](int lane) {
      if (pc_[lane] >= at_) limit_ = std::min(limit_, pc_[lane]);
    });
  } else {
    ++block_.grid().counts.divergent_branches;
    each_lane(current_, [&](int lane) { pc_[lane] = (lanes >> lane & 1) != 0 ? instruction.target : at_ + 1; });
    current_ = 0;
  }
}

void Warp::wait_here(Mask lanes) {
  const Mask others = current_ & ~lanes;
  keep_place();
  each_lane(others, [&](int lane) { ++pc_[lane]; });
  waiting_ |= lanes;
}

/// Runs an instruction that all lanes of its mask execute together. A lane that reaches it waits for the mask's other
/// lanes.
void Warp::collective(const Instruction& instruction, Mask lanes) {
  const auto* const masks = slots<Mask>(instruction.elements[0]);
  const int first = std::countr_zero(lanes);
  const Mask named = masks[first];
  each_lane(lanes, [&](int lane) {
    if (masks[lane] != named) fault(instruction, lane, "waits for other threads than those with which it waits");
    if ((named >> lane & 1) == 0) fault(instruction, lane, "is not named by its own mask");
  });
  if ((named & ~alive_) != 0)
    fault(instruction, first,
          "waits for thread " + std::to_string(first_ + static_cast<std::uint32_t>(std::countr_zero(named & ~alive_))) +
              ", which is gone");
  if (lanes == named && lanes == current_) {
    instruction.run(*this, instruction, lanes);
    ++at_;
    return;
  }
  const std::int32_t here = at_;
  wait_here(lanes);
  Mask come = 0;
  each_lane(waiting_ & named, [&](int lane) {
    if (pc_[lane] == here && masks[lane] == named) come |= Mask{1} << lane;
  });
  if (come != named) return;
  instruction.run(*this, instruction, named);
  waiting_ &= ~named;
  each_lane(named, [&](int lane) { pc_[lane] = here + 1; });
}

void Warp::barrier(const Instruction& instruction, Mask lanes) {
  wait_here(lanes);
  const int first = std::countr_zero(lanes);
  const std::uint32_t id = slots<std::uint32_t>(instruction.b)[first];
  const std::uint32_t threads = instruction.c.given() ? slots<std::uint32_t>(instruction.c)[first] : 0;
  const Mask votes = instruction.reduction == Reduction::none
                         ? 0
                         : (predicate(instruction.a) ^ (instruction.a_negated ? kAllLanes : 0)) & lanes;
  block_.arrive(*this, instruction, lanes, id, threads, votes);
}

// The following functions belong to Block.

Block::Block(Grid& grid, std::uint64_t number)
    : grid_(grid),
      number_(static_cast<std::uint32_t>(number)),
      index_{static_cast<std::uint32_t>(number % grid.launch.grid.x),
             static_cast<std::uint32_t>(number / grid.launch.grid.x % grid.launch.grid.y),
             static_cast<std::uint32_t>(number / grid.launch.grid.x / grid.launch.grid.y)},
      shared_bytes_(grid.launch.program->shared_bytes + grid.launch.dynamic_shared, std::byte{0xCB}),
      shared_(shared_bytes_.data(), shared_bytes_.size(), true) {
  const auto threads = static_cast<std::uint32_t>(grid.launch.block.count());
  warps_.reserve((threads + kLanes - 1) / kLanes);
  for (std::uint32_t first = 0; first < threads; first += kLanes)
    warps_.emplace_back(*this, first, std::min<std::uint32_t>(kLanes, threads - first));
}

bool Block::finished() const {
  return std::all_of(warps_.begin(), warps_.end(), [](const Warp& warp) { return warp.finished(); });
}

bool Block::step() {
  constexpr std::uint64_t kMost = 64;  // a warp runs at most this many instructions in one step
  const auto first = static_cast<std::size_t>(grid_.random() % warps_.size());
  const int most = 1 + static_cast<int>(grid_.random() % kMost);
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[(first + i) % warps_.size()];
    if (!warp.finished() && warp.step(most, grid_.random)) return true;
  }
  return false;
}

void Block::arrive(Warp& warp, const Instruction& instruction, Mask lanes, std::uint32_t id, std::uint32_t threads,
                   Mask votes) {
  Barrier& barrier = barriers_[id];
  barrier.arrived.push_back({&warp, &instruction, lanes, votes});
  barrier.count += static_cast<std::uint32_t>(std::popcount(lanes));
  const std::uint32_t all = threads > 0 ? threads : static_cast<std::uint32_t>(grid_.launch.block.count());
  if (barrier.count < all) return;
  if (barrier.count > all)
    warp.fault(instruction, std::countr_zero(lanes), "comes to a barrier that waits for fewer threads");
  std::uint32_t voters = 0;
  for (const Barrier::Arrival& one : barrier.arrived) voters += static_cast<std::uint32_t>(std::popcount(one.votes));
  const std::uint32_t epoch = next_epoch();
  const std::vector<Barrier::Arrival> arrived = std::move(barrier.arrived);
  barriers_.erase(id);
  Known known;
  for (const Barrier::Arrival& one : arrived) known = both(known, one.warp->known(one.lanes));
  for (const Barrier::Arrival& one : arrived) one.warp->learn(one.lanes, known);
  for (const Barrier::Arrival& one : arrived) {
    const Place& result = one.instruction->d;
    switch (one.instruction->reduction) {
      case Reduction::none:
        break;
      case Reduction::any:
        one.warp->set_predicate(result, voters > 0 ? kAllLanes : 0, one.lanes);
        break;
      case Reduction::all:
        one.warp->set_predicate(result, voters == all ? kAllLanes : 0, one.lanes);
        break;
      case Reduction::count:
        each_lane(one.lanes, [&](int lane) { one.warp->set_value(result, lane, voters); });
        break;
    }
    one.warp->pass_barrier(one.lanes, epoch, all == grid_.launch.block.count());
  }
}

std::string Block::standstill() const {
  for (const Warp& warp : warps_) {
    if (warp.waiting() == 0) continue;
    const int lane = std::countr_zero(warp.waiting());
    const Instruction& instruction = program().code[static_cast<std::size_t>(warp.pc(lane))];
    std::uint32_t waiting = 0, gone = 0;
    for (const Warp& one : warps_) {
      waiting += static_cast<std::uint32_t>(std::popcount(one.waiting()));
      gone += static_cast<std::uint32_t>(kLanes - std::popcount(one.alive()));
    }
    return program().name + ", " + program().where(instruction) + ": block " + std::to_string(number_) + ": " +
           std::to_string(waiting) + " threads, among them thread " +
           std::to_string(warp.first_thread() + static_cast<std::uint32_t>(lane)) +
           ", wait for others that never come; " + std::to_string(gone) + " are gone";
  }
  return {};
}

// The following function runs a grid.

Counts run(const Launch& launch, GlobalMemory& global, const LaunchOptions& options) {
  constexpr std::uint32_t kMostThreads = 1024, kMostRows = 65535;
  if (launch.block.count() > kMostThreads || launch.grid.y > kMostRows || launch.grid.z > kMostRows)
    throw Fault(launch.program->name + ": no device has room for such a grid");
  Grid grid{launch, options, global, {}, {}, std::mt19937_64(options.seed * 0x9e3779b97f4a7c15ULL + launch.number),
            {},     {}};
  std::vector<std::unique_ptr<Block>> resident;
  std::uint64_t next = 0;
  while (next < launch.grid.count() || !resident.empty()) {
    // Blocks begin in the order of their numbers. At most `resident_blocks` blocks run at the same time.
    while (resident.size() < options.resident_blocks && next < launch.grid.count())
      resident.push_back(std::make_unique<Block>(grid, next++));
    const auto first = static_cast<std::size_t>(grid.random() % resident.size());
    bool moved = false;
    for (std::size_t i = 0; i < resident.size() && !moved; ++i) {
      const std::size_t at = (first + i) % resident.size();
      moved = resident[at]->step();
      if (!resident[at]->finished()) continue;
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(at));
      moved = true;
    }
    if (!moved) throw Fault(resident[first]->standstill());
  }
  grid.counts.read_sectors = grid.read_sectors.size();
  grid.counts.written_sectors = grid.written_sectors.size();
  return grid.counts;
}

}  // namespace cairn::tests::ptx
