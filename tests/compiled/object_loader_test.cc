#include "runtime/cpu/object_loader.h"

#include <cstring>
#include <random>

#include <elf.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "runtime/core/error.h"
#include "runtime/cpu/elf_object.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// An object with constants, a call of the C library and a parallel loop.
std::string object_of(const char* text) {
  const language::TextKernel kernel = language::parse_text(text, "test")[0];
  return compile(kernel.kernel, {}, {TargetKind::Llvm, "x86-64-v2"}, {}).code;
}

const std::string& example() {
  static const std::string object = object_of(
      "kernel f(A: float32[n, m]) -> (B: float32[n, m], C: float64[n]) {\n"
      "  B[i, j] = sin(A[i, j]) * 3.5 + pow(A[i, j], 2.5)\n"
      "  C[i] = sum[k < m](hypot(float64(A[i, k]), 2.0))\n"
      "}\n");
  return object;
}

const std::vector<std::string> kEntries = {"kiln_compact"};

TEST(ObjectLoader, PutsEachObjectIntoMemoryOfItsOwn) {
  const auto loader = make_object_loader();
  const auto first = loader->load(example(), kEntries);
  const auto second = loader->load(example(), kEntries);
  ASSERT_EQ(first->entries().size(), 1u);
  EXPECT_NE(first->entries()[0], second->entries()[0]);
}

TEST(ObjectLoader, RefusesACallOfWhatKernelsMayNot) {
  std::string object = example();
  const size_t at = object.find("hypot");
  ASSERT_NE(at, std::string::npos);
  object.replace(at, 5, "popen");
  const Error error = expect_error(
      [&] { make_object_loader()->load(object, kEntries); }, ErrorKind::InvalidArgument,
      "the kernel's code cannot be loaded: it calls popen, which kernels may not");
  EXPECT_EQ(error.reason(), "ARTIFACT_CORRUPT");
}

TEST(ObjectLoader, RefusesAnObjectThatEndsEarly) {
  const auto loader = make_object_loader();
  for (size_t length = 0; length < example().size(); length += 13)
    EXPECT_THROW(loader->load(example().substr(0, length), kEntries), Error) << length;
}

TEST(ObjectLoader, RefusesAnObjectForAnotherMachine) {
  std::string object = example();
  const uint16_t machine = EM_AARCH64;
  std::memcpy(object.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  expect_error([&] { make_object_loader()->load(object, kEntries); }, ErrorKind::InvalidArgument,
               "the kernel's code cannot be loaded: it is no object for x86-64");
}

/// Changes the first relocation of the object.
template <typename Change>
std::string with_relocation(const Change& change) {
  std::string object = example();
  Elf64_Ehdr file;
  std::memcpy(&file, object.data(), sizeof file);
  for (size_t i = 0; i < file.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + file.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_RELA) continue;
    Elf64_Rela relocation;
    std::memcpy(&relocation, object.data() + section.sh_offset, sizeof relocation);
    change(relocation);
    std::memcpy(object.data() + section.sh_offset, &relocation, sizeof relocation);
    return object;
  }
  ADD_FAILURE() << "the object has no relocations";
  return object;
}

TEST(ObjectLoader, RefusesRelocationsThatItDoesNotKnow) {
  const std::string object = with_relocation([](Elf64_Rela& relocation) {
    relocation.r_info = ELF64_R_INFO(ELF64_R_SYM(relocation.r_info), R_X86_64_TPOFF32);
  });
  expect_error([&] { make_object_loader()->load(object, kEntries); }, ErrorKind::InvalidArgument,
               "the kernel's code cannot be loaded: relocations of type 23 are not known");
}

TEST(ObjectLoader, RefusesAddressesOutOfReach) {
  const std::string object =
      with_relocation([](Elf64_Rela& relocation) { relocation.r_addend = int64_t{1} << 40; });
  expect_error([&] { make_object_loader()->load(object, kEntries); }, ErrorKind::InvalidArgument,
               "the kernel's code cannot be loaded: an address is out of reach");
}

TEST(ObjectLoader, RefusesTablesThatDoNotFitTogether) {
  const std::string object =
      with_relocation([](Elf64_Rela& relocation) { relocation.r_offset = uint64_t{1} << 40; });
  expect_error([&] { make_object_loader()->load(object, kEntries); }, ErrorKind::InvalidArgument,
               "the kernel's code cannot be loaded: its tables do not fit together");
}

/// What is not checked before it is used would be read or written outside of the object here.
TEST(ObjectLoader, SurvivesAnyDamage) {
  const auto loader = make_object_loader();
  std::mt19937_64 random(11);
  int refused = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string object = example();
    const auto changes = 1 + random() % 3;
    for (uint64_t i = 0; i < changes; ++i) {
      // Half of them where tables stand: at the begin and in the last part.
      const size_t part = random() % 2 == 0 ? object.size() : sizeof(Elf64_Ehdr);
      const size_t at =
          random() % 4 == 0 ? random() % part : object.size() - 1 - random() % (object.size() / 2);
      object[at] = static_cast<char>(random() % 3 == 0 ? random() : random() % 8 * 32);
    }
    try {
      loader->load(object, kEntries);
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.reason() == "ARTIFACT_CORRUPT" || error.reason() == "DEVICE_MEMORY")
          << error.what();
    }
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace kiln::testing
