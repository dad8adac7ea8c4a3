// What makes two compile requests the same. A request is decoded, checked and written again in its
// canonical form, without names and lines; the key is the hash of that form, the options, the arch
// and the build of the compiler, and the kernel's id is the key with a hash of the names. So two
// users who call their axes differently share one artifact, and each reads errors in their own
// words.
#include "server/engine/compile_request.h"

#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
#include "compiler/loops_artifact.h"
#include "runtime/core/error.h"

namespace kiln::server {

namespace {

// Raised when what is stored under a key changes its meaning.
constexpr std::string_view kFormVersion = "kiln form 1";
constexpr size_t kMaxArch = 64;

/// Each part with its length before it, so that no two lists of parts look alike.
void append(std::string& form, std::string_view part) {
  form += fmt::format("{}:", part.size());
  form += part;
}

TargetKind target_of(const v1::CompileRequest& request) {
  const std::string& name = request.target().name();
  const TargetKind kind = name.empty() ? TargetKind::Llvm : target_from_name(name);
  if (request.options().check_nan() && traits_of(kind).is_compiled) {
    fail(ErrorKind::InvalidArgument, "CHECK_NAN",
         "only the interpreter looks for NaN; name the target interpreter, not {}", name_of(kind));
  }
  return kind;
}

std::string arch_of(const v1::CompileRequest& request, TargetKind kind,
                    const CompileSetting& setting) {
  const v1::Target& target = request.target();
  if (!traits_of(kind).is_compiled) {
    if (target.arch().empty()) {
      return std::string(request.options().check_nan() ? kLoopsWithoutNan : kCheckedLoops);
    }
    fail(ErrorKind::InvalidArgument, "ARCH", "the interpreter has no arch, but got {}",
         target.arch().substr(0, kMaxArch));
  }
  if (target.arch().empty()) return setting.arch(kind);
  const bool plain = target.arch().find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+") == std::string::npos;
  if (!plain || target.arch().size() > kMaxArch) {
    fail(ErrorKind::InvalidArgument, "ARCH", "the arch of target {} must be a name such as {}",
         target.name(), traits_of(kind).arch_example);
  }
  return target.arch();
}

KernelNames names_of(const language::Kernel& kernel) {
  KernelNames names;
  names.kernel = kernel.names.kernel;
  names.sizes = kernel.names.variables;
  names.stages = kernel.names.stages;
  for (const auto& [file, line] : kernel.names.stage_lines) {
    const std::vector<std::string>& files = kernel.names.files;
    names.lines.push_back({file < files.size() ? files[file] : "", static_cast<int>(line)});
  }
  for (const language::TensorId& parameter : kernel.definition.parameters) {
    names.parameters.push_back(kernel.names.tensor_name(kernel.definition, parameter));
  }
  return names;
}

std::string hash_of(const KernelNames& names, const language::SourceMap& map) {
  std::string all;
  append(all, names.kernel);
  for (const auto* list : {&map.variables, &map.axes, &map.stages, &map.files}) {
    append(all, std::to_string(list->size()));
    for (const std::string& name : *list)
      append(all, name);
  }
  for (const auto& line : map.stage_lines)
    append(all, fmt::format("{}.{}", line.file, line.line));
  return language::id_of(all).substr(0, 16);
}

/// The schedule without the lines it was written on.
std::string bytes_of(v1::Schedule schedule) {
  for (v1::Step& step : *schedule.mutable_steps())
    step.clear_line();
  return schedule.SerializeAsString();
}

std::string form_of(const v1::CompileRequest& wire, const std::string& arch,
                    const std::string& build_id) {
  const v1::CompileOptions& options = wire.options();
  std::string form;
  append(form, kFormVersion);
  append(form, build_id);
  append(form, wire.target().name());
  append(form, arch);
  append(form, fmt::format("{} {} {} {}", options.auto_() == v1::AUTO_MODE_NEVER, options.strict(),
                           options.fast(), options.not_reproducible()));
  append(form, wire.definition().SerializeAsString());
  append(form, bytes_of(wire.schedule()));
  return form;
}

/// What caches call a request whose wire is canonical.
void identify(CheckedRequest& checked, const std::string& names_id, const CompileSetting& setting) {
  checked.form = form_of(checked.wire, checked.wire.target().arch(), setting.build_id);
  checked.key = language::id_of(checked.form);
  checked.kernel_id = checked.key + "-" + names_id;
}

}  // namespace

CheckedRequest check_request(const v1::CompileRequest& request, const CompileSetting& setting) {
  CheckedRequest checked;
  language::CanonicalKernel canonical;
  {
    const language::Kernel kernel = language::decode(request.definition(), request.source_map());
    // What is compiled is the canonical form, so that the numbers in an artifact mean the same to
    // everybody who shares it.
    canonical =
        language::canonicalize(kernel, language::decode_schedule(request.schedule(), kernel));
  }
  checked.target = target_of(request);
  checked.names = names_of(canonical.kernel);
  *checked.wire.mutable_definition() = language::encode(canonical.kernel.definition);
  *checked.wire.mutable_source_map() = language::encode(canonical.kernel.names);
  *checked.wire.mutable_schedule() = language::encode(canonical.schedule);
  *checked.wire.mutable_options() = request.options();
  checked.wire.mutable_target()->set_arch(arch_of(request, checked.target, setting));
  checked.wire.mutable_target()->set_name(std::string(name_of(checked.target)));
  identify(checked, hash_of(checked.names, canonical.kernel.names), setting);
  return checked;
}

CheckedRequest known_request(v1::CompileRequest wire, KernelNames names,
                             const std::string& names_id, const CompileSetting& setting) {
  CheckedRequest checked;
  checked.wire = std::move(wire);
  checked.target = target_of(checked.wire);
  checked.names = std::move(names);
  identify(checked, names_id, setting);
  return checked;
}

std::string names_id_of(const CheckedRequest& checked) {
  return checked.kernel_id.substr(checked.key.size() + 1);
}

std::string tuning_of(const CheckedRequest& checked) {
  const bool is_open = traits_of(checked.target).is_compiled &&
                       checked.wire.options().auto_() != v1::AUTO_MODE_NEVER;
  return is_open ? language::id_of("tuning" + form_of(checked.wire, "", "")) : "";
}

void use_schedule(CheckedRequest& checked, const v1::Schedule& schedule,
                  const std::string& build_id, const std::string& record, std::string note) {
  const std::string names = checked.kernel_id.substr(checked.key.size());
  *checked.wire.mutable_schedule() = schedule;
  checked.form = form_of(checked.wire, checked.wire.target().arch(), build_id);
  checked.key = language::id_of(checked.form);
  checked.kernel_id = fmt::format("{}{}-{}", checked.key, names, record);
  checked.note = std::move(note);
}

}  // namespace kiln::server
