// Tests the device kernels of embeddings, on a simulated device.
#include <algorithm>

#include "cairn/runtime/device/kernels/embedding.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_embedding_test {
namespace {

/// Returns ids of which about one in `often` is random. All other ids are 1.
Tensor skewed_ids(const Shape& shape, std::int32_t vocabulary, unsigned often, std::mt19937& random) {
  Tensor ids = random_integers(shape, vocabulary, random);
  for (std::int32_t& id : ids.integers) {
    if (random() % often != 0) id = 1;
  }
  return ids;
}

void check_grad(const Tensor& ids, std::int64_t vocabulary, std::int64_t channels, std::mt19937& random) {
  Shape shape = ids.shape;
  shape.push_back(channels);
  INFO(ids.integers.size() << " ids of " << vocabulary << ", " << channels << " channels");
  check_device_op(make_op(OpKind::embedding_grad, {vocabulary, channels}), {random_tensor(shape, random), ids});
}

}  // namespace

TEST_CASE("device: embedding agrees with the host", "[device]") {
  std::mt19937 random(1);
  for (const std::int64_t channels : {1, 5, 8, 64, 1032}) {
    for (const auto& [batch, sequence] : std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 5}, {1, 1}, {2, 40}}) {
      const Tensor ids = random_integers({batch, sequence}, 11, random);
      const Tensor table = random_tensor({11, channels}, random),
                   positions = random_tensor({sequence, channels}, random);
      const Shape out{batch, sequence, channels};
      check_device_op(make_op(OpKind::embedding, out), {ids, table});
      check_device_op(make_op(OpKind::embedding, out), {ids, table, positions});
    }
  }
}

TEST_CASE("device: the gradient of an embedding agrees with the host", "[device]") {
  std::mt19937 random(2);
  for (const std::int64_t channels : {1, 5, 8, 72, 520}) {
    for (const std::int64_t count : {1, 2, 16, 17, 200}) {
      for (const std::int32_t vocabulary : {1, 11, 1000}) {
        check_grad(random_integers({count}, vocabulary, random), vocabulary, channels, random);
      }
    }
  }
}

TEST_CASE("device: an embedding whose ids occur often", "[device]") {
  std::mt19937 random(3);
  for (const std::int64_t channels : {3, 16}) {
    check_grad(skewed_ids({3000}, 50, 2, random), 50, channels, random);
    check_grad(skewed_ids({3, 1000}, 50, 20, random), 50, channels, random);
    check_grad(skewed_ids({3000}, 50, 3000, random), 50, channels, random);
    check_grad(random_integers({3000}, 3, random), 3, channels, random);
  }
  // Once sorted, the ids form runs of `length` equal ids. Segments of the sorted list have 16 places. Depending on
  // `length`, runs end at the ends of segments or elsewhere.
  for (const std::size_t length : {8, 15, 16, 17, 32, 48}) {
    Tensor ids{{192}, {}, std::vector<std::int32_t>(192)};
    for (std::size_t i = 0; i < ids.integers.size(); ++i) ids.integers[i] = static_cast<std::int32_t>(i / length);
    std::shuffle(ids.integers.begin(), ids.integers.end(), random);
    check_grad(ids, 24, 12, random);
  }
}

}  // namespace cairn::tests::device_embedding_test
