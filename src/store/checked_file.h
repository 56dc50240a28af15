// SQLite's files with a checksum for every page, which is verified whenever a page is read.
//
// The database: the sum is in the last 8 bytes of each page, which SQLite leaves to us. It is set
// when the page is written (at a checkpoint) and lasts as long as the file.
// The log: SQLite's own checksums are verified only when it is read after a crash. While it is in
// use, the sums of its pages are remembered by this process and compared at each read.
//
//   sqlite3_open_v2(path, &database, flags, checked_files());
//
// A page that does not fit is SQLITE_IOERR_DATA; damaged_page() says which one.
#pragma once

#include <cstdint>
#include <string>

namespace berth::store {

/// The name of this kind of files, for sqlite3_open_v2().
const char* checked_files();

/// The last page that this thread found damaged: "page 17 of /path/berth.db".
const std::string& damaged_page();

}  // namespace berth::store
