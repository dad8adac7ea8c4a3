# Libraries of others: <name>_library. With KILN_STATIC programs take them in: such a program runs wherever there is a
# C library as new as this machine's, and starts in a third of the time, since it has no symbols of sixty libraries to
# find (`kilnd --version`: 13.4 -> 4.5 ms). The client's shared library always takes the shared ones: archives are not
# compiled to stand in one.

option(KILN_STATIC "Programs take in the libraries of others, except the C library" OFF)

if(KILN_STATIC)
  set(ZLIB_USE_STATIC_LIBS ON)  # Before whoever asks for it first: gRPC, protobuf or LLVM.
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET libevent_extra libevent_core)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
# A definition for files of its own, which are not how the precompiled headers are.
set_target_properties(PkgConfig::HIREDIS PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_INCLUDE_DIRECTORIES "")
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
# Not by pkg-config, which takes half a minute over gRPC's static libraries.
find_package(gRPC REQUIRED CONFIG)
# Flags that it was compiled with, among them -pthread, which is not how the precompiled headers are.
set_target_properties(re2::re2 PROPERTIES INTERFACE_COMPILE_OPTIONS "")

# kiln_find_archives(VARIABLE NAME...): where lib<NAME>.a lie.
function(kiln_find_archives variable)
  set(paths)
  foreach(name ${ARGN})
    set(path path-NOTFOUND)
    find_library(path lib${name}.a REQUIRED NO_CACHE)
    list(APPEND paths ${path})
  endforeach()
  set(${variable} ${paths} PARENT_SCOPE)
endfunction()

# kiln_library(NAME SHARED STATIC...): NAME is SHARED, or what is STATIC where a program links it, or a shared library
# that takes its libraries in (KILN_SELF_CONTAINED).
function(kiln_library name shared)
  add_library(${name} INTERFACE)
  if(KILN_STATIC)
    target_link_libraries(${name} INTERFACE
      "$<IF:$<AND:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,$<NOT:$<BOOL:$<TARGET_PROPERTY:KILN_SELF_CONTAINED>>>>,${shared},${ARGN}>")
  else()
    target_link_libraries(${name} INTERFACE ${shared})
  endif()
endfunction()

if(KILN_STATIC)
  kiln_find_archives(grpc grpc++ grpc gpr upb address_sorting re2 cares)
  kiln_find_archives(protobuf protobuf z)
  kiln_find_archives(openssl ssl crypto)
  kiln_find_archives(sqlite sqlite3)
  kiln_find_archives(xxhash xxhash)
  kiln_find_archives(reflection grpc++_reflection)
  kiln_find_archives(hiredis hiredis)
  kiln_find_archives(seccomp seccomp)
  kiln_find_archives(event event_extra event_core)
  # Debian's package has no archive of this one: deploy/install-deps.sh makes it where Debian's sources can be reached.
  find_library(prometheus libprometheus-cpp-core.a NO_CACHE)
  if(NOT prometheus)
    message(STATUS "Kiln: there is no libprometheus-cpp-core.a: the daemon will need libprometheus-cpp-core.so where it runs")
    set(prometheus PkgConfig::PROMETHEUS)
  endif()
  list(GET grpc 0 folder)
  get_filename_component(folder ${folder} DIRECTORY)
  # The linker takes the members it needs, in whatever order the archives stand.
  file(GLOB abseil ${folder}/libabsl_*.a)
  list(FILTER abseil EXCLUDE REGEX "test|benchmark|libabsl_flags|failure_signal")
  # Debian has no archive of fmt: it is compiled from its headers.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fmt.cc CONTENT "#include <fmt/format-inl.h>
template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl(fmt::detail::locale_ref) -> char;
template auto fmt::detail::locale_ref::get<std::locale>() const -> std::locale;
")
  add_library(kiln_fmt STATIC ${CMAKE_BINARY_DIR}/fmt.cc)
  set_target_properties(kiln_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Nor of spdlog: read in each file, its definitions took a compiler 7 s a time.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/spdlog.cc CONTENT "#include <mutex>
#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/details/periodic_worker-inl.h>
#include <spdlog/details/registry-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>
#include <spdlog/sinks/base_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/sinks/stdout_sinks-inl.h>
#include <spdlog/spdlog-inl.h>
namespace spdlog {
template class sinks::base_sink<std::mutex>;
template class sinks::base_sink<details::null_mutex>;
template class sinks::ansicolor_sink<details::console_mutex>;
template class sinks::ansicolor_stdout_sink<details::console_mutex>;
template class sinks::stdout_sink_base<details::console_mutex>;
template class sinks::stderr_sink<details::console_mutex>;
template std::shared_ptr<logger> stderr_logger_mt<synchronous_factory>(const std::string&);
}
")
  add_library(kiln_spdlog STATIC ${CMAKE_BINARY_DIR}/spdlog.cc)
  set_target_properties(kiln_spdlog PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(kiln_spdlog PUBLIC kiln_fmt)
  target_compile_definitions(kiln_spdlog PUBLIC SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
  # Not for the client's shared library, whose exceptions programs with a standard library of their own catch.
  set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  add_link_options($<${is_program}:-static-libstdc++> $<${is_program}:-static-libgcc>)
  add_subdirectory(${CMAKE_SOURCE_DIR}/cmake/glibc)
  # Programs of others that link what is installed have no need of it.
  link_libraries($<BUILD_INTERFACE:$<${is_program}:kiln_glibc>>)
endif()

kiln_library(protobuf_library protobuf::libprotobuf ${protobuf} Threads::Threads)
kiln_library(crypto_library "OpenSSL::SSL;OpenSSL::Crypto" ${openssl} Threads::Threads ${CMAKE_DL_LIBS})
kiln_library(grpc_library gRPC::grpc++ ${grpc} ${abseil} ${openssl} ${protobuf} Threads::Threads ${CMAKE_DL_LIBS})
kiln_library(sqlite_library SQLite::SQLite3 ${sqlite} Threads::Threads ${CMAKE_DL_LIBS} m)
kiln_library(xxhash_library PkgConfig::XXHASH ${xxhash})
kiln_library(hiredis_library PkgConfig::HIREDIS ${hiredis})
kiln_library(seccomp_library PkgConfig::SECCOMP ${seccomp})
kiln_library(event_library PkgConfig::LIBEVENT ${event})
kiln_library(reflection_library gRPC::grpc++_reflection ${reflection} grpc_library)
kiln_library(prometheus_library PkgConfig::PROMETHEUS ${prometheus})
kiln_library(fmt_library fmt::fmt kiln_fmt)
kiln_library(spdlog_library spdlog::spdlog kiln_spdlog fmt_library)
# There is no archive of this one either; the few files that include it compile it.
kiln_library(toml_library PkgConfig::TOMLPLUSPLUS)
if(KILN_STATIC)
  target_compile_definitions(toml_library INTERFACE TOML_HEADER_ONLY=1)
endif()
