// The machine code that tileiras makes of a program on tiles, and what it says of itself.
//
//   tile_cubin sm_90 4 < softmax.tile > softmax.cubin      by 4 warps; 0: as many as it thinks best
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/sequence.h"
#include "compiler/tile/text.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: tile_cubin ARCH WARPS < TEXT > CUBIN\n", stderr);
    return 2;
  }
  try {
    const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
    kiln::tile::Program program = kiln::tile::parse(text);
    kiln::tile::verify(program);
    const std::string module =
        kiln::tile::bytecode(kiln::tile::alone(std::move(program)),
                             {.arch = arguments[1], .warps = std::atoi(arguments[2])});
    const std::string cubin = kiln::codegen::Tileiras().assemble({&module, 1}, arguments[1]).at(0);
    const kiln::codegen::CubinKernel kernel = kiln::codegen::kernels_of_cubin(cubin).at(0);
    std::cout << cubin;
    std::fprintf(stderr, "{\"registers\": %d, \"stack\": %lld, \"shared\": %lld}\n",
                 kernel.registers, static_cast<long long>(kernel.stack_bytes),
                 static_cast<long long>(kernel.shared_bytes));
    return 0;
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 1;
  }
}
