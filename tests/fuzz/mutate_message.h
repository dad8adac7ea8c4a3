#pragma once

#include <google/protobuf/message.h>

#include "tests/support/random.h"

namespace kiln::testing {

/// Changes one field somewhere in the message: a number to a near, far or extreme one, a text, an
/// element that goes, comes twice or changes places, a part that is dropped.
void mutate(google::protobuf::Message& message, Random& random);

}  // namespace kiln::testing
