// Runs wrong programs, and prints what the client says of each as a line of JSON.
//
//   kiln_wrong_programs    all of them, with the service of KILN_ADDRESS

#include <iostream>

#include <nlohmann/json.hpp>

#include "tests/errors/cpp/wrong.h"

int main() {
  for (const auto& [name, program] : kiln::test::wrong_programs()) {
    nlohmann::json said{{"name", name}};
    try {
      program();
    } catch (const kiln::Error& error) {
      said.update({{"kind", name_of(error.kind())},
                   {"reason", error.reason()},
                   {"message", error.message()},
                   {"notes", error.notes()},
                   {"file", error.file()},
                   {"line", error.line()},
                   {"what", error.what()}});
    }
    std::cout << said.dump() << std::endl;
  }
}
