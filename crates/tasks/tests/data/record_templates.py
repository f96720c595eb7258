"""Records what Python renders from the chat templates in `templates/` (transformers 5.24.0, jinja2 3.1.6).

Every template is rendered for every conversation of `conversations.json`, with and without a generation prompt; an
error is recorded as `{"error": words of the template}`. Run it in this folder with a Python that has transformers:

    python record_templates.py

It writes `renders.json`. The clock stands at 2024-07-27 12:00:00.
"""

import datetime
import json
from pathlib import Path

import transformers
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 27, 12, 0, 0, tzinfo=tz)


def render(template, case, prompt):
    messages = [{k: v for k, v in m.items() if v is not None} for m in case["messages"]]
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[messages],
            tools=case.get("tools"),
            chat_template=template,
            add_generation_prompt=prompt,
            bos_token="<s>",
            eos_token="</s>",
            **case.get("extra", {}),
        )
        return texts[0]
    except Exception as error:  # noqa: BLE001 (any failure of the template is a result)
        return {"error": str(error)}


def main():
    assert transformers.__version__ == "5.24.0", transformers.__version__
    chat_template_utils.datetime = FixedClock
    cases = json.loads((HERE / "conversations.json").read_text("utf-8"))
    renders = {}
    for path in sorted((HERE / "templates").glob("*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            template = file.read()
        renders[path.stem] = {
            f"{name}{' +' if prompt else ''}": render(template, case, prompt)
            for name, case in cases.items()
            for prompt in (False, True)
        }
    text = json.dumps(renders, ensure_ascii=False, indent=1)
    (HERE / "renders.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
