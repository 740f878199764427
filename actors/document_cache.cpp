#include "actors/document_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "actors/host_view.hpp"
#include "actors/trusted_file.hpp"
#include "protocol/cached_documents.hpp"

namespace bulkhead {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 256;
constexpr std::uintmax_t most_bytes = 64 * mebibyte;

struct cached_file {
  fs::file_time_type written;
  std::uintmax_t bytes = 0;
  fs::path path;
};

} // namespace

document_cache::document_cache(std::string folder, std::shared_ptr<spdlog::logger> log)
    : folder_{std::move(folder)}, log_{std::move(log)} {}

std::string document_cache::path_of(const server_entry& entry) const {
  return folder_ + "/" + cached_documents_name(entry);
}

documents_ptr document_cache::load(const server_entry& entry) const {
  if (folder_.empty()) {
    return nullptr;
  }
  auto path = path_of(entry);
  auto text = read_trusted_file(path, largest_cached_documents, {::geteuid(), {}});
  if (!text && text.error().code == errc::not_found) {
    return nullptr;
  }
  auto documents = text ? decode_cached_documents(*text, entry)
                        : expected<server_documents>{tl::unexpected{text.error()}};
  if (!documents) {
    log_->warn("what was kept of the tools of \"{}\" is dropped: {}: {}", entry.name, path,
               documents.error().message);
    ::unlink(path.c_str());
    return nullptr;
  }
  return std::make_shared<const server_documents>(std::move(*documents));
}

void document_cache::store(const server_entry& entry, const server_documents& documents) const {
  if (folder_.empty()) {
    return;
  }
  auto path = path_of(entry);
  auto text = encode_cached_documents(documents);
  if (text.size() > largest_cached_documents) {
    ::unlink(path.c_str());
    return;
  }
  std::error_code failure;
  if (fs::create_directories(folder_, failure)) {
    fs::permissions(folder_, fs::perms::owner_all, failure);
  }
  if (auto written = write_small_file(path, text, 0600); !written) {
    log_->info("the tools of \"{}\" can't be searched before it starts next time: {}", entry.name,
               written.error().message);
    return;
  }
  make_room();
}

void document_cache::make_room() const {
  std::vector<cached_file> files;
  std::uintmax_t total = 0;
  std::error_code failure;
  for (fs::directory_iterator at{folder_, failure}; !failure && at != fs::directory_iterator{};
       at.increment(failure)) {
    std::error_code gone;
    cached_file file{at->last_write_time(gone), 0, at->path()};
    if (!gone && at->is_regular_file(gone)) {
      file.bytes = at->file_size(gone);
      total += gone ? 0 : file.bytes;
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.written > b.written; });
  while (!files.empty() && (files.size() > most_files || total > most_bytes)) {
    total -= files.back().bytes;
    fs::remove(files.back().path, failure);
    files.pop_back();
  }
}

} // namespace bulkhead
