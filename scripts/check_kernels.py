#!/usr/bin/env python3
"""Checks the machine code of every kernel without a GPU.

  scripts/check_kernels.py [--architectures 80,90,100,120] [--list] [ARCHIVE]

ARCHIVE is libcairn_cuda.a of a build with tests (default: that of build/default), whose objects contain PTX that is not
compressed. For each architecture, ptxas assembles this PTX, and nvdisasm disassembles the result. PTX is for an
architecture and all later ones: sm_80 needs a build whose CMAKE_CUDA_ARCHITECTURES includes 80-virtual, and the others
are assembled from the PTX for sm_90. For every kernel, the script checks that

- no register is spilled, and there is no stack frame and no local memory;
- memory is accessed by instructions that name the address space (global, shared), not by generic ones;
- the registers of a block fit into the register file of a multiprocessor;
- static shared memory is at most kStaticShared, so that launches can have the rest (cuda/internal/launch_shape.h);
- the kernels in PROMISES have the promised number of accesses of 16 bytes.

Kernels may differ from these rules only as EXCEPTIONS says, and only up to a limit. An exception or promise that no
kernel needs is an error. If ptxas or nvdisasm is missing, the script says so in one line with "skipped: ". It looks for
nvdisasm on PATH and in the Python environment that scripts/install_python.sh makes; the variable NVDISASM may name
another one.
"""

import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

# Number of 32-bit registers of a multiprocessor. The number is the same for all architectures of CUDA 13. A warp gets
# registers in units of 256.
REGISTERS = 65536
WARP_REGISTERS = 256
WARP = 32
# Largest number of bytes of static shared memory that a block may have. It must be equal to kStaticShared in
# cuda/internal/launch_shape.h. CUB's kernels use no dynamic shared memory, so they may use all 48 KiB of a block.
STATIC_SHARED = 4096
STATIC_SHARED_OF_CUB = 48 * 1024

# The newest PTX that is checked. A build can also have PTX for sm_120, from which nvcc then makes the code for sm_120.
# The PTX for sm_120 is not checked: it has loads of 32 bytes, so it would need PROMISES and EXCEPTIONS of its own.
NEWEST_PTX = 90

# Kernels that may break rules. An entry consists of a pattern of the demangled name, the broken rules with their
# limits, the architectures on which this is allowed, and the reason. The limits are
#   spills   bytes that instructions store to and load from memory for spilled registers, as ptxas counts them;
#   local    bytes of the stack frame;
#   generic  number of generic accesses.
# Limits are the amounts that ptxas of CUDA 13.0 produces. For the kernels of the searches in solvers/order/device/ and
# for EvaluateKeys, limits are about a tenth higher than these amounts, because small changes of the source change them.
# What a reason says about loops was read from the disassembly.
EXCEPTIONS = [
    (r"cub::.*Device(Scan|SelectSweep)Kernel", {"generic": 13}, "80 90 100 120",
     "kernels of CUB are used as they are"),
    (r"<FindPeaks<32> >", {"spills": 160, "local": 40}, "80 90 100 120",
     "a thread works on 16 arrays of its own and 5 of the tree, whose addresses take 42 registers"),
    (r"<FindProfiles<32> >", {"spills": 1010, "local": 112}, "80 90 100 120",
     "a thread works on the arrays of FindPeaks, and besides the peak finds the steps of the profile"),
    (r"<EvaluateKeys<\w+ \w+, int, \d+, \w+>", {"spills": 236, "local": 56}, "80 90 100 120",
     "at most 64 registers, so that a multiprocessor runs two blocks; no loop over nodes, values, buckets or steps"
     " accesses a spilled register, but the code between them does, once for each group of orders"),
    (r"<EvaluateKeys<\w+ \w+, long, 8, \w+>", {"spills": 168, "local": 40}, "80 120",
     "at most 64 registers, so that a multiprocessor runs two blocks, although sums take 64 bits; no loop over nodes,"
     " values, buckets or steps accesses a spilled register"),
    (r"<EvaluateOrders<unsigned short, long, 8, GlobalSpace>", {"spills": 80, "local": 16}, "80",
     "for orders that do not fit into shared memory; no loop over nodes or values accesses a spilled register"),
    (r"<EvaluateAny<\w+ \w+, GlobalSpace>", {"spills": 40, "local": 16}, "120",
     "for graphs whose bits do not fit into shared memory; the loop over steps accesses no spilled register"),
    (r"<FindInternalSegments<\w+ \w+, GlobalSpace>", {"spills": 52, "local": 16}, "80 90 100",
     "for graphs whose bits do not fit into shared memory; a thread also keeps the first segment and its profile's start"),
    (r"<DrawSchedules<unsigned int, GlobalSpace>", {"spills": 48, "local": 16}, "80",
     "for graphs of 65,535 nodes or more; a loop of 396 instructions loads three spilled words"),
    (r"<ForPlaces<8, 3, Embedding<\w+ \w+, 1>", {"spills": 40, "local": 16}, "120",
     "for rows that do not begin at multiples of 16 bytes; 5 of the 281 instructions that copy eight elements access"
     " spilled registers"),
    (r"<SumSegments<float, 4>", {"spills": 24, "local": 16}, "80",
     "rows that are loaded ahead take 32 registers; the loop over rows accesses no spilled register"),
    (r"<RowTeams<LayernormRow<float>, float, 1, 32>", {"spills": 16, "local": 8}, "80",
     "two words are spilled, which a thread loads once for each row"),
]

# Least numbers of loads and stores of 16 bytes in a kernel. An entry consists of a pattern of the demangled name, the
# number of loads, and the number of stores. A kernel with four accesses in flight has at least four loads per argument.
PROMISES = [
    (r"<Map<\S+, 1, ", 4, 4),
    (r"<Map<\S+, 2, ", 8, 4),
    (r"<SumElements<\S+, 1, ", 4, 0),
    (r"<SumElements<\S+, 2, ", 8, 0),
    # A thread loads two packs (16 bytes each) of the gradient, and the corresponding elements of two (sgd) or three
    # (adamw) fp32 tensors. If the gradient is bf16, these elements take twice as many bytes as the gradient's packs.
    (r"<Update<float, \S*SgdNumbers", 6, 4),
    (r"<Update<float, \S*AdamwNumbers", 8, 6),
    (r"<Update<\S*Bf16, \S*SgdNumbers", 10, 10),
    (r"<Update<\S*Bf16, \S*AdamwNumbers", 14, 14),
    (r"<MapColumns<\w+, \S+, 1, [48]>", 4, 4),
    (r"<MapColumns<\w+, \S+, 2, [48]>", 8, 4),
    (r"<ReduceColumns<[\w<>]+, \S+, 1, \S+, [48], ", 4, 0),
    (r"<ReduceColumns<[\w<>]+, \S+, 2, \S+, [48], ", 8, 0),
    (r"<RowTeams<(Softmax|CrossEntropyGrad|Layernorm)Row<", 4, 1),
    (r"<RowTeams<(SoftmaxGrad|LayernormGrad)Row<", 4, 1),
    (r"<RowTeams<(CrossEntropy|LayernormStats)Row<", 4, 0),
    (r"<ForPlaces<4, \d, (Concat|Embedding|Gather|GatherPatches|MeanPoolGrad)<", 4, 4),
    (r"<ForPlaces<4, \d, Upsample<", 4, 16),
    (r"<ForPlaces<4, \d, EmbeddingAtPositions<", 8, 4),
    (r"<ForPlaces<4, \d, AddBias<", 8, 4),
    (r"<ForPlaces<1, \d, (AddPatches|MaxPool)<[^,]+, [48]>", 4, 1),
    (r"<ForPlaces<1, \d, SumTensors<[^,]+, [48]>", 2, 1),
    (r"<ForPlaces<1, \d, UpsampleGrad<[^,]+, [48]>", 4, 1),
    (r"<SumSegments<[^,]+, [48]>", 8, 1),
    (r"<MiddleSums<[^,]+, [48]>", 4, 1),
    # A NodeRecord (32 bytes, sim/device/graph_tables.h) is loaded by two loads, in each of two loops. WriteProfiles
    # does not need the cost in the second half of a record, so it makes one load of 16 bytes per record, and loads 8
    # bytes of the second half.
    (r"<EvaluateAny<", 4, 0),
    (r"<WriteProfiles<", 2, 0),
]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMESPACES = re.compile(
    r"cairn::(runtime::device|sim::device|solvers|cuda|core)::|\(anonymous namespace\)::|formulas::")


def ptx_texts(data):
    """Returns the distinct PTX texts in the fat binaries (nvcc's containers of code for several architectures) that
    `data` contains."""
    texts, at = [], 0
    while (at := data.find(struct.pack("<I", 0xBA55ED50), at)) >= 0:
        _, _, header_bytes, size = struct.unpack_from("<IHHQ", data, at)
        entry, at = at + header_bytes, at + header_bytes + size
        while entry < at:
            kind, _, header_bytes, size = struct.unpack_from("<HHIQ", data, entry)
            text = data[entry + header_bytes:entry + header_bytes + size].rstrip(b"\0")
            if kind == 1 and text.lstrip().startswith((b"//", b".version")):
                texts.append(text.decode())
            entry += header_bytes + size
    return texts


def target_of(ptx):
    """Returns the architecture that the PTX is for, as a number: 90 for sm_90."""
    return int(re.search(r"^\.target sm_(\d+)", ptx, re.M).group(1))


def demangled(names):
    """Returns {mangled name: C++ name} for `names`. The C++ names lack Cairn's namespaces."""
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if tool is None or not names:
        return dict(zip(names, names))
    out = subprocess.run([tool, "-p"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return {name: NAMESPACES.sub("", line) for name, line in zip(names, out.splitlines())}


class Kernel:
    """What ptxas and nvdisasm report about a kernel: registers, bytes of memory, and opcodes."""

    def __init__(self, threads):
        self.threads = threads  # largest number of threads of a block
        self.registers = self.shared = self.stack = self.spilled = 0
        self.opcodes = collections.Counter()

    def count(self, pattern):
        return sum(n for opcode, n in self.opcodes.items() if re.match(pattern, opcode))

    def instructions(self):
        return sum(n for opcode, n in self.opcodes.items() if opcode != "NOP")


def threads_of(ptx):
    """Returns {kernel: largest number of threads of a block} for the kernels in the PTX."""
    threads = {}
    for name, body in re.findall(r"\.entry\s+(\S+?)\(.*?\)\s*(.*?)\{", ptx, re.S):
        bound = re.search(r"\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", body)
        threads[name] = 1024
        if bound:
            x, y, z = (int(n or 1) for n in bound.groups())
            threads[name] = x * y * z
    return threads


def read_report(report, kernels):
    """Reads `report`, the output of ptxas -v, and stores the figures in `kernels`."""
    kernel = None
    for line in report.splitlines():
        if match := re.search(r"(?:Compiling entry function|Function properties for) '?([\w$]+)'?", line):
            kernel = kernels.get(match.group(1))
        if kernel is None:
            continue
        if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernel.stack = int(match.group(1))
            kernel.spilled = int(match.group(2)) + int(match.group(3))
        if match := re.search(r"Used (\d+) registers", line):
            kernel.registers = int(match.group(1))
            shared = re.search(r"(\d+) bytes smem", line)
            kernel.shared = int(shared.group(1)) if shared else 0


def read_listing(listing, kernels):
    """Reads `listing`, the output of nvdisasm, and counts the opcodes in `kernels`."""
    kernel = None
    for line in listing.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.([\w$]+)", line):
            kernel = kernels.get(match.group(1))
        elif kernel and (match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)):
            kernel.opcodes[match.group(1)] += 1


def assembled(ptx, architecture, folder, tools):
    """Assembles and disassembles PTX for an architecture. Returns {mangled name: Kernel} for its kernels."""
    kernels = {name: Kernel(threads) for name, threads in threads_of(ptx).items()}
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir=folder, delete=False) as file:
        file.write(ptx)
    cubin = file.name[:-3] + "cubin"
    command = [tools["ptxas"], "-v", "-O3", "--fmad", "false", "-arch", f"sm_{architecture}", file.name, "-o", cubin]
    report = subprocess.run(command, capture_output=True, text=True)
    if report.returncode != 0:
        raise SystemExit(f"ptxas refuses the PTX for sm_{architecture}:\n{report.stderr[-2000:]}")
    read_report(report.stderr, kernels)
    listing = subprocess.run([tools["nvdisasm"], "-c", cubin], capture_output=True, text=True)
    if listing.returncode != 0:
        raise SystemExit(f"nvdisasm refuses the code for sm_{architecture}:\n{listing.stderr[-2000:]}")
    read_listing(listing.stdout, kernels)
    return kernels


def all_assembled(texts, architecture, tools):
    """Assembles all PTX texts, several at a time. Returns {C++ name: Kernel} for their kernels."""
    kernels = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        largest_first = sorted(texts, key=len, reverse=True)
        for found in pool.map(lambda text: assembled(text, architecture, folder, tools), largest_first):
            kernels.update(found)
    names = demangled(list(kernels))
    return {names[name]: kernel for name, kernel in kernels.items()}


def described(name, kernel):
    return (f"{kernel.instructions():7} instructions {kernel.registers:4} registers {kernel.shared:6} B shared"
            f" {kernel.count(r'(LD|ST)G.*128'):4} of 16 B {kernel.count(r'(LD|ST|ATOM)([.]|$)'):4} generic  {name}")


def broken_rules(name, kernel):
    """Returns {rule: (amount, what is wrong)} for the rules that a kernel breaks. The amount is the number that the
    limit of an exception is compared with."""
    broken = {}
    of_cub = "cub::" in name
    if kernel.instructions() == 0:
        broken["code"] = (1, "there is no code in the listing")
    if kernel.spilled:
        broken["spills"] = (kernel.spilled, f"{kernel.spilled} bytes of registers are spilled")
    accesses = kernel.count(r"(LDL|STL)\b")
    if kernel.stack or accesses:
        broken["local"] = (kernel.stack,
                           f"a stack frame of {kernel.stack} bytes, {accesses} accesses to local memory")
    if generic := kernel.count(r"(LD|ST|ATOM)(\.|$)"):
        broken["generic"] = (generic, f"{generic} generic accesses")
    warps = -(-kernel.threads // WARP)
    of_warp = -(-kernel.registers * WARP // WARP_REGISTERS) * WARP_REGISTERS
    if warps * of_warp > REGISTERS:
        broken["registers"] = (kernel.registers, f"{kernel.registers} registers for each of {kernel.threads} threads")
    limit = STATIC_SHARED_OF_CUB if of_cub else STATIC_SHARED
    if kernel.shared > limit:
        broken["shared"] = (kernel.shared,
                            f"{kernel.shared} bytes of static shared memory; the limit is {limit}")
    return broken


def broken_promises(name, kernel, used):
    """Returns a list of what is wrong with the number of the kernel's accesses of 16 bytes. Adds to `used` the promises
    that are about this kernel."""
    wrong = []
    loads, stores = kernel.count(r"LDG\..*128"), kernel.count(r"STG\..*128")
    for pattern, least_loads, least_stores in PROMISES:
        if not re.search(pattern, name):
            continue
        used.add(pattern)
        if loads < least_loads or stores < least_stores:
            wrong.append(f"{loads} loads and {stores} stores of 16 bytes;"
                         f" {least_loads} and {least_stores} are promised")
    return wrong


def check(architecture, kernels, used):
    """Returns the errors of the kernels for an architecture. Adds the exceptions and promises that were needed to
    `used`."""
    errors = []
    for name, kernel in sorted(kernels.items()):
        for rule, (amount, text) in broken_rules(name, kernel).items():
            allowed = [e for e in EXCEPTIONS
                       if rule in e[1] and architecture in e[2].split() and re.search(e[0], name)]
            used.update((e[0], rule, architecture) for e in allowed)
            if not allowed:
                errors.append(f"sm_{architecture}: {name}: {text}")
            elif amount > max(e[1][rule] for e in allowed):
                limit = max(e[1][rule] for e in allowed)
                errors.append(f"sm_{architecture}: {name}: {text}; the limit of the exception is {limit}")
        errors += [f"sm_{architecture}: {name}: {text}" for text in broken_promises(name, kernel, used)]
    return errors


def known_architectures(ptxas):
    return set(re.findall(r"\bsm_(\d+)\b", subprocess.run([ptxas, "--help"], capture_output=True, text=True).stdout))


def find_tools():
    """Returns {tool: path} for ptxas and nvdisasm. The path of a missing tool is None."""
    in_wheel = glob.glob(os.path.join(ROOT, "build/python-env/lib/python3*/site-packages/nvidia/*/bin/nvdisasm"))
    nvdisasm = os.environ.get("NVDISASM") or shutil.which("nvdisasm") or next(iter(in_wheel), None)
    return {"ptxas": shutil.which("ptxas"), "nvdisasm": nvdisasm}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", nargs="?", default=os.path.join(ROOT, "build/default/cuda/libcairn_cuda.a"))
    parser.add_argument("--architectures", default="80,90,100,120")
    parser.add_argument("--list", action="store_true", help="print a line for every kernel")
    options = parser.parse_args()
    tools = find_tools()
    if missing := [name for name, path in tools.items() if path is None]:
        print(f"skipped: {' and '.join(missing)} missing; both come with the CUDA toolkit, nvdisasm also with"
              " `pip install nvidia-cuda-nvdisasm`")
        return
    try:
        with open(options.archive, "rb") as file:
            texts = ptx_texts(file.read())
    except OSError as error:
        raise SystemExit(f"{options.archive}: {error.strerror}; build with CUDA first") from None
    if not texts:
        raise SystemExit(f"{options.archive} has no PTX that is not compressed: build with -D CAIRN_TESTS=ON")
    known = known_architectures(tools["ptxas"])
    architectures = [a for a in options.architectures.split(",") if a in known]
    if not architectures:
        raise SystemExit(f"ptxas knows none of the architectures {options.architectures}")
    errors, used, checked = [], set(), []
    if not any(threads_of(text) for text in texts):
        errors.append(f"{options.archive} has no kernels")
    for architecture in architectures:
        begin = time.monotonic()
        target = max((t for t in map(target_of, texts) if t <= min(int(architecture), NEWEST_PTX)), default=None)
        if target is None:
            print(f"sm_{architecture}: the build has no PTX for it")
            continue
        kernels = all_assembled([t for t in texts if target_of(t) == target], architecture, tools)
        checked.append(architecture)
        errors += check(architecture, kernels, used)
        if options.list:
            for name, kernel in sorted(kernels.items()):
                print(described(name, kernel))
        print(f"sm_{architecture}: {len(kernels)} kernels, {sum(k.instructions() for k in kernels.values())}"
              f" instructions, in {time.monotonic() - begin:.0f} s")
    errors += [f"EXCEPTIONS: no kernel needs the exception from '{rule}' for {pattern} on sm_{architecture}"
               for pattern, limits, needed, _ in EXCEPTIONS for rule in limits for architecture in checked
               if architecture in needed.split() and (pattern, rule, architecture) not in used]
    errors += [f"PROMISES: no kernel matches {pattern}" for pattern, _, _ in PROMISES if pattern not in used]
    if not checked:
        errors.append("No architecture was checked.")
    print("\n".join(errors) if errors else "No rule is broken.")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
