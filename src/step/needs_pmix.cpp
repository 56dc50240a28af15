// What needs_pmix.h promises: the dynamic section of the file, read with care, as it is a user's.
#include "step/needs_pmix.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace berth::step {
namespace {

/// Parts of a file. They are read, not mapped: it is a user's, who may cut it off at any moment,
/// and a mapping that loses its file kills who looks at it.
class Image {
 public:
  explicit Image(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat found{};
    if (fd_ && (::fstat(fd_.get(), &found) != 0 || !S_ISREG(found.st_mode))) fd_.reset();
  }

  template <class T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) {
    const std::string_view bytes = from(offset, sizeof(T));
    if (bytes.size() < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
  }
  /// Until its end, or as much as any name that matters has.
  [[nodiscard]] std::string_view text(std::uint64_t offset) {
    const std::string_view bytes = from(offset, kMostName);
    return bytes.substr(0, bytes.find('\0'));
  }

 private:
  static constexpr std::size_t kMostName = 256;

  /// At most so many bytes; valid until the next call.
  std::string_view from(std::uint64_t offset, std::size_t count) {
    if (offset < start_ || offset - start_ > held_ || held_ - (offset - start_) < count) {
      start_ = offset;
      held_ = 0;
      if (!fd_ || offset > kMostOffset) return {};
      const ssize_t got =
          ::pread(fd_.get(), block_.data(), block_.size(), static_cast<off_t>(offset));
      held_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return std::string_view(block_.data(), held_).substr(offset - start_, count);
  }

  static constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 62;
  Fd fd_;
  std::uint64_t start_ = 0;
  std::size_t held_ = 0;
  std::array<char, 4096> block_{};
};

constexpr int kMostEntries = 4096;

/// Where in the file an address of the program lies.
std::optional<std::uint64_t> offset_of(Image& image, const Elf64_Ehdr& header,
                                       std::uint64_t address) {
  for (int i = 0; i < header.e_phnum && i < kMostEntries; ++i) {
    const auto part =
        image.at<Elf64_Phdr>(header.e_phoff + static_cast<std::uint64_t>(i) * header.e_phentsize);
    if (!part) return std::nullopt;
    if (part->p_type == PT_LOAD && address >= part->p_vaddr &&
        address - part->p_vaddr < part->p_filesz) {
      return part->p_offset + (address - part->p_vaddr);
    }
  }
  return std::nullopt;
}

bool asks_for_pmix(std::string_view library) {
  return library.starts_with("libmpi.so.40") || library.starts_with("libpmix.so") ||
         library.starts_with("libopen-rte.so") || library.starts_with("libmpi_mpifh.so");
}

}  // namespace

bool needs_pmix(const std::string& program) {
  Image image(program);
  const auto header = image.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return false;
  }
  for (int i = 0; i < header->e_phnum && i < kMostEntries; ++i) {
    const auto part =
        image.at<Elf64_Phdr>(header->e_phoff + static_cast<std::uint64_t>(i) * header->e_phentsize);
    if (!part) return false;
    if (part->p_type != PT_DYNAMIC) continue;
    std::optional<std::uint64_t> names;
    for (int pass = 0; pass < 2; ++pass) {  // where the names are stands among them
      for (int e = 0; e < kMostEntries; ++e) {
        const auto entry =
            image.at<Elf64_Dyn>(part->p_offset + static_cast<std::uint64_t>(e) * sizeof(Elf64_Dyn));
        if (!entry || entry->d_tag == DT_NULL) break;
        if (pass == 0 && entry->d_tag == DT_STRTAB) {
          names = offset_of(image, *header, entry->d_un.d_ptr);
        }
        if (pass == 1 && entry->d_tag == DT_NEEDED && names &&
            asks_for_pmix(image.text(*names + entry->d_un.d_val))) {
          return true;
        }
      }
    }
    return false;
  }
  return false;
}

}  // namespace berth::step
