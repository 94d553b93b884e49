#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/split_list.hpp"

/// Options whose text goes through core/parse, so that errors name the option and no locale matters.
namespace hbmscope {

template <class Target, class Parse>
CLI::Option* add_parsed(CLI::App& command, const std::string& name, Target& target, Parse parse,
                        const std::string& help, const std::string& type) {
  return command
      .add_option_function<std::string>(
          name, [&target, parse, name](const std::string& text) { target = parse(text, name); }, help)
      ->type_name(type)
      ->expected(1);
}

template <class Target>
CLI::Option* add_length(CLI::App& command, const std::string& name, Target& target, const std::string& help) {
  return add_parsed(
      command, name, target, [](std::string_view text, std::string_view option) { return parse_length(text, option); },
      help, "N");
}
/// What is counted in ones; a suffix k is fine here too.
template <class Target>
CLI::Option* add_count(CLI::App& command, const std::string& name, Target& target, const std::string& help,
                       std::int64_t least = 1) {
  return add_parsed(
      command, name, target,
      [least](std::string_view text, std::string_view option) { return parse_count(text, option, least); }, help, "N");
}
/// A count of which 0 makes no sense.
template <class Target>
CLI::Option* add_positive_count(CLI::App& command, const std::string& name, Target& target, const std::string& help) {
  const auto parse = [](std::string_view text, std::string_view option) {
    const std::int64_t count = parse_count(text, option);
    if (count > 0) return count;
    throw Error(ErrorKind::usage, std::string(option) + ": must be at least 1, got " + std::string(text),
                "write a whole number from 1 on");
  };
  return add_parsed(command, name, target, parse, help, "N");
}
template <class Target>
CLI::Option* add_real(CLI::App& command, const std::string& name, Target& target, const std::string& help) {
  return add_parsed(
      command, name, target, [](std::string_view text, std::string_view option) { return parse_real(text, option); },
      help, "X");
}
/// Which CUDA device.
inline CLI::Option* add_device(CLI::App& command, int& target, const std::string& help) {
  return add_parsed(
      command, "--device", target,
      [](std::string_view text, std::string_view option) {
        constexpr std::int64_t kMost = 1023;
        const std::int64_t device = parse_count(text, option, 0);
        if (device > kMost) {
          throw Error(ErrorKind::usage,
                      std::string(option) + ": no machine has that many devices, got " + std::string(text),
                      "nvidia-smi lists this machine's, from 0");
        }
        return static_cast<int>(device);
      },
      help, "N");
}
template <class Target>
CLI::Option* add_bytes(CLI::App& command, const std::string& name, Target& target, const std::string& help) {
  return add_parsed(
      command, name, target, [](std::string_view text, std::string_view option) { return parse_bytes(text, option); },
      help, "BYTES");
}

}  // namespace hbmscope
