// A file that appears under its name when it is whole. Until then it has no name, and the kernel
// takes it back when the process that writes it ends, whatever ends it. Where a file system cannot
// do that, the file is written in its place and removed unless it was finished.
//
// Nothing but regular files is written to, and no FIFO or device is ever opened.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::step {

class NewFile {
 public:
  /// With this process's rights, mode 0600. `replace`: a file of that name may be there.
  static Result<NewFile> open(std::string path, bool replace);
  /// As open() where a file has to have its name from the beginning.
  static Result<NewFile> open_in_place(std::string path, bool replace);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// It is whole: it gets its name.
  Result<void> finish();

 private:
  NewFile(std::string path, bool replace, Fd fd, bool in_place)
      : path_(std::move(path)), replace_(replace), fd_(std::move(fd)), in_place_(in_place) {}
  [[nodiscard]] std::string own_link() const;
  Result<void> replace_old();

  std::string path_;
  bool replace_;
  Fd fd_;
  bool in_place_;  // to be removed unless it is finished
};

}  // namespace berth::step
