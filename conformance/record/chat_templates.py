"""Records what Python renders from chat templates and from single expressions (transformers 5.24.0, Jinja2 3.1.6).

    python chat_templates.py

In `crates/tasks/tests/data` it reads
- `templates/*.jinja` and `conversations.json`: every template is rendered for every conversation, with and without a
  generation prompt, and written to `renders.json.gz`;
- `expressions.json`, a list of `[template, text]`, or `[template, null, error]` where Python fails: the templates are
  rendered anew with the variables of `expressions_context.json`. To add expressions, append `[template]`.

The clock stands at 2024-07-27 12:00:00. What is different in each run (an address in memory) is left out.
"""

import datetime
import gzip
import json
from pathlib import Path

import transformers
from transformers.utils import chat_template_utils

DATA = Path(__file__).resolve().parents[2] / "crates/tasks/tests/data"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 27, 12, 0, 0, tzinfo=tz)


def render(template, case, prompt):
    """The text, or the exception."""
    messages = [{k: v for k, v in m.items() if v is not None} for m in case["messages"]]
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[messages],
            tools=case.get("tools"),
            documents=case.get("documents"),
            chat_template=template,
            add_generation_prompt=prompt,
            **{**TOKENS, **case.get("extra", {})},
        )
        return texts[0]
    except Exception as error:  # noqa: BLE001 (any failure of the template is a result)
        return error


def record_expressions():
    path = DATA / "expressions.json"
    context = json.loads((DATA / "expressions_context.json").read_text("utf-8"))
    rows = []
    for template, *_ in json.loads(path.read_text("utf-8")):
        got = render(template, context, False)
        if isinstance(got, Exception):
            rows.append([template, None, type(got).__name__])
        elif " at 0x" not in got:
            rows.append([template, got])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", "utf-8")
    print(f"{len(rows)} expressions")


def record_templates():
    cases = json.loads((DATA / "conversations.json").read_text("utf-8"))
    renders = {}
    for path in sorted((DATA / "templates").glob("*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            template = file.read()
        own = renders[path.stem] = {}
        for name, case in cases.items():
            for prompt in (False, True):
                got = render(template, case, prompt)
                own[name + " +" * prompt] = {"error": str(got)} if isinstance(got, Exception) else got
    text = json.dumps(renders, ensure_ascii=False, indent=0)
    (DATA / "renders.json.gz").write_bytes(gzip.compress(text.encode("utf-8"), 9, mtime=0))
    print(f"{sum(map(len, renders.values()))} renders of {len(renders)} templates")


def main():
    assert transformers.__version__ == "5.24.0", transformers.__version__
    chat_template_utils.datetime = FixedClock
    record_expressions()
    record_templates()


if __name__ == "__main__":
    main()
