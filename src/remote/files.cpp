// Remote files for Roots: what an address is, its bytes, and what lies below it. Files that were
// found are kept, so that looking at one and opening it is one request.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/remote_files.h"
#include "base/text.h"
#include "remote/paged_file.h"
#include "remote/policy.h"
#include "remote/scheme.h"

namespace tensordiff::remote {
namespace {

// How long what a server said is believed without asking again. A server of ours asks about its
// files every second.
constexpr std::chrono::seconds kBelieved{30};
constexpr uint64_t kWholeMax = 8ULL << 20;  // A file that is taken whole where there are no ranges.
constexpr std::size_t kKnownMax = 400'000;  // Files that are remembered: two full listings.

using Clock = std::chrono::steady_clock;

// The reading end of one file: holds every answer to what the first one said.
class Source {
 public:
  Source(Request request, uint64_t size) : request_(std::move(request)), size_(size) {}

  Result<std::string> read(ByteRange range) {
    Request request = request_;
    {
      const std::scoped_lock lock(mutex_);
      request.moved = moved_;
    }
    Result<Piece> got = get_range(request, range);
    if (!got.ok()) return std::move(got).error();
    Piece& piece = got.value();
    if (piece.missing) return Error("the file is no longer on the server");
    const std::scoped_lock lock(mutex_);
    if (validator_.empty()) validator_ = piece.validator;
    if (piece.total != size_ || piece.validator != validator_)
      return Error("the file changed on the server while it was read");
    moved_ = piece.moved;
    if (piece.body.size() != range.count)
      return Error("{} bytes came where {} were asked for", piece.body.size(), range.count);
    return std::move(piece.body);
  }

  void expect(const Piece& first) {
    const std::scoped_lock lock(mutex_);
    validator_ = first.validator;
    moved_ = first.moved;
  }

 private:
  const Request request_;
  const uint64_t size_;
  std::mutex mutex_;
  std::string validator_, moved_;
};

struct Known {
  uint64_t size = 0;
  std::string hash = {};
  std::string validator = {};
  Clock::time_point time = {};
  std::shared_ptr<PagedFile> file = {};  // Made when it is first opened.
  Bytes whole = {};                      // Instead, of a server without ranges.
};

struct Folder {
  std::vector<Listed> files;
  Clock::time_point time;
};

bool is_fresh(Clock::time_point time) { return Clock::now() - time < kBelieved; }

uint64_t stamp(std::string_view text) { return std::hash<std::string_view>()(text); }

class Library {
 public:
  Result<Roots::Entry> look(const std::string& url) {
    const Address address = TRY(address_of(url));
    if (!address.scheme->is_folder(address.rest)) {
      const Result<Known> known = find(url, address);
      if (known.ok() || !address.scheme->list || known.error().message() != kMissing) {
        const Known file = TRY(Result<Known>(known));
        return Roots::Entry{"", file.size, stamp(file.validator + file.hash), false, false};
      }
    }
    const auto folder = TRY(list(url, address));
    if (folder->files.empty()) return Error("{}", kMissing);
    Roots::Entry entry;
    entry.folder = true;
    return entry;
  }

  Result<Bytes> map(const std::string& url) {
    const Address address = TRY(address_of(url));
    Known known = TRY(find(url, address));
    if (known.whole.owner) return known.whole;
    if (known.size == 0) return bytes_of("");
    if (!known.file || !known.file->intact()) {
      auto source = std::make_shared<Source>(TRY(address.scheme->file(address.rest)), known.size);
      known.file = TRY(shared_file(known, source));
      remember(url, known);
    }
    return known.file->bytes();
  }

  Result<void> walk(const std::string& url, const std::function<bool(Roots::Entry)>& take) {
    const Address address = TRY(address_of(url));
    if (!address.scheme->list)
      return Error("the folders of a web server cannot be listed: name a file or an index");
    const auto folder = TRY(list(url, address));
    for (const Listed& file : folder->files)
      if (!take({file.name, file.size, stamp(file.hash), false, false})) return {};
    return {};
  }

 private:
  static constexpr std::string_view kMissing = "no such file or folder on the server";

  void remember(const std::string& url, const Known& known) {
    const std::scoped_lock lock(mutex_);
    if (known_.size() > kKnownMax) known_.clear();
    known_[url] = known;
  }

  // Whether all files of a folder are known.
  bool is_listed(const std::string& folder) {
    const std::scoped_lock lock(mutex_);
    const auto found = folders_.find(folder);
    return found != folders_.end() && is_fresh(found->second->time);
  }

  // What is known of a file, asking the server where that is nothing or too long ago.
  Result<Known> find(const std::string& url, const Address& address) {
    std::optional<Known> before;
    {
      const std::scoped_lock lock(mutex_);
      if (const auto found = known_.find(url); found != known_.end()) before = found->second;
    }
    const bool sound = before && (!before->file || before->file->intact());
    if (sound && is_fresh(before->time)) return *before;
    if (!before && is_listed(remote_parent(url))) return Error("{}", kMissing);
    const Request request = TRY(address.scheme->file(address.rest));
    Piece piece = TRY(get_range(request, {0, kBlockBytes}, kWholeMax));
    if (piece.missing) return Error("{}", kMissing);
    Known known{piece.total, piece.hash, piece.validator, Clock::now(), nullptr, {}};
    if (sound && before->validator == piece.validator && before->size == piece.total) {
      before->time = known.time;
      known = *before;
    } else if (piece.whole) {
      known.whole = bytes_of(std::move(piece.body));
    } else if (piece.total > 0) {
      auto source = std::make_shared<Source>(request, piece.total);
      source->expect(piece);
      known.file = TRY(shared_file(known, source, piece.body));
    }
    remember(url, known);
    return known;
  }

  // The pages of a file: those of another one, where both have one hash.
  Result<std::shared_ptr<PagedFile>> shared_file(const Known& known,
                                                 const std::shared_ptr<Source>& source,
                                                 const std::string& start = "") {
    const std::scoped_lock lock(mutex_);
    const auto key = std::pair(known.hash, known.size);
    const bool by_hash = policy().trust_hashes && !known.hash.empty();
    if (by_hash) {
      const std::shared_ptr<PagedFile> same = by_hash_[key].lock();
      if (same && same->intact()) return same;
    }
    std::shared_ptr<PagedFile> file =
        TRY(PagedFile::make(known.size, [source](ByteRange range) { return source->read(range); }));
    if (!start.empty()) file->start_with(start);
    if (by_hash) by_hash_[key] = file;
    return file;
  }

  Result<std::shared_ptr<const Folder>> list(const std::string& url, const Address& address) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = folders_.find(url);
      if (found != folders_.end() && is_fresh(found->second->time)) return found->second;
    }
    auto folder = std::make_shared<Folder>();
    folder->files = TRY(address.scheme->list(address.rest));
    folder->time = Clock::now();
    const std::scoped_lock lock(mutex_);
    for (const Listed& file : folder->files) {
      Known& known = known_[remote_child(url, file.name)];
      if (known.size != file.size || known.hash != file.hash) known = {file.size, file.hash};
      known.time = folder->time;
    }
    std::shared_ptr<const Folder> kept = std::move(folder);
    folders_[url] = kept;
    return kept;
  }

  std::mutex mutex_;
  std::map<std::string, Known> known_;
  std::map<std::string, std::shared_ptr<const Folder>> folders_;
  std::map<std::pair<std::string, uint64_t>, std::weak_ptr<PagedFile>> by_hash_;
};

Library& library() {
  static Library* const all = new Library;
  return *all;
}

constexpr RemoteFiles kFiles = {
    .look = [](const std::string& url) { return library().look(url); },
    .map = [](const std::string& url) { return library().map(url); },
    .walk = [](const std::string& url,
               const std::function<bool(Roots::Entry)>& take) { return library().walk(url, take); },
    .lists =
        [](const std::string& url) {
          const Result<Address> address = address_of(url);
          return address.ok() && address.value().scheme->list != nullptr;
        },
    .shown = [](const std::string& url) { return shown(url); },
};

}  // namespace

Policy& policy() {
  static Policy the_policy;
  return the_policy;
}

void enable() { set_remote_files(&kFiles); }

}  // namespace tensordiff::remote
