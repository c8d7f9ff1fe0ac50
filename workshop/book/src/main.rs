//! Makes the HTML book: two languages, a switch between them on every page. `cargo run` in this folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

mod page;

use page::{Lang, PAGES, Page};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = root.join("html");
    match write_book(&root.join("../guide"), &out) {
        Ok(count) => {
            println!("{count} pages: {}", out.join("index.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("book: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes all pages, the style sheet and the page that chooses a language; the number of pages.
fn write_book(guide: &Path, out: &Path) -> Result<usize, String> {
    let mut count = 0;
    for lang in Lang::ALL {
        let folder = out.join(lang.code());
        let sources: Result<Vec<Page>, String> = PAGES.iter().map(|name| read_page(guide, lang, name)).collect();
        let pages = sources?;
        for (index, page) in pages.iter().enumerate() {
            write(&folder.join(page.file_name()), &page.html(&pages, index))?;
            count += 1;
        }
    }
    write(&out.join("style.css"), include_str!("style.css"))?;
    write(&out.join("index.html"), include_str!("index.html"))?;
    Ok(count)
}

fn read_page(guide: &Path, lang: Lang, name: &'static str) -> Result<Page, String> {
    let path: PathBuf = guide.join(lang.code()).join(name);
    let text = fs::read_to_string(&path).map_err(|error| named(&path, error))?;
    Page::new(lang, name, text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).map_err(|error| named(path, error))
}

fn named(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the book as `cargo run` does, and follows every link of every page.
    #[test]
    fn every_link_in_the_book_leads_to_a_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let out = root.join("html");
        assert_eq!(write_book(&root.join("../guide"), &out), Ok(2 * PAGES.len()));
        let mut links = 0;
        for lang in Lang::ALL {
            for name in PAGES {
                let path = out.join(lang.code()).join(name.replace(".md", ".html"));
                let html = fs::read_to_string(&path).expect("the page");
                for target in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                    let file = path.parent().expect("a folder").join(target);
                    assert!(file.is_file(), "{}: {target}", path.display());
                    links += 1;
                }
                let other = format!("href=\"../{}/{}\"", lang.other().code(), name.replace(".md", ".html"));
                assert!(html.contains(&other), "{}: no switch to the other language", path.display());
                assert!(html.contains(&format!("<html lang=\"{}\">", lang.code())));
            }
        }
        assert!(links > 200, "{links} links");
    }
}
