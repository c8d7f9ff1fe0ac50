//! The two languages of the course.

/// The language of messages, hints and skeleton comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// English.
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// Both languages.
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Ja];

    /// `en` or `ja`.
    pub fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Ja => "ja",
        }
    }

    /// The language with this code.
    pub fn from_code(code: &str) -> Option<Lang> {
        Lang::ALL.into_iter().find(|lang| lang.code() == code)
    }

    /// The language of the environment (`LC_ALL`, `LC_MESSAGES`, `LANG`), for commands before `start`.
    pub fn from_environment() -> Lang {
        let variables = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let value = variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        if value.is_some_and(|value| value.starts_with("ja")) { Lang::Ja } else { Lang::En }
    }

    /// The text in this language.
    pub fn pick<'a>(self, en: &'a str, ja: &'a str) -> &'a str {
        match self {
            Lang::En => en,
            Lang::Ja => ja,
        }
    }
}
