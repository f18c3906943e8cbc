// Pages to roff.
#include "braid/cli/manual_page.h"

#include "braid/base/text.h"

namespace braid::cli {
namespace {

// Text that roff prints as it is: a backslash begins an escape, a minus alone is a hyphen, and a dot or a quote at the
// beginning of a line makes it a macro.
std::string plain(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    line_begins = c == '\n';
  }
  return escaped;
}

std::string item(const std::string& left, const std::string& right) {
  return cat(".TP\n.B ", plain(left), "\n", plain(right), "\n");
}

std::string group(const CommandPage& page) {
  std::string all;
  for (const auto& command : page.commands) all += item(command.name, command.summary);
  return all;
}

std::string section(const CommandPage& page) {
  std::string all = cat(".SH ", plain(page.name), "\n.B ", plain(usage_line(page)), "\n.PP\n");
  if (!page.commands.empty()) {
    all += cat(plain(page.summary), "\n", group(page));
    for (const auto& command : page.commands) all += section(command);
    return all;
  }
  all += plain(page.meaning) + "\n";
  for (const auto& argument : page.arguments) all += item(heading(argument), explanation(argument));
  for (const auto& option : page.options) all += item(heading(option), explanation(option));
  if (!page.footer.empty()) all += cat(".PP\n.nf\n", plain(page.footer), "\n.fi\n");
  return all;
}

}  // namespace

std::string manual_page(const CommandPage& braid) {
  std::string all = cat(".TH BRAID 1 \"\" \"braid ", BRAID_VERSION, "\"\n.SH NAME\nbraid \\- ", plain(braid.summary),
                        "\n.SH SYNOPSIS\n.B ", plain(usage_line(braid)), "\n.SH COMMANDS\n", group(braid));
  for (const auto& command : braid.commands) all += section(command);
  return all;
}

}  // namespace braid::cli
