// Tests the command with --backend cuda on the fake device: its output if all goes well, and its message for each way
// in which a device can fail.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "cairn/core/formats/files.h"
#include "cairn/cuda/device.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_command.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/transfers.h"

namespace cairn::tests::command_test {
namespace {

const Words kTiny = {"ffn", "--batch", "64", "--layers", "3", "--width", "32", "--inputs", "8", "--outputs", "4"};
const Words kConv = {"unet", "--batch", "2", "--image", "16", "--width", "4", "--depth", "2", "--classes", "3"};

void check_refused(const Device& device, const Words& words, const Words& parts) {
  const Outcome outcome = run_on(device, words);
  INFO(outcome.err);
  CHECK(outcome.code == 5);
  CHECK(outcome.out.empty());
  // If the baseline does not fit into memory, stderr has a line that says so before the line of the error.
  const std::string before = "cairn: the baseline will not be executed";
  CHECK(is_error(outcome.err.starts_with(before) ? outcome.err.substr(outcome.err.find('\n') + 1) : outcome.err));
  check_says(outcome.err, parts);
}

Device failing(const std::string& function, cudaError_t error) {
  return {{"FAKE_CUDA_FAILING_CALL", function}, {"FAKE_CUDA_ERROR", std::to_string(static_cast<int>(error))}};
}

const Words kRun = Words{"run"} + kTiny + Words{"--budget", "90%", "--backend", "cuda"};

}  // namespace

TEST_CASE("command: run on a device: identical, measured is planned, times and the check beside") {
  for (const Words& model : {kTiny, kConv}) {
    for (const std::string precision : {"fp32", "tf32", "bf16"}) {
      INFO(model[0] << " " << precision);
      const Json json = json_on(
          {}, Words{"run"} + model +
                  Words{"--budget", "100%", "--backend", "cuda", "--precision", precision, "--check", "--repeat", "3"});
      check_fields(json, {{"backend", "cuda"}, {"precision", precision}, {"identical", true}});
      CHECK(json["host_check"]["passed"] == true);
      for (const std::string part : {"baseline", "scheduled"}) {
        CHECK(json[part]["measured_peak_bytes"] == json[part]["planned_bytes"]);
        CHECK(json[part]["seconds"].get<double>() > 0);
      }
    }
  }
}

TEST_CASE("command: a file of a schedule with transfers is run, and the bytes on the host are said") {
  const Folder folder;
  const core::Graph graph = tiny_model("unet");
  Random random(1);
  const core::Schedule schedule = with_transfers(random, graph, core::baseline_schedule(graph), 40);
  const std::string graph_path = folder.write("g.json", core::graph_to_json(graph));
  const std::string schedule_path = folder.write("s.json", core::schedule_to_json(graph, schedule, "test"));
  for (const std::string backend : {"cuda", "host"}) {
    INFO(backend);
    const Words words = {"run", graph_path, "--schedule", schedule_path, "--backend", backend};
    const Json json = json_on({{"FAKE_CUDA_ORDER", "random"}}, words + Words{"--poison"});
    CHECK(json["identical"] == true);
    CHECK(json["scheduled"]["host_planned_bytes"] > 0);
    CHECK(json["scheduled"]["host_measured_bytes"] == json["scheduled"]["host_planned_bytes"]);
    CHECK(json["scheduled"]["measured_peak_bytes"] == json["scheduled"]["planned_bytes"]);
    CHECK_FALSE(json["baseline"].contains("host_planned_bytes"));
    check_says(run_on({}, words).out, {"planned on the host", "measured on the host"});
  }
  const Outcome refused =
      run_on({}, {"run", graph_path, "--schedule", schedule_path, "--backend", "cuda", "--streams", "2"});
  CHECK(refused.code == 2);
  CHECK(is_error(refused.err));
  check_says(refused.err, {"transfers", "stream"});
}

TEST_CASE("command: convolutions take memory that is free under the budget, and no more") {
  const Device with_cudnn = {{"FAKE_CUDA_CUDNN", "1"}};
  for (const std::string budget : {"100%", "80%"}) {
    INFO(budget);
    const Json json = json_on(
        with_cudnn, Words{"run"} + kConv + Words{"--budget", budget, "--backend", "cuda", "--repeat", "3", "--check"});
    check_fields(json, {{"backend", "cuda"}, {"identical", true}});
    CHECK(json["host_check"]["passed"] == true);
    CHECK(json["nodes_in_free_memory"] > 0);
    for (const std::string part : {"baseline", "scheduled"})
      CHECK(json[part]["measured_peak_bytes"] == json[part]["planned_bytes"]);
    CHECK(json["scheduled"]["planned_bytes"] <= json["budget_bytes"]);
  }
  // Without cuDNN, there is only one way to compute a convolution, and free memory cannot make it faster.
  const Json without = json_on({}, Words{"run"} + kConv + Words{"--budget", "100%", "--backend", "cuda", "--quiet"});
  CHECK(without["nodes_in_free_memory"] == 0);
}

TEST_CASE("command: several streams of a device: identical, and what they bring and cost is said") {
  const Words run = Words{"run"} + kConv + Words{"--budget", "150%", "--repeat", "3", "--work-limit", "20000"};
  for (const std::string order : {"late", "early", "random"}) {
    const Json json = json_on({{"FAKE_CUDA_ORDER", order}},
                              run + Words{"--backend", "cuda", "--streams", "2", "--overlap-steps", "3", "--check"});
    check_fields(json, {{"identical", true}, {"streams", 2}, {"overlap_steps", 3}});
    CHECK(json["host_check"]["passed"] == true);
    CHECK(json["critical_path"] <= json["makespan"]);
    CHECK(json["makespan"] < json["scheduled"]["cost"]);
    CHECK(json["overlap_bytes"] > 0);
    CHECK(json["scheduled"]["planned_bytes"] <= json["budget_bytes"]);
    CHECK(json["scheduled"]["measured_peak_bytes"] == json["scheduled"]["planned_bytes"]);
  }
  check_fields(json_on({}, run + Words{"--backend", "cuda"}),
               {{"streams", 1}, {"makespan", nullptr}, {"overlap_bytes", 0}});
  check_says(run_on({}, run + Words{"--backend", "cuda", "--streams", "2", "--overlap-steps", "3"}).out,
             {"streams: 2; by the costs, a step takes at least ", "; addresses apart for 3 steps cost ",
              "; the baseline ran on one"});

  const Folder folder;
  const auto page = [&](const Words& more) {
    CHECK(run_on({}, run + Words{"--backend", "cuda", "--report", folder / "r.html"} + more).code == 0);
    return core::read_file(folder / "r.html");
  };
  check_says(page({"--streams", "2", "--overlap-steps", "3"}),
             {"Streams", "by the costs, a step takes at least ", "; addresses apart for 3 steps cost "});
  CHECK(page({}).find("addresses apart") == std::string::npos);

  const auto refused = [&](const Words& more, const std::string& why) {
    const Outcome outcome = run_on({}, run + more);
    CHECK(outcome.code == 2);
    CHECK(is_error(outcome.err));
    check_says(outcome.err, {why});
  };
  refused({"--backend", "host", "--streams", "2"}, "one stream only; drop --streams or use --backend cuda");
  refused({"--backend", "cuda", "--streams", "17"}, "1 to 16 streams, not 17");
  refused({"--backend", "cuda", "--streams", "2", "--poison"}, "on one stream; drop them or --streams");
  refused({"--backend", "cuda", "--streams", "2", "--sentinels"}, "on one stream; drop them or --streams");
  refused({"--backend", "cuda", "--overlap-steps", "2"}, "give --streams 2 or drop it");
}

TEST_CASE("command: a training on several streams has the bits of one stream") {
  const Words train = {"train",     "gpt2",  "--layers", "2",           "--width", "16",      "--heads",
                       "2",         "--seq", "8",        "--batch",     "2",       "--vocab", "62",
                       "--dropout", "10",    "--data",   "shakespeare", "--steps", "3"};
  const Json one = json_on({}, train + Words{"--backend", "cuda"});
  const Json several = json_on({{"FAKE_CUDA_ORDER", "random"}},
                               train + Words{"--backend", "cuda", "--streams", "3", "--overlap-steps", "2"});
  CHECK(several["weights"] == one["weights"]);
  CHECK(several["losses"] == one["losses"]);
  check_fields(one, {{"streams", 1}, {"overlap_bytes", 0}});
  check_fields(several, {{"streams", 3}, {"overlap_steps", 2}});
  CHECK(several["overlap_bytes"] > 0);
}

TEST_CASE("command: auto takes the device, and debug modes work on it") {
  const Folder folder;
  const Json json = json_on({}, Words{"run"} + kTiny +
                                    Words{"--budget", "100%", "--poison", "--sentinels", "--trace",
                                          folder / "trace.json", "-o", folder / "s.json"});
  check_fields(json, {{"backend", "cuda"}, {"identical", true}});
  // The schedule in the file is for the graph as it was given, before scratch for the device is added. So both backends
  // accept the file.
  for (const std::string backend : {"cuda", "host"}) {
    const auto again =
        run_on({}, Words{"run"} + kTiny + Words{"--schedule", folder / "s.json", "--backend", backend, "--quiet"});
    INFO(again.err);
    CHECK(again.code == 0);
  }
}

TEST_CASE("command: a measured graph is run as it was measured") {
  const Folder folder;
  for (const std::string precision : {"fp32", "bf16"}) {
    const Json measured = json_on(
        {}, Words{"measure"} + kTiny + Words{"--backend", "cuda", "--precision", precision, "-o", folder / "g.json"});
    CHECK(measured["backend"] == "cuda");
    const Json run = json_on({}, {"run", folder / "g.json", "--budget", "100%", "--backend", "cuda"});
    CHECK(run["precision"] == precision);
    CHECK(run["baseline"]["cost"] == measured["baseline_cost_ns"]);
  }
}

TEST_CASE("command: no device, no driver, an old driver, another architecture: one line each, exit 5") {
  for (const Words& words : {kRun, Words{"measure"} + kTiny + Words{"--backend", "cuda"}}) {
    check_refused(failing("cudaGetDeviceCount", cudaErrorNoDevice), words, {"no CUDA device is visible", "nvidia-smi"});
    Device none = failing("cudaGetDeviceCount", cudaErrorInsufficientDriver);
    none["FAKE_CUDA_DRIVER"] = "0";
    check_refused(none, words, {"no NVIDIA driver is installed"});
    Device old = failing("cudaGetDeviceCount", cudaErrorInsufficientDriver);
    old["FAKE_CUDA_DRIVER"] = "11040";
    check_refused(old, words, {"supports CUDA 11.4", "update the driver"});
    check_refused(failing("kernel image", cudaErrorNoKernelImageForDevice), words,
                  {"fake device has compute capability 9.0", "CMAKE_CUDA_ARCHITECTURES"});
    check_refused(failing("kernel image", cudaErrorUnsupportedPtxVersion), words, {"update the driver"});
    check_refused(failing("cudaMemGetInfo", cudaErrorDevicesUnavailable), words, {"another process holds the device"});
  }
}

TEST_CASE("command: out of memory says what was asked, what is free, and a budget that fits") {
  const Device small = {{"FAKE_CUDA_BYTES", "40000"}};
  check_refused(small, kRun, {"arena", "are free on fake device", "a budget of ", " would fit"});
  const std::string budget = std::to_string(number_behind(run_on(small, kRun).err, "a budget of "));
  // It may be that no schedule meets this budget. But the exit code must not be 5, which stands for too little device
  // memory.
  CHECK(run_on(small, Words{"run"} + kTiny + Words{"--budget", budget, "--backend", "cuda"}).code != 5);
  check_refused({{"FAKE_CUDA_BYTES", "2000"}}, kRun, {"besides the arena does not fit, even without an arena"});
  check_refused(failing("cudaMalloc", cudaErrorMemoryAllocation), kRun, {"device memory", "out of memory"});
}

TEST_CASE("command: a device too small for the baseline alone executes the schedule") {
  const Json whole = json_on({}, kRun);
  const std::int64_t baseline = whole["baseline"]["planned_bytes"], scheduled = whole["scheduled"]["planned_bytes"];
  REQUIRE(scheduled < baseline);
  const std::int64_t small = 40000;
  const Outcome refused = run_on({{"FAKE_CUDA_BYTES", std::to_string(small)}}, kRun);
  const std::int64_t fits = number_behind(refused.err, "a budget of ");
  const Json alone = json_on({{"FAKE_CUDA_BYTES", std::to_string(small - fits + (baseline + scheduled) / 2)}}, kRun);
  CHECK(alone["identical"].is_null());
  CHECK(alone["baseline"]["measured_peak_bytes"].is_null());
  CHECK(alone["scheduled"]["measured_peak_bytes"] == alone["scheduled"]["planned_bytes"]);
  CHECK(contains(alone["note"], "the baseline was not executed"));
}

TEST_CASE("command: a kernel that fails is named by its step, op and node") {
  check_refused({{"FAKE_CUDA_FAILING_KERNEL", "1"}}, kRun,
                {"step 0, matmul layer0: an illegal memory access was encountered"});
  check_refused(failing("kernel", cudaErrorInvalidConfiguration), kRun, {"step 0, matmul layer0: "});
}

TEST_CASE("command: auto falls back to the host without a device") {
  const Json json =
      json_on(failing("cudaGetDeviceCount", cudaErrorNoDevice), Words{"run"} + kTiny + Words{"--budget", "100%"});
  CHECK(json["backend"] == "host");
}

TEST_CASE("the probe gives a reason for every error of its calls") {
  for (const std::string function :
       {"cudaGetDeviceCount", "cudaGetDeviceProperties", "kernel image", "cudaMemGetInfo"}) {
    CAPTURE(function);
    fake::reset();
    fake::fail_call(function, 1);
    const cuda::Probe failed = cuda::probe();
    CHECK_FALSE(failed.available);
    CHECK_FALSE(failed.device.has_value());
    CHECK(failed.reason.find("CUDA does not start: ") == 0);
    CHECK(fake::last_error() == cudaSuccess);
    const cuda::Probe found = cuda::probe();
    CHECK(found.available);
    CHECK(found.reason.empty());
  }
}

}  // namespace cairn::tests::command_test
