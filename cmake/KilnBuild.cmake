# Compiler settings and what is found on the machine.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(KILN_CCACHE ccache)
if(KILN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KILN_CCACHE})
endif()

find_program(KILN_LLD NAMES ld.lld-19 ld.lld)
if(KILN_LLD)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 knows -fuse-ld=lld only by name; a folder of its own gives it the versioned one.
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/linker)
    file(CREATE_LINK ${KILN_LLD} ${CMAKE_BINARY_DIR}/linker/ld.lld SYMBOLIC)
    add_link_options(-B${CMAKE_BINARY_DIR}/linker -fuse-ld=lld)
  else()
    add_link_options(--ld-path=${KILN_LLD})
  endif()
endif()
add_link_options(-Wl,--gc-sections -Wl,--as-needed)
add_compile_options(-ffunction-sections -fdata-sections)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ looks for memory that it needs no more whenever it has 128 MB more; past 512 that takes a tenth of its time less.
  add_compile_options("SHELL:--param ggc-min-heapsize=524288")
endif()

if(KILN_SANITIZE)
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KILN_SANITIZE})
endif()

if(KILN_COVERAGE)
  # Programs of one executable share a few files, since there are thousands of runs.
  add_compile_options(-fcoverage-mapping
    -fprofile-instr-generate=${CMAKE_BINARY_DIR}/coverage/%4m.profraw)
  add_link_options(-fprofile-instr-generate)
endif()

# Warnings for our own sources only: targets take them by kiln_target().
set(KILN_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of overlapping copies, with -O1 also of bounds, inside std::string where there are none (GCC bug 105651).
  list(APPEND KILN_WARNINGS -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()

find_package(GTest QUIET)
find_package(Python3 COMPONENTS Interpreter REQUIRED)

# What is tested is compiled as it is shipped; the tests themselves need not be. Sanitizers look at what is written, not
# at what it is optimized to: only what computes long is optimized for them, passes over loops, the runtime and oracles
# (the command line takes clang 28.8 s with -O1, 11.8 without). Where threads are looked at, that is the runtime alone:
# workers of the server's tests play theirs, and the compiler, half of whose time to compile is for that, hardly runs.
set(KILN_TEST_OPTIONS)
set(KILN_BRIEF_OPTIONS)  # Of all else.
set(KILN_LONG_RUNNING "compiler/(analysis|ir|language/evaluate|passes|schedule|tile)|runtime|tests/support")
if(KILN_SANITIZE STREQUAL "thread")
  set(KILN_LONG_RUNNING "runtime")
endif()
if(KILN_SANITIZE)
  set(KILN_TEST_OPTIONS -O0)
  set(KILN_BRIEF_OPTIONS -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(KILN_TEST_OPTIONS -O1)
endif()

# Half of the time of most files goes into the headers of the standard library, fmt and GoogleTest.
set(KILN_PCH OFF CACHE STRING "Precompile the headers that most files include: OFF, TESTS or ON")
set(KILN_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string>
  <string_view> <thread> <tuple> <unordered_map> <unordered_set> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h>)
if(KILN_PCH AND KILN_CCACHE)
  # Without this ccache serves no build with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${KILN_CCACHE})
endif()
set(KILN_PCH_OPTIONS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(KILN_PCH_OPTIONS -fpch-preprocess)
else()
  # So that ccache compares what the headers say, not when they were written.
  set(KILN_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
endif()

# kiln_headers(NAME LIBRARY HEADER...): precompiled headers for targets that link LIBRARY.
function(kiln_headers name library)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_compile_options(${name} PRIVATE ${KILN_WARNINGS} ${KILN_PCH_OPTIONS})
  target_link_libraries(${name} PRIVATE ${library} fmt_library)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
if(KILN_PCH STREQUAL "ON")
  kiln_headers(kiln_headers Threads::Threads ${KILN_COMMON_HEADERS})
  if(KILN_BRIEF_OPTIONS)
    kiln_headers(kiln_brief_headers Threads::Threads ${KILN_COMMON_HEADERS})
    target_compile_options(kiln_brief_headers PRIVATE ${KILN_BRIEF_OPTIONS})
  endif()
endif()
if(KILN_PCH AND GTest_FOUND)
  kiln_headers(kiln_test_headers GTest::gtest ${KILN_COMMON_HEADERS} <gtest/gtest.h>)
  # As executables are compiled; a library is not.
  set_target_properties(kiln_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(kiln_test_headers PRIVATE -fPIE ${KILN_TEST_OPTIONS})
endif()

# Most of what is left is read and instantiated again in each file: together it is done once. Not for work on a few
# files, of which each change would compile all that go with it.
set(KILN_UNITY OFF CACHE STRING "Compile files of a target together, a few thousand lines at a time: OFF, TESTS or ON")
set(KILN_UNITY_LINES 2000 CACHE STRING "Lines that are compiled together, at most")

# kiln_unity(NAME): groups the sources of a target; unity_groups.py says which go together.
function(kiln_unity name)
  get_target_property(sources ${name} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "^${CMAKE_BINARY_DIR}/")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py ${KILN_UNITY_LINES} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9]+)\t(.*)$" line ${line})
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${name}_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# kiln_target(NAME): our warnings, include roots, precompiled headers and what is compiled together.
function(kiln_target name)
  target_compile_options(${name} PRIVATE ${KILN_WARNINGS})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  get_target_property(type ${name} TYPE)
  string(REGEX MATCH "_tests$" is_test ${name})
  set(headers kiln_headers)
  if(is_test)
    target_compile_options(${name} PRIVATE ${KILN_TEST_OPTIONS})
  elseif(KILN_BRIEF_OPTIONS AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/(${KILN_LONG_RUNNING})(/|$)")
    target_compile_options(${name} PRIVATE ${KILN_BRIEF_OPTIONS})
    set(headers kiln_brief_headers)
  endif()
  if(KILN_PCH AND is_test)
    target_compile_options(${name} PRIVATE ${KILN_PCH_OPTIONS})
    target_link_libraries(${name} PRIVATE fmt_library)  # As the headers, whose macros must be the same.
    target_precompile_headers(${name} REUSE_FROM kiln_test_headers)
  elseif(KILN_PCH STREQUAL "ON" AND type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
    if(type STREQUAL "EXECUTABLE")
      # Compiled as libraries are, whose headers it shares.
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${name} PRIVATE -fPIC)
    endif()
    target_compile_options(${name} PRIVATE ${KILN_PCH_OPTIONS})
    target_link_libraries(${name} PRIVATE fmt_library)
    target_precompile_headers(${name} REUSE_FROM ${headers})
  endif()
  if(KILN_UNITY STREQUAL "ON" OR (KILN_UNITY STREQUAL "TESTS" AND is_test))
    kiln_unity(${name})
  endif()
endfunction()

function(kiln_print_summary)
  if(GTest_FOUND AND KILN_TESTS)
    message(STATUS "Kiln tests: on")
  elseif(KILN_TESTS)
    message(STATUS "Kiln tests: off, GoogleTest was not found (libgtest-dev)")
  else()
    message(STATUS "Kiln tests: off (KILN_TESTS)")
  endif()
  find_path(KILN_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include)
  if(KILN_CUDA_INCLUDE)
    message(STATUS "Kiln CUDA: declarations from the toolkit in ${KILN_CUDA_INCLUDE}")
  else()
    message(STATUS "Kiln CUDA: no toolkit, declarations from our own table; libcuda and libnvrtc are opened at run time")
  endif()
endfunction()
