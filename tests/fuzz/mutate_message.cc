#include "tests/fuzz/mutate_message.h"

#include <cmath>
#include <limits>

namespace kiln::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

int64_t odd_number(int64_t now, Random& random) {
  switch (random.below(6)) {
    case 0: return now + 1;
    case 1: return now - 1;
    case 2: return random.below(12);
    case 3: return -random.between(1, 5);
    case 4: return std::numeric_limits<int64_t>::max() - random.below(3);
    default: return std::numeric_limits<int64_t>::min() + random.below(3);
  }
}

double odd_double(Random& random) {
  return random.pick(std::vector<double>{0.0, -0.0, 1e308, 5e-324, 3.5, -1.0,
                                         std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::quiet_NaN()});
}

std::string odd_text(const std::string& now, Random& random) {
  static const std::vector<std::string> kTexts = {
      "",     "add",       "sum",  "split", "fuse",   "threadIdx.x",  "if_then_else", "max",
      "\xff", "reorder",   "bind", "tile",  "select", "floordiv",     "compute_at",   "any",
      "a b",  "vectorize", "cast", "exp",   "less",   "\xed\xa0\x80", "S.update",     "nan"};
  switch (random.below(5)) {
    case 0: return now + "x";
    case 1: return std::string(1, '\0') + now;
    case 2: return std::string(static_cast<size_t>(random.between(100, 400)), 'n');
    default: return random.pick(kTexts);
  }
}

/// Sets one value, of a field or of an element of a repeated one (index >= 0).
class Setter {
 public:
  Setter(Message& message, const FieldDescriptor* field, int index, Random& random)
      : message_(message),
        reflection_(*message.GetReflection()),
        field_(field),
        index_(index),
        random_(random) {}

  void set() {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32: return set_uint32();
      case FieldDescriptor::CPPTYPE_INT64: return set_int64();
      case FieldDescriptor::CPPTYPE_DOUBLE: return set_double();
      case FieldDescriptor::CPPTYPE_BOOL: return set_bool();
      case FieldDescriptor::CPPTYPE_ENUM: return set_enum();
      case FieldDescriptor::CPPTYPE_STRING: return set_string();
      default: return;
    }
  }

 private:
  void set_uint32() {
    const uint32_t now = index_ < 0 ? reflection_.GetUInt32(message_, field_)
                                    : reflection_.GetRepeatedUInt32(message_, field_, index_);
    const auto value = static_cast<uint32_t>(odd_number(now, random_));
    if (index_ < 0) {
      reflection_.SetUInt32(&message_, field_, value);
    } else {
      reflection_.SetRepeatedUInt32(&message_, field_, index_, value);
    }
  }

  void set_int64() {
    const int64_t now = index_ < 0 ? reflection_.GetInt64(message_, field_)
                                   : reflection_.GetRepeatedInt64(message_, field_, index_);
    // Only the wrap-around of extremes is left to chance here.
    const int64_t near = std::min(std::max<int64_t>(now, -1'000'000), int64_t{1'000'000});
    const int64_t value = odd_number(near, random_);
    if (index_ < 0) {
      reflection_.SetInt64(&message_, field_, value);
    } else {
      reflection_.SetRepeatedInt64(&message_, field_, index_, value);
    }
  }

  void set_double() {
    const double value = odd_double(random_);
    if (index_ < 0) {
      reflection_.SetDouble(&message_, field_, value);
    } else {
      reflection_.SetRepeatedDouble(&message_, field_, index_, value);
    }
  }

  void set_bool() {
    const bool value = random_.chance(0.5);
    if (index_ < 0) {
      reflection_.SetBool(&message_, field_, value);
    } else {
      reflection_.SetRepeatedBool(&message_, field_, index_, value);
    }
  }

  void set_enum() {
    const int value = random_.between(-1, 17);
    if (index_ < 0) {
      reflection_.SetEnumValue(&message_, field_, value);
    } else {
      reflection_.SetRepeatedEnumValue(&message_, field_, index_, value);
    }
  }

  void set_string() {
    const std::string now = index_ < 0 ? reflection_.GetString(message_, field_)
                                       : reflection_.GetRepeatedString(message_, field_, index_);
    const std::string value = odd_text(now, random_);
    if (index_ < 0) {
      reflection_.SetString(&message_, field_, value);
    } else {
      reflection_.SetRepeatedString(&message_, field_, index_, value);
    }
  }

  Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor* field_;
  const int index_;
  Random& random_;
};

void add_element(Message& message, const FieldDescriptor* field, int like, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    Message* added = reflection.AddMessage(&message, field);
    if (like >= 0) added->CopyFrom(reflection.GetRepeatedMessage(message, field, like));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    reflection.AddUInt32(&message, field, static_cast<uint32_t>(random.below(20)));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    reflection.AddInt64(&message, field, random.below(20));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.AddString(&message, field, odd_text("", random));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    reflection.AddEnumValue(&message, field, random.between(-1, 17));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    reflection.AddDouble(&message, field, odd_double(random));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    reflection.AddBool(&message, field, random.chance(0.5));
  }
}

void mutate_repeated(Message& message, const FieldDescriptor* field, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, field);
  const int at = size == 0 ? -1 : random.below(size);
  const int choice = random.below(10);
  if (size == 0 || choice == 0) return add_element(message, field, at, random);
  if (choice == 1) return reflection.RemoveLast(&message, field);
  if (choice == 2) return reflection.SwapElements(&message, field, at, random.below(size));
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return mutate(*reflection.MutableRepeatedMessage(&message, field, at), random);
  }
  Setter(message, field, at, random).set();
}

}  // namespace

void mutate(Message& message, Random& random) {
  const Reflection& reflection = *message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  const bool any_field = fields.empty() || random.chance(0.15);
  if (any_field && descriptor->field_count() == 0) return;
  const FieldDescriptor* field =
      any_field ? descriptor->field(random.below(descriptor->field_count())) : random.pick(fields);
  if (field->is_repeated()) return mutate_repeated(message, field, random);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (random.chance(0.03)) return reflection.ClearField(&message, field);
    return mutate(*reflection.MutableMessage(&message, field), random);
  }
  Setter(message, field, -1, random).set();
}

}  // namespace kiln::testing
