#include "cairn/core/formats/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/internal/json.h"

namespace cairn::core {
namespace {

bool looks_like_simrd(std::string_view first_line) {
  return first_line.starts_with('{') && first_line.find("\"INSTRUCTION\"") != std::string_view::npos &&
         formats::Json::accept(first_line.begin(), first_line.end());
}

bool looks_like_csv(std::string_view first_line) {
  return first_line.find(',') != std::string_view::npos && first_line.find("lower") != std::string_view::npos &&
         first_line.find("upper") != std::string_view::npos;
}

/// A comment, the problem line, or an edge of PACE's `.gr`, where its problem line is missing.
bool looks_like_gr(std::string_view first_line) {
  const std::string_view word = first_line.substr(0, first_line.find_first_of(" \t\r"));
  return word == "c" || word == "p" ||
         (word.size() < first_line.size() && first_line.find_first_not_of("0123456789 \t\r") == std::string_view::npos);
}

/// /proc/self/fd/1, to which /dev/stdout links: whoever opened it goes on writing to it.
bool is_descriptor(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(path.parent_path(), ignored).string().starts_with("/proc/");
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw InputError(fmt::format("{}: is a folder, not a file", path));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text;
  stream.seekg(0, std::ios::end);
  if (const auto bytes = stream.tellg(); bytes > 0) text.reserve(static_cast<std::size_t>(bytes));
  stream.clear();  // pipes cannot seek
  stream.seekg(0);
  stream.clear();
  text.assign(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

FileWriter::FileWriter(const std::string& path) : path_(path), target_(path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  bool in_place = (fs::exists(status) && !fs::is_regular_file(status)) || is_descriptor(path);
  // What a link points to is replaced, not the link, even where it does not exist yet.
  fs::path file_path = path;
  constexpr int kMostLinks = 40;
  for (int links = 0; !in_place && links < kMostLinks && fs::is_symlink(fs::symlink_status(file_path, ignored));
       ++links) {
    file_path = file_path.parent_path() / fs::read_symlink(file_path, ignored);
    in_place = is_descriptor(file_path);
  }
  if (!in_place) target_ = file_path.string();
  part_ = in_place ? path : fmt::format("{}.part{}", target_, ::getpid());
  if (!in_place && fs::is_symlink(fs::symlink_status(file_path, ignored))) fail(ELOOP);
  file_ = std::fopen(part_.c_str(), in_place ? "ab" : "wb");
  if (file_ == nullptr) fail(errno);
}

FileWriter::~FileWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  if (part_ != target_) std::remove(part_.c_str());
}

void FileWriter::fail(int error) {
  if (file_ != nullptr) std::fclose(file_);
  file_ = nullptr;
  if (part_ != target_) std::remove(part_.c_str());
  throw InputError(fmt::format("{}: cannot be written: {}; choose another output path", path_, std::strerror(error)));
}

void FileWriter::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(errno);
}

void FileWriter::commit() {
  namespace fs = std::filesystem;
  std::FILE* const file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0) fail(errno);
  if (part_ == target_) return;
  std::error_code ignored;
  const fs::file_status status = fs::status(target_, ignored);
  if (fs::exists(status)) fs::permissions(part_, status.permissions(), ignored);
  if (std::rename(part_.c_str(), target_.c_str()) != 0) fail(errno);
}

void write_file(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.commit();
}

Graph load_graph(const std::string& path, const Limit& limit) { return parse_graph(read_file(path), path, limit); }

Graph parse_graph(std::string_view text, const std::string& origin, const Limit& limit) {
  text = without_bom(text);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) throw InputError(fmt::format("{}: is empty", origin));
  const std::string_view first_line = text.substr(begin, text.find('\n', begin) - begin);
  if (looks_like_simrd(first_line)) return formats::graph_from_simrd(text, origin, limit);
  if (looks_like_gr(first_line)) return formats::graph_from_gr(text, origin, limit);
  if (looks_like_csv(first_line)) {
    throw InputError(
        fmt::format("{}: is a list of buffers (MiniMalloc CSV), not a graph; use `cairn plan --buffers`", origin));
  }

  const formats::Json file = formats::parse_json(text, origin, limit);
  if (!file.is_object()) {
    throw InputError(fmt::format("{}: is no graph: it holds {}", origin, formats::describe(file)));
  }
  if (file.contains("format")) return formats::graph_from_cairn_json(file, origin);
  if (file.contains("nodes") && (file.contains("links") || file.contains("edges"))) {
    return formats::graph_from_node_link(file, origin);
  }
  throw InputError(fmt::format(
      "{}: is no graph: it has neither \"format\": \"cairn.graph\" nor the \"nodes\" and \"links\" of node-link JSON",
      origin));
}

}  // namespace cairn::core
