#include "remote/paged_file.h"

#include "remote/pager.h"

namespace tensordiff::remote {

Result<std::shared_ptr<PagedFile>> PagedFile::make(uint64_t size, Read read) {
  Pages pages = TRY(Pages::make(size));
  std::shared_ptr<PagedFile> file(new PagedFile(std::move(pages), std::move(read)));
  Pager::instance().add(*file);
  return file;
}

PagedFile::~PagedFile() { Pager::instance().remove(*this); }

Bytes PagedFile::bytes() const {
  return owned_bytes({pages_.data(), pages_.size()}, shared_from_this());
}

void PagedFile::start_with(const std::string& bytes) {
  const uint64_t whole =
      bytes.size() == pages_.size() ? bytes.size() : bytes.size() / kBlockBytes * kBlockBytes;
  Pager::instance().keep(*this, 0, bytes.substr(0, whole));
}

std::string PagedFile::damage() const {
  const std::scoped_lock lock(message_mutex_);
  return message_.empty() ? ByteOwner::damage() : message_;
}

}  // namespace tensordiff::remote
