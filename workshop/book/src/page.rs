//! One page: Markdown in, HTML with a header, a table of contents and links to the next page out.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Every page, in order.
pub const PAGES: [&str; 10] = [
    "index.md",
    "00-setup.md",
    "01-tcp.md",
    "02-resp.md",
    "03-keys.md",
    "04-expire.md",
    "05-active.md",
    "06-pubsub.md",
    "07-muf.md",
    "teacher.md",
];

/// The book's language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lang {
    /// English.
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// Both.
    pub const ALL: [Lang; 2] = [Lang::En, Lang::Ja];

    /// `en` or `ja`, the name of the folder.
    pub fn code(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Ja => "ja",
        }
    }

    /// The language of the switch.
    pub fn other(self) -> Lang {
        match self {
            Lang::En => Lang::Ja,
            Lang::Ja => Lang::En,
        }
    }

    fn pick(self, en: &'static str, ja: &'static str) -> &'static str {
        match self {
            Lang::En => en,
            Lang::Ja => ja,
        }
    }
}

/// A page's source.
pub struct Page {
    lang: Lang,
    name: &'static str,
    title: String,
    markdown: String,
}

impl Page {
    /// A page; its first line is its title.
    pub fn new(lang: Lang, name: &'static str, markdown: String) -> Result<Page, String> {
        let title = markdown.lines().next().and_then(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("{name}: no title in its first line"))?.to_string();
        let markdown = if lang == Lang::Ja { join_lines(&markdown) } else { markdown };
        Ok(Page { lang, name, title, markdown })
    }

    /// The name of its HTML file.
    pub fn file_name(&self) -> String {
        self.name.replace(".md", ".html")
    }

    /// The whole HTML file. `pages` are all pages of the language, `index` is this one's place.
    pub fn html(&self, pages: &[Page], index: usize) -> String {
        let lang = self.lang;
        let contents: String = pages
            .iter()
            .map(|page| {
                let here = if page.name == self.name { " aria-current=\"page\"" } else { "" };
                format!("<li><a href=\"{}\"{here}>{}</a></li>\n", page.file_name(), page.title)
            })
            .collect();
        let around = |page: Option<&Page>, rel: &str, label: &str| match page {
            Some(page) => format!("<a rel=\"{rel}\" href=\"{}\">{label}: {}</a>", page.file_name(), page.title),
            None => "<span></span>".to_string(),
        };
        let previous = around(index.checked_sub(1).and_then(|at| pages.get(at)), "prev", lang.pick("Back", "前"));
        let next = around(pages.get(index + 1), "next", lang.pick("Next", "次"));
        format!(
            "<!doctype html>
<html lang=\"{code}\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>{title} · {book}</title>
<link rel=\"stylesheet\" href=\"../style.css\">
</head>
<body>
<header>
<a class=\"book\" href=\"index.html\">{book}</a>
<a class=\"language\" href=\"../{other}/{file}\" lang=\"{other}\" hreflang=\"{other}\">{switch}</a>
</header>
<div class=\"columns\">
<nav aria-label=\"{contents_label}\"><details open><summary>{contents_label}</summary><ol>
{contents}</ol></details></nav>
<main>
{body}
<div class=\"around\">{previous}{next}</div>
</main>
</div>
<script>if (matchMedia('(max-width: 56rem)').matches) document.querySelector('nav details').open = false;</script>
</body>
</html>
",
            code = lang.code(),
            title = self.title,
            book = lang.pick("A mini Redis", "ミニ Redis"),
            other = lang.other().code(),
            file = self.file_name(),
            switch = lang.pick("日本語", "English"),
            contents_label = lang.pick("Contents", "目次"),
            body = self.body(),
        )
    }

    fn body(&self) -> String {
        let options = Options::ENABLE_TABLES;
        let events = Parser::new_ext(&self.markdown, options).flat_map(|event| match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = CowStr::from(link_target(&dest_url));
                vec![Event::Start(Tag::Link { link_type, dest_url, title, id })]
            }
            // A wide table scrolls by itself instead of widening the page.
            Event::Start(Tag::Table(alignment)) => {
                vec![Event::Html("<div class=\"table\">".into()), Event::Start(Tag::Table(alignment))]
            }
            Event::End(TagEnd::Table) => vec![Event::End(TagEnd::Table), Event::Html("</div>\n".into())],
            other => vec![other],
        });
        let mut body = String::new();
        html::push_html(&mut body, events);
        body
    }
}

/// A line break in HTML is a blank. Japanese has none between characters, so lines that end and begin with one are joined.
fn join_lines(markdown: &str) -> String {
    let mut joined = String::new();
    let mut fenced = false;
    for line in markdown.lines() {
        let is_fence = line.starts_with("```");
        let before = joined.trim_end_matches('\n').chars().next_back().unwrap_or(' ');
        let open = !before.is_ascii() && !joined.ends_with("\n\n");
        // After a full stop or comma there is no blank before Latin letters either.
        let continues = line.trim_start().starts_with(|first: char| {
            !first.is_ascii() || ("。、（".contains(before) && (first.is_ascii_alphanumeric() || first == '`'))
        });
        if !fenced && !is_fence && continues && open {
            joined.truncate(joined.trim_end_matches('\n').len());
            joined.push_str(line.trim_start());
        } else {
            joined.push_str(line);
        }
        joined.push('\n');
        fenced ^= is_fence;
    }
    joined
}

/// Pages lead to pages; files of the repository are one folder further away from the book than from the guide.
fn link_target(target: &str) -> String {
    match target.strip_prefix("../../../") {
        Some(file) => format!("../../../../{file}"),
        None => target.replace(".md", ".html"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_fitted_to_the_book() {
        assert_eq!(link_target("02-resp.md"), "02-resp.html");
        assert_eq!(link_target("../../../docs/muf.md"), "../../../../docs/muf.md");
    }

    #[test]
    fn japanese_lines_are_joined_without_a_blank() {
        let joined = join_lines("# 題\n\nこれは\n文です。\n2 つ目。\n- 項目\n  続き\n\n```picture\n図\n図\n```\n");
        assert_eq!(joined, "# 題\n\nこれは文です。2 つ目。\n- 項目続き\n\n```picture\n図\n図\n```\n");
    }

    #[test]
    fn a_page_needs_a_title() {
        assert!(Page::new(Lang::En, "x.md", "no title\n".to_string()).is_err());
    }
}
