#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <kiln/client.h>

namespace kiln::cli {

/// The flags that every command has.
struct Common {
  std::string address;
  std::string token;
  std::string ca;
  std::string cert;
  std::string key;
  bool json = false;

  Connection connect() const {
    return client::connect(address, {.token = token, .ca = ca, .cert = cert, .key = key});
  }
};

/// The program while its flags are read: a command that is found sets what is to be done.
struct Program {
  Common common;
  std::function<int()> run;
};

/// A subcommand with the common flags.
CLI::App& add_command(CLI::App& app, Program& program, const std::string& name,
                      const std::string& description);

// Each adds its commands.
void add_bench(CLI::App& app, Program& program);
void add_cache(CLI::App& app, Program& program);
void add_run(CLI::App& app, Program& program);
void add_completion(CLI::App& app, Program& program);
void add_compile(CLI::App& app, Program& program);
void add_lower(CLI::App& app, Program& program);
void add_inspect(CLI::App& app, Program& program);
void add_jobs(CLI::App& app, Program& program);
void add_tensors(CLI::App& app, Program& program);
void add_devices(CLI::App& app, Program& program);
void add_doctor(CLI::App& app, Program& program);
void add_explain(CLI::App& app, Program& program);
void add_login(CLI::App& app, Program& program);
void add_differentiate(CLI::App& app, Program& program);
void add_format(CLI::App& app, Program& program);
void add_schedule(CLI::App& app, Program& program);
void add_serve(CLI::App& app, Program& program);
void add_profile(CLI::App& app, Program& program);
void add_top(CLI::App& app, Program& program);
void add_tune(CLI::App& app, Program& program);
void add_version(CLI::App& app, Program& program);
/// Among the commands of the cache.
void add_warm(CLI::App& cache, Program& program);

/// Compiles for a device that need not be there; what lacks an arch is told which flag names one.
Kernel compile_anywhere(const Common& common, const Definition& definition,
                        const BuildOptions& options);

/// Rows under headings, columns aligned with two spaces between.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace kiln::cli
