"""50 made-up MCP servers with 30 tools each, named and described as people do it: for tests of discovery.

Run as a program it writes them all as JSON: a list of {name, description, tools}, each tool as in a tools/list result. The same
every time: what varies from server to server (verbs, the spelling of names, phrases) depends on names alone.
"""
import json
import re
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARTICLE = re.compile(r"\b([Aa]) ([aeio])")

# list, get, create, update, delete: as servers call them.
VERBS = [
    ("list", "get", "create", "update", "delete"),
    ("search", "read", "add", "edit", "remove"),
    ("list", "describe", "create", "modify", "delete"),
    ("find", "retrieve", "new", "change", "archive"),
]

PHRASES = {
    "list": ["Lists the {things} that match: {gloss}. Filter by {field}; pages with a cursor.",
             "Returns all {things}, newest first. A {thing} is a {gloss}.",
             "Enumerates {things} ({gloss}), optionally narrowed down by {field}."],
    "get": ["Gives one {thing} ({gloss}) by its id, with all details: {fields}.",
            "Looks up a single {thing} by id. A {thing} is a {gloss}.",
            "Fetches the full details of a {thing}: {gloss}."],
    "create": ["Makes a new {thing} ({gloss}) from {fields}.",
               "Adds a {thing}: {gloss}. Takes {fields}; returns the id.",
               "Sets up another {thing}. A {thing} is a {gloss}."],
    "update": ["Changes the {fields} of a {thing} ({gloss}) that exists.",
               "Edits a {thing}: {gloss}. Only the fields that are given are overwritten.",
               "Modifies an existing {thing}, such as its {field}. A {thing} is a {gloss}."],
    "delete": ["Removes a {thing} ({gloss}) for good. This cannot be undone.",
               "Deletes a {thing} by id: {gloss}.",
               "Gets rid of a {thing}. A {thing} is a {gloss}."],
}


def pick(choices, *names):
    return choices[zlib.crc32("/".join(names).encode()) % len(choices)]


def spelled(server, number, words):
    """A tool's name in the spelling of its server."""
    parts = words.split("_")
    return [words,
            parts[0] + "".join(part.capitalize() for part in parts[1:]),
            "-".join(parts),
            server + "_" + words][number % 4]


def schema(fields, required):
    return {"type": "object",
            "properties": {name: {"type": "string", "description": text} for name, text in fields},
            "required": required}


def tools_of(server, number, line):
    thing, things, gloss, fields, special = [part.strip() for part in line.split(";", 4)]
    fields = [field.strip() for field in fields.split(",")]
    special_name, special_text = special.split(": ", 1)
    spoken = {"thing": thing.replace("_", " "), "things": things.replace("_", " "), "gloss": gloss,
              "field": fields[0].replace("_", " "), "fields": ", ".join(fields).replace("_", " ")}
    given = [(field, "the %s's %s" % (spoken["thing"], field.replace("_", " "))) for field in fields]
    ident = (thing + "_id", "which " + spoken["thing"])
    arguments = {"list": ([given[0], ("cursor", "where the next page starts")], []),
                 "get": ([ident], [ident[0]]),
                 "create": (given, [fields[0]]),
                 "update": ([ident] + given, [ident[0]]),
                 "delete": ([ident], [ident[0]])}
    for verb, called in zip(PHRASES, VERBS[number // 4 % 4]):
        text = pick(PHRASES[verb], server, thing, verb).format(**spoken)
        yield {"name": spelled(server, number, called + "_" + (things if verb == "list" else thing)),
               "description": ARTICLE.sub(r"\1n \2", text),
               "inputSchema": schema(*arguments[verb])}
    yield {"name": spelled(server, number, special_name), "description": special_text,
           "inputSchema": schema([ident], [])}


def servers():
    result = []
    for line in (HERE / "many_servers.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, _, description = line[1:].partition("] ")
            result.append({"name": name, "description": description, "tools": []})
        elif line and not line.startswith("#"):
            result[-1]["tools"] += tools_of(result[-1]["name"], len(result) - 1, line)
    return result


def questions():
    """What people ask for, and the tool that does it: dicts with question, server, tool."""
    return json.loads((HERE / "many_questions.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    json.dump(servers(), sys.stdout)
