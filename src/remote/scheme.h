// A kind of address, and the list of them.
//
// To add one: write remote/<name>.cpp and add <name> to the list below.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "remote/http.h"

namespace tensordiff::remote {

struct Listed {
  std::string name;  // From the folder on, with '/'. Checked: it leads nowhere else.
  uint64_t size = 0;
  std::string hash;  // Of the content; may be empty.
};

struct Scheme {
  std::string_view name;  // "s3": what stands before "://".
  std::string_view summary;
  // Whether an address can only be that of a folder. `rest` is what stands behind "://".
  bool (*is_folder)(std::string_view rest);
  Result<Request> (*file)(std::string_view rest);
  // All files of a folder and below it; nullptr: its folders cannot be listed.
  Result<std::vector<Listed>> (*list)(std::string_view rest);
};

namespace schemes {

extern const Scheme https;
extern const Scheme http;
extern const Scheme s3;
extern const Scheme gs;
extern const Scheme hf;

inline constexpr const Scheme* kAll[] = {&https, &http, &s3, &gs, &hf};

}  // namespace schemes

// Limits on what a server may tell of a folder.
inline constexpr std::size_t kListedMax = 200'000;         // As the files of a local folder.
inline constexpr uint64_t kListingBytesMax = 64ULL << 20;  // Of one page of it.
inline constexpr std::size_t kListingPagesMax = 1000;

struct Address {
  const Scheme* scheme = nullptr;
  std::string rest;
};
Result<Address> address_of(std::string_view url);

}  // namespace tensordiff::remote
