"""embed.py NAME HEADER SOURCE FILE...: writes C++ that holds the files' bytes (see Embed.cmake)."""
import os
import sys

HEADER = """#pragma once
#include <string_view>
#include <vector>
namespace bulkhead::embedded {{
struct {name}_file {{
  std::string_view name;
  std::string_view content;
}};
/// The files compiled in, by base name.
const std::vector<{name}_file>& {name}();
}} // namespace bulkhead::embedded
"""


def as_array(data: bytes) -> str:
    rows = (data[i : i + 24] for i in range(0, len(data), 24))
    return "\n".join("".join(f"{byte}," for byte in row) for row in rows)


def main() -> None:
    name, header, source, *files = sys.argv[1:]
    os.makedirs(os.path.dirname(header), exist_ok=True)
    with open(header, "w", encoding="ascii") as out:
        out.write(HEADER.format(name=name))
    with open(source, "w", encoding="ascii") as out:
        out.write(f"#include <embedded/{name}.hpp>\nnamespace bulkhead::embedded {{\nnamespace {{\n")
        for index, path in enumerate(files):
            with open(path, "rb") as file:
                data = file.read()
            # A trailing zero keeps an empty file's array legal; the view leaves it out.
            out.write(f"constexpr unsigned char bytes_{index}[] = {{\n{as_array(data)}0}};\n")
        out.write(f"}} // namespace\nconst std::vector<{name}_file>& {name}() {{\n")
        out.write(f"  static const std::vector<{name}_file> files = {{\n")
        for index, path in enumerate(files):
            out.write(
                f'    {{"{os.path.basename(path)}", '
                f"{{reinterpret_cast<const char*>(bytes_{index}), sizeof(bytes_{index}) - 1}}}},\n"
            )
        out.write("  };\n  return files;\n}\n} // namespace bulkhead::embedded\n")


main()
