// Tests `cairn train`: bits of losses and weights, checkpoints, interruption, and refused input.
#include <random>

#include "cairn/core/formats/support/tensors.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::train_test {
namespace {

/// Arguments of a training run. One of its steps takes some milliseconds.
const Words kSmall = {"train",   "gpt2", "--layers", "2",  "--width",   "16", "--heads", "2",          "--seq", "16",
                      "--batch", "4",    "--vocab",  "62", "--dropout", "10", "--data",  "shakespeare"};

Words with_steps(int steps, const Words& more = {}) { return kSmall + Words{"--steps", std::to_string(steps)} + more; }

}  // namespace

TEST_CASE("train: losses and weights have the same bits with and without a budget, and memory is as planned") {
  const Json plain = run_json(with_steps(12));
  for (const char* optimizer : {"adamw", "sgd"}) {
    const Words more = {"--optimizer", optimizer, "--clip", "1", "--weight-decay", "0.1", "--lr", "0.01"};
    const Json all = run_json(with_steps(12, more));
    const Json half = run_json(with_steps(12, more + Words{"--budget", "55%", "--work-limit", "20000", "--poison"}));
    CHECK(half["losses"] == all["losses"]);
    CHECK(half["weights"] == all["weights"]);
    CHECK(half["weights"] != plain["weights"]);
    CHECK(half["tests"] == all["tests"]);
    CHECK(half["planned_bytes"] < all["planned_bytes"]);
    CHECK(half["planned_bytes"] <= half["budget_bytes"]);
    CHECK(half["measured_peak_bytes"] == half["planned_bytes"]);
    CHECK(all["measured_peak_bytes"] == all["planned_bytes"]);
  }
  CHECK(plain["losses"].size() == 12);
  CHECK(plain["losses"][11] < plain["losses"][0]);
}

TEST_CASE("train: images are learned, and the report shows how") {
  const Folder folder;
  const Json json = run_json({"train",        "ffn",
                              "--layers",     "3",
                              "--width",      "64",
                              "--inputs",     "64",
                              "--outputs",    "10",
                              "--batch",      "64",
                              "--data",       "digits",
                              "--steps",      "150",
                              "--lr",         "0.01",
                              "--test-every", "75",
                              "--report",     folder / "r.html"});
  REQUIRE(json["tests"].size() == 2);
  CHECK(json["tests"][0]["step"] == 75);
  CHECK(json["accuracy"] > 0.8);
  check_says(read_text(folder / "r.html"), {"Loss over the steps", "accuracy on the test part", "after step"});
  const Outcome outcome = run_command({"train", "ffn", "--layers", "2", "--width", "16", "--inputs", "64", "--outputs",
                                       "10", "--batch", "8", "--data", "digits", "--steps", "30"});
  CHECK(outcome.code == 0);
  check_says(outcome.out, {"test after 30", "planned", "measured", "ms a step", "hash ", "step 30"});
}

TEST_CASE("train: a training that is continued ends with the bits of one that was not interrupted") {
  const Folder folder;
  const std::string file = folder / "c.safetensors";
  const Words rate = {"--lr-schedule", "cosine", "--warmup", "5", "--test-every", "10"};
  const Json whole = run_json(with_steps(30, rate));
  Child child(with_steps(30, rate + Words{"--checkpoint", file, "--checkpoint-every", "7"}));
  child.wait_for_interrupt_handler();
  while (!std::filesystem::exists(file) && child.alive()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  child.interrupt();
  const Outcome outcome = child.wait();
  if (outcome.code != 0) {  // otherwise the training has ended before the signal arrived
    CHECK(outcome.code == 130);
    check_says(outcome.err, {"interrupted after", "of 30 steps", "--resume --checkpoint " + file});
  }
  const Json rest = run_json(
      with_steps(30, rate + Words{"--checkpoint", file, "--resume", "--budget", "70%", "--work-limit", "1000"}));
  CHECK(rest["first_step"] >= 7);
  for (const char* key : {"losses", "weights", "tests", "steps"}) CHECK(rest[key] == whole[key]);
}

TEST_CASE("train: killed at 20 random moments and continued, it ends with the same weights") {
  const Folder folder;
  const std::string file = folder / "c.safetensors";
  const Json whole = run_json(with_steps(1000));
  const Words words = with_steps(1000, {"--checkpoint", file, "--checkpoint-every", "5", "--resume"});
  std::mt19937 random(1);
  int killed = 0;
  for (int i = 0; i < 20; ++i) {
    Child child(words);
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + random() % 120));
    child.end_at_once();
    killed += child.wait().code == -SIGKILL ? 1 : 0;
    if (std::filesystem::exists(file)) core::read_tensors(file);  // throws if the file is incomplete
  }
  CHECK(killed >= 5);
  const Json rest = run_json(words);
  CHECK(rest["weights"] == whole["weights"]);
  CHECK(rest["losses"] == whole["losses"]);
}

TEST_CASE("train: what cannot be trained is refused in a line") {
  const Folder folder;
  check_error({"train", "gpt2"}, 2, {"train needs --data"});
  check_error({"train", "gpt2", "--data", "digit"}, 2, {"unknown data set 'digit'", "did you mean 'digits'?"});
  check_error({"train", "unet", "--batch", "1", "--data", "digits"}, 2, {"cannot be trained on digits", "'labels'"});
  check_error(with_steps(5, {"--optimizer", "adam"}), 2, {"does not update its weights", "sgd or adamw"});
  check_error(with_steps(5, {"--resume"}), 2, {"--resume", "--checkpoint"});
  check_error(with_steps(5, {"--budget", "1%", "--work-limit", "1000"}), 3,
              {"no schedule of 'gpt2' fits", "least budget"});
  check_error(with_steps(5, {"--lr", "1e30"}), 2,
              {"the loss of the training step 2 is NaN", "lower the learning rate"});
  check_error(with_steps(5, {"--checkpoint", folder / "none/c"}), 2, {folder / "none/c"});
  check_error(with_steps(5, {"--checkpoint", "-"}), 2, {"--checkpoint needs the path of a file"});
  check_error(with_steps(5, {"--checkpoint", folder.path()}), 2, {"is not a file"});
  check_error(with_steps(5, {"--checkpoint", folder / "a", "-o", folder / "a"}), 2, {"--checkpoint", "-o"});
  check_error(with_steps(5, {"--lr", "0"}), 2, {"--lr", "'0' must be above 0"});
  check_error(with_steps(5, {"--clip", "nan"}), 2, {"--clip nan is not a number"});
  check_error(with_steps(5, {"--warmup", "-1"}), 2, {"--warmup", "'-1' must be at least 0"});
}

TEST_CASE("train: a file of a graph says how weights are updated, whatever its tensors are called") {
  const Folder folder;
  const std::string file = folder / "g.json";
  const Words model = {"ffn", "--layers", "2", "--width", "16", "--inputs", "64", "--outputs", "10", "--batch", "16"};
  run_command(Words{"model"} + model + Words{"--optimizer", "adamw", "-o", file});
  const Words words = {"--data", "digits", "--steps", "20", "--lr", "0.01"};
  const Json of_model = run_json(Words{"train"} + model + words);
  const auto same = [&](const Json& json) {
    CHECK(json["losses"] == of_model["losses"]);
    CHECK(json["weights"] == of_model["weights"]);
    CHECK(json["tests"] == of_model["tests"]);
  };
  same(run_json(Words{"train", file} + words));
  check_error(Words{"train", file} + words + Words{"--clip", "1"}, 2, {"--clip is an option of models"});

  // The result must not depend on the names of the optimizer's scalars, nor on the marks of backward nodes.
  Json graph = read_json(file);
  for (Json& resident : graph["residents"]) {
    if (resident["name"] == "learning_rate") resident["name"] = "lr";
    if (resident["name"] == "step") resident["name"] = "t";
  }
  for (Json& node : graph["nodes"]) {
    node.erase("backward");
    node.erase("forward");
  }
  same(run_json(Words{"train", folder.write("h.json", graph.dump())} + words));
}

TEST_CASE("train: an older checkpoint is not overwritten by chance, nor by weights that are not finite") {
  const Folder folder;
  const std::string file = folder / "c.safetensors";
  run_json(with_steps(4, {"--checkpoint", file, "--checkpoint-every", "2"}));
  const std::string before = read_text(file);
  check_error(with_steps(4, {"--checkpoint", file}), 2, {file, "there is a checkpoint"});
  CHECK(read_text(file) == before);
  // With this learning rate, the first losses are finite, but the weights are not. So no checkpoint may be written.
  const std::string other = folder / "d.safetensors";
  const Outcome outcome =
      run_command({"train",   "ffn",       "--layers", "2",       "--width",      "16",     "--inputs",
                   "64",      "--outputs", "10",       "--batch", "16",           "--data", "digits",
                   "--steps", "20",        "--lr",     "1e300",   "--checkpoint", other,    "--checkpoint-every",
                   "1"});
  CHECK(outcome.code == 2);
  check_says(outcome.err, {"lower the learning rate"});
  CHECK_FALSE(std::filesystem::exists(other));
  CHECK(folder.entries() == 1);
}

TEST_CASE("train: an interrupted training prints one JSON object") {
  Child child(with_steps(100'000, {"--json"}));
  child.wait_for_interrupt_handler();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  child.interrupt();
  const Outcome outcome = child.wait();
  CHECK(outcome.code == 130);
  const Json json = outcome.json();  // throws unless the output is one JSON object
  CHECK(json["interrupted"] == true);
  CHECK(json["losses"].size() == json["steps"]);
  check_says(json["error"], {"interrupted after", "with --checkpoint"});
}

TEST_CASE("train: a checkpoint that is damaged or of another training is refused in a line, and stays as it is") {
  const Folder folder;
  const std::string file = folder / "c.safetensors";
  run_json(with_steps(4, {"--checkpoint", file}));
  const std::string whole = read_text(file);
  const auto refuse = [&](const Words& words, const Words& fragments) {
    const std::string before = read_text(file);
    check_error(words + Words{"--checkpoint", file, "--resume"}, 2, Words{file} + fragments);
    CHECK(read_text(file) == before);
  };
  refuse(with_steps(8, {"--lr", "0.5"}), {"learning rate 0.001", "0.5"});
  refuse(with_steps(8, {"--optimizer", "sgd"}), {"optimizer adamw", "sgd"});
  refuse(with_steps(8, {"--seed", "3"}), {"seed 0", "3"});
  refuse(with_steps(3), {"has done 4 steps already"});
  Words dropout = with_steps(8);
  dropout[15] = "20";
  refuse(dropout, {"of 'gpt2' with other options"});
  Words larger = with_steps(8);
  larger[5] = "32";
  refuse(larger, {"has the shape", "needs"});
  folder.write("c.safetensors", whole.substr(0, whole.size() - 100));
  refuse(with_steps(8), {"truncated"});
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  folder.write("c.safetensors", damaged);
  refuse(with_steps(8), {"it is damaged"});
  folder.write("c.safetensors", "text");
  refuse(with_steps(8), {"is not a file of tensors"});
  core::write_tensors(file, {{{"a", "b"}}, {}});
  refuse(with_steps(8), {"is not a checkpoint of a training"});
}

}  // namespace cairn::tests::train_test
