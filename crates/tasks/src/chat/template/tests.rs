use serde_json::json;

use super::*;
use crate::chat::options::ContinueFinalMessage;

fn render(template: &str) -> Result<String> {
    ChatTemplate::new(template)?.render(&[Message::user("Hi")], &ChatOptions::default())
}

#[test]
fn a_chat_that_ends_with_an_assistant_is_continued_and_any_other_begins_an_answer() {
    let template = ChatTemplate::new(
        "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else m.content[-1].text }}<end>\n{% endfor %}\
         {% if add_generation_prompt %}<assistant>{% endif %}",
    )
    .unwrap();
    let render = |last: Message, options: &ChatOptions| {
        template.render(&[Message::user("a"), last], options).map_err(|error| error.to_string())
    };
    let continued = |continued: ContinueFinalMessage, add_generation_prompt: Option<bool>| ChatOptions {
        continue_final_message: continued,
        add_generation_prompt,
        ..ChatOptions::default()
    };
    let usual = ChatOptions::default();
    assert_eq!(render(Message::assistant("Sure, the "), &usual).unwrap(), "<user>a<end>\n<assistant>Sure, the ");
    assert_eq!(render(Message::user("b"), &usual).unwrap(), "<user>a<end>\n<user>b<end>\n<assistant>");
    assert_eq!(render(Message::user("b"), &continued(true.into(), None)).unwrap(), "<user>a<end>\n<user>b");
    let parts =
        Message { content: json!([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]), ..Message::user("") };
    assert_eq!(render(parts, &continued(true.into(), None)).unwrap(), "<user>a<end>\n<user>y");
    let ended = "<user>a<end>\n<assistant>b<end>\n";
    assert_eq!(render(Message::assistant("b"), &continued(false.into(), Some(false))).unwrap(), ended);
    assert_eq!(render(Message::assistant("b"), &continued(false.into(), None)).unwrap(), format!("{ended}<assistant>"));
    assert_eq!(
        render(Message::assistant("b"), &continued(ContinueFinalMessage::WhenAssistant, Some(true))).unwrap(),
        format!("{ended}<assistant>")
    );
    assert!(
        render(Message::assistant("b"), &continued(true.into(), Some(true))).unwrap_err().contains("one of the two")
    );
    let field = continued(ContinueFinalMessage::Field("reasoning_content".into()), None);
    assert!(render(Message::assistant("b"), &field).unwrap_err().contains("no \"reasoning_content\""));
    let none = Message { content: Value::Null, ..Message::assistant("") };
    assert!(render(none, &usual).unwrap_err().contains("no \"content\""));
}

#[test]
fn a_message_that_the_template_changes_is_continued_with_care() {
    let render = |template: &str, text: &str| {
        let template = ChatTemplate::new(template).unwrap();
        template.render(&[Message::assistant(text)], &ChatOptions::default())
    };
    assert_eq!(render("<a>{{ messages[0].content | trim }}<end>", " b \n").unwrap(), "<a>b");
    assert_eq!(render("{{ messages[0]['content'] }}", "").unwrap(), "");
    assert!(render("{{ messages[0].content | upper }}", "b").unwrap_err().to_string().contains("as it is"));
    assert!(render("{{ messages[0].role }}", "b").unwrap_err().to_string().contains("does not read \"content\""));
    let thinking = Message { other: Map::from_iter([("thinking".into(), "hm".into())]), ..Message::assistant("x") };
    let template =
        ChatTemplate::new("<think>{{ messages[0].reasoning_content }}</think>{{ messages[0].content }}").unwrap();
    let field = ContinueFinalMessage::Field("reasoning_content".into());
    let options = ChatOptions { continue_final_message: field, ..ChatOptions::default() };
    assert_eq!(template.render(&[thinking], &options).unwrap(), "<think>hm");
}

#[test]
fn a_template_may_be_given_as_text() {
    let template = ChatTemplate::new("x").unwrap();
    let render = |text: &str| {
        let options = ChatOptions { chat_template: Some(text.to_owned()), ..ChatOptions::default() };
        template.render(&[Message::user("a")], &options)
    };
    assert_eq!(render("[{{ messages[0].content }}]").unwrap(), "[a]");
    let unknown = render("rag").unwrap_err().to_string();
    assert!(unknown.contains("no chat template named \"rag\"; it has: default"), "{unknown}");
    assert!(render("{% if %}").unwrap_err().to_string().contains("\"given\" line 1"));
}

#[test]
fn errors_name_the_template_and_the_line() {
    let syntax = render("a\nb {% if %}").unwrap_err();
    assert!(syntax.to_string().contains("chat template \"default\" line 2"), "{syntax}");
    assert_eq!(syntax.kind(), unspool_core::ErrorKind::InvalidModel);
    let raised = render("a\n\n{{ raise_exception('no ' ~ 'way') }}").unwrap_err();
    assert_eq!(raised.to_string(), "chat template \"default\" line 3: the template says: no way");
    let inside = render("{% macro m() %}\n{{ raise_exception('deep') }}{% endmacro %}\n\n{{ m() }}").unwrap_err();
    assert!(inside.to_string().contains("line 2: the template says: deep"), "{inside}");
    let undefined = render("{{ nothing.at.all }}").unwrap_err();
    assert!(undefined.to_string().contains("line 1 failed"), "{undefined}");
}

#[test]
fn hostile_templates_are_stopped() {
    for template in [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{{ 'x' * 100000000000 }}",
        "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ 'x'.zfill(99999999999) }}",
        "{{ [1] | tojson(indent=99999999) }}",
    ] {
        let error = render(template).unwrap_err().to_string();
        assert!(error.contains("chat template \"default\""), "{template}: {error}");
    }
    let open = "{% if true %}".repeat(100_000);
    assert!(ChatTemplate::new(&open).is_err());
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(50_000), ")".repeat(50_000));
    assert!(ChatTemplate::new(&deep).is_err());
    assert!(ChatTemplate::new(&"x".repeat(MAX_TEMPLATE_BYTES + 1)).unwrap_err().to_string().contains("larger"));
}

#[test]
fn messages_nested_too_deep_are_refused() {
    let template = ChatTemplate::new("{{ messages[0].content | tojson }}").unwrap();
    let deep = (0..1000).fold(json!(1), |value, _| Value::Array(vec![value]));
    let message = Message { role: "user".into(), content: deep, other: Map::new() };
    assert!(template.render(&[message], &ChatOptions::default()).unwrap_err().to_string().contains("nested"));
}

#[test]
fn a_chat_needs_a_message() {
    let template = ChatTemplate::new("x").unwrap();
    assert!(template.render(&[], &ChatOptions::default()).unwrap_err().to_string().contains("at least one message"));
}

#[test]
fn named_templates_are_chosen_as_python_does() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let error = ChatTemplate::from_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has no chat template"), "{error}");

    write(
        "tokenizer_config.json",
        r#"{"eos_token": "<e>", "chat_template": [{"name": "default", "template": "plain{{ eos_token }}"},
            {"name": "tool_use", "template": "tools {{ tools | length }}"}, {"name": "rag", "template": "{% broken"}]}"#,
    );
    let template = ChatTemplate::from_folder(folder.path()).unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["default", "rag", "tool_use"]);
    let render = |options: ChatOptions| template.render(&[Message::user("Hi")], &options);
    assert_eq!(render(ChatOptions::default()).unwrap(), "plain<e>");
    let tools = Some(vec![json!({"name": "f"})]);
    assert_eq!(render(ChatOptions { tools: tools.clone(), ..ChatOptions::default() }).unwrap(), "tools 1");
    let named =
        |name: &str| ChatOptions { tools: tools.clone(), chat_template: Some(name.into()), ..ChatOptions::default() };
    assert_eq!(render(named("default")).unwrap(), "plain<e>");
    assert!(render(named("rag")).unwrap_err().to_string().contains("\"rag\" line 1"));
    assert!(render(named("nope")).unwrap_err().to_string().contains("default, rag, tool_use"));

    write("chat_template.jinja", "file {{ eos_token }}");
    let template = ChatTemplate::from_folder(folder.path()).unwrap();
    assert_eq!(template.render(&[Message::user("Hi")], &ChatOptions::default()).unwrap(), "file <e>");
    assert_eq!(template.names().collect::<Vec<_>>(), ["default"]);
}

#[test]
fn extra_variables_win_over_special_tokens() {
    let special = BTreeMap::from([("eos_token".to_owned(), "<e>".to_owned())]);
    let template = ChatTemplate::with_special_tokens("{{ eos_token }}{{ enable_thinking }}", special).unwrap();
    let template_args = json!({"eos_token": "<x>", "enable_thinking": false}).as_object().unwrap().clone();
    let options = ChatOptions { template_args, ..ChatOptions::default() };
    assert_eq!(template.render(&[Message::user("Hi")], &options).unwrap(), "<x>False");
}

#[test]
fn lists_and_fields_of_any_size_are_refused() {
    let doubling =
        "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x|length }}";
    assert!(render(doubling).unwrap_err().to_string().contains("more than 1048576 items"));
    for wide in
        ["{{ '{:>99999999999}'.format(1) }}", "{{ '{:{}}'.format(1, 99999999999) }}", "{{ '%99999999999d' % 1 }}"]
    {
        assert!(render(wide).unwrap_err().to_string().contains("wider than 65536"), "{wide}");
    }
    assert_eq!(render("{{ '{} 99999999999 {:>3}'.format(99999999999, 1) }}").unwrap(), "99999999999 99999999999   1");
}

#[test]
fn variables_of_the_caller_do_not_hide_what_is_given_anyway() {
    let template = ChatTemplate::new("{{ messages[0].content }}{{ thinking }}").unwrap();
    let with = |name: &str| ChatOptions {
        template_args: Map::from_iter([(name.to_owned(), json!("x"))]),
        ..ChatOptions::default()
    };
    assert_eq!(template.render(&[Message::user("a")], &with("thinking")).unwrap(), "ax");
    let error = template.render(&[Message::user("a")], &with("messages")).unwrap_err().to_string();
    assert!(error.contains("every template is given it"), "{error}");
}
