// Where configuration text comes from. Parsers ask a FileSource and never open a file themselves,
// so that tests and fuzzers run without a file system.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::conf {

inline constexpr std::size_t kMaxFileBytes = std::size_t{32} << 20;

class FileSource {
 public:
  virtual ~FileSource() = default;
  /// The whole text of a file, at most kMaxFileBytes; nullopt when there is no such file. Relative
  /// names are relative to the configuration directory.
  virtual Result<std::optional<std::string>> read(std::string_view name) const = 0;
};

/// Files of one directory (and, by absolute name, of the machine).
class DirectorySource : public FileSource {
 public:
  explicit DirectorySource(std::filesystem::path directory) : directory_(std::move(directory)) {}
  Result<std::optional<std::string>> read(std::string_view name) const override;

 private:
  std::filesystem::path directory_;
};

/// Files that live in memory.
class MemorySource : public FileSource {
 public:
  using Files = std::map<std::string, std::string, std::less<>>;  // name → text
  explicit MemorySource(Files files) : files_(std::move(files)) {}
  Result<std::optional<std::string>> read(std::string_view name) const override;

 private:
  Files files_;
};

}  // namespace berth::conf
