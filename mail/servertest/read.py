# Reads messages from standard input, each a line of base64, with Python's own
# email package and writes a line of JSON about each. Flowed text is joined as RFC 3676 section 4 says,
# by rules written here and nowhere else.
import base64
import email.policy
import hashlib
import json
import sys
from email.parser import BytesParser


def flowed(text):
    out, paragraph = [], None  # paragraph: depth and text so far
    for line in text.split("\n")[:-1]:
        depth = len(line) - len(line.lstrip(">"))
        content = line[depth:]
        if content.startswith(" "):
            content = content[1:]
        soft = content.endswith(" ") and content != "-- "
        if paragraph and (paragraph[0] != depth or content == "-- "):
            out.append(paragraph)
            paragraph = None
        paragraph = (depth, (paragraph[1] if paragraph else "") + content)
        if not soft:
            out.append(paragraph)
            paragraph = None
    if paragraph:
        out.append(paragraph)
    return "".join(">" * d + (" " if d and t else "") + t + "\n" for d, t in out)


def content(part):
    if part.get_content_type() == "message/rfc822":
        return part.get_payload(0).as_bytes(policy=email.policy.SMTP.clone(refold_source="none"))
    return part.get_payload(decode=True)


def addresses(message, name):
    field = message[name]
    return [[a.display_name, a.addr_spec] for a in field.addresses] if field else []


def read(raw):
    message = BytesParser(policy=email.policy.default).parsebytes(raw)
    defects = [repr(d) for part in message.walk() for d in part.defects]
    defects += ["part %s: %r" % (k, d) for part in message.iter_attachments() for k, v in part.items() for d in v.defects]
    for name in ("From", "To", "Cc", "Bcc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Content-Type"):
        if message[name] is not None:
            defects += ["%s: %r" % (name, d) for d in message[name].defects]
    body = message.get_body(preferencelist=("plain",))
    text = body.get_content().replace("\r\n", "\n")
    shown = text
    if body["Content-Type"].params.get("format") == "flowed":
        text = flowed(text)
    html = message.get_body(preferencelist=("html",))
    return {
        "defects": defects,
        "fields": message.keys(),
        "from": addresses(message, "From"),
        "to": addresses(message, "To"),
        "cc": addresses(message, "Cc"),
        "subject": str(message["Subject"] or ""),
        "date": message["Date"].datetime.timestamp(),
        "id": str(message["Message-ID"]),
        "parent": str(message["In-Reply-To"] or ""),
        "references": str(message["References"] or ""),
        "charset": body.get_content_charset(),
        "body": text,
        "shown": shown,
        "html": html.get_content().replace("\r\n", "\n") if html else "",
        "files": [{
            "name": p["Content-Disposition"].params.get("filename"),
            "type": p.get_content_type(),
            "disposition": p.get_content_disposition(),
            "sha256": hashlib.sha256(content(p)).hexdigest(),
        } for p in message.iter_attachments()],
    }


for line in sys.stdin.buffer:
    print(json.dumps(read(base64.b64decode(line))))
