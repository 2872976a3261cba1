// Options of serve and demo.

#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"
#include "remote/policy.h"

namespace tensordiff {
namespace {

Result<void> apply_port(Settings& settings, std::string_view text) {
  const uint64_t port = TRY(parse_count(text));
  if (port > 65535) return Error("{} is not between 0 and 65535", text);
  settings.serve.port = static_cast<uint16_t>(port);
  settings.serve.ports = 1;
  return {};
}

constexpr Option kOptions[] = {
    {"--port", "N", "port (default: first free one from 5000; 0: any)", apply_port},
    {"--no-open", "", "print the address; do not open a browser",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.open_browser = false;
       return {};
     }},
    {"--listen", "ADDRESS", "listen on this numeric address (default 127.0.0.1)",
     [](Settings& settings, std::string_view address) -> Result<void> {
       settings.serve.listen = address;
       return {};
     }},
    {"--root", "FOLDER", "allow files below FOLDER; repeatable (default: those of A and B)",
     [](Settings& settings, std::string_view folder) -> Result<void> {
       settings.serve.roots.emplace_back(folder);
       return {};
     }},
    {"--upload-limit", "BYTES", "refuse larger uploads (default 500MB)",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.serve.upload_limit = TRY(parse_size(text));
       return {};
     }},
    {"--state", "FOLDER", "folder for sessions (default $XDG_STATE_HOME/tensordiff)",
     [](Settings& settings, std::string_view folder) -> Result<void> {
       settings.serve.state = folder;
       return {};
     }},
    {"--remote", "", "let clients open https://, s3://, gs:// and hf:// inputs",
     [](Settings&, std::string_view) -> Result<void> {
       remote::policy().private_addresses = false;
       remote::enable();
       return {};
     }},
    {"--remote-private", "", "the same, also on private, local and loopback addresses",
     [](Settings&, std::string_view) -> Result<void> {
       remote::policy().private_addresses = true;
       remote::enable();
       return {};
     }},
    {"--watch", "", "compare again when a file changes on disk",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.serve.watch = true;
       return {};
     }},
    {"--legacy-open", "", "allow the earlier debugger's routes without a token",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.serve.legacy_open = true;
       return {};
     }},
};

}  // namespace

constinit const OptionGroup option_groups::server = {.title = "server", .options = kOptions};

}  // namespace tensordiff
