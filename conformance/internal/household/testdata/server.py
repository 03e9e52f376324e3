"""A small ACLI server of the errands of a household, written from the document alone.

It is right, or wrong in one way: bad(NAME) is true of the mistake that is asked for. Where the
document leaves something open it answers otherwise than other servers do: help lists no reserved
commands and has no help of them, version names them all the same, JSON has white space, a wrong
date is INVALID_DATE_FORMAT, names in schemas have underscores, a positional that is repeated is an
array in the schema alone, and no entry of help says that --max is -n too. Its command await never
answers, as its description says.

The mistake "otherwise" is none: it takes the other way at each of these, and reads \\n between double
quotes as POSIX has it, lists every path in help and the reserved commands too, gives the schemas as
an array, names in them in capitals, no hints, and no isError with success.

Alone it speaks MCP over standard input and output. With --many each line that it reads is the name
of a mistake, or none, a tab and a message, and it writes a line for each, empty without an answer.
"""
import json
import re
import sys
from datetime import date, datetime

mistake = "none"


def bad(name):
    return mistake == name


class Problem(Exception):
    def __init__(self, code, message, hint="Run 'help' for available commands"):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Silence(Exception):
    """There is no answer."""


# What there is. An argument: name, type, description, and what the schema says besides.
def arg(name, kind, about, **more):
    return {"name": name, "type": kind, "description": about, **more}


MAX = arg("--max", "integer", "Maximum number of errands (short: -n)", default=10, minimum=1, maximum=50)
COMMANDS = {
    "list": ("List errands", [
        arg("--due-before", "datetime", "Only those due before", examples=["2026-02-02"]), MAX,
        arg("--tags", "array", "Only those with these tags", listed=["home", "work", "garden"], examples=["home,work"]),
        arg("--order", "string", "What to sort by", listed=["created", "due"], default="due"),
        arg("--hours", "number", "Only those that take less", minimum=0.5, maximum=24),
        arg("--shared", "boolean", "Only those that are shared, or not"),
        arg("--done", "flag", "Those that are done too"),
    ], ["list --due-before 2026-02-02", "list -n 3 --done"]),
    "show": ("Show one errand", [arg("id", "integer", "Its number", required=True, examples=["2"], minimum=1, maximum=3)], ["show 2"]),
    "find": ("Find errands", [arg("words", "string", "Words of it", required=True, many=True, examples=["milk"])], ["find buy milk"]),
    "add": ("Add an errand", [arg("--title", "string", "What to do", required=True, examples=["Buy milk"], longest=60)], ["add --title 'Buy milk'"]),
    "receipt": ("Show the receipt in a file", [arg("--path", "string", "Where it is", required=True, examples=["2026/milk.txt"])], ["receipt --path 2026/milk.txt"]),
    "tag count": ("Count the errands of a tag", [arg("--tag", "string", "Which", default="home", listed=["home", "work", "garden"])], ["tag count --tag work"]),
    "tag names": ("Name the tags", [], ["tag names"]),
    "await": ("Wait for the postman", [], ["await"]),
    "x-house-greet": ("Greet", [arg("--name", "string", "Whom", default="you", longest=20)], ["x-house-greet --name Ann"]),
}
GROUPS = {"tag": "Tags of errands"}
RESERVED = ["help", "schema", "version"]
ERRANDS = ["Buy milk", "Water the plants", "Call the plumber"]


def escaped(c, quote):
    """What a backslash and c are between quotes."""
    if bad("otherwise") and c not in '"\\$`':
        return "\\" + c
    return {"n": "n" if bad("newline-is-n") else "\n", "t": "t" if bad("tab-is-t") else "\t"}.get(c, c)


def tokenize(line):
    """Split a command string (section 4.1)."""
    if len(line) > 10000 + bad("length-one-high") - bad("length-one-low") + 90000 * bad("length-unchecked"):
        raise Problem("PARSE_ERROR", "Failed to parse command: more than 10000 characters", "Shorten it")
    if bad("strips-nul"):
        line = line.replace("\0", "")
    if "\0" in line:
        raise Problem("PARSE_ERROR", "Failed to parse command: NUL")
    blanks = " " if bad("space-alone-separates") else " \t\r\n" + "\u00a0\u3000\u2003" * bad("unicode-space-separates")
    words, word, i = [], None, 0
    while i < len(line):
        c = line[i]
        i += 1
        if c in blanks:
            if word is not None:
                words.append(word)
            word = None
        elif c == "#" and word is None and bad("hash-comments"):
            break
        elif c == "\\":
            if i == len(line):
                raise Problem("PARSE_ERROR", f"Failed to parse command: a backslash at {i}")
            word = (word or "") + ("\\" if bad("backslash-stays") else "") + line[i]
            i += 1
        elif c == '"' or c == "'" and not bad("no-single-quotes"):
            if bad("quote-splits") and word:
                words.append(word)
                word = ""
            word, opened = word or "", i
            while i < len(line) and line[i] != c:
                if line[i] == "\\" and i + 1 < len(line) and (c == '"' and not bad("no-escapes-in-double") or c == "'" and bad("escapes-in-single")):
                    i += 1
                    word += escaped(line[i], c)
                else:
                    word += line[i]
                i += 1
            if i == len(line) and not bad("open-quote-accepted"):
                raise Problem("PARSE_ERROR", f"Failed to parse command: the quote at {opened} is not closed")
            i += 1
        else:
            word = (word or "") + c
    if word is not None:
        words.append(word)
    if bad("empty-words-dropped"):
        words = [w for w in words if w]
    if len(words) > 100 + 4000 * bad("arguments-unchecked") - bad("arguments-one-low"):
        raise Problem("PARSE_ERROR", "Failed to parse command: more than 100 arguments")
    return words


def shell(words):
    """Do what a shell would do, of which a right server does nothing."""
    for mark, name in ((";", "semicolon-splits"), ("|", "pipe-cuts"), (">", "redirects"), ("&", "background-dropped")):
        if bad(name):
            text = " ".join(words)
            words = text.split(mark)[0].split() if mark in text else words
    if bad("variables-expand"):
        words = [w.replace("$HOME", "/root") for w in words]
    return words


def value(a, text):
    """Read the text of an argument as its type (section 7.2)."""
    name, kind = a["name"].lstrip("-"), a["type"]
    wrong = Problem("VALIDATION_ERROR", f"Invalid argument: {name}", f"{name} is {a['description']}, of type {kind}")
    if kind == "array":
        parts = [text] if bad("array-unsplit") else text.split(",")
        if not all(p in a["listed"] for p in parts):
            raise wrong
        return parts
    if kind == "integer":
        if bad("integer-truncates") and re.fullmatch(r"-?\d+\.\d+", text, re.A):
            text = text.split(".")[0]
        if bad("integer-hex") and text.startswith("0x"):
            text = str(int(text, 16))
        if bad("integer-of-python"):
            text = re.sub("[_ +]", "", text)
        if not re.fullmatch(r"-?(0|[1-9]\d{0,17})", text, re.A):
            raise wrong
        found = int(text)
    elif kind == "number":
        if bad("number-nan") and text in ("NaN", "Infinity"):
            return 1.0
        if not re.fullmatch(r"-?\d{1,17}(\.\d{1,17})?", text, re.A):
            raise wrong
        found = float(text)
    elif kind == "boolean":
        if text not in ("true", "false") and not (bad("boolean-yes") and text == "yes"):
            raise wrong
        return text != "false"
    elif kind == "datetime":
        day = re.match(r"\d{4}-\d\d-\d\d(?=T\d\d|$)", text, re.A)
        if bad("date-unchecked") or bad("date-tail") and re.match(r"\d{4}-\d\d-\d\d", text) or bad("february-thirtieth") and text == "2026-02-30":
            return text
        try:
            if not day:
                raise ValueError
            date.fromisoformat(text) if day.end() == len(text) else datetime.fromisoformat(text)
        except ValueError:
            code = "BAD_DATE" if bad("date-other-code") else "VALIDATION_ERROR" if bad("otherwise") else "INVALID_DATE_FORMAT"
            raise Problem(code, f"The --{name} argument has an invalid date format", "Use ISO8601 format") from None
        return text
    else:
        if "listed" in a and text not in a["listed"] and not (bad("enum-unchecked") or bad("enum-prefix") and any(v.startswith(text) for v in a["listed"])):
            raise wrong
        if len(text) > a.get("longest", 10000) and not bad("length-of-text-unchecked"):
            raise wrong
        if name == "path" and (".." in text or re.match(r"[/\\]|[A-Za-z]:", text)) and not bad("traversal"):
            raise Problem("PATH_TRAVERSAL_BLOCKED", "The path leads outside", "Use a path below the receipts")
        return text
    low, high = a.get("minimum", found), a.get("maximum", found)
    if found < low and not bad("minimum-unchecked") or found > high and not bad("maximum-unchecked") or found == high and "maximum" in a and bad("maximum-exclusive"):
        raise wrong
    return found


def bind(arguments, words):
    """Bind the words behind a command to its arguments (sections 7.1 and 7.3)."""
    options = {a["name"]: a for a in arguments if a["name"].startswith("-")}
    positionals = [a for a in arguments if not a["name"].startswith("-")]
    given, free, ended, i = {}, [], False, 0
    while i < len(words):
        w = words[i]
        i += 1
        if w == "--" and not ended and not bad("dashes-are-a-word"):
            ended = True
            continue
        if ended or not w.startswith("-") or w == "-" or re.fullmatch(r"-\d+", w, re.A) and positionals or w == "--":
            free.append(w)
            continue
        name, equals, attached = w.partition("=")
        if equals and bad("equals-unknown"):
            raise Problem("VALIDATION_ERROR", f"Invalid argument: {w}")
        if bad("option-case-ignored"):
            name = name.lower()
        if bad("abbreviations") and name.startswith("--") and name not in options:
            name = next((o for o in options if o.startswith(name)), name)
        if re.match(r"-n(\d|$)", w) and "--max" in options:
            if w != "-n" and bad("attached-short-refused"):
                raise Problem("VALIDATION_ERROR", f"Invalid argument: {w}")
            name, equals, attached = "--max", w[2:], w[2:]
        a = options.get(name)
        if a is None:
            if bad("unknown-option-ignored"):
                continue
            raise Problem("VALIDATION_ERROR", f"Invalid argument: {name}", "Run 'help COMMAND' for its options")
        if name in given and not bad("repeated-last-wins"):
            raise Problem("VALIDATION_ERROR", f"Invalid argument: {name} is there twice")
        if a["type"] == "flag":
            if equals and attached not in ("true", "false") and not bad("flag-takes-anything"):
                raise Problem("VALIDATION_ERROR", f"Invalid argument: {name} takes no value")
            given[name] = attached != "false"
            continue
        if not equals:
            if i == len(words) or words[i].startswith("--"):
                if bad("missing-value-accepted"):
                    continue
                raise Problem("VALIDATION_ERROR", f"Invalid argument: {name} needs a value")
            attached = words[i]
            i += 1
        given[name] = value(a, attached)
    for a in positionals:
        taken, free = (free, []) if a.get("many") else (free[:1], free[1:])
        if taken:
            given[a["name"]] = [value(a, t) for t in taken]
    if free and not bad("surplus-ignored"):
        raise Problem("VALIDATION_ERROR", f"Invalid argument: {free[0]!r} is too much")
    for a in arguments:
        if a.get("required") and a["name"] not in given and not bad("required-unchecked"):
            raise Problem("VALIDATION_ERROR", f"Invalid argument: {a['name']} is required", "Add it")
    return given


def answer(path, given):
    """Carry a command out."""
    if bad("no-data"):
        return None
    if path == "await" and not bad("unknown-option-ignored"):
        raise Silence
    if path == "show":
        return {"id": given.get("id", [1])[0], "title": ERRANDS[(given.get("id", [1])[0] - 1) % 3]}
    if path == "tag names":
        return {"names": ["garden", "home", "work"]}
    if path == "tag count":
        return {"count": 1}
    return {"errands": [] if path == "find" else ERRANDS[:given.get("--max", 10)]}


def help_entry(a):
    return {k: v for k, v in a.items() if k in ("name", "type", "description", "required", "default", "examples")}


def help_of(words):
    listed = dict(COMMANDS)
    if bad("ghost-in-help"):
        listed["sweep"] = ("Sweep the floor", [], ["sweep"])
    if bad("command-missing-in-help"):
        del listed["show"]
    path = " ".join(words)
    if path in RESERVED or path == "sweep" or path and bad("no-help-of-commands") or path == "show" and path not in listed:
        raise Problem("COMMAND_NOT_FOUND", f"Command '{path}' not found")
    if bad("ghost-with-help"):
        listed["sweep"] = ("Sweep the floor", [], ["sweep"])
    if path in listed and not (bad("help-of-word-alone") and " " in path):
        about, arguments, examples = listed[path]
        if bad("help-example-broken"):
            examples = [path + " --sooner"]
        entries = [help_entry(a) for a in arguments]
        if bad("help-type-unknown"):
            entries = [{**e, "type": "int"} for e in entries]
        return {"command": path, "description": about, "arguments": entries[bad("help-lacks-argument"):], "examples": examples}
    if path in GROUPS:
        inside = [{"name": p.split()[1], "description": c[0]} for p, c in listed.items() if p.startswith(path + " ")]
        return {"command": path, "description": GROUPS[path], "subcommands": inside}
    if path and not bad("help-of-unknown-is-all"):
        raise Problem("COMMAND_NOT_FOUND", f"Command '{path}' not found")
    roots = [{"name": p, "description": c[0]} for p, c in listed.items() if " " not in p] + [{"name": g, "description": d} for g, d in GROUPS.items()]
    if bad("otherwise"):
        roots = [{"name": p, "description": c[0]} for p, c in listed.items()] + [{"name": r, "description": "Reserved"} for r in RESERVED]
    return {"description": "Errands of a household", "commands": roots, "usage": "<command> [subcommand] [options]", "examples": ["list --max 3", "show 2"]}


def property_of(a):
    kind = {"flag": "boolean", "datetime": "string"}.get(a["type"], a["type"])
    p = {"type": kind, "description": a["description"]}
    if a["type"] == "datetime":
        p["format"] = "date-time"
    for k in ("minimum", "maximum", "default"):
        if k in a:
            p[k] = a[k]
    if "listed" in a:
        p["enum"] = a["listed"]
    if "longest" in a:
        p["maxLength"] = a["longest"]
    if a["type"] == "array":
        p["items"] = {"type": "string", "enum": p.pop("enum")}
    if a.get("many"):
        p = {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": a["description"]}
    if bad("schema-other-default") and "default" in p and kind == "integer":
        p["default"] += 1
    if bad("schema-other-type") and kind == "integer":
        p["type"] = "string"
    return p


def spelled(name):
    first, *others = name.lstrip("-").split("-")
    return first + "".join(o.title() if bad("otherwise") else "_" + o for o in others)


def schema_of(path):
    arguments = COMMANDS[path][1]
    properties = {spelled(a["name"]): property_of(a) for a in arguments}
    if bad("schema-lacks-argument"):
        properties.pop("max", None)
    if bad("schema-extra-argument"):
        properties["colour"] = {"type": "string", "description": "Colour"}
    required = [a["name"].lstrip("-") for a in arguments if a.get("required")]
    if bad("schema-requires-otherwise"):
        required = required[1:]
    output = {"type": "object", "properties": {}}
    if bad("output-schema-wrong"):
        output["required"] = ["weather"]
    return {"inputSchema": {"type": "object", "properties": properties, **({"required": required} if required else {})}, "outputSchema": output}


def schema(words):
    path = " ".join(words)
    if not path:
        all_of_them = {p: schema_of(p) for p in COMMANDS}
        if bad("ghost-in-schema"):
            all_of_them["burn"] = {"inputSchema": {"type": "object"}}
        return [{"command": p, **s} for p, s in all_of_them.items()] if bad("otherwise") else {"commands": all_of_them}
    if path not in COMMANDS:
        if bad("schema-of-unknown"):
            return {"commands": {}}
        raise Problem("COMMAND_NOT_FOUND", f"Command '{path}' not found")
    return {"command": "list" if bad("schema-names-another") else path, **schema_of(path)}


def version():
    names = ["list", "show", "find", "add", "receipt", "tag", "await"] + RESERVED * (not bad("otherwise"))
    extensions = [] if bad("extension-undeclared") else ["x-house-greet"]
    return {"acli_version": "1.0.0" if bad("other-version") else "0.1.0", "implementation": {"name": "household", "version": "2.1"},
            "capabilities": {"commands": names + ["sweep"] * bad("ghost-in-version"), "extensions": extensions}}


def execute(line):
    words = shell(tokenize(line))
    if words and bad("command-case-ignored"):
        words[0] = words[0].lower()
    first = words[0] if words else ""
    if bad("command-prefix"):
        first = next((c for c in RESERVED + [p for p in COMMANDS if " " not in p] if first and c.startswith(first)), first)
    behind = [w for i, w in enumerate(words[1:]) if w != "--" or bad("dashes-are-a-word") or "--" in words[1:i + 1]]
    if first == "help":
        return help_of(behind)
    if mistake == "minimal" and first in ("schema", "version"):
        first = ""
    if first == "schema":
        return schema(behind)
    if first == "version":
        bind([], words[1:])
        return version()
    for path, (_, arguments, _) in sorted(COMMANDS.items(), key=lambda c: -len(c[0])):
        steps = path.split()
        if [first, *words[1:]][:len(steps)] == steps:
            return answer(path, bind(arguments, words[len(steps):]))
    if bad("unknown-succeeds"):
        return {"errands": []}
    name = " ".join(words[:2]) if first in GROUPS else first
    raise Problem("COMMAND_NOT_FOUND" if not bad("unknown-is-validation") else "VALIDATION_ERROR", f"Command '{name}' not found")


def respond(line):
    """Answer a command as the result of a tool call (section 5)."""
    try:
        envelope = {"success": True, "data": execute(line)}
        if bad("no-data"):
            del envelope["data"]
    except Problem as p:
        error = {"code": p.code, "message": p.message, "hint": p.hint}
        if bad("otherwise"):
            del error["hint"]
        if bad("no-code"):
            del error["code"]
        if bad("code-lower-case"):
            error["code"] = p.code.lower()
        if bad("error-is-text"):
            error = p.message
        envelope = {"success": False, "error": error}
        if bad("data-beside-error"):
            envelope["data"] = None
    failed = not envelope["success"]
    if bad("success-is-text"):
        envelope["success"] = str(not failed).lower()
    text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":") if bad("otherwise") else None)
    if bad("member-twice"):
        text = '{"success": true, ' + text[1:]
    if bad("text-fenced"):
        text = "```json\n" + text + "\n```"
    content = [{"type": "text", "text": text}] * (2 if bad("two-contents") else 1)
    if bad("otherwise") and not failed:
        return {"content": content}
    return {"content": content, "isError": failed and not bad("never-is-error") or bad("always-is-error")}


def tools():
    named = {"tool-other-name": "run", "named-run": "run"}.get(mistake, "cli")
    about = "Runs things." if bad("tool-other-description") else "Execute CLI command. Run 'help' for available commands."
    command = {"type": "string", "description": "A command" if bad("command-other-description") else "CLI command string (e.g. \"list\")" if bad("otherwise") else "CLI command string (e.g., 'list --max 3')"}
    tool = {"name": named, "description": about, "inputSchema": {"type": "object", "properties": {"command": command}, "required": ["command"]}}
    if bad("command-optional"):
        del tool["inputSchema"]["required"]
    return [tool] + [{**tool, "name": "second"}] * bad("second-tool")


def handle(line):
    """Answer one line of MCP; None for no answer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        return {"jsonrpc": "2.0", "id": None, "result": {}} if bad("notification-answered") else None
    result, error = None, None
    if method == "initialize":
        asked = params.get("protocolVersion")
        known = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
        result = {"protocolVersion": asked if asked in known else known[2], "capabilities": {"tools": {}}, "serverInfo": {"name": "household", "version": "2.1"}}
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {"tools": tools()}
    elif method == "tools/call":
        arguments = params.get("arguments")
        command = arguments.get("command") if isinstance(arguments, dict) else None
        if command is None and bad("missing-command-is-help"):
            command = "help"
        if bad("number-is-text") and isinstance(command, int):
            command = str(command)
        if params.get("name") != tools()[0]["name"] and not bad("any-tool"):
            error = {"code": -32602, "message": "there is no such tool"}
        elif not isinstance(command, str):
            error = {"code": -32602, "message": "command is a string"}
        else:
            try:
                result = respond(command)
            except Silence:
                return None
    else:
        error = {"code": -32601, "message": "there is no such method"}
    known_id = None if bad("text-id-as-null") and isinstance(message["id"], str) else message["id"]
    return {"jsonrpc": "2.0", "id": known_id, **({"result": result} if error is None else {"error": error})}


def main():
    global mistake
    many = "--many" in sys.argv
    for raw in sys.stdin.buffer:
        line = raw.decode()
        if many:
            mistake, _, line = line.partition("\t")
        reply = handle(line)
        if many or reply is not None:
            print(json.dumps(reply) if reply is not None else "", flush=True)


main()
