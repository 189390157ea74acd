#include "cairn/core/formats/files.h"

#include <fmt/format.h>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

bool looks_like_simrd(std::string_view first_line) {
  if (!first_line.starts_with('{') || first_line.find("\"INSTRUCTION\"") == std::string_view::npos) return false;
  const formats::Json line = formats::Json::parse(first_line.begin(), first_line.end(), nullptr, false);
  return line.is_object() && line.contains("INSTRUCTION");
}

bool looks_like_csv(std::string_view first_line) {
  if (first_line.starts_with('{') || first_line.starts_with('[')) return false;  // JSON on one line
  return first_line.find(',') != std::string_view::npos && first_line.find("lower") != std::string_view::npos &&
         first_line.find("upper") != std::string_view::npos;
}

/// Returns whether the line can be the first line of a PACE `.gr` file. It can be a comment, a problem line, or an edge
/// if the problem line is missing.
bool looks_like_gr(std::string_view first_line) {
  const std::string_view word = first_line.substr(0, first_line.find_first_of(" \t\r"));
  return word == "c" || word == "p" ||
         (word.size() < first_line.size() && first_line.find_first_not_of("0123456789 \t\r") == std::string_view::npos);
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace

Graph load_graph(const std::string& path, const ReadOptions& options) {
  return parse_graph(read_file(path, options), input_name(path), options);
}

Graph parse_graph(std::string_view text, const std::string& origin, const ReadOptions& options) {
  formats::Notices notices(options.warn);
  Graph graph = formats::read_graph(text, origin, options, notices);
  notices.tell();
  return graph;
}

namespace formats {

Graph read_graph(std::string_view text, std::string_view origin, const ReadOptions& options, Notices& notices) {
  text = without_bom(text);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) throw InputError(fmt::format("{}: is empty", origin));
  const std::string_view first_line = text.substr(begin, text.find('\n', begin) - begin);
  if (looks_like_simrd(first_line)) return graph_from_simrd(text, origin, options, notices);
  if (looks_like_gr(first_line)) return graph_from_gr(text, origin, options);
  if (looks_like_csv(first_line)) {
    throw InputError(
        fmt::format("{}: is a list of buffers (MiniMalloc CSV), not a graph; use `cairn plan --buffers`", origin));
  }

  const Json file = parse_json(text, origin, options, &notices);
  if (!file.is_object()) {
    throw InputError(fmt::format("{}: is not a graph: it holds {}", origin, describe(file)));
  }
  if (file.contains("format")) return graph_from_cairn_json(file, origin, notices);
  if (file.contains("nodes") && (file.contains("links") || file.contains("edges"))) {
    return graph_from_node_link(file, origin, notices);
  }
  throw InputError(
      fmt::format("{}: is not a graph: it has neither \"format\": \"cairn.graph\" nor the \"nodes\" and \"links\" of "
                  "node-link JSON",
                  origin));
}

}  // namespace formats
}  // namespace cairn::core
