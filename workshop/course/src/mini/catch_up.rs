//! `catch-up N`: the model answer of steps 1 to N in place of the learner's `src`, which is kept beside it.

use std::fs;
use std::io::{BufRead, Write};

use super::arguments::Arguments;
use super::{Mini, step_argument};
use crate::files;
use crate::generate::Stage;
use crate::lang::Lang;
use crate::steps;

pub(super) fn catch_up(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let yes = arguments.flag("--yes");
    let word = arguments.word().ok_or(super::arguments::USAGE)?;
    let step = step_argument(&word, mini.lang)?;
    arguments.end()?;
    mini.started()?;
    let old = (1..).map(|number| mini.folder.join(format!("src.old-{number}"))).find(|path| !path.exists());
    let old = old.ok_or("no name is free")?;
    let old_name = old.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !yes {
        print!(
            "{}",
            match mini.lang {
                Lang::En => format!("Replace src/ by steps 1 to {step}? Your files move to {old_name}/. [y/N] "),
                Lang::Ja => format!(
                    "src/ をステップ 1〜{step} の模範解答に置き換えますか。元のファイルは {old_name}/ に移します。[y/N] "
                ),
            }
        );
        let _ = std::io::stdout().flush();
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
        if !["y", "yes", "はい"].contains(&answer.trim().to_lowercase().as_str()) {
            println!("{}", mini.lang.pick("Nothing was changed.", "何も変更していません。"));
            return Ok(false);
        }
    }
    let stage = Stage { step, lang: mini.lang, short: mini.state.short() };
    let sources = files::sources(stage)?;
    let new: Vec<_> = sources.into_iter().filter(|(name, _)| name.starts_with("src/")).collect();
    let src = mini.folder.join("src");
    if src.exists() {
        fs::rename(&src, &old).map_err(|error| format!("src: {error}"))?;
    } else {
        // A learner whose files are gone begins again from here.
        fs::create_dir(&old).map_err(|error| format!("{old_name}: {error}"))?;
    }
    files::write(&mini.folder, &new)?;
    println!(
        "{}",
        match mini.lang {
            Lang::En => format!("✓ src/ now has steps 1 to {step}; your files are in {old_name}/."),
            Lang::Ja =>
                format!("✓ src/ はステップ 1〜{step} の模範解答になりました。元のファイルは {old_name}/ にあります。"),
        }
    );
    if step < steps::LAST {
        println!("{} cargo mini test {}", mini.lang.pick("Next:", "次は:"), step + 1);
    }
    Ok(true)
}
