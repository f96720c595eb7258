use serde_json::json;

use super::*;

fn render(template: &str) -> Result<String> {
    ChatTemplate::new(template)?.render(&[Message::user("Hi")], &RenderOptions::default())
}

#[test]
fn the_default_has_no_generation_prompt() {
    assert_eq!(render("{{ messages[0].content }}{{ add_generation_prompt }}").unwrap(), "HiFalse");
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
    assert!(template.render(&[message], &RenderOptions::default()).unwrap_err().to_string().contains("nested"));
}

#[test]
fn a_chat_needs_a_message() {
    let template = ChatTemplate::new("x").unwrap();
    assert!(template.render(&[], &RenderOptions::default()).unwrap_err().to_string().contains("at least one message"));
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
    let render = |options: RenderOptions| template.render(&[Message::user("Hi")], &options);
    assert_eq!(render(RenderOptions::default()).unwrap(), "plain<e>");
    let tools = Some(vec![json!({"name": "f"})]);
    assert_eq!(render(RenderOptions { tools: tools.clone(), ..RenderOptions::default() }).unwrap(), "tools 1");
    let named =
        |name: &str| RenderOptions { tools: tools.clone(), template: Some(name.into()), ..RenderOptions::default() };
    assert_eq!(render(named("default")).unwrap(), "plain<e>");
    assert!(render(named("rag")).unwrap_err().to_string().contains("\"rag\" line 1"));
    assert!(render(named("nope")).unwrap_err().to_string().contains("default, rag, tool_use"));

    write("chat_template.jinja", "file {{ eos_token }}");
    let template = ChatTemplate::from_folder(folder.path()).unwrap();
    assert_eq!(template.render(&[Message::user("Hi")], &RenderOptions::default()).unwrap(), "file <e>");
    assert_eq!(template.names().collect::<Vec<_>>(), ["default"]);
}

#[test]
fn extra_variables_win_over_special_tokens() {
    let special = BTreeMap::from([("eos_token".to_owned(), "<e>".to_owned())]);
    let template = ChatTemplate::with_special_tokens("{{ eos_token }}{{ enable_thinking }}", special).unwrap();
    let extra = json!({"eos_token": "<x>", "enable_thinking": false}).as_object().unwrap().clone();
    let options = RenderOptions { extra, ..RenderOptions::default() };
    assert_eq!(template.render(&[Message::user("Hi")], &options).unwrap(), "<x>False");
}
