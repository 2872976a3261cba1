// What remote inputs may do and cost. Set for the whole process, since all of them share one cache.

#include "base/text.h"
#include "cli/remote_options.h"
#include "cli/values.h"
#include "remote/policy.h"

namespace tensordiff {
namespace {

constexpr uint64_t kCacheMin = 16ULL << 20;  // A few requests of 4 MiB for each of two inputs.

Result<std::size_t> count_between(std::string_view text, std::size_t least, std::size_t most) {
  const uint64_t count = TRY(parse_count(text));
  if (count < least || count > most) return Error("{} is not between {} and {}", text, least, most);
  return static_cast<std::size_t>(count);
}

constexpr Option kOptions[] = {
    {"--remote-cache", "BYTES", "memory for blocks of remote files (default 256MiB)",
     [](Settings&, std::string_view text) -> Result<void> {
       const uint64_t bytes = TRY(parse_size(text));
       if (bytes < kCacheMin) return Error("less than {}", human_bytes(kCacheMin));
       remote::policy().cache_bytes = bytes;
       return {};
     }},
    {"--remote-connections", "N", "most requests at once (default 16)",
     [](Settings&, std::string_view text) -> Result<void> {
       remote::policy().connections = TRY(count_between(text, 1, 256));
       return {};
     }},
    {"--remote-retries", "N", "tries after a failed request (default 5)",
     [](Settings&, std::string_view text) -> Result<void> {
       remote::policy().retries = TRY(count_between(text, 0, 100));
       return {};
     }},
    {"--remote-timeout", "SECONDS", "give up a request that makes no progress (default 30)",
     [](Settings&, std::string_view text) -> Result<void> {
       remote::policy().timeout_seconds = TRY(count_between(text, 1, 3600));
       return {};
     }},
    {"--remote-http", "", "allow http:// to other machines, which is not encrypted",
     [](Settings&, std::string_view) -> Result<void> {
       remote::policy().http = true;
       return {};
     }},
    {"--remote-read-all", "", "compare values even where servers give one hash",
     [](Settings&, std::string_view) -> Result<void> {
       remote::policy().trust_hashes = false;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::remote = {
    .title = "remote inputs (https://, s3://, gs://, hf://; see docs/remote.md)",
    .options = kOptions};

}  // namespace tensordiff
