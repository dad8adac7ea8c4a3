#pragma once

#include <functional>
#include <string>

#include "kiln/v1/service.pb.h"
#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln::server {

/// A Compile request that was checked, with everything that caches need to know of it.
struct CheckedRequest {
  v1::CompileRequest wire;  // canonical, the target's name and arch filled in
  TargetKind target = TargetKind::Llvm;
  KernelNames names;
  std::string form;       // equal forms, equal artifacts; free of names
  std::string key;        // a hash of the form
  std::string kernel_id;  // the key, and a hash of the names
  std::string note;       // KernelEntry::note
};

/// What a compile depends on beside the request.
struct CompileSetting {
  std::string build_id;                         // of the compiler
  std::function<std::string(TargetKind)> arch;  // what an empty arch means; throws NO_DEVICE
};

/// Throws in the user's names. Nothing in `request` is trusted.
CheckedRequest check_request(const v1::CompileRequest& request, const CompileSetting& setting);

/// The request of what check_request() once said: `wire`, `names` and names_id_of() of it. Nothing
/// is decoded.
CheckedRequest known_request(v1::CompileRequest wire, KernelNames names,
                             const std::string& names_id, const CompileSetting& setting);

/// A hash of all names of the request, which its kernel's id ends with.
std::string names_id_of(const CheckedRequest& checked);

/// A hash of what tuning records of the request are about: neither who compiles nor for which CPU.
/// Empty: nothing is left open.
std::string tuning_of(const CheckedRequest& checked);

/// Gives a request the steps of a tuning record instead of those it came with. `note` says so.
void use_schedule(CheckedRequest& checked, const v1::Schedule& schedule,
                  const std::string& build_id, const std::string& record, std::string note);

}  // namespace kiln::server
