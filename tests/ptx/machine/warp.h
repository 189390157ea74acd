#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "cairn/tests/ptx/code/program.h"
#include "cairn/tests/ptx/machine/memory.h"

/// These classes run a PTX program on blocks of warps. The lanes of a warp that are at the same instruction run it
/// together. The warp that runs next is chosen at random, so different seeds give different orders of execution.
namespace cairn::tests::ptx {

/// Is thrown if a kernel does something forbidden, such as an access outside of an allocation, a race or a deadlock.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// Counts what a kernel did, summed over all its warps. A request is a memory access of one warp, i.e. one instruction
/// that its lanes execute together.
struct Counts {
  std::array<std::uint64_t, static_cast<std::size_t>(Class::count)> warp_instructions{}, lane_instructions{};
  std::uint64_t divergent_branches = 0;
  /// global_sectors is the number of 32-byte units that requests touch.
  std::uint64_t global_requests = 0, global_sectors = 0;
  /// read_sectors is the number of different sectors that a launch reads before writing them, and written_sectors the
  /// number of different sectors that it writes.
  std::uint64_t read_sectors = 0, written_sectors = 0;
  /// shared_wavefronts is the number of passes over the memory banks. Bank conflicts cause additional passes.
  std::uint64_t shared_requests = 0, shared_wavefronts = 0;
  /// local_sectors is the number of 32-byte units of local memory that requests touch. A GPU interleaves the lanes of a
  /// warp: it stores the 32 words that the lanes have at one local address one after another.
  std::uint64_t local_requests = 0, local_sectors = 0;
  /// atomic_same_address is summed over the addresses of a request: the number of lanes that use the address, minus 1.
  std::uint64_t atomic_lanes = 0, atomic_same_address = 0;

  void add(const Counts& other);
  /// warps() sums warp_instructions over all classes, and lanes() sums lane_instructions.
  std::uint64_t warps() const;
  std::uint64_t lanes() const;
};

struct LaunchOptions {
  std::uint64_t seed = 0;
  std::uint32_t resident_blocks = 6;  ///< at most this many blocks run at the same time
  /// Whether to count sectors, wavefronts, and atomics at the same address. Counting them takes a long time.
  bool count_memory = false;
  bool reads_unwritten = false;  ///< whether the kernel may read memory that was never written
};

struct Launch {
  const Program* program = nullptr;
  Extent grid, block;
  std::vector<std::byte> params;
  std::size_t dynamic_shared = 0;
  std::uint32_t number = 1;  ///< number of the launch; accesses of different launches never race
};

/// The first generic addresses of shared memory (kSharedWindow) and of local memory (kLocalWindow). Pointers of the
/// host never lie in these ranges.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{0x51} << 56, kLocalWindow = std::uint64_t{0x52} << 56;
inline constexpr std::uint64_t kWindowMask = (std::uint64_t{1} << 56) - 1;

class Block;

class Warp {
 public:
  Warp(Block& block, std::uint32_t first_thread, std::uint32_t threads);

  /// Runs up to `most` instructions. Returns false if none of the lanes can run now.
  bool step(int most, std::mt19937_64& random);
  bool finished() const { return alive_ == 0; }
  Mask alive() const { return alive_; }
  Mask waiting() const { return waiting_; }
  std::int32_t pc(int lane) const { return pc_[lane]; }
  std::uint32_t first_thread() const { return first_; }
  Block& block() const { return block_; }

  /// Returns the values of an operand, one per lane. Bits must be std::uint32_t or std::uint64_t, as wide as the
  /// operand.
  template <class Bits>
  Bits* slots(const Place& place) {
    return reinterpret_cast<Bits*>(banks_[static_cast<int>(place.bank)] + place.offset);
  }
  Mask predicate(const Place& place) const { return predicates_[place.offset]; }
  void set_predicate(const Place& place, Mask value, Mask lanes) {
    Mask& old = predicates_[place.offset];
    old = (old & ~lanes) | (value & lanes);
  }
  /// value() returns the value of an operand in a lane, and set_value() sets it. The operand may have 32 or 64 bits.
  std::uint64_t value(const Place& place, int lane) {
    return place.slot == Slot::pair ? slots<std::uint64_t>(place)[lane] : slots<std::uint32_t>(place)[lane];
  }
  void set_value(const Place& place, int lane, std::uint64_t value) {
    if (place.slot == Slot::pair) {
      slots<std::uint64_t>(place)[lane] = value;
    } else {
      slots<std::uint32_t>(place)[lane] = static_cast<std::uint32_t>(value);
    }
  }
  /// Returns the address that the instruction accesses in this lane.
  std::uint64_t address(const Instruction& instruction, int lane) {
    return value(instruction.a, lane) + static_cast<std::uint64_t>(instruction.offset);
  }

  /// Throws a Fault. Its message names the place of the instruction and says that the thread in `lane` does `what`.
  [[noreturn]] void fault(const Instruction& instruction, int lane, const std::string& what) const;
  Actor actor(int lane, bool strong, bool narrow = false) const;
  /// Records that the lanes have waited for each other, so that the earlier accesses of each lane are over for all of
  /// them.
  void synchronise(Mask lanes);
  /// Lets lanes that wait at a barrier of the block continue behind it, in the new epoch `epoch`. `whole` says that all
  /// threads of the block have waited. If so, all earlier accesses of the block are over for these lanes.
  void pass_barrier(Mask lanes, std::uint32_t epoch, bool whole);
  /// Records that the lanes have executed a fence: their earlier accesses take effect before their later accesses. This
  /// order holds for the whole device if `whole_device` is set, and otherwise only for threads of the block.
  void fence(Mask lanes, bool whole_device);
  Mask carry = 0;  ///< carry bit of each lane, which add.cc sets
  /// Returns the thread as it was at its latest fence. If `whole_device` is set, only fences for the whole device
  /// count.
  const LatestFence& latest_fence(int lane, bool whole_device) const { return fenced_[lane][whole_device ? 1 : 0]; }
  /// Orders a lane after everything that other threads have published at the address (see FenceOrder).
  void acquire(int lane, std::uint64_t address, bool whole_device);
  /// Records that a lane has read an address at which other threads may have published accesses. The lane's next fence
  /// acquires these accesses.
  void note_read(int lane, std::uint64_t address, bool whole_device);
  /// known() returns the clock of what the lanes have acquired. learn() adds a clock to it.
  Known known(Mask lanes) const;
  void learn(Mask lanes, const Known& known);
  Region& local(int lane) { return *local_[lane]; }

 private:
  /// Begins the epoch `epoch` for lanes that have waited for each other.
  void enter(Mask lanes, std::uint32_t epoch);
  void choose(std::mt19937_64& random);
  void keep_place();
  void branch(const Instruction& instruction, Mask lanes);
  /// Makes `lanes` wait at their current instruction. The other running lanes continue behind it.
  void wait_here(Mask lanes);
  void collective(const Instruction& instruction, Mask lanes);
  void barrier(const Instruction& instruction, Mask lanes);

  Block& block_;
  const Program& program_;
  std::uint32_t first_;  ///< number, within the block, of the thread in lane 0
  Mask all_, alive_, waiting_ = 0;
  std::array<std::int32_t, kLanes> pc_{};
  Mask current_ = 0;  ///< lanes that run now, all at the same instruction
  /// at_ is the index of the instruction at which the running lanes are. limit_ is the index of the first later
  /// instruction at which other lanes are ready to run.
  std::int32_t at_ = 0, limit_ = 0;
  std::vector<std::byte> registers_, specials_;
  std::vector<Mask> predicates_;
  std::byte* banks_[3];
  std::array<std::uint32_t, kLanes> epoch_{}, warp_epoch_{}, part_epoch_{};
  std::array<Mask, kLanes> part_{};  ///< the lanes with which a lane waited last, unless it was the whole warp
  struct Read {
    std::uint64_t address;
    bool whole_device;
    bool operator==(const Read&) const = default;
  };
  /// fenced_[lane][0] is the latest fence of a lane, and fenced_[lane][1] the latest fence for the whole device.
  std::array<std::array<LatestFence, 2>, kLanes> fenced_{};
  std::array<std::vector<Read>, kLanes> read_;  ///< the reads after which the next fence must acquire
  std::array<Known, kLanes> known_;
  std::uint32_t block_epoch_ = 0;
  std::vector<std::byte> local_bytes_;
  std::vector<std::unique_ptr<Region>> local_;
};

/// The state that all blocks of a grid share.
struct Grid {
  const Launch& launch;
  const LaunchOptions& options;
  GlobalMemory& global;
  FenceOrder order;
  Counts counts;
  std::mt19937_64 random;
  std::unordered_set<std::uint64_t> read_sectors, written_sectors;  ///< filled only if options.count_memory is set
};

class Block {
 public:
  Block(Grid& grid, std::uint64_t number);

  Grid& grid() const { return grid_; }
  const Program& program() const { return *grid_.launch.program; }
  Region& shared() { return shared_; }
  std::uint32_t number() const { return number_; }
  Extent index() const { return index_; }
  bool finished() const;
  /// Runs a random number of instructions of a random warp. Returns false if no warp of the block can run.
  bool step();
  std::uint32_t next_epoch() { return ++epoch_; }

  /// Records that lanes of a warp have reached the barrier `id`. Once `threads` threads have reached it, all of them
  /// continue. If `threads` is 0, the barrier waits for all threads of the block. For a barrier that also combines
  /// predicates, `votes` has the lanes whose predicate is true.
  void arrive(Warp& warp, const Instruction& instruction, Mask lanes, std::uint32_t id, std::uint32_t threads,
              Mask votes);
  /// Returns a text for the report of a deadlock, which says how many threads wait, and where.
  std::string standstill() const;

 private:
  struct Barrier {
    struct Arrival {
      Warp* warp;
      const Instruction* instruction;
      Mask lanes, votes;
    };
    std::vector<Arrival> arrived;
    std::uint32_t count = 0;
  };
  Grid& grid_;
  std::uint32_t number_;
  Extent index_;
  std::vector<std::byte> shared_bytes_;
  Region shared_;
  std::vector<Warp> warps_;
  std::map<std::uint32_t, Barrier> barriers_;
  std::uint32_t epoch_ = 0;
};

/// Runs a kernel to its end and returns its counts. Throws a Fault if the kernel does something forbidden.
Counts run(const Launch& launch, GlobalMemory& global, const LaunchOptions& options);

}  // namespace cairn::tests::ptx
