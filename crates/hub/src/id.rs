//! A model's name on the Hub.

/// The longest part of an id; the Hub's own limit is 96 characters for both.
const LONGEST: usize = 96;

/// A model by its name on the Hub, at a revision.
///
/// ```
/// use unspool_hub::HubId;
///
/// let id = HubId::parse("onnx-community/SmolLM2-135M-Instruct", None).unwrap();
/// assert_eq!(id.to_string(), "onnx-community/SmolLM2-135M-Instruct at main");
/// assert!(HubId::parse("./models/smollm2", None).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubId {
    id: String,
    revision: String,
}

impl HubId {
    /// `org/name` at `revision` (a branch, tag or commit; `main` by default); `None` when either has another form.
    pub fn parse(id: &str, revision: Option<&str>) -> Option<Self> {
        let word = |part: &str| {
            !part.is_empty()
                && part.len() <= LONGEST
                && !part.starts_with(['.', '-', '~'])
                && !part.ends_with('.')
                && !part.contains("..")
                && !part.contains("--")
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let (org, name) = id.split_once('/')?;
        let revision = revision.unwrap_or("main");
        let plain = crate::names::is_plain(revision);
        (word(org) && word(name) && plain).then(|| HubId { id: id.to_string(), revision: revision.to_string() })
    }

    /// `org/name`.
    pub fn name(&self) -> &str {
        &self.id
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

impl std::fmt::Display for HubId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.id, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_organisation_and_a_name() {
        let id = HubId::parse("org-1/Some.Model_2", Some("refs/pr/1")).unwrap();
        assert_eq!((id.name(), id.revision()), ("org-1/Some.Model_2", "refs/pr/1"));
        assert_eq!(HubId::parse("org/name", None).unwrap().revision(), "main");
    }

    #[test]
    fn takes_paths_for_paths() {
        let long = format!("org/{}", "x".repeat(97));
        for path in [
            "name",
            "./org/name",
            "/org/name",
            "a/b/c",
            "../name",
            "org/",
            "/name",
            "~/name",
            "org/..",
            "org/a--b",
            &long,
        ] {
            assert_eq!(HubId::parse(path, None), None, "{path}");
        }
        for revision in ["../x", "", "a\0", "/x", "a/../b"] {
            assert_eq!(HubId::parse("org/name", Some(revision)), None, "{revision}");
        }
    }
}
