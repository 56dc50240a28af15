// Whether a program is linked with a library that will ask for PMIx: then it is worth to be ready
// before it starts.
#pragma once

#include <string>

namespace berth::step {

/// By the libraries that an ELF file names itself. A script, or Python with mpi4py, does not show
/// it: those are served when they ask.
bool needs_pmix(const std::string& program);

}  // namespace berth::step
