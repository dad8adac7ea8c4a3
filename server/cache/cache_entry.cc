// The bytes of a cache entry, on disk and in Redis alike. Nothing of an entry is used before its
// checksum is right and its form is the one asked for.
//
//   header (48 bytes), canonical form, artifact
#include "server/cache/cache_entry.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <xxhash.h>

namespace kiln::server {

namespace {

constexpr std::array<char, 8> kMagic = {'K', 'I', 'L', 'N', 'K', 'A', 'R', 'T'};
constexpr uint32_t kVersion = 1;

/// Numbers as this machine has them: machines of another order of bytes run other code anyway.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t reserved = 0;
  uint64_t form_bytes = 0;
  uint64_t artifact_bytes = 0;
  std::array<uint64_t, 2> checksum{};
};
static_assert(sizeof(Header) == 48);

std::array<uint64_t, 2> checksum_of(std::string_view contents) {
  const XXH128_hash_t hash = XXH3_128bits(contents.data(), contents.size());
  return {hash.low64, hash.high64};
}

Header header_of(std::string_view entry) {
  Header header;
  std::memcpy(&header, entry.data(), sizeof header);
  return header;
}

}  // namespace

std::string pack_entry(std::string_view form, std::string_view artifact) {
  std::string entry(sizeof(Header), '\0');
  entry.reserve(entry.size() + form.size() + artifact.size());
  entry += form;
  entry += artifact;
  Header header;
  header.form_bytes = form.size();
  header.artifact_bytes = artifact.size();
  header.checksum = checksum_of(std::string_view(entry).substr(sizeof header));
  std::memcpy(entry.data(), &header, sizeof header);
  return entry;
}

std::string damage_of(std::string_view entry) {
  if (entry.size() < sizeof(Header)) return "it is too short";
  const Header header = header_of(entry);
  if (header.magic != kMagic) return "it is no cache entry";
  if (header.version != kVersion) return "it is of another version";
  const std::string_view body = entry.substr(sizeof header);
  if (header.form_bytes > body.size() || header.artifact_bytes != body.size() - header.form_bytes) {
    return "its length is wrong";
  }
  if (header.checksum != checksum_of(body)) return "its checksum is wrong";
  return "";
}

bool is_of_form(std::string_view entry, std::string_view form) {
  return entry.substr(sizeof(Header), header_of(entry).form_bytes) == form;
}

void keep_artifact(std::string& entry) {
  entry.erase(0, sizeof(Header) + header_of(entry).form_bytes);
}

}  // namespace kiln::server
