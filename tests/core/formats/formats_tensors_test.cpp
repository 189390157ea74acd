#include <cstring>
#include <fstream>
#include <iterator>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/tensors.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/folder.h"

namespace cairn::formats_tensors_test {
namespace {

using core::ElementType;
using core::NamedTensor;
using core::TensorFile;
using tests::contains;
using tests::error_of;

std::vector<std::byte> bytes(std::size_t count, int first = 0) {
  std::vector<std::byte> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return result;
}

TensorFile some_file() {
  return {{{"step", "7"}, {"quote\"d", "line\nbreak"}},
          {{"b", ElementType::f32, {2, 3}, bytes(24)},
           {"a", ElementType::bf16, {5}, bytes(10, 50)},
           {"ids", ElementType::i32, {}, bytes(4, 9)},
           {"empty", ElementType::f32, {0, 4}, {}}}};
}

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Writes a safetensors file with this header and `data` bytes of tensors, and returns the error from reading the file.
std::string error_with_header(const tests::Folder& folder, const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string text(sizeof(length), '\0');
  std::memcpy(text.data(), &length, sizeof(length));
  const std::string path = folder.write("made.safetensors", text + header + std::string(data, 'x'));
  return error_of([&] { core::read_tensors(path); });
}

}  // namespace

TEST_CASE("tensors are read as they were written") {
  const tests::Folder folder;
  const std::string path = folder / "t.safetensors";
  core::write_tensors(path, some_file());
  const TensorFile read = core::read_tensors(path);
  CHECK(read.texts == some_file().texts);
  REQUIRE(read.tensors.size() == 4);
  for (const NamedTensor& written : some_file().tensors) {
    const auto it = std::ranges::find(read.tensors, written.name, &NamedTensor::name);
    REQUIRE(it != read.tensors.end());
    CHECK(it->type == written.type);
    CHECK(it->shape == written.shape);
    CHECK(it->bytes == written.bytes);
  }
}

TEST_CASE("the file has the layout that the format's description gives") {
  const tests::Folder folder;
  const std::string path = folder / "t.safetensors";
  core::write_tensors(path, {{}, {{"w", ElementType::f32, {2}, bytes(8, 1)}}});
  const std::string text = content(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  CHECK(length % 8 == 0);
  REQUIRE(text.size() == 8 + length + 8);
  const std::string header = text.substr(8, length);
  CHECK(header.substr(0, header.find_last_not_of(' ') + 1) ==
        R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})");
  CHECK(text.substr(8 + length) == "\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST_CASE("a file that is cut anywhere, or has bytes behind its end, is refused in one line that names it") {
  const tests::Folder folder;
  const std::string path = folder / "t.safetensors";
  core::write_tensors(path, some_file());
  const std::string whole = content(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string error = error_of([&] { core::read_tensors(folder.write("cut", whole.substr(0, size))); });
    REQUIRE(contains(error, folder / "cut"));
    REQUIRE(contains(error, "truncated"));
    REQUIRE(!contains(error, "\n"));
  }
  CHECK(contains(error_of([&] { core::read_tensors(folder.write("long", whole + "x")); }), "not what was written"));
}

TEST_CASE("a header that is not valid is refused") {
  const tests::Folder folder;
  CHECK(contains(error_with_header(folder, "[1]", 0), "its header is not JSON"));
  CHECK(contains(error_with_header(folder, "{\"w\"", 0), "its header is not JSON"));
  CHECK(contains(error_with_header(folder, R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8),
                 "tensor 'w' has the type F64"));
  CHECK(contains(error_with_header(folder, R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
                 "its shape needs 12 bytes"));
  CHECK(contains(error_with_header(folder, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "'w'"));
  // 2^62 bytes before an end of 2^64 - 1: the sum of the end and the header's length must not wrap around.
  CHECK(contains(error_with_header(folder,
                                   R"({"w":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":)"
                                   "[13835058055282163711,18446744073709551615]}}",
                                   8),
                 "what was written"));
  CHECK(
      contains(error_with_header(folder, R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "negative"));
  CHECK(contains(error_with_header(folder, R"({"w":{"dtype":"F32","shape":"x","data_offsets":[0,8]}})", 8),
                 "entry for 'w'"));
  CHECK(contains(error_with_header(folder, R"({"w":{"shape":[2],"data_offsets":[0,8]}})", 8), "entry for 'w'"));
  CHECK(contains(error_with_header(folder, R"({"__metadata__":{"a":1}})", 0), "entry for '__metadata__'"));
  CHECK(contains(error_of([&] { core::read_tensors(folder / "none"); }), "cannot be read: No such file"));
}

}  // namespace cairn::formats_tensors_test
