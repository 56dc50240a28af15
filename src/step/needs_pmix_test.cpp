// Files made by hand: what a linker writes, and what it would never write.
#include "step/needs_pmix.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/fd.h"

namespace berth::step {
namespace {

template <class T>
void put(std::string& out, std::size_t at, const T& value) {
  if (out.size() < at + sizeof value) out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

/// An ELF file that needs these libraries and has nothing else.
std::string program_with(const std::vector<std::string>& libraries) {
  constexpr std::uint64_t kAddress = 0x400000;
  constexpr std::size_t kDynamic = 0x200;
  constexpr std::size_t kNames = 0x800;
  std::string out(0x1000, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  put(out, 0, header);
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_vaddr = kAddress;
  load.p_filesz = out.size();
  put(out, sizeof header, load);
  Elf64_Phdr dynamic{};
  dynamic.p_type = PT_DYNAMIC;
  dynamic.p_offset = kDynamic;
  put(out, sizeof header + sizeof load, dynamic);
  std::size_t entry = kDynamic;
  std::size_t name = 1;
  for (const std::string& library : libraries) {
    Elf64_Dyn needed{};
    needed.d_tag = DT_NEEDED;
    needed.d_un.d_val = name;
    put(out, entry, needed);
    entry += sizeof needed;
    out.replace(kNames + name, library.size(), library);
    name += library.size() + 1;
  }
  Elf64_Dyn names{};
  names.d_tag = DT_STRTAB;
  names.d_un.d_ptr = kAddress + kNames;
  put(out, entry, names);
  return out;
}

bool needs(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/berth-needs-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  const bool out = needs_pmix(path);
  ::unlink(path.c_str());
  return out;
}

TEST(NeedsPmix, ByTheLibrariesThatAreNamed) {
  EXPECT_TRUE(needs(program_with({"libc.so.6", "libmpi.so.40"})));
  EXPECT_TRUE(needs(program_with({"libpmix.so.2"})));
  EXPECT_FALSE(needs(program_with({"libc.so.6"})));
  EXPECT_FALSE(needs(program_with({"libmpi.so.12"})));  // MPICH, which speaks PMI
  EXPECT_FALSE(needs(program_with({})));
}

TEST(NeedsPmix, WhatIsNoProgramNeedsNothing) {
  EXPECT_FALSE(needs("#!/bin/sh\nmpirun\n"));
  EXPECT_FALSE(needs(""));
  EXPECT_FALSE(needs_pmix("/nowhere"));
  EXPECT_FALSE(needs_pmix("/dev/zero"));
  EXPECT_FALSE(needs_pmix("/"));
  EXPECT_FALSE(needs_pmix(""));
}

TEST(NeedsPmix, CutOrSpoiltFilesAreSurvived) {
  const std::string whole = program_with({"libmpi.so.40"});
  for (std::size_t size = 0; size < whole.size(); size += 7) needs(whole.substr(0, size));
  for (std::size_t at = 0; at < 0x240; ++at) {
    std::string spoilt = whole;
    spoilt[at] = '\xff';
    needs(spoilt);
  }
}

TEST(NeedsPmix, AFileThatIsCutOffMeanwhileIsSurvived) {
  const std::string whole = program_with({"libc.so.6", "libmpi.so.40"});
  const std::string path = testing::TempDir() + "/berth-cut-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << whole;
  std::atomic<bool> stop = false;
  std::thread cutter([&] {
    const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    while (!stop) {
      if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), whole.data(), whole.size(), 0) < 0) {
        break;
      }
    }
  });
  for (int i = 0; i < 20000; ++i) needs_pmix(path);
  stop = true;
  cutter.join();
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace berth::step
