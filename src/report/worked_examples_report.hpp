#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "analysis/worked_examples.hpp"
#include "report/document.hpp"

namespace hbmscope {

/// An example with its values.
struct WorkedExample {
  const WorkedEntry* entry;
  WorkedValues values;
};

/// A table a theme: the question, its values with units and where they come from; remarks and sources below.
Document worked_examples_document(std::span<const WorkedExample> examples);

/// {id: {name: value}}, unrounded and each in the unit of its name, whole numbers as integers where they are counted
/// ones; null for what cannot be had. With `details`, {id: {"values": {name: value}, "question", "provenance",
/// "remark", "source", "reasons": {name: why it is null}}}.
nlohmann::ordered_json worked_examples_to_json(std::span<const WorkedExample> examples, bool details);

}  // namespace hbmscope
