#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/formats/support/tensors.h"

static_assert(std::endian::native == std::endian::little, "tensors are stored as they are in memory");

namespace cairn::core {
namespace {

using formats::Json;
using formats::OrderedJson;

// Names of the element types in files, in the order of ElementType.
constexpr std::array<std::string_view, 3> kTypes{"F32", "I32", "BF16"};
constexpr std::string_view kTexts = "__metadata__";
constexpr std::uint64_t kMostHeader = std::uint64_t{100} << 20;  // bytes; the format's own limit
constexpr std::size_t kHeaderUnit = 8;  // the header is padded, so that the tensors begin at multiples of 8 bytes

std::string header_of(const TensorFile& file) {
  OrderedJson header;
  if (!file.texts.empty()) header[kTexts] = file.texts;
  std::size_t begin = 0;
  for (const NamedTensor& tensor : file.tensors) {
    const std::size_t end = begin + tensor.bytes.size();
    header[tensor.name] = {{"dtype", kTypes[static_cast<std::size_t>(tensor.type)]},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((kHeaderUnit - text.size() % kHeaderUnit) % kHeaderUnit, ' ');
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::error_code ignored;
    if (const auto status = std::filesystem::status(path, ignored);
        std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      fail("is not a file, so it cannot be read as tensors");
    stream_.open(path, std::ios::binary);
    if (!stream_) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    stream_.seekg(0, std::ios::end);
    size_ = static_cast<std::uint64_t>(stream_.tellg());
    stream_.seekg(0);
  }

  TensorFile read() {
    const Json header = read_header();
    TensorFile file;
    std::uint64_t end = 0;  // end of the last tensor in the file, counted from the end of the header
    for (const auto& [name, entry] : header.items()) {
      if (name == kTexts) {
        file.texts = read_texts(entry);
      } else {
        file.tensors.push_back(read_entry(name, entry));
        end = std::max(end, ends_.back());
      }
    }
    if (end != size_ - begin_)
      fail(fmt::format("has {} bytes, but {} belong to it; it is {}", size_, begin_ + end,
                       size_ < begin_ + end ? "truncated" : "not what was written"));
    for (std::size_t i = 0; i < file.tensors.size(); ++i) read_bytes(file.tensors[i], ends_[i]);
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{}: {}", path_, what)); }

  Json read_header() {
    std::uint64_t length = 0;
    stream_.read(reinterpret_cast<char*>(&length), sizeof(length));
    if (!stream_ || length > kMostHeader || length > size_ - sizeof(length))
      fail("is not a file of tensors (safetensors), or is truncated");
    std::string text(length, '\0');
    stream_.read(text.data(), static_cast<std::streamsize>(length));
    begin_ = sizeof(length) + length;
    Json header = Json::parse(text, nullptr, false);
    if (!stream_ || !header.is_object()) fail("is not a file of tensors (safetensors): its header is not JSON");
    return header;
  }

  [[noreturn]] void fail_at(std::string_view name) const {
    fail(fmt::format("the header's entry for '{}' is not valid", name));
  }

  std::map<std::string, std::string> read_texts(const Json& entry) const {
    try {
      return entry.get<std::map<std::string, std::string>>();
    } catch (const Json::exception&) {
      fail_at(kTexts);
    }
  }

  NamedTensor read_entry(const std::string& name, const Json& entry) {
    NamedTensor tensor;
    tensor.name = name;
    try {
      const auto type = entry.at("dtype").get<std::string>();
      const auto known = std::ranges::find(kTypes, type);
      if (known == kTypes.end()) fail(fmt::format("tensor '{}' has the type {}, which is not supported", name, type));
      tensor.type = static_cast<ElementType>(known - kTypes.begin());
      tensor.shape = entry.at("shape").get<Shape>();
      const auto [begin, end] = entry.at("data_offsets").get<std::pair<std::uint64_t, std::uint64_t>>();
      const std::int64_t bytes = element_bytes(tensor.type) * element_count(tensor.shape);
      if (end < begin || end - begin != static_cast<std::uint64_t>(bytes))
        fail(
            fmt::format("tensor '{}' has the offsets {} to {}, but its shape needs {} bytes", name, begin, end, bytes));
      tensor.bytes.resize(static_cast<std::size_t>(end <= size_ - begin_ ? bytes : 0));
      ends_.push_back(end);
    } catch (const Json::exception&) {
      fail_at(name);
    } catch (const InputError& error) {  // element_count() throws it
      if (std::string_view(error.what()).starts_with(path_)) throw;
      fail(fmt::format("tensor '{}': {}", name, error.what()));
    }
    return tensor;
  }

  void read_bytes(NamedTensor& tensor, std::uint64_t end) {
    stream_.seekg(static_cast<std::streamoff>(begin_ + end - tensor.bytes.size()));
    stream_.read(reinterpret_cast<char*>(tensor.bytes.data()), static_cast<std::streamsize>(tensor.bytes.size()));
    if (!stream_) fail("cannot be read to its end");
  }

  std::string path_;
  std::ifstream stream_;
  std::uint64_t size_ = 0, begin_ = 0;  ///< bytes of the file, and where the tensors begin
  std::vector<std::uint64_t> ends_;     ///< end of each tensor, counted from begin_
};

}  // namespace

void write_tensors(const std::string& path, const TensorFile& file) {
  FileWriter writer(path, FileWriter::FixedPart{});
  const std::string header = header_of(file);
  const std::uint64_t length = header.size();
  writer.write({reinterpret_cast<const char*>(&length), sizeof(length)});
  writer.write(header);
  for (const NamedTensor& tensor : file.tensors)
    writer.write({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  writer.commit();
}

TensorFile read_tensors(const std::string& path) { return Reader(path).read(); }

}  // namespace cairn::core
