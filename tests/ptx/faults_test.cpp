// Tests that the interpreter reports a fault of a kernel in whatever order its threads run, and that it reports nothing
// for correct kernels.
#include <cstdint>
#include <functional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/ptx/kernel.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::ptx::faults_test {
namespace {

/// Runs the kernel with 20 seeds, each of which gives another order of execution. Returns the number of runs that end
/// with a fault. Checks that every fault's message contains a match of the regular expression `words`. If no fault is
/// expected, `words` is empty.
int faults(Kernel& kernel, const std::function<std::vector<std::uint64_t>(Memory&)>& params, Extent grid, Extent block,
           const std::string& words) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Memory memory;
    const std::vector<std::uint64_t> values = params(memory);
    try {
      kernel.run(memory, values, grid, block, seed);
    } catch (const Fault& fault) {
      ++found;
      INFO(fault.what());
      CHECK(!words.empty());
      CHECK(std::regex_search(fault.what(), std::regex(words)));
    }
  }
  return found;
}

std::vector<std::uint64_t> nothing(Memory&) { return {}; }
std::vector<std::uint64_t> hundred(Memory& memory) { return {address(memory.numbers(100))}; }
/// Makes memory for a number followed by a flag. The flag is 0. Returns the address of the number.
std::vector<std::uint64_t> flagged(Memory& memory) {
  std::uint64_t* const numbers = memory.numbers(2);
  numbers[1] = 0;
  return {address(numbers)};
}

/// Returns the text with each name replaced by its part. Each name must occur in the text exactly once.
std::string with(std::string text, const std::vector<std::pair<std::string, std::string>>& parts) {
  for (const auto& [name, part] : parts) text.replace(text.find(name), name.size(), part);
  return text;
}

const std::string kOwnSlot = R"(
ld.param.u64 %x0, [p0];
mov.u32 %w0, %tid.x;
mul.wide.u32 %x1, %w0, 8;
add.s64 %x2, %x0, %x1;
)";
/// The possible messages if a thread reads what another thread writes, and does not wait for that thread. The message
/// depends on whether the read or the write happens first.
const std::string kRaceOrUnwritten = "a race|shared memory, which was never written";
const std::string kShared = ".shared .align 8 .b8 room[1024];\n";
const std::string kOwnShared = R"(
mov.u32 %w0, %tid.x;
shl.b32 %w1, %w0, 3;
mov.u32 %w2, room;
add.s32 %w3, %w2, %w1;
cvt.u64.u32 %x3, %w0;
)";

}  // namespace

TEST_CASE("PTX: accesses outside of an allocation, or misaligned, are faults") {
  Kernel beyond(1, kOwnSlot + "st.global.u64 [%x2], %x1;");
  CHECK(faults(beyond, hundred, {1}, {100}, "") == 0);
  CHECK(faults(beyond, hundred, {1}, {101}, "0 bytes behind an allocation of 800") == 20);
  Kernel across(1, kOwnSlot + "ld.global.u32 %w1, [%x0+798];");
  CHECK(faults(across, hundred, {1}, {1}, "misaligned") == 20);
  Kernel before(1, kOwnSlot + "ld.global.u64 %x3, [%x0+-8];");
  CHECK(faults(before, hundred, {1}, {1}, "before every allocation") == 20);
  Kernel shared(0, kOwnShared + "st.shared.u64 [%w3], %x3;", kShared);
  CHECK(faults(shared, nothing, {1}, {128}, "") == 0);
  CHECK(faults(shared, nothing, {1}, {129}, "1024 bytes of shared memory") == 20);
}

TEST_CASE("PTX: a report names the kernel, the lines, the block and the thread") {
  const std::string file = ".file 1 \"/source/own.cu\"\n";
  const std::string text =
      "mov.u32 %w4, %ctaid.x;\nmad.lo.s32 %w5, %w4, 60, %w0;\nmul.wide.u32 %x3, %w5, 8;\n"
      "add.s64 %x4, %x0, %x3;\n.loc 1 30 5\nst.global.u64 [%x4], %x3;\n.loc 1 31 5\n";
  // The store is in line 21: 10 lines come before kOwnSlot, kOwnSlot has 5 lines, and 5 more lines come before the
  // store.
  Kernel beyond(1, kOwnSlot + text, file);
  CHECK(faults(beyond, hundred, {2}, {40}, "") == 0);
  CHECK(faults(beyond, hundred, {2}, {60},
               "^test, PTX line 21, own.cu:30: block 1, thread 40 accesses 8 bytes at 0x[0-9a-f]+, 0 bytes behind an "
               "allocation of 800") == 20);
  // In this text, the compiler has inlined a function of lanes.h into a function of machine.cuh, that one into another
  // function of machine.cuh, and that one into own.cu. The report must name the innermost line of each file.
  Kernel inlined(
      1,
      kOwnSlot +
          ".loc 1 60 3\nmov.u32 %w4, 0;\n.loc 2 50 9, function_name $L, inlined_at 1 60 3\n"
          ".loc 2 55 9, function_name $L, inlined_at 2 50 9\n.loc 3 70 1, function_name $L, inlined_at 2 55 9"
          "\nld.global.u64 %x3, [%x0+-8];",
      file + ".file 2 \"/machine.cuh\"\n.file 3 \"lanes.h\"\n");
  CHECK(faults(inlined, hundred, {1}, {1},
               "^test, PTX line 23, lanes.h:70, called at machine.cuh:55, called at own.cu:60: block 0, thread 0 ") ==
        20);
  Kernel left(0,
              ".loc 1 40 1\nmov.u32 %w0, %tid.x;\nsetp.eq.s32 %p0, %w0, 40;\n@%p0 bra $END;\nbar.sync 0;\n$END:", file);
  CHECK(faults(left, nothing, {1}, {64},
               "^test, PTX line 15, own.cu:40: block 0: 63 threads, among them thread 0, wait for others that never "
               "come; 1 are gone$") == 20);
  Kernel no_file(1, kOwnSlot + "ld.global.u64 %x3, [%x0+-8];");
  CHECK(faults(no_file, hundred, {1}, {1}, "^test, PTX line 15: block 0, thread 0 accesses") == 20);
}

TEST_CASE("PTX: opcodes with modifiers that are not implemented are refused") {
  const auto refused = [](const std::string& text) {
    try {
      Kernel kernel(1, text);
    } catch (const std::runtime_error& error) {
      INFO(error.what());
      CHECK(contains(error.what(), "test, PTX line 10, " + text.substr(0, text.find_first_of(" ;")) + ": "));
      return contains(error.what(), "not implemented with these modifiers");
    }
    return false;
  };
  // In each pair, the first instruction is implemented. The second has a modifier that is not implemented,
  // and must be refused.
  const std::pair<std::string, std::string> pairs[] = {
      {"fence.acq_rel.gpu;", "fence.proxy.alias;"},
      {"fence.sc.cta;", "fence.acq_rel.cluster;"},
      {"membar.gl;", "membar.proxy.async;"},
      {"atom.global.add.u32 %w1, [%x0], 1;", "atom.global.add.noftz.f16x2 %w1, [%x0], %w2;"},
      {"red.relaxed.gpu.global.max.s32 [%x0], 1;", "red.relaxed.cluster.global.max.s32 [%x0], 1;"},
      {"ld.relaxed.gpu.global.v2.u32 {%w1, %w2}, [%x0];", "ld.mmio.relaxed.sys.global.u32 %w1, [%x0];"},
      {"ld.global.nc.L1::no_allocate.u32 %w1, [%x0];", "ld.global.v8.u32 %w1, [%x0];"},
      {"st.global.cs.f32 [%x0], %w1;", "st.async.shared::cluster.u32 [%x0], %w1;"},
      {"add.rn.ftz.f32 %w1, %w2, %w3;", "add.rz.f32 %w1, %w2, %w3;"},
      {"add.s32 %w1, %w2, %w3;", "add.sat.s32 %w1, %w2, %w3;"},
      {"sub.s32 %w1, %w2, %w3;", "sub.cc.s32 %w1, %w2, %w3;"},
      {"mul.lo.s32 %w1, %w2, %w3;", "mul.s32 %w1, %w2, %w3;"},
      {"mad.lo.s32 %w1, %w2, %w3, %w4;", "mad.lo.cc.s32 %w1, %w2, %w3, %w4;"},
      {"max.f32 %w1, %w2, %w3;", "max.NaN.f32 %w1, %w2, %w3;"},
      {"fma.rn.f32 %w1, %w2, %w3, %w4;", "fma.rn.relu.f32 %w1, %w2, %w3, %w4;"},
      {"ex2.approx.ftz.f32 %w1, %w2;", "rcp.approx.ftz.f64 %x1, %x2;"},
      {"setp.lt.and.f32 %p1, %w1, %w2, %p2;", "setp.lt.ftz.f32 %p1, %w1, %w2;"},
      {"cvt.rn.bf16.f32 %h1, %w1;", "cvt.rz.bf16.f32 %h1, %w1;"},
      {"cvt.rzi.s32.f32 %w1, %w2;", "cvt.s32.f32 %w1, %w2;"},
      {"lop3.b32 %w1, %w2, %w3, %w4, 0xd8;", "lop3.or.b32 %w1, %w2, %w3, %w4, 0xd8;"},
      {"prmt.b32 %w1, %w2, %w3, %w4;", "prmt.b32.f4e %w1, %w2, %w3, %w4;"},
      {"bar.warp.sync -1;", "barrier.cluster.sync.aligned;"},
      {"vote.sync.ballot.b32 %w1, %p1, -1;", "vote.ballot.b32 %w1, %p1;"},
      {"shfl.sync.up.b32 %w1, %w2, 1, 0, -1;", "shfl.up.b32 %w1, %w2, 1, 0;"},
      {"cvta.to.global.u64 %x1, %x2;", "cvta.to.shared::cluster.u64 %x1, %x2;"},
      {"bra.uni $END;\n$END:", "bra.div $END;\n$END:"},
  };
  for (const auto& [known, unknown] : pairs) {
    INFO(known << " " << unknown);
    CHECK_NOTHROW(Kernel(1, known));
    CHECK(refused(unknown));
  }
}

TEST_CASE("PTX: reads of what was never written are faults") {
  const auto unwritten = [](Memory& memory) { return std::vector<std::uint64_t>{address(memory.numbers(4, false))}; };
  Kernel reads(1, kOwnSlot + "ld.global.u64 %x3, [%x2];");
  CHECK(faults(reads, unwritten, {1}, {4}, "global memory, which was never written") == 20);
  Kernel writes_first(1, kOwnSlot + "st.global.u64 [%x2], %x1;\nld.global.u64 %x3, [%x2];");
  CHECK(faults(writes_first, unwritten, {1}, {4}, "") == 0);
  Kernel half(1, kOwnSlot + "st.global.u32 [%x2], %w0;\nld.global.u64 %x3, [%x2];");
  CHECK(faults(half, unwritten, {1}, {1}, "reads byte 4 of 32") == 20);
  Kernel shared(0, kOwnShared + "ld.shared.u64 %x4, [%w3];", kShared);
  CHECK(faults(shared, nothing, {1}, {4}, "shared memory, which was never written") == 20);
  Kernel local(0,
               ".local .align 8 .b8 own[16];\nmov.u64 %x0, own;\nst.local.u64 [%x0], %x1;\nld.local.u64 %x2, [%x0+8];");
  CHECK(faults(local, nothing, {1}, {2}, "local memory, which was never written") == 20);
}

TEST_CASE("PTX: races in shared memory are faults, and barriers end them") {
  const std::string write = kOwnShared + "st.shared.u64 [%w3], %x3;\n";
  const std::string read_next = R"(
add.s32 %w4, %w0, 1;
and.b32 %w4, %w4, 127;
shl.b32 %w4, %w4, 3;
add.s32 %w5, %w2, %w4;
ld.shared.u64 %x4, [%w5];
)";
  Kernel fair(0, write + "bar.sync 0;" + read_next, kShared);
  CHECK(faults(fair, nothing, {2}, {128}, "") == 0);
  Kernel racing(0, write + read_next, kShared);
  CHECK(faults(racing, nothing, {2}, {128}, kRaceOrUnwritten) == 20);
  Kernel twice(0, write + "bar.sync 0;" + read_next + "st.shared.u64 [%w3], %x3;", kShared);
  // There is no barrier between a thread's read and the next write to the same word, which is a race.
  CHECK(faults(twice, nothing, {1}, {128}, "a race") == 20);
  // Lanes 0 to 15 wait for each other, but lane 16 does not take part. Then lane 15 reads the word that lane 16 writes,
  // which is a race.
  Kernel in_part(0, write + R"(
setp.ge.s32 %p1, %w0, 16;
@%p1 bra $END;
bar.warp.sync 0xffff;
setp.ne.s32 %p2, %w0, 15;
@%p2 bra $END;
ld.shared.u64 %x4, [%w3+8];
$END:
)",
                 kShared);
  CHECK(faults(in_part, nothing, {1}, {32}, kRaceOrUnwritten) == 20);
  // A barrier of the warp is not enough, because the last lane of a warp reads what the next warp writes.
  Kernel in_a_warp(0, write + "bar.warp.sync -1;" + read_next, kShared);
  CHECK(faults(in_a_warp, nothing, {1}, {128}, kRaceOrUnwritten) == 20);
  const std::string same_place = "mov.u32 %w6, room;\nmov.u64 %x5, 1;\n";
  Kernel atomics(0, same_place + "st.shared.u64 [%w6], %x5;\n", kShared);
  CHECK(faults(atomics, nothing, {1}, {1}, "") == 0);
  CHECK(faults(atomics, nothing, {1}, {2}, "a race") == 20);
  Kernel counted(0,
                 "mov.u32 %w6, room;\nmov.u32 %w0, %tid.x;\nsetp.ne.s32 %p0, %w0, 0;\n@%p0 bra $GO;\nmov.u32 %w7, 0;\n"
                 "st.shared.u32 [%w6], %w7;\n$GO:\nbar.sync 0;\natom.shared.add.u32 %w8, [%w6], 1;",
                 kShared);
  CHECK(faults(counted, nothing, {1}, {128}, "") == 0);
}

TEST_CASE("PTX: races between blocks are faults, unless a fence and an atomic order them") {
  const std::string own_block = "ld.param.u64 %x0, [p0];\nmov.u32 %w0, %ctaid.x;\nmov.u32 %w9, %tid.x;\n";
  Kernel racing(1, own_block + "st.global.u32 [%x0], %w0;");
  CHECK(faults(racing, hundred, {1}, {1}, "") == 0);
  CHECK(faults(racing, hundred, {2}, {1}, "a race") == 20);
  Kernel adding(1, own_block + "red.global.add.u32 [%x0], 1;");
  CHECK(faults(adding, hundred, {8}, {32}, "") == 0);
  // The block that increments the counter last reads what all other blocks have written.
  const std::string write =
      own_block + "mul.wide.u32 %x1, %w0, 8;\nadd.s64 %x2, %x0, %x1;\nst.global.u64 [%x2+8], %x1;\n";
  const std::string count = R"(
atom.global.add.u32 %w1, [%x0], 1;
setp.ne.s32 %p0, %w1, 3;
@%p0 bra $END;
membar.gl;
ld.global.u64 %x3, [%x0+8];
ld.global.u64 %x4, [%x0+16];
ld.global.u64 %x5, [%x0+24];
ld.global.u64 %x6, [%x0+32];
$END:
)";
  Kernel fenced(1, write + "membar.gl;" + count);
  CHECK(faults(fenced, hundred, {4}, {1}, "") == 0);
  Kernel unfenced(1, write + count);
  CHECK(faults(unfenced, hundred, {4}, {1}, "a race") == 20);
  // The reading block needs a fence, too. Without it, there is a race.
  Kernel unread(1, write + "membar.gl;" + with(count, {{"membar.gl;", ""}}));
  CHECK(faults(unread, hundred, {4}, {1}, "a race") == 20);
  // A fence by one thread does not publish what other threads of its block wrote, unless a barrier comes between their
  // writes and the fence.
  const std::string by_all = own_block + R"(
mov.u32 %w2, %ntid.x;
mad.lo.s32 %w3, %w0, %w2, %w9;
mul.wide.u32 %x1, %w3, 8;
add.s64 %x2, %x0, %x1;
st.global.u64 [%x2+8], %x1;
BARRIER
setp.ne.s32 %p1, %w9, 0;
@%p1 bra $END;
membar.gl;
atom.global.add.u32 %w1, [%x0], 1;
setp.ne.s32 %p0, %w1, 1;
@%p0 bra $END;
membar.gl;
ld.global.u64 %x3, [%x0+8];
ld.global.u64 %x4, [%x0+240];
ld.global.u64 %x5, [%x0+360];
ld.global.u64 %x6, [%x0+640];
$END:
)";
  Kernel met(1, with(by_all, {{"BARRIER", "bar.sync 0;"}}));
  CHECK(faults(met, hundred, {2}, {40}, "") == 0);
  Kernel apart(1, with(by_all, {{"BARRIER", ""}}));
  // At least 19 of the 20 runs must report the race. In a rare run, the reading block is so early that nothing was
  // written yet, and there is no race.
  CHECK(faults(apart, hundred, {2}, {40}, "a race") >= 19);
}

TEST_CASE("PTX: fences and atomics of a block's scope order threads of the block only") {
  // Thread 0 of a block writes a number and then a flag. Another thread waits for the flag and then reads the number.
  const std::string text = R"(
ld.param.u64 %x0, [p0];
mov.u32 %w0, INDEX;
setp.ne.s32 %p0, %w0, 0;
@%p0 bra $WAIT;
st.global.u64 [%x0], %x0;
WRITER
bra $END;
$WAIT:
READER
setp.eq.s32 %p1, %w1, 0;
@%p1 bra $WAIT;
FENCE
ld.global.u64 %x3, [%x0];
$END:
)";
  const auto kernel = [&](const std::string& index, const std::string& writer, const std::string& reader,
                          const std::string& fence) {
    return Kernel(1, with(text, {{"INDEX", index}, {"WRITER", writer}, {"READER", reader}, {"FENCE", fence}}));
  };
  const std::string flag = "st.relaxed.gpu.global.u32 [%x0+8], 1;", seen = "ld.relaxed.gpu.global.u32 %w1, [%x0+8];";
  const std::string narrow_flag = "st.relaxed.cta.global.u32 [%x0+8], 1;";
  const std::string narrow_seen = "ld.relaxed.cta.global.u32 %w1, [%x0+8];";
  const std::string wide = "fence.acq_rel.gpu;", narrow = "fence.acq_rel.cta;", thread = "%tid.x", block = "%ctaid.x";
  const auto faults_of = [](Kernel one, Extent grid, Extent threads, const std::string& words) {
    return faults(one, flagged, grid, threads, words);
  };
  CHECK(faults_of(kernel(thread, narrow + narrow_flag, narrow_seen, narrow), {1}, {40}, "") == 0);
  CHECK(faults_of(kernel(block, wide + flag, seen, wide), {3}, {1}, "") == 0);
  // In each of the next three cases, one scope is too narrow, so there is a race. It is the scope of the writer's
  // fence, of the reader's fence, or of the accesses to the flag.
  CHECK(faults_of(kernel(block, narrow + flag, seen, wide), {3}, {1}, "a race") == 20);
  CHECK(faults_of(kernel(block, wide + flag, seen, narrow), {3}, {1}, "a race") == 20);
  CHECK(faults_of(kernel(block, wide + narrow_flag, narrow_seen, wide), {3}, {1}, "a race") == 20);
  // An additional fence of the block's scope does not weaken a fence of the device's scope.
  CHECK(faults_of(kernel(block, wide + narrow + flag, seen, narrow + wide), {3}, {1}, "") == 0);
  const std::string release = "st.release.gpu.global.u32 [%x0+8], 1;", narrow_release = with(release, {{"gpu", "cta"}});
  const std::string acquire = "ld.acquire.gpu.global.u32 %w1, [%x0+8];";
  CHECK(faults_of(kernel(block, release, acquire, ""), {3}, {1}, "") == 0);
  CHECK(faults_of(kernel(block, narrow_release, acquire, ""), {3}, {1}, "a race") == 20);
}

TEST_CASE("PTX: what a thread acquires counts for others once they have waited for it") {
  // Block 0 writes a number and then a flag. Thread 0 of block 1 waits for the flag, i.e. acquires the number. Then
  // another thread of block 1, or thread 0 itself, reads the number.
  const std::string text = R"(
ld.param.u64 %x0, [p0];
mov.u32 %w0, %ctaid.x;
mov.u32 %w9, %tid.x;
setp.ne.s32 %p0, %w0, 0;
@%p0 bra $READER;
setp.ne.s32 %p1, %w9, 0;
@%p1 bra $END;
st.global.u64 [%x0], %x0;
membar.gl;
st.volatile.global.u32 [%x0+8], 1;
bra $END;
$READER:
setp.ne.s32 %p1, %w9, 0;
@%p1 bra $MEET;
$WAIT:
ld.volatile.global.u32 %w1, [%x0+8];
setp.eq.s32 %p2, %w1, 0;
@%p2 bra $WAIT;
membar.gl;
$MEET:
BARRIER
setp.ne.s32 %p3, %w9, READS;
@%p3 bra $END;
ld.global.u64 %x3, [%x0];
$END:
)";
  const auto faults_with = [&](const std::string& barrier, const std::string& reads, const std::string& words) {
    Kernel kernel(1, with(text, {{"BARRIER", barrier}, {"READS", reads}}));
    return faults(kernel, flagged, {2}, {64}, words);
  };
  CHECK(faults_with("", "0", "") == 0);
  CHECK(faults_with("bar.sync 0;", "33", "") == 0);
  CHECK(faults_with("", "33", "a race") >= 18);  // in rare runs, the read happens before everything else
  CHECK(faults_with("bar.warp.sync -1;", "7", "") == 0);
  CHECK(faults_with("bar.warp.sync -1;", "33", "a race") >= 18);  // thread 33 is in another warp than thread 0
}

TEST_CASE("PTX: wrong strides, bounds and counts of threads are faults") {
  // Each thread writes two numbers to its slot of `stride` bytes. If the stride is too small, the slots overlap.
  const auto two = [](const std::string& stride) {
    return "ld.param.u64 %x0, [p0];\nmov.u32 %w0, %tid.x;\nmul.wide.u32 %x1, %w0, " + stride +
           ";\nadd.s64 %x2, %x0, %x1;\nst.global.u64 [%x2], %x1;\nst.global.u64 [%x2+8], %x1;";
  };
  Kernel apart(1, two("16"));
  CHECK(faults(apart, hundred, {1}, {50}, "") == 0);
  Kernel overlapping(1, two("8"));
  CHECK(faults(overlapping, hundred, {1}, {50}, "a race") == 20);
  // Each thread writes its own word. After a barrier, each thread adds up the first `count` words.
  const auto sum = [](const std::string& count) {
    return kOwnShared + "st.shared.u64 [%w3], %x3;\nbar.sync 0;\nmov.u32 %w6, 0;\nmov.u32 %w7, room;\n$NEXT:\n" +
           "ld.shared.u64 %x4, [%w7];\nadd.s32 %w7, %w7, 8;\nadd.s32 %w6, %w6, 1;\nsetp.lt.s32 %p0, %w6, " + count +
           ";\n@%p0 bra $NEXT;";
  };
  Kernel all(0, sum("64"), kShared);
  CHECK(faults(all, nothing, {1}, {64}, "") == 0);
  Kernel one_more(0, sum("65"), kShared);
  CHECK(faults(one_more, nothing, {1}, {64}, "which was never written") == 20);
  // The threads with numbers below 32, which are half of the block, wait at a barrier for `threads` threads.
  const auto half = [](const std::string& threads) {
    return "mov.u32 %w0, %tid.x;\nsetp.ge.s32 %p0, %w0, 32;\n@%p0 bra $END;\nbar.sync 1, " + threads + ";\n$END:";
  };
  Kernel fitting(0, half("32"));
  CHECK(faults(fitting, nothing, {1}, {64}, "") == 0);
  Kernel too_many(0, half("64"));
  CHECK(faults(too_many, nothing, {1}, {64}, "wait for others that never come") == 20);
  Kernel counts(0, "mov.u32 %w6, room;\natom.shared.add.u32 %w8, [%w6], 1;", kShared);
  // No thread has set the counter to zero before the first increment.
  CHECK(faults(counts, nothing, {1}, {64}, "which was never written") == 20);
}

TEST_CASE("PTX: barriers and exchanges that not all come to are faults") {
  Kernel left(0, "mov.u32 %w0, %tid.x;\nsetp.eq.s32 %p0, %w0, 40;\n@%p0 bra $END;\nbar.sync 0;\n$END:");
  CHECK(faults(left, nothing, {1}, {64}, "wait for others that never come") == 20);
  Kernel gone(0, "mov.u32 %w0, %tid.x;\nsetp.ne.s32 %p0, %w0, 5;\n@%p0 bra $GO;\nret;\n$GO:\nbar.warp.sync -1;");
  CHECK(faults(gone, nothing, {1}, {32}, "gone") == 20);
  Kernel apart(
      0,
      "mov.u32 %w0, %tid.x;\nsetp.lt.s32 %p0, %w0, 16;\n@%p0 bra $LOW;\n"
      "shfl.sync.down.b32 %w1, %w0, 1, 31, -1;\nbra $END;\n$LOW:\nshfl.sync.down.b32 %w1, %w0, 1, 31, -1;\n$END:");
  CHECK(faults(apart, nothing, {1}, {32}, "wait for others that never come") == 20);
  Kernel halves(0,
                "mov.u32 %w0, %tid.x;\nsetp.lt.s32 %p0, %w0, 16;\n@%p0 bra $LOW;\n"
                "shfl.sync.idx.b32 %w1, %w0, 20, 31, 0xffff0000;\nbra $END;\n$LOW:\n"
                "shfl.sync.idx.b32 %w1, %w0, 3, 31, 0x0000ffff;\n$END:");
  CHECK(faults(halves, nothing, {1}, {32}, "") == 0);
  Kernel unnamed(0, "mov.u32 %w0, %tid.x;\nshfl.sync.idx.b32 %w1, %w0, 0, 31, 1;");
  CHECK(faults(unnamed, nothing, {1}, {32}, "not named by its own mask") == 20);
  Kernel stray(0,
               "mov.u32 %w0, %tid.x;\nsetp.lt.s32 %p0, %w0, 16;\n@!%p0 bra $END;\n"
               "shfl.sync.idx.b32 %w1, %w0, 20, 31, 0x0000ffff;\n$END:");
  CHECK(faults(stray, nothing, {1}, {32}, "which takes no part") == 20);
}

TEST_CASE("PTX: exchanges, votes and reductions of barriers") {
  Kernel kernel(1, kOwnSlot + R"(
shfl.sync.up.b32 %w1|%p1, %w0, 1, 0, -1;
shfl.sync.down.b32 %w2, %w0, 2, 31, -1;
shfl.sync.bfly.b32 %w3, %w0, 5, 31, -1;
shfl.sync.idx.b32 %w4, %w0, 7, 0x181f, -1;
and.b32 %w5, %w0, 1;
setp.ne.s32 %p2, %w5, 0;
vote.sync.ballot.b32 %w6, %p2, -1;
vote.sync.any.pred %p3, !%p2, -1;
vote.sync.all.pred %p4, %p2, -1;
bar.red.or.pred %p5, 0, %p2;
bar.red.popc.u32 %w7, 0, %p2;
selp.b32 %w8, 1, 0, %p1;
selp.b32 %w9, 2, 0, %p3;
selp.b32 %w10, 4, 0, %p4;
selp.b32 %w11, 8, 0, %p5;
or.b32 %w8, %w8, %w9;
or.b32 %w10, %w10, %w11;
or.b32 %w8, %w8, %w10;
mul.wide.u32 %x1, %w0, 32;
add.s64 %x2, %x0, %x1;
st.global.v4.u32 [%x2], {%w1, %w2, %w3, %w4};
st.global.v2.u32 [%x2+16], {%w6, %w7};
st.global.u32 [%x2+24], %w8;
)");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Memory memory;
    std::uint64_t* const out = memory.numbers(4 * 64);
    kernel.run(memory, {address(out)}, {1}, {64}, seed);
    for (std::uint32_t t = 0; t < 64; ++t) {
      const auto* const own = reinterpret_cast<const std::uint32_t*>(out + 4 * t);
      const std::uint32_t lane = t % 32, first = t - lane;
      REQUIRE(own[0] == (lane == 0 ? t : t - 1));
      REQUIRE(own[1] == (lane < 30 ? t + 2 : t));
      REQUIRE(own[2] == first + (lane ^ 5));
      // The lanes form segments (0 to 7, 8 to 15, ...), and each lane reads the last lane of its segment.
      REQUIRE(own[3] == first + lane / 8 * 8 + 7);
      REQUIRE(own[4] == 0xaaaaaaaa);
      REQUIRE(own[5] == 32);
      REQUIRE(own[6] == ((lane == 0 ? 0 : 1) | 2 | 8));
    }
  }
}

TEST_CASE("PTX: threads of a warp that wait for each other, and blocks that wait for blocks, go on") {
  // Every lane takes the same lock. The lane that holds it is further ahead in the code than the lanes that spin for
  // it. The interpreter must run that lane, too, or the kernel would never end.
  Kernel lock(1, R"(
ld.param.u64 %x0, [p0];
$AGAIN:
atom.global.cas.b32 %w0, [%x0], 0, 1;
setp.ne.s32 %p0, %w0, 0;
@%p0 bra $AGAIN;
ld.volatile.global.u32 %w1, [%x0+8];
add.s32 %w1, %w1, 1;
st.volatile.global.u32 [%x0+8], %w1;
membar.gl;
atom.global.exch.b32 %w2, [%x0], 0;
)");
  // Each block waits for the previous block, as in a prefix sum with look-back.
  Kernel chain(1, R"(
ld.param.u64 %x0, [p0];
mov.u32 %w0, %ctaid.x;
mul.wide.u32 %x1, %w0, 8;
add.s64 %x2, %x0, %x1;
$WAIT:
ld.relaxed.gpu.u64 %x3, [%x2];
setp.eq.s64 %p0, %x3, 0;
@%p0 bra $WAIT;
add.s64 %x3, %x3, 1;
st.relaxed.gpu.u64 [%x2+8], %x3;
)");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Memory memory;
    std::uint64_t* const numbers = memory.numbers(64);
    lock.run(memory, {address(numbers)}, {2}, {8}, seed);
    CHECK(numbers[1] == 16);
    std::uint64_t* const links = memory.numbers(64);
    links[0] = 1;
    chain.run(memory, {address(links)}, {40}, {1}, seed);
    CHECK(links[40] == 41);
  }
}

TEST_CASE("PTX: counts of sectors, bank conflicts, divergence and atomics") {
  Memory memory;
  std::uint64_t* const numbers = memory.numbers(4096);
  const auto count = [&](const std::string& body, std::uint32_t threads = 32) {
    return Kernel(1, body, ".shared .align 16 .b8 room[16384];\n").run(memory, {address(numbers)}, {1}, {threads});
  };
  // `beside` is 1 if the numbers do not begin at the start of a sector.
  const auto beside = static_cast<std::uint64_t>(address(numbers) % 32 != 0);
  CHECK(count(kOwnSlot + "ld.global.u64 %x3, [%x2];").global_sectors == 8 + beside);
  CHECK(count(kOwnSlot + "mul.wide.u32 %x1, %w0, 128;\nadd.s64 %x2, %x0, %x1;\nld.global.u64 %x3, [%x2];")
            .global_sectors == 32);
  const std::string shared = "mov.u32 %w0, %tid.x;\nmov.u32 %w2, room;\n";
  CHECK(count(shared + "shl.b32 %w1, %w0, 2;\nadd.s32 %w3, %w2, %w1;\nst.shared.u32 [%w3], %w0;").shared_wavefronts ==
        1);
  CHECK(count(shared + "shl.b32 %w1, %w0, 6;\nadd.s32 %w3, %w2, %w1;\nst.shared.u32 [%w3], %w0;").shared_wavefronts ==
        16);
  CHECK(count(shared + "shl.b32 %w1, %w0, 3;\nadd.s32 %w3, %w2, %w1;\nst.shared.u64 [%w3], %x0;").shared_wavefronts ==
        2);
  const Counts split = count(
      "mov.u32 %w0, %tid.x;\nand.b32 %w1, %w0, 1;\nsetp.eq.s32 %p0, %w1, 0;\n@%p0 bra $END;\n"
      "add.s32 %w2, %w0, 1;\n$END:");
  CHECK(split.divergent_branches == 1);
  CHECK(split.lane_instructions[static_cast<std::size_t>(Class::integer)] == 32 + 16);
  const Counts atomics = count(kOwnSlot + "red.global.add.u32 [%x0], 1;");
  CHECK(atomics.atomic_lanes == 32);
  CHECK(atomics.atomic_same_address == 31);
  // Each lane has an array in local memory. The GPU interleaves the lanes: it stores the 4-byte words at one local
  // address of all 32 lanes one after another, in four sectors.
  const std::string own = ".local .align 16 .b8 own[32];\nmov.u64 %x5, own;\nmov.u32 %w0, %tid.x;\n";
  const Counts local = count(own + "st.local.u32 [%x5], %w0;\nld.local.u32 %w1, [%x5];");
  CHECK(local.local_requests == 2);
  CHECK(local.local_sectors == 8);
  CHECK(local.global_sectors + local.shared_wavefronts == 0);
  CHECK(count(own + "st.local.v2.u64 [%x5+16], {%x5, %x5};").local_sectors == 16);
  CHECK(count(own + "cvta.local.u64 %x6, %x5;\nst.u16 [%x6], %w0;", 9).local_sectors == 2);
  const std::string apart = "and.b32 %w1, %w0, 4;\ncvt.u64.u32 %x6, %w1;\nadd.s64 %x5, %x5, %x6;\n";
  // In each group of eight lanes, four lanes use one local address, and four use another. The words of different
  // addresses are in different sectors. So the four groups touch two sectors each.
  CHECK(count(own + apart + "st.local.u32 [%x5], %w0;").local_sectors == 8);
  const Counts barriers = count("bar.sync 0;\nbar.warp.sync -1;", 64);
  CHECK(barriers.warp_instructions[static_cast<std::size_t>(Class::barrier)] == 4);
  CHECK(barriers.warps() == 6);  // the sum includes the exit at the end of each warp
  CHECK(count("mov.u32 %w0, %tid.x;", 70).warp_instructions[static_cast<std::size_t>(Class::move)] == 3);
}

}  // namespace cairn::tests::ptx::faults_test
