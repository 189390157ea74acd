#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "cairn/tests/ptx/code/decoder.h"
#include "cairn/tests/ptx/code/integers.h"
#include "cairn/tests/ptx/code/lanes.h"

// This file implements accesses to memory: ld, st, atom, red, membar and fence. Every access is checked for faults.
namespace cairn::tests::ptx {
namespace {

/// The place to which an address points: a space, a region of memory in this space, and the offset in the region.
struct Spot {
  U64 address = 0;
  Space space = Space::global;
  Region* region = nullptr;
  U64 offset = 0;
};

/// Returns the number of bytes that one lane accesses.
U64 bytes_of(const Instruction& i) { return U64{i.bytes} * i.count; }

Space space_of(U64 generic) {
  const U64 window = generic & ~kWindowMask;
  return window == kSharedWindow ? Space::shared : window == kLocalWindow ? Space::local : Space::global;
}

Spot locate(Warp& warp, const Instruction& i, int lane) {
  const U64 address = warp.address(i, lane), bytes = bytes_of(i);
  if (address % bytes != 0)
    warp.fault(
        i, lane,
        "accesses " + std::to_string(bytes) + " bytes at " + fmt::format("{:#x}", address) + ", which is misaligned");
  Spot spot{address, i.space == Space::generic ? space_of(address) : i.space};
  if (spot.space == Space::shared || spot.space == Space::local) {
    spot.region = spot.space == Space::shared ? &warp.block().shared() : &warp.local(lane);
    spot.offset = i.space == Space::generic ? address & kWindowMask : address;
    if (!spot.region->holds(spot.offset, bytes))
      warp.fault(i, lane,
                 "accesses " + std::to_string(bytes) + " bytes at " + std::to_string(spot.offset) + " of " +
                     std::to_string(spot.region->bytes()) +
                     (spot.space == Space::shared ? " bytes of shared memory" : " bytes of local memory"));
    return spot;
  }
  GlobalMemory& global = warp.block().grid().global;
  spot.region = global.find(address);
  if (spot.region != nullptr) spot.offset = spot.region->offset_of(address);
  if (spot.region == nullptr || !spot.region->holds(spot.offset, bytes))
    warp.fault(i, lane,
               "accesses " + std::to_string(bytes) + " bytes at " + fmt::format("{:#x}", address) + ", " +
                   global.describe(address));
  return spot;
}

std::string name_of(Space space) {
  return space == Space::shared ? "shared" : space == Space::local ? "local" : "global";
}

void require_written(Warp& warp, const Instruction& i, int lane, const Spot& spot) {
  U64 first = 0;
  if (spot.region->written(spot.offset, bytes_of(i), first) || warp.block().grid().options.reads_unwritten) return;
  warp.fault(i, lane,
             "reads byte " + std::to_string(first) + " of " + std::to_string(spot.region->bytes()) + " of " +
                 name_of(spot.space) + " memory, which was never written");
}

void require_no_race(Warp& warp, const Instruction& i, int lane, const Spot& spot, const char* what,
                     const std::string& other) {
  if (other.empty()) return;
  warp.fault(i, lane,
             std::string(what) + " byte " + std::to_string(spot.offset) + " of " +
                 std::to_string(spot.region->bytes()) + " of " + name_of(spot.space) + " memory, which " + other +
                 ": a race");
}

/// Sorts the first `count` numbers and returns them without duplicates.
template <std::size_t kSize>
std::span<const U64> distinct(std::array<U64, kSize>& numbers, std::size_t count) {
  std::sort(numbers.begin(), numbers.begin() + count);
  return {numbers.begin(), std::unique(numbers.begin(), numbers.begin() + count)};
}

/// Divides memory into units of `size` bytes. Calls body(unit) for each unit that contains some of the `bytes` bytes
/// from `address` on.
template <class Body>
void each_unit(U64 address, U64 bytes, U64 size, const Body& body) {
  for (U64 unit = address / size; unit <= (address + bytes - 1) / size; ++unit) body(unit);
}

constexpr U64 kSectorBytes = 32, kWordBytes = 4;
using Addresses = std::array<U64, kLanes>;

void count_global(Grid& grid, const Instruction& i, Mask lanes, const Addresses& addresses) {
  std::array<U64, 2 * kLanes> sectors;
  std::size_t count = 0;
  each_lane(lanes, [&](int l) {
    each_unit(addresses[l], bytes_of(i), kSectorBytes, [&](U64 sector) { sectors[count++] = sector; });
  });
  const std::span<const U64> touched = distinct(sectors, count);
  grid.counts.global_sectors += touched.size();
  for (const U64 sector : touched) {
    if (i.kind != Class::store && !grid.written_sectors.contains(sector)) grid.read_sectors.insert(sector);
    if (i.kind != Class::load) grid.written_sectors.insert(sector);
  }
}

/// Counts how often the hardware must pass over the banks of shared memory for a request, i.e. a memory access of one
/// warp. For accesses of 8 bytes, each half of the warp is handled separately, and for 16 bytes, each quarter. Lanes
/// that access the same word do not conflict.
void count_shared(Grid& grid, const Instruction& i, Mask lanes, const Addresses& addresses) {
  const U64 bytes = bytes_of(i);
  const int parts = bytes > 8 ? 4 : bytes > 4 ? 2 : 1;
  for (int part = 0; part < parts; ++part) {
    std::array<U64, 4 * kLanes> words;
    std::size_t count = 0;
    each_lane(lanes, [&](int l) {
      if (l / (kLanes / parts) != part) return;
      each_unit(addresses[l], bytes, kWordBytes, [&](U64 word) { words[count++] = word; });
    });
    if (count == 0) continue;
    std::array<U32, 32> of_bank{};
    for (const U64 word : distinct(words, count)) ++of_bank[word % 32];
    grid.counts.shared_wavefronts += *std::max_element(of_bank.begin(), of_bank.end());
  }
}

void count_local(Grid& grid, const Instruction& i, Mask lanes, const Addresses& addresses) {
  constexpr U64 kLanesOfSector = kSectorBytes / kWordBytes, kSectorsOfWord = kLanes / kLanesOfSector;
  std::array<U64, 4 * kLanes> sectors;
  std::size_t count = 0;
  each_lane(lanes, [&](int l) {
    each_unit(addresses[l], bytes_of(i), kWordBytes,
              [&](U64 word) { sectors[count++] = word * kSectorsOfWord + static_cast<U64>(l) / kLanesOfSector; });
  });
  grid.counts.local_sectors += distinct(sectors, count).size();
}

/// Adds a request, i.e. a memory access of one warp, to the grid's Counts.
void count_request(Grid& grid, const Instruction& i, Mask lanes, const Addresses& addresses, Space space) {
  if (space == Space::global) ++grid.counts.global_requests;
  if (space == Space::shared) ++grid.counts.shared_requests;
  if (space == Space::local) ++grid.counts.local_requests;
  if (!grid.options.count_memory) return;
  if (space == Space::global) count_global(grid, i, lanes, addresses);
  if (space == Space::shared) count_shared(grid, i, lanes, addresses);
  if (space == Space::local) count_local(grid, i, lanes, addresses);
}

/// Returns a number that identifies the memory cell `spot` within the grid.
U64 key_of(const Warp& warp, const Spot& spot) {
  constexpr int kBlockShift = 24;  // shared memory is smaller than 2^24 bytes
  return spot.space == Space::global ? spot.address
                                     : kSharedWindow | U64{warp.block().number()} << kBlockShift | spot.offset;
}

/// Handles a load of an address at which other threads may have published accesses (see FenceOrder). If the load is an
/// acquire, these accesses happen before the lane's next accesses. If not, notes the address, so that this holds after
/// the lane's next fence.
void acquire(Warp& warp, const Instruction& i, const Spot& spot, int lane) {
  if (spot.space == Space::local) return;
  const U64 key = key_of(warp, spot);
  if (i.acquires) {
    warp.acquire(lane, key, i.whole_device);
  } else {
    warp.note_read(lane, key, i.whole_device);
  }
}

/// Publishes at the address the accesses that the lane made before its latest fence (see FenceOrder). If the
/// instruction is a release, the instruction itself counts as a fence of the lane.
void release(Warp& warp, const Instruction& i, const Spot& spot, int lane) {
  if (spot.space == Space::local) return;
  if (i.releases) warp.fence(Mask{1} << lane, i.whole_device);
  for (const bool whole_device : {false, true}) {
    const LatestFence& fence = warp.latest_fence(lane, whole_device);
    if (fence.actor.epoch == 0 || (whole_device && !i.whole_device)) continue;
    warp.block().grid().order.release(key_of(warp, spot), fence, whole_device);
  }
}

/// Copies the elements of a load from memory to a lane's registers. Narrow signed elements are sign-extended.
void take_elements(Warp& warp, const Instruction& i, int lane, const std::byte* from) {
  for (int k = 0; k < i.count; ++k, from += i.bytes) {
    const Place& to = i.elements[static_cast<std::size_t>(k)];
    if (!to.given()) continue;
    U64 value = 0;
    std::memcpy(&value, from, i.bytes);
    const int above = 64 - 8 * i.bytes;  // number of bits in 64 bits above the element
    if (i.is_signed) value = static_cast<U64>(static_cast<std::int64_t>(value << above) >> above);
    warp.set_value(to, lane, value);
  }
}

/// Calls body(lane, spot) for each lane of a request, where `spot` is the place that the lane accesses. Counts the
/// request. Returns the addresses of all lanes.
template <class Body>
Addresses access(Warp& warp, const Instruction& i, Mask lanes, const Body& body) {
  Addresses addresses{};
  Space space = i.space;
  each_lane(lanes, [&](int l) {
    const Spot spot = locate(warp, i, l);
    addresses[l] = spot.address;
    space = spot.space;
    body(l, spot);
  });
  count_request(warp.block().grid(), i, lanes, addresses, space);
  return addresses;
}

void load(Warp& warp, const Instruction& i, Mask lanes) {
  access(warp, i, lanes, [&](int l, const Spot& spot) {
    require_written(warp, i, l, spot);
    if (i.strong) acquire(warp, i, spot, l);
    require_no_race(warp, i, l, spot, "reads",
                    spot.region->read(spot.offset, bytes_of(i), warp.actor(l, i.strong, !i.whole_device)));
    take_elements(warp, i, l, spot.region->base() + spot.offset);
  });
}

/// Loads from the kernel's parameters. Kernels never write them and they are always initialised, so only bounds are
/// checked.
void load_param(Warp& warp, const Instruction& i, Mask lanes) {
  const std::vector<std::byte>& params = warp.block().grid().launch.params;
  each_lane(lanes, [&](int l) {
    const U64 address = warp.address(i, l);
    if (address > params.size() || bytes_of(i) > params.size() - address)
      warp.fault(i, l, "reads beyond the kernel's parameters");
    take_elements(warp, i, l, params.data() + address);
  });
}

void store(Warp& warp, const Instruction& i, Mask lanes) {
  access(warp, i, lanes, [&](int l, const Spot& spot) {
    require_no_race(warp, i, l, spot, "writes",
                    spot.region->write(spot.offset, bytes_of(i), warp.actor(l, i.strong, !i.whole_device)));
    if (i.strong) release(warp, i, spot, l);
    std::byte* to = spot.region->base() + spot.offset;
    for (int k = 0; k < i.count; ++k, to += i.bytes) {
      const U64 value = warp.value(i.elements[static_cast<std::size_t>(k)], l);
      std::memcpy(to, &value, i.bytes);
    }
  });
}

enum class Atomic : std::uint8_t { add, and_, or_, xor_, exch, cas, min, max, inc, dec, add_real };

template <class T>
T changed(Atomic operation, T old, T b, T c, bool is_signed) {
  using Signed = std::make_signed_t<T>;
  switch (operation) {
    case Atomic::add:
      return old + b;
    case Atomic::and_:
      return old & b;
    case Atomic::or_:
      return old | b;
    case Atomic::xor_:
      return old ^ b;
    case Atomic::exch:
      return b;
    case Atomic::cas:
      return old == b ? c : old;
    case Atomic::min:
      return is_signed ? static_cast<T>(std::min(static_cast<Signed>(old), static_cast<Signed>(b))) : std::min(old, b);
    case Atomic::max:
      return is_signed ? static_cast<T>(std::max(static_cast<Signed>(old), static_cast<Signed>(b))) : std::max(old, b);
    case Atomic::inc:
      return old >= b ? 0 : old + 1;
    case Atomic::dec:
      return old == 0 || old > b ? b : old - 1;
    case Atomic::add_real:
      if constexpr (sizeof(T) == 8) return std::bit_cast<T>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
      if constexpr (sizeof(T) == 4) return std::bit_cast<T>(std::bit_cast<float>(old) + std::bit_cast<float>(b));
  }
  return old;
}

template <class T>
void change(Warp& warp, const Instruction& i, Mask lanes) {
  const Addresses addresses = access(warp, i, lanes, [&](int l, const Spot& spot) {
    require_written(warp, i, l, spot);
    acquire(warp, i, spot, l);
    require_no_race(warp, i, l, spot, "changes",
                    spot.region->write(spot.offset, sizeof(T), warp.actor(l, true, !i.whole_device)));
    release(warp, i, spot, l);
    T old;
    std::memcpy(&old, spot.region->base() + spot.offset, sizeof(T));
    const T b = static_cast<T>(warp.slots<Bits<T>>(i.b)[l]);
    const T c = i.c.given() ? static_cast<T>(warp.slots<Bits<T>>(i.c)[l]) : T{0};
    const T now = changed(static_cast<Atomic>(i.operation), old, b, c, i.is_signed);
    std::memcpy(spot.region->base() + spot.offset, &now, sizeof(T));
    if (i.d.given()) warp.slots<Bits<T>>(i.d)[l] = old;
  });
  Grid& grid = warp.block().grid();
  grid.counts.atomic_lanes += static_cast<U64>(std::popcount(lanes));
  if (!grid.options.count_memory) return;
  std::array<U64, kLanes> sorted{};
  std::size_t count = 0;
  each_lane(lanes, [&](int l) { sorted[count++] = addresses[l]; });
  grid.counts.atomic_same_address += count - distinct(sorted, count).size();
}

void fence(Warp& warp, const Instruction& i, Mask lanes) { warp.fence(lanes, i.whole_device); }

Space space_named(const Statement& s) {
  if (s.has("global") || s.has("const")) return Space::global;
  if (s.has("shared") || s.has("shared::cta")) return Space::shared;
  if (s.has("local")) return Space::local;
  return s.has("param") ? Space::param : Space::generic;
}

/// Decodes the modifiers that every kind of access can have, such as space and type.
void decode_modifiers(const Statement& s, Instruction& into) {
  into.space = space_named(s);
  into.bytes = static_cast<std::uint8_t>(bits_of(type_of(s)) / 8);
  into.is_signed = type_of(s).front() == 's';
  into.whole_device = !s.has("cta");
  into.acquires = s.has("acquire") || s.has("acq_rel");
  into.releases = s.has("release") || s.has("acq_rel");
}

bool decode_access(const Statement& s, Decoder& decoder, Instruction& into, bool loads) {
  const int bits = bits_of(type_of(s));
  decode_modifiers(s, into);
  into.count = s.has("v4") ? 4 : s.has("v2") ? 2 : 1;
  into.strong = s.has("volatile") || s.has("relaxed") || s.has("acquire") || s.has("release");
  const Operand &address = s.operands[loads ? 1 : 0], &values = s.operands[loads ? 0 : 1];
  decoder.address(address, into);
  // A register can be wider than the element that is loaded or stored, so any width is accepted.
  const auto value = [&](const Operand& one) { return decoder.place_of_any_width(one, bits); };
  if (into.count == 1) {
    into.elements[0] = value(values);
  } else {
    if (values.kind != Operand::Kind::list || values.items.size() != into.count) return false;
    for (std::size_t k = 0; k < into.count; ++k) into.elements[k] = value(values.items[k]);
  }
  into.kind = loads ? Class::load : Class::store;
  if (into.space == Space::param) {
    into.run = loads ? &load_param : nullptr;
  } else {
    into.run = loads ? &load : &store;
  }
  return into.run != nullptr;
}

bool decode_atomic(const Statement& s, Decoder& decoder, Instruction& into) {
  static constexpr std::array<std::pair<std::string_view, Atomic>, 10> kNames{{{"add", Atomic::add},
                                                                               {"and", Atomic::and_},
                                                                               {"or", Atomic::or_},
                                                                               {"xor", Atomic::xor_},
                                                                               {"exch", Atomic::exch},
                                                                               {"cas", Atomic::cas},
                                                                               {"min", Atomic::min},
                                                                               {"max", Atomic::max},
                                                                               {"inc", Atomic::inc},
                                                                               {"dec", Atomic::dec}}};
  const std::string_view type = type_of(s);
  const auto* const name =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return s.has(one.first); });
  const int bits = bits_of(type);
  if (name == kNames.end() || (bits != 32 && bits != 64)) return false;
  Atomic operation = name->second;
  if (type.front() == 'f') {
    if (operation != Atomic::add) return false;
    operation = Atomic::add_real;
  }
  into.operation = static_cast<std::uint8_t>(operation);
  decode_modifiers(s, into);
  into.kind = Class::atomic;
  const bool returns = s.opcode == "atom";
  std::size_t next = 0;
  into.d = returns ? decoder.place(s.operands[next++], bits) : Place::none();
  decoder.address(s.operands[next++], into);
  into.b = decoder.place(s.operands[next++], bits);
  into.c = next < s.operands.size() ? decoder.place(s.operands[next], bits) : Place::none();
  into.run = bits == 64 ? &change<U64> : &change<U32>;
  return true;
}

}  // namespace

bool decode_accesses(const Statement& statement, Decoder& decoder, Instruction& into) {
  if (statement.opcode == "ld" || statement.opcode == "ldu") return decode_access(statement, decoder, into, true);
  if (statement.opcode == "st") return decode_access(statement, decoder, into, false);
  if (statement.opcode == "atom" || statement.opcode == "red") return decode_atomic(statement, decoder, into);
  if (statement.opcode != "membar" && statement.opcode != "fence") return false;
  into.run = &fence;
  into.whole_device = !statement.has("cta");
  into.kind = Class::fence;
  return true;
}

}  // namespace cairn::tests::ptx
