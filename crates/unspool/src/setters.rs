//! One method of [`Call`] for each generation field, made from the table of fields.

use serde_json::Value;
use unspool_core::TokenId;

use crate::call::Call;

/// The method of one field; the argument's type follows from the field's kind.
macro_rules! setter {
    (Bool $name:ident $help:literal) => { setter!($name, $help, value: bool, value); };
    (Int $name:ident $help:literal) => { setter!($name, $help, value: usize, value); };
    (Float $name:ident $help:literal) => { setter!($name, $help, value: f64, number(value)); };
    (Text $name:ident $help:literal) => { setter!($name, $help, value: impl Into<String>, value.into()); };
    (Texts $name:ident $help:literal) => {
        setter!($name, $help, value: impl IntoIterator<Item = impl Into<String>>,
            value.into_iter().map(Into::into).collect::<Vec<String>>());
    };
    (Ints $name:ident $help:literal) => {
        setter!($name, $help, value: impl IntoIterator<Item = TokenId>, value.into_iter().collect::<Vec<_>>());
    };
    (IntLists $name:ident $help:literal) => {
        setter!($name, $help, value: impl IntoIterator<Item = impl Into<Vec<TokenId>>>,
            value.into_iter().map(Into::into).collect::<Vec<_>>());
    };
    (Biases $name:ident $help:literal) => {
        setter!($name, $help, value: impl IntoIterator<Item = (impl Into<Vec<TokenId>>, f64)>,
            value.into_iter().map(|(ids, bias)| vec![ids.into().into(), number(bias)]).collect::<Vec<Vec<Value>>>());
    };
    (IntAndFloat $name:ident $help:literal) => {
        setter!($name, $help, value: (usize, f64), vec![value.0.into(), number(value.1)]);
    };
    // Fields of several types take what becomes JSON.
    ($kind:ident $name:ident $help:literal) => { setter!($name, $help, value: impl Into<Value>, value); };
    ($name:ident, $help:literal, $value:ident: $type:ty, $json:expr) => {
        #[doc = concat!($help, ".")]
        #[must_use]
        pub fn $name(self, $value: $type) -> Self {
            self.with(stringify!($name), $json.into())
        }
    };
}

macro_rules! setters {
    ($($name:ident $kind:ident, $fill:expr, $group:ident, $status:expr, $help:literal;)*) => {
        /// The generation fields by their Python names, one method each.
        ///
        /// A value of a wrong type (for fields that take several) or one that is no number is reported when the call is
        /// used, as values that are out of range are.
        impl Call {
            $(setter!($kind $name $help);)*
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

unspool_core::generation_fields!(setters);

/// A JSON number. One that JSON does not have becomes its name, which no field takes: the error then tells it.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unspool_core::config::FIELDS;

    use super::*;

    #[test]
    fn every_field_has_its_method() {
        assert!(FIELDS.iter().map(|field| field.name).eq(NAMES.iter().copied()));
    }

    #[test]
    fn methods_set_what_set_sets() {
        let call = Call::new()
            .max_new_tokens(40)
            .do_sample(true)
            .temperature(0.8)
            .stop_strings(["\n", "END"])
            .eos_token_id(2)
            .suppress_tokens([1, 2])
            .bad_words_ids([[3, 4]])
            .sequence_bias([([5], -1.5)])
            .exponential_decay_length_penalty((10, 1.5))
            .early_stopping("never")
            .dola_layers(vec![1, 2])
            .watermarking_config(json!({"bias": 2.0}))
            .force_words_ids(json!([[7, 8]]))
            .num_assistant_tokens_schedule("constant");
        assert_eq!(call.refused, None);
        assert_eq!(
            call.config.to_json(),
            json!({
                "max_new_tokens": 40, "do_sample": true, "temperature": 0.8, "stop_strings": ["\n", "END"],
                "eos_token_id": 2, "suppress_tokens": [1, 2], "bad_words_ids": [[3, 4]],
                "sequence_bias": [[[5], -1.5]], "exponential_decay_length_penalty": [10, 1.5],
                "early_stopping": "never", "dola_layers": [1, 2], "watermarking_config": {"bias": 2.0},
                "force_words_ids": [[7, 8]], "num_assistant_tokens_schedule": "constant"
            })
        );
    }

    #[test]
    fn a_wrong_value_waits_for_the_use_of_the_call() {
        for (call, told) in [
            (Call::new().temperature(f64::NAN).top_k(5), "temperature is \"NaN\", expected a number"),
            (Call::new().length_penalty(f64::INFINITY), "length_penalty is \"inf\", expected a number"),
            (Call::new().early_stopping(3), "early_stopping is 3, expected true, false or a text"),
        ] {
            assert!(call.refused.as_deref().is_some_and(|refused| refused.starts_with(told)), "{:?}", call.refused);
        }
    }
}
