// What only `tensordiff check` asks of a file: checksums that opening leaves alone, bytes that
// belong to nothing, names that promise another format, code in a file that cannot be opened.
//
// To add one for a format: define it in formats/<name>.cpp and add it to the list below. A format
// whose opening sees all of that has none.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

struct Auditor {
  const Format* format;
  std::vector<Problem> (*audit)(const Input& input);
};

namespace audits {

extern const Auditor torch_zip;
extern const Auditor torch_legacy;
extern const Auditor torch_export;
extern const Auditor gguf;
extern const Auditor npy;
extern const Auditor npz;
extern const Auditor pickle;
extern const Auditor zip;
extern const Auditor tar;

inline constexpr const Auditor* kAll[] = {&torch_zip, &torch_legacy, &torch_export, &gguf, &npy,
                                          &npz,       &pickle,       &zip,          &tar};

}  // namespace audits

// What is wrong with a file or folder, or suspicious, that opening it does not say. Reads all of
// it.
std::vector<Problem> audit_model(const std::string& path, const OpenOptions& options = {});

// The same for one file that is already at hand.
std::vector<Problem> audit_input(const Input& input, std::string_view format = {});

// The same for a file of a folder or an archive, where the problems are told by its path.
struct ArchiveFile;
void audit_member(const ArchiveFile& member, const Input& archive, std::vector<Problem>& problems);

}  // namespace tensordiff
