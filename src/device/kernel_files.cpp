#include "device/kernel_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace berth::device {

std::string read_text(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::string piece(4096, '\0');
  while (file && text.size() < kMost) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(file.gcount()));
  }
  return text;
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(path, failed), end; !failed && at != end;
       at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace berth::device
