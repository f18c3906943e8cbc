// braid man: prints a manual page of all commands, in roff with the macros of man(7).
#include <iostream>
#include <string>

#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/command_page.h"

namespace braid::cli {
namespace {

// Returns the text escaped so that roff prints it unchanged. In roff a backslash begins an escape, a bare minus is a
// hyphen, and a dot or a quote at the beginning of a line makes the line a macro.
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

std::string manual_page(const CommandPage& braid) {
  std::string all = cat(".TH BRAID 1 \"\" \"braid ", BRAID_VERSION, "\"\n.SH NAME\nbraid \\- ", plain(braid.summary),
                        "\n.SH SYNOPSIS\n.B ", plain(usage_line(braid)), "\n.SH COMMANDS\n", group(braid));
  for (const auto& command : braid.commands) all += section(command);
  return all;
}

}  // namespace

int man_command(const Words& words) {
  CLI::App app("Prints the manual page in the language of man: braid man | man -l -", "braid man");
  if (const auto code = parse_words(app, words)) return *code;
  std::cout << manual_page(page_of(braid_commands(), braid_commands().name));
  return 0;
}

}  // namespace braid::cli
