// Tests the data sets, and how they are divided into batches.
#include "cairn/models/batches.h"

#include <set>

#include "cairn/core/error.h"
#include "cairn/models/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"

namespace cairn::batches_test {
namespace {

using models::Batch;
using models::Batches;
using models::Dataset;

core::Graph build(const std::string& model, std::map<std::string, std::int64_t, std::less<>> values) {
  models::BuildOptions options;
  options.values = std::move(values);
  return models::build_model(model, options);
}

core::Graph images(std::int64_t batch = 64, std::int64_t side = 16) {
  return build("resnet18", {{"batch", batch}, {"image", side}, {"classes", 10}});
}

const std::vector<float>& floats(const Batch& batch) { return std::get<std::vector<float>>(batch.inputs[0].values); }
const std::vector<std::int32_t>& integers(const Batch& batch, std::size_t input = 1) {
  return std::get<std::vector<std::int32_t>>(batch.inputs[input].values);
}

}  // namespace

TEST_CASE("digits are 1797 images of ten labels, standardised over the training part") {
  const Dataset set = models::load_dataset("digits");
  CHECK(set.examples == 1797);
  CHECK(set.training == 1437);
  REQUIRE(set.pixels.size() == 1797U * 64);
  // The first image of the UCI's test set shows a zero. Its first row is 0 0 5 13 9 1 0 0, and its mean is 4.59375. The
  // pixels are standardised, so the test converts them back by two known pixels.
  CHECK(set.labels.front() == 0);
  const float dark = set.pixels[0], unit = (set.pixels[2] - dark) / 5;
  CHECK(set.pixels[3] == Approx(dark + 13 * unit));
  double sum = 0;
  for (std::size_t i = 0; i < 64; ++i) sum += static_cast<double>((set.pixels[i] - dark) / unit);
  CHECK(sum / 64 == Approx(4.59375));
  double mean = 0, squares = 0;
  const std::size_t count = 1437 * 64;
  for (std::size_t i = 0; i < count; ++i) {
    mean += static_cast<double>(set.pixels[i]) / static_cast<double>(count);
    squares += static_cast<double>(set.pixels[i]) * static_cast<double>(set.pixels[i]) / static_cast<double>(count);
  }
  CHECK(mean == Approx(0).margin(1e-5));
  CHECK(squares == Approx(1));
  std::vector<int> of_label(10);
  for (const std::int32_t label : set.labels) ++of_label.at(static_cast<std::size_t>(label));
  // The UCI's page states these counts.
  CHECK(of_label == std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
}

TEST_CASE("the text is what its first words say, and every character is in the alphabet") {
  const Dataset set = models::load_dataset("shakespeare");
  std::string begin;
  for (std::size_t i = 0; i < 14; ++i) begin += set.alphabet[static_cast<std::size_t>(set.labels[i])];
  CHECK(begin == "First Citizen:");
  CHECK(set.classes == 62);
  CHECK(set.examples == std::ssize(set.labels));
  CHECK(std::ranges::max(set.labels) == 61);
  CHECK(std::ranges::is_sorted(set.alphabet));
}

TEST_CASE("an unknown data set is refused, with the nearest name") {
  CHECK(tests::contains(tests::error_of([] { models::load_dataset("digit"); }), "did you mean 'digits'?"));
}

TEST_CASE("every image stands in one batch of each epoch, and two epochs have different orders") {
  const Dataset set = models::load_dataset("digits");
  // Gives each image a label of its own, so that the labels of a batch show which images the batch holds.
  Dataset numbered = set;
  for (std::size_t i = 0; i < numbered.labels.size(); ++i) numbered.labels[i] = static_cast<std::int32_t>(i);
  const core::Graph graph = images(479);  // the epoch of 1437 images has exactly three batches
  const Batches batches(numbered, graph, 5);
  std::vector<std::vector<std::int32_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int32_t>& seen = epochs.emplace_back();
    for (std::int64_t i = 0; i < 3; ++i) {
      const Batch batch = batches.training(3 * epoch + i);
      seen.insert(seen.end(), integers(batch).begin(), integers(batch).end());
    }
    CHECK(std::set<std::int32_t>(seen.begin(), seen.end()).size() == 1437);
    CHECK(std::ranges::max(seen) == 1436);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(integers(batches.training(1)) == std::vector(epochs[0].begin() + 479, epochs[0].begin() + 958));
  CHECK(integers(Batches(numbered, graph, 6).training(1)) != integers(batches.training(1)));
}

TEST_CASE("images are enlarged by repeating pixels, copied to all channels, and moved by at most the shift") {
  const Dataset set = models::load_dataset("digits");
  const core::Graph graph = images(2, 16);
  const Batches batches(set, graph, 1, 0);
  const Batch test = batches.test(0);
  const std::vector<float>& pixels = floats(test);
  REQUIRE(pixels.size() == 2U * 16 * 16 * 3);
  for (std::size_t y = 0; y < 16; ++y) {
    for (std::size_t x = 0; x < 16; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        REQUIRE(pixels[(y * 16 + x) * 3 + c] ==
                set.pixels[static_cast<std::size_t>(set.training) * 64 + y / 2 * 8 + x / 2]);
      }
    }
  }
  CHECK(integers(test)[0] == set.labels[static_cast<std::size_t>(set.training)]);

  // There are nine shifts by at most one pixel along each axis. Every moved image must be the original image after one
  // of these shifts, and each shift must occur.
  const core::Graph single = images(1, 8);
  const Batches still(set, single, 1, 0), moved(set, single, 1, 1);
  std::set<std::pair<int, int>> shifts;
  for (std::int64_t step = 0; step < 60; ++step) {
    const Batch before = still.training(step), after = moved.training(step);
    CHECK(integers(before) == integers(after));
    const float dark = std::ranges::min(set.pixels);
    int matches = 0;
    for (int down = -1; down <= 1; ++down) {
      for (int right = -1; right <= 1; ++right) {
        bool same = true;
        for (int y = 0; y < 8; ++y) {
          for (int x = 0; x < 8; ++x) {
            const bool inside = x - right >= 0 && x - right < 8 && y - down >= 0 && y - down < 8;
            const float from =
                inside ? floats(before)[static_cast<std::size_t>(((y - down) * 8 + x - right) * 3)] : dark;
            same = same && floats(after)[static_cast<std::size_t>((y * 8 + x) * 3)] == from;
          }
        }
        if (!same) continue;
        ++matches;
        shifts.emplace(right, down);
      }
    }
    REQUIRE(matches >= 1);
  }
  CHECK(shifts.size() == 9);
}

TEST_CASE("test batches hold the test part once; the last one repeats its first images") {
  const Dataset set = models::load_dataset("digits");
  const core::Graph graph = images(100, 8);
  const Batches batches(set, graph, 1);
  REQUIRE(batches.test_batches() == 4);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::vector<std::int32_t> some = batches.test_labels(i);
    CHECK(std::ssize(some) == batches.test(i).examples);
    labels.insert(labels.end(), some.begin(), some.end());
  }
  CHECK(labels == std::vector(set.labels.begin() + 1437, set.labels.end()));
  const Batch last = batches.test(3);
  CHECK(last.examples == 60);
  CHECK(integers(last)[60] == integers(last)[0]);
  CHECK(integers(last).size() == 100);
}

TEST_CASE("the label of a character is the next character; test passages do not overlap") {
  const Dataset set = models::load_dataset("shakespeare");
  const core::Graph graph =
      build("gpt2", {{"batch", 3}, {"seq", 40}, {"layers", 1}, {"width", 8}, {"heads", 1}, {"vocab", 62}});
  const Batches batches(set, graph, 9);
  for (const Batch& batch : {batches.training(0), batches.training(1), batches.test(0)}) {
    const auto &tokens = integers(batch, 0), &labels = integers(batch);
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t i = 0; i + 1 < 40; ++i) REQUIRE(labels[row * 40 + i] == tokens[row * 40 + i + 1]);
    }
  }
  CHECK(integers(batches.training(0)) != integers(batches.training(1)));
  const Batch test = batches.test(1);
  CHECK(integers(test, 0)[0] == set.labels[static_cast<std::size_t>(set.training + 3 * 40)]);
  CHECK(batches.test_batches() == (set.examples - set.training - 1) / 40 / 3 + 1);
}

TEST_CASE("passages of different steps and seeds are drawn independently") {
  const Dataset set = models::load_dataset("shakespeare");
  const core::Graph graph =
      build("gpt2", {{"batch", 16}, {"seq", 40}, {"layers", 1}, {"width", 8}, {"heads", 1}, {"vocab", 62}});
  std::set<std::vector<std::int32_t>> different;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const Batches batches(set, graph, seed);
    for (std::int64_t step = 0; step < 50; ++step) {
      const Batch batch = batches.training(step);
      const auto& tokens = integers(batch, 0);
      for (std::size_t row = 0; row < 16; ++row)
        different.emplace(tokens.begin() + static_cast<std::int64_t>(row) * 40,
                          tokens.begin() + static_cast<std::int64_t>(row + 1) * 40);
    }
  }
  // About 16 of 2,400 random passages begin where an earlier passage does: 2400^2 / (2 * 179955), with 179,955 places
  // to begin. So most places must be different.
  CHECK(different.size() > 2350);
}

TEST_CASE("vectors of pixels have targets that are 1 at the label") {
  const Dataset set = models::load_dataset("digits");
  const core::Graph graph = build("ffn", {{"batch", 4}, {"layers", 2}, {"width", 8}, {"inputs", 70}, {"outputs", 12}});
  const Batch batch = Batches(set, graph, 1).test(0);
  const auto& targets = std::get<std::vector<float>>(batch.inputs[1].values);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t c = 0; c < 12; ++c)
      CHECK(targets[row * 12 + c] == (static_cast<std::int32_t>(c) == set.labels[1437 + row] ? 1.0F : 0.0F));
    CHECK(floats(batch)[row * 70 + 5] == set.pixels[(1437 + row) * 64 + 5]);
    CHECK(floats(batch)[row * 70 + 69] == 0.0F);
  }
}

TEST_CASE("data that does not fit a graph is refused, with its inputs") {
  const Dataset digits = models::load_dataset("digits"), text = models::load_dataset("shakespeare");
  const auto refusal = [](const Dataset& set, const core::Graph& graph) {
    return tests::error_of([&] { Batches(set, graph, 1); });
  };
  const core::Graph unet = build("unet", {{"batch", 1}, {"image", 32}});
  CHECK(tests::contains(refusal(digits, unet), "int32 labels [batch]"));
  CHECK(tests::contains(refusal(digits, unet), "'labels' (i32 [1, 32, 32])"));
  CHECK(tests::contains(refusal(digits, build("resnet18", {{"batch", 1}, {"image", 32}, {"classes", 9}})),
                        "distinguishes 9 classes, but the data has 10"));
  CHECK(tests::contains(refusal(text, images()), "tokens and labels"));
  const auto gpt2 = [](std::int64_t seq, std::int64_t vocab) {
    return build("gpt2", {{"batch", 1}, {"seq", seq}, {"layers", 1}, {"width", 8}, {"heads", 1}, {"vocab", vocab}});
  };
  CHECK(tests::contains(refusal(text, gpt2(8, 61)), "distinguishes 61 classes, but the data has 62"));
  CHECK(tests::contains(refusal(text, gpt2(20'000, 62)), "passages of 20000 characters are too long"));
  CHECK(tests::contains(refusal(digits, build("ffn", {{"batch", 4}, {"inputs", 63}})), "at least 64 elements"));
  CHECK(tests::contains(refusal(digits, build("ffn", {{"batch", 4}, {"inputs", 64}, {"outputs", 9}})),
                        "at least 10 elements"));
}

}  // namespace cairn::batches_test
