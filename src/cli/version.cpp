#include "cli/version.h"

#include <H5public.h>
#include <fmt/format.h>
#include <hwy/targets.h>
#include <sqlite3.h>
#include <zlib.h>
#include <zstd.h>

#include <iterator>

#include "base/build_info.h"
#include "formats/folder.h"
#include "formats/format.h"

namespace tensordiff {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

#if defined(__x86_64__)
constexpr const char* kMachine = "x86-64";
#elif defined(__aarch64__)
constexpr const char* kMachine = "arm64";
#else
constexpr const char* kMachine = "another machine";
#endif

// The instruction set that comparisons use here: Highway's targets have the best at the lowest bit.
const char* instruction_set() {
  const int64_t all = hwy::SupportedTargets();
  return hwy::TargetName(all & -all);
}

}  // namespace

std::string version_text() {
  return fmt::format(
      "tensordiff {}\n"
      "commit     {}\n"
      "built      {}, {}, {}\n"
      "libraries  HDF5 {}.{}.{} (sandboxed), SQLite {}, zlib {}, zstd {}\n"
      "formats    {}\n"
      "CPU        {}\n",
      kVersion, kCommit, kCompiler, kMachine,
#ifdef NDEBUG
      "release",
#else
      "debug",
#endif
      H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, sqlite3_libversion(), zlibVersion(),
      ZSTD_versionString(), std::size(formats::kAll) + std::size(folders::kAll), instruction_set());
}

}  // namespace tensordiff
