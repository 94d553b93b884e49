#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/suggest.hpp"
#include "lesson/fail.hpp"
#include "lesson/functions.hpp"
#include "lesson/value.hpp"
#include "report/json_path.hpp"

namespace hbmscope::lesson {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostNested = 64;  ///< parentheses, signs and powers in one another

// ---- values of a result
// ---------------------------------------------------------------------------------------------

/// Appends the keys of ".a[b=c]["d"]": those of the path itself, not of its conditions. Returns where the last step
/// begins if it is a key, and the end if it is the place in a list.
std::size_t append_keys(std::string_view steps, std::vector<std::string>& keys) {
  std::size_t last = steps.size();
  for (std::size_t at = 0; at < steps.size();) {
    const std::size_t begin = at;
    if (const auto quoted = quoted_key(steps.substr(at))) {
      keys.emplace_back(*quoted);
      at += quoted->size() + 4;
      last = begin;
    } else if (steps[at] == '.') {
      at = std::min(steps.find_first_of(".[", at + 1), steps.size());
      keys.emplace_back(steps.substr(begin + 1, at - begin - 1));
      last = begin;
    } else {
      int depth = 0;
      do {
        if (steps[at] == '[') ++depth;
        if (steps[at] == ']') --depth;
        ++at;
      } while (depth > 0 && at < steps.size());
      last = steps.size();
    }
  }
  return last;
}

/// A word such as "byte_per_s" that stands beside a number as its "unit".
std::optional<Unit> unit_beside(const Json* object, const std::string& key) {
  if (object == nullptr || !object->is_object() || (key != "value" && key != "rate" && key != "datasheet"))
    return std::nullopt;
  const auto unit = object->find("unit");
  if (unit == object->end() || !unit->is_string()) return std::nullopt;
  return unit_of_keys({unit->get<std::string>()});
}

Quantity number_of(const Json& json, const Unit& unit) {
  if (json.is_number_integer() &&
      (!json.is_number_unsigned() || json.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX))) {
    return Quantity::whole(json.get<std::int64_t>(), unit.dimension) * unit.size;
  }
  return Quantity::nearest(json.get<double>(), unit.dimension) * unit.size;
}

/// Why what stands at `steps` is null: as its object says, or the object around it, for one of the numbers in it.
std::string reason_at(const JsonPlace& place, std::string_view name, std::string_view steps) {
  std::string reason;
  for (int level = 0; level < 2 && reason.empty() && !steps.empty(); ++level) {
    std::vector<std::string> keys;
    const std::size_t last = append_keys(steps, keys);
    if (last == steps.size()) break;
    steps = steps.substr(0, last);
    reason = reason_of_null(steps.empty() ? *place.json : at_steps(*place.json, name, steps), keys.back());
  }
  return reason;
}

/// What stands at `steps`, which begin with '.' or '[', below `place`, which the lesson calls `name`.
Value follow(const JsonPlace& place, std::string_view name, std::string_view steps) {
  const Json& found = at_steps(*place.json, name, steps);
  std::vector<std::string> keys = place.keys;
  const std::size_t last = append_keys(steps, keys);
  const Json* parent = nullptr;
  if (last < steps.size()) parent = last == 0 ? place.json : &at_steps(*place.json, name, steps.substr(0, last));
  if (found.is_string()) return found.get<std::string>();
  if (found.is_boolean()) return std::string(found.get<bool>() ? "true" : "false");
  if (!found.is_number()) {
    std::string reason = found.is_null() ? reason_at(place, name, steps) : "";
    return JsonPlace{&found, std::move(keys), std::move(reason)};
  }
  const auto unit = parent == nullptr ? std::nullopt : unit_beside(parent, keys.back());
  return number_of(found, unit ? *unit : unit_of_keys(keys));
}

// ---- the parser
// -----------------------------------------------------------------------------------------------------

class Parser {
 public:
  Parser(std::string_view text, Names& names) : text_(text), names_(names) {}

  Value all() {
    skip_blanks();
    if (at_end()) fail("an expression is missing", "write a number, a name or a path, such as r.shape.seqlen_q");
    Value value = sum();
    if (!at_end()) fail("does not know what to do with " + in_quotes(rest()), "between two values stands + - * / or ^");
    return value;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    skip_blanks();
    return true;
  }

  /// Counts how deep the recursion is, so that no text can exhaust the stack.
  struct Depth {
    explicit Depth(int& count) : count_(count) {
      if (++count_ > kMostNested)
        fail("more than " + std::to_string(kMostNested) + " levels in one another", "name parts of it with let");
    }
    ~Depth() { --count_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& count_;
  };

  static Quantity quantity(Value value) {
    if (auto* q = std::get_if<Quantity>(&value)) return *q;
    fail("a number is needed, and this is " + kind_of(value), hint_instead_of(value));
  }

  Value sum() {
    const Depth depth(depth_);
    Value value = product();
    while (peek() == '+' || peek() == '-') {
      const bool plus = peek() == '+';
      take(peek());
      Quantity left = quantity(std::move(value));
      const Quantity right = quantity(product());
      value = plus ? left + right : left - right;
    }
    return value;
  }

  Value product() {
    Value value = signed_power();
    while (peek() == '*' || peek() == '/') {
      const bool times = peek() == '*';
      take(peek());
      Quantity left = quantity(std::move(value));
      const Quantity right = quantity(signed_power());
      value = times ? left * right : left / right;
    }
    return value;
  }

  /// -2^2 is -4, as on paper.
  Value signed_power() {
    const Depth depth(depth_);
    if (take('-')) {
      const Quantity q = quantity(signed_power());
      return Quantity::whole(0, q.dimension()) - q;
    }
    Value base = atom();
    if (!take('^')) return base;
    Quantity left = quantity(std::move(base));
    return power(left, quantity(signed_power()));
  }

  Value atom() {
    if (take('(')) {
      Value value = sum();
      if (!take(')')) fail("a ( has no )", "close it");
      return value;
    }
    if (is_digit(peek())) return number();
    if (is_letter(peek())) return name_or_call();
    if (at_end()) fail("the expression ends too early", "after an operator stands a value");
    fail("does not know what to do with " + in_quotes(rest()), "write a number, a name or a path");
  }

  Quantity number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      while (is_digit(peek())) ++at_;
    };
    digits();
    bool whole = true;
    if (peek() == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      whole = false;
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      std::size_t exponent = at_ + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        whole = false;
        at_ = exponent;
        digits();
      }
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    // Between the arguments of a function a comma separates no digits.
    if (peek() == ',' && calls_ == 0)
      fail("digits of " + in_quotes(text_.substr(begin)) + " are grouped", "write them without commas");
    return suffixed(literal(written, whole));
  }

  static Quantity literal(std::string_view written, bool whole) {
    const char* const last = written.data() + written.size();
    std::int64_t integer = 0;
    if (whole && std::from_chars(written.data(), last, integer).ec == std::errc()) return Quantity::whole(integer);
    double real = 0;
    const auto [end, error] = std::from_chars(written.data(), last, real);
    if (error != std::errc() || end != last)
      fail(in_quotes(written) + " is beyond the range of numbers", "take a smaller one");
    return Quantity::nearest(real);
  }

  /// "8k", "2 B", "3 TB/s": what stands directly behind a number belongs to it.
  Quantity suffixed(Quantity q) {
    const auto word_end = [&](std::size_t from) {
      while (from < text_.size() && (is_letter(text_[from]) || static_cast<unsigned char>(text_[from]) >= 0x80 ||
                                     (is_digit(text_[from]) && from > at_)))
        ++from;
      return from;
    };
    std::size_t end = word_end(at_);
    const std::string_view attached = text_.substr(at_, end - at_);
    if (attached.size() == 1) {
      const std::size_t step = std::string_view("kMG").find(attached[0] == 'K' ? 'k' : attached[0]);
      if (step != std::string_view::npos) {
        const Quantity length = q * Quantity::whole(std::int64_t{1} << (10 * (step + 1)));
        if (length.real() != std::floor(length.real())) {
          fail("a length in steps of 1024 is a whole number, and this one is not",
               "write it without " + std::string(attached));
        }
        at_ = end;
        skip_blanks();
        return length;
      }
    }
    skip_blanks();
    end = word_end(at_);
    const std::string_view word = text_.substr(at_, end - at_);
    if (word.empty()) return q;
    std::optional<Unit> unit = find_unit(word);
    if (!unit) {
      fail("does not know the unit " + in_quotes(word),
           "units are B, FLOP and s with prefixes, such as MB, KiB, TFLOP/s; before a name stands an operator");
    }
    if (end < text_.size() && text_[end] == '/') {
      const std::size_t below_end = word_end(end + 1);
      if (const auto quotient = find_unit(text_.substr(at_, below_end - at_))) {
        unit = quotient;
        end = below_end;
      }
    }
    at_ = end;
    skip_blanks();
    return (q * unit->size).as(unit->dimension);
  }

  Value name_or_call() {
    const std::size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const std::size_t steps_begin = at_;
    skip_steps();
    const std::string_view steps = text_.substr(steps_begin, at_ - steps_begin);
    skip_blanks();
    if (steps.empty() && peek() == '(') return call(name);
    const Value& value = names_.find(name);
    if (steps.empty()) return value;
    const auto* place = std::get_if<JsonPlace>(&value);
    if (place == nullptr || place->json->is_null())
      fail(in_quotes(name) + " is " + kind_of(value) + " and has nothing within", "end it there");
    return follow(*place, name, steps);
  }

  /// Over ".key", "["key"]" and "[...]", as far as they go.
  void skip_steps() {
    while (true) {
      if (const auto quoted = quoted_key(rest())) {
        at_ += quoted->size() + 4;
      } else if (peek() == '[') {
        int depth = 0;
        const std::size_t opened = at_;
        do {
          if (at_end()) fail("the [ of " + in_quotes(text_.substr(opened)) + " has no ]", "close it");
          if (peek() == '[') ++depth;
          if (peek() == ']') --depth;
          ++at_;
        } while (depth > 0);
      } else if (peek() == '.') {
        ++at_;
        if (!is_letter(peek()) && !is_digit(peek()))
          fail("a key is missing after the '.'", "write keys with '.' between them");
        while (is_letter(peek()) || is_digit(peek())) ++at_;
      } else {
        return;
      }
    }
  }

  Quantity call(std::string_view name) {
    const Function* const function = find_function(name);
    if (function == nullptr) {
      fail("there is no function " + in_quotes(name), did_you_mean(name, function_names()));
    }
    take('(');
    ++calls_;
    std::vector<Quantity> arguments;
    if (peek() != ')') {
      do {
        arguments.push_back(quantity(sum()));
      } while (take(','));
    }
    --calls_;
    if (!take(')')) fail("the ( of " + std::string(name) + " has no )", "close it");
    if (arguments.size() < function->least || arguments.size() > function->most) {
      fail(std::string(name) + " takes " + (function->most == 1 ? "one value" : "values between commas") + ", not " +
               std::to_string(arguments.size()),
           "for example " + std::string(name) + (function->most == 1 ? "(2)" : "(2, 3)"));
    }
    return function->call(arguments);
  }

  std::string_view text_;
  Names& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int calls_ = 0;  ///< functions whose arguments are being read
};

}  // namespace

Value evaluate(std::string_view expression, Names& names) {
  Value value = Parser(expression, names).all();
  if (const auto* q = std::get_if<Quantity>(&value); q != nullptr && !std::isfinite(q->real()))
    fail("the result is no finite number", "look for a root or logarithm of a negative number, or for an overflow");
  return value;
}

bool is_reserved(std::string_view name) {
  return find_function(name) != nullptr || find_unit(name).has_value();
}

std::string kind_of(const Value& value) {
  if (const auto* q = std::get_if<Quantity>(&value))
    return q->dimension().plain() ? "a plain number" : "in " + name(q->dimension());
  if (std::holds_alternative<std::string>(value)) return "a text";
  const Json& json = *std::get<JsonPlace>(value).json;
  if (json.is_null()) {
    const std::string& reason = std::get<JsonPlace>(value).null_reason;
    return reason.empty() ? "null" : "null (" + reason + ")";
  }
  return json.is_array() ? "a list" : "an object";
}

std::string hint_instead_of(const Value& value) {
  const auto* place = std::get_if<JsonPlace>(&value);
  if (place == nullptr) return "take a number";
  if (place->json->is_null()) return "the result does not know it: take another value, shape or engine";
  return "name a number within it";
}

}  // namespace hbmscope::lesson
