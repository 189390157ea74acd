#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

constexpr std::string_view kStandard = "-";
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Returns whether the path is an open descriptor, such as /proc/self/fd/1, to which /dev/stdout links. Such a file
/// must not be replaced, because its opener continues to write to it.
bool is_descriptor(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(path.parent_path(), ignored).string().starts_with("/proc/");
}

/// Returns the limit on the bytes of an input. A limit is needed because a graph takes several times the bytes of its
/// file.
std::int64_t most_input_bytes() {
  constexpr std::int64_t kMost = std::int64_t{2} << 30;
  const char* given = std::getenv("CAIRN_MAX_INPUT");
  if (given == nullptr || *given == '\0') return kMost;
  std::int64_t bytes = 0;
  const std::string fault = size_fault(given, bytes);
  if (fault.empty()) return bytes;
  throw InputError(fmt::format("CAIRN_MAX_INPUT '{}' {}; give bytes above 0 or a size (8GiB)", given, fault));
}

}  // namespace

std::string input_name(const std::string& path) { return path == kStandard ? "stdin" : path; }
std::string output_name(const std::string& path) { return path == kStandard ? "stdout" : path; }

// --- reading -------------------------------------------------------------------------------------------------------

/// Decompresses a gzip file. Such a file consists of one or more parts, called members. Skips zero bytes after the last
/// member, because a file on a tape is padded with zero bytes.
class FileReader::Gunzip {
 public:
  /// Starts a decompression. `begun` is the part of the file that was already read.
  explicit Gunzip(std::string begun) : input_(std::move(begun)) {
    constexpr int kGzipOnly = 15 + 16;  // 15: the largest window, 2^15 bytes; 16: accepts only gzip
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
    offer();
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Appends at least one byte to `text`. Returns false at the end of the file.
  bool read(FileReader& file, std::string& text) {
    while (true) {
      if (stream_.avail_in == 0 && !ended_) refill(file);
      if (between_ && !begin_member(file)) return false;
      if (between_) continue;
      const std::size_t size = text.size();
      text.resize(size + kPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + size);
      stream_.avail_out = kPiece;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      text.resize(size + kPiece - stream_.avail_out);
      between_ = result == Z_STREAM_END;
      if (text.size() > size) return true;
      if (between_) continue;
      if (result != Z_OK && result != Z_BUF_ERROR)
        file.fail(fmt::format("the compressed data is damaged{}",
                              stream_.msg == nullptr ? "" : fmt::format(" ({})", stream_.msg)));
      if (stream_.avail_in == 0 && ended_) file.fail("the compressed data ends too early; is the file truncated?");
    }
  }

 private:
  void offer() {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(input_.size());
  }
  void refill(FileReader& file) {
    input_.resize(kPiece);
    input_.resize(file.take(input_.data(), kPiece));
    ended_ = input_.empty();
    offer();
  }
  /// Goes to the next member of the gzip file. Returns false at the end of the file.
  bool begin_member(FileReader& file) {
    for (; stream_.avail_in > 0 && *stream_.next_in == 0; ++stream_.next_in) --stream_.avail_in;
    if (stream_.avail_in == 0) return !ended_;
    if (*stream_.next_in != static_cast<unsigned char>(kGzipMagic[0]))
      file.fail("there is data after the compressed data; remove it, or expand the file yourself");
    inflateReset(&stream_);
    between_ = false;
    return true;
  }

  z_stream stream_{};
  std::string input_;
  bool ended_ = false;    ///< whether the file has ended; input_ may have unused bytes
  bool between_ = false;  ///< whether one member has ended and the next one has not begun
};

FileReader::FileReader(const std::string& path, const Limit& limit) : name_(input_name(path)), watch_(limit) {
  // Opens without blocking. Otherwise opening a pipe would block until a writer opens it, and could not be interrupted.
  file_ = path == kStandard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw InputError(fmt::format("{}: cannot be opened: {}", name_, std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  if (known && S_ISDIR(status.st_mode)) {
    if (file_ != STDIN_FILENO) ::close(file_);
    throw InputError(fmt::format("{}: is a folder, not a file", name_));
  }
  if (known && S_ISREG(status.st_mode)) size_ = status.st_size;
}

FileReader::~FileReader() {
  if (file_ > STDIN_FILENO) ::close(file_);
}

void FileReader::fail(std::string_view message) const { throw InputError(fmt::format("{}: {}", name_, message)); }

std::size_t FileReader::take(char* into, std::size_t most) {
  constexpr int kLookMs = 100;
  while (true) {
    if (watch_.passed())
      throw InterruptedError(watch_.interrupted() ? fmt::format("{}: reading it was interrupted", name_)
                                                  : fmt::format("{}: not read within the time limit; raise it", name_));
    pollfd ready{file_, POLLIN, 0};
    if (::poll(&ready, 1, kLookMs) <= 0) continue;
    const ssize_t count = (ready.revents & POLLNVAL) != 0 ? (errno = EBADF, -1) : ::read(file_, into, most);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EAGAIN && errno != EINTR) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
}

bool FileReader::read_piece(std::string& text) {
  if (gunzip_) return gunzip_->read(*this, text);
  const std::size_t size = text.size();
  text.resize(size + kPiece);
  std::size_t end = size + take(text.data() + size, kPiece);
  if (!started_) {
    started_ = true;
    // A pipe may deliver the two bytes of gzip's magic number one by one.
    if (end == size + 1 && text[size] == kGzipMagic[0]) end += take(text.data() + end, kPiece - 1);
    if (std::string_view(text).substr(size, end - size).starts_with(kGzipMagic)) {
      gunzip_ = std::make_unique<Gunzip>(text.substr(size, end - size));
      text.resize(size);
      return gunzip_->read(*this, text);
    }
  }
  text.resize(end);
  return end > size;
}

bool FileReader::read(std::string& text) {
  const std::size_t size = text.size();
  const bool more = [&] {
    try {
      return read_piece(text);
    } catch (...) {
      text.resize(size);
      throw;
    }
  }();
  if (const std::size_t zero = text.find('\0', size); zero != std::string::npos)
    fail(fmt::format("byte {} is 0, which no text holds; is it a binary file?",
                     done_ + static_cast<std::int64_t>(zero - size)));
  done_ += static_cast<std::int64_t>(text.size() - size);
  return more;
}

std::string read_file(const std::string& path, const ReadOptions& options) {
  FileReader reader(path, options.limit);
  const std::int64_t most = most_input_bytes();
  const auto require_room = [&](std::int64_t bytes) {
    if (bytes > most)
      throw InputError(
          fmt::format("{}: has more than the {} bytes ({}) that are read of one file; CAIRN_MAX_INPUT=8GiB "
                      "in the environment raises that",
                      reader.name(), most, format_bytes(most)));
  };
  require_room(reader.size());
  std::string text;
  text.reserve(static_cast<std::size_t>(reader.size()) + kPiece);
  while (reader.read(text)) {
    require_room(static_cast<std::int64_t>(text.size()));
    // The parser reports progress for a file on disk. Progress is reported here only if the total is not known, as for
    // a pipe.
    if (options.progress && reader.size() == 0) options.progress(static_cast<std::int64_t>(text.size()), 0);
  }
  return text;
}

// --- writing -------------------------------------------------------------------------------------------------------

FileWriter::FileWriter(const std::string& path) : path_(output_name(path)), target_(path), part_(path) { open(false); }

FileWriter::FileWriter(const std::string& path, FixedPart /*fixed*/)
    : path_(output_name(path)), target_(path), part_(path) {
  open(true);
}

void FileWriter::open(bool fixed_part) {
  const std::string path = target_;
  if (path == kStandard) {
    file_ = stdout;
    return;
  }
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  bool in_place = (fs::exists(status) && !fs::is_regular_file(status)) || is_descriptor(path);
  // If the target is a link, the file it points to is replaced, even if that file does not exist yet.
  fs::path file_path = path;
  constexpr int kMostLinks = 40;
  for (int links = 0; !in_place && links < kMostLinks && fs::is_symlink(fs::symlink_status(file_path, ignored));
       ++links) {
    file_path = file_path.parent_path() / fs::read_symlink(file_path, ignored);
    in_place = is_descriptor(file_path);
  }
  if (!in_place && fs::is_symlink(fs::symlink_status(file_path, ignored))) fail(ELOOP);
  if (in_place) {
    file_ = std::fopen(part_.c_str(), "ab");
  } else {
    target_ = file_path.string();
    if (fixed_part) {
      open_fixed();
    } else {
      open_beside(file_path.parent_path());
    }
  }
  if (file_ == nullptr) fail(errno);
}

namespace {

/// Creates a file that does not exist yet. Never follows a link, which another user could have made.
std::FILE* create_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  return file >= 0 ? ::fdopen(file, "wb") : nullptr;
}

}  // namespace

void FileWriter::open_fixed() {
  part_ = target_ + ".part";
  std::remove(part_.c_str());
  file_ = create_file(part_);
  if (file_ != nullptr) return;
  const int error = errno;
  part_ = target_;  // the partial file was not created, so there is none to remove
  errno = error;
}

void FileWriter::open_beside(const std::filesystem::path& folder) {
  constexpr int kTries = 100;
  std::random_device random;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::string name = fmt::format(".cairn-{:08x}{:08x}.part", random(), random());
    part_ = (folder / name).string();
    // The name is unpredictable and must not exist yet. Otherwise another user could create a link of that name, and
    // the file that the link points to would be overwritten.
    file_ = create_file(part_);
    if (file_ != nullptr) return;
    if (errno != EEXIST) break;
  }
  const int error = errno;
  part_ = target_;  // no partial file was created, so there is none to remove
  errno = error;
}

FileWriter::~FileWriter() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  if (part_ != target_) std::remove(part_.c_str());
}

void FileWriter::fail(int error) {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  file_ = nullptr;
  if (part_ != target_) std::remove(part_.c_str());
  throw InputError(fmt::format("{}: cannot be written: {}; choose another output path", path_, std::strerror(error)));
}

void FileWriter::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(errno);
}

void FileWriter::commit() {
  if (part_ != target_) {
    struct stat before {};
    if (::stat(target_.c_str(), &before) == 0 && ::fchmod(::fileno(file_), before.st_mode & 07777) != 0) fail(errno);
    // Without fsync(), a power failure could leave a file whose name is new and whose content is missing.
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail(errno);
  }
  std::FILE* const file = std::exchange(file_, nullptr);
  if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0) fail(errno);
  if (part_ == target_) return;
  if (std::rename(part_.c_str(), target_.c_str()) != 0) fail(errno);
}

void write_file(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.commit();
}

}  // namespace cairn::core
