// What needs_pmix.h promises: the dynamic section of the file, read with care, as it is anybody's.
#include "step/needs_pmix.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace berth::step {
namespace {

/// A file in memory whose parts are copied out, never pointed to beyond its end.
class Image {
 public:
  explicit Image(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat found{};
    if (!fd || ::fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_size <= 0)
      return;
    const auto size = static_cast<std::size_t>(found.st_size);
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), size};
  }
  ~Image() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  template <class T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }
  [[nodiscard]] std::string_view text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = bytes_.substr(offset);
    const std::size_t end = rest.find('\0');
    return end == rest.npos ? std::string_view() : rest.substr(0, end);
  }

 private:
  std::string_view bytes_;
};

constexpr int kMostEntries = 4096;

/// Where in the file an address of the program lies.
std::optional<std::uint64_t> offset_of(const Image& image, const Elf64_Ehdr& header,
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
  const Image image(program);
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
