// What a service needs to be reached from other machines, made at its first start: a token of 256
// random bits and a certificate that signs itself (ECDSA on P-256, ten years). Clients take the
// certificate by its fingerprint, as they take a host's key in SSH, and trust nothing else; so it
// needs no authority and no right name.
#include "server/credentials.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/ipc/fd.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

constexpr long kValidSeconds = 10L * 365 * 24 * 3600;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] != '\0' ? name.data() : "localhost";
}

/// HOST of HOST:PORT.
std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::string contents_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<size_t>(size)};
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Writes a file that its owner alone reads, whole or not at all.
void write_secret(const fs::path& path, const std::string& text) {
  const fs::path part = path.string() + ".part";
  const Fd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool written = file.get() >= 0 && ::write(file.get(), text.data(), text.size()) ==
                                              static_cast<ssize_t>(text.size());
  std::error_code error(errno, std::generic_category());
  if (written) fs::rename(part, path, error);
  if (!written || error) {
    fail(ErrorKind::InvalidArgument, "CONFIG",
         "{} cannot be written: {}; name another folder with --credentials", path.string(),
         error.message());
  }
}

std::string make_token() {
  std::array<unsigned char, 32> random{};
  KILN_CHECK(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  return hexadecimal(random.data(), random.size());
}

void add_extension(X509* certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  KILN_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

/// A certificate for the key, signed by it.
Certificate make_certificate(EVP_PKEY* key) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::array<unsigned char, 8> serial{};
  RAND_bytes(serial.data(), static_cast<int>(serial.size()));
  BIGNUM* number = BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValidSeconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(kServiceName), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate.get(), NID_subject_alt_name,
                fmt::format("DNS:{},DNS:{},DNS:localhost,IP:127.0.0.1", kServiceName, host_name()));
  KILN_CHECK(X509_sign(certificate.get(), key, EVP_sha256()) != 0);
  return certificate;
}

void make_identity(const fs::path& certificate_path, const fs::path& key_path) {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  KILN_CHECK(key);
  const Certificate certificate = make_certificate(key.get());
  const Memory text(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  write_secret(key_path, contents_of(text.get()));
  BIO_reset(text.get());
  PEM_write_bio_X509(text.get(), certificate.get());
  write_secret(certificate_path, contents_of(text.get()));
}

}  // namespace

std::string fingerprint_of(const std::string& pem) {
  const Memory text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr),
                                &X509_free);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1)
    fail(ErrorKind::InvalidArgument, "CONFIG", "the certificate is not in the form PEM");
  return hexadecimal(digest.data(), size);
}

bool use_credentials(Config& config) {
  if (config.credentials.empty()) return false;
  if (!config.token_file.empty() || !config.tls_cert.empty()) {
    fail(ErrorKind::InvalidArgument, "CONFIG",
         "--credentials has a token and a certificate made: leave out --token-file and --tls-cert");
  }
  const fs::path folder = config.credentials;
  std::error_code error;
  if (fs::create_directories(folder, error)) ::chmod(folder.c_str(), 0700);
  const fs::path token = folder / "token";
  const fs::path certificate = folder / "cert.pem";
  const fs::path key = folder / "key.pem";
  const bool is_first = !fs::exists(token);
  if (is_first) write_secret(token, make_token() + "\n");
  if (!fs::exists(certificate) || !fs::exists(key)) make_identity(certificate, key);
  config.token_file = token;
  config.tls_cert = certificate;
  config.tls_key = key;
  return is_first;
}

namespace {

std::string login_line(const Config& config, const std::string& address) {
  const std::string port = address.substr(address.rfind(':') + 1);
  const std::string host = host_of(address);
  const bool all = host == "0.0.0.0" || host == "[::]";
  const std::string shown = !config.advertise.empty() ? config.advertise
                            : all                     ? fmt::format("{}:{}", host_name(), port)
                                                      : address;
  std::string token = read(config.token_file);
  token.erase(token.find_last_not_of(" \n") + 1);
  return fmt::format("kiln login {} --token {} --fingerprint {}", shown, token,
                     fingerprint_of(read(config.tls_cert)));
}

}  // namespace

void say_login(const Config& config, const std::string& address, bool is_first) {
  if (config.credentials.empty()) return;
  const fs::path file = fs::path(config.credentials) / "login";
  const std::string line = login_line(config, address);
  write_secret(file, line + "\n");
  if (is_first) {
    spdlog::info("clients run once: {}", line);
  } else {
    spdlog::info("clients run once the line in {}", file.string());
  }
}

}  // namespace kiln::server
