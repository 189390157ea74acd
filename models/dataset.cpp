#include "cairn/models/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/models/internal/embedded.h"

namespace cairn::models {
namespace {

constexpr std::array<DatasetInfo, 2> kDatasets{{
    {"digits",
     "1797 handwritten digits of 8 x 8 pixels, 10 labels; the last 360 are for tests (Alpaydin and Kaynak 1998, UCI "
     "Machine Learning Repository, CC BY 4.0)"},
    {"shakespeare",
     "199,994 characters of plays by William Shakespeare, 62 different ones; the last tenth is for tests (public "
     "domain)"},
}};

constexpr std::int64_t kDigitsSide = 8;
constexpr std::int64_t kTestDigits = 360;
constexpr std::int64_t kTextParts = 10;  // the text is divided into this many parts; the last part is for tests

/// Reads models/data/digits.txt. The first lines of this file describe its format.
Dataset digits() {
  Dataset set;
  set.name = "digits";
  set.classes = 10;
  set.height = set.width = kDigitsSide;
  constexpr std::size_t kPixels = kDigitsSide * kDigitsSide;
  for (std::string_view rest = embedded::digits(); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.size() != kPixels + 1) throw std::logic_error(fmt::format("digits: '{}' is not an image", line));
    for (const char pixel : line.substr(0, kPixels)) set.pixels.push_back(static_cast<float>(pixel - 'A'));
    set.labels.push_back(line.back() - '0');
  }
  set.examples = std::ssize(set.labels);
  set.training = set.examples - kTestDigits;
  return set;
}

Dataset shakespeare() {
  Dataset set;
  set.name = "shakespeare";
  set.kind = Dataset::Kind::text;
  const std::string_view text = embedded::shakespeare();
  set.alphabet = text;
  std::ranges::sort(set.alphabet);
  set.alphabet.erase(std::unique(set.alphabet.begin(), set.alphabet.end()), set.alphabet.end());
  for (const char c : text)
    set.labels.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(set.alphabet, c) - set.alphabet.begin()));
  set.classes = std::ssize(set.alphabet);
  set.examples = std::ssize(set.labels);
  set.training = set.examples - set.examples / kTextParts;
  return set;
}

/// Shifts and scales all pixels so that the pixels of the training part have the mean 0 and the standard deviation 1.
void standardise(Dataset& set) {
  const auto count = static_cast<std::size_t>(set.training * set.height * set.width);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += static_cast<double>(set.pixels[i]);
    squares += static_cast<double>(set.pixels[i]) * static_cast<double>(set.pixels[i]);
  }
  const double mean = sum / static_cast<double>(count);
  const double deviation = std::sqrt(squares / static_cast<double>(count) - mean * mean);
  for (float& pixel : set.pixels) pixel = static_cast<float>((static_cast<double>(pixel) - mean) / deviation);
}

}  // namespace

std::span<const DatasetInfo> datasets() { return kDatasets; }

Dataset load_dataset(std::string_view name) {
  if (name == "shakespeare") return shakespeare();
  if (name == "digits") {
    Dataset set = digits();
    standardise(set);
    return set;
  }
  std::vector<std::string_view> names;
  for (const DatasetInfo& info : kDatasets) names.push_back(info.name);
  throw core::InputError(
      fmt::format("unknown data set '{}': use digits or shakespeare{}", name, core::did_you_mean(name, names)));
}

}  // namespace cairn::models
