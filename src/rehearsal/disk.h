// The disk under the store of a rehearsal: SQLite's own files, with a memory of what was written
// and not synced yet. A process that is killed leaves all it has written; a machine that loses its
// power leaves what was synced, and of the rest as much as had come to the disk by then.
#pragma once

#include <string>

#include "rehearsal/random.h"

namespace berth::rehearsal {

class Disk {
 public:
  /// From now on stores of this process are on such disks.
  static void install();

  /// No room for anything that is to be written, from now on or not any more.
  static void set_full(bool full);
  /// What a store in `from` has written so far.
  static void copy_written(const std::string& from, const std::string& to);
  /// What is left of it after a power cut. A file is written in order.
  static void copy_synced(const std::string& from, const std::string& to, Random& random);
  /// No store is in that folder any more.
  static void forget(const std::string& folder);
};

}  // namespace berth::rehearsal
