#include "cairn/tests/ptx/machine/memory.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace cairn::tests::ptx {
namespace {

constexpr int kBlockBits = 18, kThreadBits = 10, kEpochBits = 19;
constexpr Tag kNarrow = Tag{1} << 59, kStrong = Tag{1} << 60;
/// These bits of a Tag say that several threads have read the byte: threads of one warp (kManyLanes), of several warps
/// in a block (kManyWarps), or of several blocks (kManyBlocks).
constexpr Tag kManyLanes = Tag{1} << 61, kManyWarps = Tag{1} << 62, kManyBlocks = Tag{1} << 63;
constexpr Tag kMany = kManyLanes | kManyWarps | kManyBlocks;

constexpr Tag field(std::uint64_t value, int bits, int shift) { return (value & ((Tag{1} << bits) - 1)) << shift; }
constexpr int kEpochShift = 0, kThreadShift = kEpochBits, kBlockShift = kThreadShift + kThreadBits,
              kLaunchShift = kBlockShift + kBlockBits;

Tag tag_of(const Actor& actor) {
  if (actor.epoch >> kEpochBits != 0)
    throw std::runtime_error("a thread waited so often that races can no longer be found");
  return field(actor.epoch, kEpochBits, kEpochShift) | field(actor.thread, kThreadBits, kThreadShift) |
         field(actor.block, kBlockBits, kBlockShift) | field(actor.launch, kLaunchBits, kLaunchShift) |
         (actor.strong ? kStrong : 0) | (actor.narrow ? kNarrow : 0);
}
std::uint32_t get(Tag tag, int bits, int shift) {
  return static_cast<std::uint32_t>(tag >> shift & ((Tag{1} << bits) - 1));
}
std::uint32_t epoch_of(Tag tag) { return get(tag, kEpochBits, kEpochShift); }
std::uint32_t thread_of(Tag tag) { return get(tag, kThreadBits, kThreadShift); }
std::uint32_t block_of(Tag tag) { return get(tag, kBlockBits, kBlockShift); }

/// In a Clock, each block has kPlaces keys: one for the block as a whole, one for each warp, and one for each thread.
constexpr std::uint64_t kPlaces = 4096, kFirstThread = 64;
std::uint64_t of_block(std::uint32_t block) { return block * kPlaces; }
std::uint64_t of_warp(std::uint32_t block, std::uint32_t thread) { return block * kPlaces + 1 + thread / 32; }
std::uint64_t of_thread(std::uint32_t block, std::uint32_t thread) { return block * kPlaces + kFirstThread + thread; }

/// Returns whether `clock` says that the accesses recorded in `tag` happen before what comes next in the thread that
/// has acquired the clock.
bool knows(const Clock& clock, Tag tag) {
  const auto before = [&](std::uint64_t who) {
    const auto known = clock.find(who);
    return known != clock.end() && epoch_of(tag) < known->second;
  };
  const std::uint32_t other = block_of(tag), thread = thread_of(tag);
  if (before(of_block(other))) return true;
  if ((tag & (kManyWarps | kManyBlocks)) == 0 && before(of_warp(other, thread))) return true;
  return (tag & kMany) == 0 && before(of_thread(other, thread));
}

/// Returns whether the accesses recorded in `tag` are over for the actor's thread, i.e. happen before its next accesses
/// (see machine/memory.h).
bool over(Tag tag, const Actor& actor) {
  if (tag == 0 || get(tag, kLaunchBits, kLaunchShift) != (actor.launch & ((1U << kLaunchBits) - 1))) return true;
  const std::uint32_t epoch = epoch_of(tag);
  if ((tag & kManyBlocks) != 0) return false;
  if (block_of(tag) == (actor.block & ((1U << kBlockBits) - 1))) {
    if (epoch < actor.block_epoch) return true;
    if ((tag & kManyWarps) == 0 && thread_of(tag) / 32 == actor.thread / 32) {
      if (epoch < actor.warp_epoch) return true;
      if ((tag & kManyLanes) == 0 && epoch < actor.part_epoch && (actor.part >> thread_of(tag) % 32 & 1) != 0)
        return true;
    }
  }
  return actor.known != nullptr && knows(*actor.known, tag);
}

/// Returns whether the accesses recorded in `tag` cannot race with an access by the actor, whose own tag is `own`.
/// There is no race if the same thread made them, if all accesses are strong, or if the earlier accesses are over.
bool harmless(Tag tag, Tag own, const Actor& actor) {
  constexpr Tag kOwn = field(~Tag{0}, kThreadBits + kBlockBits + kLaunchBits, kThreadShift) | kMany;
  if (tag == 0 || ((tag ^ own) & kOwn) == 0) return true;
  if (actor.strong && (tag & kStrong) != 0) {
    const bool one_block = block_of(tag) == block_of(own) && (tag & kManyBlocks) == 0;
    if (one_block || ((tag | own) & kNarrow) == 0) return true;
  }
  return over(tag, actor);
}

std::string describe(Tag tag) {
  if ((tag & kManyBlocks) != 0) return "threads of several blocks";
  const std::string block = "block " + std::to_string(block_of(tag));
  if ((tag & kMany) != 0) return "several threads of " + block;
  return "thread " + std::to_string(thread_of(tag)) + " of " + block;
}

void raise(std::uint32_t& epoch, std::uint32_t to) { epoch = std::max(epoch, to); }

}  // namespace

Known both(const Known& a, const Known& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  auto clock = std::make_shared<Clock>(*a);
  for (const auto& [who, epoch] : *b) raise((*clock)[who], epoch);
  return clock;
}

void FenceOrder::release(std::uint64_t address, const LatestFence& fence, bool whole_device) {
  const Actor& actor = fence.actor;
  auto own = std::make_shared<Clock>();
  (*own)[of_block(actor.block)] = actor.block_epoch;
  (*own)[of_warp(actor.block, actor.thread)] = actor.warp_epoch;
  (*own)[of_thread(actor.block, actor.thread)] = actor.epoch;
  Known& released = released_[{address, whole_device ? kAll : actor.block}];
  released = both(released, both(fence.known, own));  // also publishes what the thread had acquired from other threads
}
Known FenceOrder::acquire(std::uint64_t address, std::uint32_t block, bool whole_device, const Known& known) const {
  Known result = known;
  for (const std::uint32_t scope : {block, kAll}) {
    if (scope == kAll && !whole_device) break;
    const auto found = released_.find({address, scope});
    if (found != released_.end()) result = both(result, found->second);
  }
  return result;
}

Region::Region(std::byte* base, std::size_t bytes, bool races)
    : base_(base), bytes_(bytes), written_(bytes, 0), cells_(races ? bytes : 0) {}

void Region::mark_written(std::uint64_t offset, std::uint64_t bytes) {
  std::memset(written_.data() + offset, 1, bytes);
}

void Region::mark_unwritten(std::uint64_t offset, std::uint64_t bytes) {
  std::memset(written_.data() + offset, 0, bytes);
}

void Region::forget_accesses() { std::fill(cells_.begin(), cells_.end(), Cell()); }

bool Region::written(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& first) const {
  const auto* begin = written_.data() + offset;
  const auto* found = static_cast<const std::uint8_t*>(std::memchr(begin, 0, bytes));
  if (found == nullptr) return true;
  first = offset + static_cast<std::uint64_t>(found - begin);
  return false;
}

std::string Region::read(std::uint64_t offset, std::uint64_t bytes, const Actor& actor) {
  if (cells_.empty()) return {};
  const Tag own = tag_of(actor);
  for (Cell* cell = cells_.data() + offset; cell != cells_.data() + offset + bytes; ++cell) {
    if (cell->read == own) continue;  // the same thread has already read the byte in this epoch
    if (!harmless(cell->write, own, actor)) return "was written by " + describe(cell->write);
    if (over(cell->read, actor)) {
      cell->read = own;
      continue;
    }
    // Another thread has read the byte, and this read is not over. From now on, the tag stands for both reads, because
    // a later write races with each of them that is not over by then.
    const bool same_block = block_of(cell->read) == block_of(own),
               same_warp = thread_of(cell->read) / 32 == thread_of(own) / 32;
    Tag many = cell->read & kMany;
    if (!same_block) {
      many |= kManyBlocks;
    } else if (!same_warp) {
      many |= kManyWarps;
    } else if (thread_of(cell->read) != thread_of(own)) {
      many |= kManyLanes;
    }
    const Tag latest = field(std::max(epoch_of(cell->read), epoch_of(own)), kEpochBits, kEpochShift);
    const Tag both_strong = cell->read & own & kStrong, narrow = (cell->read | own) & kNarrow;
    cell->read =
        (cell->read & ~(kStrong | field(~Tag{0}, kEpochBits, kEpochShift))) | latest | both_strong | narrow | many;
  }
  return {};
}

std::string Region::write(std::uint64_t offset, std::uint64_t bytes, const Actor& actor) {
  std::memset(written_.data() + offset, 1, bytes);
  if (cells_.empty()) return {};
  const Tag own = tag_of(actor);
  for (Cell* cell = cells_.data() + offset; cell != cells_.data() + offset + bytes; ++cell) {
    if (!harmless(cell->write, own, actor)) return "was written by " + describe(cell->write);
    if (!harmless(cell->read, own, actor)) return "was read by " + describe(cell->read);
    cell->write = own;
  }
  return {};
}

void GlobalMemory::add(void* base, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(base);
  latest_ = nullptr;
  regions_[address] = std::make_unique<Region>(static_cast<std::byte*>(base), bytes, true);
}
void GlobalMemory::remove(void* base) {
  latest_ = nullptr;
  regions_.erase(reinterpret_cast<std::uint64_t>(base));
}
void GlobalMemory::forget_accesses() {
  for (const auto& [address, region] : regions_) region->forget_accesses();
}
Region* GlobalMemory::find(std::uint64_t address) {
  if (latest_ != nullptr && latest_->offset_of(address) < latest_->bytes()) return latest_;
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const auto& [base, region] = *--after;
  if (address - base >= region->bytes()) return nullptr;
  return latest_ = region.get();
}
std::string GlobalMemory::describe(std::uint64_t address) const {
  const auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return "before every allocation";
  const auto& [base, region] = *std::prev(after);
  if (address - base < region->bytes())
    return std::to_string(address - base) + " bytes into an allocation of " + std::to_string(region->bytes());
  return std::to_string(address - base - region->bytes()) + " bytes behind an allocation of " +
         std::to_string(region->bytes());
}

}  // namespace cairn::tests::ptx
