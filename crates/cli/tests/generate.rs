//! `unspool generate` as people run it.

mod common;

use std::path::PathBuf;

use common::{command, generate, json_lines, model, model_that_chats, unspool, with_input};
use serde_json::{Value, json};

const RIVER: &str = "the river runs to the sea";
/// What Python wrote after it.
const AFTER: &str = "\u{1c}v ster8%\u{1c}o< we";

#[test]
fn continues_a_text_as_python_does() {
    assert_eq!(generate("gpt2", &[RIVER, "--max-new-tokens", "12"]).fine(), format!("{AFTER}\n"));
}

#[test]
fn reads_the_prompt_from_standard_input() {
    let model = model("gpt2");
    let arguments = ["generate", &model, "-", "--engine", "rten", "--max-new-tokens", "12"];
    assert_eq!(with_input(&arguments, format!("{RIVER}\n").as_bytes()).fine(), format!("{AFTER}\n"));
}

#[test]
fn the_pieces_of_a_stream_are_the_same_text_and_the_prompt_comes_first_when_asked_for() {
    let told = |extra: &[&str]| generate("gpt2", &[&[RIVER, "--max-new-tokens", "12"][..], extra].concat()).fine();
    assert_eq!(told(&["--stream", "word"]), format!("{AFTER}\n"));
    assert_eq!(told(&["--stream", "word", "--show-prompt"]), format!("{RIVER}{AFTER}\n"));
    assert_eq!(told(&["--show-prompt"]), format!("{RIVER}{AFTER}\n"));
}

#[test]
fn a_chat_that_ends_with_an_assistant_is_continued_and_rows_have_tools_of_their_own() {
    let folder = model_that_chats("llama");
    let model = folder.path().to_str().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    write(
        "chat_template.jinja",
        "{% if tools %}tools {{ tools[0].name }}\n{% endif %}{% if note %}{{ note }}\n{% endif %}\
         {% for m in messages %}{{ m.role }}: {{ m.content }};\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}",
    );
    let chat = r#""messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Sure, the"}]"#;
    let rows = write("rows.jsonl", &format!("{{{chat}}}\n{{{chat}, \"tools\": [{{\"name\": \"own\"}}]}}\n"));
    let tools = write("tools.json", r#"[{"name": "common"}]"#);
    let run = |extra: &[&str]| {
        let words =
            ["generate", model, "--prompts", &rows, "--show-prompt", "--engine", "rten", "--max-new-tokens", "1"];
        unspool(&[&words[..], extra].concat())
    };
    let prompts = |extra: &[&str], expected: [&str; 2]| {
        let out = run(extra).fine();
        for expected in expected {
            assert!(out.contains(expected), "{extra:?}: {expected:?} is missing in {out:?}");
        }
        assert!(extra.iter().any(|word| word.contains("final")) || !out.contains("Sure, the;"), "{out:?}");
    };
    prompts(&[], ["user: hi;\nassistant: Sure, the", "tools own\nuser: hi;"]);
    prompts(&["--tools", &tools], ["tools common\nuser: hi;", "tools own\nuser: hi;"]);
    prompts(&["--template-args", r#"{"note": "n"}"#], ["n\nuser: hi;", "tools own\nn\nuser"]);
    let ended = "assistant: Sure, the;\nassistant: ";
    prompts(&["--continue-final-message", "false"], [ended, ended]);
    prompts(&["--continue-final-message=false", "--no-add-generation-prompt"], ["Sure, the;\n", "Sure, the;\n"]);
    assert!(run(&["--continue-final-message=reasoning_content"]).failed(1).contains("no \"reasoning_content\""));

    let error = unspool(&["generate", model, "hi", "--tools", &tools, "--engine", "rten"]).failed(2);
    assert!(error.contains("add --chat"), "{error}");
    let out = unspool(&[
        "generate",
        model,
        "hi",
        "--chat",
        "--tools",
        &tools,
        "--show-prompt",
        "--engine",
        "rten",
        "--max-new-tokens",
        "1",
    ]);
    assert!(out.fine().starts_with("tools common\nuser: hi;\nassistant: "));
    let wrong = write("rows2.jsonl", r#"{"prompt": "a", "tools": []}"#);
    let error = unspool(&["generate", model, "--prompts", &wrong, "--engine", "rten"]).failed(1);
    assert!(error.contains("tools"), "{error}");
    let ran = with_input(&["chat", model, "--tools", &tools, "--engine", "rten", "--max-new-tokens", "2"], b"hi\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn texts_have_the_default_length_of_pipelines_and_ids_that_of_generate() {
    let written = |prompt: &[&str]| {
        let out = generate("llama", &[prompt, &["--json", "--eos-token-id", "None"]].concat()).fine();
        json_lines(&out)[0]["sequences"][0]["ids"].as_array().unwrap().len()
    };
    assert_eq!(written(&["--ids", "[1,2]"]), 20);
    // 256 would go beyond the model's last position.
    assert!(written(&["the river"]) > 200);
    assert_eq!(written(&["the river", "--max-length", "20"]), 20 - 6);
}

#[test]
fn padding_in_ids_is_warned_about_once() {
    let arguments =
        ["--ids", "[[5,6],[7,0],[8,0]]", "--max-new-tokens", "2", "--batch-size", "2", "--pad-token-id", "0"];
    for form in [&[][..], &["--json"]] {
        let ran = generate("llama", &[&arguments[..], form].concat());
        assert_eq!(ran.err.matches("warning: the padding token 0 in ids is not read").count(), 1, "{}", ran.err);
        ran.fine();
    }
}

#[test]
fn ids_that_come_padded_are_read_without_their_padding() {
    let written = |ids: &str, extra: &[&str]| {
        let length = if extra.contains(&"--max-length") { &[][..] } else { &["--max-new-tokens", "6"] };
        let arguments = [&["--ids", ids, "--json"], length, extra].concat();
        json_lines(&generate("llama", &arguments).fine())[0]["sequences"][0]["ids"].clone()
    };
    // As Python writes without a mask, wherever the padding stands.
    for padded in ["[[5,6,7,8,9]]", "[[0,0,0,5,6,7,8,9]]", "[[5,6,0,7,8,9]]", "[[5,6,7,8,9,0,0]]"] {
        assert_eq!(written(padded, &[]), json!([108, 7, 77, 113, 123, 39]), "{padded}");
        let lookup = ["--prompt-lookup-num-tokens", "2"];
        assert_eq!(written(padded, &lookup), json!([108, 7, 77, 113, 123, 39]), "{padded}");
        let beams = ["--num-beams", "3"];
        assert_eq!(written(padded, &beams), written("[[5,6,7,8,9]]", &beams), "{padded}");
        let guided = ["--guidance-scale", "2", "--negative-prompt-ids", "[3]"];
        assert_eq!(written(padded, &guided), written("[[5,6,7,8,9]]", &guided), "{padded}");
    }
    // An end token is no padding, and the length is that of the padded prompt.
    assert_ne!(written("[[0,0,0,5,6,7,8,9]]", &["--eos-token-id", "0"]), json!([108, 7, 77, 113, 123, 39]));
    assert_eq!(written("[[0,0,0,5,6,7,8,9]]", &["--max-length", "10"]), json!([108, 7]));
    let error = generate("llama", &["--ids", "[[0,0]]", "--json"]).failed(1);
    assert!(error.contains("nothing but the padding token 0"), "{error}");
}

#[test]
fn token_healing_rewrites_the_end_of_a_prompt() {
    let told = |extra: &[&str]| {
        let arguments = ["old h", "--max-new-tokens", "1", "--json"];
        json_lines(&generate("llama", &[&arguments[..], extra].concat()).fine())[0]["prompt_ids"].clone()
    };
    assert_eq!(told(&[]), json!([1, 285, 273, 270, 291, 266]));
    assert_eq!(told(&["--token-healing"]), json!([0, 285, 273, 270, 291, 288]));
    let error = generate("gpt2", &["old h", "--token-healing"]).failed(1);
    assert!(error.contains("pad_token"), "{error}");
}

#[test]
fn several_prompts_are_told_in_order_and_each_equals_the_prompt_alone() {
    let both =
        generate("llama", &["--prompt", "the old house", "--prompt", "she read", "--max-new-tokens", "6"]).fine();
    let alone = |prompt| generate("llama", &[prompt, "--max-new-tokens", "6"]).fine();
    assert_eq!(both, alone("the old house") + &alone("she read"));
}

#[test]
fn a_word_behind_a_switch_is_its_value_only_when_it_is_one() {
    let told = |words: &[&str]| generate("gpt2", &[words, &["--max-new-tokens", "12", "--seed", "1"]].concat()).fine();
    let plain = told(&[RIVER]);
    assert_eq!(told(&[RIVER, "--do-sample", "false"]), plain);
    assert_eq!(told(&["--do-sample", "false", RIVER, "--json", "false"]), plain);
    assert_ne!(told(&["--do-sample", RIVER]), plain);
    assert_eq!(told(&["--do-sample", RIVER]), told(&["--do-sample", "true", RIVER]));
}

#[test]
fn a_batch_of_ids_gives_one_json_line_a_prompt() {
    let out = generate(
        "gpt2",
        &["--ids", "[[262,258,266],[179,142,258,258,135,74,173]]", "--max-new-tokens", "12", "--json", "--logprobs"],
    )
    .fine();
    let lines = json_lines(&out);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["prompt_ids"], json!([262, 258, 266]));
    assert_eq!(lines[0]["sequences"][0]["ids"], json!([27, 89, 265, 49, 89, 201, 4, 275, 89, 78, 216, 201]));
    assert_eq!(lines[1]["sequences"][0]["ids"], json!([27, 27, 22, 297, 297, 31, 76, 214, 54, 273, 216, 4]));
    assert_eq!(lines[1]["sequences"][0]["finish_reason"], "length");
    assert_eq!(lines[1]["sequences"][0]["logprobs"].as_array().unwrap().len(), 12);
    let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["index", "prompt_ids", "sequences", "timing"]);
}

#[test]
fn scores_have_the_whole_vocabulary_and_null_for_minus_infinity() {
    let out = generate(
        "gpt2",
        &[
            "--ids",
            "[1,2]",
            "--max-new-tokens",
            "2",
            "--json",
            "--output-scores",
            "--do-sample",
            "--top-k",
            "3",
            "--seed",
            "1",
        ],
    )
    .fine();
    let line = &json_lines(&out)[0];
    let step = line["sequences"][0]["scores"][0].as_array().unwrap();
    assert_eq!(step.len(), 300);
    assert_eq!(step.iter().filter(|score| !score.is_null()).count(), 3);
    assert_eq!(line["seed"], 1);
}

#[test]
fn the_same_seed_gives_the_same_tokens_whatever_the_batch() {
    let ids = "[[1,2],[3,4],[5,6]]";
    let sample = ["--do-sample", "--top-k", "0", "--seed", "7", "--max-new-tokens", "8", "--json"];
    let tokens = |extra: &[&str]| -> Vec<Value> {
        let mut arguments = vec!["--ids", ids];
        arguments.extend_from_slice(&sample);
        arguments.extend_from_slice(extra);
        json_lines(&generate("gpt2", &arguments).fine())
            .iter()
            .map(|line| line["sequences"][0]["ids"].clone())
            .collect()
    };
    assert_eq!(tokens(&[]), tokens(&["--batch-size", "1"]));
    assert_eq!(tokens(&[]), tokens(&["--batch-size", "2", "--threads", "1"]));
}

#[test]
fn a_stop_string_ends_the_answer() {
    let out =
        generate("gpt2", &["--ids", "[291,84,81,77]", "--stop-strings", "od", "--max-new-tokens", "16", "--json"]);
    let line = &json_lines(&out.fine())[0];
    assert_eq!(line["sequences"][0]["finish_reason"], "stop_string");
    assert_eq!(line["sequences"][0]["text"], " a\u{16}l\u{1c}(>ode");
}

#[test]
fn config_is_read_from_json_and_from_a_file() {
    let flag = generate("gpt2", &[RIVER, "--max-new-tokens", "3"]).fine();
    assert_eq!(generate("gpt2", &[RIVER, "--config", r#"{"max_new_tokens":3}"#]).fine(), flag);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"max_new_tokens":3}"#).unwrap();
    let config = format!("@{}", file.path().display());
    assert_eq!(generate("gpt2", &[RIVER, "--config", &config]).fine(), flag);
    // Python writes into its files what are no settings.
    let own = format!("@{}/generation_config.json", model("llama"));
    assert!(std::fs::read_to_string(&own[1..]).unwrap().contains("transformers_version"));
    generate("llama", &["the river", "--config", &own, "--max-new-tokens", "2"]).fine();
}

#[test]
fn lengths_that_contradict_each_other_are_told() {
    for (arguments, told) in [
        (&["--max-new-tokens", "3", "--min-new-tokens", "5"][..], "min_new_tokens=5 cannot be reached"),
        (&["--max-length", "6", "--min-length", "9"], "min_length=9 cannot be reached"),
        (&["--max-new-tokens", "3", "--min-new-tokens", "2", "--min-length", "1"], "min_new_tokens counts"),
    ] {
        let ran = generate("gpt2", &[&["--ids", "[1,2]", "--json"], arguments].concat());
        assert!(ran.err.contains(told), "{}", ran.err);
        ran.fine();
    }
}

#[test]
fn bad_input_is_one_clear_line() {
    let long = json!([vec![1; 5000]]).to_string();
    let deep = "[".repeat(100_000);
    let cases: [(&[&str], i32, &str); 19] = [
        (&["x", "--do-sample", "--num-return-sequences", "1048576"], 1, "at most 65536 are written at once"),
        (
            &["hi", "there"],
            2,
            "\"hi\" and \"there\" are two texts; put one of several words in quotes, and give each of several prompts with --prompt",
        ),
        (&["hi", "--eos-token-id", "2", "3"], 2, "such as '[1,2]'"),
        (&["hi", "--prompt", "there"], 2, "--prompt"),
        (&["--ids", "[[1,99999]]"], 1, "99999"),
        (&["--ids", &long], 1, "5000 tokens"),
        (&["--ids", "[[1,"], 1, "--ids"),
        (&["--ids", &deep], 1, "--ids"),
        (&["--ids", "[[-1]]"], 1, "-1 is no token id"),
        (&["x", "--config", "{"], 1, "--config"),
        (&["x", "--config", r#"{"temprature":1}"#], 1, "temperature"),
        (&["x", "--num-beams", "4", "--num-return-sequences", "5"], 1, "num_beams=4"),
        (&["x", "--max-new-tokens", "0"], 1, "max_new_tokens"),
        (&["x", "--max-new-tokens", "many"], 2, "--max-new-tokens"),
        (&["x", "--maxnewtokens", "5"], 2, "--maxnewtokens"),
        (&[], 2, "no prompt"),
        (&["x", "--prompts", "y"], 2, "--prompts"),
        (&["x", "--logprobs"], 2, "--json"),
        (&["x", "--forced-bos-token-id", "-1"], 1, "forced_bos_token_id is -1"),
    ];
    for (arguments, code, told) in cases {
        let error = generate("gpt2", arguments).failed(code);
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
    let error = unspool(&["generate", "/no/such/model", "x"]).failed(1);
    assert!(error.contains("/no/such/model"), "{error}");
    let error = unspool(&["generate", "no-org/no-model", "x"]).failed(1);
    assert!(error.contains("HF_HUB_OFFLINE"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.gguf");
    std::fs::write(&broken, b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x0f").unwrap();
    unspool(&["generate", broken.to_str().unwrap(), "x"]).failed(1);
}

#[test]
fn a_model_without_a_tokenizer_takes_ids() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("onnx")).unwrap();
    for file in ["config.json", "generation_config.json", "onnx/model.onnx"] {
        std::fs::copy(format!("{}/{file}", model("gpt2")), folder.path().join(file)).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let run = ["generate", path, "--engine", "rten", "--max-new-tokens", "3"];
    let error = unspool(&[&run[..], &["text"]].concat()).failed(1);
    assert!(error.contains("tokenizer.json"), "{error}");
    let out = unspool(&[&run[..], &["--ids", "[1,2]", "--json"]].concat()).fine();
    assert_eq!(json_lines(&out)[0]["sequences"][0]["text"], Value::Null);
}

#[test]
fn a_file_of_prompts_becomes_a_file_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let (prompts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    std::fs::write(&prompts, "\u{feff}\"the river\"\n{\"prompt\":\"she read\"}\n{\"ids\":[1,2,3]}\n\"the old\"\n")
        .unwrap();
    let (prompts, out) = (prompts.to_str().unwrap(), out.to_str().unwrap());
    let run = ["--prompts", prompts, "--out", out, "--batch-size", "2", "--max-new-tokens", "4"];
    assert_eq!(generate("gpt2", &run).fine(), "");
    let whole = std::fs::read_to_string(out).unwrap();
    let lines = json_lines(&whole);
    assert_eq!(lines.iter().map(|line| line["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(lines[2]["prompt_ids"], json!([1, 2, 3]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);

    // Without the description of its run a partial result is not continued.
    let second_end = whole.match_indices('\n').nth(1).unwrap().0 + 1;
    std::fs::remove_file(out).unwrap();
    std::fs::write(format!("{out}.part"), &whole[..second_end + 9]).unwrap();
    let error = generate("gpt2", &run).failed(1);
    assert!(error.contains("the file that describes its run is gone; give --force to start again"), "{error}");
    generate("gpt2", &[&run[..], &["--force"]].concat()).fine();
    assert_eq!(json_lines(&std::fs::read_to_string(out).unwrap()).len(), 4);
    let error = generate("gpt2", &["--prompts", prompts, "--out", "/no/such/folder/out.jsonl"]).failed(1);
    assert!(error.contains("/no/such/folder"), "{error}");
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/self/fd/1", &link).unwrap();
        let error = generate("gpt2", &["--prompts", prompts, "--out", link.to_str().unwrap()]).failed(1);
        assert!(error.contains("link") && link.is_symlink(), "{error}");
    }
}

#[test]
fn a_finished_result_is_known_and_another_file_is_never_replaced_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let (prompts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    std::fs::write(&prompts, "\"the river\"\n").unwrap();
    std::fs::write(&out, "mine").unwrap();
    let (prompts, path) = (prompts.to_str().unwrap(), out.to_str().unwrap());
    let run = |extra: &[&str]| {
        generate("gpt2", &[&["--prompts", prompts, "--out", path, "--max-new-tokens", "2"], extra].concat())
    };
    assert!(run(&[]).failed(1).contains("out.jsonl: this file is there already"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
    run(&["--force", "--do-sample"]).fine();
    let whole = std::fs::read_to_string(&out).unwrap();
    // A seed that nobody chose is the one that was drawn.
    let again = run(&["--do-sample"]);
    assert!(again.err.contains("holds the result of this request already"), "{}", again.err);
    again.fine();
    let error = run(&["--do-sample", "--top-k", "4"]).failed(1);
    assert!(error.contains("was written with settings") && error.contains("--force"), "{error}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), whole);
    let error = generate("gpt2", &["x", "--force"]).failed(2);
    assert!(error.contains("--out"), "{error}");
}

#[test]
fn other_keys_of_a_line_go_through_to_its_result() {
    let rows = "{\"id\":\"a-1\",\"prompt\":\"the river\",\"meta\":{\"z\":1.0,\"a\":null}}\n{\"ids\":[1,2],\"id\":2}\r\n\"she\"\n";
    let gpt2 = model("gpt2");
    let run = ["generate", &gpt2, "--engine", "rten", "--prompts", "-", "--json", "--max-new-tokens", "2"];
    let out = with_input(&run, format!("\u{feff}{rows}").as_bytes()).fine();
    let told: Vec<&str> = out.lines().map(|line| &line[..line.find(",\"prompt_ids\"").unwrap()]).collect();
    assert_eq!(
        told,
        ["{\"index\":0,\"id\":\"a-1\",\"meta\":{\"z\":1.0,\"a\":null}", "{\"index\":1,\"id\":2", "{\"index\":2"]
    );
    for key in ["images", "audio", "inputs", "source_lang", "target_lang", "settings", "tools", "index", "seed"] {
        let row = json!({"prompt": "a", key: 1}).to_string();
        let error = with_input(&run, row.as_bytes()).failed(1);
        assert!(error.starts_with(&format!("error: standard input, line 1: \"{key}\" ")), "{error}");
    }
}

#[test]
fn input_that_is_empty_or_no_text_or_has_no_end_is_refused() {
    let gpt2 = model("gpt2");
    let run = |arguments: &[&str], input: &[u8]| {
        with_input(&[&["generate", &gpt2, "--engine", "rten"], arguments].concat(), input).failed(1)
    };
    for input in [&b""[..], b"\n", b"\xef\xbb\xbf \r\n\n"] {
        assert!(run(&["-"], input).contains("standard input: there is no text"), "{input:?}");
        assert!(run(&["--prompts", "-"], input).contains("standard input: there are no prompts"), "{input:?}");
    }
    assert!(run(&["-"], b"one\ntwo \xff").contains("standard input, line 2: byte 5 of this line is not UTF-8"));
    let long = vec![b'a'; 17 << 20];
    for arguments in [&["-"][..], &["--prompts", "-"]] {
        assert!(run(arguments, &long).contains("more than 16 MiB"), "{arguments:?}");
    }
    assert!(run(&["--prompt", "-", "--prompt", "-"], b"a").contains("more than once"));
    for path in ["--prompts", "--config"] {
        let zero = if path == "--config" { "@/dev/zero" } else { "/dev/zero" };
        let words = if path == "--config" { vec!["x", path, zero] } else { vec![path, zero] };
        assert!(run(&words, b"").contains("expected a regular file"), "{path}");
    }
}

#[test]
fn a_cut_run_with_healed_prompts_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (prompts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    let (prompts, out) = (prompts.to_str().unwrap(), out.to_str().unwrap());
    std::fs::write(prompts, "\"old h\"\n\"in the\"\n").unwrap();
    let run = ["--prompts", prompts, "--out", out, "--max-new-tokens", "2", "--batch-size", "1", "--token-healing"];
    generate("llama", &run).fine();
    let whole = std::fs::read_to_string(out).unwrap();
    let without_times = |text: &str| -> Vec<Value> {
        let lines = json_lines(text);
        lines.into_iter().map(|line| json!([line["index"], line["prompt_ids"], line["sequences"]])).collect()
    };
    // The run was cut behind its first line.
    let first_end = whole.find('\n').unwrap() + 1;
    let cut = |description: &str| {
        std::fs::remove_file(out).unwrap();
        std::fs::write(format!("{out}.part"), &whole[..first_end]).unwrap();
        std::fs::write(format!("{out}.part.run"), description).unwrap();
    };
    let described = |ids: Value| {
        json!({"model": PathBuf::from(model("llama")).canonicalize().unwrap().to_string_lossy(), "dtype": null,
            "engine": "rten", "weights": "keep", "seed": null, "logprobs": false, "negative": [],
            "assistant": null, "always_draft": false, "settings": {"max_new_tokens": 2, "token_healing": true}, "texts": true, "healed_from": ids})
        .to_string()
    };
    cut(&described(json!([[1, 285, 273, 270, 291, 266], [1, 285, 292, 287, 266, 263]])));
    generate("llama", &run).fine();
    assert_eq!(without_times(&std::fs::read_to_string(out).unwrap()), without_times(&whole));
    cut(&described(json!([[1, 285, 273, 270, 291, 266], [1, 285, 292]])));
    let error = generate("llama", &run).failed(1);
    assert!(error.contains("other prompts"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_goes_on_and_gives_the_same_answers() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let (prompts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    let lines: String = (0..400).map(|id| format!("{{\"ids\":[{},7,9]}}\n", id % 200)).collect();
    std::fs::write(&prompts, lines).unwrap();
    let model = model("gpt2");
    let arguments = [
        "generate",
        &model,
        "--engine",
        "rten",
        "--prompts",
        prompts.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--batch-size",
        "2",
        "--max-new-tokens",
        "40",
        "--do-sample",
    ];
    let child = command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let part = folder.path().join("out.jsonl.part");
    let started = std::time::Instant::now();
    while std::fs::metadata(&part).map_or(0, |part| part.len()) == 0 {
        assert!(started.elapsed().as_secs() < 60, "nothing was written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(!out.exists() && part.exists());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("run the same command again to continue"));
    let answered = json_lines(&std::fs::read_to_string(&part).unwrap()).len();
    assert!((1..400).contains(&answered), "{answered} prompts were answered before the signal ended the run");
    assert_eq!(unspool(&arguments).fine(), "");
    let first = json_lines(&std::fs::read_to_string(&out).unwrap());
    assert_eq!(first.len(), 400);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    let seed = first[0]["seed"].as_u64().unwrap().to_string();
    assert_eq!(unspool(&[&arguments[..], &["--seed", &seed, "--force"]].concat()).fine(), "");
    let again = json_lines(&std::fs::read_to_string(&out).unwrap());
    for (first, again) in first.iter().zip(&again) {
        assert_eq!(first["sequences"], again["sequences"]);
    }
}

#[test]
fn a_bad_line_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (prompts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    for bad in ["{\"prompt\":", "{\"ids\":[99999]}"] {
        std::fs::write(&prompts, format!("\n\"fine\"\n{bad}\n")).unwrap();
        let run = ["--prompts", prompts.to_str().unwrap(), "--out", out.to_str().unwrap(), "--batch-size", "1"];
        let error = generate("gpt2", &run).failed(1);
        assert!(error.contains("in.jsonl, line 3"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{bad}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    use std::io::Read;
    use std::process::Stdio;
    let model = model("gpt2");
    let mut child = command()
        .args(["generate", &model, "--engine", "rten", "--prompts", "-", "--json", "--batch-size", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "{\"ids\":[1,2,3]}\n".repeat(200);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!err.contains("error:") && !err.contains("panicked"), "{err}");
}

#[test]
fn beams_come_best_first_with_scores_and_paths() {
    let flags = [RIVER, "--num-beams", "3", "--num-return-sequences", "2", "--max-new-tokens", "6"];
    let line: Value =
        serde_json::from_str(&generate("gpt2", &[&flags[..], &["--json", "--logprobs"]].concat()).fine()).unwrap();
    let sequences = line["sequences"].as_array().unwrap();
    assert_eq!(sequences.len(), 2);
    for sequence in sequences {
        let length = sequence["ids"].as_array().unwrap().len();
        assert_eq!(sequence["beam_indices"].as_array().unwrap().len(), length);
        let sum: f64 = sequence["logprobs"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).sum();
        assert!((sum / length as f64 - sequence["score"].as_f64().unwrap()).abs() < 1e-4);
    }
    assert!(sequences[0]["score"].as_f64() >= sequences[1]["score"].as_f64());
    let text = generate("gpt2", &flags).fine();
    assert_eq!(
        text,
        format!("{}\n{}\n", sequences[0]["text"].as_str().unwrap(), sequences[1]["text"].as_str().unwrap())
    );

    let forced = ["--ids", "[[10, 11]]", "--num-beams", "4", "--max-new-tokens", "12", "--json"];
    let forced = [&forced[..], &["--force-words-ids", "[[7, 9], [[3], [5, 6]]]"]].concat();
    let line: Value = serde_json::from_str(&generate("gpt2", &forced).fine()).unwrap();
    let ids: Vec<u64> = line["sequences"][0]["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    assert!(ids.windows(2).any(|pair| pair == [7, 9]), "{ids:?}");
    assert!(ids.contains(&3) || ids.windows(2).any(|pair| pair == [5, 6]), "{ids:?}");
}
