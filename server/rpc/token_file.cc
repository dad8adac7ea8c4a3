// Who shows which token is which tenant. The file is looked at again at most once a second; one
// that has become unreadable or wrong is named in the log, and the tokens before stay.
//
//   alice 0f9c...    ->  "Bearer 0f9c..." is a call of alice
//   0f9c...          ->  ... of a daemon that tells nobody apart
//
// No token is ever part of a message.
#include "server/rpc/token_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

constexpr auto kPeriod = std::chrono::seconds(1);

/// Takes the same time for any presented token of one length, so that it cannot be guessed
/// bytewise.
bool same_token(std::string_view expected, std::string_view presented) {
  return expected.size() == presented.size() &&
         CRYPTO_memcmp(expected.data(), presented.data(), expected.size()) == 0;
}

/// As users, tenants may be part of a file's name, and other kinds of tenants have a colon.
bool is_name(const std::string& text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

TokenFile::TokenFile(std::string path)
    : path_(std::move(path)), entries_(read(path_)), version_(version()) {}

std::optional<std::string> TokenFile::tenant_of(std::string_view token) {
  const std::lock_guard lock(mutex_);
  reload_if_changed(Clock::now());
  std::optional<std::string> tenant;
  // All are compared: the time does not tell which one was nearly right.
  for (const Entry& entry : entries_) {
    if (same_token(entry.token, token)) tenant = entry.tenant;
  }
  return tenant;
}

std::vector<TokenFile::Entry> TokenFile::read(const std::string& path) {
  std::ifstream file(path);
  std::vector<Entry> entries;
  std::string line;
  bool has_lines = false;
  for (int number = 1; std::getline(file, line); ++number) {
    has_lines = true;
    std::istringstream words(line);
    std::vector<std::string> parts;
    for (std::string word; words >> word;)
      parts.push_back(word);
    if (parts.empty() || parts[0][0] == '#') continue;
    if (parts.size() > 2 || (parts.size() == 2 && !is_name(parts[0]))) {
      fail(ErrorKind::InvalidArgument, "CONFIG",
           "line {} of {} is neither TOKEN nor TENANT TOKEN, with a name of letters, digits, "
           "dots, - and _",
           number, path);
    }
    Entry entry{.tenant = parts.size() == 2 ? parts[0] : "", .token = parts.back()};
    for (const Entry& other : entries) {
      if (other.token != entry.token || other.tenant == entry.tenant) continue;
      fail(ErrorKind::InvalidArgument, "CONFIG", "line {} of {} gives two tenants one token",
           number, path);
    }
    entries.push_back(std::move(entry));
  }
  if (!has_lines) {
    fail(ErrorKind::InvalidArgument, "CONFIG", "cannot read the token in {}", path);
  }
  if (entries.empty()) {
    fail(ErrorKind::InvalidArgument, "CONFIG", "the token in {} is empty", path);
  }
  return entries;
}

std::optional<TokenFile::Version> TokenFile::version() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
  return Version{.device = status.st_dev,
                 .inode = status.st_ino,
                 .bytes = status.st_size,
                 .seconds = status.st_mtim.tv_sec,
                 .nanoseconds = status.st_mtim.tv_nsec};
}

void TokenFile::reload_if_changed(Clock::time_point now) {
  if (now - looked_ < kPeriod) return;
  looked_ = now;
  // Taken before it is read: a change meanwhile is seen the next time.
  const std::optional<Version> present = version();
  if (present == version_) return;
  version_ = present;
  try {
    entries_ = read(path_);
    spdlog::info("{} tokens were read from {} again", entries_.size(), path_);
  } catch (const Error& error) {
    spdlog::warn("{}; the tokens before stay", error.message());
  }
}

}  // namespace kiln::server
