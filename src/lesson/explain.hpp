#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lesson/lesson.hpp"
#include "scenario/embedded.hpp"

namespace hbmscope::lesson {

/// A core of a lesson, which `explain` prints.
struct Topic {
  std::string name;
  std::string title;  ///< the lesson's
  const EmbeddedFile* lesson = nullptr;
  std::string folder = {};  ///< where its commands run; empty for the lessons that are built in
};

/// The text of the first heading, as it is written; empty if there is none.
std::string title_of(std::string_view markdown);
/// The topics of all lessons, in their order.
std::vector<Topic> topics_of(std::span<const EmbeddedFile> lessons);

/// "--seqlen" with its values, as a command line gives it.
struct ShapeOption {
  std::string name;
  std::vector<std::string> values;
};

/// The options of a lesson's shape with those of a reader in their place. `--seqlen` also takes the place of
/// `--seqlen-q` and `--seqlen-kv`, and so for the other options whose default another one is.
std::string shape_with(std::string_view of_lesson, std::span<const ShapeOption> of_reader);

/// A core in Markdown: values and blocks computed for the reader's shape, without comments. Errors: the reader's
/// options that it cannot be computed with (kind usage); without any, what is wrong with the lesson.
std::string core_for(const Topic& topic, std::span<const ShapeOption> of_reader, Results& results);

}  // namespace hbmscope::lesson
